/* links: tape/compressed_chunk */
/*
 * What goes into chunks comes out of them, byte by byte and in order, however
 * well it can be compressed; and whatever stands in a chunk that comes from
 * disk, it is refused or unpacked, and nothing is touched outside.
 *
 * Seen to fail with: fms_compressed_chunk_unpack() not asking how much there
 * is left to read, or how much fits.
 */
#include "postgres.h"

#include <stdlib.h>
#include <string.h>

#include "tape/block.h"
#include "shim.h"

#define TUPLE_MAX	9000

static union
{
	FmsRecord	record;
	char		bytes[2 * sizeof(uint64) + SizeofMinimalTupleHeader +
					  TUPLE_MAX + MAXIMUM_ALIGNOF];
}			space;

/* A record of that size or so: of noise, of one letter, or of words. */
static const FmsRecord *
make_record(uint32 tuple_bytes, int kind)
{
	static const char text[] = "slyly final deposits above the ironic packages";
	uint64		key = shim_random();
	uint32		from = shim_below(sizeof(text));
	char	   *at = space.bytes + sizeof(FmsRecord) + sizeof(uint64) +
		SizeofMinimalTupleHeader;
	uint32		i = 0;

	memset(&space, 0, sizeof(space));
	space.record.tuple_bytes = SizeofMinimalTupleHeader + tuple_bytes;
	space.record.key_bytes = fms_key_room(sizeof(key));
	memcpy(fms_record_key(&space.record), &key, sizeof(key));
	for (; i < tuple_bytes; i++)
		*at++ = kind == 0 ? (char) shim_random() :
			kind == 1 ? 'z' : text[(from + i) % (sizeof(text) - 1)];
	return &space.record;
}

/* Everything that was put into chunks, one after the other. */
typedef struct Kept
{
	char	   *bytes;
	Size		length;
	Size		compressed;		/* in the chunks that were closed */
	Size		stored;			/* these on disk */
	int			chunks;
	bool		right;
} Kept;

/* Closes the chunk, and holds it against what was put into it. */
static void
close_and_compare(FmsCompressor *compressor, uint32 capacity, Kept *kept)
{
	const FmsRecord *first;
	const FmsRecord *last;
	const FmsCompressedChunk *chunk = fms_compressor_close(compressor,
														   &first, &last);
	uint32		size = fms_compressed_chunk_size(chunk);
	/* exactly as large, so that the sanitizers see who goes further */
	FmsCompressedChunk  *copy = malloc(size);
	char	   *records = malloc(capacity);
	const char *expected = kept->bytes + kept->compressed;
	uint32		at = 0;
	uint32		count = 0;

	memcpy(copy, chunk, size);
	kept->right &= fms_compressed_chunk_unpack(copy, size, records, capacity);
	kept->right &= kept->compressed + copy->record_bytes <= kept->length;
	kept->right &= memcmp(records, expected, copy->record_bytes) == 0;
	kept->right &= memcmp(first, expected, sizeof(FmsRecord)) == 0;
	for (; at < copy->record_bytes; count++)
	{
		const FmsRecord *record = (const FmsRecord *) (records + at);

		at += fms_record_bytes(record);
		if (at == copy->record_bytes)
			kept->right &= memcmp(last, record,
								  fms_record_bytes(record)) == 0;
	}
	kept->right &= count == copy->records;
	kept->right &= fms_compressor_close(compressor, &first, &last) == NULL;
	kept->right &= size <= sizeof(FmsCompressedChunk) + copy->record_bytes;
	kept->compressed += copy->record_bytes;
	kept->stored += size;
	kept->chunks++;
	free(copy);
	free(records);
}

