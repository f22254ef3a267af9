/* links: tape/packed_record */
/*
 * What is appended to packed records comes out of them, byte by byte and in
 * order, whatever the lengths of key and tuple; and whatever stands in a block
 * that comes from disk, it is refused or unpacked, and nothing is touched
 * outside.
 *
 * Seen to fail with: fms_packed_read() not asking how much there is left
 * to read, or how much fits; a tag whose second byte is lost; no padding
 * before a whole record.
 */
#include "postgres.h"

#include <stdlib.h>
#include <string.h>

#include "tape/packed_record.h"
#include "shim.h"

#define TUPLE_MAX	600
#define KNOWN		MAXALIGN(SizeofMinimalTupleHeader)
#define BLOCK_MIN	(512 - 32)	/* the smallest block, without its header */

typedef union
{
	FmsRecord	record;
	char		bytes[sizeof(FmsRecord) + FMS_KEY_MAX_BYTES + TUPLE_MAX +
					  MAXIMUM_ALIGNOF];
} Space;

/*
 * A small keys.c: the tuple's first byte behind its header says how long its
 * key is, the key and the flags repeat another byte of it.
 */
void
fms_keys_encode_tuple(FmsKeys *keys, const char *tuple, Size tuple_bytes,
					  FmsKeyImage *image)
{
	uint8		first = tuple_bytes > KNOWN ? tuple[KNOWN] : 0;
	uint8		last = tuple[tuple_bytes - 1];

	memset(image, 0, sizeof(*image));
	image->record.key_bytes = FMS_KEY_LAST_BYTES + 8 * (first % 5);
	image->record.flags = last & 1 ? FMS_RECORD_EXACT :
		last % 16 << FMS_RECORD_COLUMN_SHIFT;
	memset(image->bytes, last, image->record.key_bytes);
}

/* A record of a tuple of that length, with the block's usual head or not. */
static const FmsRecord *
make_record(Space *space, uint32 tuple_bytes, bool usual)
{
	char		tuple[TUPLE_MAX];
	FmsKeyImage image;
	uint32		i;

	for (i = 0; i < tuple_bytes; i++)
		tuple[i] = (char) shim_random();
	((MinimalTuple) tuple)->t_infomask = 0;
	((MinimalTuple) tuple)->t_infomask2 = usual ? 3 : shim_below(100);
	((MinimalTuple) tuple)->t_hoff = MAXALIGN(SizeofHeapTupleHeader);
	if (usual)
		tuple[KNOWN - 1] = 0;
	fms_keys_encode_tuple(NULL, tuple, tuple_bytes, &image);
	memset(space, 0, sizeof(*space));
	fms_record_write(&space->record, image.bytes, image.record.key_bytes,
					 image.record.flags, tuple, tuple_bytes);
	return &space->record;
}

/* Areas of all lengths of tuples, read back from exactly as much memory. */
static void
test_round_trip(uint32 area_bytes, uint32 tuple_most, uint32 usual_of)
{
	char	   *area = malloc(area_bytes);
	char	   *buffer = malloc(FMS_PACKED_BUFFER_BYTES);
	Space	   *kept = calloc(area_bytes, sizeof(Space));
	bool		right = true;
	int			total = 0;
	int			whole = 0;
	int			n;

	for (n = 0; n < 300; n++)
	{
		char	   *copy;
		uint32		used = 0;
		uint32		at = 0;
		int			count = 0;
		int			i;

		for (;; count++)
		{
			uint32		tuple_bytes = KNOWN + shim_below(tuple_most - KNOWN);
			const FmsRecord *record = make_record(&kept[count], tuple_bytes,
												  shim_below(usual_of) > 0);
			bool		packs = shim_below(20) > 0;
			uint32		end = fms_packed_append(area, used, area_bytes,
												record, packs);

			if (end == 0)
				break;
			right &= end > used && end <= area_bytes;
			whole += !packs || !fms_record_packs(record);
			used = end;
		}
		copy = malloc(used);
		memcpy(copy, area, used);
		for (i = 0; i < count; i++)
		{
			const FmsRecord *record = fms_packed_read(copy, &at, used, NULL,
													  buffer);

			right &= record != NULL &&
				memcmp(record, &kept[i],
					   fms_record_bytes(&kept[i].record)) == 0;
		}
		right &= at == used;
		right &= fms_packed_read(copy, &at, used, NULL, buffer) == NULL;
		total += count;
		free(copy);
	}
	shim_ok(right && total >= 300,
			"%u bytes, tuples up to %u: %d records come back, %d whole",
			area_bytes, tuple_most, total, whole);
	free(kept);
	free(buffer);
	free(area);
}

