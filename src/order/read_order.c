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
 * comes before all others.  A tree of losers computes the order as the reads
 * advance.  One reader of a run's first keys goes ahead of the reads.  The
 * other one returns the key of the run's next block to the merge.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "base/clock.h"
#include "base/interrupts.h"
#include "base/losertree.h"
#include "order/read_order.h"

/* The tree names this many blocks a run together, within these bounds. */
#define BATCH_BLOCKS_OF_A_RUN	8
#define BATCH_MIN			32
#define BATCH_MAX			2048
/* Largest number of runs for which a batch prefetches. */
#define PREFETCH_MAX		512

typedef struct OrderRun
{
	/* as a leaf of the tree */
	FmsLoserNode node;			/* of the upcoming key's prefix */
	const FmsRecord *upcoming;	/* the reader's; NULL: all have been named */
	uint32		upcoming_nblocks;	/* of its chain that have not been named */
	uint32		upcoming_rows;	/* between it and the key before */

	uint32		first_blocks;	/* to be named before all first keys */
	FmsFirstKeyReader *ahead;	/* stands behind the upcoming key */
	FmsFirstKeyReader *behind;	/* NULL: by last keys */
} OrderRun;

struct FmsReadOrder
{
	FmsOrderBy	by;
	int			first_run;		/* the first run that may have first_blocks */
	FmsFirstKeyStore *store;
	int			nruns;
	OrderRun   *runs;			/* [nruns] */
	FmsLoserTree tree;			/* of the runs' upcoming keys */
	bool		prefix_decides; /* fms_keys_prefix_decides() */

	int			batch;			/* length of a batch of blocks */
	int		   *named;			/* [batch] their runs */
	int			nnamed;
	int			next_named;
};

static inline FmsLoserNode
leaf_node(void *arg, int run)
{
	return ((FmsReadOrder *) arg)->runs[run].node;
}

/* The later of two upcoming keys of one prefix; of ties, the later run's. */
static inline FmsLoserNode
tie_loser(void *arg, FmsLoserNode a, FmsLoserNode b)
{
	FmsReadOrder *order = arg;
	const FmsRecord *a_upcoming =
		order->runs[fms_losertree_leaf(a)].upcoming;
	const FmsRecord *b_upcoming =
		order->runs[fms_losertree_leaf(b)].upcoming;
	int			result = 0;

	/* the prefix of a run at its end equals only that of another such run */
	if (a_upcoming && b_upcoming)
		result = fms_keys_compare_rest(order->store->keys, a_upcoming,
									   b_upcoming);
	if (result == 0)
		return fms_losertree_later(a, b);
	return result < 0 ? b : a;
}

static inline void
take_first_key(FmsReadOrder *order, int run)
{
	OrderRun   *leaf = &order->runs[run];
	const FmsRecord *first_key =
		fms_first_key_reader_next(leaf->ahead, &leaf->upcoming_nblocks,
								  &leaf->upcoming_rows);

	leaf->upcoming = first_key;
	leaf->node = first_key == NULL ? fms_losertree_end(run) :
		fms_losertree_node(fms_record_prefix(first_key),
						   fms_record_prefix_rest(first_key), run);
}

static void
skip_first_keys(FmsFirstKeyReader *reader, const FmsPosition *from)
{
	uint64		first_not_asked = from->block + (from->record >= 0 ? 1 : 0);
	uint64		block = 0;
	Size		touched_bytes = 0;
	uint32		nblocks;
	uint32		rows;

	while (block < first_not_asked &&
		   fms_first_key_reader_next(reader, &nblocks, &rows))
	{
		block += nblocks;
		fms_interrupts_after(&touched_bytes, FMS_INTERRUPT_RECORD_BYTES);
	}
}

/* Number of the run's blocks that come before all first keys. */
static uint32
take_first_blocks(const FmsReadOrder *order, FmsFirstKeyReader *reader,
				  const FmsPosition *from)
{
	uint32		nblocks;
	uint32		rows;

	if (from && from->record >= 0)
		return 1;
	if (order->by != FMS_ORDER_BY_LAST_KEYS ||
		!fms_first_key_reader_next(reader, &nblocks, &rows))
		return 0;
	return nblocks;
}

