/*-------------------------------------------------------------------------
 *
 * run.c
 *	  A sorted run in a temporary file, and the writer of runs.
 *
 *	  records ---> as they are, or packed -> open block --> write buffer
 *	  records --> compressed chunk --LZ4-->     |
 *											first key --> block read order
 *
 * A run starts at a page boundary.  Its blocks are contiguous, except where it
 * reuses the space of earlier runs and has several extents:
 *
 *	  | block 0 | block 1 | pad |  another run  | block 2 | block 3 | pad |
 *	  ^ page                    ^ page          ^ page
 *	  |<------ extent --------->|               |<------ extent --------->|
 *
 * A record larger than a block continues in a chain of blocks with one first
 * key.  A record too large for a compressed chunk ends the compression of its
 * run.  For a mode that reads by last keys, the store notes for each block the
 * last key of the previous block.  The writer keeps a copy of that key unless
 * its record is in the open block.
 *
 * After an ERROR the I/O channel drains the writes.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "miscadmin.h"

#include "formation/run.h"
#include "order/first_key_store.h"
#include "tape/block.h"
#include "tape/tape.h"

/* Size of one write, at most: larger writes are not faster on any device. */
#define BUFFER_MAX_BYTES	((Size) 1024 * 1024)
/* ... at least: one such buffer beats two of pages, by fewer system calls */
#define BUFFER_MIN_BYTES	((Size) 8 * 1024)

struct FmsRunWriter
{
	FmsTape    *tape;
	FmsWriteBuffer *buffer;
	FmsFirstKeyStore *first_keys;
	FmsGroupFilter *filter;		/* the keys' */
	FmsOrderBy	order;
	uint64		record_bytes;	/* compressed so far */
	uint64		chunk_bytes;	/* what that became */
	uint32		block_bytes;
	FmsBlockHeader *block;		/* open block in the buffer, or NULL */
	FmsRun	   *run;			/* open run, or NULL */
	uint64		records;		/* in its closed blocks */
	uint64		noted;			/* before its last first key */
	FmsCutoff  *cutoff;			/* of its records, or NULL */
	bool		over;			/* the others are beyond the cutoff */
	uint64		next_address;	/* after the last block */
	FmsCompressor *compressor;	/* NULL: no run has been compressed */
	bool		compressing;	/* the open run, so far */
	bool		packs;			/* runs may have packed records */
	bool		packing;		/* the open run, so far */
	const FmsWordType *words;	/* of the records, or NULL */
	const FmsRecord *last;		/* by last keys: the record appended last, in
								 * the open block or last_key */
	FmsRecordBuffer last_key;	/* its key, if the record cannot be read */
};

/* Returns the size of one of the writer's buffers, their number in *count. */
static Size
choose_buffers(Size output_bytes, uint32 block_bytes, int *count)
{
	Size		share = output_bytes / FMS_WRITE_BUFFERS_MAX;
	Size		bytes = Max(Min(FMS_IO_ALIGN_DOWN(share), BUFFER_MAX_BYTES),
							Max(BUFFER_MIN_BYTES,
								FMS_WRITE_BUFFER_BYTES(block_bytes)));

	*count = Max(bytes > BUFFER_MIN_BYTES ? 2 : 1,
				 Min(FMS_WRITE_BUFFERS_MAX, output_bytes / bytes));
	return bytes;
}

Size
fms_run_writer_bytes(Size output_bytes, uint32 block_bytes)
{
	int			count;

	return choose_buffers(output_bytes, block_bytes, &count) * count;
}

