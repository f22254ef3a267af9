/*-------------------------------------------------------------------------
 *
 * write_buffer.h
 *	  Writing to a tape piece by piece, while the pieces before are being
 *	  written.
 *
 *-------------------------------------------------------------------------
 */
#ifndef FMS_WRITE_BUFFER_H
#define FMS_WRITE_BUFFER_H

#include "postgres.h"

#include "tape/tape.h"

typedef struct FmsWriteBuffer FmsWriteBuffer;

/* A buffer of this size holds a piece of that size, wherever it starts. */
#define FMS_WRITE_BUFFER_BYTES(piece_bytes) \
	FMS_IO_ALIGN((piece_bytes) + FMS_IO_ALIGN_BYTES)

#define FMS_WRITE_BUFFERS_MIN	2
#define FMS_WRITE_BUFFERS_MAX	4

/*
 * Current context, whose owner drains the channel.  The tape must have no
 * other writer.  Its buffers may take room that others have left (io.h), or
 * not.
 */
extern FmsWriteBuffer *fms_write_buffer_create(FmsIo *io, FmsTape *tape,
									Size buffer_bytes, int nbuffers,
									bool in_room);

/*
 * Waits for what is being written, all of which has been started, and gives
 * the buffers back until there is another piece.
 */
extern void fms_write_buffer_rest(FmsWriteBuffer *stream);

/* Waits for what is being written, and frees the stream and its buffers. */
extern void fms_write_buffer_destroy(FmsWriteBuffer *stream);

/* Frees the stream after its channel, and so its buffers, has been closed. */
extern void fms_write_buffer_forget(FmsWriteBuffer *stream);

/* Memory its buffers take now. */
extern Size fms_write_buffer_bytes(const FmsWriteBuffer *stream);

/*
 * Where on the tape the next piece will be, unless it takes the tape's
 * position elsewhere; where an open one is.
 */
extern uint64 fms_write_buffer_position(const FmsWriteBuffer *stream);

/*
 * Room for the next piece, contiguous and MAXALIGNed if all pieces are.  The
 * caller fills it and calls done; only one piece can be open.  A piece that
 * is larger than the buffers makes them grow.
 */
extern char *fms_write_buffer_piece(FmsWriteBuffer *stream, Size bytes);
extern void fms_write_buffer_done(FmsWriteBuffer *stream, Size bytes);

/*
 * Starts writing all pieces that are done; the next one will start on a new
 * page of the tape.
 */
extern void fms_write_buffer_end_page(FmsWriteBuffer *stream);

/* Waits until that has been written; reports failed writes. */
extern void fms_write_buffer_flush(FmsWriteBuffer *stream);

#endif							/* FMS_WRITE_BUFFER_H */
