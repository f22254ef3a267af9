/*-------------------------------------------------------------------------
 *
 * run.c
 *	  A sorted run on the tape, and the writer that makes one.
 *
 * The writer packs records into blocks, notes each block's first key for the
 * block read order, and writes what is packed while the next blocks are
 * being packed.
 *
 *	  records --> [block|block|block|..]  output buffer 0: being filled
 *	              [block|block|block|..]  output buffer 1: being written
 *
 * Blocks and writes have sizes of their own.  A block is what the merge reads
 * and may be as small as 512 bytes or no multiple of a page; writes should
 * be large, and whole aligned pages (file systems take unaligned direct
 * writes one at a time, reading around their edges).  So blocks are laid out
 * back to back in the buffer, whole pages of it are written, and the rest,
 * less than a page, moves to the front of the next buffer.  Only the end of a
 * run is padded to a page.
 *
 * A record starts a new block if it does not fit into the rest of this one.
 * A record that is larger than a block starts one and continues through as
 * many as it takes; these blocks are a chain with one fence.  Behind its end
 * the last of them takes further records.
 *
 * Memory: buffers are mapped through the channel, the writer and its requests
 * palloc'd in the context it was created in, which the channel's owner must
 * free after draining.  On ERROR nothing is done here: see io.c.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "clock.h"
#include "run.h"

#define MAX_BUFFERS			4
#define MIN_BUFFERS			2
/* Writes this large are sequential enough for any device. */
#define BUFFER_MAX_BYTES	((Size) 1024 * 1024)
/* All buffers together take this part of the memory, if blocks let them. */
#define MEMORY_FRACTION		16

typedef struct FmsOutputBuffer
{
	char	   *base;
	FmsIoRequest request;		/* IDLE: the buffer is free */
} FmsOutputBuffer;

struct FmsRunWriter
{
	FmsIo	   *io;
	FmsTape    *tape;
	FmsFenceStore *fences;
	FmsCounters *counters;
	uint32		block_bytes;
	char	   *memory;			/* mapped; all buffers */
	Size		buffer_bytes;	/* of each; >= a block and a page */
	int			nbuffers;
	FmsOutputBuffer buffers[MAX_BUFFERS];

	/* the buffer being filled: whole blocks before `filled`, then the open
	 * one, if any */
	int			current;
	Size		filled_bytes;
	FmsBlockHeader *block;		/* open block, or NULL */
	FmsRun	   *run;			/* open run, or NULL */
};

static Size
buffer_size(Size memory_bytes, uint32 block_bytes)
{
	Size		share = memory_bytes / MEMORY_FRACTION / MAX_BUFFERS;
	Size		needed = FMS_IO_ALIGN(block_bytes + FMS_IO_ALIGN_BYTES);

	return Max(Min(FMS_IO_ALIGN_DOWN(share), BUFFER_MAX_BYTES), needed);
}

static int
buffer_count(Size memory_bytes, uint32 block_bytes)
{
	Size		count = memory_bytes / MEMORY_FRACTION /
		buffer_size(memory_bytes, block_bytes);

	return Max(MIN_BUFFERS, Min(MAX_BUFFERS, count));
}

Size
fms_run_writer_bytes(Size memory_bytes, uint32 block_bytes)
{
	return buffer_count(memory_bytes, block_bytes) *
		buffer_size(memory_bytes, block_bytes);
}

FmsRunWriter *
fms_run_writer_create(FmsIo *io, FmsTape *tape, FmsFenceStore *fences,
					  FmsCounters *counters, uint32 block_bytes,
					  Size memory_bytes)
{
	FmsRunWriter *writer = palloc0(sizeof(FmsRunWriter));
	int			i;

	writer->io = io;
	writer->tape = tape;
	writer->fences = fences;
	writer->counters = counters;
	writer->block_bytes = block_bytes;
	writer->nbuffers = buffer_count(memory_bytes, block_bytes);
	writer->buffer_bytes = buffer_size(memory_bytes, block_bytes);
	writer->memory = fms_io_map(io, writer->nbuffers * writer->buffer_bytes);
	for (i = 0; i < writer->nbuffers; i++)
		writer->buffers[i].base = writer->memory + i * writer->buffer_bytes;
	return writer;
}

void
fms_run_flush(FmsRunWriter *writer)
{
	int			i;

	for (i = 0; i < writer->nbuffers; i++)
	{
		if (writer->buffers[i].request.state != FMS_IO_IDLE)
			fms_tape_wait(writer->tape, &writer->buffers[i].request);
	}
	fms_fences_flush(writer->fences);
}