FmsRunWriter *
fms_run_writer_create(FmsTape *tape, FmsFirstKeyStore *first_keys,
					  FmsOrderBy order, bool packs, Size output_bytes)
{
	FmsRunWriter *writer = palloc0(sizeof(FmsRunWriter));
	int			nbuffers;
	Size		buffer_bytes = choose_buffers(output_bytes, tape->block_bytes,
											  &nbuffers);

	/* nobody keeps the key of a packed record */
	Assert(!packs || order != FMS_ORDER_BY_LAST_KEYS);
	writer->tape = tape;
	writer->first_keys = first_keys;
	writer->filter = fms_keys_group_filter(first_keys->keys);
	writer->order = order;
	writer->packs = packs;
	writer->words = fms_keys_word_type(first_keys->keys);
	writer->block_bytes = tape->block_bytes;
	writer->buffer = fms_write_buffer_create(tape, buffer_bytes, nbuffers);
	return writer;
}

void
fms_run_compressed(const FmsRunWriter *writer, uint64 *record_bytes,
				   uint64 *chunk_bytes)
{
	*record_bytes = writer->record_bytes;
	*chunk_bytes = writer->chunk_bytes;
}

void
fms_run_flush(FmsRunWriter *writer)
{
	Assert(writer->run == NULL);
	fms_write_buffer_flush(writer->buffer);
}

void
fms_run_writer_destroy(FmsRunWriter *writer)
{
	fms_run_flush(writer);
	pfree(writer->buffer);
	fms_record_buffer_free(&writer->last_key);
	if (writer->compressor)
		pfree(writer->compressor);
	pfree(writer);
}

void
fms_run_begin(FmsRunWriter *writer, FmsRun *run, uint32 id, bool compressed,
			  FmsCutoff *cutoff)
{
	Assert(writer->run == NULL);

	if (compressed && writer->compressor == NULL)
		writer->compressor =
			fms_compressor_create(fms_compressed_chunk_capacity(
				writer->block_bytes));
	writer->compressing = compressed;
	writer->packing = writer->packs && !compressed;

	memset(run, 0, sizeof(*run));
	run->id = id;
	writer->run = run;
	writer->records = 0;
	writer->noted = 0;
	writer->cutoff = cutoff;
	writer->over = false;
	if (writer->filter)
		fms_group_filter_begin(writer->filter);
}

/* The extent of a block, and in *end the first block behind the extent. */
static const FmsExtent *
find_extent(const FmsRun *run, uint32 number, uint32 *end)
{
	const FmsExtent *extents = run->nextents > 1 ? run->extents :
		&run->extent;
	uint32		low = 0;
	uint32		high = run->nextents;

	Assert(number < run->nblocks);

	while (high - low > 1)
	{
		uint32		middle = low + (high - low) / 2;

		if (extents[middle].first <= number)
			low = middle;
		else
			high = middle;
	}
	*end = Min(high < run->nextents ? extents[high].first : run->nblocks,
			   run->nblocks);
	return &extents[low];
}

uint64
fms_run_block_address(const FmsRun *run, uint32 number, uint32 block_bytes)
{
	uint32		end;
	const FmsExtent *extent = find_extent(run, number, &end);

	return extent->address +
		(uint64) (number - extent->first) * block_bytes;
}

uint32
fms_run_contiguous_blocks(const FmsRun *run, uint32 number)
{
	uint32		end;

	(void) find_extent(run, number, &end);
	return end - number;
}

void
fms_run_move(FmsRun *run, uint64 distance)
{
	FmsExtent  *extents = run->nextents > 1 ? run->extents : &run->extent;

	for (uint32 i = 0; i < run->nextents; i++)
		extents[i].address += distance;
}

void
fms_run_cut(FmsRun *run, const FmsFirstKeyStore *first_keys, FmsTape *tape,
			const FmsRecord *cutoff)
{
	FmsFirstKeyReader *reader =
		fms_first_key_reader_open(first_keys->file, &run->first_keys);
	uint32		kept = 0;
	const FmsRecord *key;
	uint32		rows_before;
	uint32		n;

	while ((key = fms_first_key_reader_next(reader, &n,
											&rows_before)) != NULL)
	{
		CHECK_FOR_INTERRUPTS();
		if (fms_keys_compare(first_keys->keys, key, cutoff) > 0)
		{
			run->last_rows = rows_before;
			break;
		}
		kept += n;
	}
	fms_first_key_reader_close(reader);
	for (uint32 at = kept; at < run->nblocks; at += n)
	{
		n = fms_run_contiguous_blocks(run, at);
		fms_tape_free(tape, fms_run_block_address(run, at, tape->block_bytes),
					  (Size) n * tape->block_bytes);
	}
	run->nblocks = run->first_keys.nblocks = kept;
}

