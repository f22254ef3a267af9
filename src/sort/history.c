/*-------------------------------------------------------------------------
 *
 * history.c
 *	  Going back in a merge, for cursors that scroll and for merge joins.
 *
 * Nothing is written.  Memory holds a window, copies of the last tuples in two
 * generations, and checkpoints: the positions in all runs where a generation
 * began.
 *
 *	  position  0        1000      2000      3000      4000
 *	            |---------|---------|#########|######--> merge
 *	            ^         ^         ^ older   ^ newer
 *
 * A position before the window is reached by merging again from the last
 * checkpoint before it, through the window.  A merge is deterministic.
 *
 * When the array of checkpoints is full, every second one is dropped.  A merge
 * that starts again at a checkpoint may use half of the array.  Thus going
 * back through n tuples with c checkpoints merges each about twice, if n / c^2
 * is less than a window.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "miscadmin.h"
#include "utils/memutils.h"

#include "formation/arena.h"
#include "sort/spill.h"

/* Checkpoints take this part of the memory, in these numbers. */
#define CHECKPOINT_FRACTION		8
#define CHECKPOINTS_MIN			8
#define CHECKPOINTS_MAX			4096

typedef struct FmsGeneration
{
	FmsArena	arena;			/* index: offsets of tuples; data: tuples */
	uint64		first;			/* position of its first tuple */
} FmsGeneration;

typedef struct FmsCheckpoint
{
	uint64		position;		/* of the next tuple */
	FmsPosition runs[FLEXIBLE_ARRAY_MEMBER];
} FmsCheckpoint;

struct FmsHistory
{
	FmsSpill   *spill;
	Size		generation_bytes;	/* of a full one */
	FmsGeneration generations[2];
	FmsGeneration *newer;
	FmsGeneration *older;
	char	   *checkpoints;	/* ascending; position 0 needs none */
	Size		checkpoint_bytes;	/* of each */
	int			ncheckpoints;
	int			max_checkpoints;
	int			coarse;			/* the first ones, which are not thinned out */
	FmsCheckpoint *mark;		/* the last one before the mark; position 0:
								 * none */
};

FmsHistory *
fms_history_create(FmsSpill *spill, Size memory_bytes)
{
	MemoryContext context = AllocSetContextCreate(spill->context,
												  "fmsort history",
												  ALLOCSET_SMALL_SIZES);
	MemoryContext caller = MemoryContextSwitchTo(context);
	FmsHistory *history = palloc0(sizeof(FmsHistory));
	Size		bytes = sizeof(FmsCheckpoint) +
		(spill->nruns + 1) * sizeof(FmsPosition);

	history->spill = spill;
	history->checkpoint_bytes = bytes;
	history->max_checkpoints =
		Max(CHECKPOINTS_MIN, Min(CHECKPOINTS_MAX, memory_bytes /
								 CHECKPOINT_FRACTION / bytes));
	history->checkpoints =
		MemoryContextAllocHuge(context, history->max_checkpoints * bytes);
	history->mark = palloc0(bytes);
	history->generation_bytes =
		(memory_bytes - memory_bytes / CHECKPOINT_FRACTION) / 2;
	fms_arena_init(&history->generations[0].arena, 0);
	fms_arena_init(&history->generations[1].arena, 0);
	history->older = &history->generations[0];
	history->newer = &history->generations[1];
	MemoryContextSwitchTo(caller);
	return history;
}

/* ---- the window ---- */

/* Number of tuples. */
static inline uint64
generation_count(const FmsGeneration *generation)
{
	return generation->arena.index.used_bytes / sizeof(Size);
}

/* The tuple at a position; NULL if it is not in the generation. */
static inline MinimalTuple
generation_get(const FmsGeneration *generation, uint64 position)
{
	const Size *offset;

	if (position < generation->first ||
		position - generation->first >= generation_count(generation))
		return NULL;
	offset = (Size *) generation->arena.index.base +
		(position - generation->first);
	return (MinimalTuple) (generation->arena.data.base + *offset);
}

static void
generation_begin(FmsGeneration *generation, uint64 first)
{
	generation->first = first;
	fms_arena_clear(&generation->arena);
}

/* The newer generation is complete: the next one replaces the older one. */
static void
next_generation(FmsHistory *history)
{
	FmsGeneration *oldest = history->older;

	history->older = history->newer;
	history->newer = oldest;
	generation_begin(oldest, history->older->first +
					 generation_count(history->older));
}

/* The window begins at the merge's next tuple. */
static void
begin_window(FmsHistory *history)
{
	generation_begin(history->older, history->spill->next);
	generation_begin(history->newer, history->spill->next);
}

