/*-------------------------------------------------------------------------
 *
 * first_key_tape.c
 *	  The temporary file of first keys: chunks, written in sequence and read
 *	  back run by run.
 *
 *	  |<- run 4 ->|<------- run 5 ------->|		all chunks of a run in a row
 *	  [chunk|chunk|chunk|large chunk|chunk| ..
 *
 * Runs are written one at a time, so a run needs to remember an offset and a
 * length only.  A chunk begins with a whole key and can be read by itself.  A
 * key that does not fit into a chunk of the usual size gets a multiple of that
 * size; its header says so, and the reader fetches the rest.
 *
 * With little memory, chunks are small and numerous.  A reader ahead requests
 * the next chunk long before it needs it, so reads are collected and submitted
 * FMS_CHUNK_READS_BATCH at a time.
 *
 * The file always uses the page cache and checksums: it is small beside the
 * blocks.  Buffers are mapped through the channel, structs are palloc'd.  On
 * ERROR nothing is done here: see io.c.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "order/first_key_tape.h"

/* Bounds of a chunk's usual size: a block quantum and this. */
#define CHUNK_MAX_BYTES		((Size) 2048)
/* A chunk takes this part of the memory for first keys. */
#define CHUNK_FRACTION		256
/* Size of a write buffer, of which there are FMS_WRITE_BUFFERS_MIN. */
#define BUFFER_BYTES		((Size) 2 * FMS_IO_ALIGN_BYTES)

#define CHUNK_MAGIC			0x464D5346	/* "FMSF" */

/* A chunk that is being read, or has been. */
typedef struct ChunkSlot
{
	char	   *buffer;			/* chunk_bytes of the caller's */
	char	   *extra;			/* mapped: a larger chunk, or NULL */
	FmsIoRequest request;
} ChunkSlot;

struct FmsChunkReader
{
	FmsFirstKeyTape *tape;
	uint64		next_offset;	/* of the chunk to return next */
	uint64		end_offset;
	int			slot;			/* of the chunk returned last */
	bool		requested;		/* the next chunk's read has been collected */
	FmsFirstKeyReading reading;
	ChunkSlot	slots[FLEXIBLE_ARRAY_MEMBER];	/* [reading] */
};

Size
fms_first_key_chunk_bytes(Size share_bytes)
{
	Size		bytes = share_bytes / CHUNK_FRACTION;

	bytes -= bytes % FMS_BLOCK_QUANTUM_BYTES;
	return Max(FMS_BLOCK_QUANTUM_BYTES, Min(CHUNK_MAX_BYTES, bytes));
}

Size
fms_first_key_tape_bytes(void)
{
	return FMS_WRITE_BUFFERS_MIN * BUFFER_BYTES;
}

void
fms_first_key_tape_init(FmsFirstKeyTape *tape, FmsIo *io, Size share_bytes)
{
	tape->io = io;
	tape->chunk_bytes = fms_first_key_chunk_bytes(share_bytes);
}

void
fms_first_key_tape_close(FmsFirstKeyTape *tape)
{
	if (tape->tape == NULL)
		return;
	fms_write_buffer_forget(tape->buffer);
	fms_tape_close(tape->tape);
}

uint64
fms_first_key_tape_offset(FmsFirstKeyTape *tape)
{
	if (tape->tape == NULL)
	{
		tape->tape = fms_tape_open(tape->io, FMS_DIRECT_OFF,
								   FMS_BLOCK_QUANTUM_BYTES, true,
								   NULL);
		tape->buffer = fms_write_buffer_create(tape->io, tape->tape,
											   BUFFER_BYTES,
											   FMS_WRITE_BUFFERS_MIN);
	}
	return fms_write_buffer_position(tape->buffer);
}

/*
 * A chunk's number is its offset on the tape.  A number within the run would
 * not do: a reader's buffer may hold another run's chunk, and a read that
 * transfers nothing would go unnoticed.
 */
