/*-------------------------------------------------------------------------
 *
 * record.h
 *	  One tuple on its way through a sort: in memory, on the tape and in the
 *	  block read order.
 *
 *	  +--------+-----------------------+------------------------------+
 *	  | header | normalized key        | tuple, from its byte 10 on   |
 *	  | 8 B    | 2, 10 .. 34 B, zeroed | zeroed to a multiple of 8    |
 *	  +--------+-----------------------+------------------------------+
 *	                     |<- 10 B -->| where the tuple begins
 *
 * The same bytes serve in all three places, so run formation copies a record
 * once (memory to output block) and the merge none: the parent gets a
 * pointer to the tuple inside the sort block.  So everything is aligned as the
 * executor reads it.
 *
 * A MinimalTuple begins with its length and six bytes of padding.  A record
 * does without them: the length is in the header, and the end of the key (or
 * the header itself) lies where the tuple has its first ten bytes.  When the
 * parent gets the tuple, its length goes there, over four bytes of the key,
 * and when the parent has done with it, the key gets them back.  A date's:
 *
 *	  closed	| header | 01 80 00 07 d1 00 00 00 00 00 | infomask ...
 *	  open		| header | 7c 00 00 00 d1 00 00 00 00 00 | infomask ...
 *	                       t_len       padding
 *
 * Records are closed wherever they are compared, written or kept.  A whole
 * tuple behind header and key would be simpler; but then a row of the TPC-H
 * orders takes 144 bytes by a date and 152 by a bigint, and like this 136.
 *
 * The key comes first, so that a comparison touches one cache line.  Its
 * bytes compare like the sort's columns do (encode.h).  It is two bytes and
 * some words long, since the tuple's data begins two bytes behind a word's
 * beginning: ten bytes are all of most keys.  It is cut off at
 * FMS_KEY_MAX_BYTES: a longer key is completed by comparing the columns
 * themselves, which the tuple has anyway; writing long keys a second time
 * would cost more I/O than the rare ties cost comparisons.
 *
 * The first key of a block, in the block read order, is a record
 * too, without the payload: no tuple at all when the key is exact, else a
 * tuple of only the key columns.
 *
 *-------------------------------------------------------------------------
 */
#ifndef FMS_RECORD_H
#define FMS_RECORD_H

#include "postgres.h"

#include "access/htup_details.h"
#include "port/pg_bswap.h"
#include "utils/memutils.h"

/*
 * Keys are some words of eight bytes and one of two, which lies where the
 * tuple has padding.
 */
#define FMS_KEY_LAST_BYTES	2
#define FMS_KEY_MAX_BYTES	34
#define FMS_KEY_MAX_WORDS	5

StaticAssertDecl(FMS_KEY_MAX_BYTES ==
				 (FMS_KEY_MAX_WORDS - 1) * sizeof(uint64) + FMS_KEY_LAST_BYTES,
				 "the longest key fills its words");

/*
 * What entries and heads of runs carry with them: the key's first word, and
 * the two bytes after it.  Ten bytes are all of most keys: one of eight bytes,
 * or two of four, with their null bytes.
 */
#define FMS_PREFIX_BYTES	10

/* FmsRecord.flags */
#define FMS_RECORD_EXACT	0x0001	/* the key bytes decide alone */
#define FMS_RECORD_FIRST_KEY 0x0002	/* the tuple, if any, holds only the
									 * key columns */

/*
 * The other bits: where in the tuple the column lies that is compared first
 * when the key bytes do not decide, from the tuple's beginning; 0: look for
 * it.
 */
#define FMS_RECORD_PLACE_SHIFT	2
#define FMS_RECORD_PLACE_MAX	((1 << (16 - FMS_RECORD_PLACE_SHIFT)) - 1)

static inline uint16
fms_record_place_flags(Size place)
{
	return place <= FMS_RECORD_PLACE_MAX ?
		(uint16) (place << FMS_RECORD_PLACE_SHIFT) : 0;
}

typedef struct FmsRecord
{
	uint32		tuple_bytes;	/* its t_len; 0: there is none */
	uint16		key_bytes;		/* fms_key_room() of something */
	uint16		flags;
} FmsRecord;

/* What a record has of the tuple begins with this byte. */
#define FMS_TUPLE_SKIPPED_BYTES MINIMAL_TUPLE_DATA_OFFSET

StaticAssertDecl(sizeof(FmsRecord) == 8 && MAXIMUM_ALIGNOF == 8,
				 "records go to disk: their header must not be padded");
StaticAssertDecl(FMS_TUPLE_SKIPPED_BYTES ==
				 sizeof(FmsRecord) + FMS_KEY_LAST_BYTES,
				 "header and last bytes of the key are what a tuple has before its data");
StaticAssertDecl(offsetof(MinimalTupleData, t_len) == 0 &&
				 offsetof(FmsRecord, tuple_bytes) == 0,
				 "with the shortest key, the header's length is the tuple's");

/* The room that a key of so many bytes gets. */
static inline uint16
fms_key_room(Size bytes)
{
	return TYPEALIGN(sizeof(uint64),
					 Max(bytes, FMS_KEY_LAST_BYTES) - FMS_KEY_LAST_BYTES) +
		FMS_KEY_LAST_BYTES;
}

static inline char *
fms_record_key(const FmsRecord *record)
{
	return (char *) (record + 1);
}

/* How many words the key has, the last of which is one of two bytes. */
static inline int
fms_record_key_words(const FmsRecord *record)
{
	return record->key_bytes / sizeof(uint64) + 1;
}

