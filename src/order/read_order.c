/*-------------------------------------------------------------------------
 *
 * read_order.c
 *	  The block read order: in which order the merge will need the blocks.
 *
 * The blocks sorted by (first key, run, position) are the order in which a
 * merge needs them (Lee, Roh, Park: Algorithm 1, lines 7, 8 and 13):
 *
 *	  run 0:  [ 3 7 12] [25 33 45] [51 52 60]
 *	  run 1:  [ 1 4 14] [16 24 31] [35 41 70]
 *
 *	  first keys:  1.0  0.0  1.1  0.1  1.2  0.2		1 3 16 25 35 51
 *	  last keys:   0.0  1.0  0.1  1.1  1.2  0.2		    12 14 31 45
 *
 * By last keys, a block is due when the last tuple of the block before it
 * leaves (Lee, Roh, Jung, Park: Flash mergesort).  Every run's first block
 * comes before all others.
 *
 * Each run's keys are sorted already, so the order is computed step by step
 * as the reads advance, in memory per run: by a tree of losers here, or by
 * radix (radix_order.c) if keys are short numbers.  Two readers follow a run's
 * first keys: one ahead, with the reads, and one behind, with the merge.  The
 * merge needs a block's key until it asks for the block (merge.c).
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
#include "order/radix_order.h"
#include "order/read_order.h"

/* The tree names so many together: some of each run, within these bounds. */
#define TOGETHER_OF_A_RUN	8
#define TOGETHER_MIN		32
#define TOGETHER_MAX		2048
/* For so many runs, what that needs is fetched at once. */
#define FETCH_MAX			512

/* One run as a leaf of the tree. */
typedef struct FmsReadOrderLeaf
{
	FmsLoserNode node;			/* the upcoming key's prefix, for the tree */
	const FmsRecord *upcoming;	/* the reader's; NULL: all have been named */
	uint32		upcoming_nblocks;	/* that have not been named */
	FmsFirstKeyReader *ahead;	/* stands behind the upcoming first key */
} FmsReadOrderLeaf;

struct FmsReadOrder
{
	FmsOrderBy	by;
	uint32	   *first_blocks;	/* [nruns] of each run, those that come before
								 * all first keys and have not been named */
	int			first_run;		/* the next one that may have any */
	FmsKeys	   *keys;
	FmsFirstKeyStore *store;
	FmsCounters *counters;
	int			nruns;
	FmsFirstKeyReader **ahead;	/* [nruns] */
	FmsFirstKeyReader **behind; /* [nruns]; NULL: by last keys */
	char	   *buffers;		/* mapped: the readers', or NULL */
	const int  *named;			/* runs in order, not all handed out yet */
	int			nnamed;
	int			next_named;

	FmsRadixOrder *naming;		/* if prefixes decide; else the tree names: */
	FmsLoserTree tree;
	FmsReadOrderLeaf *leaves;	/* [nruns] */
	int			together;		/* so many at once */
	int		   *named_by_tree;	/* [together] */
};

static inline FmsLoserNode
leaf_node(void *arg, int run)
{
	return ((FmsReadOrder *) arg)->leaves[run].node;
}

/*
 * Which of two upcoming first keys of the same prefix comes later?  Ties: that
 * of the later run.
 */
