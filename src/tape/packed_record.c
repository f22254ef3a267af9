/*-------------------------------------------------------------------------
 *
 * packed_record.c
 *	  Packed records: a record without the bytes that its tuple gives again.
 *
 *	  record	| header | key, 2 .. 34 B | tuple, from byte 10 on | pad |
 *	  packed	| tag | head? | key's end? | tuple, from byte 16 on |
 *	  area		| prefix | head | packed | packed | ...
 *
 * An area, a block's room for records, begins with the first record's prefix,
 * eight bytes of the key, and head, bytes 10 to 15 of the tuple.  A tuple with
 * the same head does not store it.  A key of ten bytes is stored without the
 * bytes that it shares with the prefix.  A key that is a column's beginning is
 * copied from there; other keys are encoded again from the tuple.  A word
 * (word.h) is packed as its value's bytes, most significant byte first.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "port/pg_bitutils.h"

#include "tape/block.h"

#define HEAD_BYTES			6
#define HEAD_MASK			(PG_UINT64_MAX >> 16)	/* head_number() */
/* Bytes of a tuple that are in no packed record, or in the head. */
#define TUPLE_KNOWN_BYTES	(FMS_TUPLE_SKIPPED_BYTES + HEAD_BYTES)

#define AREA_PREFIX_BYTES	sizeof(uint64)
#define AREA_BEGIN_BYTES	(AREA_PREFIX_BYTES + HEAD_BYTES)

/* The tag: is there a head, what is left out of the key, the tuple's bytes. */
#define TAG_HAS_HEAD		0x0001
#define TAG_SHARED_SHIFT	1
#define TAG_SHARED_MASK		0x000F
#define TAG_LENGTH_SHIFT	5

/* Bytes that a packed record may need besides the tuple's bytes. */
#define MOST_OTHER_BYTES \
	((uint32) sizeof(uint16) + HEAD_BYTES + FMS_PREFIX_BYTES)

/*
 * How a key is stored: up to SHARED_MAX, the number of its first bytes that
 * the block's prefix has; above, one of two other ways.
 */
#define SHARED_MAX			7
#define SHARED_ENCODED		8	/* the key is encoded again */
#define SHARED_WITH_COLUMN	9	/* a longest key, of the undecided column */
#define COLUMN_BYTES		(FMS_KEY_MAX_BYTES - 1)

/*
 * The key is stored if the tuple has that many bytes, or if it shares that
 * many with the block's prefix: then the record is hardly larger than
 * PostgreSQL's.  In small blocks, short tuples make up for unused space.
 */
#define LONG_TUPLE_BYTES	48
#define SHARED_MIN			2

StaticAssertDecl(FMS_PACKED_TUPLE_BYTES << TAG_LENGTH_SHIFT <= PG_UINT16_MAX,
				 "the longest tuple's tag fits");

/* Eight bytes as a number, most significant byte first. */
static inline uint64
number_at(const void *bytes)
{
	uint64		number;

	memcpy(&number, bytes, sizeof(number));
	return pg_ntoh64(number);
}

static inline void
store_number(void *bytes, uint64 number)
{
	number = pg_hton64(number);
	memcpy(bytes, &number, sizeof(number));
}

/* The head as a number.  The two bytes before it are read, too. */
static inline uint64
head_number(const char *head)
{
	return number_at(head - sizeof(uint16)) & HEAD_MASK;
}

/* COLUMN_BYTES of the undecided column; NULL: it is not known, or shorter. */
static inline const char *
column_bytes(const char *tuple, uint32 tuple_bytes, uint16 flags)
{
	uint32		offset = flags >> FMS_RECORD_COLUMN_SHIFT;

	return offset >= TUPLE_KNOWN_BYTES &&
		offset + VARHDRSZ + COLUMN_BYTES <= tuple_bytes ?
		VARDATA_ANY(tuple + offset) : NULL;
}

