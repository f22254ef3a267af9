/*-------------------------------------------------------------------------
 *
 * run.c
 *	  A sorted run on the tape, and the writer that makes one.
 *
 * The writer packs records into blocks, notes each block's first key for the
 * block read order, and hands the blocks to a stream, which writes them while
 * the next ones are being packed.  A run begins on a page of its own; its
 * blocks follow each other without a gap, whatever their size, as far as the
 * tape does: a run that is written where earlier ones were lies in several
 * extents.
 *
 *	  | block 0 | block 1 | pad |  another run  | block 2 | block 3 | pad |
 *	  ^ page                    ^ page          ^ page
 *	  |<------ extent --------->|               |<------ extent --------->|
 *
 * A record starts a new block if it does not fit into the rest of this one.
 * A record that is larger than a block starts one and continues through as
 * many as it takes; these blocks are a chain with one fence.  Behind its end
 * the last of them takes further records.
 *
 * A compressed run's records go into a chunk first (compressed_chunk.c), and
 * when that is full, into the block, as the fence does if it is the block's
 * first.  One
 * that is too large for a chunk ends this: the rest of that run is written as
 * it is, since a block of either kind begun for each of them in turn would
 * hold next to nothing.
 *
 *	  records --> chunk being filled --LZ4--> open block --> stream
 *
 * For a merge that reads by last keys, a block's fence is the last key of the
 * block before it: the key of the record that began there last, which is still
 * in that block when the next one is opened.  Only a record that is larger
 * than a block is not, nor one in a chunk, so of such a one a copy of the key
 * is kept.
 *
 * Memory: writer, compressor and a run's extents are palloc'd, the rest is the
 * stream's.  On ERROR nothing is done here: see io.c.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "tape/compressed_chunk.h"
#include "formation/run.h"
#include "tape/write_buffer.h"

/* Writes this large are sequential enough for any device. */
#define BUFFER_MAX_BYTES	((Size) 1024 * 1024)

struct FmsRunWriter
{
	FmsTape    *tape;
	FmsWriteBuffer  *stream;
	FmsFenceStore *fences;
	FmsOrderBy	order;
	FmsCounters *counters;
	uint32		block_bytes;
	FmsBlockHeader *block;		/* open block, a piece of the stream */
	FmsRun	   *run;			/* open run, or NULL */
	uint64		next_bytes;		/* where its next block is, if in a row */
	FmsCompressor *compressor;		/* NULL: no run has been compressed */
	bool		bundling;		/* this one is, so far */
	const FmsRecord *last;		/* by last keys: the record appended last, in
								 * the open block, or last_key */
	FmsRecord  *last_key;		/* its key, if it is not there to be read */
};

/* One of its buffers, which is written in one piece. */
static Size
fms_run_piece_bytes(Size output_bytes, uint32 block_bytes)
{
	Size		share = output_bytes / FMS_WRITE_BUFFERS_MAX;

	return Max(Min(FMS_IO_ALIGN_DOWN(share), BUFFER_MAX_BYTES),
			   FMS_WRITE_BUFFER_BYTES(block_bytes));
}

static int
buffer_count(Size output_bytes, uint32 block_bytes)
{
	Size		count = output_bytes /
		fms_run_piece_bytes(output_bytes, block_bytes);

	return Max(FMS_WRITE_BUFFERS_MIN, Min(FMS_WRITE_BUFFERS_MAX, count));
}

Size
fms_run_writer_bytes(Size output_bytes, uint32 block_bytes)
{
	return buffer_count(output_bytes, block_bytes) *
		fms_run_piece_bytes(output_bytes, block_bytes);
}

FmsRunWriter *
fms_run_writer_create(FmsIo *io, FmsTape *tape, FmsFenceStore *fences,
					  FmsOrderBy order, FmsCounters *counters,
					  uint32 block_bytes, Size output_bytes)
{
	FmsRunWriter *writer = palloc0(sizeof(FmsRunWriter));

	writer->tape = tape;
	writer->fences = fences;
	writer->order = order;
	writer->counters = counters;
	writer->block_bytes = block_bytes;
	writer->stream = fms_write_buffer_create(io, tape,
									   fms_run_piece_bytes(output_bytes,
														   block_bytes),
									   buffer_count(output_bytes,
													block_bytes), true);
	return writer;
}

void
fms_run_flush(FmsRunWriter *writer)
{
	fms_write_buffer_flush(writer->stream);
	fms_fences_flush(writer->fences);
}

void
fms_run_writer_rest(FmsRunWriter *writer)
{
	Assert(writer->run == NULL);
	fms_run_flush(writer);
	fms_write_buffer_rest(writer->stream);
}

