/*-------------------------------------------------------------------------
 *
 * history.c
 *	  Going back in a merge.
 *
 * A merge runs forwards.  Cursors that scroll want to go back, merge joins
 * return to a mark.  The stock sort writes its whole result to disk for
 * that; here nothing is written.  Two things are kept instead:
 *
 *	  window		copies of the tuples handed out last, in two generations
 *	  checkpoint	where the merge stood in each run at some position
 *
 *	  position  0        1000      2000      3000      4000
 *	            |---------|---------|#########|######--> merge
 *	            ^         ^         ^ older   ^ newer
 *	            checkpoints, one where each generation began
 *
 * Steps within the window cost nothing.  A position before it is reached by
 * merging again from the last checkpoint before it, which costs a block a
 * run and the tuples from there to the position; and as they fill the window
 * while they pass, going back one by one through everything merges all of it
 * once more, not once a step.
 *
 * Why not a backward merge: it needs records that can be read from their end,
 * the last key of every block for its read order, and every mode twice.  For
 * what people do with cursors (look at a page, go back one, jump to the end)
 * it would read the same blocks.
 *
 * Checkpoints cost memory for every run, so there is room for so many only.
 * When it is full every second one is given up.  After a long way forwards
 * they are thus far apart; so when the merge goes on from one of them, half
 * of the room is for new ones on the way to the position wanted.  Those
 * behind it are given up: should the merge come by again, it makes new ones.
 *
 *	  coarse   |-------|-------|-------|
 *	  fine                     |-|-|-|-|<- position
 *
 * Going back through n tuples with room for c checkpoints then merges each
 * of them again about twice, as long as n / c^2 is less than a window.
 *
 * The checkpoint before the mark is kept apart, so restoring never costs more
 * than a window's worth and what lies behind the mark.  If only marks are
 * wanted, older checkpoints are not kept at all.
 *
 * A merge is deterministic, ties included: merged again it gives the same
 * tuples at the same positions.
 *
 * Memory: checkpoints, and an arena a generation, in a context of their own
 * below the one of creation.  Nothing to be done on ERROR.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "miscadmin.h"
#include "utils/memutils.h"

#include "formation/arena.h"
#include "sort/history.h"

/* Of the memory, what the checkpoints take; the window takes the rest. */
#define CHECKPOINT_FRACTION		8
#define CHECKPOINTS_MIN			8
#define CHECKPOINTS_MAX			4096

typedef struct FmsGeneration
{
	FmsArena	arena;			/* index: Size, a tuple's place; data: the
								 * tuples */
	uint64		first;			/* position of its first tuple */
	uint64		count;
	Size		tuples_bytes;
} FmsGeneration;

typedef struct FmsCheckpoint
{
	uint64		position;		/* of the next tuple */
	FmsPosition *runs;			/* [npositions]; NULL: not used yet */
} FmsCheckpoint;

struct FmsHistory
{
	MemoryContext context;		/* all of it */
	FmsSpill   *spill;
	int			npositions;		/* of a checkpoint */
	uint64		next;			/* position the merge stands at */
	Size		generation_bytes;	/* full when it has as many */
	FmsGeneration generations[2];
	FmsGeneration *newer;
	FmsGeneration *older;
	FmsCheckpoint *checkpoints; /* ascending; 0 needs none */
	int			ncheckpoints;
	int			max_checkpoints;
	int			coarse;			/* so many of them are not thinned out */
	FmsCheckpoint mark;			/* position 0: not needed */
};

