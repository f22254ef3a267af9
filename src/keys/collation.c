/*-------------------------------------------------------------------------
 *
 * collation.c
 *	  Sort keys: bytes that memcmp() orders as a collation orders texts.
 *
 * Comparing two texts under an ICU collation walks through both of them each
 * time; ICU can instead make a key of a text, once, that compares by itself.
 * This file makes such keys, or their first FMS_SORT_KEY_MAX bytes, with the
 * collator that the server holds for the collation.
 *
 * Which collations.  libc's have strxfrm(), but it is known to disagree with
 * strcoll(), so the server does not use it, and neither do we.  ICU's sort
 * keys are what ucol_strcollUTF8() says, but for collations with one of these
 * attributes: alternate handling shifted, normalization, numeric ordering,
 * identical strength.  With these (Thai, Vietnamese, Hindi, Hebrew, ...) the
 * two contradict each other on odd sequences of marks and digits, and call
 * different pairs equal.
 * The server trusts eight bytes of sort key whatever the attributes, and lets
 * the comparison decide ties.  There we do the same: those are the cases in
 * which a longer key would sort otherwise than the stock sort does.
 *
 * Which collations contradict themselves.  Under these even the first eight
 * bytes of sort keys and the comparison order some texts differently.  The
 * server's sort follows the keys where it compares abbreviated keys, and is
 * wrong there.  Here the comparison alone decides: no sort keys are made.
 *
 *	  digits moved		The reorder codes name the digits (kr-latn-digit).  The
 *						comparison's fast path for Latin text ignores that
 *						digits have moved, but notices for other text.
 *	  backward accents	fr-CA, and kb.
 *	  numeric, and		kn with rules of a language or a user's own: the
 *	  tailored			comparison skips what two texts have in common, and may
 *						do so in the middle of a number whose digits are not
 *						ASCII, because rules hide that these are digits.
 *
 * For mixed texts the comparison then is not even an order: 'ab' < 'aẑ' < 'a1'
 * < 'ab' with kr-latn-digit.  Their rows come in no particular order, as with
 * any comparison function that contradicts itself.
 *
 * Why ICU is called, but not linked.  The server is linked with it, and so
 * its symbols are at hand in any process that has an ICU collation.  They are
 * weak here: if they are missing (each version of ICU has other names, so
 * that is when we were built with the headers of another version than the
 * server) there are no sort keys, and comparators do all the work; a library
 * that could not be loaded would keep users from their database.
 *
 * Why not through the server.  pg_strxfrm_prefix() came with 16, and says
 * nothing about attributes.  The abbreviated keys of SortSupport exist in all
 * versions, but have only eight bytes: hardly longer than the first word, too
 * short for whatever starts with the same one, and never exact.  Sixteen
 * leave short texts exact, which makes ties cheap and lets the next column
 * into the key; all that a record has room for take ICU too long.
 *
 * Only in UTF-8 databases: elsewhere a text would first have to be converted.
 *
 * Memory: none of ours; ICU frees what it needs for a key.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#ifdef USE_ICU
#include <unicode/ucol.h>
#include <unicode/uiter.h>
#endif

#include "mb/pg_wchar.h"
#include "utils/pg_locale.h"

#include "keys/collation.h"
#include "base/compat.h"

#ifdef USE_ICU

extern __attribute__((weak)) __typeof__(ucol_getAttribute) ucol_getAttribute;
extern __attribute__((weak)) __typeof__(ucol_getReorderCodes)
			ucol_getReorderCodes;
extern __attribute__((weak)) __typeof__(ucol_getRules) ucol_getRules;
extern __attribute__((weak)) __typeof__(ucol_nextSortKeyPart)
			ucol_nextSortKeyPart;
extern __attribute__((weak)) __typeof__(uiter_setUTF8) uiter_setUTF8;

/* The scripts and groups that a collation may name, with room to spare. */
#define REORDER_CODES_MAX	256

static bool
attribute_is(const UCollator *collator, UColAttribute attribute,
			 UColAttributeValue value)
{
	UErrorCode	status = U_ZERO_ERROR;

	return ucol_getAttribute(collator, attribute, &status) == value &&
		U_SUCCESS(status);
}

static bool
keys_are_exact(const UCollator *collator)
{
	return !attribute_is(collator, UCOL_STRENGTH, UCOL_IDENTICAL) &&
		attribute_is(collator, UCOL_ALTERNATE_HANDLING, UCOL_NON_IGNORABLE) &&
		attribute_is(collator, UCOL_NORMALIZATION_MODE, UCOL_OFF) &&
		attribute_is(collator, UCOL_NUMERIC_COLLATION, UCOL_OFF);
}

static bool
moves_digits(const UCollator *collator)
{
	int32_t		codes[REORDER_CODES_MAX];
	UErrorCode	status = U_ZERO_ERROR;
	int32_t		ncodes = ucol_getReorderCodes(collator, codes,
											  REORDER_CODES_MAX, &status);
	int32_t		i;

	if (U_FAILURE(status))
		return true;
	for (i = 0; i < ncodes; i++)
	{
		if (codes[i] == UCOL_REORDER_CODE_DIGIT)
			return true;
	}
	return false;
}

/* Has it rules of its own, beside those that all languages share? */
static bool
is_tailored(const UCollator *collator)
{
	int32_t		length = 0;

	(void) ucol_getRules(collator, &length);
	return length > 0;
}

static bool
keys_contradict(const UCollator *collator)
{
	return moves_digits(collator) ||
		!attribute_is(collator, UCOL_FRENCH_COLLATION, UCOL_OFF) ||
		(!attribute_is(collator, UCOL_NUMERIC_COLLATION, UCOL_OFF) &&
		 is_tailored(collator));
}

FmsSortKeys
fms_sort_keys_of(Oid collation)
{
	FmsSortKeys keys = {0};

	if (ucol_getAttribute == NULL || ucol_getReorderCodes == NULL ||
		ucol_getRules == NULL || ucol_nextSortKeyPart == NULL ||
		uiter_setUTF8 == NULL)
		return keys;
	if (GetDatabaseEncoding() != PG_UTF8)
		return keys;
	keys.collator = fms_collation_icu(collation);
	if (keys.collator == NULL)
		return keys;
	if (keys_contradict(keys.collator))
	{
		keys.collator = NULL;
		return keys;
	}
	keys.exact = keys_are_exact(keys.collator);
	keys.deterministic = pg_newlocale_from_collation(collation)->deterministic;
	return keys;
}

Size
fms_sort_key_make(const FmsSortKeys *keys, const char *text, Size length,
				  char *key, Size room)
{
	UCharIterator iterator;
	uint32_t	state[2] = {0, 0};	/* from the beginning */
	UErrorCode	status = U_ZERO_ERROR;
	int32_t		key_bytes;

	uiter_setUTF8(&iterator, text, length);
	key_bytes = ucol_nextSortKeyPart(keys->collator, &iterator, state,
									 (uint8_t *) key, room, &status);
	if (U_FAILURE(status))
		ereport(ERROR,
				(errmsg("could not make a sort key: ICU error %d",
						(int) status)));
	return key_bytes;
}

#else							/* no ICU in this server */

FmsSortKeys
fms_sort_keys_of(Oid collation)
{
	return (FmsSortKeys) {0};
}

Size
fms_sort_key_make(const FmsSortKeys *keys, const char *text, Size length,
				  char *key, Size room)
{
	pg_unreachable();
}

#endif
