/*-------------------------------------------------------------------------
 *
 * block.h
 *	  The format of a run's blocks: plain, packed or compressed.
 *
 *-------------------------------------------------------------------------
 */
#ifndef FMS_BLOCK_H
#define FMS_BLOCK_H

#include "base/checksum.h"
#include "keys/keys.h"
#include "tape/tape.h"

/*
 * The header names the block, so that a stale or misplaced block is an error
 * and never a wrong answer.  The magic number says which form the block has:
 *
 *	  | header | continued_bytes | record | record | ... | unused |
 *	  | header | packed record | packed record | ...  .. | unused |
 *	  | header | compressed chunk | compressed chunk | . | unused |
 *	  |<---------------------- used_bytes -------------->|
 */
typedef struct FmsBlockHeader
{
	FmsChecksum checksum;
	uint32		magic;			/* FMS_BLOCK_..._MAGIC */
	uint32		run;			/* id of the run it belongs to */
	uint32		number;			/* position in that run, from 0 */
	uint32		used_bytes;		/* header included */
	uint32		continued_bytes;	/* of a record that began in an earlier
									 * block; 0: starts with a record */
	uint32		records;		/* number of records that begin here */
} FmsBlockHeader;

#define FMS_BLOCK_PLAIN_MAGIC 0x464D5342	/* "FMSB" */
#define FMS_BLOCK_PACKED_MAGIC 0x464D5350	/* "FMSP" */
#define FMS_BLOCK_COMPRESSED_MAGIC 0x464D5343	/* "FMSC" */

StaticAssertDecl(sizeof(FmsBlockHeader) == 32 &&
				 offsetof(FmsBlockHeader, checksum) == 0,
				 "blocks go to disk: their header must not be padded");

/* Room for records in a block of block_bytes. */
static inline uint32
fms_block_room(uint32 block_bytes)
{
	return block_bytes - sizeof(FmsBlockHeader);
}

/* Raises an error unless it is the run's block `number`, as it was written. */
extern void fms_block_check(const FmsTape *tape, int file, const char *block,
							uint32 block_bytes, uint32 run, uint32 number);

/* ---- compressed chunks of records: compressed_chunk.c ---- */

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

/* ---- packed records: packed_record.c ---- */

/* Longest tuple that is packed, in bytes: keys hardly count beside others. */
#define FMS_PACKED_TUPLE_BYTES	384

/* Memory for unpacking a record, MAXALIGNed. */
#define FMS_PACKED_BUFFER_BYTES \
	(FMS_KEY_MAX_BYTES - FMS_KEY_LAST_BYTES + FMS_PACKED_TUPLE_BYTES)

/* Largest size of a small block, in bytes: work_mem is small, too. */
#define FMS_PACKED_SMALL_BYTES	8192

/* Making the key again must not read out-of-line values, nor decompress. */
static inline bool
fms_record_can_be_packed(const FmsRecord *record)
{
	MinimalTuple tuple = fms_record_tuple(record);
	Size		offset = record->flags >> FMS_RECORD_COLUMN_SHIFT;

	return record->tuple_bytes <= FMS_PACKED_TUPLE_BYTES &&
		!(tuple->t_infomask & HEAP_HASEXTERNAL) &&
		!(offset > 0 && VARATT_IS_COMPRESSED((char *) tuple + offset));
}

/*
 * Is the record a tenth larger than PostgreSQL's tuple on tape?  A fifth in
 * large blocks, where unpacking whole rows takes longer than it saves.
 */
static inline bool
fms_packing_pays(const FmsRecord *record, uint32 block_bytes)
{
	Size		stock_bytes = record->tuple_bytes - FMS_TUPLE_SKIPPED_BYTES +
		sizeof(int);

	return fms_record_bytes(record) > stock_bytes +
		stock_bytes / (block_bytes <= FMS_PACKED_SMALL_BYTES ? 10 : 5);
}

/*
 * Appends a record, which can be packed, to those in area[room_bytes], which
 * is used up to at_bytes.  words: see fms_keys_word_type().  Returns the end
 * of what is used now, or 0 if the record does not fit.
 */
extern uint32 fms_packed_append(const FmsWordType *words, char *area,
								uint32 at_bytes, uint32 room_bytes,
								const FmsRecord *record);

/*
 * Returns the closed record at *at_bytes, in buffer, and moves *at_bytes
 * behind it.  buffer is MAXALIGNed and has FMS_PACKED_BUFFER_BYTES.  NULL if
 * fms_packed_append() cannot have written it.  May run an encoder, hence
 * allocate and ERROR.
 */
extern const FmsRecord *fms_packed_read(FmsKeys *keys, const char *area,
										uint32 *at_bytes, uint32 room_bytes,
										char *buffer);

#endif							/* FMS_BLOCK_H */
