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
 *   block: fences.c keeps the rest on tape.
 *
 * - A key is kept until its block is asked for.  While a run's next block has
 *   not been touched, its fence takes the block's place in the merge's tree
 *   of losers; the block is waited for only when that place wins.  The demand
 *   is then exactly this order, so m <= d (the paper's Theorem 1) holds by
 *   construction, and ties between runs, which decide stability, are decided
 *   exactly.
 *
 *	  fences of a run:   f f f [ f f f f ] f f f f
 *	                           |         |
 *	               behind: the merge   ahead: the reads
 *	                           |<------->| kept as copies
 *
 * Many are named at a time: while the merge copies its tuples, the tree and
 * the fences leave the processor's caches, and each naming alone would fetch
 * them again.  They are as many as there are runs, and what all runs need is
 * fetched at once.  That is one fetch a block, and few are in vain; fetching
 * it for the runs at the top of the tree only would miss every third one, as
 * of two that lie below the same node only the first is there.
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
 * block of every run.  So no copies are kept behind the reads.
 *
 * Memory is palloc'd in the context of creation; readers' buffers are mapped
 * through the store's channel.  On ERROR nothing is done here: see io.c.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "clock.h"
#include "losertree.h"
#include "order.h"

/*
 * A copy of a fence: at first the run's upcoming one, then named and not yet
 * demanded.  The merge points into it, so it stays where it is meanwhile.
 * Its record follows.  There is one for every block, but only some at a time,
 * so they are used again instead of being freed.
 */
typedef struct FmsNamed
{
	struct FmsNamed *next;		/* of the run, or spare */
	Size		room_bytes;		/* for the record */
} FmsNamed;

StaticAssertDecl(sizeof(FmsNamed) % MAXIMUM_ALIGNOF == 0,
				 "records must stay aligned behind their list link");

/* Copies of long keys are freed: as spare ones they would fill the memory. */
#define SPARE_MAX_BYTES		256

/*
 * So many are named together, fewer if their keys are long: as many as there
 * are runs, within these bounds.
 */
#define TOGETHER_MIN		32
#define TOGETHER_MAX		512

/* A block, or a chain of blocks, that is next in the order. */
typedef struct FmsUpcoming
{
	int			run;
	uint32		nblocks;
} FmsUpcoming;

/* Of the processor's caches. */
#define LINE_BYTES			64

/* One run as a leaf of the tree: a line. */
typedef struct FmsOrderLeaf
{
	/* the upcoming fence's prefix, for the tree */
	FmsLoserNode node pg_attribute_aligned(LINE_BYTES);
	FmsNamed   *upcoming;		/* NULL: all have been named */
	/* of the upcoming one, here so that naming it does not fetch its copy */
	uint32		upcoming_nblocks;	/* as in FmsFence */
	bool		upcoming_is_long;	/* the copy will not be a spare one */
	FmsNamed   *oldest;			/* behind .. ahead; NULL: none */
	FmsNamed   *newest;
	FmsFenceReader *reader;		/* stands behind the upcoming fence */
} FmsOrderLeaf;

StaticAssertDecl(sizeof(FmsOrderLeaf) == LINE_BYTES,
				 "naming a block fetches one line of its run's leaf");

struct FmsOrder
{
	MemoryContext context;
	FmsOrderBy	by;
	uint32	   *first_blocks;	/* [nruns] of each run, those that come before
								 * all fences and have not been named */
	int			first_run;		/* the next one that may have any */
	FmsKeys    *keys;
	bool		prefix_decides; /* fms_keys_prefix_decides() */
	FmsFenceStore *store;
	FmsCounters *counters;
	FmsLoserTree tree;
	int			nruns;
	FmsOrderLeaf *leaves;		/* [nruns], each on a line */
	void	   *leaves_memory;	/* they are somewhere in */
	char	   *buffers;		/* mapped: the readers', or NULL */
	int			together;		/* so many are named at once */
	FmsUpcoming *named;			/* [together], not yet handed out */
	int			nnamed;
	int			next_named;
	FmsUpcoming current;		/* with what is left of its chain */
	FmsNamed   *spare;			/* neither upcoming nor named */
};

static inline const FmsRecord *
named_record(const FmsNamed *named)
{
	return (const FmsRecord *) (named + 1);
}

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
	const FmsNamed *a_upcoming =
		order->leaves[fms_losertree_leaf(a)].upcoming;
	const FmsNamed *b_upcoming =
		order->leaves[fms_losertree_leaf(b)].upcoming;
	int			result = 0;

	/* at the ends both are, which are alike, and like nothing else */
	if (a_upcoming && b_upcoming)
		result = fms_keys_compare_rest(order->keys, named_record(a_upcoming),
									   named_record(b_upcoming));
	if (result == 0)
		return fms_losertree_later(a, b);
	return result < 0 ? b : a;
}