void
fms_run_writer_destroy(FmsRunWriter *writer)
{
	Assert(writer->run == NULL);
	fms_write_buffer_destroy(writer->stream);
	if (writer->last_key)
		pfree(writer->last_key);
	if (writer->compressor)
		pfree(writer->compressor);
	pfree(writer);
}

void
fms_run_begin(FmsRunWriter *writer, FmsRun *run, uint32 id, uint32 level,
			  bool compressed)
{
	Assert(writer->run == NULL);

	if (compressed && writer->compressor == NULL)
		writer->compressor =
			fms_compressor_create(fms_compressed_chunk_capacity(
				writer->block_bytes));
	writer->bundling = compressed;

	memset(run, 0, sizeof(*run));
	run->id = id;
	run->level = level;
	writer->run = run;
}

/* The extent that has the block: the last that begins there or before. */
static uint32
find_extent(const FmsRun *run, uint32 number)
{
	uint32		low = 0;
	uint32		high = run->nextents;

	Assert(number < run->nblocks);

	while (high - low > 1)
	{
		uint32		middle = low + (high - low) / 2;

		if (run->extents[middle].first <= number)
			low = middle;
		else
			high = middle;
	}
	return low;
}

uint64
fms_run_place(const FmsRun *run, uint32 number, uint32 block_bytes)
{
	const FmsExtent *extent = &run->extents[find_extent(run, number)];

	return extent->offset_bytes +
		(uint64) (number - extent->first) * block_bytes;
}

uint32
fms_run_in_a_row(const FmsRun *run, uint32 number)
{
	uint32		next = find_extent(run, number) + 1;

	return (next < run->nextents ? run->extents[next].first : run->nblocks) -
		number;
}

void
fms_run_forget(FmsRun *run)
{
	if (run->extents)
		pfree(run->extents);
	run->extents = NULL;
	run->nextents = run->extents_size = 0;
}

/* The run's next block lies there, and not behind the one before it. */
static void
begin_extent(FmsRun *run, uint64 offset_bytes)
{
	if (run->nextents == run->extents_size)
	{
		run->extents_size = Max(1, 2 * run->extents_size);
		if (run->extents == NULL)
			run->extents = palloc(run->extents_size * sizeof(FmsExtent));
		else
			run->extents = repalloc(run->extents,
									run->extents_size * sizeof(FmsExtent));
	}
	run->extents[run->nextents++] = (FmsExtent) {
		.offset_bytes = offset_bytes,.first = run->nblocks
	};
}

static void
open_block(FmsRunWriter *writer, uint32 magic)
{
	uint64		offset_bytes;

	writer->block = (FmsBlockHeader *) fms_write_buffer_piece(writer->stream,
														writer->block_bytes);
	writer->block->magic = magic;
	writer->block->run = writer->run->id;
	writer->block->number = writer->run->nblocks;
	writer->block->used_bytes = sizeof(FmsBlockHeader);
	writer->block->continued_bytes = 0;
	writer->block->records = 0;
	offset_bytes = fms_write_buffer_position(writer->stream);
	if (writer->run->nblocks == 0 || offset_bytes != writer->next_bytes)
		begin_extent(writer->run, offset_bytes);
	writer->next_bytes = offset_bytes + writer->block_bytes;
	writer->run->nblocks++;
}

static void
close_block(FmsRunWriter *writer)
{
	FmsBlockHeader *block = writer->block;

	/* what an earlier use of the buffer left behind stays in this process */
	memset((char *) block + block->used_bytes, 0,
		   writer->block_bytes - block->used_bytes);
	fms_tape_set_checksum(writer->tape, &block->checksum, writer->block_bytes);
	fms_write_buffer_done(writer->stream, writer->block_bytes);
	writer->block = NULL;
}

static inline uint32
block_space(const FmsRunWriter *writer)
{
	return writer->block_bytes - writer->block->used_bytes;
}

static inline void
copy_to_block(FmsRunWriter *writer, const char *bytes, uint32 length)
{
	memcpy((char *) writer->block + writer->block->used_bytes, bytes, length);
	writer->block->used_bytes += length;
}

/* A record larger than a block, which begins in the (empty) open block. */
static void
append_chain(FmsRunWriter *writer, const FmsRecord *record)
{
	const char *bytes = (const char *) record;
	uint32		left = fms_record_bytes(record);

	for (;;)
	{
		uint32		piece = Min(left, block_space(writer));

		copy_to_block(writer, bytes, piece);
		bytes += piece;
		left -= piece;
		if (left == 0)
			break;
		close_block(writer);
		open_block(writer, FMS_BLOCK_MAGIC);
		writer->block->continued_bytes =
			Min(left, fms_block_room(writer->block_bytes));
	}
}

