/*-------------------------------------------------------------------------
 *
 * record.h
 *	  A tuple with its normalized key: the same bytes in memory, on disk and
 *	  in the block read order.
 *
 *	  +--------+-----------------------+------------------------------+
 *	  | header | normalized key        | tuple, from its byte 10 on   |
 *	  | 8 B    | 2, 10 .. 34 B, zeroed | zeroed to a multiple of 8    |
 *	  +--------+-----------------------+------------------------------+
 *	                     |<- 10 B -->| where the MinimalTuple begins
 *
 * The first ten bytes of a MinimalTuple are its length and padding.  A record
 * stores the end of its key there.  While the parent node uses the tuple, the
 * record is open: t_len overwrites four bytes of the key.  A date:
 *
 *	  closed	| header | 01 80 00 07 d1 00 00 00 00 00 | infomask ...
 *	  open		| header | 7c 00 00 00 d1 00 00 00 00 00 | infomask ...
 *
 * Invariants: records are MAXALIGNed, and so is the tuple inside.  A key is
 * 2 + 8 * n bytes long and is cut off at FMS_KEY_MAX_BYTES; the columns of the
 * tuple complete it.  A first key (of a block) is a record without payload:
 * no tuple if the key is exact, otherwise a tuple of the key columns.
 *
 *-------------------------------------------------------------------------
 */
#ifndef FMS_RECORD_H
#define FMS_RECORD_H

#include "access/htup_details.h"
#include "port/pg_bswap.h"
#include "utils/memutils.h"

/* A key is up to four words of 8 bytes and a last word of 2 bytes. */
#define FMS_KEY_LAST_BYTES	2
#define FMS_KEY_MAX_BYTES	34
#define FMS_KEY_MAX_WORDS	5

StaticAssertDecl(FMS_KEY_MAX_BYTES ==
				 (FMS_KEY_MAX_WORDS - 1) * sizeof(uint64) + FMS_KEY_LAST_BYTES,
				 "the longest key fills its words");

/* First byte of a column that is not null, in a key. */
#define FMS_VALUE_BYTE		1

/* Bytes of the key in an entry or a tree's node: a bigint, or two integers. */
#define FMS_PREFIX_BYTES	10

/* FmsRecord.flags */
#define FMS_RECORD_EXACT	0x0001	/* equal keys mean equal records */
#define FMS_RECORD_FIRST_KEY 0x0002	/* a first key: the tuple, if any, has only
									 * the key columns */

/* The others: offset in the tuple of the first undecided column; 0: unknown */
#define FMS_RECORD_COLUMN_SHIFT	2
#define FMS_RECORD_COLUMN_MAX	((1 << (16 - FMS_RECORD_COLUMN_SHIFT)) - 1)

typedef struct FmsRecord
{
	uint32		tuple_bytes;	/* t_len of the tuple; 0: no tuple */
	uint16		key_bytes;		/* 2 + 8 * n */
	uint16		flags;
} FmsRecord;

/* Bytes at the beginning of a tuple that a record does not store. */
#define FMS_TUPLE_SKIPPED_BYTES MINIMAL_TUPLE_DATA_OFFSET

StaticAssertDecl(sizeof(FmsRecord) == 8 && MAXIMUM_ALIGNOF == 8,
				 "records are written to disk: no padding in the header");
StaticAssertDecl(FMS_TUPLE_SKIPPED_BYTES ==
				 sizeof(FmsRecord) + FMS_KEY_LAST_BYTES,
				 "with the shortest key, header and key replace the skipped bytes");
StaticAssertDecl(offsetof(MinimalTupleData, t_len) == 0 &&
				 offsetof(FmsRecord, tuple_bytes) == 0,
				 "with the shortest key, tuple_bytes is t_len");

/* Rounds the length of a key up to the next 2 + 8 * n. */
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

/* Number of words of the key, its last two bytes included. */
static inline int
fms_record_key_words(const FmsRecord *record)
{
	return record->key_bytes / sizeof(uint64) + 1;
}

/* Size in bytes of a record, a multiple of 8. */
static inline Size
fms_record_size(uint16 key_bytes, Size tuple_bytes)
{
	return key_bytes - FMS_KEY_LAST_BYTES +
		MAXALIGN(Max(tuple_bytes, FMS_TUPLE_SKIPPED_BYTES));
}

/* What rows whose columns take columns_bytes are estimated to take. */
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

