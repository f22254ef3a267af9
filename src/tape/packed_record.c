/*-------------------------------------------------------------------------
 *
 * packed_record.c
 *	  Records without what their tuples give again: the contents of packed
 *	  blocks.
 *
 *	  record	| header | key, 2 .. 34 B | tuple, from byte 10 on | pad |
 *
 *	  packed	| tag | head? | key's end? | tuple, from byte 16 on |
 *	  area		| prefix | head | packed | packed | ...
 *
 * The head is the tuple's bytes 10 to 15: number of columns, flags, nulls.  A
 * tuple with the area's head does not store it.  A key of ten bytes is stored
 * without the bytes that it shares with the area's prefix, which is that of
 * the first record.  A key that is a column's beginning is copied from there,
 * and other keys are encoded again from the tuple.
 *
 * A word (word.h) is packed as its value's bytes, most significant byte first:
 *
 *	  area		| word | word | word | word | ...
 *
 * Memory: the caller's.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "port/pg_bitutils.h"

#include "tape/packed_record.h"

#define HEAD_BYTES			6
/* ... as the end of eight bytes that are a number */
#define HEAD_MASK			(PG_UINT64_MAX >> 16)
/* Bytes of a tuple that are in no packed record, or in the head. */
#define TUPLE_KNOWN_BYTES	(FMS_TUPLE_SKIPPED_BYTES + HEAD_BYTES)

#define AREA_PREFIX_BYTES	sizeof(uint64)
#define AREA_BEGIN_BYTES	(AREA_PREFIX_BYTES + HEAD_BYTES)

/*
 * The tag: is there a head, number of the key's bytes that are not stored,
 * number of the tuple's bytes that are.
 */
#define TAG_HAS_HEAD		0x0001
#define TAG_SHARED_SHIFT	1
#define TAG_SHARED_MASK		0x000F
#define TAG_LENGTH_SHIFT	5

/* Bytes that a packed record may need besides the tuple's bytes. */
#define MOST_OTHER_BYTES	(sizeof(uint16) + HEAD_BYTES + FMS_PREFIX_BYTES)

/* A key's bytes that are not stored: some of its first word, or all. */
#define SHARED_MAX			7
#define SHARED_ALL			FMS_PREFIX_BYTES
/* ... all of a longest key, which is the undecided column's beginning */
#define SHARED_WITH_COLUMN	(SHARED_ALL + 1)
#define COLUMN_BYTES		(FMS_KEY_MAX_BYTES - 1)

/*
 * The key is stored if the tuple has this length in bytes: the record is at
 * most two bytes larger than PostgreSQL's.
 */
#define LONG_TUPLE_BYTES	48
/*
 * ... or if so many bytes are shared, which makes it no larger.  In an area
 * below this size in bytes, work_mem is small, and the runs' last blocks take
 * some space: shorter tuples make up for it.
 */
#define SHARED_MIN			2
#define SMALL_AREA_BYTES	8192

StaticAssertDecl(TUPLE_KNOWN_BYTES == MAXALIGN(SizeofMinimalTupleHeader),
				 "every tuple has its known bytes");
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
			SHARED_WITH_COLUMN : SHARED_ALL;
	}
	if (record->key_bytes == FMS_PREFIX_BYTES &&
		record->flags == FMS_RECORD_EXACT)
	{
		uint64		differing = number_at(area) ^ number_at(key);

		if (differing >> BITS_PER_BYTE != 0)
			shared = (63 - pg_leftmost_one_pos64(differing)) / BITS_PER_BYTE;
		if (record->tuple_bytes >= LONG_TUPLE_BYTES ||
			(shared >= SHARED_MIN && room_bytes >= SMALL_AREA_BYTES))
			return shared;
	}
	return SHARED_ALL;
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

	if (room_bytes - at_bytes < AREA_BEGIN_BYTES + MOST_OTHER_BYTES +
		rest_bytes)
		return 0;
	if (words)
	{
		/* bytes that are not the word's will be overwritten */
		memcpy(area + at_bytes, key + 1, sizeof(uint64));
		return at_bytes + words->bytes;
	}
	if (at_bytes == 0)
	{
		memcpy(area, key, AREA_PREFIX_BYTES);
		memcpy(area + AREA_PREFIX_BYTES, head, HEAD_BYTES);
		at_bytes = AREA_BEGIN_BYTES;
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
		memcpy(at, key + shared, FMS_PREFIX_BYTES);
		at += FMS_PREFIX_BYTES - shared;
	}
	/* memcpy() of a bounded length becomes a slow string instruction */
	memmove(at, head + HEAD_BYTES, rest_bytes);
	return at + rest_bytes - area;
}

/* The record of a word. */
static const FmsRecord *
read_word(const FmsWordType *words, const char *area, uint32 *at_bytes,
		  char *buffer)
{
	FmsWordRecord *record = (FmsWordRecord *) buffer;
	uint64		word = number_at(area + *at_bytes);

	*at_bytes += words->bytes;
	fms_word_record_make(words, word & PG_UINT64_MAX << words->shift, record);
	return &record->record;
}