FmsHistory *
fms_history_create(FmsSpill *spill, Size memory_bytes, bool backward)
{
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext,
												  "fmsort history",
												  ALLOCSET_SMALL_SIZES);
	MemoryContext caller = MemoryContextSwitchTo(context);
	FmsHistory *history = palloc0(sizeof(FmsHistory));
	int			npositions = fms_spill_positions(spill);
	Size		positions_bytes = npositions * sizeof(FmsPosition);
	Size		one_bytes = sizeof(FmsCheckpoint) + positions_bytes;

	history->context = context;
	history->spill = spill;
	history->npositions = npositions;
	history->max_checkpoints =
		Max(CHECKPOINTS_MIN, Min(CHECKPOINTS_MAX, memory_bytes /
								 CHECKPOINT_FRACTION / one_bytes));
	/* without going back, those where both generations began are enough */
	if (!backward)
		history->max_checkpoints = 2;
	history->checkpoints = palloc0(history->max_checkpoints *
								   sizeof(FmsCheckpoint));
	history->mark.runs = palloc(positions_bytes);
	history->generation_bytes =
		(memory_bytes - memory_bytes / CHECKPOINT_FRACTION) / 2;
	fms_arena_init(&history->generations[0].arena);
	fms_arena_init(&history->generations[1].arena);
	history->older = &history->generations[0];
	history->newer = &history->generations[1];
	MemoryContextSwitchTo(caller);
	fms_spill_start(spill, NULL);
	return history;
}

void
fms_history_destroy(FmsHistory *history)
{
	MemoryContextDelete(history->context);
}

/* ---- the window ---- */

static inline Size *
places_of(const FmsGeneration *generation)
{
	return (Size *) generation->arena.index.base;
}

static inline Size
generation_size(const FmsGeneration *generation)
{
	return generation->tuples_bytes + generation->count * sizeof(Size);
}

static inline bool
generation_has(const FmsGeneration *generation, uint64 position)
{
	return position >= generation->first &&
		position - generation->first < generation->count;
}

static inline MinimalTuple
generation_get(const FmsGeneration *generation, uint64 position)
{
	return (MinimalTuple) (generation->arena.data.base +
						   places_of(generation)[position -
												 generation->first]);
}

static void
generation_begin(FmsGeneration *generation, uint64 first)
{
	generation->first = first;
	generation->count = 0;
	generation->tuples_bytes = 0;
}

/* Returns false if the system refuses the memory. */
static bool
generation_add(FmsGeneration *generation, MinimalTuple tuple,
			   Size limit_bytes)
{
	FmsArenaBytes used = {.index = generation->count * sizeof(Size),
	.data = generation->tuples_bytes};
	FmsArenaBytes more = {.index = sizeof(Size),
	.data = MAXALIGN(tuple->t_len)};
	Size		needed = used.index + used.data + more.index + more.data;

	if (!fms_arena_extend(&generation->arena, used, more,
						  Max(limit_bytes, needed)))
		return false;
	places_of(generation)[generation->count++] = used.data;
	memcpy(generation->arena.data.base + used.data, tuple, tuple->t_len);
	generation->tuples_bytes += more.data;
	return true;
}

/* ---- checkpoints ---- */

static void
copy_checkpoint(const FmsHistory *history, FmsCheckpoint *to,
				const FmsCheckpoint *from)
{
	to->position = from->position;
	memcpy(to->runs, from->runs, history->npositions * sizeof(FmsPosition));
}

/*
 * Gives up every second one of those behind the first so many; keeps the
 * last.
 */
static void
thin_out(FmsHistory *history, int first)
{
	int			kept = first;
	int			i;

	for (i = first + (history->ncheckpoints - first + 1) % 2;
		 i < history->ncheckpoints; i += 2)
	{
		if (i != kept)
		{
			FmsCheckpoint given_up = history->checkpoints[kept];

			history->checkpoints[kept] = history->checkpoints[i];
			history->checkpoints[i] = given_up;
		}
		kept++;
	}
	history->ncheckpoints = kept;
}