/*
 * The block that is to be opened will begin with that record.  By last keys
 * the first block of a run is noted, too, for its length; nobody looks at the
 * key.
 */
static void
note_fence(FmsRunWriter *writer, const FmsRecord *record)
{
	uint32		room = fms_block_room(writer->block_bytes);
	uint32		bytes = fms_record_bytes(record);
	const FmsRecord *key = record;

	if (writer->order == FMS_ORDER_BY_LAST_KEYS && writer->run->nblocks > 0)
		key = writer->last;
	fms_fences_note(writer->fences, &writer->run->fences, key,
					likely(bytes <= room) ? 1 : (bytes + room - 1) / room);
}

/* By last keys: the record appended last is not in the open block, to read. */
static void
keep_last_key(FmsRunWriter *writer, const FmsRecord *record)
{
	const FmsRecord *key = fms_fences_key(writer->fences, record);

	if (writer->last_key)
		pfree(writer->last_key);
	writer->last_key = NULL;
	writer->last_key = palloc_extended(fms_record_bytes(key),
									   MCXT_ALLOC_HUGE);
	memcpy(writer->last_key, key, fms_record_bytes(key));
	writer->last = writer->last_key;
}

/*
 * Sees to it that the open block is of that kind and has room for so many
 * bytes, which begin with that record, or is empty.
 */
static inline void
make_space(FmsRunWriter *writer, uint32 bytes, const FmsRecord *record,
		   uint32 magic)
{
	if (likely(writer->block && writer->block->magic == magic &&
			   block_space(writer) >= bytes))
		return;
	note_fence(writer, record);
	if (writer->block)
		close_block(writer);
	open_block(writer, magic);
}

/* Puts the chunk being filled, if there is one, into a block. */
static void
end_chunk(FmsRunWriter *writer)
{
	const FmsCompressedChunk *chunk;
	uint32		bytes;

	if (fms_compressor_is_empty(writer->compressor))
		return;
	chunk = fms_compressor_close(writer->compressor);
	bytes = fms_compressed_chunk_size(chunk);
	make_space(writer, bytes, fms_compressor_first(writer->compressor),
			   FMS_BLOCK_COMPRESSED_MAGIC);
	copy_to_block(writer, (const char *) chunk, bytes);
	writer->block->records += chunk->records;
	writer->run->compressible_bytes += chunk->record_bytes;
	writer->run->compressed_bytes += bytes;
	fms_count(writer->counters, FMS_COUNT_COMPRESSIBLE_BYTES,
			  chunk->record_bytes);
	fms_count(writer->counters, FMS_COUNT_COMPRESSED_BYTES, bytes);
	if (writer->order == FMS_ORDER_BY_LAST_KEYS)
		keep_last_key(writer, fms_compressor_last(writer->compressor));
}

static void
append_to_chunk(FmsRunWriter *writer, const FmsRecord *record)
{
	if (fms_compressor_add(writer->compressor, record))
		return;
	end_chunk(writer);
	(void) fms_compressor_add(writer->compressor, record);
}

static inline void
append_to_block(FmsRunWriter *writer, const FmsRecord *record, uint32 bytes)
{
	make_space(writer, bytes, record, FMS_BLOCK_MAGIC);
	writer->block->records++;
	if (bytes <= block_space(writer))
	{
		writer->last = (const FmsRecord *) ((const char *) writer->block +
											writer->block->used_bytes);
		copy_to_block(writer, (const char *) record, bytes);
	}
	else
	{
		append_chain(writer, record);
		if (writer->order == FMS_ORDER_BY_LAST_KEYS)
			keep_last_key(writer, record);
	}
}

void
fms_run_append(FmsRunWriter *writer, const FmsRecord *record)
{
	FmsRun	   *run = writer->run;
	uint32		bytes = fms_record_bytes(record);

	run->largest_bytes = Max(run->largest_bytes, bytes);
	if (unlikely(writer->bundling))
	{
		if (fms_compressor_takes(writer->compressor, record))
		{
			append_to_chunk(writer, record);
			return;
		}
		end_chunk(writer);
		writer->bundling = false;
	}
	append_to_block(writer, record, bytes);
}

void
fms_run_finish(FmsRunWriter *writer)
{
	if (writer->bundling)
		end_chunk(writer);
	if (writer->block)
		close_block(writer);
	fms_write_buffer_end_page(writer->stream);
	fms_fences_finish(writer->fences, &writer->run->fences);
	writer->run = NULL;
}
