/*-------------------------------------------------------------------------
 *
 * radix_order.c
 *	  The block read order for keys whose prefixes decide, a batch at a time.
 *
 * Each run has a window of its next first keys.  All keys up to the smallest
 * last key of a full window are due: no key outside the windows is smaller.
 *
 *	  run 0:   3 25 51 58 |				windows of four keys
 *	  run 1:   1 16 35 44 | ...			44 is the smallest last key of
 *	  run 2:   9 20 40 62 | ...			runs that go on
 *
 *	  due:	   3 25   1 16 35 44   9 20 40		in order of the runs
 *	  sorted:  1 3 9 16 20 25 35 40 44			ties stay in that order
 *	  left:	   51 58  62						and are filled up to four
 *
 * The window with the smallest last key is due as a whole, so every batch
 * makes progress.  Keys are unpacked several at a time and runs are visited in
 * sequence, so their readers can be prefetched; a tree of losers, which serves
 * other keys (read_order.c), visits runs at random.
 *
 * A chain of blocks has one first key and is named as many times as it has
 * blocks.  Memory is palloc'd in the context of creation.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "base/interrupts.h"
#include "keys/entry.h"
#include "keys/packed.h"
#include "order/radix_order.h"

/* Bounds of a window's length, in keys: measured, see docs/internals. */
#define WINDOW_MIN			4
#define WINDOW_MAX			16
/* Memory of a key: in its window, among the due ones, and its run. */
#define KEY_BYTES			(2 * sizeof(FmsEntry) + sizeof(int))
/* Number of runs between prefetching and using a reader. */
#define PREFETCH_RUNS		3

/* The next first keys of a run. */
typedef struct Window
{
	FmsFirstKeyReader *ahead;	/* stands behind the window */
	FmsEntry   *entries;		/* ascending; the offset says the run */
	int			count;
	uint32		chain_left;		/* blocks of the last key's chain that are not
								 * in the window */
	FmsEntry	chain;			/* the entry of these */
} Window;

struct FmsRadixOrder
{
	int			nruns;
	int			length;			/* of a window */
	FmsEntry   *entries;		/* [nruns * length] the windows' */
	FmsEntry   *due;			/* [nruns * length] */
	int		   *named;			/* [nruns * length] */
	Window		windows[FLEXIBLE_ARRAY_MEMBER]; /* [nruns] */
};

/* The number by which entries are sorted. */
static inline uint128
number_of(const FmsEntry *entry)
{
	return (uint128) entry->prefix << 64 | entry->tail;
}

static int
window_length(int nruns, Size share_bytes)
{
	Size		length = share_bytes / (nruns * KEY_BYTES);

	return Max(WINDOW_MIN, Min(WINDOW_MAX, length));
}

Size
fms_radix_order_bytes(int nruns, Size share_bytes)
{
	return offsetof(FmsRadixOrder, windows) + nruns *
		(sizeof(Window) + window_length(nruns, share_bytes) * KEY_BYTES);
}

FmsRadixOrder *
fms_radix_order_create(int nruns, Size share_bytes)
{
	FmsRadixOrder *order = palloc0(offsetof(FmsRadixOrder, windows) +
								   nruns * sizeof(Window));
	int			length = window_length(nruns, share_bytes);
	Size		nentries = (Size) nruns * length;

	order->nruns = nruns;
	order->length = length;
	order->entries = palloc_extended(2 * nentries * sizeof(FmsEntry),
									 MCXT_ALLOC_HUGE);
	order->due = order->entries + nentries;
	order->named = palloc_extended(nentries * sizeof(int), MCXT_ALLOC_HUGE);
	return order;
}

void
fms_radix_order_destroy(FmsRadixOrder *order)
{
	pfree(order->named);
	pfree(order->entries);
	pfree(order);
}

void
fms_radix_order_add(FmsRadixOrder *order, int run, FmsFirstKeyReader *ahead)
{
	order->windows[run].ahead = ahead;
	order->windows[run].entries = order->entries + run * order->length;
}

/* Adds blocks of the chain that has begun. */
static void
fill_from_chain(Window *window, int length)
{
	while (window->chain_left > 0 && window->count < length)
	{
		window->entries[window->count++] = window->chain;
		window->chain_left--;
	}
}

/*
 * Fills the window with the run's next keys, if there are any.  The offset of
 * an entry must be a multiple of MAXIMUM_ALIGNOF (packed.c).
 */
static inline void
fill(Window *window, int length, int run)
{
	if (unlikely(window->chain_left > 0))
		fill_from_chain(window, length);
	while (window->count < length)
	{
		FmsEntry   *next = &window->entries[window->count];
		uint32		nblocks;
		int			n = fms_first_key_reader_take(window->ahead, next,
												  length - window->count,
												  (uint64) run *
												  MAXIMUM_ALIGNOF, &nblocks);

		if (n == 0)
			break;
		window->count += n;
		if (unlikely(nblocks > 1))
		{
			window->chain = next[n - 1];
			window->chain_left = nblocks - 1;
			fill_from_chain(window, length);
		}
	}
}

/* Prefetches the readers of later runs, and their next keys. */
static inline void
prefetch_for(const FmsRadixOrder *order, int run)
{
	const Window *windows = &order->windows[run];

	if (run + 2 * PREFETCH_RUNS < order->nruns)
		__builtin_prefetch(windows[2 * PREFETCH_RUNS].ahead);
	if (run + PREFETCH_RUNS < order->nruns)
		fms_first_key_reader_prefetch(windows[PREFETCH_RUNS].ahead);
}

/* Fills all windows.  Returns the largest number that is due. */
static uint128
fill_all(FmsRadixOrder *order)
{
	uint128		bound = ~(uint128) 0;
	int			length = order->length;
	Size		touched_bytes = 0;
	int			run;

	for (run = 0; run < order->nruns; run++)
	{
		Window	   *window = &order->windows[run];

		fms_interrupts_after(&touched_bytes, length * KEY_BYTES);
		prefetch_for(order, run);
		fill(window, length, run);
		if (window->count == length)
			bound = Min(bound, number_of(&window->entries[length - 1]));
	}
	return bound;
}

/* Moves entries up to bound to `due`; returns the end of what is due. */
static inline FmsEntry *
take_due(Window *window, uint128 bound, FmsEntry *due)
{
	int			n = 0;
	int			i;

	while (n < window->count && number_of(&window->entries[n]) <= bound)
		*due++ = window->entries[n++];
	window->count -= n;
	for (i = 0; i < window->count; i++)
		window->entries[i] = window->entries[n + i];
	return due;
}

/* Sorts entries that are in the order of the runs, which decides ties. */
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
fms_radix_order_next(FmsRadixOrder *order, const int **runs)
{
	uint128		bound = fill_all(order);
	FmsEntry   *end = order->due;
	Size		touched_bytes = 0;
	int			count;
	int			i;

	for (i = 0; i < order->nruns; i++)
	{
		fms_interrupts_after(&touched_bytes, order->length * KEY_BYTES);
		end = take_due(&order->windows[i], bound, end);
	}
	count = end - order->due;
	if (count > 0)
		sort_due(order->due, count);
	for (i = 0; i < count; i++)
	{
		fms_interrupts_after(&touched_bytes, sizeof(FmsEntry));
		order->named[i] = fms_entry_offset(&order->due[i]) / MAXIMUM_ALIGNOF;
	}
	*runs = order->named;
	return count;
}
