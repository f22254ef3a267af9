/*-------------------------------------------------------------------------
 *
 * leaf.c
 *	  The leaves of the merge: the input of one run each, record by record.
 *
 * A leaf gets its run's blocks from the mode.  In a plain block, records lie
 * one behind the other.  The leaf unpacks packed records (packed_record.c) and
 * compressed chunks (compressed_chunk.c) one by one into a buffer:
 *
 *	  plain		block   | header | r | r | r^| r | r |
 *	  packed	block   | header | p | p | p^| p | p |
 *				buffer           | r^|
 *	  compressed	block   | header | chunk | chunk^| chunk |
 *				buffer           | r | r | r^| r |
 *
 * A record that extends over several blocks is assembled in another buffer.
 *
 * The in-memory run has the tuples that were still in memory when the input
 * ended.  It is the last leaf, since its tuples arrived last.  Its records are
 * those of run formation, valid until the next one.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "base/clock.h"
#include "merge/leaf.h"
#include "tape/block.h"

static inline const FmsBlockHeader *
block_header(const FmsLeaf *leaf)
{
	return (const FmsBlockHeader *) leaf->frame->block;
}

void
fms_leaf_report_bad_block(const FmsLeaf *leaf)
{
	const FmsBlockHeader *header = block_header(leaf);

	ereport(ERROR,
			(errcode(ERRCODE_DATA_CORRUPTED),
			 errmsg("sort temporary file contains an invalid record"),
			 errdetail("The record is in block %u of run %u, at offset %u.",
					   header->number, header->run,
					   leaf->bytes == leaf->chunk ? leaf->chunk_at_bytes :
					   (uint32) (leaf->bytes - leaf->frame->block) +
					   leaf->at_bytes)));
}

/* Gets the run's next block from the mode; the leaf is at its beginning. */
static void
load_block(FmsLeaves *leaves, int run)
{
	FmsLeaf    *leaf = &leaves->leaf[run];
	const FmsMergePlan *plan = leaves->plan;
	instr_time	start = fms_clock_now();
	const FmsBlockHeader *header;

	Assert(leaf->frame == NULL && leaf->blocks_left > 0);

	leaf->frame = plan->mode->next(&leaves->input, run);
	Assert(leaf->frame->run == run);
	leaf->blocks_left--;
	fms_count(plan->counters, FMS_COUNT_MERGE_BLOCKS_DONE, 1);
	header = block_header(leaf);
	leaf->bytes = leaf->frame->block;
	leaf->at_bytes = sizeof(FmsBlockHeader);
	leaf->end_bytes = leaf->chunk_at_bytes = header->used_bytes;
	leaf->is_packed = header->magic == FMS_BLOCK_PACKED_MAGIC;
	if (header->magic == FMS_BLOCK_COMPRESSED_MAGIC)
		leaf->end_bytes = leaf->chunk_at_bytes = leaf->at_bytes;
	else if (leaf->is_packed)
	{
		leaf->bytes += sizeof(FmsBlockHeader);
		leaf->at_bytes = 0;
		leaf->end_bytes = fms_block_room(plan->block_bytes);
	}
	leaf->records_left = header->records;
	leaves->load_us += fms_clock_since_us(start);
}

/*
 * Frees the run's blocks up to number, in large pieces.  The last merge frees
 * nothing, since it writes nothing and may begin again.
 */
static void
free_blocks(FmsLeaves *leaves, int run_number, uint32 number)
{
	const FmsMergePlan *plan = leaves->plan;
	const FmsRun *run = leaves->input.runs[run_number];
	FmsLeaf    *leaf = &leaves->leaf[run_number];
	uint32		n = number + 1 - leaf->blocks_freed;
	Size		bytes = (Size) n * plan->block_bytes;

	if (!plan->frees ||
		(bytes < fms_tape_free_bytes(plan->tape) &&
		 n < fms_run_contiguous_blocks(run, leaf->blocks_freed)))
		return;
	fms_tape_free(plan->tape,
				  fms_run_block_address(run, leaf->blocks_freed,
										plan->block_bytes),
				  bytes);
	leaf->blocks_freed += n;
}

