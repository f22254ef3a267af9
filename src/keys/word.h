/*-------------------------------------------------------------------------
 *
 * word.h
 *	  Rows of one by-value column as words of 8 bytes.
 *
 * If the sort column is the only column and all bits of its values count, the
 * key is the row.  The word of a row is its key without the null byte:
 *
 *	  date		            00 00 07 d1
 *	  record	| header | 01 80 00 07 d1 00 00 00 00 00 | infomask ... |
 *	  word		            80 00 07 d1 00 00 00 00
 *
 * Words order like the rows, and equal words are equal rows.  A null has no
 * word.  The record made from a word is the one that its row would have.
 *
 *-------------------------------------------------------------------------
 */
#ifndef FMS_WORD_H
#define FMS_WORD_H

#include "access/tupmacs.h"

#include "keys/record.h"

/* Offset in bytes of the value in the tuple, if it is not null. */
#define FMS_WORD_VALUE_OFFSET	MAXALIGN(SizeofMinimalTupleHeader)

/* A record of one by-value column: a key of at most 10 bytes and a tuple. */
typedef union FmsWordRecord
{
	FmsRecord	record;
	uint64		aligned;		/* as records are */
	char		bytes[sizeof(uint64) + FMS_WORD_VALUE_OFFSET + sizeof(Datum)];
} FmsWordRecord;

StaticAssertDecl(sizeof(Datum) == sizeof(uint64),
				 "a word has room for any by-value column");

/* How the rows of a sort become words and records. */
typedef struct FmsWordType
{
	uint64		flip;			/* inverted: the sign, all if descending */
	int			shift;			/* zero bits at the end of every word */
	int			bytes;			/* length of a value */
	bool		nulls_first;
	MinimalTuple null_tuple;	/* the row of a null */
	FmsWordRecord record;		/* what all records have in common */
} FmsWordType;

/* Fills in how values of `bytes` bytes become words and records. */
static inline void
fms_word_type_init(FmsWordType *type, int bytes, bool is_signed,
				   bool descending)
{
	const uint8 key[FMS_PREFIX_BYTES] = {FMS_VALUE_BYTE};
	MinimalTuple tuple;

	type->bytes = bytes;
	type->shift = 64 - 8 * bytes;
	type->flip = descending ? PG_UINT64_MAX << type->shift : 0;
	if (is_signed)
		type->flip ^= UINT64CONST(1) << 63;
	memset(&type->record, 0, sizeof(type->record));
	fms_record_write(&type->record.record, key, fms_key_room(1 + bytes),
					 FMS_RECORD_EXACT, NULL, FMS_WORD_VALUE_OFFSET + bytes);
	tuple = fms_record_tuple(&type->record.record);
	tuple->t_infomask2 = 1;		/* a column, which is not null */
	tuple->t_hoff = FMS_WORD_VALUE_OFFSET + MINIMAL_TUPLE_OFFSET;
}

/*
 * Sorts words by nbits > 0 bits of (word - low) from first_bit on into the
 * room, which is as large; words with equal bits must ascend.
 */
extern void fms_radix_deal(uint64 *words, uint64 *room, Size count,
						   uint64 low, int first_bit, int nbits);

/* Sorts words in place.  room: for as many words again. */
extern void fms_radix_sort(uint64 *words, uint64 *room, Size count);

/* The word of a value, as the normalized key has it. */
static inline uint64
fms_word_of_value(const FmsWordType *type, Datum value)
{
	return (uint64) value << type->shift ^ type->flip;
}

/* The word's value, extended to a Datum as fetch_att() does it. */
static inline Datum
fms_word_value(const FmsWordType *type, uint64 word)
{
	int64		value = (int64) (word ^ type->flip) >> type->shift;

	/* a char has no sign on some processors */
	return likely(type->bytes > 1) ? (Datum) value :
		CharGetDatum((char) value);
}

/* The word of a closed record of such a sort. */
static inline uint64
fms_word_of_record(const FmsWordType *type, const FmsRecord *record)
{
	uint64		word;

	memcpy(&word, fms_record_key(record) + 1, sizeof(word));
	/* the key of a value of one byte is followed by the tuple */
	return pg_ntoh64(word) & PG_UINT64_MAX << type->shift;
}

/* Makes the word's record, closed. */
static inline void
fms_word_record_make(const FmsWordType *type, uint64 word,
					 FmsWordRecord *record)
{
	uint64		ordered = pg_hton64(word);
	char	   *key = fms_record_key(&record->record) + 1;

	*record = type->record;
	if (likely(type->bytes > 1))
		memcpy(key, &ordered, sizeof(ordered));
	else
		memcpy(key, &ordered, 1);
	store_att_byval((char *) fms_record_tuple(&record->record) +
					FMS_WORD_VALUE_OFFSET,
					fms_word_value(type, word), type->bytes);
}

/* The value in a tuple of one by-value column. */
static inline Datum
fms_word_tuple_value(MinimalTuple tuple, int bytes, bool *isnull)
{
	*isnull = (tuple->t_infomask & HEAP_HASNULL) != 0;
	return *isnull ? (Datum) 0 :
		fetch_att((char *) tuple + FMS_WORD_VALUE_OFFSET, true, bytes);
}

#endif							/* FMS_WORD_H */