static inline uint32
chunk_number(uint64 offset_bytes)
{
	return offset_bytes / FMS_BLOCK_QUANTUM_BYTES;
}

void
fms_first_key_chunk_init(FmsFirstKeyChunk *chunk, uint32 number,
						 Size size_bytes)
{
	chunk->next = NULL;
	chunk->magic = CHUNK_MAGIC;
	chunk->number = number;
	chunk->size_bytes = size_bytes;
	chunk->used_bytes = sizeof(FmsFirstKeyChunk);
}

FmsFirstKeyChunk *
fms_first_key_tape_begin(FmsFirstKeyTape *tape, Size key_bytes)
{
	uint64		offset_bytes = fms_first_key_tape_offset(tape);
	Size		size = sizeof(FmsFirstKeyChunk) + key_bytes;
	FmsFirstKeyChunk *chunk;

	size = (size + tape->chunk_bytes - 1) / tape->chunk_bytes *
		tape->chunk_bytes;
	chunk = (FmsFirstKeyChunk *) fms_write_buffer_piece(tape->buffer, size);
	fms_first_key_chunk_init(chunk, chunk_number(offset_bytes), size);
	tape->largest_bytes = Max(tape->largest_bytes, size);
	return chunk;
}

void
fms_first_key_tape_end(FmsFirstKeyTape *tape, FmsFirstKeyChunk *chunk)
{
	memset((char *) chunk + chunk->used_bytes, 0,
		   chunk->size_bytes - chunk->used_bytes);
	fms_tape_set_checksum(tape->tape, &chunk->checksum, chunk->size_bytes);
	fms_write_buffer_done(tape->buffer, chunk->size_bytes);
}

void
fms_first_key_tape_flush(FmsFirstKeyTape *tape)
{
	if (tape->tape == NULL)
		return;
	fms_write_buffer_flush(tape->buffer);
	/* reserved space that is not needed must not be counted */
	fms_tape_trim(tape->tape);
}

/* Submits the reads that have been collected. */
static void
submit_requests(FmsFirstKeyTape *tape)
{
	int			n = tape->nrequests;

	tape->nrequests = 0;
	fms_tape_read(tape->tape, tape->requests, n);
}

/* Collects a read of the next chunk, if there is one, into the slot. */
static void
request_chunk(FmsChunkReader *reader, ChunkSlot *slot)
{
	FmsFirstKeyTape *tape = reader->tape;
	FmsIoRequest *request = &slot->request;

	if (reader->next_offset >= reader->end_offset)
		return;
	request->buffer = slot->buffer;
	request->length_bytes = tape->chunk_bytes;
	request->offset_bytes = reader->next_offset;
	tape->requests[tape->nrequests++] = request;
	if (tape->nrequests == FMS_CHUNK_READS_BATCH)
		submit_requests(tape);
}

/* Withdraws a read that has been collected and not submitted. */
static void
withdraw_request(FmsFirstKeyTape *tape, const FmsIoRequest *request)
{
	int			i;

	for (i = 0; i < tape->nrequests; i++)
	{
		if (tape->requests[i] == request)
		{
			tape->requests[i] = tape->requests[--tape->nrequests];
			break;
		}
	}
}

/* Reads the rest of a chunk that is larger than usual. */
static const FmsFirstKeyChunk *
read_large_chunk(FmsChunkReader *reader, ChunkSlot *slot, Size size)
{
	FmsFirstKeyTape *tape = reader->tape;
	FmsIoRequest *request = &slot->request;

	slot->extra = fms_io_map(tape->io, size, false);
	memcpy(slot->extra, slot->buffer, tape->chunk_bytes);
	request->buffer = slot->extra + tape->chunk_bytes;
	request->length_bytes = size - tape->chunk_bytes;
	request->offset_bytes = reader->next_offset + tape->chunk_bytes;
	fms_tape_read(tape->tape, &request, 1);
	fms_tape_wait(tape->tape, request);
	return (const FmsFirstKeyChunk *) slot->extra;
}