static void
drop_block(FmsLeaves *leaves, int run)
{
	FmsLeaf    *leaf = &leaves->leaf[run];
	instr_time	start = fms_clock_now();
	uint32		number = leaf->frame->number;

	leaves->plan->mode->exhausted(&leaves->input, leaf->frame);
	leaf->frame = NULL;
	free_blocks(leaves, run, number);
	leaves->load_us += fms_clock_since_us(start);
}

void
fms_leaf_unpack_chunk(FmsLeaves *leaves, int run)
{
	FmsLeaf    *leaf = &leaves->leaf[run];
	const FmsCompressedChunk *chunk = (const FmsCompressedChunk *)
		(leaf->frame->block + leaf->chunk_at_bytes);
	uint32		left = block_header(leaf)->used_bytes - leaf->chunk_at_bytes;
	uint32		capacity =
		fms_compressed_chunk_capacity(leaves->plan->block_bytes);
	instr_time	start = fms_clock_now();

	if (leaf->chunk == NULL)
		leaf->chunk = palloc(capacity);
	if (!fms_compressed_chunk_unpack(chunk, left, leaf->chunk, capacity))
		fms_leaf_report_bad_block(leaf);
	leaf->bytes = leaf->chunk;
	leaf->at_bytes = 0;
	leaf->end_bytes = chunk->record_bytes;
	leaf->chunk_at_bytes += fms_compressed_chunk_size(chunk);
	leaves->load_us += fms_clock_since_us(start);
}

const FmsRecord *
fms_leaf_unpack(FmsLeaves *leaves, int run)
{
	FmsLeaf    *leaf = &leaves->leaf[run];
	const FmsRecord *record;

	if (unlikely(leaf->unpacked == NULL))
		leaf->unpacked = palloc(FMS_PACKED_BUFFER_BYTES);
	record = fms_packed_read(leaves->plan->keys, leaf->bytes, &leaf->at_bytes,
							 leaf->end_bytes, leaf->unpacked);
	if (unlikely(record == NULL))
		fms_leaf_report_bad_block(leaf);
	/* the next one, which is copied once this one has left */
	__builtin_prefetch(leaf->bytes + leaf->at_bytes);
	__builtin_prefetch(leaf->bytes + leaf->at_bytes + 64);
	return record;
}

/* Assembles a record that goes on in the next blocks, and leaves it behind. */
const FmsRecord *
fms_leaf_assemble(FmsLeaves *leaves, int run, uint32 size_bytes)
{
	FmsLeaf    *leaf = &leaves->leaf[run];
	uint32		largest_bytes = leaves->input.runs[run]->largest_bytes;
	uint32		copied = leaf->end_bytes - leaf->at_bytes;

	/* only a damaged size is larger */
	if (size_bytes > largest_bytes)
		fms_leaf_report_bad_block(leaf);
	if (leaf->assembly == NULL)
		leaf->assembly = palloc_extended(largest_bytes, MCXT_ALLOC_HUGE);
	leaf->assembly_block = block_header(leaf)->number;
	memcpy(leaf->assembly, leaf->frame->block + leaf->at_bytes, copied);

	while (copied < size_bytes)
	{
		uint32		piece;

		drop_block(leaves, run);
		if (leaf->blocks_left == 0)
			ereport(ERROR,
					(errcode(ERRCODE_DATA_CORRUPTED),
					 errmsg("sort temporary file ends inside a record")));
		load_block(leaves, run);
		piece = block_header(leaf)->continued_bytes;
		if (piece == 0 || piece > size_bytes - copied)
			fms_leaf_report_bad_block(leaf);
		memcpy(leaf->assembly + copied,
			   leaf->frame->block + leaf->at_bytes, piece);
		copied += piece;
		leaf->at_bytes += piece;
	}
	return (const FmsRecord *) leaf->assembly;
}

