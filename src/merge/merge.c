/*-------------------------------------------------------------------------
 *
 * merge.c
 *	  The merge phase: n sorted runs to one sequence of tuples (Algorithm 2).
 *
 * A tree of losers over the runs.  A leaf's key is that of the run's head:
 *
 *	  HEAD		the run's next record, in its sort block
 *	  KEY		no block in memory; the recorded first key of the next one
 *				stands for it (in modes that read by first keys)
 *	  END		nothing left; goes after everything
 *
 *	            tree of losers
 *	           /    |    |    \
 *	        HEAD  KEY  HEAD   END
 *	         |     :     |
 *	      [block]  :  [block]
 *	               ..... not read, being read, or waiting in the queue
 *
 * When a HEAD wins, its record leaves.  When a KEY wins, its block is
 * due: the mode is asked for it, and the block's first record takes the first
 * key's place, with the same key, so nothing has to be played again.  A block
 * is thus asked for when its first tuple is the smallest left, which is what
 * makes the block read order exact.  (A merge that asks for a run's next block
 * when the last one is used up demands blocks in another order, and with few
 * assist blocks it stalls, or loses tuples.)
 *
 * A run often wins many times in a row: its keys are equal, or the runs hardly
 * overlap.  Then the runner-up is looked for once, and as long as the winner
 * stays before it nothing else is compared.  Merging runs that do not overlap
 * at all thus costs a comparison a record, whatever their number.
 *
 * The winner moves on at the next call, not before: the record handed out
 * lies in its sort block and has to stay there while the parent looks at it.
 *
 * Tuples that were still in memory when the input ended are one more leaf,
 * the last one, since they arrived last.  It has no blocks, and its records
 * are those of run formation.
 *
 * A record that extends over several blocks is put together in a buffer of
 * its run; its blocks are given back as they are copied.
 *
 * A block that holds chunks (compressed_chunk.c) stays as it was read, and its
 * run has a buffer into which one is unpacked after the other, when the
 * merge comes to
 * it.  So a leaf's records lie either in its block or in that buffer:
 *
 *	  plain		block   | header | r | r | r^| r | r |
 *	  compressed	block   | header | chunk | chunk^| chunk |
 *				buffer           | r | r | r^| r |
 *
 * Memory: palloc'd in the context of creation, but for the pool's blocks.
 * On ERROR the context and the channel are cleaned up by their owner.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "tape/compressed_chunk.h"
#include "base/clock.h"
#include "base/losertree.h"
#include "merge/merge.h"
#include "keys/offset_value.h"

/* So many wins in a row make looking for the runner-up worth it. */
#define WINS_IN_A_ROW		3

typedef enum FmsLeafState
{
	FMS_LEAF_HEAD,
	FMS_LEAF_FIRST_KEY,
	FMS_LEAF_END
} FmsLeafState;

typedef struct FmsLeaf
{
	const FmsRecord *record;	/* head or first key; NULL at the end */
	FmsLeafState state;

	/* where the next record is; frame NULL: in the next block */
	FmsFrame   *frame;
	char	   *bytes;			/* what holds it: the block, or the chunk that
								 * was unpacked last */
	uint32		at_bytes;		/* of the next record in these */
	uint32		end_bytes;		/* of the last one in these */
	uint32		chunk_at_bytes;	/* of the next chunk in the block; at
									 * its end: there is none */
	uint32		records_left;	/* in this block, the head not counted */
	uint32		blocks_left;	/* of the run, not asked for yet */
	uint32		freed;			/* blocks whose place on the tape is free */

	char	   *assembly;		/* head, if it did not fit into one block */
	Size		assembly_bytes;
	uint32		assembly_block; /* that such a head begins in */

	char	   *unpacked;		/* a chunk's records; NULL: none has come */
} FmsLeaf;