/* Number of the key's bytes that need not be stored. */
static inline int
shared_bytes(const FmsRecord *record, const char *area, uint32 room_bytes)
{
	const char *key = fms_record_key(record);
	int			shared = SHARED_MAX;

	if (record->key_bytes == FMS_KEY_MAX_BYTES)
	{
		const char *bytes =
			column_bytes((const char *) fms_record_tuple(record),
						 record->tuple_bytes, record->flags);

		return bytes && key[0] == FMS_VALUE_BYTE &&
			memcmp(key + 1, bytes, COLUMN_BYTES) == 0 ?
			SHARED_WITH_COLUMN : SHARED_ENCODED;
	}
	if (record->key_bytes == FMS_PREFIX_BYTES &&
		record->flags == FMS_RECORD_EXACT)
	{
		uint64		differing = number_at(area) ^ number_at(key);

		if (differing >> BITS_PER_BYTE != 0)
			shared = (63 - pg_leftmost_one_pos64(differing)) / BITS_PER_BYTE;
		if (record->tuple_bytes >= LONG_TUPLE_BYTES ||
			(shared >= SHARED_MIN && room_bytes > FMS_PACKED_SMALL_BYTES))
			return shared;
	}
	return SHARED_ENCODED;
}

uint32
fms_packed_append(const FmsWordType *words, char *area, uint32 at_bytes,
				  uint32 room_bytes, const FmsRecord *record)
{
	const char *head = (const char *) fms_record_tuple(record) +
		FMS_TUPLE_SKIPPED_BYTES;
	const char *key = fms_record_key(record);
	uint32		rest_bytes = record->tuple_bytes - TUPLE_KNOWN_BYTES;
	uint16		tag;
	char	   *at;
	int			shared;

	if (at_bytes == 0 && words == NULL)
	{
		memcpy(area, key, AREA_PREFIX_BYTES);
		memcpy(area + AREA_PREFIX_BYTES, head, HEAD_BYTES);
		at_bytes = AREA_BEGIN_BYTES;
	}
	if (room_bytes - at_bytes < MOST_OTHER_BYTES + rest_bytes)
		return 0;
	if (words)
	{
		/* bytes that are not the word's will be overwritten */
		memcpy(area + at_bytes, key + 1, sizeof(uint64));
		return at_bytes + words->bytes;
	}
	shared = shared_bytes(record, area, room_bytes);
	tag = rest_bytes << TAG_LENGTH_SHIFT | shared << TAG_SHARED_SHIFT;
	at = area + at_bytes + sizeof(tag);
	if (unlikely(head_number(head) != head_number(area + AREA_PREFIX_BYTES)))
	{
		tag |= TAG_HAS_HEAD;
		memcpy(at, head, HEAD_BYTES);
		at += HEAD_BYTES;
	}
	memcpy(area + at_bytes, &tag, sizeof(tag));
	if (shared == SHARED_WITH_COLUMN)
	{
		memcpy(at, &record->flags, sizeof(record->flags));
		at += sizeof(record->flags);
	}
	else if (shared <= SHARED_MAX)
	{
		memmove(at, key + shared, FMS_PREFIX_BYTES - shared);
		at += FMS_PREFIX_BYTES - shared;
	}
	/* memcpy() of a bounded length becomes a slow string instruction */
	memmove(at, head + HEAD_BYTES, rest_bytes);
	return at + rest_bytes - area;
}