void
fms_leaf_enter_block(FmsLeaves *leaves, int run)
{
	FmsLeaf    *leaf = &leaves->leaf[run];

	load_block(leaves, run);
	if (leaf->records_left == 0 || block_header(leaf)->continued_bytes != 0)
		fms_leaf_report_bad_block(leaf);
	fms_leaf_take_record(leaves, run);
}

/* Reads a block again and skips the nth records that have left before. */
static void
enter_block_again(FmsLeaves *leaves, int run, uint32 nth)
{
	FmsLeaf    *leaf = &leaves->leaf[run];
	uint32		skipped;

	load_block(leaves, run);
	leaf->at_bytes += block_header(leaf)->continued_bytes;
	if (leaf->records_left <= nth)
		fms_leaf_report_bad_block(leaf);
	for (skipped = 0; skipped <= nth; skipped++)
		fms_leaf_take_record(leaves, run);
}

/*
 * Sets the record of a leaf without a block.  If a damaged record has consumed
 * too few or too many blocks, blocks and first keys do not match here.
 */
static void
stand_in(FmsLeaves *leaves, int run)
{
	FmsLeaf    *leaf = &leaves->leaf[run];

	if (leaf->blocks_left == 0)
		leaf->record = NULL;
	else if (leaves->plan->mode->order == FMS_ORDER_BY_FIRST_KEYS)
	{
		leaf->record = fms_read_order_first_key(leaves->input.order, run);
		leaf->is_first_key = true;
		if (unlikely(leaf->record == NULL))
			fms_tape_report_corrupted(leaves->plan->tape, 0,
									  psprintf(_("Run %u has more blocks than the block read order."),
											   leaves->input.runs[run]->id));
	}
	else
		fms_leaf_enter_block(leaves, run);
}

void
fms_leaf_next_block(FmsLeaves *leaves, int run)
{
	drop_block(leaves, run);
	stand_in(leaves, run);
}

void
fms_leaf_take_in_memory(FmsLeaves *leaves, uint64 number)
{
	const FmsFormation *in_memory_run = leaves->plan->in_memory_run;

	leaves->in_memory_record = number;
	leaves->leaf[leaves->input.nruns].record =
		number < fms_formation_count(in_memory_run) ?
		fms_formation_get(in_memory_run, number) : NULL;
}

void
fms_leaf_begin(FmsLeaves *leaves, int run, const FmsPosition *from)
{
	FmsLeaf    *leaf = &leaves->leaf[run];

	leaf->blocks_left = leaves->input.runs[run]->nblocks -
		(from ? from->block : 0);
	if (from && from->record >= 0)
		enter_block_again(leaves, run, from->record);
	else
		stand_in(leaves, run);
}

FmsPosition
fms_leaf_position(const FmsLeaves *leaves, int run)
{
	const FmsLeaf *leaf = &leaves->leaf[run];
	FmsPosition position = {
		.block = leaves->input.runs[run]->nblocks - leaf->blocks_left,
		.record = -1
	};

	if (leaf->record == NULL || leaf->is_first_key)
		return position;
	if ((const char *) leaf->record == leaf->assembly)
		position.block = leaf->assembly_block;
	else
	{
		const FmsBlockHeader *header = block_header(leaf);
		uint32		nth = header->records - leaf->records_left - 1;

		position.block = header->number;
		/* a block whose first record is next need not be entered again */
		if (nth > 0 || header->continued_bytes > 0)
			position.record = nth;
	}
	return position;
}

void
fms_leaf_end(FmsLeaf *leaf)
{
	if (leaf->assembly)
		pfree(leaf->assembly);
	if (leaf->chunk)
		pfree(leaf->chunk);
	if (leaf->unpacked)
		pfree(leaf->unpacked);
}
