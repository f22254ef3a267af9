/*-------------------------------------------------------------------------
 *
 * order.c
 *	  The block read order: in which order the merge will need the blocks.
 *
 * Run formation notes the first key of every block it writes: the block's
 * fence.  A merge that always takes the smallest tuple touches a block when,
 * and only when, its first tuple is the smallest left.  So the blocks sorted
 * by (first key, run, position) are the exact order in which they will be
 * needed, known before the merge has read anything (Lee, Roh, Park; lines 7,
 * 8 and 13 of Algorithm 1).
 *
 *	  run 0:  [ 3 7 12] [25 33 45] [51 52 60]
 *	  run 1:  [ 1 4 14] [16 24 31] [35 41 70]
 *
 *	  order:  1.0  0.0  1.1  0.1  1.2  0.2		first keys 1 3 16 25 35 51
 *
 * The paper sorts all fences at the end of run formation and throws the keys
 * away.  Two things differ here.
 *
 * - Each run's fences are sorted already, so sorting all of them is a merge,
 *   done step by step as the reads advance.  It costs the same comparisons,
 *   delays the first tuple by nothing, and needs memory per run, not per
 *   block: fences.c keeps the rest on tape.  Where keys are numbers of a few
 *   bytes, a stretch of each run at a time is sorted instead: naming.c.
 *
 * - A key is kept until its block is asked for.  While a run's next block has
 *   not been touched, its fence takes the block's place in the merge's tree
 *   of losers; the block is waited for only when that place wins.  The demand
 *   is then exactly this order, so m <= d (the paper's Theorem 1) holds by
 *   construction, and ties between runs, which decide stability, are decided
 *   exactly.
 *
 * So a run's fences are followed twice, by a reader each:
 *
 *	  fences of a run:   f f f f f f f f f f f f f
 *	                           |         |
 *	               behind: the merge   ahead: the reads
 *
 * Copies handed from the one to the other would save unpacking a fence again,
 * but each takes memory from when it is named until it is demanded.  Without
 * them a name is the run's number, and many can be named at a time, several of
 * every run.  That is what makes naming cheap: while the merge copies its
 * tuples, the tree, the readers and the fences leave the processor's caches,
 * and naming one at a time would fetch all that for every block.  So it is
 * fetched once for many, and what the first ones of all runs need, at once.
 *
 * A record longer than a block begins a chain of blocks, which has one fence
 * and counts as that many entries: nothing sorts between the beginning of a
 * record and its continuation.
 *
 * By last keys.  A merge that asks for a run's next block as soon as the last
 * one is used up needs another order: block b + 1 of a run is due when the
 * last tuple of its block b leaves.  Blocks sorted by (last key of the block
 * before, run, position) are that order (Lee, Roh, Jung, Park: Flash
 * mergesort), and every run's first block comes before all of them.  Such a
 * fence is noted when block b + 1 is opened and has its length, so everything
 * but the beginning is the same.
 *
 *	  run 0:  [ 3 7 12] [25 33 45] [51 52 60]	last keys before: - 12 45
 *	  run 1:  [ 1 4 14] [16 24 31] [35 41 70]					  - 14 31
 *
 *	  order:  0.0 1.0  0.1  1.1  1.2  0.2		12 14 31 45
 *
 * A fence by last key never stands for a block in the tree: that merge has a
 * block of every run.  So there is no reader behind.
 *
 * Memory is palloc'd in the context of creation; readers' buffers are mapped
 * through the store's channel.  On ERROR nothing is done here: see io.c.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "base/clock.h"
#include "base/interrupts.h"
#include "base/losertree.h"
#include "order/naming.h"
#include "order/order.h"

/* The tree names so many together: some of each run, within these bounds. */
#define TOGETHER_OF_A_RUN	8
#define TOGETHER_MIN		32
#define TOGETHER_MAX		2048
/* For so many runs, what that needs is fetched at once. */
#define FETCH_MAX			512