struct FmsMerge
{
	const FmsMergePlan *plan;
	FmsInput	input;
	FmsLoserTree tree;
	FmsLeaf    *leaves;			/* [nleaves] */
	int			nleaves;		/* the runs, and the rest if there is one */
	uint64		in_memory_record;	/* number of the in-memory run's head */
	bool		prefix_decides; /* fms_keys_prefix_decides() */
	FmsCodeBase left;			/* if not: the key of who was the winner */
	bool		handed_out;		/* the winner's record has left */
	bool		open;			/* and its tuple is being looked at */
	uint32		displaced;		/* if so: fms_record_open() */
	int			wins;			/* matches in a row that the winner has won */
	bool		runner_up_known;
	FmsLoserNode runner_up;		/* goes next after the winner */
	double		load_us;
};

Size
fms_merge_bytes(const FmsMode *mode, const FmsFirstKeyStore *first_keys,
				int nruns, uint32 assist_blocks, uint32 block_bytes,
				uint32 largest_bytes, bool compressed)
{
	Size		per_run = sizeof(FmsLeaf) + sizeof(FmsLoserNode) +
		sizeof(FmsRun *) + sizeof(uint32);

	if (largest_bytes > fms_block_room(block_bytes))
		per_run += largest_bytes;
	if (compressed)
		per_run += fms_compressed_chunk_capacity(block_bytes);
	return sizeof(FmsMerge) + nruns * per_run +
		(mode->order != FMS_ORDER_NONE && first_keys ?
		 fms_read_order_bytes(first_keys, mode->order, nruns) : 0) +
		mode->private_bytes(nruns, assist_blocks) +
		fms_pool_bytes(mode->blocks(nruns, assist_blocks), block_bytes);
}

/*
 * What a leaf plays with: the first bytes of its key if they are all of it,
 * else how that differs from the key that left before.
 */
static inline FmsLoserNode
leaf_node(void *arg, int run)
{
	const FmsMerge *merge = arg;
	const FmsRecord *record = merge->leaves[run].record;

	if (unlikely(record == NULL))
		return fms_losertree_end(run);
	return merge->prefix_decides ?
		fms_losertree_node(fms_record_prefix(record),
						   fms_record_prefix_rest(record), run) :
		fms_code_of(record, &merge->left, run);
}

/*
 * Which of two heads of the same code leaves later?  Ties: that of the later
 * run.
 */
static FmsLoserNode
tie_loser(void *arg, FmsLoserNode a, FmsLoserNode b)
{
	FmsMerge   *merge = arg;
	const FmsRecord *a_record =
		merge->leaves[fms_losertree_leaf(a)].record;
	const FmsRecord *b_record =
		merge->leaves[fms_losertree_leaf(b)].record;

	/* both are at their ends, which are alike, and like nothing else */
	if (a_record == NULL || b_record == NULL)
		return fms_losertree_later(a, b);
	return fms_code_tie_loser(merge->plan->keys, a, a_record, b, b_record);
}

/* Gets the run's next block from the mode, and stands at its beginning. */
static void
load_block(FmsMerge *merge, int run)
{
	FmsLeaf    *leaf = &merge->leaves[run];
	instr_time	start = fms_clock_now();
	const FmsBlockHeader *header;

	Assert(leaf->frame == NULL && leaf->blocks_left > 0);

	leaf->frame = merge->plan->mode->next(&merge->input, run);
	leaf->blocks_left--;
	fms_count(merge->plan->counters, FMS_COUNT_MERGE_BLOCKS_DONE, 1);
	fms_count_set(merge->plan->counters, FMS_COUNT_ASSIST_USED,
				  merge->input.assist_used);
	header = (const FmsBlockHeader *) leaf->frame->block;
	leaf->bytes = leaf->frame->block;
	leaf->at_bytes = sizeof(FmsBlockHeader);
	leaf->end_bytes = leaf->chunk_at_bytes = header->used_bytes;
	if (fms_block_is_compressed(header))
		leaf->end_bytes = leaf->chunk_at_bytes = leaf->at_bytes;
	leaf->records_left = header->records;
	merge->load_us += fms_clock_since_us(start);
}