/* A copy with room for such a record; the spare one if that has it. */
static FmsNamed *
get_named(FmsOrder *order, Size record_bytes)
{
	FmsNamed   *named = order->spare;

	if (named)
	{
		order->spare = named->next;
		/* the one after it is wanted next */
		__builtin_prefetch(order->spare);
		if (named->room_bytes >= record_bytes)
			return named;
		pfree(named);
	}
	named = MemoryContextAlloc(order->context, sizeof(FmsNamed) +
							   record_bytes);
	named->room_bytes = record_bytes;
	return named;
}

static inline void
spare_named(FmsOrder *order, FmsNamed *named)
{
	if (unlikely(named->room_bytes > SPARE_MAX_BYTES))
	{
		pfree(named);
		return;
	}
	named->next = order->spare;
	order->spare = named;
}

/* Takes the next fence of the run from its reader. */
static void
take_fence(FmsOrder *order, int run)
{
	FmsOrderLeaf *leaf = &order->leaves[run];
	FmsFence	fence;
	FmsRecord  *record;

	if (!fms_fence_reader_peek(leaf->reader, &fence))
	{
		leaf->upcoming = NULL;
		leaf->node = fms_losertree_end(run);
		return;
	}

	leaf->upcoming = get_named(order, fms_fence_record_bytes(&fence));
	leaf->upcoming->next = NULL;
	leaf->upcoming_nblocks = fence.nblocks;
	leaf->upcoming_is_long = leaf->upcoming->room_bytes > SPARE_MAX_BYTES;
	record = (FmsRecord *) (leaf->upcoming + 1);
	fms_fence_record(&fence, record);
	leaf->node = fms_losertree_node(fms_record_prefix(record),
									fms_record_prefix_rest(record), run);
	fms_fence_reader_step(leaf->reader, &fence);
}

/* Passes the fences of blocks that the merge has asked for before. */
static void
skip_fences(FmsOrderLeaf *leaf, const FmsPosition *from)
{
	uint64		first_not_asked = from->block + (from->record >= 0 ? 1 : 0);
	uint64		block = 0;
	FmsFence	fence;

	while (block < first_not_asked &&
		   fms_fence_reader_peek(leaf->reader, &fence))
	{
		block += fence.nblocks;
		fms_fence_reader_step(leaf->reader, &fence);
	}
}

/*
 * How many of the run's blocks come first: that in whose middle the merge is,
 * or by last keys the next one, with all of its chain.
 */
static uint32
take_first_blocks(const FmsOrder *order, FmsOrderLeaf *leaf,
				  const FmsPosition *from)
{
	FmsFence	fence;

	if (from && from->record >= 0)
		return 1;
	if (order->by != FMS_ORDER_BY_LAST_KEYS ||
		!fms_fence_reader_peek(leaf->reader, &fence))
		return 0;
	fms_fence_reader_step(leaf->reader, &fence);
	return fence.nblocks;
}

/* The upcoming fence has been named. */
static void
keep_named(FmsOrder *order, FmsOrderLeaf *leaf)
{
	if (order->by == FMS_ORDER_BY_LAST_KEYS)
	{
		spare_named(order, leaf->upcoming);
		return;
	}
	if (leaf->newest)
		leaf->newest->next = leaf->upcoming;
	else
		leaf->oldest = leaf->upcoming;
	leaf->newest = leaf->upcoming;
}

static int
together_for(int nruns)
{
	return Max(TOGETHER_MIN, Min(nruns, TOGETHER_MAX));
}

Size
fms_order_bytes(const FmsFenceStore *store, int nruns)
{
	return sizeof(FmsOrder) + LINE_BYTES +
		together_for(nruns) * sizeof(FmsUpcoming) +
		nruns * (sizeof(FmsOrderLeaf) + sizeof(uint32) +
				 sizeof(FmsLoserNode) + fms_fence_reader_bytes(store));
}