/* One run as a leaf of the tree. */
typedef struct FmsOrderLeaf
{
	FmsLoserNode node;			/* the upcoming fence's prefix, for the tree */
	const FmsRecord *upcoming;	/* the reader's; NULL: all have been named */
	uint32		upcoming_nblocks;	/* that have not been named */
	FmsFenceReader *ahead;		/* stands behind the upcoming fence */
} FmsOrderLeaf;

struct FmsOrder
{
	FmsOrderBy	by;
	uint32	   *first_blocks;	/* [nruns] of each run, those that come before
								 * all fences and have not been named */
	int			first_run;		/* the next one that may have any */
	FmsKeys    *keys;
	FmsFenceStore *store;
	FmsCounters *counters;
	int			nruns;
	FmsFenceReader **ahead;		/* [nruns] */
	FmsFenceReader **behind;	/* [nruns]; NULL: by last keys */
	char	   *buffers;		/* mapped: the readers', or NULL */
	const int  *named;			/* runs in order, not all handed out yet */
	int			nnamed;
	int			next_named;

	FmsNaming  *naming;			/* if prefixes decide; else the tree names: */
	FmsLoserTree tree;
	FmsOrderLeaf *leaves;		/* [nruns] */
	int			together;		/* so many at once */
	int		   *named_by_tree;	/* [together] */
};

static inline FmsLoserNode
leaf_node(void *arg, int run)
{
	return ((FmsOrder *) arg)->leaves[run].node;
}

/*
 * Which of two upcoming fences of the same prefix comes later?  Ties: that of
 * the later run.
 */
static inline FmsLoserNode
tie_loser(void *arg, FmsLoserNode a, FmsLoserNode b)
{
	FmsOrder   *order = arg;
	const FmsRecord *a_upcoming =
		order->leaves[fms_losertree_leaf(a)].upcoming;
	const FmsRecord *b_upcoming =
		order->leaves[fms_losertree_leaf(b)].upcoming;
	int			result = 0;

	/* at the ends both are, which are alike, and like nothing else */
	if (a_upcoming && b_upcoming)
		result = fms_keys_compare_rest(order->keys, a_upcoming, b_upcoming);
	if (result == 0)
		return fms_losertree_later(a, b);
	return result < 0 ? b : a;
}

/* Takes the next fence of the run from the reader ahead. */
static inline void
take_fence(FmsOrder *order, int run)
{
	FmsOrderLeaf *leaf = &order->leaves[run];
	const FmsRecord *fence = fms_fence_reader_next(leaf->ahead,
												   &leaf->upcoming_nblocks);

	leaf->upcoming = fence;
	leaf->node = fence == NULL ? fms_losertree_end(run) :
		fms_losertree_node(fms_record_prefix(fence),
						   fms_record_prefix_rest(fence), run);
}

/* Passes the fences of blocks that the merge has asked for before. */
static void
skip_fences(FmsFenceReader *reader, const FmsPosition *from)
{
	uint64		first_not_asked = from->block + (from->record >= 0 ? 1 : 0);
	uint64		block = 0;
	Size		touched_bytes = 0;
	uint32		nblocks;

	while (block < first_not_asked && fms_fence_reader_next(reader, &nblocks))
	{
		block += nblocks;
		fms_interrupts_after(&touched_bytes, FMS_INTERRUPT_RECORD_BYTES);
	}
}

/*
 * How many of the run's blocks come first: that in whose middle the merge is,
 * or by last keys the next one, with all of its chain.
 */
static uint32
take_first_blocks(const FmsOrder *order, FmsFenceReader *reader,
				  const FmsPosition *from)
{
	uint32		nblocks;

	if (from && from->record >= 0)
		return 1;
	if (order->by != FMS_ORDER_BY_LAST_KEYS ||
		!fms_fence_reader_next(reader, &nblocks))
		return 0;
	return nblocks;
}

static int
together_for(int nruns)
{
	return Max(TOGETHER_MIN, Min(nruns * TOGETHER_OF_A_RUN, TOGETHER_MAX));
}