/* The longest packed record fits into the smallest block. */
static void
test_longest(void)
{
	char		area[BLOCK_MIN];
	Space		space;
	const FmsRecord *record;
	uint32		longest = 0;
	uint32		bytes;

	for (bytes = KNOWN; bytes < TUPLE_MAX; bytes++)
	{
		int			tries;

		for (tries = 0; tries < 30; tries++)
			if (fms_record_packs(make_record(&space, bytes, true)))
				longest = bytes;
	}
	do
		record = make_record(&space, longest, false);
	while (!fms_record_packs(record));
	shim_ok(longest <= FMS_PACKED_TUPLE_BYTES &&
			fms_packed_append(area, 0, BLOCK_MIN, record, true) > 0,
			"the longest packed tuple, %u bytes, fits into the smallest block",
			longest);
}

/* Two integers take nine bytes, where PostgreSQL writes 18. */
static void
test_size(void)
{
	char		area[BLOCK_MIN];
	Space		space;
	const FmsRecord *record = make_record(&space, KNOWN + 8, true);
	uint32		first = fms_packed_append(area, 0, BLOCK_MIN, record, true);
	uint32		second = fms_packed_append(area, first, BLOCK_MIN, record,
										   true);

	shim_ok(second - first == 9, "two integers: nine bytes");
}

/* Records of which a byte or more is not what was written. */
static void
test_damage(void)
{
	uint32		area_bytes = 2048;
	char	   *area = malloc(area_bytes);
	char	   *buffer = malloc(FMS_PACKED_BUFFER_BYTES);
	int			refused = 0;
	int			cases = 20000;
	int			i;

	for (i = 0; i < cases; i++)
	{
		uint32		changes = 1 + shim_below(4);
		uint32		used = 0;
		uint32		end;
		uint32		at = 0;
		char	   *copy;

		do
		{
			Space		space;

			make_record(&space, KNOWN + shim_below(TUPLE_MAX - KNOWN),
						shim_below(2));
			end = fms_packed_append(area, used, area_bytes, &space.record,
									true);
			used = Max(used, end);
		} while (end > 0 && shim_below(10));
		/* the block may end before it, too */
		if (shim_below(4) == 0)
			used = shim_below(used);
		copy = malloc(Max(used, 1));
		memcpy(copy, area, used);
		for (; changes > 0 && used > 0; changes--)
			copy[shim_below(shim_below(2) ? used : Min(used, 16))] =
				(char) shim_random();
		while (at < used && fms_packed_read(copy, &at, used, NULL, buffer))
			;
		refused += at != used;
		free(copy);
	}
	shim_ok(refused > cases / 10,
			"%d of %d damaged blocks are refused, none goes too far",
			refused, cases);
	free(buffer);
	free(area);
}

int
main(void)
{
	static const uint32 areas[] = {BLOCK_MIN, 4064, 8192};
	int			i;

	shim_seed();
	for (i = 0; i < (int) lengthof(areas); i++)
	{
		test_round_trip(areas[i], 40, 10);
		test_round_trip(areas[i], 200, 2);
		test_round_trip(areas[i], areas[i] > BLOCK_MIN ? TUPLE_MAX : 300, 10);
	}
	test_longest();
	test_size();
	test_damage();
	return shim_done();
}
