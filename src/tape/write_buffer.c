/*-------------------------------------------------------------------------
 *
 * write_buffer.c
 *	  Writes blocks to a tape, in large asynchronous writes.
 *
 *	  blocks --> [block|block|block|..]  slot 0: being filled
 *	             [block|block|block|..]  slot 1: being written
 *
 * A block may be as small as 512 bytes, while writes should be large and of
 * whole pages.  So blocks lie back to back in a slot, its whole pages are
 * written, and the part of a page at its end moves to the next slot.
 *
 * A block is contiguous on the tape.  If the tape's position does not hold it,
 * the buffer ends the page and moves on.  At the tape's end it moves on to a
 * free extent, too, but between two slots only.
 *
 * On ERROR nothing is done here: the channel drains the writes.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "tape/tape.h"

struct FmsWriteBuffer
{
	FmsTape    *tape;
	char	   *memory;			/* mapped: all slots; NULL: not now */
	Size		slot_bytes;		/* of each, a multiple of a page */
	int			nslots;
	FmsIoRequest requests[FMS_WRITE_BUFFERS_MAX];	/* IDLE: a free slot */
	int			current;		/* the slot being filled */
	Size		filled_bytes;	/* of it, by blocks that are done */
	bool		open;			/* a block is being filled behind them */
};

/* Where the next bytes of the current slot go. */
static inline char *
next_bytes(const FmsWriteBuffer *buffer)
{
	return buffer->memory + buffer->current * buffer->slot_bytes +
		buffer->filled_bytes;
}

FmsWriteBuffer *
fms_write_buffer_create(FmsTape *tape, Size buffer_bytes, int nbuffers)
{
	FmsWriteBuffer *buffer = palloc0(sizeof(FmsWriteBuffer));

	Assert(nbuffers >= 1 && nbuffers <= FMS_WRITE_BUFFERS_MAX);
	Assert(buffer_bytes >= FMS_WRITE_BUFFER_BYTES(tape->block_bytes));
	buffer->tape = tape;
	buffer->nslots = nbuffers;
	buffer->slot_bytes = FMS_IO_ALIGN(buffer_bytes);
	return buffer;
}

void
fms_write_buffer_flush(FmsWriteBuffer *buffer)
{
	Assert(!buffer->open && buffer->filled_bytes == 0);
	for (int i = 0; i < buffer->nslots; i++)
	{
		if (buffer->requests[i].state != FMS_IO_IDLE)
			fms_tape_wait(buffer->tape, &buffer->requests[i]);
	}
	if (buffer->memory)
		fms_io_unmap(buffer->tape->io, buffer->memory);
	buffer->memory = NULL;
}

/* Starts writing the slot's whole pages; the rest moves to the next slot. */
static void
write_pages(FmsWriteBuffer *buffer)
{
	Size		whole = FMS_IO_ALIGN_DOWN(buffer->filled_bytes);
	Size		rest = buffer->filled_bytes - whole;
	FmsIoRequest *request = &buffer->requests[buffer->current];
	char	   *end = next_bytes(buffer);

	if (whole == 0)
		return;
	fms_tape_append(buffer->tape, request, end - buffer->filled_bytes, whole);
	buffer->current = (buffer->current + 1) % buffer->nslots;
	buffer->filled_bytes = 0;
	request = &buffer->requests[buffer->current];
	if (request->state != FMS_IO_IDLE)
		fms_tape_wait(buffer->tape, request);
	memcpy(next_bytes(buffer), end - rest, rest);
	buffer->filled_bytes = rest;
}

/* Is the slot full?  Writes end at multiples of its size: large folios. */
static inline bool
is_full(const FmsWriteBuffer *buffer)
{
	Size		beyond = buffer->filled_bytes == 0 ? 0 :
		fms_tape_position(buffer->tape) % buffer->slot_bytes;

	return buffer->filled_bytes + beyond + buffer->tape->block_bytes >
		buffer->slot_bytes;
}

/* Does the next block have to go elsewhere on the tape? */
static inline bool
has_to_move_on(const FmsWriteBuffer *buffer)
{
	return !fms_tape_holds(buffer->tape, buffer->filled_bytes +
						   buffer->tape->block_bytes) ||
		((buffer->filled_bytes == 0 || is_full(buffer)) &&
		 fms_tape_has_free(buffer->tape, buffer->slot_bytes));
}

char *
fms_write_buffer_block(FmsWriteBuffer *buffer, uint64 *address)
{
	Assert(!buffer->open);
	if (buffer->memory == NULL)
		buffer->memory = fms_io_map(buffer->tape->io,
									buffer->nslots * buffer->slot_bytes,
									fms_tape_is_direct(buffer->tape));
	if (has_to_move_on(buffer))
	{
		fms_write_buffer_end_page(buffer);
		fms_tape_move_on(buffer->tape, buffer->slot_bytes);
	}
	else if (is_full(buffer))
		write_pages(buffer);
	buffer->open = true;
	*address = fms_tape_position(buffer->tape) + buffer->filled_bytes;
	return next_bytes(buffer);
}

void
fms_write_buffer_done(FmsWriteBuffer *buffer)
{
	Assert(buffer->open);
	buffer->open = false;
	buffer->filled_bytes += buffer->tape->block_bytes;
	Assert(buffer->filled_bytes <= buffer->slot_bytes);
}

void
fms_write_buffer_end_page(FmsWriteBuffer *buffer)
{
	Size		padded = FMS_IO_ALIGN(buffer->filled_bytes);

	Assert(!buffer->open);
	if (buffer->filled_bytes == 0)
		return;
	memset(next_bytes(buffer), 0, padded - buffer->filled_bytes);
	buffer->filled_bytes = padded;
	write_pages(buffer);
	Assert(buffer->filled_bytes == 0);
}