/* Copies a tuple into the generation; false if the system has no memory. */
static bool
generation_add(FmsGeneration *generation, MinimalTuple tuple,
			   Size limit_bytes)
{
	FmsPiece   *index = &generation->arena.index;
	FmsPiece   *data = &generation->arena.data;
	Size		bytes = MAXALIGN(tuple->t_len);
	Size		needed = fms_arena_used(&generation->arena) +
		sizeof(Size) + bytes;

	if (!fms_arena_extend(&generation->arena, sizeof(Size), bytes,
						  Max(limit_bytes, needed)))
		return false;
	*(Size *) (index->base + index->used_bytes) = data->used_bytes;
	memcpy(data->base + data->used_bytes, tuple, tuple->t_len);
	index->used_bytes += sizeof(Size);
	data->used_bytes += bytes;
	return true;
}

/* ---- checkpoints ---- */

static inline FmsCheckpoint *
checkpoint_at(const FmsHistory *history, int i)
{
	return (FmsCheckpoint *) (history->checkpoints +
							  i * history->checkpoint_bytes);
}

/* Gives up every second one behind the first `first`; keeps the last. */
static void
thin_out(FmsHistory *history, int first)
{
	int			kept = first;

	for (int i = first + (history->ncheckpoints - first + 1) % 2;
		 i < history->ncheckpoints; i += 2)
		memmove(checkpoint_at(history, kept++), checkpoint_at(history, i),
				history->checkpoint_bytes);
	history->ncheckpoints = kept;
}

/* Number of checkpoints at or before a position. */
static int
checkpoints_until(const FmsHistory *history, uint64 position)
{
	int			n = history->ncheckpoints;

	while (n > 0 && checkpoint_at(history, n - 1)->position > position)
		n--;
	return n;
}

/* The merge stands at the beginning of a generation. */
static void
add_checkpoint(FmsHistory *history)
{
	FmsCheckpoint *checkpoint;

	Assert(checkpoints_until(history, history->spill->next - 1) ==
		   history->ncheckpoints);
	if (history->ncheckpoints == history->max_checkpoints)
		thin_out(history, history->coarse);
	checkpoint = checkpoint_at(history, history->ncheckpoints++);
	checkpoint->position = history->spill->next;
	fms_spill_tell(history->spill, checkpoint->runs);
}

void
fms_history_mark(FmsHistory *history, uint64 position)
{
	FmsCheckpoint *mark = history->mark;
	int			n = checkpoints_until(history, position);

	if (mark->position > position)
		mark->position = 0;
	if (n > 0 && checkpoint_at(history, n - 1)->position > mark->position)
		memcpy(mark, checkpoint_at(history, n - 1), history->checkpoint_bytes);
}

/* ---- moving ---- */

/*
 * Keeps a tuple in the window.  If the system refuses memory, the window stays
 * as small as it is, and the generation that begins has no checkpoint.
 */
static void
keep(FmsHistory *history, MinimalTuple tuple)
{
	FmsGeneration *newer = history->newer;

	if (generation_add(newer, tuple, history->generation_bytes))
		return;
	history->generation_bytes = fms_arena_used(&newer->arena);
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

	if (fms_arena_used(&history->newer->arena) >= history->generation_bytes)
	{
		add_checkpoint(history);
		next_generation(history);
	}
	tuple = fms_spill_next(history->spill);
	if (tuple == NULL)
		elog(ERROR, "the merge ended before tuple " UINT64_FORMAT,
			 history->spill->next);
	keep(history, tuple);
	return generation_get(history->newer, history->spill->next - 1);
}

void
fms_history_skip(FmsHistory *history, uint64 position)
{
	const FmsGeneration *newer = history->newer;
	/* about as many tuples as a full generation has, to go back through */
	uint64		kept = (double) history->generation_bytes *
		generation_count(newer) / Max(fms_arena_used(&newer->arena), 1);

	if (position <= history->spill->next + kept)
		return;
	fms_spill_move(history->spill, position - kept);
	begin_window(history);
	add_checkpoint(history);
}

/* Merges again from the last checkpoint before a position. */
static void
start_again(FmsHistory *history, uint64 position)
{
	const FmsCheckpoint *best = NULL;
	const FmsCheckpoint *mark = history->mark;

	history->ncheckpoints = checkpoints_until(history, position);
	/* half of the room is for checkpoints on the way to the position */
	while (history->ncheckpoints > history->max_checkpoints / 2)
		thin_out(history, 0);
	history->coarse = history->ncheckpoints;

	if (history->ncheckpoints > 0)
		best = checkpoint_at(history, history->ncheckpoints - 1);
	if (mark->position > (best ? best->position : 0) &&
		mark->position <= position)
		best = mark;
	fms_spill_start(history->spill, best ? best->runs : NULL,
					best ? best->position : 0);
	begin_window(history);
}

MinimalTuple
fms_history_fetch(FmsHistory *history, uint64 position)
{
	MinimalTuple tuple = generation_get(history->newer, position);

	if (tuple == NULL)
		tuple = generation_get(history->older, position);
	if (tuple)
		return tuple;
	if (position < history->spill->next)
		start_again(history, position);
	while (history->spill->next <= position)
	{
		CHECK_FOR_INTERRUPTS();
		tuple = read_on(history);
	}
	return tuple;
}