/*
 * The run's blocks up to that number have been read.  In a merge that writes
 * as much they are free, in pieces or at their extent's end.
 *
 * Not in the last one: what writes nothing needs no room, and it may be begun
 * again.
 */
static void
free_blocks(FmsMerge *merge, FmsLeaf *leaf, uint32 number)
{
	const FmsMergePlan *plan = merge->plan;
	const FmsRun *run = merge->input.runs[leaf - merge->leaves];
	uint32		n = number + 1 - leaf->freed;
	Size		bytes = (Size) n * plan->block_bytes;

	if (!plan->frees ||
		(bytes < fms_tape_free_bytes(plan->tape) &&
		 n < fms_run_contiguous_blocks(run, leaf->freed)))
		return;
	fms_tape_free(plan->tape,
				  fms_run_block_offset(run, leaf->freed, plan->block_bytes),
				  bytes);
	leaf->freed += n;
}

static void
drop_block(FmsMerge *merge, FmsLeaf *leaf)
{
	instr_time	start = fms_clock_now();
	uint32		number = leaf->frame->number;

	merge->plan->mode->exhausted(&merge->input, leaf->frame);
	leaf->frame = NULL;
	free_blocks(merge, leaf, number);
	merge->load_us += fms_clock_since_us(start);
}

static inline const FmsBlockHeader *
block_header(const FmsLeaf *leaf)
{
	return (const FmsBlockHeader *) leaf->frame->block;
}

pg_noinline static void
report_bad_block(const FmsLeaf *leaf)
{
	const FmsBlockHeader *header = block_header(leaf);

	ereport(ERROR,
			(errcode(ERRCODE_DATA_CORRUPTED),
			 errmsg("sort temporary file contains an invalid record"),
			 errdetail("Block %u of run %u, offset %u.",
					   header->number, header->run,
					   leaf->bytes == leaf->frame->block ? leaf->at_bytes :
					   leaf->chunk_at_bytes)));
}

static void
make_assembly(FmsLeaf *leaf, Size bytes)
{
	if (leaf->assembly_bytes >= bytes)
		return;
	if (leaf->assembly)
		pfree(leaf->assembly);
	leaf->assembly = NULL;
	leaf->assembly = palloc_extended(bytes, MCXT_ALLOC_HUGE);
	leaf->assembly_bytes = bytes;
}

static inline const FmsCompressedChunk *
next_chunk(const FmsLeaf *leaf)
{
	return (const FmsCompressedChunk *)
		(leaf->frame->block + leaf->chunk_at_bytes);
}

/* What has been unpacked is used up: unpacks the next chunk of the block. */
pg_noinline static void
unpack_chunk(FmsMerge *merge, FmsLeaf *leaf)
{
	uint32		left = block_header(leaf)->used_bytes - leaf->chunk_at_bytes;
	uint32		capacity =
		fms_compressed_chunk_capacity(merge->plan->block_bytes);
	instr_time	start = fms_clock_now();

	if (leaf->unpacked == NULL)
		leaf->unpacked = palloc(capacity);
	if (!fms_compressed_chunk_unpack(next_chunk(leaf), left, leaf->unpacked,
									 capacity))
		report_bad_block(leaf);
	leaf->bytes = leaf->unpacked;
	leaf->at_bytes = 0;
	leaf->end_bytes = next_chunk(leaf)->record_bytes;
	leaf->chunk_at_bytes += fms_compressed_chunk_size(next_chunk(leaf));
	merge->load_us += fms_clock_since_us(start);
}

/* Passes a chunk all of whose records have left before, if it is one. */
static bool
pass_chunk(FmsLeaf *leaf, uint32 records)
{
	uint32		left = block_header(leaf)->used_bytes - leaf->chunk_at_bytes;

	if (leaf->at_bytes != leaf->end_bytes ||
		left < sizeof(FmsCompressedChunk) ||
		left < fms_compressed_chunk_size(next_chunk(leaf)) ||
		next_chunk(leaf)->records > records)
		return false;
	leaf->records_left -= next_chunk(leaf)->records;
	leaf->chunk_at_bytes += fms_compressed_chunk_size(next_chunk(leaf));
	return true;
}