static inline FmsLoserNode
tie_loser(void *arg, FmsLoserNode a, FmsLoserNode b)
{
	FmsReadOrder *order = arg;
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

/* Takes the next first key of the run from the reader ahead. */
static inline void
take_first_key(FmsReadOrder *order, int run)
{
	FmsReadOrderLeaf *leaf = &order->leaves[run];
	const FmsRecord *first_key = fms_first_key_reader_next(leaf->ahead,
												   &leaf->upcoming_nblocks);

	leaf->upcoming = first_key;
	leaf->node = first_key == NULL ? fms_losertree_end(run) :
		fms_losertree_node(fms_record_prefix(first_key),
						   fms_record_prefix_rest(first_key), run);
}

/* Passes the first keys of blocks that the merge has asked for before. */
static void
skip_first_keys(FmsFirstKeyReader *reader, const FmsPosition *from)
{
	uint64		first_not_asked = from->block + (from->record >= 0 ? 1 : 0);
	uint64		block = 0;
	Size		touched_bytes = 0;
	uint32		nblocks;

	while (block < first_not_asked &&
		   fms_first_key_reader_next(reader, &nblocks))
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
take_first_blocks(const FmsReadOrder *order, FmsFirstKeyReader *reader,
				  const FmsPosition *from)
{
	uint32		nblocks;

	if (from && from->record >= 0)
		return 1;
	if (order->by != FMS_ORDER_BY_LAST_KEYS ||
		!fms_first_key_reader_next(reader, &nblocks))
		return 0;
	return nblocks;
}

static int
together_for(int nruns)
{
	return Max(TOGETHER_MIN, Min(nruns * TOGETHER_OF_A_RUN, TOGETHER_MAX));
}

Size
fms_read_order_bytes(const FmsFirstKeyMemory *memory, FmsOrderBy by, int nruns)
{
	Size		run_bytes = sizeof(uint32) + sizeof(FmsFirstKeyReader *) +
		fms_first_key_reader_bytes(memory, FMS_FIRST_KEYS_AHEAD);

	if (by == FMS_ORDER_BY_FIRST_KEYS)
		run_bytes += sizeof(FmsFirstKeyReader *) +
			fms_first_key_reader_bytes(memory, FMS_FIRST_KEYS_BEHIND);
	return sizeof(FmsReadOrder) + nruns * run_bytes +
		(memory->prefix_decides ?
		 fms_radix_order_bytes(nruns, memory->share_bytes) :
		 together_for(nruns) * sizeof(int) +
		 nruns * (sizeof(FmsReadOrderLeaf) + sizeof(FmsLoserNode)));
}

/* Builds the tree over the runs' next first keys. */
static void
begin_tree(FmsReadOrder *order)
{
	int			nruns = order->nruns;
	int			run;

	order->together = together_for(nruns);
	order->named_by_tree = palloc(order->together * sizeof(int));
	order->leaves = palloc0(nruns * sizeof(FmsReadOrderLeaf));
	for (run = 0; run < nruns; run++)
	{
		CHECK_FOR_INTERRUPTS();
		order->leaves[run].ahead = order->ahead[run];
		take_first_key(order, run);
	}
	fms_losertree_build(&order->tree, palloc(nruns * sizeof(FmsLoserNode)),
						nruns, leaf_node, tie_loser, order);
}

static void
begin_naming(FmsReadOrder *order)
{
	int			run;

	order->naming =
		fms_radix_order_create(order->nruns,
							   fms_first_keys_share_bytes(order->store));
	for (run = 0; run < order->nruns; run++)
	{
		CHECK_FOR_INTERRUPTS();
		fms_radix_order_add(order->naming, run, order->ahead[run]);
	}
}

/* Opens the readers of a run; their buffers are there. */
static void
open_run(FmsReadOrder *order, int run, const FmsFirstKeys *first_keys,
		 char *buffers)
{
	order->ahead[run] = fms_first_key_reader_open(order->store, first_keys,
											  FMS_FIRST_KEYS_AHEAD, buffers);
	if (order->behind == NULL)
		return;
	buffers += fms_first_key_reader_buffer_bytes(order->store,
												 FMS_FIRST_KEYS_AHEAD);
	order->behind[run] = fms_first_key_reader_open(order->store, first_keys,
											   FMS_FIRST_KEYS_BEHIND, buffers);
}

/* Starts them, and passes `from`. */
static void
start_run(FmsReadOrder *order, int run, const FmsPosition *from)
{
	FmsFirstKeyReader *ahead = order->ahead[run];

	fms_first_key_reader_start(ahead);
	if (from)
		skip_first_keys(ahead, from);
	order->first_blocks[run] = take_first_blocks(order, ahead, from);
	if (order->behind == NULL)
		return;
	fms_first_key_reader_start(order->behind[run]);
	if (from)
		skip_first_keys(order->behind[run], from);
}

FmsReadOrder *
fms_read_order_begin(FmsKeys *keys, FmsFirstKeyStore *store, FmsOrderBy by,
				FmsCounters *counters, int nruns,
				const FmsFirstKeys *const *first_keys, const FmsPosition *from)
{
	instr_time	start = fms_clock_now();
	FmsReadOrder *order = palloc0(sizeof(FmsReadOrder));
	Size		run_bytes =
		fms_first_key_reader_buffer_bytes(store, FMS_FIRST_KEYS_AHEAD);
	int			run;

	Assert(nruns >= 1 && by != FMS_ORDER_NONE);

	order->by = by;
	order->keys = keys;
	order->store = store;
	order->counters = counters;
	order->nruns = nruns;
	order->ahead = palloc0(nruns * sizeof(FmsFirstKeyReader *));
	order->first_blocks = palloc(nruns * sizeof(uint32));
	if (by == FMS_ORDER_BY_FIRST_KEYS)
	{
		order->behind = palloc0(nruns * sizeof(FmsFirstKeyReader *));
		run_bytes += fms_first_key_reader_buffer_bytes(store,
													   FMS_FIRST_KEYS_BEHIND);
	}
	if (run_bytes > 0)
		order->buffers = fms_io_map(fms_first_keys_io(store),
									nruns * run_bytes);
	for (run = 0; run < nruns; run++)
	{
		CHECK_FOR_INTERRUPTS();
		open_run(order, run, first_keys[run],
				 order->buffers + run * run_bytes);
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
end_tree(FmsReadOrder *order)
{
	pfree(order->tree.nodes);
	pfree(order->leaves);
	pfree(order->named_by_tree);
}

void
fms_read_order_end(FmsReadOrder *order)
{
	int			run;

	/* first: it drains the readers' requests, which are in their structs */
	if (order->buffers)
		fms_io_unmap(fms_first_keys_io(order->store), order->buffers);
	for (run = 0; run < order->nruns; run++)
	{
		CHECK_FOR_INTERRUPTS();
		fms_first_key_reader_close(order->ahead[run]);
		if (order->behind)
			fms_first_key_reader_close(order->behind[run]);
	}
	if (order->naming)
		fms_radix_order_destroy(order->naming);
	else
		end_tree(order);
	if (order->behind)
		pfree(order->behind);
	pfree(order->ahead);
	pfree(order->first_blocks);
	pfree(order);
}

/* A run of which a block comes before all first keys, or -1. */
static int
next_first_block(FmsReadOrder *order)
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
fetch_first(FmsReadOrder *order)
{
	const FmsLoserTree *tree = &order->tree;
	int			n = Min(FETCH_MAX, order->nruns);
	FmsReadOrderLeaf *leaves[FETCH_MAX];
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
		fms_first_key_reader_prefetch(leaves[i]->ahead);
}

/* Names the next ones; returns how many, 0 if all have been. */
static int
name_by_tree(FmsReadOrder *order)
{
	int			nnamed = 0;

	fetch_first(order);
	while (nnamed < order->together)
	{
		int			run = fms_losertree_winner(&order->tree);
		FmsReadOrderLeaf *leaf = &order->leaves[run];

		/* a match may run a type's comparator */
		CHECK_FOR_INTERRUPTS();
		if (leaf->upcoming == NULL)
			break;
		order->named_by_tree[nnamed++] = run;
		if (--leaf->upcoming_nblocks > 0)
			continue;
		take_first_key(order, run);
		fms_losertree_replay(&order->tree, leaf->node, tie_loser, order);
	}
	order->named = order->named_by_tree;
	return nnamed;
}

static void
name_some(FmsReadOrder *order)
{
	instr_time	start = fms_clock_now();

	order->nnamed = order->naming ?
		fms_radix_order_next(order->naming, &order->named) :
		name_by_tree(order);
	order->next_named = 0;
	fms_count_us(order->counters, FMS_COUNT_ORDER_NS,
				 fms_clock_since_us(start));
}

int
fms_read_order_next(FmsReadOrder *order)
{
	int			run = next_first_block(order);

	if (run >= 0)
		return run;
	if (order->next_named == order->nnamed)
		name_some(order);
	return order->nnamed > 0 ? order->named[order->next_named++] : -1;
}

const FmsRecord *
fms_read_order_first_key(FmsReadOrder *order, int run)
{
	uint32		nblocks;

	return fms_first_key_reader_next(order->behind[run], &nblocks);
}