void
fms_run_writer_destroy(FmsRunWriter *writer)
{
	Assert(writer->run == NULL);
	fms_run_flush(writer);
	fms_io_unmap(writer->io, writer->memory);
	pfree(writer);
}

void
fms_run_begin(FmsRunWriter *writer, FmsRun *run, uint32 id, uint32 level)
{
	Assert(writer->run == NULL && writer->filled_bytes == 0);

	memset(run, 0, sizeof(*run));
	run->id = id;
	run->level = level;
	run->offset_bytes = fms_tape_end(writer->tape);
	writer->run = run;
}

/*
 * Starts writing the whole pages of the current buffer, and goes on with
 * what is left of it in the next one.
 */
static void
write_buffer(FmsRunWriter *writer)
{
	FmsOutputBuffer *full = &writer->buffers[writer->current];
	FmsOutputBuffer *next;
	Size		whole = FMS_IO_ALIGN_DOWN(writer->filled_bytes);
	Size		rest = writer->filled_bytes - whole;

	Assert(writer->block == NULL);
	if (whole > 0)
		fms_tape_append(writer->tape, &full->request, full->base, whole);

	writer->current = (writer->current + 1) % writer->nbuffers;
	next = &writer->buffers[writer->current];
	if (next->request.state != FMS_IO_IDLE)
		fms_tape_wait(writer->tape, &next->request);
	memcpy(next->base, full->base + whole, rest);
	writer->filled_bytes = rest;
}

static void
open_block(FmsRunWriter *writer)
{
	char	   *start;

	if (writer->buffer_bytes - writer->filled_bytes < writer->block_bytes)
		write_buffer(writer);
	start = writer->buffers[writer->current].base + writer->filled_bytes;
	writer->block = (FmsBlockHeader *) start;
	writer->block->magic = FMS_BLOCK_MAGIC;
	writer->block->run = writer->run->id;
	writer->block->number = writer->run->nblocks;
	writer->block->used_bytes = sizeof(FmsBlockHeader);
	writer->block->continued_bytes = 0;
	writer->block->records = 0;
	writer->run->nblocks++;
}

static void
close_block(FmsRunWriter *writer)
{
	FmsBlockHeader *block = writer->block;

	/* what an earlier use of the buffer left behind stays in this process */
	memset((char *) block + block->used_bytes, 0,
		   writer->block_bytes - block->used_bytes);
	writer->filled_bytes += writer->block_bytes;
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
	uint32		left = record->size_bytes;

	for (;;)
	{
		uint32		piece = Min(left, block_space(writer));

		copy_to_block(writer, bytes, piece);
		bytes += piece;
		left -= piece;
		if (left == 0)
			break;
		close_block(writer);
		open_block(writer);
		writer->block->continued_bytes =
			Min(left, fms_block_room(writer->block_bytes));
	}
}

static void
note_fence(FmsRunWriter *writer, const FmsRecord *record, uint32 nblocks)
{
	instr_time	start = fms_clock_now();

	fms_fences_note(writer->fences, &writer->run->fences, record, nblocks);
	writer->counters->order_us += fms_clock_since_us(start);
}

void
fms_run_append(FmsRunWriter *writer, const FmsRecord *record)
{
	FmsRun	   *run = writer->run;
	uint32		room = fms_block_room(writer->block_bytes);

	if (writer->block && block_space(writer) < record->size_bytes)
		close_block(writer);
	if (writer->block == NULL)
	{
		uint32		chain = (record->size_bytes + room - 1) / room;

		open_block(writer);
		note_fence(writer, record, chain);
	}

	writer->block->records++;
	if (record->size_bytes <= block_space(writer))
		copy_to_block(writer, (const char *) record, record->size_bytes);
	else
		append_chain(writer, record);

	run->records++;
	run->largest_bytes = Max(run->largest_bytes, record->size_bytes);
}

void
fms_run_finish(FmsRunWriter *writer)
{
	FmsOutputBuffer *buffer;
	Size		padded;

	if (writer->block)
		close_block(writer);

	buffer = &writer->buffers[writer->current];
	padded = FMS_IO_ALIGN(writer->filled_bytes);
	Assert(padded <= writer->buffer_bytes);
	memset(buffer->base + writer->filled_bytes, 0,
		   padded - writer->filled_bytes);
	writer->filled_bytes = padded;
	if (padded > 0)
		write_buffer(writer);
	Assert(writer->filled_bytes == 0);
	fms_fences_finish(writer->fences, &writer->run->fences);
	writer->run = NULL;
}
