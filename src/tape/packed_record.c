/*-------------------------------------------------------------------------
 *
 * packed_record.c
 *	  Records without what their tuples give again: the contents of packed
 *	  blocks.
 *
 *	  record	| header | key, 2 .. 34 B | tuple, from byte 10 on | pad |
 *
 *	  packed	| tag | head? | key's end? | tuple, from byte 16 on |
 *	  whole		| tag | pad | record |
 *	  area		| head | prefix | packed or whole | packed or whole | ...
 *
 * The head is the tuple's bytes 10 to 15: number of columns, flags, nulls.  A
 * tuple with the area's head does not store it.  A key of ten bytes is stored
 * without the bytes that it shares with the area's prefix, which is that of
 * the first record; other keys are encoded again from the tuple.  Only whole
 * records are aligned; the merge reads them where they are.
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
/* Bytes of a tuple that are in no packed record, or in the head. */
#define TUPLE_KNOWN_BYTES	(FMS_TUPLE_SKIPPED_BYTES + HEAD_BYTES)

/* Begin of an area. */
#define AREA_HEAD_BYTES		(HEAD_BYTES + sizeof(uint64))

/*
 * The tag: is there a head, number of the key's bytes that are not stored,
 * number of the tuple's bytes that are.
 */
#define TAG_HAS_HEAD		0x0001
#define TAG_SHARED_SHIFT	1
#define TAG_SHARED_MASK		0x000F
#define TAG_LENGTH_SHIFT	5
/* ... of a whole record */
#define TAG_WHOLE			PG_UINT16_MAX

/* A key's bytes that are not stored: some of its first word, or all. */
#define SHARED_MAX			7
#define SHARED_ALL			FMS_PREFIX_BYTES
/* ... all of a longest key, which is the undecided column's beginning */
#define SHARED_WITH_COLUMN	(SHARED_ALL + 1)
#define COLUMN_BYTES		(FMS_KEY_MAX_BYTES - 1)

/*
 * A key is stored if the record becomes hardly larger than PostgreSQL's tuple:
 * two bytes are shared, or the tuple has this length in bytes.
 */
#define SHARED_MIN			2
#define LONG_TUPLE_BYTES	48

StaticAssertDecl(TUPLE_KNOWN_BYTES == MAXALIGN(SizeofMinimalTupleHeader),
				 "every tuple has its known bytes");
StaticAssertDecl(FMS_PACKED_TUPLE_BYTES << TAG_LENGTH_SHIFT < TAG_WHOLE,
				 "the longest tuple's tag fits");
StaticAssertDecl(FMS_PACKED_BUFFER_BYTES == MAXALIGN(FMS_PACKED_BUFFER_BYTES),
				 "the tuple in the buffer is aligned");

/* Room in bytes that a packed record with so much of the tuple may need. */
static inline uint32
most_bytes(uint32 rest_bytes)
{
	return sizeof(uint16) + HEAD_BYTES + FMS_PREFIX_BYTES + rest_bytes;
}

/*
 * Copies a part of a tuple.  Compilers that know how long it is at most make
 * memcpy() a string instruction, which is slow.
 */
static inline void
copy_rest(char *to, const char *from, uint32 bytes)
{
	memmove(to, from, bytes);
}

static uint32
append_word(const FmsWordType *words, char *area, uint32 at_bytes,
			uint32 room_bytes, const FmsRecord *record)
{
	/* bytes that are not the word's are overwritten, or cleared at the end */
	if (room_bytes - at_bytes < sizeof(uint64))
		return 0;
	memcpy(area + at_bytes, fms_record_key(record) + 1, sizeof(uint64));
	return at_bytes + words->bytes;
}

static const FmsRecord *
read_word(const FmsWordType *words, const char *area, uint32 *at_bytes,
		  uint32 room_bytes, char *buffer)
{
	FmsWordRecord *record = (FmsWordRecord *) buffer;
	uint64		word;

	if (room_bytes - *at_bytes < sizeof(word))
		return NULL;
	memcpy(&word, area + *at_bytes, sizeof(word));
	*at_bytes += words->bytes;
	fms_word_record_make(words, pg_ntoh64(word) & PG_UINT64_MAX << words->shift,
						 record);
	return &record->record;
}

/* The first eight bytes of a key as a number. */
static inline uint64
prefix_word(const char *bytes)
{
	uint64		word;

	memcpy(&word, bytes, sizeof(word));
	return pg_ntoh64(word);
}

/* memcmp() of six bytes would be a call. */
static inline bool
same_head(const char *a, const char *b)
{
	uint32		a_first;
	uint32		b_first;
	uint16		a_last;
	uint16		b_last;

	memcpy(&a_first, a, sizeof(a_first));
	memcpy(&b_first, b, sizeof(b_first));
	memcpy(&a_last, a + sizeof(a_first), sizeof(a_last));
	memcpy(&b_last, b + sizeof(b_first), sizeof(b_last));
	return a_first == b_first && a_last == b_last;
}

