/*-------------------------------------------------------------------------
 *
 * merge.c
 *	  The merge phase: n sorted runs become one sequence of tuples
 *	  (Algorithm 2).
 *
 * A tree of losers compares the leaves' records.  A leaf's record is its head,
 * which is the next record in its sort block, or the recorded first key of a
 * block that has not been asked for:
 *
 *	        head   key  head   NULL: the run has ended
 *	         |     :     |
 *	      [block]  :  [block]
 *	               ..... not read, being read, or waiting as assist block
 *
 * When a head wins, its record leaves.  When a first key wins, the merge asks
 * the mode for the key's block.  The block's first record has the same key, so
 * the tree stays valid.
 *
 * The winner's leaf moves on at the next call, since the parent reads the
 * record in the sort block until then.
 *
 * Memory: palloc'd in the context of creation, except the input's blocks.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "base/clock.h"
#include "base/losertree.h"
#include "keys/offset_value.h"
#include "merge/leaf.h"
#include "merge/merge.h"
#include "tape/block.h"

/* Wins in a row after which records are compared with the runner-up alone. */
#define WINS_IN_A_ROW		3

struct FmsMerge
{
	FmsLeaves	leaves;
	FmsLoserTree tree;
	FmsGroupFilter *filter;		/* NULL also in a pass, whose writer has it */
	bool		prefix_decides; /* fms_keys_prefix_decides() */
	FmsCodeBase left;			/* otherwise: the key that left last */
	bool		handed_out;		/* the winner's record has left */
	bool		open;			/* and the parent looks at its tuple */
	uint32		displaced;		/* then: of fms_record_open() */
	int			wins;			/* matches in a row that the winner has won */
	bool		runner_up_known;
	FmsLoserNode runner_up;		/* goes next after the winner */
};

Size
fms_merge_bytes(const FmsMode *mode, const FmsFirstKeyMemory *first_keys,
				int nruns, uint32 assist_blocks, uint32 block_bytes,
				uint32 largest_bytes, bool compressed)
{
	Size		per_run = sizeof(FmsLeaf) + sizeof(FmsLoserNode) +
		FMS_PACKED_BUFFER_BYTES;

	if (largest_bytes > fms_block_room(block_bytes))
		per_run += largest_bytes;
	if (compressed)
		per_run += fms_compressed_chunk_capacity(block_bytes);
	return sizeof(FmsMerge) + nruns * per_run +
		(mode->order != FMS_ORDER_NONE && first_keys->share_bytes > 0 ?
		 fms_read_order_bytes(first_keys, mode->order, nruns) : 0) +
		fms_input_bytes(nruns, mode->blocks(nruns, assist_blocks),
						block_bytes);
}

/* Its key prefix if that decides, else its code against merge->left. */
static pg_attribute_always_inline FmsLoserNode
leaf_node(void *arg, int run)
{
	const FmsMerge *merge = arg;
	const FmsRecord *record = merge->leaves.leaf[run].record;

	if (unlikely(record == NULL))
		return fms_losertree_end(run);
	return merge->prefix_decides ?
		fms_losertree_node(fms_record_prefix(record),
						   fms_record_prefix_rest(record), run) :
		fms_code_of(record, &merge->left, run);
}

/* The loser of two nodes with the same code.  Ties: the later run loses. */
static FmsLoserNode
tie_loser(void *arg, FmsLoserNode a, FmsLoserNode b)
{
	FmsMerge   *merge = arg;
	const FmsLeaf *leaf = merge->leaves.leaf;
	const FmsRecord *a_record = leaf[fms_losertree_leaf(a)].record;
	const FmsRecord *b_record = leaf[fms_losertree_leaf(b)].record;

	/* only nodes of ended runs are equal then */
	if (a_record == NULL || b_record == NULL)
		return fms_losertree_later(a, b);
	return fms_code_tie_loser(merge->leaves.plan->keys, a, a_record,
							  b, b_record);
}

FmsMerge *
fms_merge_begin(const FmsMergePlan *plan, int nruns, FmsRun **runs,
				const FmsPosition *from)
{
	FmsMerge   *merge = palloc0(sizeof(FmsMerge));
	FmsLeaves  *leaves = &merge->leaves;
	instr_time	start = fms_clock_now();

	Assert(nruns >= 1);

	merge->filter = plan->frees ? NULL : fms_keys_group_filter(plan->keys);
	if (merge->filter)
		fms_group_filter_begin(merge->filter);
	merge->prefix_decides = fms_keys_prefix_decides(plan->keys);
	leaves->plan = plan;
	leaves->count = nruns + (plan->in_memory_run ? 1 : 0);
	leaves->leaf = palloc0(leaves->count * sizeof(FmsLeaf));
	fms_input_init(&leaves->input, plan, nruns, runs, from);
	if (plan->mode->begin)
		plan->mode->begin(&leaves->input);
	leaves->load_us += fms_clock_since_us(start);
	for (int run = 0; run < nruns; run++)
		fms_leaf_begin(leaves, run, from ? &from[run] : NULL);
	if (plan->in_memory_run)
		fms_leaf_take_in_memory(leaves,
								from ? from[nruns].in_memory_record : 0);
	fms_losertree_build(&merge->tree,
						palloc(leaves->count * sizeof(FmsLoserNode)),
						leaves->count, leaf_node,
						merge->prefix_decides ? NULL : tie_loser, merge);
	return merge;
}