static void
test_round_trip(uint32 block_bytes, int kind, uint32 tuple_most)
{
	uint32		capacity = fms_compressed_chunk_capacity(block_bytes);
	FmsCompressor *compressor = fms_compressor_create(capacity);
	Kept		kept = {.bytes = malloc(1 << 20), .right = true};
	int			refused = 0;

	while (kept.length < (1 << 20) - sizeof(space))
	{
		const FmsRecord *record = make_record(shim_below(tuple_most), kind);
		uint32		bytes = fms_record_bytes(record);

		if (!fms_compressor_add(compressor, record))
		{
			if (kept.compressed < kept.length)
				close_and_compare(compressor, capacity, &kept);
			if (!fms_compressor_add(compressor, record))
			{
				kept.right &= bytes > capacity;
				if (++refused > 1000)
					break;
				continue;
			}
		}
		memcpy(kept.bytes + kept.length, record, bytes);
		kept.length += bytes;
	}
	if (kept.compressed < kept.length)
		close_and_compare(compressor, capacity, &kept);
	shim_ok(kept.right && kept.compressed == kept.length &&
			(kept.chunks > 10 || refused > 0),
			"blocks of %u, kind %d: %d chunks of %zu bytes come back from %zu",
			block_bytes, kind, kept.chunks, kept.compressed, kept.stored);
	if (kind > 0 && capacity == 8192)
		shim_ok(kept.stored * 2 < kept.compressed, "... which are half as large");
	free(kept.bytes);
	pfree(compressor);
}

static void
test_capacity(void)
{
	uint32		bytes;
	bool		fits = true;

	for (bytes = 512; bytes <= 4 * 1024 * 1024; bytes += 512)
	{
		uint32		capacity = fms_compressed_chunk_capacity(bytes);

		fits &= capacity == MAXALIGN(capacity);
		fits &= capacity <= bytes / 4;
		fits &= capacity + sizeof(FmsCompressedChunk) < bytes - 32;
	}
	shim_ok(fits, "a chunk that does not become smaller fits into any block");
}

/* A chunk of which a byte or more is not what was written. */
static void
test_damage(void)
{
	uint32		capacity = fms_compressed_chunk_capacity(32768);
	FmsCompressor *compressor = fms_compressor_create(capacity);
	int			refused = 0;
	int			cases = 20000;
	int			i;

	for (i = 0; i < cases; i++)
	{
		const FmsCompressedChunk *chunk;
		const FmsRecord *first;
		const FmsRecord *last;
		uint32		changes = 1 + shim_below(4);
		uint32		size;
		uint32		left;
		char	   *copy;
		char	   *records = malloc(capacity);

		while (fms_compressor_add(compressor,
							   make_record(shim_below(200), shim_below(3))) &&
			   shim_below(20))
			;
		chunk = fms_compressor_close(compressor, &first, &last);
		size = fms_compressed_chunk_size(chunk);
		/* the block may end before it, too */
		left = shim_below(4) ? size : shim_below(size);
		copy = malloc(Max(left, 1));
		memcpy(copy, chunk, left);
		for (; changes > 0 && left > 0; changes--)
			copy[shim_below(shim_below(2) ? left : Min(left, 8))] =
				(char) shim_random();
		refused += !fms_compressed_chunk_unpack((FmsCompressedChunk *) copy,
												left, records, capacity);
		free(copy);
		free(records);
	}
	shim_ok(refused > cases / 4,
			"%d of %d damaged chunks are refused, none goes too far",
			refused, cases);
	pfree(compressor);
}

/* A sound chunk, of another block size: more records than there is room. */
static void
test_too_large(void)
{
	FmsCompressor *compressor =
		fms_compressor_create(fms_compressed_chunk_capacity(32768));
	uint32		capacity = fms_compressed_chunk_capacity(4096);
	char	   *records = malloc(capacity);
	const FmsCompressedChunk *chunk;
	const FmsRecord *first;
	const FmsRecord *last;

	while (fms_compressor_add(compressor, make_record(200, 1)))
		;
	chunk = fms_compressor_close(compressor, &first, &last);
	shim_ok(chunk->record_bytes > capacity &&
			!fms_compressed_chunk_unpack(chunk,
										 fms_compressed_chunk_size(chunk),
										 records, capacity),
			"a chunk is refused for which there is no room");
	free(records);
	pfree(compressor);
}

int
main(void)
{
	static const uint32 blocks[] = {512, 4096, 32768, 1048576};
	int			i;
	int			kind;

	shim_seed();
	for (i = 0; i < (int) lengthof(blocks); i++)
	{
		for (kind = 0; kind < 3; kind++)
			test_round_trip(blocks[i], kind, blocks[i] < 4096 ? 60 : 300);
	}
	test_round_trip(32768, 2, TUPLE_MAX);
	test_capacity();
	test_damage();
	test_too_large();
	return shim_done();
}