/*
 * Can the record be packed?  Making the key again must not read out-of-line
 * values, nor decompress.
 */
static inline bool
can_be_packed(const FmsRecord *record)
{
	const char *tuple = (const char *) fms_record_tuple(record);
	Size		offset = record->flags >> FMS_RECORD_COLUMN_SHIFT;

	return record->tuple_bytes >= TUPLE_KNOWN_BYTES &&
		record->tuple_bytes <= FMS_PACKED_TUPLE_BYTES &&
		!(fms_record_tuple(record)->t_infomask & HEAP_HASEXTERNAL) &&
		!(offset > 0 && VARATT_IS_COMPRESSED(tuple + offset));
}

static uint32
append_whole(char *area, uint32 at_bytes, uint32 room_bytes,
			 const FmsRecord *record)
{
	uint32		begin = MAXALIGN(at_bytes + sizeof(uint16));
	uint32		bytes = fms_record_bytes(record);

	if (begin > room_bytes || bytes > room_bytes - begin)
		return 0;
	/* the tag, and the padding */
	memset(area + at_bytes, 0xFF, begin - at_bytes);
	memcpy(area + begin, record, bytes);
	return begin + bytes;
}

/* COLUMN_BYTES of the undecided column; NULL: it is not known, or shorter. */
static inline const char *
column_bytes(const char *tuple, uint32 tuple_bytes, uint16 flags)
{
	uint32		offset = flags >> FMS_RECORD_COLUMN_SHIFT;

	return offset > 0 && offset + VARHDRSZ + COLUMN_BYTES <= tuple_bytes ?
		VARDATA_ANY(tuple + offset) : NULL;
}

/* Is the key the null byte of a value and the undecided column's beginning? */
static inline bool
is_key_of_column(const FmsRecord *record)
{
	const char *key = fms_record_key(record);
	const char *bytes = column_bytes((const char *) fms_record_tuple(record),
									 record->tuple_bytes, record->flags);

	return bytes && record->key_bytes == FMS_KEY_MAX_BYTES &&
		key[0] == FMS_VALUE_BYTE && memcmp(key + 1, bytes, COLUMN_BYTES) == 0;
}

/* Number of the key's first bytes that need not be stored. */
static inline int
shared_bytes(const FmsRecord *record, const char *prefix)
{
	uint64		differing;
	int			shared = SHARED_MAX;

	if (is_key_of_column(record))
		return SHARED_WITH_COLUMN;
	if (record->key_bytes != FMS_PREFIX_BYTES ||
		record->flags != FMS_RECORD_EXACT)
		return SHARED_ALL;
	differing = prefix_word(prefix) ^ prefix_word(fms_record_key(record));
	if (differing >> BITS_PER_BYTE != 0)
		shared = (63 - pg_leftmost_one_pos64(differing)) / BITS_PER_BYTE;
	return shared >= SHARED_MIN || record->tuple_bytes >= LONG_TUPLE_BYTES ?
		shared : SHARED_ALL;
}

uint32
fms_packed_append(const FmsWordType *words, char *area, uint32 at_bytes,
				  uint32 room_bytes, const FmsRecord *record)
{
	const char *head = (const char *) fms_record_tuple(record) +
		FMS_TUPLE_SKIPPED_BYTES;
	uint32		rest_bytes = record->tuple_bytes - TUPLE_KNOWN_BYTES;
	uint16		tag = rest_bytes << TAG_LENGTH_SHIFT;
	char	   *at;
	int			shared;

	if (words)
		return append_word(words, area, at_bytes, room_bytes, record);
	if (at_bytes == 0)
	{
		memcpy(area, head, HEAD_BYTES);
		memcpy(area + HEAD_BYTES, fms_record_key(record), sizeof(uint64));
		at_bytes = AREA_HEAD_BYTES;
	}
	if (unlikely(!can_be_packed(record)))
		return append_whole(area, at_bytes, room_bytes, record);
	if (room_bytes - at_bytes < most_bytes(rest_bytes))
		return 0;

	at = area + at_bytes + sizeof(tag);
	if (unlikely(!same_head(head, area)))
	{
		tag |= TAG_HAS_HEAD;
		memcpy(at, head, HEAD_BYTES);
		at += HEAD_BYTES;
	}
	shared = shared_bytes(record, area + HEAD_BYTES);
	if (shared < SHARED_ALL)
	{
		memcpy(at, fms_record_key(record) + shared, FMS_PREFIX_BYTES);
		at += FMS_PREFIX_BYTES - shared;
	}
	else if (shared == SHARED_WITH_COLUMN)
	{
		memcpy(at, &record->flags, sizeof(record->flags));
		at += sizeof(record->flags);
	}
	tag |= shared << TAG_SHARED_SHIFT;
	memcpy(area + at_bytes, &tag, sizeof(tag));
	copy_rest(at, head + HEAD_BYTES, rest_bytes);
	return at + rest_bytes - area;
}

