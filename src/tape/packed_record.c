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
 *	  area		| prefix | head | packed or whole | packed or whole | ...
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
/* ... as the end of eight bytes that are a number */
#define HEAD_MASK			(PG_UINT64_MAX >> 16)
/* Bytes of a tuple that are in no packed record, or in the head. */
#define TUPLE_KNOWN_BYTES	(FMS_TUPLE_SKIPPED_BYTES + HEAD_BYTES)

/* What an area begins with: prefix and head. */
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
/* ... of a whole record */
#define TAG_WHOLE			PG_UINT16_MAX

/* A key's bytes that are not stored: some of its first word, or all. */
#define SHARED_MAX			7
#define SHARED_ALL			FMS_PREFIX_BYTES
/* ... all of a longest key, which is the undecided column's beginning */
#define SHARED_WITH_COLUMN	(SHARED_ALL + 1)
#define COLUMN_BYTES		(FMS_KEY_MAX_BYTES - 1)

/*
 * A key of ten bytes is stored if the tuple has this length in bytes: the
 * record becomes at most two bytes larger than PostgreSQL's.
 */
#define LONG_TUPLE_BYTES	48
/*
 * ... or if so many bytes are shared, which makes it no larger.  In an area
 * below this size in bytes, work_mem is small, and the runs' last blocks take
 * some space: shorter tuples are to make up for it.
 */
#define SHARED_MIN			2
#define SMALL_AREA_BYTES	8192

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
	fms_word_record_make(words,
						 pg_ntoh64(word) & PG_UINT64_MAX << words->shift,
						 record);
	return &record->record;
}

/* Eight bytes as a number, most significant byte first. */
static inline uint64
number_at(const char *bytes)
{
	uint64		number;

	memcpy(&number, bytes, sizeof(number));
	return pg_ntoh64(number);
}

static inline void
store_number(char *bytes, uint64 number)
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

	return offset >= TUPLE_KNOWN_BYTES &&
		offset + VARHDRSZ + COLUMN_BYTES <= tuple_bytes ?
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

/*
 * Number of the key's first bytes that need not be stored; the prefix is that
 * of an area of room_bytes.
 */
static inline int
shared_bytes(const FmsRecord *record, const char *prefix, uint32 room_bytes)
{
	uint64		differing;
	int			shared = SHARED_MAX;

	if (is_key_of_column(record))
		return SHARED_WITH_COLUMN;
	if (record->key_bytes != FMS_PREFIX_BYTES ||
		record->flags != FMS_RECORD_EXACT)
		return SHARED_ALL;
	differing = number_at(prefix) ^ number_at(fms_record_key(record));
	if (differing >> BITS_PER_BYTE != 0)
		shared = (63 - pg_leftmost_one_pos64(differing)) / BITS_PER_BYTE;
	return record->tuple_bytes >= LONG_TUPLE_BYTES ||
		(shared >= SHARED_MIN && room_bytes >= SMALL_AREA_BYTES) ?
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
		memcpy(area, fms_record_key(record), AREA_PREFIX_BYTES);
		memcpy(area + AREA_PREFIX_BYTES, head, HEAD_BYTES);
		at_bytes = AREA_BEGIN_BYTES;
	}
	if (unlikely(!can_be_packed(record)))
		return append_whole(area, at_bytes, room_bytes, record);
	if (room_bytes - at_bytes < most_bytes(rest_bytes))
		return 0;

	at = area + at_bytes + sizeof(tag);
	if (unlikely(head_number(head) != head_number(area + AREA_PREFIX_BYTES)))
	{
		tag |= TAG_HAS_HEAD;
		memcpy(at, head, HEAD_BYTES);
		at += HEAD_BYTES;
	}
	shared = shared_bytes(record, area, room_bytes);
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

/*
 * Writes the tuple's bytes 8 to 15: the key's last two bytes, which last_word
 * begins with, and the head.  The merge reads the eight bytes as a number,
 * which is slow if several stores made them.
 */
static inline void
store_head(char *tuple, uint64 last_word, const char *head)
{
	store_number(tuple + FMS_TUPLE_SKIPPED_BYTES - FMS_KEY_LAST_BYTES,
				 (last_word & ~HEAD_MASK) | head_number(head));
}

