/*-------------------------------------------------------------------------
 *
 * formation.c
 *	  Run formation: rows in memory, in order, or written as a run
 *	  (Algorithm 1, lines 3 to 6).
 *
 * The rows of a sort are tuples (tuples.c) or words (words.c); this file has
 * what both do alike.
 *
 * Top-N.  If only n rows are wanted, memory holds up to about 2 n, then the n
 * smallest are kept.  The largest of these is the cutoff; rows that do not
 * sort before the cutoff are dropped.  If memory does not hold n rows, the
 * runs give a cutoff (cutoff.c).
 *
 * Groups.  If a parent wants some rows of each group only, full memory loses
 * the others: until that frees less than half, when it would cost more than
 * spilling.  Runs and merges go on filtering.
 *
 * Memory: the arena.  After an ERROR the rows are undefined.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "base/clock.h"
#include "base/interrupts.h"
#include "formation/formation.h"

/* Rows beyond the bound that are dropped at once, at least. */
#define SHRINK_MIN_ROWS		1024

FmsFormation *
fms_formation_create(FmsKeys *keys, double expected_bytes,
					 MemoryContext scratch)
{
	FmsFormation *formation = palloc0(sizeof(FmsFormation));

	formation->words = fms_keys_word_type(keys);
	formation->kind = formation->words ? &fms_words_kind : &fms_tuples_kind;
	formation->context = CurrentMemoryContext;
	formation->scratch = scratch;
	formation->keys = keys;
	fms_arena_init(&formation->arena, expected_bytes);
	return formation;
}

void
fms_formation_reset(FmsFormation *formation, uint64 bound)
{
	fms_arena_clear(&formation->arena);
	formation->nulls = 0;
	formation->bound = bound;
	fms_record_buffer_free(&formation->cutoff);
	fms_formation_filter_again(formation);
}

void
fms_formation_filter_again(FmsFormation *formation)
{
	formation->filter = fms_keys_group_filter(formation->keys);
}

void
fms_formation_set_cutoff(FmsFormation *formation, const FmsRecord *record)
{
	Size		bytes = fms_record_bytes(record);

	/* words are read with the bytes behind them */
	fms_interrupts_memmove(fms_record_buffer_reserve(&formation->cutoff,
													 formation->context,
													 bytes + sizeof(uint64)),
						   record, bytes);
}

/* Drops sorted rows that the filter does not want. */
static void
filter_rows(FmsFormation *formation)
{
	char	   *index = formation->arena.index.base;
	Size		bytes = formation->kind->index_bytes;
	Size		count = fms_formation_count(formation);
	Size		kept = 0;

	fms_group_filter_begin(formation->filter);
	fms_for_interruptible(i, count, FMS_INTERRUPT_RECORD_BYTES)
	{
		if (fms_group_filter_wants(formation->filter,
								   formation->kind->get(formation, i)))
			memmove(index + kept++ * bytes, index + i * bytes, bytes);
	}
	formation->arena.index.used_bytes = kept * FMS_ROW_INDEX_BYTES;
}

void
fms_formation_sort(FmsFormation *formation)
{
	uint64		bound = formation->bound;

	formation->kind->sort(formation);
	if (formation->filter)
		filter_rows(formation);
	if (bound > 0 && fms_formation_count(formation) > bound)
	{
		formation->arena.index.used_bytes = bound * FMS_ROW_INDEX_BYTES;
		fms_formation_set_cutoff(formation,
								 fms_formation_get(formation, bound - 1));
	}
}

/* Keeps the first `bound` rows, or those that the filter wants. */
static void
shrink(FmsFormation *formation)
{
	instr_time	start = fms_clock_now();
	Size		before = fms_formation_memory_bytes(formation);

	Assert(fms_formation_count(formation) > formation->bound);
	fms_formation_sort(formation);
	if (formation->kind->pack)
		formation->kind->pack(formation);
	if (fms_formation_memory_bytes(formation) > before / 2)
		formation->filter = NULL;
	formation->shrink_us += fms_clock_since_us(start);
}

/* Are there enough rows beyond the bound to drop them? */
static inline bool
is_worth_shrinking(const FmsFormation *formation)
{
	return formation->bound > 0 &&
		fms_formation_count(formation) >=
		Max(2 * formation->bound, formation->bound + SHRINK_MIN_ROWS);
}

/* Memory is full: may dropping rows free a third? */
static inline bool
frees_enough(const FmsFormation *formation)
{
	Size		count = fms_formation_count(formation);

	if (formation->filter)
		return count > 0;
	return formation->bound > 0 &&
		count > formation->bound + formation->bound / 2;
}

/* Makes room without dropping rows. */
static bool
grow(FmsFormation *formation, Size record_bytes, Size budget_bytes)
{
	FmsArena   *arena = &formation->arena;
	Size		needed = fms_formation_memory_bytes(formation) +
		FMS_ROW_INDEX_BYTES + record_bytes;
	bool		is_first = fms_formation_count(formation) == 0;

	if (needed > budget_bytes && !is_first)
		return false;
	if (fms_arena_extend(arena, FMS_ROW_INDEX_BYTES, record_bytes,
						 Max(budget_bytes, needed) - formation->groups_bytes))
		return true;
	if (!is_first)
		return false;
	/* the arena still has memory for many small records */
	fms_arena_free(arena);
	if (!fms_arena_extend(arena, FMS_ROW_INDEX_BYTES, record_bytes, needed))
		fms_arena_report_refused(needed);
	return true;
}

bool
fms_formation_extend(FmsFormation *formation, Size record_bytes,
					 Size budget_bytes)
{
	if (is_worth_shrinking(formation))
		shrink(formation);
	if (grow(formation, record_bytes, budget_bytes))
		return true;
	if (!frees_enough(formation))
		return false;
	shrink(formation);
	return grow(formation, record_bytes, budget_bytes);
}