Size
fms_order_bytes(const FmsFenceStore *store, FmsOrderBy by, int nruns)
{
	Size		run_bytes = sizeof(uint32) + sizeof(FmsFenceReader *) +
		fms_fence_reader_bytes(store, FMS_FENCES_AHEAD);

	if (by == FMS_ORDER_BY_FIRST_KEYS)
		run_bytes += sizeof(FmsFenceReader *) +
			fms_fence_reader_bytes(store, FMS_FENCES_BEHIND);
	return sizeof(FmsOrder) + nruns * run_bytes +
		(fms_keys_prefix_decides(fms_fences_keys(store)) ?
		 fms_naming_bytes(nruns, fms_fences_share_bytes(store)) :
		 together_for(nruns) * sizeof(int) +
		 nruns * (sizeof(FmsOrderLeaf) + sizeof(FmsLoserNode)));
}

/* Builds the tree over the runs' next fences. */
static void
begin_tree(FmsOrder *order)
{
	int			nruns = order->nruns;
	int			run;

	order->together = together_for(nruns);
	order->named_by_tree = palloc(order->together * sizeof(int));
	order->leaves = palloc0(nruns * sizeof(FmsOrderLeaf));
	for (run = 0; run < nruns; run++)
	{
		CHECK_FOR_INTERRUPTS();
		order->leaves[run].ahead = order->ahead[run];
		take_fence(order, run);
	}
	fms_losertree_build(&order->tree, palloc(nruns * sizeof(FmsLoserNode)),
						nruns, leaf_node, tie_loser, order);
}

static void
begin_naming(FmsOrder *order)
{
	int			run;

	order->naming =
		fms_naming_create(order->nruns, fms_fences_share_bytes(order->store));
	for (run = 0; run < order->nruns; run++)
	{
		CHECK_FOR_INTERRUPTS();
		fms_naming_add(order->naming, run, order->ahead[run]);
	}
}

/* Opens the readers of a run; their buffers are there. */
static void
open_run(FmsOrder *order, int run, const FmsFences *fences, char *buffers)
{
	order->ahead[run] = fms_fence_reader_open(order->store, fences,
											  FMS_FENCES_AHEAD, buffers);
	if (order->behind == NULL)
		return;
	buffers += fms_fence_reader_buffer_bytes(order->store, FMS_FENCES_AHEAD);
	order->behind[run] = fms_fence_reader_open(order->store, fences,
											   FMS_FENCES_BEHIND, buffers);
}

/* Starts them, and passes `from`. */
static void
start_run(FmsOrder *order, int run, const FmsPosition *from)
{
	FmsFenceReader *ahead = order->ahead[run];

	fms_fence_reader_start(ahead);
	if (from)
		skip_fences(ahead, from);
	order->first_blocks[run] = take_first_blocks(order, ahead, from);
	if (order->behind == NULL)
		return;
	fms_fence_reader_start(order->behind[run]);
	if (from)
		skip_fences(order->behind[run], from);
}

FmsOrder *
fms_order_begin(FmsKeys *keys, FmsFenceStore *store, FmsOrderBy by,
				FmsCounters *counters, int nruns,
				const FmsFences *const *fences, const FmsPosition *from)
{
	instr_time	start = fms_clock_now();
	FmsOrder   *order = palloc0(sizeof(FmsOrder));
	Size		run_bytes =
		fms_fence_reader_buffer_bytes(store, FMS_FENCES_AHEAD);
	int			run;

	Assert(nruns >= 1 && by != FMS_ORDER_NONE);

	order->by = by;
	order->keys = keys;
	order->store = store;
	order->counters = counters;
	order->nruns = nruns;
	order->ahead = palloc0(nruns * sizeof(FmsFenceReader *));
	order->first_blocks = palloc(nruns * sizeof(uint32));
	if (by == FMS_ORDER_BY_FIRST_KEYS)
	{
		order->behind = palloc0(nruns * sizeof(FmsFenceReader *));
		run_bytes += fms_fence_reader_buffer_bytes(store, FMS_FENCES_BEHIND);
	}
	if (run_bytes > 0)
		order->buffers = fms_io_map(fms_fences_io(store), nruns * run_bytes);
	for (run = 0; run < nruns; run++)
	{
		CHECK_FOR_INTERRUPTS();
		open_run(order, run, fences[run], order->buffers + run * run_bytes);
	}
	for (run = 0; run < nruns; run++)
	{
		CHECK_FOR_INTERRUPTS();
		start_run(order, run, from ? &from[run] : NULL);
	}
	if (fms_keys_prefix_decides(keys))
		begin_naming(order);
	else
		begin_tree(order);
	fms_count_us(counters, FMS_COUNT_ORDER_NS,
				 fms_clock_since_us(start));
	return order;
}