static const FmsRecord *
read_whole(const char *area, uint32 *at_bytes, uint32 room_bytes)
{
	uint32		begin = MAXALIGN(*at_bytes + sizeof(uint16));
	const FmsRecord *record = (const FmsRecord *) (area + begin);

	if (begin > room_bytes || room_bytes - begin < sizeof(FmsRecord) ||
		!fms_record_is_sane(record) ||
		fms_record_bytes(record) > room_bytes - begin)
		return NULL;
	*at_bytes = begin + fms_record_bytes(record);
	return record;
}

/* Writes the key that shares bytes with the prefix and ends with others. */
static inline void
complete_key(char *key, const char *prefix, int shared, const char *end)
{
	uint64		word = pg_hton64((prefix_word(prefix) &
								  ~(PG_UINT64_MAX >> shared * BITS_PER_BYTE)) |
								 prefix_word(end) >> shared * BITS_PER_BYTE);

	memcpy(key, &word, sizeof(word));
	memcpy(key + sizeof(word), end + sizeof(word) - shared,
		   FMS_PREFIX_BYTES - sizeof(word));
}

/* Makes the record of a tuple, in front of which there is room for the key. */
static inline const FmsRecord *
make_record(char *tuple, uint32 tuple_bytes, const void *key, uint16 key_bytes,
			uint16 flags)
{
	FmsRecord  *record = (FmsRecord *) (tuple - (key_bytes -
												 FMS_KEY_LAST_BYTES));

	record->tuple_bytes = tuple_bytes;
	record->key_bytes = key_bytes;
	record->flags = flags;
	/* the usual lengths are constants: their memcpy() needs no call */
	if (key_bytes == FMS_PREFIX_BYTES)
		memcpy(fms_record_key(record), key, FMS_PREFIX_BYTES);
	else if (key_bytes == FMS_KEY_MAX_BYTES)
		memcpy(fms_record_key(record), key, FMS_KEY_MAX_BYTES);
	else
		memcpy(fms_record_key(record), key, key_bytes);
	return record;
}

const FmsRecord *
fms_packed_read(FmsKeys *keys, const char *area, uint32 *at_bytes,
				uint32 room_bytes, char *buffer)
{
	const FmsWordType *words = fms_keys_word_type(keys);
	char	   *tuple = buffer + FMS_KEY_MAX_BYTES - FMS_KEY_LAST_BYTES;
	const char *head = area;
	const char *key;
	const char *at;
	FmsKeyImage image;
	uint16		tag;
	uint16		flags;
	int			shared;
	uint32		tuple_bytes;
	uint32		rest_bytes;

	if (words)
		return read_word(words, area, at_bytes, room_bytes, buffer);
	*at_bytes = Max(*at_bytes, AREA_HEAD_BYTES);
	if (room_bytes - *at_bytes < sizeof(tag))
		return NULL;
	memcpy(&tag, area + *at_bytes, sizeof(tag));
	if (unlikely(tag == TAG_WHOLE))
		return read_whole(area, at_bytes, room_bytes);
	shared = tag >> TAG_SHARED_SHIFT & TAG_SHARED_MASK;
	rest_bytes = tag >> TAG_LENGTH_SHIFT;
	tuple_bytes = TUPLE_KNOWN_BYTES + rest_bytes;
	if (room_bytes - *at_bytes < most_bytes(rest_bytes) ||
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
	at += shared == SHARED_WITH_COLUMN ? (int) sizeof(flags) :
		SHARED_ALL - shared;
	*at_bytes = at + rest_bytes - area;
	/* the padding may be written to disk */
	memset(tuple + MAXALIGN(tuple_bytes) - MAXIMUM_ALIGNOF, 0,
		   MAXIMUM_ALIGNOF);
	memcpy(tuple + FMS_TUPLE_SKIPPED_BYTES, head, HEAD_BYTES);
	copy_rest(tuple + TUPLE_KNOWN_BYTES, at, rest_bytes);
	if (shared == SHARED_WITH_COLUMN)
	{
		memcpy(&flags, key, sizeof(flags));
		key = column_bytes(tuple, tuple_bytes, flags);
		if (key == NULL)
			return NULL;
		image.bytes[0] = FMS_VALUE_BYTE;
		memcpy(image.bytes + 1, key, COLUMN_BYTES);
		return make_record(tuple, tuple_bytes, image.bytes, FMS_KEY_MAX_BYTES,
						   flags);
	}
	if (shared < SHARED_ALL)
	{
		complete_key((char *) image.bytes, area + HEAD_BYTES, shared, key);
		return make_record(tuple, tuple_bytes, image.bytes, FMS_PREFIX_BYTES,
						   FMS_RECORD_EXACT);
	}
	if (((MinimalTuple) tuple)->t_hoff > tuple_bytes + MINIMAL_TUPLE_OFFSET)
		return NULL;
	fms_keys_encode_tuple(keys, (MinimalTuple) tuple, tuple_bytes, &image);
	return make_record(tuple, tuple_bytes, image.bytes, image.record.key_bytes,
					   image.record.flags);
}