/*
 * Puts together a record that begins here and goes on in the next blocks.
 * Afterwards the leaf stands behind its end, in the last of them.
 */
static const FmsRecord *
assemble(FmsMerge *merge, int run, uint32 size_bytes)
{
	FmsLeaf    *leaf = &merge->leaves[run];
	uint32		copied = leaf->end_bytes - leaf->at_bytes;

	/* believed, a damaged size could ask for any amount of memory */
	if (size_bytes > merge->input.runs[run]->largest_bytes)
		report_bad_block(leaf);
	make_assembly(leaf, size_bytes);
	leaf->assembly_block = block_header(leaf)->number;
	memcpy(leaf->assembly, leaf->frame->block + leaf->at_bytes, copied);

	while (copied < size_bytes)
	{
		uint32		piece;

		drop_block(merge, leaf);
		if (leaf->blocks_left == 0)
			ereport(ERROR,
					(errcode(ERRCODE_DATA_CORRUPTED),
					 errmsg("sort temporary file ends inside a record")));
		load_block(merge, run);
		piece = block_header(leaf)->continued_bytes;
		if (piece == 0 || piece > size_bytes - copied)
			report_bad_block(leaf);
		memcpy(leaf->assembly + copied,
			   leaf->frame->block + leaf->at_bytes, piece);
		copied += piece;
		leaf->at_bytes += piece;
	}
	return (const FmsRecord *) leaf->assembly;
}

/* Makes a record what stands for the run in the tree. */
static inline void
set_record(FmsMerge *merge, int run, FmsLeafState state,
		   const FmsRecord *record)
{
	FmsLeaf    *leaf = &merge->leaves[run];

	leaf->state = state;
	leaf->record = record;
}

/* Nothing is left of the run: it goes after every record. */
static void
set_end(FmsMerge *merge, int run)
{
	FmsLeaf    *leaf = &merge->leaves[run];

	leaf->state = FMS_LEAF_END;
	leaf->record = NULL;
}

/* Makes the next record of the leaf's block its head. */
static inline void
take_record(FmsMerge *merge, int run)
{
	FmsLeaf    *leaf = &merge->leaves[run];
	const FmsRecord *record;
	uint32		left;
	uint32		bytes;

	if (unlikely(leaf->at_bytes == leaf->end_bytes))
		unpack_chunk(merge, leaf);
	left = leaf->end_bytes - leaf->at_bytes;
	record = (const FmsRecord *) (leaf->bytes + leaf->at_bytes);
	leaf->records_left--;
	if (unlikely(left < sizeof(FmsRecord) || !fms_record_is_sane(record)))
		report_bad_block(leaf);
	bytes = fms_record_bytes(record);
	if (likely(bytes <= left))
	{
		leaf->at_bytes += bytes;
		/* the next one's key will be wanted when this one has left */
		__builtin_prefetch(leaf->bytes + leaf->at_bytes);
	}
	else if (leaf->records_left == 0 && leaf->bytes == leaf->frame->block)
		record = assemble(merge, run, bytes);
	else
		report_bad_block(leaf);

	set_record(merge, run, FMS_LEAF_HEAD, record);
}

/* The block due to the run arrives; its first record becomes the head. */
static void
enter_block(FmsMerge *merge, int run)
{
	FmsLeaf    *leaf = &merge->leaves[run];

	load_block(merge, run);
	if (leaf->records_left == 0 || block_header(leaf)->continued_bytes != 0)
		report_bad_block(leaf);
	take_record(merge, run);
}

/*
 * The merge goes on in the middle of a block: reads it again, and passes the
 * records that have left before.
 */
static void
enter_block_again(FmsMerge *merge, int run, int32 nth)
{
	FmsLeaf    *leaf = &merge->leaves[run];
	uint32		passed = 0;

	load_block(merge, run);
	leaf->at_bytes += block_header(leaf)->continued_bytes;
	if (leaf->records_left <= (uint32) nth)
		report_bad_block(leaf);
	while (pass_chunk(leaf, nth - passed))
		passed = block_header(leaf)->records - leaf->records_left;
	for (; passed <= (uint32) nth; passed++)
		take_record(merge, run);
}

