/* links: tape/packed_record */
/*
 * What is appended to packed records comes out of them, byte by byte and in
 * order, whatever the lengths of key and tuple, and so do words; and whatever
 * stands in a block that comes from disk, it is refused or unpacked, and
 * nothing is touched outside.
 *
 * Seen to fail with: fms_packed_read() not asking how much there is left to
 * read, or how much fits; a column beyond the tuple's end; a key that shares
 * one byte more than it does; words of which the bytes behind them are taken,
 * too.
 */
#include "postgres.h"

#include <stdlib.h>
#include <string.h>

#include "tape/block.h"
#include "shim.h"

#define TUPLE_MAX	600
#define PACKED_MAX	(FMS_PACKED_TUPLE_BYTES + 1)
#define KNOWN		MAXALIGN(SizeofMinimalTupleHeader)
#define BLOCK_MIN	(512 - 32)	/* the smallest block, without its header */

typedef union
{
	FmsRecord	record;
	char		bytes[sizeof(FmsRecord) + FMS_KEY_MAX_BYTES + TUPLE_MAX +
					  MAXIMUM_ALIGNOF];
} Space;

static const FmsWordType *words;

const FmsWordType *
fms_keys_word_type(const FmsKeys *keys)
{
	return words;
}

/*
 * A small keys.c: the tuple's first byte behind its header says what kind of
 * key it has; the key repeats the tuple's last byte, or is the beginning of
 * the column whose offset the flags have.
 */
void
fms_keys_encode_tuple(FmsKeys *keys, MinimalTuple tuple, Size tuple_bytes,
					  FmsKeyImage *image)
{
	const char *bytes = (const char *) tuple;
	uint8		kind = tuple_bytes > KNOWN ? bytes[KNOWN] : 0;
	uint8		last = bytes[tuple_bytes - 1];

	memset(image, 0, sizeof(*image));
	image->record.key_bytes = FMS_KEY_LAST_BYTES + 8 * (kind % 5);
	image->record.flags = last & 1 ? FMS_RECORD_EXACT : 0;
	memset(image->bytes, last, image->record.key_bytes);
	if (image->record.key_bytes == FMS_PREFIX_BYTES)
		memset(image->bytes, 1, kind % 10);
	if (image->record.key_bytes == FMS_KEY_MAX_BYTES &&
		tuple_bytes >= KNOWN + 44 && !(last & 1))
	{
		/* a text of 35 bytes */
		image->record.flags = (KNOWN + 4) << FMS_RECORD_COLUMN_SHIFT;
		image->bytes[0] = FMS_VALUE_BYTE;
		memcpy(image->bytes + 1, VARDATA_ANY(bytes + KNOWN + 4), 33);
	}
}

/* A record of a tuple of that length, with the block's usual head or not. */
static const FmsRecord *
make_record(Space *space, uint32 tuple_bytes, bool usual)
{
	union
	{
		MinimalTupleData tuple;
		char		bytes[TUPLE_MAX];
	}			made;
	FmsKeyImage image;
	uint32		i;

	for (i = 0; i < tuple_bytes; i++)
		made.bytes[i] = (char) shim_random();
	made.tuple.t_infomask = 0;
	made.tuple.t_infomask2 = usual ? 3 : shim_below(100);
	made.tuple.t_hoff = MAXALIGN(SizeofHeapTupleHeader);
	if (usual)
		made.bytes[KNOWN - 1] = 0;
	if (tuple_bytes >= KNOWN + 44)
		SET_VARSIZE_SHORT(made.bytes + KNOWN + 4, 36);
	fms_keys_encode_tuple(NULL, &made.tuple, tuple_bytes, &image);
	memset(space, 0, sizeof(*space));
	fms_record_write(&space->record, image.bytes, image.record.key_bytes,
					 image.record.flags, made.bytes, tuple_bytes);
	return &space->record;
}

/* Appends records until the area is full; returns their number. */
static int
fill(char *area, uint32 room, Space *kept, uint32 tuple_most, uint32 usual_of,
	 uint32 *used)
{
	int			count;

	*used = 0;
	for (count = 0;; count++)
	{
		uint32		tuple_bytes = KNOWN + shim_below(tuple_most - KNOWN);
		const FmsRecord *record = make_record(&kept[count], tuple_bytes,
											  shim_below(usual_of) > 0);
		uint32		end = fms_packed_append(NULL, area, *used, room, record);

		if (end == 0)
			return count;
		if (end <= *used || end > room)
			abort();
		*used = end;
	}
}

