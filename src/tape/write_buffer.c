/*-------------------------------------------------------------------------
 *
 * write_buffer.c
 *	  Writing to a tape piece by piece, while the pieces before are being
 *	  written.
 *
 *	  pieces --> [piece|piece|piece|..]  buffer 0: being filled
 *	             [piece|piece|piece|..]  buffer 1: being written
 *
 * Pieces and writes have sizes of their own.  A piece is what is read back
 * (a block, a chunk of first keys) and may be as small as 512 bytes or no
 * multiple of a page; writes should be large, and whole aligned pages (file
 * systems take unaligned direct writes one at a time, reading around their
 * edges).  So pieces are laid out back to back in the buffer, whole pages of
 * it are written, and the rest, less than a page, moves to the front of the
 * next buffer.  Only fms_write_buffer_end_page() pads.
 *
 * A piece lies in a row on the tape.  Where the tape's position does not hold
 * it, the stream ends the page and goes on elsewhere; also where it is at the
 * end though something is free, but then between two buffers.
 *
 * Memory: buffers are mapped through the channel, when the first piece comes;
 * the stream and its requests are palloc'd.  On ERROR nothing is done here:
 * see io.c.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "tape/write_buffer.h"

typedef struct FmsWriteBufferSlot
{
	char	   *base;
	FmsIoRequest request;		/* IDLE: the buffer is free */
} FmsWriteBufferSlot;

struct FmsWriteBuffer
{
	FmsIo	   *io;
	FmsTape    *tape;
	char	   *memory;			/* mapped: all buffers; NULL: not now */
	Size		buffer_bytes;	/* of each, a multiple of a page */
	int			nbuffers;
	bool		in_room;		/* that others have left, if it is enough */
	FmsWriteBufferSlot buffers[FMS_WRITE_BUFFERS_MAX];
	int			current;		/* the one being filled */
	Size		filled_bytes;	/* of it, by pieces that are done */
	bool		open;			/* a piece is being filled behind them */
};

static void
map_buffers(FmsWriteBuffer *stream, Size buffer_bytes)
{
	int			i;

	stream->buffer_bytes = buffer_bytes;
	stream->memory = stream->in_room ?
		fms_io_map_in_room(stream->io, stream->nbuffers * buffer_bytes) :
		fms_io_map(stream->io, stream->nbuffers * buffer_bytes);
	for (i = 0; i < stream->nbuffers; i++)
		stream->buffers[i].base = stream->memory + i * buffer_bytes;
	stream->current = 0;
}

FmsWriteBuffer *
fms_write_buffer_create(FmsIo *io, FmsTape *tape, Size buffer_bytes,
						int nbuffers, bool in_room)
{
	FmsWriteBuffer  *stream = palloc0(sizeof(FmsWriteBuffer));

	Assert(nbuffers >= FMS_WRITE_BUFFERS_MIN);
	Assert(nbuffers <= FMS_WRITE_BUFFERS_MAX);
	stream->io = io;
	stream->tape = tape;
	stream->nbuffers = nbuffers;
	stream->in_room = in_room;
	stream->buffer_bytes = FMS_IO_ALIGN(buffer_bytes);
	return stream;
}

void
fms_write_buffer_flush(FmsWriteBuffer *stream)
{
	int			i;

	for (i = 0; i < stream->nbuffers; i++)
	{
		if (stream->buffers[i].request.state != FMS_IO_IDLE)
			fms_tape_wait(stream->tape, &stream->buffers[i].request);
	}
}

void
fms_write_buffer_rest(FmsWriteBuffer *stream)
{
	Assert(!stream->open && stream->filled_bytes == 0);
	fms_write_buffer_flush(stream);
	if (stream->memory)
		fms_io_unmap(stream->io, stream->memory);
	stream->memory = NULL;
}

void
fms_write_buffer_destroy(FmsWriteBuffer *stream)
{
	fms_write_buffer_rest(stream);
	pfree(stream);
}