void
fms_run_forget(FmsRun *run)
{
	if (run->nextents > 1)
		pfree(run->extents);
	run->nextents = 0;
}

/* The run's next block begins an extent.  The list of extents doubles. */
static void
begin_extent(FmsRun *run, uint64 address)
{
	FmsExtent	extent = {.address = address,.first = run->nblocks};
	uint32		n = run->nextents++;

	if (n == 0)
	{
		run->extent = extent;
		return;
	}
	if (n == 1)
		run->extents = memcpy(palloc(2 * sizeof(FmsExtent)), &run->extent,
							  sizeof(FmsExtent));
	else if ((n & (n - 1)) == 0)
		run->extents = repalloc(run->extents, 2 * n * sizeof(FmsExtent));
	run->extents[n] = extent;
}

static void
open_block(FmsRunWriter *writer, uint32 magic)
{
	FmsRun	   *run = writer->run;
	uint64		address;
	char	   *buffer = fms_write_buffer_block(writer->buffer, &address);

	writer->block = (FmsBlockHeader *) buffer;
	*writer->block = (FmsBlockHeader) {
		.magic = magic,
		.run = run->id,
		.number = run->nblocks,
		.used_bytes = sizeof(FmsBlockHeader)
	};
	if (run->nblocks == 0 || address != writer->next_address)
		begin_extent(run, address);
	writer->next_address = address + writer->block_bytes;
	run->nblocks++;
}

static void
close_block(FmsRunWriter *writer)
{
	FmsBlockHeader *block = writer->block;

	/* earlier contents of the buffer must not get into the file */
	memset((char *) block + block->used_bytes, 0,
		   writer->block_bytes - block->used_bytes);
	fms_checksum_set(&block->checksum, writer->block_bytes,
					 writer->tape->salt, writer->tape->checksums);
	writer->records += block->records;
	fms_write_buffer_done(writer->buffer);
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

/* Appends a record larger than a block; the open block is empty. */
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
		open_block(writer, FMS_BLOCK_PLAIN_MAGIC);
		writer->block->continued_bytes =
			Min(left, fms_block_room(writer->block_bytes));
	}
}

/*
 * Notes the first key of the block that will begin with the record.  By last
 * keys, nobody uses the key of a run's first block.
 */
static void
note_first_key(FmsRunWriter *writer, const FmsRecord *record)
{
	uint32		room = fms_block_room(writer->block_bytes);
	uint32		bytes = fms_record_bytes(record);
	const FmsRecord *key = writer->order == FMS_ORDER_BY_LAST_KEYS &&
		writer->run->nblocks > 0 ? writer->last : record;

	fms_first_keys_note(writer->first_keys, &writer->run->first_keys, key,
						likely(bytes <= room) ? 1 : (bytes + room - 1) / room,
						writer->records - writer->noted);
	writer->noted = writer->records;
}

/* By last keys: copies the key of the record appended last. */
static void
keep_last_key(FmsRunWriter *writer, const FmsRecord *record)
{
	const FmsRecord *key = fms_keys_make_first_key(writer->first_keys->keys,
												   record);
	Size		bytes = fms_record_bytes(key);

	writer->last = memcpy(fms_record_buffer_reserve(&writer->last_key,
													CurrentMemoryContext,
													bytes),
						  key, bytes);
}

/*
 * Opens a block unless the open one has this magic and room for `bytes`, which
 * begin with the record.  Returns false if the record is beyond the cutoff.
 */
