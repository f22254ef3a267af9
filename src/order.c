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
 *   block, beside the fences themselves.
 *
 * - The keys are kept until their block is asked for.  While a run's next
 *   block has not been read, its fence takes the block's place in the merge's
 *   tree of losers; the block is waited for only when that place wins.  The
 *   demand is then exactly this order, so m <= d (the paper's Theorem 1)
 *   holds by construction, and ties between runs, which decide stability,
 *   are decided exactly.
 *
 * A record longer than a block begins a chain of blocks, which has one fence
 * and counts as that many entries: nothing sorts between the beginning of a
 * record and its continuation.
 *
 * Fences are packed into chunks, one list of chunks per run.  Memory lies in
 * the context the order was made in; nothing else is owned, so there is
 * nothing to do on ERROR.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "clock.h"
#include "losertree.h"
#include "order.h"

/* First chunk of a run; later ones double up to the maximum. */
#define CHUNK_MIN_BYTES		512
#define CHUNK_MAX_BYTES		8192

/* One entry: its record (a fence) follows it. */
typedef struct FmsFence
{
	uint32		nblocks;		/* >= 1; > 1: a chain */
	uint32		unused;			/* keeps the record MAXALIGNed */
} FmsFence;

StaticAssertDecl(sizeof(FmsFence) % MAXIMUM_ALIGNOF == 0,
				 "records must stay aligned behind their fence header");

typedef struct FmsFenceChunk
{
	struct FmsFenceChunk *next;
	Size		size_bytes;		/* room for fences */
	Size		used_bytes;
} FmsFenceChunk;

struct FmsOrder
{
	MemoryContext context;
	FmsKeys    *keys;
	FmsCounters *counters;
	Size		memory_bytes;	/* of all chunks */
};

/* A place in a run's list of fences. */
typedef struct FmsFencePlace
{
	const FmsFenceChunk *chunk; /* NULL: after the last fence */
	Size		at_bytes;		/* < chunk->used_bytes */
} FmsFencePlace;

/* One run as a leaf of the tree. */
typedef struct FmsOrderLeaf
{
	uint64		prefix;			/* of the fence at `ahead` */
	FmsFencePlace ahead;		/* next fence to be named */
	FmsFencePlace behind;		/* next fence to be demanded; <= ahead */
} FmsOrderLeaf;

struct FmsOrderCursor
{
	FmsOrder   *order;
	FmsLoserTree tree;
	FmsOrderLeaf *leaves;
	int			current;		/* the run being named, -1 at the start */
	uint32		blocks_left;	/* of its chain */
};

static inline char *
chunk_data(const FmsFenceChunk *chunk)
{
	return (char *) chunk + MAXALIGN(sizeof(FmsFenceChunk));
}

static inline const FmsFence *
fence_at(const FmsFencePlace *place)
{
	return (const FmsFence *) (chunk_data(place->chunk) + place->at_bytes);
}

static inline const FmsRecord *
fence_record(const FmsFence *fence)
{
	return (const FmsRecord *) (fence + 1);
}

static void
first_place(FmsFencePlace *place, const FmsFences *fences)
{
	place->chunk = fences->first;
	place->at_bytes = 0;
}

static inline void
next_place(FmsFencePlace *place)
{
	place->at_bytes += sizeof(FmsFence) +
		fence_record(fence_at(place))->size_bytes;
	if (place->at_bytes >= place->chunk->used_bytes)
	{
		place->chunk = place->chunk->next;
		place->at_bytes = 0;
	}
}

FmsOrder *
fms_order_create(FmsKeys *keys, FmsCounters *counters)
{
	FmsOrder   *order = palloc0(sizeof(FmsOrder));

	order->context = CurrentMemoryContext;
	order->keys = keys;
	order->counters = counters;
	return order;
}

Size
fms_order_memory_bytes(const FmsOrder *order)
{
	return order->memory_bytes;
}

/* Room for one more fence of that size at the end of the list. */
static FmsFence *
allocate_fence(FmsOrder *order, FmsFences *fences, Size bytes)
{
	FmsFenceChunk *chunk = fences->last;
	FmsFence   *fence;

	if (chunk == NULL || chunk->size_bytes - chunk->used_bytes < bytes)
	{
		Size		size = chunk == NULL ? CHUNK_MIN_BYTES :
			Min(CHUNK_MAX_BYTES, 2 * chunk->size_bytes);

		size = Max(size, bytes);
		chunk = MemoryContextAlloc(order->context,
								   MAXALIGN(sizeof(FmsFenceChunk)) + size);
		chunk->next = NULL;
		chunk->size_bytes = size;
		chunk->used_bytes = 0;
		order->memory_bytes += MAXALIGN(sizeof(FmsFenceChunk)) + size;
		if (fences->last)
			fences->last->next = chunk;
		else
			fences->first = chunk;
		fences->last = chunk;
	}

	fence = (FmsFence *) (chunk_data(chunk) + chunk->used_bytes);
	chunk->used_bytes += bytes;
	return fence;
}

void
fms_order_note(FmsOrder *order, FmsFences *fences, const FmsRecord *record,
			   uint32 nblocks)
{
	instr_time	start = fms_clock_now();
	FmsRecord  *key = fms_keys_make_fence(order->keys, record);
	FmsFence   *fence = allocate_fence(order, fences,
									   sizeof(FmsFence) + key->size_bytes);

	Assert(nblocks >= 1);
	fence->nblocks = nblocks;
	fence->unused = 0;
	memcpy(fence + 1, key, key->size_bytes);
	fences->count++;
	pfree(key);
	order->counters->order_us += fms_clock_since_us(start);
}

void
fms_order_forget(FmsOrder *order, FmsFences *fences)
{
	FmsFenceChunk *chunk = fences->first;

	while (chunk)
	{
		FmsFenceChunk *next = chunk->next;

		order->memory_bytes -= MAXALIGN(sizeof(FmsFenceChunk)) +
			chunk->size_bytes;
		pfree(chunk);
		chunk = next;
	}
	memset(fences, 0, sizeof(*fences));
}

/* Does run a's next fence go before run b's?  Ties: the earlier run. */
static inline bool
leaf_before(void *arg, int a, int b)
{
	FmsOrderCursor *cursor = arg;
	const FmsOrderLeaf *a_leaf = &cursor->leaves[a];
	const FmsOrderLeaf *b_leaf = &cursor->leaves[b];
	int			order;

	if (a_leaf->prefix != b_leaf->prefix)
		return a_leaf->prefix < b_leaf->prefix;
	/* a run at its end has the largest prefix, but so may a fence */
	if (a_leaf->ahead.chunk == NULL || b_leaf->ahead.chunk == NULL)
		return a_leaf->ahead.chunk != NULL ||
			(b_leaf->ahead.chunk == NULL && a < b);
	order = fms_keys_compare_rest(cursor->order->keys,
								  fence_record(fence_at(&a_leaf->ahead)),
								  fence_record(fence_at(&b_leaf->ahead)));
	return order != 0 ? order < 0 : a < b;
}

static inline void
load_prefix(FmsOrderLeaf *leaf)
{
	leaf->prefix = leaf->ahead.chunk == NULL ? PG_UINT64_MAX :
		fms_record_prefix(fence_record(fence_at(&leaf->ahead)));
}

Size
fms_order_cursor_bytes(int nruns)
{
	return sizeof(FmsOrderCursor) +
		nruns * (sizeof(FmsOrderLeaf) + sizeof(int));
}

FmsOrderCursor *
fms_order_begin(FmsOrder *order, int nruns, const FmsFences *const *fences)
{
	instr_time	start = fms_clock_now();
	FmsOrderCursor *cursor = palloc0(sizeof(FmsOrderCursor));
	int			run;

	Assert(nruns >= 1);

	cursor->order = order;
	cursor->leaves = palloc0(nruns * sizeof(FmsOrderLeaf));
	cursor->current = -1;
	for (run = 0; run < nruns; run++)
	{
		first_place(&cursor->leaves[run].ahead, fences[run]);
		first_place(&cursor->leaves[run].behind, fences[run]);
		load_prefix(&cursor->leaves[run]);
	}
	fms_losertree_build(&cursor->tree, palloc(nruns * sizeof(int)), nruns,
						leaf_before, cursor);
	order->counters->order_us += fms_clock_since_us(start);
	return cursor;
}

void
fms_order_end(FmsOrderCursor *cursor)
{
	pfree(cursor->tree.nodes);
	pfree(cursor->leaves);
	pfree(cursor);
}

int
fms_order_next(FmsOrderCursor *cursor)
{
	instr_time	start;
	FmsOrderLeaf *leaf;

	if (cursor->blocks_left > 0)
	{
		cursor->blocks_left--;
		return cursor->current;
	}

	start = fms_clock_now();
	if (cursor->current >= 0)
	{
		/* only now step over the fence that was named last */
		leaf = &cursor->leaves[cursor->current];
		next_place(&leaf->ahead);
		load_prefix(leaf);
		fms_losertree_replay(&cursor->tree, leaf_before, cursor);
	}
	cursor->current = fms_losertree_winner(&cursor->tree);
	leaf = &cursor->leaves[cursor->current];
	if (leaf->ahead.chunk == NULL)
		cursor->current = -1;
	else
		cursor->blocks_left = fence_at(&leaf->ahead)->nblocks - 1;
	cursor->order->counters->order_us += fms_clock_since_us(start);
	return cursor->current;
}

const FmsRecord *
fms_order_fence(FmsOrderCursor *cursor, int run)
{
	FmsOrderLeaf *leaf = &cursor->leaves[run];

	if (leaf->behind.chunk == NULL)
		return NULL;
	return fence_record(fence_at(&leaf->behind));
}

void
fms_order_demanded(FmsOrderCursor *cursor, int run)
{
	FmsOrderLeaf *leaf = &cursor->leaves[run];

	Assert(leaf->behind.chunk != NULL);
	next_place(&leaf->behind);
}