/* Does the head still go before the runner-up?  False if that needs a code. */
static pg_attribute_always_inline bool
stays_first(FmsMerge *merge, FmsLoserNode node, FmsTieLoser tie_loser)
{
	FmsLoserNode other = merge->runner_up;

	if (tie_loser == NULL || !fms_losertree_tied(node, other))
		return fms_losertree_before(node, other);
	return fms_code_is_lasting(node) &&
		fms_losertree_leaf(tie_loser(merge, node, other)) !=
		fms_losertree_leaf(node);
}

static pg_attribute_always_inline void
play_by(FmsMerge *merge, int run, FmsTieLoser tie_loser)
{
	FmsLoserTree *tree = &merge->tree;
	FmsLoserNode node = leaf_node(merge, run);

	if (merge->runner_up_known)
	{
		if (stays_first(merge, node, tie_loser))
			return;
		merge->runner_up_known = false;
		merge->wins = 0;
	}
	fms_losertree_replay(tree, node, tie_loser, merge);
	if (fms_losertree_winner(tree) != run)
		merge->wins = 0;
	else if (++merge->wins >= WINS_IN_A_ROW && tree->nleaves > 1)
	{
		merge->runner_up = fms_losertree_runner_up(tree, tie_loser, merge);
		merge->runner_up_known = true;
	}
}

/* The same; tie_loser becomes a constant, for the compiler to inline. */
static void
play(FmsMerge *merge, int run)
{
	if (merge->prefix_decides)
		play_by(merge, run, NULL);
	else
		play_by(merge, run, tie_loser);
}

/* Restores the record whose tuple the parent has looked at. */
static inline void
close_record(FmsMerge *merge)
{
	int			run = fms_losertree_winner(&merge->tree);

	if (!merge->open)
		return;
	merge->open = false;
	fms_record_close(merge->leaves.leaf[run].record, merge->displaced);
}

/* Moves on from the record handed out last, unless that has been done. */
static pg_attribute_always_inline void
move_on(FmsMerge *merge)
{
	int			run = fms_losertree_winner(&merge->tree);

	if (!merge->handed_out)
		return;
	close_record(merge);
	merge->handed_out = false;
	if (!merge->prefix_decides)
		fms_code_set_base(&merge->left, merge->leaves.leaf[run].record);
	fms_leaf_advance(&merge->leaves, run);
	play(merge, run);
}

void
fms_merge_tell(FmsMerge *merge, FmsPosition *positions)
{
	int			nruns = merge->leaves.input.nruns;

	move_on(merge);
	for (int run = 0; run < nruns; run++)
		positions[run] = fms_leaf_position(&merge->leaves, run);
	positions[nruns].in_memory_record = merge->leaves.in_memory_record;
}

const FmsRecord *
fms_merge_next(FmsMerge *merge)
{
	int			run;
	FmsLeaf    *leaf;

	do
	{
		move_on(merge);
		run = fms_losertree_winner(&merge->tree);
		leaf = &merge->leaves.leaf[run];
		if (leaf->record == NULL)
			return NULL;
		if (leaf->is_first_key)
			fms_leaf_enter_block(&merge->leaves, run);
		merge->handed_out = true;
	} while (unlikely(merge->filter) &&
			 !fms_group_filter_wants(merge->filter, leaf->record));
	return leaf->record;
}

MinimalTuple
fms_merge_next_tuple(FmsMerge *merge)
{
	const FmsRecord *record = fms_merge_next(merge);

	if (record == NULL)
		return NULL;
	merge->displaced = fms_record_open(record);
	merge->open = true;
	return fms_record_tuple(record);
}

void
fms_merge_end(FmsMerge *merge)
{
	/* the in-memory run may be merged again */
	close_record(merge);
	for (int i = 0; i < merge->leaves.count; i++)
		fms_leaf_end(&merge->leaves.leaf[i]);
	fms_input_end(&merge->leaves.input);
	pfree(merge->tree.nodes);
	pfree(merge->leaves.leaf);
	pfree(merge);
}

double
fms_merge_load_us(const FmsMerge *merge)
{
	return merge->leaves.load_us;
}