pg_noinline static void
report_bad_chunk(const FmsChunkReader *reader, const FmsFirstKeyChunk *chunk)
{
	fms_tape_report_corrupted(reader->tape->tape,
							  psprintf(_("The block read order's chunk %u is wrong: number %u, magic %08X."),
									   chunk_number(reader->next_offset),
									   chunk->number, chunk->magic));
}

/*
 * Checks the chunk whose first part has arrived, and reads its rest.  The size
 * in its header is needed before the checksum can be: it must be plausible.
 */
static const FmsFirstKeyChunk *
check_chunk(FmsChunkReader *reader, ChunkSlot *slot)
{
	const FmsFirstKeyChunk *chunk = (const FmsFirstKeyChunk *) slot->buffer;
	Size		usual = reader->tape->chunk_bytes;
	Size		size = chunk->size_bytes;

	if (size % usual != 0 || size < usual ||
		size > reader->tape->largest_bytes ||
		size > reader->end_offset - reader->next_offset)
		report_bad_chunk(reader, chunk);
	if (size > usual)
		chunk = read_large_chunk(reader, slot, size);
	if (!fms_tape_checksum_holds(reader->tape->tape, &chunk->checksum, size) ||
		chunk->magic != CHUNK_MAGIC || chunk->next != NULL ||
		chunk->number != chunk_number(reader->next_offset) ||
		chunk->used_bytes < sizeof(FmsFirstKeyChunk) ||
		chunk->used_bytes > size)
		report_bad_chunk(reader, chunk);
	return chunk;
}

Size
fms_chunk_reader_bytes(FmsFirstKeyReading reading)
{
	return offsetof(FmsChunkReader, slots) + reading * sizeof(ChunkSlot);
}

FmsChunkReader *
fms_chunk_reader_open(FmsFirstKeyTape *tape, uint64 offset_bytes,
					  uint64 tape_bytes, FmsFirstKeyReading reading,
					  char *buffer)
{
	FmsChunkReader *reader = palloc0(fms_chunk_reader_bytes(reading));
	int			i;

	reader->tape = tape;
	reader->next_offset = offset_bytes;
	reader->end_offset = offset_bytes + tape_bytes;
	reader->reading = reading;
	for (i = 0; i < (int) reading; i++)
		reader->slots[i].buffer = buffer + i * tape->chunk_bytes;
	request_chunk(reader, &reader->slots[reading - 1]);
	reader->requested = true;
	return reader;
}

/* Frees the memory of a large chunk. */
static void
free_extra(FmsFirstKeyTape *tape, ChunkSlot *slot)
{
	if (slot->extra)
		fms_io_unmap(tape->io, slot->extra);
	slot->extra = NULL;
}

const FmsFirstKeyChunk *
fms_chunk_reader_next(FmsChunkReader *reader)
{
	ChunkSlot  *old = &reader->slots[reader->slot];
	ChunkSlot  *slot;
	const FmsFirstKeyChunk *chunk;

	free_extra(reader->tape, old);
	if (reader->next_offset >= reader->end_offset)
		return NULL;

	reader->slot = reader->reading - 1 - reader->slot;
	slot = &reader->slots[reader->slot];
	if (!reader->requested)
		request_chunk(reader, slot);
	if (slot->request.state == FMS_IO_IDLE)
		submit_requests(reader->tape);
	fms_tape_wait(reader->tape->tape, &slot->request);
	chunk = check_chunk(reader, slot);
	reader->next_offset += chunk->size_bytes;
	reader->requested = reader->reading == FMS_FIRST_KEYS_AHEAD;
	if (reader->requested)
		request_chunk(reader, old);
	return chunk;
}

void
fms_chunk_reader_close(FmsChunkReader *reader)
{
	int			i;

	for (i = 0; i < (int) reader->reading; i++)
	{
		withdraw_request(reader->tape, &reader->slots[i].request);
		free_extra(reader->tape, &reader->slots[i]);
	}
	pfree(reader);
}
