/*-------------------------------------------------------------------------
 *
 * collation.c
 *	  ICU sort keys: bytes that memcmp() orders as a collation orders texts.
 *
 * They come from the server's collator, in UTF-8 databases.  Texts with other
 * providers are compared by the server.  Some collations limit sort keys:
 *
 *	  alternate shifted, normalization,		only FMS_SORT_KEY_TRUSTED bytes
 *	  numeric, strength identical			are used, as by the server: longer
 *											keys disagree with the comparison
 *	  digits reordered (kr-latn-digit),		not used: even 8 bytes disagree,
 *	  backward accents (fr-CA, kb), numeric	and the comparison decides
 *	  (kn) with rules of a language
 *
 * ICU's symbols are weak: if the server has another version of ICU, whose
 * names differ, there are no sort keys, but the library can be loaded.
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

#include "base/compat.h"
#include "keys/key_columns.h"

#ifdef USE_ICU

extern __attribute__((weak)) __typeof__(ucol_getAttribute) ucol_getAttribute;
extern __attribute__((weak)) __typeof__(ucol_getReorderCodes)
			ucol_getReorderCodes;
extern __attribute__((weak)) __typeof__(ucol_getRules) ucol_getRules;
extern __attribute__((weak)) __typeof__(ucol_nextSortKeyPart)
			ucol_nextSortKeyPart;
extern __attribute__((weak)) __typeof__(uiter_setUTF8) uiter_setUTF8;

/* More than ICU has scripts and groups. */
#define REORDER_CODES_MAX	256

static bool
attribute_is(const UCollator *collator, UColAttribute attribute,
			 UColAttributeValue value)
{
	UErrorCode	status = U_ZERO_ERROR;

	return ucol_getAttribute(collator, attribute, &status) == value &&
		U_SUCCESS(status);
}

/* Do equal sort keys mean equal texts? */
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

	if (U_FAILURE(status))
		return true;
	for (int32_t i = 0; i < ncodes; i++)
	{
		if (codes[i] == UCOL_REORDER_CODE_DIGIT)
			return true;
	}
	return false;
}

/* Do sort keys and the comparison disagree? */
static bool
keys_contradict(const UCollator *collator)
{
	int32_t		rules = 0;

	/* of the language, beside those of the root collation */
	(void) ucol_getRules(collator, &rules);
	return moves_digits(collator) ||
		!attribute_is(collator, UCOL_FRENCH_COLLATION, UCOL_OFF) ||
		(!attribute_is(collator, UCOL_NUMERIC_COLLATION, UCOL_OFF) &&
		 rules > 0);
}

FmsSortKeys
fms_sort_keys_of(Oid collation)
{
	FmsSortKeys keys = {0};
	UCollator  *collator;

	if (ucol_getAttribute == NULL || ucol_getReorderCodes == NULL ||
		ucol_getRules == NULL || ucol_nextSortKeyPart == NULL ||
		uiter_setUTF8 == NULL || GetDatabaseEncoding() != PG_UTF8)
		return keys;
	collator = fms_collation_icu(collation);
	if (collator == NULL || keys_contradict(collator))
		return keys;
	keys.collator = collator;
	keys.exact = keys_are_exact(collator);
	keys.max_bytes = keys.exact ? FMS_SORT_KEY_MAX : FMS_SORT_KEY_TRUSTED;
	keys.deterministic = pg_newlocale_from_collation(collation)->deterministic;
	return keys;
}

Size
fms_sort_key_make(const FmsSortKeys *keys, const char *text, Size length,
				  char *key, Size room)
{
	UCharIterator iterator;
	uint32_t	state[2] = {0, 0};	/* start at the first byte */
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

#else							/* the server has no ICU */

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
