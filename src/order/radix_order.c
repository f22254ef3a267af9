/*-------------------------------------------------------------------------
 *
 * radix_order.c
 *	  The next blocks of all runs in block read order, many at a time.
 *
 * Where the first bytes of a key are all of it, first keys need not be merged
 * one by one: a stretch of each run can be sorted at a time, as numbers.
 * Which ones come before all that have not been looked at?  Those that are not
 * greater than the least of the stretches' last ones:
 *
 *	  run 0:   3 25 51 58 |				looked at: four of each run
 *	  run 1:   1 16 35 44 | ...			44 is the least of the last ones
 *	  run 2:   9 20 40 62 | ...			of runs that go on
 *
 *	  due:	   3 25   1 16 35 44   9 20 40		in order of the runs
 *	  named:   1 3 9 16 20 25 35 40 44			sorted; ties as they were
 *	  stay:	   51 58  62						and are filled up to four
 *
 * The run whose last one that is gives all of its stretch, so there is always
 * progress; and the first keys of blocks are so evenly spread that most of
 * each stretch is due.
 *
 * Why not by a tree of losers: each name costs log2(runs) matches, of which
 * each waits for the one before, and a first key unpacked by itself, of a run
 * that is as good as random.  Here first keys are unpacked several at a time,
 * the runs come in sequence, so that what they need can be fetched beforehand,
 * and words are dealt by radix.  The tree remains for keys that are more than
 * a number (read_order.c).
 *
 * A chain of blocks has one first key and comes as many times as it has
 * blocks, in a row: they are alike in key and run, and nothing lies between.
 *
 * Memory is palloc'd at creation, the readers are the caller's.  Each loop
 * over the runs checks for interrupts.  On ERROR nothing is done here.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "keys/entry.h"
#include "base/interrupts.h"
#include "order/radix_order.h"
#include "keys/packed.h"

/* So many first keys of a run are looked at, within these bounds. */
#define STRETCH_MIN			4
#define STRETCH_MAX			16
/* What each takes: in its stretch, when it is due, and its name. */
#define FIRST_KEY_BYTES			(2 * sizeof(FmsEntry) + sizeof(int))
/* Runs between fetching from memory and using. */
#define FETCH_AHEAD			3

/* The next first keys of a run. */
typedef struct FmsStretch
{
	FmsFirstKeyReader *ahead;	/* stands behind them */
	FmsEntry   *entries;		/* ascending; `back` says the run */
	int			count;
	uint32		chain_left;		/* blocks of the last one's chain that are not
								 * among them */
	FmsEntry	chain;			/* the entry of these */
} FmsStretch;

struct FmsRadixOrder
{
	int			nruns;
	int			length;			/* of a stretch */
	FmsEntry   *due;			/* [nruns * length] */
	int		   *named;			/* likewise */
	FmsStretch	stretches[FLEXIBLE_ARRAY_MEMBER];	/* [nruns] */
};

/* What entries compare like. */
static inline uint128
number_of(const FmsEntry *entry)
{
	return (uint128) entry->prefix << 64 | entry->tail;
}

/* An entry's way to its run: packed.c wants it to be a multiple of that. */
static inline uint64
back_of_run(int run)
{
	return (uint64) run * MAXIMUM_ALIGNOF;
}

static inline int
run_of(const FmsEntry *entry)
{
	return fms_entry_offset(entry) / MAXIMUM_ALIGNOF;
}

static int
stretch_length(int nruns, Size share_bytes)
{
	Size		length = share_bytes / (nruns * FIRST_KEY_BYTES);

	return Max(STRETCH_MIN, Min(STRETCH_MAX, length));
}

Size
fms_radix_order_bytes(int nruns, Size share_bytes)
{
	return offsetof(FmsRadixOrder, stretches) + nruns *
		(sizeof(FmsStretch) +
		 stretch_length(nruns, share_bytes) * FIRST_KEY_BYTES);
}

FmsRadixOrder *
fms_radix_order_create(int nruns, Size share_bytes)
{
	FmsRadixOrder  *naming = palloc0(offsetof(FmsRadixOrder, stretches) +
								 nruns * sizeof(FmsStretch));
	int			length = stretch_length(nruns, share_bytes);
	Size		nentries = (Size) nruns * length;
	FmsEntry   *entries = palloc_extended(2 * nentries * sizeof(FmsEntry),
										  MCXT_ALLOC_HUGE);
	int			run;

	naming->nruns = nruns;
	naming->length = length;
	for (run = 0; run < nruns; run++)
	{
		CHECK_FOR_INTERRUPTS();
		naming->stretches[run].entries = entries + run * length;
	}
	naming->due = entries + nentries;
	naming->named = palloc_extended(nentries * sizeof(int), MCXT_ALLOC_HUGE);
	return naming;
}

