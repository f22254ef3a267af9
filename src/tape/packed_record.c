/*-------------------------------------------------------------------------
 *
 * packed_record.c
 *	  Records without what their tuples give again: the contents of packed
 *	  blocks and of compressed chunks.
 *
 *	  record	| header | key, 2 .. 34 B | tuple, from byte 10 on | pad |
 *
 *	  packed	| tag | head? | key or offset? | tuple, from byte 16 on |
 *	  whole		|  0  | pad | record |
 *
 *	  area		| head | packed or whole | packed or whole | ... |
 *
 * The head is the tuple's bytes 10 to 15: number of columns, flags, nulls.  A
 * tuple with the area's head does not store it.  The key is encoded again from
 * the tuple.  A longer tuple stores a short key, or the offset of the column
 * that its key leaves undecided: that takes little space, and saves the search
 * for columns.  Only whole records are aligned; the merge reads them where
 * they are.
 *
 * Memory: the caller's.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "tape/packed_record.h"

#define HEAD_BYTES			6
/* Bytes of a tuple that are in no packed record, or in the head. */
#define TUPLE_KNOWN_BYTES	(FMS_TUPLE_SKIPPED_BYTES + HEAD_BYTES)

/* The tag of a whole record. */
#define TAG_WHOLE			0
/* Other tags: what follows, and the number of the tuple's bytes, plus 1. */
#define TAG_HAS_HEAD		0x01
#define TAG_HAS_KEY			0x02
#define TAG_HAS_OFFSET		0x04
#define TAG_LENGTH_SHIFT	3
/* A tag from there on has a second byte for its higher bits. */
#define TAG_IS_LONG			0x80
#define TAG_LOW_BITS		7
#define TAG_MAX_BYTES		2

/*
 * A tuple of this length in bytes stores its key, if that is exact and has
 * FMS_PREFIX_BYTES, which are 1/6 of it at most.
 */
#define LONGER_TUPLE_BYTES	64

StaticAssertDecl(TUPLE_KNOWN_BYTES == MAXALIGN(SizeofMinimalTupleHeader),
				 "every tuple has its known bytes");
StaticAssertDecl((FMS_PACKED_TUPLE_BYTES + 1) << TAG_LENGTH_SHIFT <
				 1 << (TAG_LOW_BITS + BITS_PER_BYTE),
				 "the longest tuple's tag fits into two bytes");
StaticAssertDecl(FMS_PACKED_BUFFER_BYTES == MAXALIGN(FMS_PACKED_BUFFER_BYTES),
				 "the tuple in the buffer is aligned");

/* The head as a number: compilers call memcmp() for six bytes. */
static inline uint64
head_word(const char *head)
{
	uint64		word = 0;

	memcpy(&word, head, HEAD_BYTES);
	return word;
}

/* The tag for what the record stores beside head and tuple. */
static inline uint32
key_tag(const FmsRecord *record)
{
	if (record->tuple_bytes < LONGER_TUPLE_BYTES)
		return 0;
	if (record->flags != FMS_RECORD_EXACT)
		return record->flags > 0 ? TAG_HAS_OFFSET : 0;
	return record->key_bytes == FMS_PREFIX_BYTES ? TAG_HAS_KEY : 0;
}

static uint32
append_whole(char *area, uint32 at_bytes, uint32 end_bytes,
			 const FmsRecord *record)
{
	uint32		begin = MAXALIGN(at_bytes + 1);
	uint32		bytes = fms_record_bytes(record);

	if (begin > end_bytes || bytes > end_bytes - begin)
		return 0;
	/* the tag, and the padding */
	memset(area + at_bytes, TAG_WHOLE, begin - at_bytes);
	memcpy(area + begin, record, bytes);
	return begin + bytes;
}

uint32
fms_packed_append(char *area, uint32 at_bytes, uint32 end_bytes,
				  const FmsRecord *record, bool packs)
{
	const char *head = (const char *) fms_record_tuple(record) +
		FMS_TUPLE_SKIPPED_BYTES;
	uint32		rest_bytes = record->tuple_bytes - TUPLE_KNOWN_BYTES;
	uint32		tag = (rest_bytes + 1) << TAG_LENGTH_SHIFT | key_tag(record);
	char	   *at;

	if (at_bytes == 0 && end_bytes >= HEAD_BYTES)
	{
		memcpy(area, head, HEAD_BYTES);
		at_bytes = HEAD_BYTES;
	}
	if (!packs || !fms_record_packs(record))
		return append_whole(area, at_bytes, end_bytes, record);
	if (end_bytes - at_bytes <
		TAG_MAX_BYTES + HEAD_BYTES + FMS_PREFIX_BYTES + rest_bytes)
		return 0;

	at = area + at_bytes;
	if (head_word(head) != head_word(area))
		tag |= TAG_HAS_HEAD;
	if (tag < TAG_IS_LONG)
		*at++ = tag;
	else
	{
		*at++ = TAG_IS_LONG | tag;
		*at++ = tag >> TAG_LOW_BITS;
	}
	if (tag & TAG_HAS_HEAD)
	{
		memcpy(at, head, HEAD_BYTES);
		at += HEAD_BYTES;
	}
	if (tag & TAG_HAS_KEY)
	{
		memcpy(at, fms_record_key(record), FMS_PREFIX_BYTES);
		at += FMS_PREFIX_BYTES;
	}
	else if (tag & TAG_HAS_OFFSET)
	{
		memcpy(at, &record->flags, sizeof(record->flags));
		at += sizeof(record->flags);
	}
	memcpy(at, head + HEAD_BYTES, rest_bytes);
	return at + rest_bytes - area;
}

