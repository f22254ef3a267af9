/*-------------------------------------------------------------------------
 *
 * compressed_chunk.h
 *	  Records compressed together: the contents of a compressed run's blocks.
 *
 *-------------------------------------------------------------------------
 */
#ifndef FMS_COMPRESSED_CHUNK_H
#define FMS_COMPRESSED_CHUNK_H

#include "postgres.h"

#include "keys/record.h"

/* The header of a chunk on disk. */
typedef struct FmsCompressedChunk
{
	uint16		stored_bytes;	/* that follow; equal to record_bytes: not
								 * compressed */
	uint16		record_bytes;	/* of the records, side by side */
	uint32		records;		/* number of records; at least one */
} FmsCompressedChunk;

StaticAssertDecl(sizeof(FmsCompressedChunk) == MAXIMUM_ALIGNOF,
				 "chunks go to disk: their header must not be padded");

/* Largest size of a chunk's records, MAXALIGNed, in blocks of block_bytes. */
extern uint32 fms_compressed_chunk_capacity(uint32 block_bytes);

/* Size of the chunk in its block; the next one follows. */
static inline uint32
fms_compressed_chunk_size(const FmsCompressedChunk *chunk)
{
	return sizeof(FmsCompressedChunk) + MAXALIGN(chunk->stored_bytes);
}

/*
 * Unpacks a chunk, of which left_bytes can be read, to records[capacity].
 * Whatever its bytes are: false if fms_compressor_close() has not made it.
 */
extern bool fms_compressed_chunk_unpack(const FmsCompressedChunk *chunk,
										uint32 left_bytes, char *records,
										uint32 capacity);

/* Makes chunks, one after the other. */
typedef struct FmsCompressor FmsCompressor;

/* palloc'd: 33 kB, which do not count against work_mem. */
extern FmsCompressor *fms_compressor_create(uint32 capacity);

/* Adds a copy of the record; false if the capacity has no room for it. */
extern bool fms_compressor_add(FmsCompressor *compressor,
							   const FmsRecord *record);

/*
 * Compresses the records that have been added, if any, and begins the next
 * chunk.  This one and its first and last record are valid until then.
 */
extern const FmsCompressedChunk *
fms_compressor_close(FmsCompressor *compressor, const FmsRecord **first,
					 const FmsRecord **last);

#endif							/* FMS_COMPRESSED_CHUNK_H */