void
fms_radix_order_destroy(FmsRadixOrder *naming)
{
	pfree(naming->named);
	pfree(naming->stretches[0].entries);
	pfree(naming);
}

void
fms_radix_order_add(FmsRadixOrder *naming, int run, FmsFirstKeyReader *ahead)
{
	naming->stretches[run].ahead = ahead;
}

/* Blocks of the chain that has begun. */
static void
fill_from_chain(FmsStretch *stretch, int length)
{
	while (stretch->chain_left > 0 && stretch->count < length)
	{
		stretch->entries[stretch->count++] = stretch->chain;
		stretch->chain_left--;
	}
}

/* Looks at further first keys of the run, if there are any. */
static inline void
fill(FmsStretch *stretch, int length, int run)
{
	if (unlikely(stretch->chain_left > 0))
		fill_from_chain(stretch, length);
	while (stretch->count < length)
	{
		FmsEntry   *next = &stretch->entries[stretch->count];
		uint32		nblocks;
		int			n = fms_first_key_reader_take(stretch->ahead, next,
											  length - stretch->count,
											  back_of_run(run), &nblocks);

		if (n == 0)
			break;
		stretch->count += n;
		if (unlikely(nblocks > 1))
		{
			stretch->chain = next[n - 1];
			stretch->chain_left = nblocks - 1;
			fill_from_chain(stretch, length);
		}
	}
}

/*
 * The merge has pushed the readers out of the processor's caches, and what
 * they read: both are fetched some runs beforehand.
 */
static inline void
fetch_for(const FmsRadixOrder *naming, int run)
{
	if (run + 2 * FETCH_AHEAD < naming->nruns)
		__builtin_prefetch(naming->stretches[run + 2 * FETCH_AHEAD].ahead);
	if (run + FETCH_AHEAD < naming->nruns)
		fms_first_key_reader_prefetch(
			naming->stretches[run + FETCH_AHEAD].ahead);
}

/* Fills all stretches.  Nothing that is not in one goes before this number. */
static uint128
fill_all(FmsRadixOrder *naming)
{
	uint128		bound = ~(uint128) 0;
	int			length = naming->length;
	Size		touched_bytes = 0;
	int			run;

	for (run = 0; run < naming->nruns; run++)
	{
		FmsStretch *stretch = &naming->stretches[run];

		fms_interrupts_after(&touched_bytes, length * FIRST_KEY_BYTES);
		fetch_for(naming, run);
		fill(stretch, length, run);
		if (stretch->count == length)
			bound = Min(bound, number_of(&stretch->entries[length - 1]));
	}
	return bound;
}

/* Moves those that are not greater to the end of what is due. */
static inline FmsEntry *
take_due(FmsStretch *stretch, uint128 bound, FmsEntry *due)
{
	int			n = 0;
	int			i;

	while (n < stretch->count && number_of(&stretch->entries[n]) <= bound)
		*due++ = stretch->entries[n++];
	stretch->count -= n;
	for (i = 0; i < stretch->count; i++)
		stretch->entries[i] = stretch->entries[n + i];
	return due;
}

/* They are in the order of the runs, and so are ties afterwards. */
static void
sort_due(FmsEntry *due, int count)
{
	FmsPacking	packing = fms_packing_of(due, count);

	if (fms_packing_fits(&packing))
		fms_packed_sort(&packing, due, count, true);
	else
		fms_entries_sort_by_prefix(due, count);
}

int
fms_radix_order_next(FmsRadixOrder *naming, const int **runs)
{
	uint128		bound = fill_all(naming);
	FmsEntry   *end = naming->due;
	Size		touched_bytes = 0;
	int			count;
	int			i;

	for (i = 0; i < naming->nruns; i++)
	{
		fms_interrupts_after(&touched_bytes, naming->length * FIRST_KEY_BYTES);
		end = take_due(&naming->stretches[i], bound, end);
	}
	count = end - naming->due;
	if (count > 0)
		sort_due(naming->due, count);
	for (i = 0; i < count; i++)
	{
		fms_interrupts_after(&touched_bytes, sizeof(FmsEntry));
		naming->named[i] = run_of(&naming->due[i]);
	}
	*runs = naming->named;
	return count;
}