static int
batch_for(int nruns)
{
	return Max(BATCH_MIN, Min(nruns * BATCH_BLOCKS_OF_A_RUN, BATCH_MAX));
}

Size
fms_read_order_bytes(const FmsFirstKeyMemory *memory, FmsOrderBy by, int nruns)
{
	int			readers = by == FMS_ORDER_BY_FIRST_KEYS ? 2 : 1;
	Size		run_bytes = sizeof(OrderRun) + sizeof(FmsLoserNode) +
		readers * fms_first_key_reader_bytes(memory);

	return sizeof(FmsReadOrder) + nruns * run_bytes +
		batch_for(nruns) * sizeof(int);
}

static void
begin_run(FmsReadOrder *order, int run, const FmsFirstKeys *first_keys,
		  const FmsPosition *from)
{
	OrderRun   *leaf = &order->runs[run];

	leaf->ahead = fms_first_key_reader_open(order->store->file, first_keys);
	if (from)
		skip_first_keys(leaf->ahead, from);
	leaf->first_blocks = take_first_blocks(order, leaf->ahead, from);
	take_first_key(order, run);
	if (order->by == FMS_ORDER_BY_LAST_KEYS)
		return;
	leaf->behind = fms_first_key_reader_open(order->store->file, first_keys);
	if (from)
		skip_first_keys(leaf->behind, from);
}

FmsReadOrder *
fms_read_order_begin(FmsFirstKeyStore *store, FmsOrderBy by, int nruns,
					 const FmsFirstKeys *const *first_keys,
					 const FmsPosition *from)
{
	instr_time	start = fms_clock_now();
	FmsReadOrder *order = palloc0(sizeof(FmsReadOrder));

	Assert(nruns >= 1 && by != FMS_ORDER_NONE);

	order->by = by;
	order->store = store;
	order->nruns = nruns;
	order->runs = palloc0(nruns * sizeof(OrderRun));
	order->prefix_decides = fms_keys_prefix_decides(store->keys);
	order->batch = batch_for(nruns);
	order->named = palloc(order->batch * sizeof(int));
	for (int run = 0; run < nruns; run++)
	{
		CHECK_FOR_INTERRUPTS();
		begin_run(order, run, first_keys[run], from ? &from[run] : NULL);
	}
	fms_losertree_build(&order->tree, palloc(nruns * sizeof(FmsLoserNode)),
						nruns, leaf_node,
						order->prefix_decides ? NULL : tie_loser, order);
	fms_count_us(store->counters, FMS_COUNT_ORDER_NS,
				 fms_clock_since_us(start));
	return order;
}

void
fms_read_order_end(FmsReadOrder *order)
{
	for (int run = 0; run < order->nruns; run++)
	{
		CHECK_FOR_INTERRUPTS();
		fms_first_key_reader_close(order->runs[run].ahead);
		if (order->runs[run].behind)
			fms_first_key_reader_close(order->runs[run].behind);
	}
	pfree(order->tree.nodes);
	pfree(order->named);
	pfree(order->runs);
	pfree(order);
}

/* A run with a block that comes before all first keys, or -1. */
static int
next_first_block(FmsReadOrder *order)
{
	for (; order->first_run < order->nruns; order->first_run++)
	{
		if (order->runs[order->first_run].first_blocks > 0)
		{
			order->runs[order->first_run].first_blocks--;
			return order->first_run;
		}
	}
	return -1;
}

/* Prefetches the top of the tree, step by step, so cache misses overlap. */
static inline void
prefetch_top(FmsReadOrder *order)
{
	const FmsLoserTree *tree = &order->tree;
	int			n = Min(PREFETCH_MAX, order->nruns);
	OrderRun   *leaves[PREFETCH_MAX];

	for (int i = 0; i < n; i++)
	{
		int			run = fms_losertree_leaf(tree->nodes[i]);

		leaves[i] = &order->runs[run];
		__builtin_prefetch(leaves[i]);
		__builtin_prefetch(&tree->nodes[(order->nruns + run) / 2]);
	}
	for (int i = 0; i < n; i++)
		__builtin_prefetch(leaves[i]->ahead);
	for (int i = 0; i < n; i++)
		fms_first_key_reader_prefetch(leaves[i]->ahead);
}

