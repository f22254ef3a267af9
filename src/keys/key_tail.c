/*-------------------------------------------------------------------------
 *
 * key_tail.c
 *	  Prefixes of entries whose texts are longer than their keys.
 *
 * A key is cut off at FMS_KEY_MAX_BYTES.  If texts have a long common
 * beginning, their keys are equal, and the text in the tuple has the bytes
 * that decide.  What all texts of a set share is skipped at once:
 *
 *	  key			01 a a a a a .. a
 *	  text			   a a a a a .. a a a a b b b b c 0 1 9 2 7 | ..
 *					   |<-- shared by all texts --->|<- prefix ->|
 *
 * The types' comparators decide what is toasted, or not compared as bytes.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "base/interrupts.h"
#include "keys/entry.h"
#include "keys/key_columns.h"

/* Times that a tie is sorted by its texts, at most; then columns decide. */
#define ROUNDS_MAX			8

typedef struct FmsText
{
	const char *bytes;			/* NULL: a null, or a value that is toasted */
	Size		length;
} FmsText;

/* The text in which the record's key ends. */
static inline FmsText
text_of(const FmsKeys *keys, const FmsRecord *record)
{
	bool		isnull;
	Datum		value = fms_keys_column(keys, record, keys->undecided,
										&isnull);
	const char *text = DatumGetPointer(value);

	if (isnull || VARATT_IS_EXTERNAL(text) || VARATT_IS_COMPRESSED(text))
		return (FmsText) {NULL, 0};
	return (FmsText) {VARDATA_ANY(text), VARSIZE_ANY_EXHDR(text)};
}

/* Number of leading bytes that are the same in both. */
static Size
count_same(const char *a, const char *b, Size n)
{
	Size		same = 0;
	Size		step;

	for (; same < n; same += step)
	{
		CHECK_FOR_INTERRUPTS();
		step = Min(n - same, FMS_INTERRUPT_BYTES);
		if (memcmp(a + same, b + same, step) != 0)
			break;
	}
	while (same < n && a[same] == b[same])
		same++;
	return same;
}

/* The leading bytes that all texts share; false if a text cannot be read. */
static bool
count_shared(const FmsEntriesSort *sort, const FmsEntry *entries, Size count,
			 Size *shared, bool *equal)
{
	FmsText		first = text_of(sort->keys,
								fms_entry_record(sort->records, entries));
	bool		same_length = true;
	Size		touched_bytes = 0;

	if (first.bytes == NULL)
		return false;
	*shared = first.length;
	for (Size i = 1; i < count; i++)
	{
		FmsText		text = text_of(sort->keys,
								   fms_entry_record(sort->records,
													&entries[i]));

		fms_interrupts_after(&touched_bytes,
							 FMS_INTERRUPT_RECORD_BYTES + *shared);
		if (text.bytes == NULL)
			return false;
		same_length = same_length && text.length == first.length;
		*shared = Min(*shared, text.length);
		*shared = count_same(text.bytes, first.bytes, *shared);
	}
	*equal = same_length && *shared == first.length;
	return true;
}

FmsTies
fms_entries_next_place(const FmsEntriesSort *sort, const FmsEntry *entries,
					   Size count, FmsKeyPlace *place)
{
	const FmsKeys *keys = sort->keys;
	const FmsRecord *first = fms_entry_record(sort->records, entries);

	if (place->rounds == 0)
	{
		place->at_bytes += FMS_PREFIX_BYTES;
		/* keys are prefix-free: all of these end here, or none */
		if (place->at_bytes < first->key_bytes)
			return FMS_TIES_GO_ON;
		if (first->flags & FMS_RECORD_EXACT)
			return FMS_TIES_EQUAL;
	}
	if (++place->rounds > ROUNDS_MAX ||
		!keys->columns[keys->undecided].is_bytes ||
		!count_shared(sort, entries, count, &place->at_bytes,
					  &place->texts_equal))
		return FMS_TIES_COMPARE;
	if (place->texts_equal)
		return keys->undecided + 1 < keys->ncolumns ?
			FMS_TIES_COMPARE : FMS_TIES_EQUAL;
	return FMS_TIES_GO_ON;
}

uint128
fms_entries_text_prefix(const FmsEntriesSort *sort, const FmsRecord *record,
						const FmsKeyPlace *place)
{
	const FmsKeys *keys = sort->keys;
	FmsText		text = text_of(keys, record);
	uint64		words[2] = {0};
	uint64		invert = keys->columns[keys->undecided].invert ?
		PG_UINT64_MAX : 0;

	memcpy(words, text.bytes + place->at_bytes,
		   Min(FMS_PREFIX_BYTES, text.length - place->at_bytes));
	return (uint128) (pg_ntoh64(words[0]) ^ invert) << 16 |
		(pg_ntoh64(words[1]) ^ invert) >> 48;
}