static const FmsRecord *
read_whole(const char *area, uint32 *at_bytes, uint32 end_bytes)
{
	uint32		begin = MAXALIGN(*at_bytes + 1);
	const FmsRecord *record = (const FmsRecord *) (area + begin);

	if (begin > end_bytes || end_bytes - begin < sizeof(FmsRecord) ||
		!fms_record_is_sane(record) ||
		fms_record_bytes(record) > end_bytes - begin)
		return NULL;
	*at_bytes = begin + fms_record_bytes(record);
	return record;
}

/* Makes the record of a tuple, in front of which there is room for the key. */
static inline const FmsRecord *
make_record_with_key(const char *key, char *tuple, uint32 tuple_bytes)
{
	FmsRecord  *record = (FmsRecord *) (tuple - (FMS_PREFIX_BYTES -
												 FMS_KEY_LAST_BYTES));

	record->tuple_bytes = tuple_bytes;
	record->key_bytes = FMS_PREFIX_BYTES;
	record->flags = FMS_RECORD_EXACT;
	memcpy(fms_record_key(record), key, FMS_PREFIX_BYTES);
	return record;
}

/* The same, with a key that is encoded again.  flags: its own, or 0. */
static const FmsRecord *
make_record(FmsKeys *keys, char *tuple, uint32 tuple_bytes, uint16 flags)
{
	FmsKeyImage image;
	FmsRecord  *record;

	image.record.flags = flags;
	fms_keys_encode_tuple(keys, tuple, tuple_bytes, &image);
	image.record.tuple_bytes = tuple_bytes;
	record = (FmsRecord *) (tuple - (image.record.key_bytes -
									 FMS_KEY_LAST_BYTES));
	/* the usual lengths are constants: their memcpy() needs no call */
	if (image.record.key_bytes == FMS_PREFIX_BYTES)
		memcpy(record, &image, sizeof(FmsRecord) + FMS_PREFIX_BYTES);
	else if (image.record.key_bytes == FMS_KEY_MAX_BYTES)
		memcpy(record, &image, sizeof(FmsRecord) + FMS_KEY_MAX_BYTES);
	else
		memcpy(record, &image, sizeof(FmsRecord) + image.record.key_bytes);
	return record;
}

const FmsRecord *
fms_packed_read(const char *area, uint32 *at_bytes, uint32 end_bytes,
				FmsKeys *keys, char *buffer)
{
	char	   *tuple = buffer + FMS_KEY_MAX_BYTES - FMS_KEY_LAST_BYTES;
	const char *end = area + end_bytes;
	const char *head = area;
	const char *key = NULL;
	uint16		flags = 0;
	const char *at;
	uint32		tag;
	uint32		tuple_bytes;
	uint32		rest_bytes;

	*at_bytes = Max(*at_bytes, HEAD_BYTES);
	if (*at_bytes >= end_bytes)
		return NULL;
	at = area + *at_bytes;
	tag = (uint8) *at++;
	if (tag == TAG_WHOLE)
		return read_whole(area, at_bytes, end_bytes);
	if (tag & TAG_IS_LONG)
	{
		if (at == end)
			return NULL;
		tag = (tag & ~TAG_IS_LONG) | (uint8) *at++ << TAG_LOW_BITS;
	}
	if (tag & TAG_HAS_HEAD)
	{
		if (end - at < HEAD_BYTES)
			return NULL;
		head = at;
		at += HEAD_BYTES;
	}
	if (tag & TAG_HAS_KEY)
	{
		if (end - at < FMS_PREFIX_BYTES)
			return NULL;
		key = at;
		at += FMS_PREFIX_BYTES;
	}
	else if (tag & TAG_HAS_OFFSET)
	{
		if (end - at < (int) sizeof(flags))
			return NULL;
		memcpy(&flags, at, sizeof(flags));
		at += sizeof(flags);
	}
	rest_bytes = (tag >> TAG_LENGTH_SHIFT) - 1;
	tuple_bytes = TUPLE_KNOWN_BYTES + rest_bytes;
	if (rest_bytes > end - at || tuple_bytes > FMS_PACKED_TUPLE_BYTES ||
		flags >> FMS_RECORD_COLUMN_SHIFT >= tuple_bytes)
		return NULL;

	/* the padding may be written to disk */
	memset(tuple + MAXALIGN(tuple_bytes) - MAXIMUM_ALIGNOF, 0,
		   MAXIMUM_ALIGNOF);
	memcpy(tuple + FMS_TUPLE_SKIPPED_BYTES, head, HEAD_BYTES);
	memcpy(tuple + TUPLE_KNOWN_BYTES, at, rest_bytes);
	if (((MinimalTuple) tuple)->t_hoff > tuple_bytes + MINIMAL_TUPLE_OFFSET)
		return NULL;
	*at_bytes = at + rest_bytes - area;
	return key ? make_record_with_key(key, tuple, tuple_bytes) :
		make_record(keys, tuple, tuple_bytes, flags);
}