void
fms_write_buffer_forget(FmsWriteBuffer *stream)
{
	pfree(stream);
}

Size
fms_write_buffer_bytes(const FmsWriteBuffer *stream)
{
	return stream->nbuffers * stream->buffer_bytes;
}

uint64
fms_write_buffer_position(const FmsWriteBuffer *stream)
{
	return fms_tape_position(stream->tape) + stream->filled_bytes;
}

/*
 * Starts writing the whole pages of the current buffer, and goes on with
 * what is left of it in the next one.
 */
static void
write_pages(FmsWriteBuffer *stream)
{
	FmsWriteBufferSlot *full = &stream->buffers[stream->current];
	FmsWriteBufferSlot *next;
	Size		whole = FMS_IO_ALIGN_DOWN(stream->filled_bytes);
	Size		rest = stream->filled_bytes - whole;

	if (whole == 0)
		return;
	fms_tape_append(stream->tape, &full->request, full->base, whole);
	stream->current = (stream->current + 1) % stream->nbuffers;
	next = &stream->buffers[stream->current];
	if (next->request.state != FMS_IO_IDLE)
		fms_tape_wait(stream->tape, &next->request);
	memcpy(next->base, full->base + whole, rest);
	stream->filled_bytes = rest;
}

/* Larger buffers; what the current one holds moves along. */
static void
grow_buffers(FmsWriteBuffer *stream, Size buffer_bytes)
{
	char	   *old_memory = stream->memory;
	const char *old_base = stream->buffers[stream->current].base;

	Assert(stream->filled_bytes < FMS_IO_ALIGN_BYTES);
	fms_write_buffer_flush(stream);
	map_buffers(stream, buffer_bytes);
	memcpy(stream->buffers[0].base, old_base, stream->filled_bytes);
	fms_io_unmap(stream->io, old_memory);
}

/* Has the current buffer no room for a piece of that size? */
static inline bool
is_full(const FmsWriteBuffer *stream, Size bytes)
{
	return stream->buffer_bytes - stream->filled_bytes < bytes;
}

/* Is a piece of that size to go elsewhere on the tape? */
static inline bool
is_to_move_on(const FmsWriteBuffer *stream, Size bytes)
{
	bool		writes_now = stream->filled_bytes == 0 ||
		is_full(stream, bytes);

	return !fms_tape_holds(stream->tape, stream->filled_bytes + bytes) ||
		(writes_now && fms_tape_has_free(stream->tape, bytes));
}

char *
fms_write_buffer_piece(FmsWriteBuffer *stream, Size bytes)
{
	Assert(!stream->open);
	if (stream->memory == NULL)
		map_buffers(stream, stream->buffer_bytes);
	if (is_to_move_on(stream, bytes))
	{
		fms_write_buffer_end_page(stream);
		fms_tape_move_on(stream->tape, bytes);
	}
	else if (is_full(stream, bytes))
		write_pages(stream);
	if (is_full(stream, bytes))
		grow_buffers(stream, FMS_WRITE_BUFFER_BYTES(bytes));
	stream->open = true;
	return stream->buffers[stream->current].base + stream->filled_bytes;
}

void
fms_write_buffer_done(FmsWriteBuffer *stream, Size bytes)
{
	Assert(stream->open);
	stream->open = false;
	stream->filled_bytes += bytes;
	Assert(stream->filled_bytes <= stream->buffer_bytes);
}

void
fms_write_buffer_end_page(FmsWriteBuffer *stream)
{
	char	   *base = stream->buffers[stream->current].base;
	Size		padded = FMS_IO_ALIGN(stream->filled_bytes);

	Assert(!stream->open);
	if (stream->filled_bytes == 0)
		return;
	memset(base + stream->filled_bytes, 0, padded - stream->filled_bytes);
	stream->filled_bytes = padded;
	write_pages(stream);
	Assert(stream->filled_bytes == 0);
}