const FmsRecord *
fms_packed_read(FmsKeys *keys, const char *area, uint32 *at_bytes,
				uint32 room_bytes, char *buffer)
{
	const FmsWordType *words = fms_keys_word_type(keys);
	char	   *tuple = buffer + FMS_KEY_MAX_BYTES - FMS_KEY_LAST_BYTES;
	const char *head = area + AREA_PREFIX_BYTES;
	const char *at = area + Max(*at_bytes, words ? 0 : AREA_BEGIN_BYTES);
	const char *key;
	FmsKeyImage image;
	FmsRecord  *record;
	uint16		tag;
	int			shared;
	uint32		rest_bytes;
	uint32		tuple_bytes;
	int			i;

	if (area + room_bytes - at < MOST_OTHER_BYTES)
		return NULL;
	if (words)
	{
		*at_bytes += words->bytes;
		fms_word_record_make(words,
							 number_at(at) & PG_UINT64_MAX << words->shift,
							 (FmsWordRecord *) buffer);
		return (FmsRecord *) buffer;
	}
	memcpy(&tag, at, sizeof(tag));
	shared = tag >> TAG_SHARED_SHIFT & TAG_SHARED_MASK;
	rest_bytes = tag >> TAG_LENGTH_SHIFT;
	tuple_bytes = TUPLE_KNOWN_BYTES + rest_bytes;
	if (area + room_bytes - at < MOST_OTHER_BYTES + rest_bytes ||
		tuple_bytes > FMS_PACKED_TUPLE_BYTES)
		return NULL;

	at += sizeof(tag);
	if (unlikely(tag & TAG_HAS_HEAD))
	{
		head = at;
		at += HEAD_BYTES;
	}
	key = at;
	if (shared <= SHARED_MAX)
		at += FMS_PREFIX_BYTES - shared;
	else if (shared == SHARED_WITH_COLUMN)
		at += sizeof(uint16);
	*at_bytes = at + rest_bytes - area;
	/* the padding may be written to disk */
	memset(tuple + MAXALIGN(tuple_bytes) - MAXIMUM_ALIGNOF, 0,
		   MAXIMUM_ALIGNOF);
	memcpy(tuple + FMS_TUPLE_SKIPPED_BYTES, head, HEAD_BYTES);
	memmove(tuple + TUPLE_KNOWN_BYTES, at, rest_bytes);

	image.record.key_bytes = FMS_PREFIX_BYTES;
	image.record.flags = FMS_RECORD_EXACT;
	if (shared <= SHARED_MAX)
	{
		uint64		mask = PG_UINT64_MAX >> shared * BITS_PER_BYTE;

		store_number(image.bytes, (number_at(area) & ~mask) |
					 number_at(key) >> shared * BITS_PER_BYTE);
		/* the key's last two bytes end the eight bytes from there on */
		store_number(image.bytes + sizeof(uint64),
					 number_at(key + FMS_KEY_LAST_BYTES - shared) << 48);
	}
	else if (shared == SHARED_WITH_COLUMN)
	{
		memcpy(&image.record.flags, key, sizeof(uint16));
		key = column_bytes(tuple, tuple_bytes, image.record.flags);
		if (key == NULL)
			return NULL;
		image.record.key_bytes = FMS_KEY_MAX_BYTES;
		image.bytes[0] = FMS_VALUE_BYTE;
		memcpy(image.bytes + 1, key, COLUMN_BYTES);
	}
	else if (((MinimalTuple) tuple)->t_hoff >
			 tuple_bytes + MINIMAL_TUPLE_OFFSET)
		return NULL;
	else
		fms_keys_encode_tuple(keys, (MinimalTuple) tuple, tuple_bytes, &image);

	record = (FmsRecord *) (tuple - (image.record.key_bytes -
									 FMS_KEY_LAST_BYTES));
	record->tuple_bytes = tuple_bytes;
	record->key_bytes = image.record.key_bytes;
	record->flags = image.record.flags;
	for (i = 0; i + FMS_KEY_LAST_BYTES < image.record.key_bytes; i += 8)
		memcpy(fms_record_key(record) + i, image.bytes + i, 8);
	/* one store, since the merge reads the key's end and the head at once */
	store_number(tuple + FMS_TUPLE_SKIPPED_BYTES - FMS_KEY_LAST_BYTES,
				 (number_at(image.bytes + i) & ~HEAD_MASK) |
				 head_number(head));
	return record;
}