/*
 * Makes the key of the tuple in the image.  key: what is stored of it.  False:
 * the tuple is damaged.
 */
static inline bool
make_key(FmsKeys *keys, MinimalTuple tuple, uint32 tuple_bytes,
		 const char *area, int shared, const char *key, FmsKeyImage *image)
{
	if (shared <= SHARED_MAX)
	{
		uint64		mask = PG_UINT64_MAX >> shared * BITS_PER_BYTE;

		image->record.key_bytes = FMS_PREFIX_BYTES;
		image->record.flags = FMS_RECORD_EXACT;
		store_number(image->bytes, (number_at(area) & ~mask) |
					 number_at(key) >> shared * BITS_PER_BYTE);
		/* the key's last two bytes end the eight bytes from there on */
		store_number(image->bytes + sizeof(uint64),
					 number_at(key + FMS_KEY_LAST_BYTES - shared) << 48);
		return true;
	}
	if (shared == SHARED_WITH_COLUMN)
	{
		memcpy(&image->record.flags, key, sizeof(uint16));
		image->record.key_bytes = FMS_KEY_MAX_BYTES;
		image->bytes[0] = FMS_VALUE_BYTE;
		key = column_bytes((const char *) tuple, tuple_bytes,
						   image->record.flags);
		if (key)
			memcpy(image->bytes + 1, key, COLUMN_BYTES);
		return key != NULL;
	}
	if (tuple->t_hoff > tuple_bytes + MINIMAL_TUPLE_OFFSET)
		return false;
	fms_keys_encode_tuple(keys, tuple, tuple_bytes, image);
	return true;
}

const FmsRecord *
fms_packed_read(FmsKeys *keys, const char *area, uint32 *at_bytes,
				uint32 room_bytes, char *buffer)
{
	const FmsWordType *words = fms_keys_word_type(keys);
	char	   *tuple = buffer + FMS_KEY_MAX_BYTES - FMS_KEY_LAST_BYTES;
	const char *head = area + AREA_PREFIX_BYTES;
	const char *key;
	const char *at;
	FmsKeyImage image;
	FmsRecord  *record;
	uint16		tag;
	int			shared;
	uint32		rest_bytes;
	uint32		tuple_bytes;
	uint16		key_bytes;
	int			i;

	if (room_bytes - *at_bytes < MOST_OTHER_BYTES)
		return NULL;
	if (words)
		return read_word(words, area, at_bytes, buffer);
	*at_bytes = Max(*at_bytes, AREA_BEGIN_BYTES);
	memcpy(&tag, area + *at_bytes, sizeof(tag));
	shared = tag >> TAG_SHARED_SHIFT & TAG_SHARED_MASK;
	rest_bytes = tag >> TAG_LENGTH_SHIFT;
	tuple_bytes = TUPLE_KNOWN_BYTES + rest_bytes;
	if (room_bytes - *at_bytes < MOST_OTHER_BYTES + rest_bytes ||
		tuple_bytes > FMS_PACKED_TUPLE_BYTES ||
		(shared > SHARED_MAX && shared < SHARED_ALL) ||
		shared > SHARED_WITH_COLUMN)
		return NULL;

	at = area + *at_bytes + sizeof(tag);
	if (unlikely(tag & TAG_HAS_HEAD))
	{
		head = at;
		at += HEAD_BYTES;
	}
	key = at;
	at += shared == SHARED_WITH_COLUMN ? (int) sizeof(uint16) :
		SHARED_ALL - shared;
	*at_bytes = at + rest_bytes - area;
	/* the padding may be written to disk */
	memset(tuple + MAXALIGN(tuple_bytes) - MAXIMUM_ALIGNOF, 0,
		   MAXIMUM_ALIGNOF);
	memcpy(tuple + FMS_TUPLE_SKIPPED_BYTES, head, HEAD_BYTES);
	memmove(tuple + TUPLE_KNOWN_BYTES, at, rest_bytes);
	if (!make_key(keys, (MinimalTuple) tuple, tuple_bytes, area, shared, key,
				  &image))
		return NULL;

	key_bytes = image.record.key_bytes;
	record = (FmsRecord *) (tuple - (key_bytes - FMS_KEY_LAST_BYTES));
	record->tuple_bytes = tuple_bytes;
	record->key_bytes = key_bytes;
	record->flags = image.record.flags;
	for (i = 0; i < key_bytes / (int) sizeof(uint64); i++)
		store_number(fms_record_key(record) + i * sizeof(uint64),
					 number_at(image.bytes + i * sizeof(uint64)));
	/*
	 * The key's last two bytes and the head in one store: the merge reads them
	 * as one number, which is slow after several stores.
	 */
	store_number(tuple + FMS_TUPLE_SKIPPED_BYTES - FMS_KEY_LAST_BYTES,
				 (number_at(image.bytes + key_bytes - FMS_KEY_LAST_BYTES) &
				  ~HEAD_MASK) | head_number(head));
	return record;
}