/* Areas of all lengths of tuples, read back from exactly as much memory. */
static void
test_round_trip(uint32 room, uint32 tuple_most, uint32 usual_of)
{
	char	   *area = malloc(room);
	char	   *buffer = malloc(FMS_PACKED_BUFFER_BYTES);
	Space	   *kept = calloc(room, sizeof(Space));
	bool		right = true;
	int			total = 0;
	int			n;

	for (n = 0; n < 300; n++)
	{
		uint32		at = 0;
		uint32		used;
		int			count = fill(area, room, kept, tuple_most, usual_of,
								 &used);
		int			i;

		for (i = 0; i < count; i++)
		{
			const FmsRecord *record = fms_packed_read(NULL, area, &at, room,
													  buffer);

			right &= record != NULL &&
				memcmp(record, &kept[i],
					   fms_record_bytes(&kept[i].record)) == 0;
		}
		right &= at == used;
		total += count;
	}
	shim_ok(right && total >= 300,
			"%u bytes, tuples up to %u: %d records come back",
			room, tuple_most, total);
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
			if (fms_record_can_be_packed(make_record(&space, bytes, true)))
				longest = bytes;
	}
	record = make_record(&space, longest, false);
	shim_ok(longest == FMS_PACKED_TUPLE_BYTES &&
			fms_packed_append(NULL, area, 0, BLOCK_MIN, record) > 0,
			"the longest packed tuple, %u bytes, fits into the smallest block",
			longest);
}

/* No packed record is larger than PostgreSQL's tuple, but for two bytes. */
static void
test_size(void)
{
	char		area[4096];
	Space		space;
	bool		small = true;
	uint32		most = 0;
	int			i;

	for (i = 0; i < 10000; i++)
	{
		uint32		tuple_bytes = KNOWN + shim_below(300);
		uint32		stock_bytes = tuple_bytes - FMS_TUPLE_SKIPPED_BYTES + 4;
		uint32		before;
		uint32		bytes;

		/* the area's head counts for many records */
		make_record(&space, KNOWN, true);
		before = fms_packed_append(NULL, area, 0, sizeof(area),
								   &space.record);
		make_record(&space, tuple_bytes, true);
		bytes = fms_packed_append(NULL, area, before, sizeof(area),
								  &space.record) - before;
		if (bytes > stock_bytes)
			most = Max(most, bytes - stock_bytes);
		small &= bytes <= stock_bytes || tuple_bytes >= 48;
	}
	shim_ok(small && most <= 2, "packed records are %u bytes larger at most",
			most);
}

/* Words of all lengths. */
static void
test_words(void)
{
	static const int lengths[] = {1, 2, 4, 8};
	char		area[BLOCK_MIN];
	int			i;

	for (i = 0; i < (int) lengthof(lengths); i++)
	{
		FmsWordType type;
		FmsWordRecord records[BLOCK_MIN];
		FmsWordRecord buffer;
		uint32		used = 0;
		uint32		at = 0;
		bool		right = true;
		int			n = 0;
		int			j;

		fms_word_type_init(&type, lengths[i], shim_below(2), shim_below(2));
		for (;; n++)
		{
			uint64		word = shim_random() << type.shift;
			uint32		end;

			fms_word_record_make(&type, word, &records[n]);
			end = fms_packed_append(&type, area, used, sizeof(area),
									&records[n].record);
			if (end == 0)
				break;
			used = end;
		}
		words = &type;
		for (j = 0; j < n; j++)
			right &= fms_packed_read(NULL, area, &at, sizeof(area),
									 buffer.bytes) == &buffer.record &&
				memcmp(&buffer, &records[j], sizeof(buffer)) == 0;
		right &= at == used;
		at = sizeof(area) - 7;
		right &= fms_packed_read(NULL, area, &at, sizeof(area),
								 buffer.bytes) == NULL;
		words = NULL;
		shim_ok(right && n > ((int) sizeof(area) - 48) / lengths[i],
				"%d words of %d bytes come back", n, lengths[i]);
	}
}

/* Records of which a byte or more is not what was written. */
static void
test_damage(void)
{
	uint32		room = 2048;
	char	   *area = malloc(room);
	char	   *buffer = malloc(FMS_PACKED_BUFFER_BYTES);
	Space	   *kept = calloc(room, sizeof(Space));
	int			refused = 0;
	int			cases = 20000;
	int			i;

	for (i = 0; i < cases; i++)
	{
		uint32		changes = 1 + shim_below(4);
		uint32		used;
		uint32		at = 0;
		int			count = fill(area, room, kept, PACKED_MAX, 2, &used);
		char	   *copy;

		/* the block may end before it, too */
		if (shim_below(4) == 0)
			used -= shim_below(used - 32);
		copy = malloc(used);
		memcpy(copy, area, used);
		for (; changes > 0; changes--)
			copy[shim_below(shim_below(2) ? used : Min(used, 32))] =
				(char) shim_random();
		while (at < used && count-- > 0 &&
			   fms_packed_read(NULL, copy, &at, used, buffer))
			;
		refused += count > 0;
		free(copy);
	}
	shim_ok(refused > cases / 10,
			"%d of %d damaged blocks are refused, none goes too far",
			refused, cases);
	free(kept);
	free(buffer);
	free(area);
}

int
main(void)
{
	static const uint32 rooms[] = {BLOCK_MIN, 4064, 8192};
	int			i;

	shim_seed();
	for (i = 0; i < (int) lengthof(rooms); i++)
	{
		test_round_trip(rooms[i], 40, 10);
		test_round_trip(rooms[i], 200, 2);
		test_round_trip(rooms[i], rooms[i] > BLOCK_MIN ? PACKED_MAX : 300, 10);
	}
	test_longest();
	test_size();
	test_words();
	test_damage();
	return shim_done();
}
