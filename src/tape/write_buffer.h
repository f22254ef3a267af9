/*-------------------------------------------------------------------------
 *
 * write_buffer.h
 *	  Writes blocks to a tape, in large asynchronous writes.
 *
 *-------------------------------------------------------------------------
 */
#ifndef FMS_WRITE_BUFFER_H
#define FMS_WRITE_BUFFER_H

#include "postgres.h"

#include "tape/tape.h"

typedef struct FmsWriteBuffer FmsWriteBuffer;

/* Size of a buffer that holds a block, whose pages need not be whole. */
#define FMS_WRITE_BUFFER_BYTES(block_bytes) \
	((block_bytes) % FMS_IO_ALIGN_BYTES == 0 ? (Size) (block_bytes) : \
	 FMS_IO_ALIGN((block_bytes) + FMS_IO_ALIGN_BYTES))

/* Number of buffers: one is filled while the others are written. */
#define FMS_WRITE_BUFFERS_MIN	2
#define FMS_WRITE_BUFFERS_MAX	4

/*
 * Creates the tape's only write buffer in the current context, whose owner
 * drains the channel.  Each of the nbuffers buffers has buffer_bytes, at least
 * FMS_WRITE_BUFFER_BYTES() of a block.  Once flushed, pfree() frees it.
 */
extern FmsWriteBuffer *fms_write_buffer_create(FmsTape *tape,
											   Size buffer_bytes,
											   int nbuffers);

/*
 * Memory of the next block, MAXALIGNed if its size is, and its address on the
 * tape.  The caller fills it before fms_write_buffer_done().
 */
extern char *fms_write_buffer_block(FmsWriteBuffer *buffer, uint64 *address);
extern void fms_write_buffer_done(FmsWriteBuffer *buffer);

/* Starts writing all blocks; the next one starts on a new page of the tape. */
extern void fms_write_buffer_end_page(FmsWriteBuffer *buffer);

/*
 * After that: waits for all writes, reports failed ones, and unmaps the
 * buffers until the next block.
 */
extern void fms_write_buffer_flush(FmsWriteBuffer *buffer);

#endif							/* FMS_WRITE_BUFFER_H */
