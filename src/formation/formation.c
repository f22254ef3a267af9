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
#include "formation/kind.h"

/* Rows beyond the bound that are dropped at once, at least. */
#define SHRINK_MIN_ROWS		1024

FmsFormation *
fms_formation_create(FmsKeys *keys, MemoryContext scratch)
{
	FmsFormation *formation = fms_keys_word_type(keys) ?
		fms_words_create(keys) : fms_tuples_create(scratch);

	formation->context = CurrentMemoryContext;
	formation->keys = keys;
	fms_arena_init(&formation->arena);
	return formation;
}

void
fms_formation_set_bound(FmsFormation *formation, uint64 bound)
{
	Assert(formation->count == 0);
	formation->bound = bound;
	formation->filter = fms_keys_group_filter(formation->keys);
	fms_record_buffer_free(&formation->cutoff);
}

void
fms_formation_filter_again(FmsFormation *formation)
{
	formation->filter = fms_keys_group_filter(formation->keys);
}

double
fms_formation_rare_us(const FmsFormation *formation)
{
	return formation->arena.make_room_us + formation->shrink_us;
}

uint64
fms_formation_count(const FmsFormation *formation)
{
	return formation->count;
}

uint64
fms_formation_nulls(const FmsFormation *formation)
{
	return formation->nulls;
}

Size
fms_formation_refused_at(const FmsFormation *formation)
{
	return formation->arena.refused ? fms_arena_size(&formation->arena) : 0;
}

Size
fms_formation_memory_bytes(const FmsFormation *formation)
{
	return formation->records_bytes + formation->count * FMS_ROW_INDEX_BYTES;
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

/* Keeps the first `bound` rows; the last of them is the cutoff. */
static void
cut(FmsFormation *formation)
{
	formation->count = formation->bound;
	fms_formation_set_cutoff(formation,
							 fms_formation_get(formation,
											   formation->count - 1));
}

/* Keeps the first `bound` rows, or those that the filter wants. */
static void
shrink(FmsFormation *formation)
{
	instr_time	start = fms_clock_now();
	Size		before = fms_formation_memory_bytes(formation);

	Assert(formation->count > formation->bound);
	fms_formation_sort(formation);
	if (formation->bound > 0)
		cut(formation);
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
		formation->count >= Max(2 * formation->bound,
								formation->bound + SHRINK_MIN_ROWS);
}

/* Memory is full: may dropping rows free a third? */
static inline bool
frees_enough(const FmsFormation *formation)
{
	if (formation->filter)
		return formation->count > 0;
	return formation->bound > 0 &&
		formation->count > formation->bound + formation->bound / 2;
}

/* Makes room without dropping rows. */
static bool
grow(FmsFormation *formation, Size record_bytes, Size budget_bytes)
{
	FmsArena   *arena = &formation->arena;
	FmsArenaBytes used = fms_formation_used(formation);
	FmsArenaBytes more = {.index = FMS_ROW_INDEX_BYTES,.data = record_bytes};
	Size		needed = fms_formation_memory_bytes(formation) +
		FMS_ROW_INDEX_BYTES + record_bytes;

	if (needed > budget_bytes && formation->count > 0)
		return false;
	if (fms_arena_extend(arena, used, more, Max(budget_bytes, needed)))
		return true;
	if (formation->count > 0)
		return false;
	/* the arena still has memory for many small records */
	fms_arena_free(arena);
	if (!fms_arena_extend(arena, used, more, needed))
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

bool
fms_formation_put(FmsFormation *formation, TupleTableSlot *slot,
				  Size budget_bytes)
{
	return formation->kind->put(formation, slot, budget_bytes);
}

void
fms_formation_sort(FmsFormation *formation)
{
	char	   *index = formation->arena.index.base;
	Size		bytes = formation->kind->index_bytes;
	Size		kept = 0;

	formation->kind->sort(formation);
	if (formation->filter == NULL)
		return;
	fms_group_filter_begin(formation->filter);
	fms_for_interruptible(i, formation->count, FMS_INTERRUPT_RECORD_BYTES)
	{
		if (fms_group_filter_wants(formation->filter,
								   formation->kind->get(formation, i)))
			memmove(index + kept++ * bytes, index + i * bytes, bytes);
	}
	formation->count = kept;
}

const FmsRecord *
fms_formation_get(const FmsFormation *formation, uint64 position)
{
	Assert(position < formation->count);
	return formation->kind->get(formation, position);
}

void
fms_formation_finish(FmsFormation *formation)
{
	fms_formation_sort(formation);
	if (formation->bound > 0 && formation->count > formation->bound)
		cut(formation);
}

void
fms_formation_spill(FmsFormation *formation, FmsRunWriter *writer, Size bytes)
{
	if (formation->count > 0)
		formation->kind->spill(formation, writer, bytes);
}

void
fms_formation_trim(FmsFormation *formation)
{
	fms_arena_trim(&formation->arena, fms_formation_used(formation));
}

/* Forgets the rows in the arena. */
static void
forget(FmsFormation *formation)
{
	formation->records_bytes = 0;
	formation->count = 0;
	formation->arena.refused = false;
}

void
fms_formation_clear(FmsFormation *formation)
{
	forget(formation);
	formation->nulls = 0;
}

void
fms_formation_end(FmsFormation *formation)
{
	fms_arena_end(&formation->arena);
}

void
fms_formation_give_back(FmsFormation *formation)
{
	forget(formation);
	fms_arena_free(&formation->arena);
}