/* Names the next batch of blocks; an empty one after the last block. */
static pg_attribute_always_inline void
name_batch_by(FmsReadOrder *order, FmsTieLoser tie_loser)
{
	int			nnamed = 0;

	prefetch_top(order);
	while (nnamed < order->batch)
	{
		int			run = fms_losertree_winner(&order->tree);
		OrderRun   *leaf = &order->runs[run];

		/* a match may run a type's comparator */
		CHECK_FOR_INTERRUPTS();
		if (leaf->upcoming == NULL)
			break;
		order->named[nnamed++] = run;
		if (--leaf->upcoming_nblocks > 0)
			continue;
		take_first_key(order, run);
		fms_losertree_replay(&order->tree, leaf->node, tie_loser, order);
	}
	order->nnamed = nnamed;
	order->next_named = 0;
}

/* The same; tie_loser becomes a constant, for the compiler to inline. */
static void
name_batch(FmsReadOrder *order)
{
	instr_time	start = fms_clock_now();

	if (order->prefix_decides)
		name_batch_by(order, NULL);
	else
		name_batch_by(order, tie_loser);
	fms_count_us(order->store->counters, FMS_COUNT_ORDER_NS,
				 fms_clock_since_us(start));
}

int
fms_read_order_next(FmsReadOrder *order)
{
	int			run = next_first_block(order);

	if (run >= 0)
		return run;
	if (order->next_named == order->nnamed)
		name_batch(order);
	return order->nnamed > 0 ? order->named[order->next_named++] : -1;
}

const FmsRecord *
fms_read_order_first_key(FmsReadOrder *order, int run)
{
	uint32		nblocks;
	uint32		rows;

	return fms_first_key_reader_next(order->runs[run].behind, &nblocks, &rows);
}

/* ---- skipping ---- */

/*
 * First keys with the number of rows between them are a histogram.  If the
 * blocks passed have at most `rows` rows, all rows before the upcoming first
 * key are among the first `rows`, and so are those of blocks that end before:
 *
 *	  first 11 rows		run 0:  [ 3  7 12] | [25 33 45] [51 52 60]
 *	  not wanted		run 1:  [ 1  4 14] | [16 24 31] [35 41 70]
 *
 *	  upcoming	 1   3  16  25  35
 *	  passed	 0   3   6   9  12		returns 16 24 25 31 33, then row 11
 */
uint64
fms_read_order_skip(FmsFirstKeyStore *store, FmsOrderBy by, int nruns,
					const FmsFirstKeys *const *first_keys,
					const uint32 *last_rows, uint64 rows, FmsPosition *from)
{
	FmsReadOrder *order = fms_read_order_begin(store, by, nruns, first_keys,
											   NULL);
	OrderRun   *leaf;
	uint64		passed = 0;
	uint64		skipped = 0;
	int			run;

	/* first_blocks: number of the run's blocks before its upcoming key */
	for (run = 0; run < nruns; run++)
	{
		leaf = &order->runs[run];
		from[run] = (FmsPosition) {.block = 0,.record = -1};
		passed += leaf->upcoming ? leaf->upcoming_rows : last_rows[run];
	}
	while (passed <= rows)
	{
		/* a match may run a type's comparator */
		CHECK_FOR_INTERRUPTS();
		run = fms_losertree_winner(&order->tree);
		leaf = &order->runs[run];
		if (leaf->upcoming == NULL)
			break;
		from[run].block = leaf->first_blocks;
		skipped += leaf->upcoming_rows;
		leaf->first_blocks += leaf->upcoming_nblocks;
		take_first_key(order, run);
		passed += leaf->upcoming ? leaf->upcoming_rows : last_rows[run];
		fms_losertree_replay(&order->tree, leaf->node,
							 order->prefix_decides ? NULL : tie_loser, order);
	}
	fms_read_order_end(order);
	return skipped;
}