/* How many are at or before that position? */
static int
checkpoints_until(const FmsHistory *history, uint64 position)
{
	int			low = 0;
	int			high = history->ncheckpoints;

	while (low < high)
	{
		int			middle = low + (high - low) / 2;

		if (history->checkpoints[middle].position <= position)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* The last one at or before that position, or NULL: the beginning. */
static const FmsCheckpoint *
checkpoint_before(const FmsHistory *history, uint64 position)
{
	int			n = checkpoints_until(history, position);

	return n > 0 ? &history->checkpoints[n - 1] : NULL;
}

/* The merge stands at the beginning of a generation. */
static void
add_checkpoint(FmsHistory *history)
{
	FmsCheckpoint *checkpoint;

	Assert(history->ncheckpoints == 0 ||
		   history->checkpoints[history->ncheckpoints - 1].position <
		   history->next);
	if (history->ncheckpoints == history->max_checkpoints)
		thin_out(history, history->coarse);
	checkpoint = &history->checkpoints[history->ncheckpoints++];
	if (checkpoint->runs == NULL)
		checkpoint->runs =
			MemoryContextAlloc(history->context,
							   history->npositions * sizeof(FmsPosition));
	checkpoint->position = history->next;
	fms_spill_tell(history->spill, checkpoint->runs);
}

void
fms_history_mark(FmsHistory *history, uint64 position)
{
	const FmsCheckpoint *best = checkpoint_before(history, position);

	if (history->mark.position > position)
		history->mark.position = 0;
	if (best && best->position > history->mark.position)
		copy_checkpoint(history, &history->mark, best);
}

/* ---- moving ---- */

/* The newer generation is complete: the older one makes room for another. */
static void
next_generation(FmsHistory *history)
{
	FmsGeneration *oldest = history->older;

	history->older = history->newer;
	history->newer = oldest;
	generation_begin(history->newer, history->next);
}

/*
 * Keeps a tuple in the window.  If the system refuses the memory, the window
 * stays as small as it is: the generation that begins then has no checkpoint.
 */
static void
keep(FmsHistory *history, MinimalTuple tuple)
{
	FmsGeneration *newer = history->newer;

	if (generation_add(newer, tuple, history->generation_bytes))
		return;
	history->generation_bytes = generation_size(newer);
	next_generation(history);
	if (generation_add(history->newer, tuple, history->generation_bytes))
		return;
	fms_arena_free(&history->newer->arena);
	if (!generation_add(history->newer, tuple, history->generation_bytes))
		fms_arena_report_refused(tuple->t_len);
}

/* The next tuple of the merge, kept in the window. */
static MinimalTuple
read_on(FmsHistory *history)
{
	MinimalTuple tuple;

	if (generation_size(history->newer) >= history->generation_bytes)
	{
		add_checkpoint(history);
		next_generation(history);
	}
	tuple = fms_spill_next(history->spill);
	if (tuple == NULL)
		elog(ERROR, "the merge ended before tuple " UINT64_FORMAT,
			 history->next);
	keep(history, tuple);
	return generation_get(history->newer, history->next++);
}

/* Gives up the checkpoints behind the position, and makes room before it. */
static void
make_room(FmsHistory *history, uint64 position)
{
	history->ncheckpoints = checkpoints_until(history, position);
	while (history->ncheckpoints > history->max_checkpoints / 2)
		thin_out(history, 0);
	/* of very few all are thinned out */
	history->coarse = history->max_checkpoints < CHECKPOINTS_MIN ? 0 :
		history->ncheckpoints;
}

/* Merges again from the best checkpoint for that position. */
static void
start_again(FmsHistory *history, uint64 position)
{
	const FmsCheckpoint *best;

	make_room(history, position);
	best = checkpoint_before(history, position);
	if (history->mark.position > 0 && history->mark.position <= position &&
		(best == NULL || best->position < history->mark.position))
		best = &history->mark;
	history->next = best ? best->position : 0;
	fms_spill_start(history->spill, best ? best->runs : NULL);
	generation_begin(history->older, history->next);
	generation_begin(history->newer, history->next);
}

MinimalTuple
fms_history_fetch(FmsHistory *history, uint64 position)
{
	MinimalTuple tuple = NULL;

	if (generation_has(history->newer, position))
		return generation_get(history->newer, position);
	if (generation_has(history->older, position))
		return generation_get(history->older, position);
	if (position < history->next)
		start_again(history, position);
	while (history->next <= position)
	{
		CHECK_FOR_INTERRUPTS();
		tuple = read_on(history);
	}
	return tuple;
}