static void
end_tree(FmsOrder *order)
{
	pfree(order->tree.nodes);
	pfree(order->leaves);
	pfree(order->named_by_tree);
}

void
fms_order_end(FmsOrder *order)
{
	int			run;

	/* first: it drains the readers' requests, which are in their structs */
	if (order->buffers)
		fms_io_unmap(fms_fences_io(order->store), order->buffers);
	for (run = 0; run < order->nruns; run++)
	{
		CHECK_FOR_INTERRUPTS();
		fms_fence_reader_close(order->ahead[run]);
		if (order->behind)
			fms_fence_reader_close(order->behind[run]);
	}
	if (order->naming)
		fms_naming_destroy(order->naming);
	else
		end_tree(order);
	if (order->behind)
		pfree(order->behind);
	pfree(order->ahead);
	pfree(order->first_blocks);
	pfree(order);
}

/* A run of which a block comes before all fences, or -1. */
static int
next_first_block(FmsOrder *order)
{
	while (order->first_run < order->nruns)
	{
		if (order->first_blocks[order->first_run] > 0)
		{
			order->first_blocks[order->first_run]--;
			return order->first_run;
		}
		order->first_run++;
	}
	return -1;
}

/*
 * Fetches what naming the runs at the top of the tree needs.  Each round asks
 * where the next one's lines are, so waits for its own all together.
 */
static inline void
fetch_first(FmsOrder *order)
{
	const FmsLoserTree *tree = &order->tree;
	int			n = Min(FETCH_MAX, order->nruns);
	FmsOrderLeaf *leaves[FETCH_MAX];
	int			i;

	for (i = 0; i < n; i++)
	{
		int			run = fms_losertree_leaf(tree->nodes[i]);

		leaves[i] = &order->leaves[run];
		__builtin_prefetch(leaves[i]);
		__builtin_prefetch(&tree->nodes[(order->nruns + run) / 2]);
	}
	for (i = 0; i < n; i++)
		__builtin_prefetch(leaves[i]->ahead);
	for (i = 0; i < n; i++)
		fms_fence_reader_prefetch(leaves[i]->ahead);
}

/* Names the next ones; returns how many, 0 if all have been. */
static int
name_by_tree(FmsOrder *order)
{
	int			nnamed = 0;

	fetch_first(order);
	while (nnamed < order->together)
	{
		int			run = fms_losertree_winner(&order->tree);
		FmsOrderLeaf *leaf = &order->leaves[run];

		/* a match may run a type's comparator */
		CHECK_FOR_INTERRUPTS();
		if (leaf->upcoming == NULL)
			break;
		order->named_by_tree[nnamed++] = run;
		if (--leaf->upcoming_nblocks > 0)
			continue;
		take_fence(order, run);
		fms_losertree_replay(&order->tree, leaf->node, tie_loser, order);
	}
	order->named = order->named_by_tree;
	return nnamed;
}

static void
name_some(FmsOrder *order)
{
	instr_time	start = fms_clock_now();

	order->nnamed = order->naming ?
		fms_naming_next(order->naming, &order->named) : name_by_tree(order);
	order->next_named = 0;
	fms_count_us(order->counters, FMS_COUNT_ORDER_NS,
				 fms_clock_since_us(start));
}

int
fms_order_next(FmsOrder *order)
{
	int			run = next_first_block(order);

	if (run >= 0)
		return run;
	if (order->next_named == order->nnamed)
		name_some(order);
	return order->nnamed > 0 ? order->named[order->next_named++] : -1;
}

const FmsRecord *
fms_order_fence(FmsOrder *order, int run)
{
	uint32		nblocks;

	return fms_fence_reader_next(order->behind[run], &nblocks);
}