FmsOrder *
fms_order_begin(FmsKeys *keys, FmsFenceStore *store, FmsOrderBy by,
				FmsCounters *counters, int nruns,
				const FmsFences *const *fences, const FmsPosition *from)
{
	instr_time	start = fms_clock_now();
	FmsOrder   *order = palloc0(sizeof(FmsOrder));
	Size		buffer_bytes = fms_fence_reader_buffer_bytes(store);
	int			run;

	Assert(nruns >= 1 && by != FMS_ORDER_NONE);

	order->by = by;
	order->context = CurrentMemoryContext;
	order->keys = keys;
	order->prefix_decides = fms_keys_prefix_decides(keys);
	order->store = store;
	order->counters = counters;
	order->nruns = nruns;
	order->together = together_for(nruns);
	order->named = palloc(order->together * sizeof(FmsUpcoming));
	order->leaves_memory = palloc0(LINE_BYTES + nruns * sizeof(FmsOrderLeaf));
	order->leaves = (FmsOrderLeaf *) TYPEALIGN(LINE_BYTES,
											   order->leaves_memory);
	order->first_blocks = palloc(nruns * sizeof(uint32));
	if (buffer_bytes > 0)
		order->buffers = fms_io_map(fms_fences_io(store),
									nruns * buffer_bytes);
	for (run = 0; run < nruns; run++)
	{
		FmsOrderLeaf *leaf = &order->leaves[run];

		leaf->reader = fms_fence_reader_open(store, fences[run],
											 order->buffers +
											 run * buffer_bytes);
		if (from)
			skip_fences(leaf, &from[run]);
		order->first_blocks[run] =
			take_first_blocks(order, leaf, from ? &from[run] : NULL);
		take_fence(order, run);
	}
	fms_losertree_build(&order->tree, palloc(nruns * sizeof(FmsLoserNode)),
						nruns, leaf_node,
						order->prefix_decides ? NULL : tie_loser, order);
	counters->order_us += fms_clock_since_us(start);
	return order;
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
		FmsOrderLeaf *leaf = &order->leaves[run];

		fms_fence_reader_close(leaf->reader);
		while (leaf->oldest)
			fms_order_demanded(order, run);
		if (leaf->upcoming)
			spare_named(order, leaf->upcoming);
	}
	while (order->spare)
	{
		FmsNamed   *named = order->spare;

		order->spare = named->next;
		pfree(named);
	}
	pfree(order->first_blocks);
	pfree(order->named);
	pfree(order->tree.nodes);
	pfree(order->leaves_memory);
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
	int			n = Min(order->together, order->nruns);
	FmsOrderLeaf *leaves[TOGETHER_MAX];
	int			i;

	for (i = 0; i < n; i++)
	{
		int			run = fms_losertree_leaf(tree->nodes[i]);

		leaves[i] = &order->leaves[run];
		__builtin_prefetch(leaves[i]);
		__builtin_prefetch(&tree->nodes[(order->nruns + run) / 2]);
	}
	for (i = 0; i < n; i++)
	{
		__builtin_prefetch(leaves[i]->reader);
		/* the line behind, too: it may begin anywhere in one */
		__builtin_prefetch((const char *) leaves[i]->reader + LINE_BYTES - 1);
	}
	for (i = 0; i < n; i++)
		fms_fence_reader_prefetch(leaves[i]->reader);
}

/* Names the next ones; none if all have been. */
static void
name_some(FmsOrder *order)
{
	instr_time	start = fms_clock_now();
	bool		is_long = false;

	order->next_named = 0;
	order->nnamed = 0;
	fetch_first(order);
	while (order->nnamed < order->together && !is_long)
	{
		int			run = fms_losertree_winner(&order->tree);
		FmsOrderLeaf *leaf = &order->leaves[run];

		if (leaf->upcoming == NULL)
			break;
		order->named[order->nnamed].run = run;
		order->named[order->nnamed].nblocks = leaf->upcoming_nblocks;
		order->nnamed++;
		is_long = leaf->upcoming_is_long;
		keep_named(order, leaf);
		take_fence(order, run);
		if (order->prefix_decides)
			fms_losertree_replay(&order->tree, leaf->node, NULL, order);
		else
			fms_losertree_replay(&order->tree, leaf->node, tie_loser, order);
	}
	order->counters->order_us += fms_clock_since_us(start);
}

int
fms_order_next(FmsOrder *order)
{
	int			run = next_first_block(order);

	if (run >= 0)
		return run;
	if (order->current.nblocks == 0)
	{
		if (order->next_named == order->nnamed)
			name_some(order);
		if (order->nnamed == 0)
			return -1;
		order->current = order->named[order->next_named++];
	}
	order->current.nblocks--;
	return order->current.run;
}

const FmsRecord *
fms_order_fence(FmsOrder *order, int run)
{
	const FmsOrderLeaf *leaf = &order->leaves[run];
	const FmsNamed *named = leaf->oldest ? leaf->oldest : leaf->upcoming;

	return named ? named_record(named) : NULL;
}

void
fms_order_demanded(FmsOrder *order, int run)
{
	FmsOrderLeaf *leaf = &order->leaves[run];
	FmsNamed   *named = leaf->oldest;

	Assert(named != NULL);
	leaf->oldest = named->next;
	if (leaf->oldest == NULL)
		leaf->newest = NULL;
	spare_named(order, named);
}

pg_noinline void
fms_order_report_disorder(int demanded, int found)
{
	ereport(ERROR,
			(errcode(ERRCODE_INVALID_FUNCTION_DEFINITION),
			 errmsg("the comparison of a sort key is not consistent"),
			 found < 0 ?
			 errdetail("The merge needs a block of run %d, but the block read order is at its end.",
					   demanded) :
			 errdetail("The merge needs a block of run %d, but the block read order has one of run %d.",
					   demanded, found),
			 errhint("The comparison function of the key's operator class contradicts itself.")));
}