/* Checks the header of a record read from disk before its key is used. */
static inline bool
fms_record_is_sane(const FmsRecord *record)
{
	return record->key_bytes % sizeof(uint64) == FMS_KEY_LAST_BYTES &&
		record->key_bytes <= FMS_KEY_MAX_BYTES &&
		record->tuple_bytes >= SizeofMinimalTupleHeader &&
		record->tuple_bytes <= MaxAllocSize;
}

/* The tuple in the record; its t_len is valid while the record is open. */
static inline MinimalTuple
fms_record_tuple(const FmsRecord *record)
{
	return (MinimalTuple) ((char *) record + record->key_bytes -
						   FMS_KEY_LAST_BYTES);
}

/* Writes a closed record.  tuple: as a MinimalTuple; NULL: the caller does. */
static inline void
fms_record_write(FmsRecord *record, const void *key, uint16 key_bytes,
				 uint16 flags, const char *tuple, Size tuple_bytes)
{
	record->tuple_bytes = tuple_bytes;
	record->key_bytes = key_bytes;
	record->flags = flags;
	/* the padding is written to disk */
	memset((char *) record + fms_record_bytes(record) - MAXIMUM_ALIGNOF, 0,
		   MAXIMUM_ALIGNOF);
	/* the usual length is a constant: its memcpy() needs no call */
	if (likely(key_bytes == FMS_PREFIX_BYTES))
		memcpy(fms_record_key(record), key, FMS_PREFIX_BYTES);
	else
		memcpy(fms_record_key(record), key, key_bytes);
	if (tuple && tuple_bytes > 0)
		memcpy((char *) fms_record_tuple(record) + FMS_TUPLE_SKIPPED_BYTES,
			   tuple + FMS_TUPLE_SKIPPED_BYTES,
			   tuple_bytes - FMS_TUPLE_SKIPPED_BYTES);
}

/* Opens a record.  Returns what t_len replaces, for fms_record_close(). */
static inline uint32
fms_record_open(const FmsRecord *record)
{
	MinimalTuple tuple = fms_record_tuple(record);
	uint32		displaced = tuple->t_len;

	Assert(record->tuple_bytes > 0);
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

/* Word i of the key as an integer that orders like the key's bytes. */
static inline uint64
fms_record_key_word(const FmsRecord *record, int i)
{
	uint64		word;

	memcpy(&word, fms_record_key(record) + i * sizeof(uint64), sizeof(word));
	word = pg_ntoh64(word);
	/* the last word's two bytes are followed by the tuple */
	return i == fms_record_key_words(record) - 1 ?
		word & UINT64CONST(0xFFFF000000000000) : word;
}

static inline uint64
fms_record_prefix(const FmsRecord *record)
{
	return fms_record_key_word(record, 0);
}

/* FMS_PREFIX_BYTES of the key from offset `depth` on, padded with zeros. */
static inline uint128
fms_record_key_part(const FmsRecord *record, int depth)
{
	uint64		words[2] = {0};

	memcpy(words, fms_record_key(record) + depth,
		   Min(FMS_PREFIX_BYTES, record->key_bytes - depth));
	return (uint128) pg_ntoh64(words[0]) << 16 | pg_ntoh64(words[1]) >> 48;
}

/* The two bytes of the prefix that follow fms_record_prefix(). */
static inline uint16
fms_record_prefix_rest(const FmsRecord *record)
{
	return record->key_bytes > sizeof(uint64) ?
		fms_record_key_word(record, 1) >> 48 : 0;
}

/* Memory for one record after another, which grows with them. */
typedef struct FmsRecordBuffer
{
	FmsRecord  *record;			/* NULL: no memory yet */
	Size		size_bytes;
} FmsRecordBuffer;

static inline void
fms_record_buffer_free(FmsRecordBuffer *buffer)
{
	if (buffer->record)
		pfree(buffer->record);
	*buffer = (FmsRecordBuffer) {NULL, 0};
}

/* Makes room for `bytes`, perhaps more than a GB; the record is lost. */
static inline FmsRecord *
fms_record_buffer_reserve(FmsRecordBuffer *buffer, MemoryContext context,
						  Size bytes)
{
	if (buffer->size_bytes < bytes)
	{
		fms_record_buffer_free(buffer);
		buffer->record = MemoryContextAllocExtended(context, bytes,
													MCXT_ALLOC_HUGE);
		buffer->size_bytes = bytes;
	}
	return buffer->record;
}

#endif							/* FMS_RECORD_H */
