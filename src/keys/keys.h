/*-------------------------------------------------------------------------
 *
 * keys.h
 *	  The sort's columns: making keys, comparing records, making first keys.
 *
 *-------------------------------------------------------------------------
 */
#ifndef FMS_KEYS_H
#define FMS_KEYS_H

#include "postgres.h"

#include "executor/tuptable.h"

#include "keys/record.h"

/* What ORDER BY says; arrays of ncolumns, read only while keys are made. */
typedef struct FmsKeySpec
{
	int			ncolumns;
	AttrNumber *attnos;			/* in the tuples to be sorted, 1-based */
	Oid		   *operators;		/* "<" or ">" of some btree family */
	Oid		   *collations;
	bool	   *nulls_first;
} FmsKeySpec;

/* A key before it has become part of a record. */
typedef struct FmsKeyImage
{
	uint16		key_bytes;		/* with the zeros that fill its room */
	bool		exact;
	pg_attribute_aligned(8) uint8 bytes[FMS_KEY_MAX_BYTES];
} FmsKeyImage;

/* What fms_record_prefix() will be once it is part of a record. */
static inline uint64
fms_image_prefix(const FmsKeyImage *image)
{
	uint64		word;

	memcpy(&word, image->bytes, sizeof(word));
	return pg_ntoh64(word);
}

/* Likewise fms_record_prefix_rest(); bytes past the key are zero. */
static inline uint16
fms_image_prefix_rest(const FmsKeyImage *image)
{
	return image->bytes[sizeof(uint64)] << 8 |
		image->bytes[sizeof(uint64) + 1];
}

typedef struct FmsKeys FmsKeys;

/*
 * Looks the columns up.  Lives in the current memory context; comparators
 * keep their caches there too.  May ERROR (no such operator).
 */
extern FmsKeys *fms_keys_create(TupleDesc desc, const FmsKeySpec *spec);

/*
 * Makes the key of a slot's tuple.  May run detoasting, hence allocate in
 * the current context and ERROR.
 */
extern void fms_keys_encode(FmsKeys *keys, TupleTableSlot *slot,
							FmsKeyImage *image);

/*
 * What a record's flags say about where its columns lie; to be asked if its
 * key is not exact.  The tuple: from what a minimal tuple begins with.
 */
extern uint16 fms_keys_place(FmsKeys *keys, TupleTableSlot *slot,
							 const char *tuple, Size tuple_bytes);

/*
 * Do the prefixes (the first FMS_PREFIX_BYTES) decide alone?  Then records
 * with equal prefixes are equal, and need not be looked at.
 */
extern bool fms_keys_prefix_decides(const FmsKeys *keys);

/*
 * Compares two records, either of which may be a first key, whose keys' first
 * words are equal.  Returns <0, 0, >0.  May run a type's comparator, so it
 * may do all a function call may do: allocate, detoast, ERROR.
 */
extern int	fms_keys_compare_rest(FmsKeys *keys, const FmsRecord *a,
								  const FmsRecord *b);

/*
 * Likewise records whose keys are the same bytes, which do not decide (neither
 * record is exact).
 */
extern int	fms_keys_compare_columns(FmsKeys *keys, const FmsRecord *a,
									 const FmsRecord *b);

/*
 * Makes the first key of a record: its key, completed by the key columns where
 * the key alone does not decide.  Valid until the next call.
 */
extern const FmsRecord *fms_keys_make_first_key(FmsKeys *keys,
												const FmsRecord *record);

#endif							/* FMS_KEYS_H */
