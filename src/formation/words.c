/*-------------------------------------------------------------------------
 *
 * words.c
 *	  Run formation of rows that are words.
 *
 * Words lie in order of arrival in the arena's index, followed by as much room
 * for sorting them:
 *
 *	  index  |w0 |w1 |w2 |w3 |    (room)     |
 *
 * Words that are returned or written become records, one at a time, in a
 * buffer of the formation.  Nulls are counted.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "base/interrupts.h"
#include "formation/formation.h"

StaticAssertDecl(FMS_ROW_INDEX_BYTES == 2 * sizeof(uint64),
				 "a word has room for another one");

static inline uint64 *
words_of(const FmsFormation *formation)
{
	return (uint64 *) formation->arena.index.base;
}

/* The record of a word, in the buffer, which is no part of the state. */
static inline const FmsRecord *
make_record(const FmsFormation *formation, uint64 word)
{
	FmsWordRecord *record = &((FmsFormation *) formation)->word;

	fms_word_record_make(formation->words, word, record);
	return &record->record;
}

static bool
put_word(FmsFormation *formation, TupleTableSlot *slot, Size budget_bytes)
{
	const FmsWordType *type = formation->words;
	bool		isnull;
	uint64		word = fms_word_of_value(type, slot_getattr(slot, 1, &isnull));

	if (isnull)
	{
		formation->nulls++;
		return true;
	}
	if (formation->cutoff.record &&
		word >= fms_word_of_record(type, formation->cutoff.record))
		return true;
	if (!fms_formation_make_room(formation, 0, budget_bytes))
		return false;
	words_of(formation)[fms_formation_count(formation)] = word;
	formation->arena.index.used_bytes += FMS_ROW_INDEX_BYTES;
	return true;
}

static void
sort_words(FmsFormation *formation)
{
	uint64	   *words = words_of(formation);
	Size		count = fms_formation_count(formation);

	/* without a value there is no memory */
	if (count > 1)
		fms_radix_sort(words, words + count, count);
}

static const FmsRecord *
get_word(const FmsFormation *formation, uint64 position)
{
	return make_record(formation, words_of(formation)[position]);
}

static void
spill_words(FmsFormation *formation, FmsRunWriter *writer, Size bytes)
{
	uint64	   *words = words_of(formation);
	Size		all = fms_formation_count(formation);
	Size		count = Min((bytes + FMS_ROW_INDEX_BYTES - 1) /
							FMS_ROW_INDEX_BYTES, all);

	fms_radix_sort(words, words + all, count);
	fms_for_interruptible(i, count, FMS_INTERRUPT_RECORD_BYTES)
		fms_run_append(writer, make_record(formation, words[i]));
	formation->arena.index.used_bytes -= count * FMS_ROW_INDEX_BYTES;
	fms_interrupts_memmove(words, words + count,
						   (all - count) * sizeof(uint64));
}

const FmsFormationKind fms_words_kind = {
	.put = put_word,
	.sort = sort_words,
	.index_bytes = sizeof(uint64),
	.get = get_word,
	.spill = spill_words
};
