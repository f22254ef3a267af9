/*-------------------------------------------------------------------------
 *
 * first_key_tape.h
 *	  The temporary file of first keys: chunks, written in sequence and read
 *	  back run by run.
 *
 *-------------------------------------------------------------------------
 */
#ifndef FMS_FIRST_KEY_TAPE_H
#define FMS_FIRST_KEY_TAPE_H

#include "postgres.h"

#include "base/counters.h"
#include "io/io.h"
#include "tape/write_buffer.h"

/* The header of a chunk, in memory and on tape; packed keys follow. */
typedef struct FmsFirstKeyChunk
{
	FmsChecksum checksum;		/* on tape only */
	struct FmsFirstKeyChunk *next;	/* in memory only */
	uint32		magic;
	uint32		number;			/* on tape: its offset in block quanta */
	uint32		size_bytes;		/* all of it */
	uint32		used_bytes;		/* header included */
} FmsFirstKeyChunk;

StaticAssertDecl(sizeof(FmsFirstKeyChunk) == 32 &&
				 offsetof(FmsFirstKeyChunk, checksum) == 0,
				 "chunks go to disk: their header must not be padded");

/* Reads of chunks are collected, and this many submitted together. */
#define FMS_CHUNK_READS_BATCH	8

/* Fields are for reading only, outside first_key_tape.c. */
typedef struct FmsFirstKeyTape
{
	FmsIo	   *io;
	Size		chunk_bytes;	/* usual size of a chunk */
	Size		largest_bytes;	/* of any chunk on the tape */
	FmsTape    *tape;			/* NULL until a chunk is written */
	FmsWriteBuffer *buffer;		/* likewise */
	FmsTapeUse	counted;		/* of the tape's use, what has been counted */
	uint64		counted_bytes;	/* likewise of its size */
	FmsIoRequest *requests[FMS_CHUNK_READS_BATCH];	/* not submitted yet */
	int			nrequests;
} FmsFirstKeyTape;

/* Usual size of a chunk if all first keys have share_bytes of memory. */
extern Size fms_first_key_chunk_bytes(Size share_bytes);

/* Memory of the tape's write buffer. */
extern Size fms_first_key_tape_bytes(void);

/* Prepares a zeroed tape.  The file is opened with its first chunk. */
extern void fms_first_key_tape_init(FmsFirstKeyTape *tape, FmsIo *io,
									Size share_bytes);

/* Closes the file, if any.  The channel has been closed before. */
extern void fms_first_key_tape_close(FmsFirstKeyTape *tape);

/* Offset of the next chunk; opens the file. */
extern uint64 fms_first_key_tape_offset(FmsFirstKeyTape *tape);

/* Makes an empty chunk of a header at `at`. */
extern void fms_first_key_chunk_init(FmsFirstKeyChunk *chunk, uint32 number,
									 Size size_bytes);

/*
 * Begins a chunk with room for key_bytes of packed keys, which may exceed the
 * usual size; ends the chunk, which is written then.
 */
extern FmsFirstKeyChunk *fms_first_key_tape_begin(FmsFirstKeyTape *tape,
												  Size key_bytes);
extern void fms_first_key_tape_end(FmsFirstKeyTape *tape,
								   FmsFirstKeyChunk *chunk);

/* Waits until all chunks are written, and gives up reserved space. */
extern void fms_first_key_tape_flush(FmsFirstKeyTape *tape);

/* How a run's chunks are read; the value is the number of chunk buffers. */
typedef enum FmsFirstKeyReading
{
	FMS_FIRST_KEYS_BEHIND = 1,	/* follows another reader, so finds its chunks
								 * in the page cache */
	FMS_FIRST_KEYS_AHEAD = 2	/* reads the next chunk meanwhile */
} FmsFirstKeyReading;

/* Reads one run's chunks in sequence. */
typedef struct FmsChunkReader FmsChunkReader;

/* Memory of a reader without its buffer. */
extern Size fms_chunk_reader_bytes(FmsFirstKeyReading reading);

/*
 * Opens a reader of tape_bytes at offset_bytes, in the current context.  The
 * caller's buffer has `reading` chunks of the usual size and is mapped through
 * the tape's channel.  The first read is collected: it is submitted together
 * with those of other readers.
 */
extern FmsChunkReader *fms_chunk_reader_open(FmsFirstKeyTape *tape,
											 uint64 offset_bytes,
											 uint64 tape_bytes,
											 FmsFirstKeyReading reading,
											 char *buffer);

/*
 * Waits for the next chunk and checks it; NULL after the last one.  Valid
 * until the next call.  Raises ERRCODE_DATA_CORRUPTED.
 */
extern const FmsFirstKeyChunk *fms_chunk_reader_next(FmsChunkReader *reader);

/* Frees the reader.  Nothing may be in flight: unmap the buffer first. */
extern void fms_chunk_reader_close(FmsChunkReader *reader);

#endif							/* FMS_FIRST_KEY_TAPE_H */