/*
 * The run has no block in memory: what stands for it in the tree now?  If a
 * damaged record has taken more or fewer blocks than it was written in, first
 * keys and blocks no longer go together.
 */
static void
stand_in(FmsMerge *merge, int run)
{
	FmsLeaf    *leaf = &merge->leaves[run];
	const FmsRecord *first_key;

	if (leaf->blocks_left == 0)
		set_end(merge, run);
	else if (merge->plan->mode->order == FMS_ORDER_BY_FIRST_KEYS)
	{
		first_key = fms_read_order_first_key(merge->input.order, run);
		if (unlikely(first_key == NULL))
			fms_tape_report_corrupted(merge->plan->tape,
									  psprintf(_("Run %u has more blocks than the block read order."),
											   merge->input.runs[run]->id));
		set_record(merge, run, FMS_LEAF_FIRST_KEY, first_key);
	}
	else
		enter_block(merge, run);
}

/* The record of that number of the rest becomes its head. */
static void
take_from_memory(FmsMerge *merge, uint64 position)
{
	const FmsFormation *rest = merge->plan->in_memory_run;

	merge->in_memory_record = position;
	if (position < fms_formation_count(rest))
		set_record(merge, merge->input.nruns, FMS_LEAF_HEAD,
				   fms_formation_get(rest, position));
	else
		set_end(merge, merge->input.nruns);
}

/* Moves on from the head that was handed out. */
static inline void
advance(FmsMerge *merge, int run)
{
	FmsLeaf    *leaf = &merge->leaves[run];

	if (unlikely(run == merge->input.nruns))
		take_from_memory(merge, merge->in_memory_record + 1);
	else if (likely(leaf->records_left > 0))
		take_record(merge, run);
	else
	{
		drop_block(merge, leaf);
		stand_in(merge, run);
	}
}

/* Stands at the run's beginning, or where an earlier merge stood. */
static void
begin_run(FmsMerge *merge, int run, const FmsPosition *from)
{
	FmsLeaf    *leaf = &merge->leaves[run];

	leaf->blocks_left = merge->input.runs[run]->nblocks -
		(from ? from->block : 0);
	if (from && from->record >= 0)
		enter_block_again(merge, run, from->record);
	else
		stand_in(merge, run);
}

FmsMerge *
fms_merge_begin(const FmsMergePlan *plan, int nruns, FmsRun **runs,
				const FmsPosition *from)
{
	FmsMerge   *merge = palloc0(sizeof(FmsMerge));
	FmsInput   *input = &merge->input;
	instr_time	start = fms_clock_now();
	int			run;

	Assert(nruns >= 1);

	merge->plan = plan;
	merge->prefix_decides = fms_keys_prefix_decides(plan->keys);
	merge->nleaves = nruns + (plan->in_memory_run ? 1 : 0);
	merge->leaves = palloc0(merge->nleaves * sizeof(FmsLeaf));
	input->nruns = nruns;
	input->runs = runs;
	input->next_block = palloc(nruns * sizeof(uint32));
	for (run = 0; run < nruns; run++)
		input->next_block[run] = from ? from[run].block : 0;
	input->assist_blocks = plan->assist_blocks;
	input->assist_first = plan->assist_first;
	input->pool = fms_pool_create(plan->io, plan->tape, plan->block_bytes,
								  plan->mode->blocks(nruns,
													 plan->assist_blocks),
								  plan->writer_bytes);
	if (plan->mode->order != FMS_ORDER_NONE)
	{
		const FmsFirstKeys **first_keys =
			palloc(nruns * sizeof(FmsFirstKeys *));

		for (run = 0; run < nruns; run++)
			first_keys[run] = &runs[run]->first_keys;
		input->order = fms_read_order_begin(plan->keys, plan->first_keys,
											plan->mode->order, plan->counters,
											nruns, first_keys, from);
		pfree(first_keys);
	}

	plan->mode->begin(input);
	merge->load_us += fms_clock_since_us(start);
	for (run = 0; run < nruns; run++)
		begin_run(merge, run, from ? &from[run] : NULL);
	if (plan->in_memory_run)
		take_from_memory(merge, from ? from[nruns].in_memory_record : 0);
	fms_losertree_build(&merge->tree,
						palloc(merge->nleaves * sizeof(FmsLoserNode)),
						merge->nleaves, leaf_node,
						merge->prefix_decides ? NULL : tie_loser, merge);
	return merge;
}

