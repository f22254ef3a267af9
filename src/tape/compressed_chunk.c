/*-------------------------------------------------------------------------
 *
 * compressed_chunk.c
 *	  Records compressed together: what the blocks of a compressed run hold.
 *
 * Where a device is slow, fewer bytes are worth more than the time it takes to
 * make them fewer (compression.c decides).  Blocks keep their size, since a
 * block's place on the tape is a multiplication and its reads are aligned;
 * they hold more records instead.  A block is thus not compressed as a whole,
 * but in chunks of some of its records:
 *
 *	  plain	| header | record | record | record | record | ..		   |
 *	  not	| header | chunk: 60 records | chunk: 62 records | ..	   |
 *
 *	  chunk  | stored, records' bytes, count | LZ4's bytes | pad to 8 |
 *
 * The merge has the blocks as they are on disk, so that memory and reads ahead
 * last for twice the records, and unpacks a chunk of each run at a time.
 * That is its size: 8 kB, compressed nearly as well as 32 kB would be (orders
 * by date to 45 % instead of 41), and a quarter of the block at most, so that
 * unpacking never takes more than a quarter of the memory that the blocks
 * take, and what is left unused at a block's end remains small.
 *
 * A chunk that does not become smaller is stored as it is.  Then it takes
 * eight bytes more than its records.
 *
 * Why LZ4: run formation makes some 400 MB of records a second; LZ4 takes 550,
 * and gives 4 GB/s back.  Of the same chunks Zstandard's level -1 makes 37 %,
 * at 300 MB/s, and gives back 0.9 GB/s: worth it on the slowest devices only.
 * And the server depends on LZ4 itself.
 *
 * Memory: a compressor is one piece, palloc'd; LZ4 allocates nothing.
 * Nothing here fails but palloc().
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <lz4.h>

#include "tape/compressed_chunk.h"

#define CHUNK_MAX_BYTES	((uint32) 8192)

StaticAssertDecl(CHUNK_MAX_BYTES <= PG_UINT16_MAX,
				 "a chunk's size must fit into its header");

struct FmsCompressor
{
	LZ4_stream_t lz4;			/* what LZ4 works with: its hash table */
	uint32		capacity;
	uint32		record_bytes;	/* filled */
	uint32		records;
	uint32		last_at;		/* where the last record begins */
	bool		closed;			/* the next record begins a chunk */
	FmsCompressedChunk  *chunk;			/* packed; room for the worst case */
	char	   *bytes;			/* [capacity] records as they are */
};

uint32
fms_compressed_chunk_capacity(uint32 block_bytes)
{
	uint32		share = block_bytes * FMS_COMPRESSED_MAX_SHARE;

	return Min(CHUNK_MAX_BYTES, MAXALIGN_DOWN(share));
}

FmsCompressor *
fms_compressor_create(uint32 capacity)
{
	Size		head_bytes = MAXALIGN(sizeof(FmsCompressor));
	char	   *memory = palloc(head_bytes + sizeof(FmsCompressedChunk) +
								2 * capacity);
	FmsCompressor *compressor = (FmsCompressor *) memory;

	Assert(capacity == MAXALIGN(capacity));
	Assert(capacity <= CHUNK_MAX_BYTES);
	memset(compressor, 0, sizeof(*compressor));
	LZ4_initStream(&compressor->lz4, sizeof(compressor->lz4));
	compressor->capacity = capacity;
	compressor->bytes = memory + head_bytes;
	compressor->chunk = (FmsCompressedChunk *) (compressor->bytes + capacity);
	return compressor;
}

bool
fms_compressor_takes(const FmsCompressor *compressor, const FmsRecord *record)
{
	return fms_record_bytes(record) <= compressor->capacity;
}

bool
fms_compressor_is_empty(const FmsCompressor *compressor)
{
	return compressor->closed || compressor->records == 0;
}

bool
fms_compressor_add(FmsCompressor *compressor, const FmsRecord *record)
{
	uint32		bytes = fms_record_bytes(record);

	if (compressor->closed)
	{
		compressor->closed = false;
		compressor->record_bytes = 0;
		compressor->records = 0;
	}
	if (compressor->capacity - compressor->record_bytes < bytes)
		return false;
	compressor->last_at = compressor->record_bytes;
	memcpy(compressor->bytes + compressor->record_bytes, record, bytes);
	compressor->record_bytes += bytes;
	compressor->records++;
	return true;
}

/*
 * LZ4 gives up where the result would be as long as the records, which then
 * are what is stored.
 */
const FmsCompressedChunk *
fms_compressor_close(FmsCompressor *compressor)
{
	FmsCompressedChunk  *chunk = compressor->chunk;
	char	   *stored = (char *) (chunk + 1);
	int			bytes;

	Assert(!fms_compressor_is_empty(compressor));
	compressor->closed = true;
	/* no chunk refers to another: each can be unpacked by itself */
	LZ4_resetStream_fast(&compressor->lz4);
	bytes = LZ4_compress_fast_continue(&compressor->lz4, compressor->bytes,
									   stored,
									   compressor->record_bytes,
									   compressor->record_bytes - 1, 1);
	if (bytes <= 0)
	{
		bytes = compressor->record_bytes;
		memcpy(stored, compressor->bytes, bytes);
	}
	chunk->stored_bytes = bytes;
	chunk->record_bytes = compressor->record_bytes;
	chunk->records = compressor->records;
	/* what an earlier chunk left behind does not go to disk */
	memset(stored + bytes, 0, MAXALIGN(bytes) - bytes);
	Assert(fms_compressed_chunk_size(chunk) <=
		   sizeof(FmsCompressedChunk) + compressor->record_bytes);
	return chunk;
}

const FmsRecord *
fms_compressor_first(const FmsCompressor *compressor)
{
	Assert(compressor->records > 0);
	return (const FmsRecord *) compressor->bytes;
}

const FmsRecord *
fms_compressor_last(const FmsCompressor *compressor)
{
	Assert(compressor->records > 0);
	return (const FmsRecord *) (compressor->bytes + compressor->last_at);
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