/* Begins the record of a tuple; there is room for the key in front of it. */
static inline FmsRecord *
begin_record(char *tuple, uint32 tuple_bytes, uint16 key_bytes, uint16 flags)
{
	FmsRecord  *record = (FmsRecord *) (tuple - (key_bytes -
												 FMS_KEY_LAST_BYTES));

	record->tuple_bytes = tuple_bytes;
	record->key_bytes = key_bytes;
	record->flags = flags;
	return record;
}

/* The record of a tuple whose key shares bytes with the prefix. */
static inline const FmsRecord *
make_with_prefix(char *tuple, uint32 tuple_bytes, const char *head,
				 const char *prefix, int shared, const char *key_end)
{
	uint64		mask = PG_UINT64_MAX >> shared * BITS_PER_BYTE;
	FmsRecord  *record = begin_record(tuple, tuple_bytes, FMS_PREFIX_BYTES,
									  FMS_RECORD_EXACT);

	store_number(fms_record_key(record), (number_at(prefix) & ~mask) |
				 number_at(key_end) >> shared * BITS_PER_BYTE);
	/* the key's last two bytes end the eight bytes from there on */
	store_head(tuple, number_at(key_end + FMS_KEY_LAST_BYTES - shared) << 48,
			   head);
	return record;
}

/* ... whose key is the beginning of a column.  NULL: there is none. */
static inline const FmsRecord *
make_with_column(char *tuple, uint32 tuple_bytes, uint16 flags)
{
	const char *bytes = column_bytes(tuple, tuple_bytes, flags);
	FmsRecord  *record = begin_record(tuple, tuple_bytes, FMS_KEY_MAX_BYTES,
									  flags);
	char	   *key = fms_record_key(record);

	if (bytes == NULL)
		return NULL;
	key[0] = FMS_VALUE_BYTE;
	memcpy(key + 1, bytes, COLUMN_BYTES);
	return record;
}

/* ... whose key is encoded again.  NULL: the tuple is damaged. */
static const FmsRecord *
make_with_encoding(char *tuple, uint32 tuple_bytes, const char *head,
				   FmsKeys *keys)
{
	FmsKeyImage image;
	FmsRecord  *record;
	uint16		key_bytes;

	if (((MinimalTuple) tuple)->t_hoff > tuple_bytes + MINIMAL_TUPLE_OFFSET)
		return NULL;
	fms_keys_encode_tuple(keys, (MinimalTuple) tuple, tuple_bytes, &image);
	key_bytes = image.record.key_bytes;
	record = begin_record(tuple, tuple_bytes, key_bytes, image.record.flags);
	/* whole words, of which there is room for one more */
	memcpy(fms_record_key(record), image.bytes,
		   key_bytes - FMS_KEY_LAST_BYTES);
	store_head(tuple, number_at((const char *) image.bytes + key_bytes -
								FMS_KEY_LAST_BYTES), head);
	return record;
}

const FmsRecord *
fms_packed_read(FmsKeys *keys, const char *area, uint32 *at_bytes,
				uint32 room_bytes, char *buffer)
{
	const FmsWordType *words = fms_keys_word_type(keys);
	char	   *tuple = buffer + FMS_KEY_MAX_BYTES - FMS_KEY_LAST_BYTES;
	const char *head = area + AREA_PREFIX_BYTES;
	const char *key_end;
	const char *at;
	uint16		tag;
	uint16		flags;
	int			shared;
	uint32		tuple_bytes;
	uint32		rest_bytes;

	if (words)
		return read_word(words, area, at_bytes, room_bytes, buffer);
	*at_bytes = Max(*at_bytes, AREA_BEGIN_BYTES);
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
	key_end = at;
	at += shared == SHARED_WITH_COLUMN ? (int) sizeof(flags) :
		SHARED_ALL - shared;
	*at_bytes = at + rest_bytes - area;
	/* the padding may be written to disk */
	memset(tuple + MAXALIGN(tuple_bytes) - MAXIMUM_ALIGNOF, 0,
		   MAXIMUM_ALIGNOF);
	copy_rest(tuple + TUPLE_KNOWN_BYTES, at, rest_bytes);
	if (shared <= SHARED_MAX)
		return make_with_prefix(tuple, tuple_bytes, head, area, shared,
								key_end);
	memcpy(tuple + FMS_TUPLE_SKIPPED_BYTES, head, HEAD_BYTES);
	if (shared == SHARED_ALL)
		return make_with_encoding(tuple, tuple_bytes, head, keys);
	memcpy(&flags, key_end, sizeof(flags));
	return make_with_column(tuple, tuple_bytes, flags);
}