static inline bool
fms_record_has_tuple(const FmsRecord *record)
{
	return record->tuple_bytes > 0;
}

/* Most keys are of one length, and a copy of known length is no call. */
static inline void
fms_key_copy(char *to, const char *from, uint16 key_bytes)
{
	if (likely(key_bytes == FMS_PREFIX_BYTES))
		memcpy(to, from, FMS_PREFIX_BYTES);
	else
		memcpy(to, from, key_bytes);
}

/* Size of a record with such a key and tuple, a multiple of 8. */
static inline Size
fms_record_size(uint16 key_bytes, Size tuple_bytes)
{
	return key_bytes - FMS_KEY_LAST_BYTES +
		MAXALIGN(Max(tuple_bytes, FMS_TUPLE_SKIPPED_BYTES));
}

/*
 * What a record is expected to take whose columns are so wide: they, the
 * tuple's header, a key of one word, and half of what aligning the end takes
 * at most.
 */
static inline double
fms_record_expected_bytes(double columns_bytes)
{
	return columns_bytes + MAXALIGN(SizeofMinimalTupleHeader) +
		sizeof(uint64) + MAXIMUM_ALIGNOF / 2;
}

static inline Size
fms_record_bytes(const FmsRecord *record)
{
	return fms_record_size(record->key_bytes, record->tuple_bytes);
}

/*
 * Could these bytes be the beginning of a record of a run?  What comes from
 * disk is asked before its key is looked at: the key must leave the tuple
 * aligned, and the tuple hold what all tuples do.
 */
static inline bool
fms_record_is_sane(const FmsRecord *record)
{
	return record->key_bytes % sizeof(uint64) == FMS_KEY_LAST_BYTES &&
		record->key_bytes <= FMS_KEY_MAX_BYTES &&
		record->tuple_bytes >= SizeofMinimalTupleHeader &&
		record->tuple_bytes <= MaxAllocSize;
}

/*
 * The tuple, valid as long as the record's memory is.  Its t_len is only while
 * the record is open; columns can be read at any time.
 */
static inline MinimalTuple
fms_record_tuple(const FmsRecord *record)
{
	return (MinimalTuple) ((char *) record + record->key_bytes -
						   FMS_KEY_LAST_BYTES);
}

/*
 * Writes a closed record where there is room for it.  The tuple is a minimal
 * one or begins like one; without bytes, there is none.
 */
static inline void
fms_record_write(FmsRecord *record, const void *key, uint16 key_bytes,
				 uint16 flags, const char *tuple, Size tuple_bytes)
{
	record->tuple_bytes = tuple_bytes;
	record->key_bytes = key_bytes;
	record->flags = flags;
	/* what nothing fills of the last word goes to disk: zero it */
	memset((char *) record + fms_record_bytes(record) - MAXIMUM_ALIGNOF, 0,
		   MAXIMUM_ALIGNOF);
	fms_key_copy(fms_record_key(record), key, key_bytes);
	if (tuple_bytes > 0)
		memcpy((char *) fms_record_tuple(record) + FMS_TUPLE_SKIPPED_BYTES,
			   tuple + FMS_TUPLE_SKIPPED_BYTES,
			   tuple_bytes - FMS_TUPLE_SKIPPED_BYTES);
}

/*
 * Opens a record: makes its tuple a whole one.  The record must not be looked
 * at until it is closed with what this returns.
 */
static inline uint32
fms_record_open(const FmsRecord *record)
{
	MinimalTuple tuple = fms_record_tuple(record);
	uint32		displaced = tuple->t_len;

	Assert(fms_record_has_tuple(record));
	tuple->t_len = record->tuple_bytes;
	return displaced;
}

static inline void
fms_record_close(const FmsRecord *record, uint32 displaced)
{
	MinimalTuple tuple = fms_record_tuple(record);

	Assert(tuple->t_len == record->tuple_bytes);
	tuple->t_len = displaced;
}

/*
 * Word number i of the key as an integer that compares like its bytes.  The
 * last one has two of them, and the tuple's behind it.
 */
static inline uint64
fms_record_key_word(const FmsRecord *record, int i)
{
	uint64		word;

	memcpy(&word, fms_record_key(record) + i * sizeof(uint64), sizeof(word));
	word = pg_ntoh64(word);
	return i == fms_record_key_words(record) - 1 ?
		word & UINT64CONST(0xFFFF000000000000) : word;
}

static inline uint64
fms_record_prefix(const FmsRecord *record)
{
	return fms_record_key_word(record, 0);
}

/*
 * Ten bytes of the key from a depth on that is less than the key's length,
 * as a number; what lies behind the key's end counts as zero.
 */
static inline uint128
fms_record_key_part(const FmsRecord *record, int depth)
{
	uint8		bytes[sizeof(uint64) + sizeof(uint16)] = {0};
	uint64		word;
	uint16		rest;

	memcpy(bytes, fms_record_key(record) + depth,
		   Min((int) sizeof(bytes), record->key_bytes - depth));
	memcpy(&word, bytes, sizeof(word));
	memcpy(&rest, bytes + sizeof(word), sizeof(rest));
	return (uint128) pg_ntoh64(word) << 16 | pg_ntoh16(rest);
}

static inline uint16
fms_record_prefix_rest(const FmsRecord *record)
{
	return record->key_bytes > sizeof(uint64) ?
		fms_record_key_word(record, 1) >> 48 : 0;
}

#endif							/* FMS_RECORD_H */
