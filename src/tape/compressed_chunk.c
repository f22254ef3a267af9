/*-------------------------------------------------------------------------
 *
 * compressed_chunk.c
 *	  Records compressed together: the contents of a compressed run's blocks.
 *
 *	  plain	      | header | record | record | record | record | ..		  |
 *	  compressed  | header | chunk: 60 records | chunk: 62 records | ..	  |
 *
 *	  chunk       | stored, records' bytes, number | LZ4's bytes | pad to 8 |
 *
 * Blocks keep their size, so that a block's offset is a multiplication and its
 * reads are aligned; they hold more records instead.  The merge has blocks in
 * memory as they are on disk, and unpacks one chunk of each run at a time.
 *
 * A chunk that does not become smaller is stored as it is.  LZ4 allocates
 * nothing.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <lz4.h>

#include "tape/block.h"

/*
 * Largest size of a chunk's records: in bytes, and as a part of the block,
 * which bounds the memory for unpacking and the unused space at its end.
 */
#define CHUNK_MAX_BYTES		((uint32) 8192)
#define CHUNK_MAX_FRACTION	4

StaticAssertDecl(CHUNK_MAX_BYTES <= PG_UINT16_MAX,
				 "a chunk's size must fit into its header");

struct FmsCompressor
{
	LZ4_stream_t lz4;			/* LZ4's hash table */
	uint32		capacity;
	uint32		record_bytes;	/* filled */
	uint32		records;
	uint32		last_at;		/* where the last record begins */
	FmsCompressedChunk chunk;	/* with the next: as it goes to disk */
	char		stored[CHUNK_MAX_BYTES];
	char		bytes[CHUNK_MAX_BYTES]; /* records as they are */
};

StaticAssertDecl(offsetof(FmsCompressor, bytes) % MAXIMUM_ALIGNOF == 0 &&
				 offsetof(FmsCompressor, stored) ==
				 offsetof(FmsCompressor, chunk) + sizeof(FmsCompressedChunk),
				 "records are aligned, and a chunk's bytes follow its header");

uint32
fms_compressed_chunk_capacity(uint32 block_bytes)
{
	return Min(CHUNK_MAX_BYTES,
			   MAXALIGN_DOWN(block_bytes / CHUNK_MAX_FRACTION));
}

FmsCompressor *
fms_compressor_create(uint32 capacity)
{
	FmsCompressor *compressor = palloc0(sizeof(FmsCompressor));

	Assert(capacity == MAXALIGN(capacity));
	Assert(capacity <= CHUNK_MAX_BYTES);
	LZ4_initStream(&compressor->lz4, sizeof(compressor->lz4));
	compressor->capacity = capacity;
	return compressor;
}

bool
fms_compressor_add(FmsCompressor *compressor, const FmsRecord *record)
{
	uint32		bytes = fms_record_bytes(record);

	if (compressor->capacity - compressor->record_bytes < bytes)
		return false;
	compressor->last_at = compressor->record_bytes;
	memcpy(compressor->bytes + compressor->record_bytes, record, bytes);
	compressor->record_bytes += bytes;
	compressor->records++;
	return true;
}

const FmsCompressedChunk *
fms_compressor_close(FmsCompressor *compressor, const FmsRecord **first,
					 const FmsRecord **last)
{
	FmsCompressedChunk *chunk = &compressor->chunk;
	char	   *stored = compressor->stored;
	uint32		record_bytes = compressor->record_bytes;
	int			bytes;

	if (record_bytes == 0)
		return NULL;
	/* no chunk refers to another: each can be unpacked by itself */
	LZ4_resetStream_fast(&compressor->lz4);
	bytes = LZ4_compress_fast_continue(&compressor->lz4, compressor->bytes,
									   stored, record_bytes,
									   record_bytes - 1, 1);
	if (bytes <= 0)
	{
		/* the result would be as long as the records, so store these */
		bytes = record_bytes;
		memcpy(stored, compressor->bytes, bytes);
	}
	chunk->stored_bytes = bytes;
	chunk->record_bytes = record_bytes;
	chunk->records = compressor->records;
	/* bytes of an earlier chunk must not go to disk */
	memset(stored + bytes, 0, MAXALIGN(bytes) - bytes);
	Assert(fms_compressed_chunk_size(chunk) <=
		   sizeof(FmsCompressedChunk) + record_bytes);

	*first = (const FmsRecord *) compressor->bytes;
	*last = (const FmsRecord *) (compressor->bytes + compressor->last_at);
	compressor->record_bytes = 0;
	compressor->records = 0;
	return chunk;
}

bool
fms_compressed_chunk_unpack(const FmsCompressedChunk *chunk,
							uint32 left_bytes, char *records, uint32 capacity)
{
	if (left_bytes < sizeof(FmsCompressedChunk) ||
		left_bytes < fms_compressed_chunk_size(chunk) ||
		chunk->record_bytes > capacity ||
		chunk->stored_bytes > chunk->record_bytes ||
		chunk->records == 0 ||
		chunk->records > chunk->record_bytes / sizeof(FmsRecord))
		return false;
	if (chunk->stored_bytes == chunk->record_bytes)
	{
		memcpy(records, chunk + 1, chunk->record_bytes);
		return true;
	}
	return LZ4_decompress_safe((const char *) (chunk + 1), records,
							   chunk->stored_bytes,
							   chunk->record_bytes) == chunk->record_bytes;
}
