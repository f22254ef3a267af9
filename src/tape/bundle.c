/*-------------------------------------------------------------------------
 *
 * bundle.c
 *	  Records compressed together: what the blocks of a compressed run hold.
 *
 * Where a device is slow, fewer bytes are worth more than the time it takes to
 * make them fewer (compression.c decides).  Blocks keep their size, since a
 * block's place on the tape is a multiplication and its reads are aligned;
 * they hold more records instead.  A block is thus not compressed as a whole,
 * but in bundles of some of its records:
 *
 *	  plain	| header | record | record | record | record | ..		   |
 *	  not	| header | bundle: 60 records | bundle: 62 records | ..	   |
 *
 *	  bundle  | stored, records' bytes, count | LZ4's bytes | pad to 8 |
 *
 * The merge has the blocks as they are on disk, so that memory and reads ahead
 * last for twice the records, and unpacks a bundle of each run at a time.
 * That is its size: 8 kB, compressed nearly as well as 32 kB would be (orders
 * by date to 45 % instead of 41), and a quarter of the block at most, so that
 * unpacking never takes more than a quarter of the memory that the blocks
 * take, and what is left unused at a block's end remains small.
 *
 * A bundle that does not become smaller is stored as it is.  Then it takes
 * eight bytes more than its records.
 *
 * Why LZ4: run formation makes some 400 MB of records a second; LZ4 takes 550,
 * and gives 4 GB/s back.  Of the same bundles Zstandard's level -1 makes 37 %,
 * at 300 MB/s, and gives back 0.9 GB/s: worth it on the slowest devices only.
 * And the server depends on LZ4 itself.
 *
 * Memory: a bundler is one piece of memory, palloc'd; LZ4 allocates nothing.
 * Nothing here fails but palloc().
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <lz4.h>

#include "tape/bundle.h"

#define BUNDLE_MAX_BYTES	((uint32) 8192)

StaticAssertDecl(BUNDLE_MAX_BYTES <= PG_UINT16_MAX,
				 "a bundle's size must fit into its header");

struct FmsBundler
{
	LZ4_stream_t lz4;			/* what LZ4 works with: its hash table */
	uint32		capacity;
	uint32		record_bytes;	/* filled */
	uint32		records;
	uint32		last_at;		/* where the last record begins */
	bool		closed;			/* the next record begins a bundle */
	FmsBundle  *bundle;			/* packed; room for the worst case */
	char	   *bytes;			/* [capacity] records as they are */
};

uint32
fms_bundle_capacity(uint32 block_bytes)
{
	uint32		share = block_bytes * FMS_BUNDLE_MAX_SHARE;

	return Min(BUNDLE_MAX_BYTES, MAXALIGN_DOWN(share));
}

FmsBundler *
fms_bundler_create(uint32 capacity)
{
	Size		head_bytes = MAXALIGN(sizeof(FmsBundler));
	char	   *memory = palloc(head_bytes + sizeof(FmsBundle) + 2 * capacity);
	FmsBundler *bundler = (FmsBundler *) memory;

	Assert(capacity == MAXALIGN(capacity));
	Assert(capacity <= BUNDLE_MAX_BYTES);
	memset(bundler, 0, sizeof(*bundler));
	LZ4_initStream(&bundler->lz4, sizeof(bundler->lz4));
	bundler->capacity = capacity;
	bundler->bytes = memory + head_bytes;
	bundler->bundle = (FmsBundle *) (bundler->bytes + capacity);
	return bundler;
}

bool
fms_bundler_takes(const FmsBundler *bundler, const FmsRecord *record)
{
	return fms_record_bytes(record) <= bundler->capacity;
}

bool
fms_bundler_is_empty(const FmsBundler *bundler)
{
	return bundler->closed || bundler->records == 0;
}

bool
fms_bundler_add(FmsBundler *bundler, const FmsRecord *record)
{
	uint32		bytes = fms_record_bytes(record);

	if (bundler->closed)
	{
		bundler->closed = false;
		bundler->record_bytes = 0;
		bundler->records = 0;
	}
	if (bundler->capacity - bundler->record_bytes < bytes)
		return false;
	bundler->last_at = bundler->record_bytes;
	memcpy(bundler->bytes + bundler->record_bytes, record, bytes);
	bundler->record_bytes += bytes;
	bundler->records++;
	return true;
}

/*
 * LZ4 gives up where the result would be as long as the records, which then
 * are what is stored.
 */
const FmsBundle *
fms_bundler_close(FmsBundler *bundler)
{
	FmsBundle  *bundle = bundler->bundle;
	char	   *stored = (char *) (bundle + 1);
	int			bytes;

	Assert(!fms_bundler_is_empty(bundler));
	bundler->closed = true;
	/* no bundle refers to another: each can be unpacked by itself */
	LZ4_resetStream_fast(&bundler->lz4);
	bytes = LZ4_compress_fast_continue(&bundler->lz4, bundler->bytes, stored,
									   bundler->record_bytes,
									   bundler->record_bytes - 1, 1);
	if (bytes <= 0)
	{
		bytes = bundler->record_bytes;
		memcpy(stored, bundler->bytes, bytes);
	}
	bundle->stored_bytes = bytes;
	bundle->record_bytes = bundler->record_bytes;
	bundle->records = bundler->records;
	/* what an earlier bundle left behind does not go to disk */
	memset(stored + bytes, 0, MAXALIGN(bytes) - bytes);
	Assert(fms_bundle_size(bundle) <=
		   sizeof(FmsBundle) + bundler->record_bytes);
	return bundle;
}

const FmsRecord *
fms_bundler_first(const FmsBundler *bundler)
{
	Assert(bundler->records > 0);
	return (const FmsRecord *) bundler->bytes;
}

const FmsRecord *
fms_bundler_last(const FmsBundler *bundler)
{
	Assert(bundler->records > 0);
	return (const FmsRecord *) (bundler->bytes + bundler->last_at);
}

bool
fms_bundle_unpack(const FmsBundle *bundle, uint32 left_bytes, char *records,
				  uint32 capacity)
{
	if (left_bytes < sizeof(FmsBundle) ||
		left_bytes < fms_bundle_size(bundle) ||
		bundle->record_bytes > capacity ||
		bundle->stored_bytes > bundle->record_bytes ||
		bundle->records == 0 ||
		bundle->records > bundle->record_bytes / sizeof(FmsRecord))
		return false;
	if (bundle->stored_bytes == bundle->record_bytes)
	{
		memcpy(records, bundle + 1, bundle->record_bytes);
		return true;
	}
	return LZ4_decompress_safe((const char *) (bundle + 1), records,
							   bundle->stored_bytes,
							   bundle->record_bytes) == bundle->record_bytes;
}
