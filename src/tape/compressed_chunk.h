/*-------------------------------------------------------------------------
 *
 * compressed_chunk.h
 *	  Records compressed together: what the blocks of a compressed run hold.
 *
 *-------------------------------------------------------------------------
 */
#ifndef FMS_COMPRESSED_CHUNK_H
#define FMS_COMPRESSED_CHUNK_H

#include "postgres.h"

#include "keys/record.h"

/* A chunk on disk begins with this. */
typedef struct FmsCompressedChunk
{
	uint16		stored_bytes;	/* that follow; as many as record_bytes: not
								 * compressed, it would have gained nothing */
	uint16		record_bytes;	/* of the records, side by side */
	uint32		records;		/* how many; at least one */
} FmsCompressedChunk;

StaticAssertDecl(sizeof(FmsCompressedChunk) == MAXIMUM_ALIGNOF,
				 "chunks go to disk: their header must not be padded");

/* Of a block, at most: that is what unpacking takes. */
#define FMS_COMPRESSED_MAX_SHARE	0.25

/*
 * Bytes of records that a chunk holds at most, in blocks of that size.  What
 * unpacks it needs as much memory, MAXALIGNed.
 */
extern uint32 fms_compressed_chunk_capacity(uint32 block_bytes);

/* What it takes of a block; the next one begins there. */
static inline uint32
fms_compressed_chunk_size(const FmsCompressedChunk *chunk)
{
	return sizeof(FmsCompressedChunk) + MAXALIGN(chunk->stored_bytes);
}

/*
 * Unpacks a chunk, of which left_bytes are there to be read, and says whether
 * it could have been made by fms_compressor_close(): whatever the bytes are,
 * nothing is read or written outside.
 */
extern bool fms_compressed_chunk_unpack(const FmsCompressedChunk *chunk,
										uint32 left_bytes, char *records,
										uint32 capacity);

/* Makes chunks, one after the other. */
typedef struct FmsCompressor FmsCompressor;

/*
 * Current context; pfree() is all it takes to be rid of it.  It takes 33 kB at
 * most, which count against nothing.
 */
extern FmsCompressor *fms_compressor_create(uint32 capacity);

/* Can this record be part of a chunk at all? */
extern bool fms_compressor_takes(const FmsCompressor *compressor,
							  const FmsRecord *record);

/* Adds a copy of it.  False, and nothing changes: this chunk is full. */
extern bool fms_compressor_add(FmsCompressor *compressor,
							   const FmsRecord *record);

extern bool fms_compressor_is_empty(const FmsCompressor *compressor);

/*
 * Compresses what has been added, and begins the next bundle.  The chunk and
 * what first() and last() return stay until the next add().
 */
extern const FmsCompressedChunk *
			fms_compressor_close(FmsCompressor *compressor);
extern const FmsRecord *fms_compressor_first(const FmsCompressor *compressor);
extern const FmsRecord *fms_compressor_last(const FmsCompressor *compressor);

#endif							/* FMS_COMPRESSED_CHUNK_H */