static inline bool
make_space(FmsRunWriter *writer, uint32 bytes, const FmsRecord *record,
		   uint32 magic)
{
	if (likely(writer->block && writer->block->magic == magic &&
			   block_space(writer) >= bytes))
		return true;
	/* a block without a record ends the chain of one */
	if (writer->cutoff && writer->block && !writer->over)
		writer->over = !fms_cutoff_note(writer->cutoff, record,
										Max(1, writer->block->records));
	if (writer->over)
		return false;
	if (writer->block)
		close_block(writer);
	note_first_key(writer, record);
	open_block(writer, magic);
	return true;
}

/* Writes the chunk being filled, if any, into a block. */
static void
end_chunk(FmsRunWriter *writer)
{
	const FmsRecord *first;
	const FmsRecord *last;
	const FmsCompressedChunk *chunk = fms_compressor_close(writer->compressor,
														   &first, &last);
	uint32		bytes;

	if (chunk == NULL)
		return;
	bytes = fms_compressed_chunk_size(chunk);
	if (!make_space(writer, bytes, first, FMS_BLOCK_COMPRESSED_MAGIC))
		return;
	copy_to_block(writer, (const char *) chunk, bytes);
	writer->block->records += chunk->records;
	writer->record_bytes += chunk->record_bytes;
	writer->chunk_bytes += bytes;
	fms_count(writer->tape->counters, FMS_COUNT_COMPRESSIBLE_BYTES,
			  chunk->record_bytes);
	fms_count(writer->tape->counters, FMS_COUNT_COMPRESSED_BYTES, bytes);
	if (writer->order == FMS_ORDER_BY_LAST_KEYS)
		keep_last_key(writer, last);
}

static inline void
append_to_block(FmsRunWriter *writer, const FmsRecord *record, uint32 bytes)
{
	if (!make_space(writer, bytes, record, FMS_BLOCK_PLAIN_MAGIC))
		return;
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

/*
 * Appends the record to a packed block, unless it is beyond the cutoff.
 * False: from here on, the run has plain blocks.
 */
static inline bool
append_packed(FmsRunWriter *writer, const FmsRecord *record)
{
	uint32		used = 0;

	writer->packing = fms_record_can_be_packed(record) &&
		(writer->block || fms_packing_pays(record, writer->block_bytes));
	if (!writer->packing)
		return false;
	while (writer->block == NULL ||
		   (used = fms_packed_append(writer->words,
									 (char *) (writer->block + 1),
									 fms_block_room(writer->block->used_bytes),
									 fms_block_room(writer->block_bytes),
									 record)) == 0)
	{
		/* no open block has that much room */
		if (!make_space(writer, writer->block_bytes, record,
						FMS_BLOCK_PACKED_MAGIC))
			return true;
	}
	writer->block->used_bytes = sizeof(FmsBlockHeader) + used;
	writer->block->records++;
	return true;
}

void
fms_run_append(FmsRunWriter *writer, const FmsRecord *record)
{
	FmsRun	   *run = writer->run;
	uint32		bytes = fms_record_bytes(record);

	if (unlikely(writer->over) ||
		(writer->filter && !fms_group_filter_wants(writer->filter, record)))
		return;
	run->largest_bytes = Max(run->largest_bytes, bytes);
	if (unlikely(writer->compressing))
	{
		if (fms_compressor_add(writer->compressor, record))
			return;
		end_chunk(writer);
		if (writer->over)
			return;
		/* a record larger than a chunk ends the compression of its run */
		writer->compressing = fms_compressor_add(writer->compressor, record);
		if (writer->compressing)
			return;
	}
	else if (writer->packing && append_packed(writer, record))
		return;
	append_to_block(writer, record, bytes);
}

uint64
fms_run_finish(FmsRunWriter *writer)
{
	if (writer->compressing)
		end_chunk(writer);
	if (writer->block)
		close_block(writer);
	writer->run->last_rows = writer->records - writer->noted;
	fms_write_buffer_end_page(writer->buffer);
	fms_first_keys_finish(writer->first_keys, &writer->run->first_keys);
	writer->run = NULL;
	return writer->records;
}