/*
 * The winner's new head: does it leave before the runner-up?  If only a new
 * code for that could tell, no.
 */
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

/*
 * The winner's head has changed: who is the winner now?  `tie_loser` is a
 * constant.
 */
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

static inline void
play(FmsMerge *merge, int run)
{
	if (merge->prefix_decides)
		play_by(merge, run, NULL);
	else
		play_by(merge, run, tie_loser);
}

/* The parent has done with the tuple. */
static inline void
close_record(FmsMerge *merge)
{
	int			run = fms_losertree_winner(&merge->tree);

	if (!merge->open)
		return;
	merge->open = false;
	fms_record_close(merge->leaves[run].record, merge->displaced);
}

/* Moves on from the record handed out last, if that has not been done. */
static inline void
move_on(FmsMerge *merge)
{
	int			run = fms_losertree_winner(&merge->tree);

	if (!merge->handed_out)
		return;
	close_record(merge);
	merge->handed_out = false;
	if (!merge->prefix_decides)
		fms_code_set_base(&merge->left, merge->leaves[run].record);
	advance(merge, run);
	play(merge, run);
}

static FmsPosition
leaf_position(const FmsLeaf *leaf, uint32 nblocks)
{
	FmsPosition position = {.block = nblocks - leaf->blocks_left,
	.record = -1};

	if (leaf->state != FMS_LEAF_HEAD)
		return position;
	if ((const char *) leaf->record == leaf->assembly)
		position.block = leaf->assembly_block;
	else
	{
		const FmsBlockHeader *header = block_header(leaf);
		uint32		nth = header->records - leaf->records_left - 1;

		position.block = header->number;
		/* the first one of a block needs no block that is read again */
		if (nth > 0 || header->continued_bytes > 0)
			position.record = nth;
	}
	return position;
}

void
fms_merge_tell(FmsMerge *merge, FmsPosition *positions)
{
	int			run;

	move_on(merge);
	for (run = 0; run < merge->input.nruns; run++)
		positions[run] = leaf_position(&merge->leaves[run],
									   merge->input.runs[run]->nblocks);
	positions[run].in_memory_record = merge->in_memory_record;
}

const FmsRecord *
fms_merge_next(FmsMerge *merge)
{
	int			run;
	FmsLeaf    *leaf;

	move_on(merge);
	run = fms_losertree_winner(&merge->tree);
	leaf = &merge->leaves[run];
	if (leaf->state == FMS_LEAF_END)
		return NULL;
	if (leaf->state == FMS_LEAF_FIRST_KEY)
		enter_block(merge, run);
	merge->handed_out = true;
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
	int			run;

	/* what is in memory may be merged again */
	close_record(merge);
	for (run = 0; run < merge->input.nruns; run++)
	{
		if (merge->leaves[run].assembly)
			pfree(merge->leaves[run].assembly);
		if (merge->leaves[run].unpacked)
			pfree(merge->leaves[run].unpacked);
	}
	fms_pool_destroy(merge->input.pool);
	merge->plan->mode->end(&merge->input);
	if (merge->input.order)
		fms_read_order_end(merge->input.order);
	pfree(merge->tree.nodes);
	pfree(merge->input.next_block);
	pfree(merge->leaves);
	pfree(merge);
}

double
fms_merge_load_us(const FmsMerge *merge)
{
	return merge->load_us;
}
