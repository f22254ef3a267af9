/*-------------------------------------------------------------------------
 *
 * record.h
 *	  One tuple on its way through a sort: in memory, on the tape and in the
 *	  block read order.
 *
 *	  +--------+----------------------+---------------------------+
 *	  | header | normalized key       | MinimalTuple              |
 *	  | 8 B    | 0, 8 .. 32 B, zeroed | t_len bytes, zeroed to 8  |
 *	  +--------+----------------------+---------------------------+
 *
 * The same bytes serve in all three places, so run formation copies a record
 * once (memory to output block) and the merge none: the parent gets a
 * pointer to the tuple inside the sort block.  Everything is MAXALIGNed
 * because the executor reads the tuple in place.
 *
 * The key comes first, so that a comparison touches one cache line.  Its
 * bytes compare like the sort's columns do (encode.h).  It is cut off at
 * FMS_KEY_MAX_BYTES: a longer key is completed by comparing the columns
 * themselves, which the tuple has anyway; writing long keys a second time
 * would cost more I/O than the rare ties cost comparisons.
 *
 * A fence (the first key of a block, in the block read order) is a record
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

/* A multiple of 8: keys are compared in words. */
#define FMS_KEY_MAX_BYTES	32

/* FmsRecord.flags */
#define FMS_RECORD_EXACT	0x0001	/* the key bytes decide alone */
#define FMS_RECORD_FENCE	0x0002	/* the tuple, if any, holds only the key
									 * columns */

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
	uint32		size_bytes;		/* of all of it, MAXALIGNed */
	uint16		key_bytes;		/* multiple of 8, <= FMS_KEY_MAX_BYTES */
	uint16		flags;
} FmsRecord;

StaticAssertDecl(sizeof(FmsRecord) == 8 && MAXIMUM_ALIGNOF == 8,
				 "records go to disk: their header must not be padded");

/*
 * Could these bytes be the beginning of a record?  What comes from disk is
 * asked before its key is looked at: sizes must be aligned, or the next
 * record's words would not be, and hold the key.
 */
static inline bool
fms_record_is_sane(const FmsRecord *record)
{
	return ((record->size_bytes | record->key_bytes) & 7) == 0 &&
		record->key_bytes <= FMS_KEY_MAX_BYTES &&
		record->size_bytes >= sizeof(FmsRecord) + record->key_bytes;
}

static inline char *
fms_record_key(const FmsRecord *record)
{
	return (char *) (record + 1);
}

/* The tuple, valid as long as the record's memory is. */
static inline MinimalTuple
fms_record_tuple(const FmsRecord *record)
{
	return (MinimalTuple) (fms_record_key(record) + record->key_bytes);
}

static inline bool
fms_record_has_tuple(const FmsRecord *record)
{
	return record->size_bytes > sizeof(FmsRecord) + record->key_bytes;
}

/* Size of a record with such a key and tuple. */
static inline Size
fms_record_size(uint16 key_bytes, Size tuple_bytes)
{
	return sizeof(FmsRecord) + key_bytes + MAXALIGN(tuple_bytes);
}

/* Word number i of the key as an integer that compares like its bytes. */
static inline uint64
fms_record_key_word(const FmsRecord *record, int i)
{
	uint64		word;

	memcpy(&word, fms_record_key(record) + i * sizeof(uint64), sizeof(word));
	return pg_ntoh64(word);
}

/*
 * What entries and heads of runs carry with them: the key's first word, and
 * the two bytes after it.  Ten bytes are all of most keys: one of eight bytes,
 * or two of four, with their null bytes.
 */
#define FMS_PREFIX_BYTES	10

static inline uint64
fms_record_prefix(const FmsRecord *record)
{
	return record->key_bytes > 0 ? fms_record_key_word(record, 0) : 0;
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
