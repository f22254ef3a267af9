/*-------------------------------------------------------------------------
 *
 * keys.h
 *	  The columns of a sort: keys, comparing records, first keys.
 *
 *-------------------------------------------------------------------------
 */
#ifndef FMS_KEYS_H
#define FMS_KEYS_H

#include "executor/tuptable.h"

#include "keys/word.h"

typedef enum FmsGroupCount
{
	FMS_GROUP_ALL,				/* all rows are wanted */
	FMS_GROUP_ROWS,				/* row_number() <= k */
	FMS_GROUP_RANKS,			/* rank() <= k */
	FMS_GROUP_DENSE_RANKS		/* dense_rank() <= k */
} FmsGroupCount;

/* What the parent wants of each group: of rows equal in some columns. */
typedef struct FmsGroupLimit
{
	FmsGroupCount counts;
	int			columns;		/* leading sort columns; ranks go by all */
	int			wanted;			/* k, at least 1 */
} FmsGroupLimit;

/* ORDER BY: arrays of ncolumns elements, which fms_keys_create() reads. */
typedef struct FmsKeySpec
{
	int			ncolumns;
	AttrNumber *attnos;			/* in the tuples to be sorted, 1-based */
	Oid		   *operators;		/* "<" or ">" of a btree operator family */
	Oid		   *collations;
	bool	   *nulls_first;
	double		tuples;			/* as the planner expects, or 0 */
	FmsGroupLimit limit;
} FmsKeySpec;

typedef struct FmsKeys FmsKeys;
typedef struct FmsGroupFilter FmsGroupFilter;

/* A record without a tuple: the key of a tuple that is not a record yet. */
typedef struct FmsKeyImage
{
	FmsRecord	record;
	uint8		bytes[FMS_KEY_MAX_WORDS * sizeof(uint64)];
} FmsKeyImage;

/* Looks the columns up, in the current context.  May ERROR (no operator). */
extern FmsKeys *fms_keys_create(TupleDesc desc, const FmsKeySpec *spec);

/* Do the first FMS_PREFIX_BYTES of every key decide alone? */
extern bool fms_keys_prefix_decides(const FmsKeys *keys);

/* How the rows are words, or NULL if they are not.  Belongs to the keys. */
extern const FmsWordType *fms_keys_word_type(const FmsKeys *keys);

/* The filter of rows, which belongs to the keys; NULL: all are wanted. */
extern FmsGroupFilter *fms_keys_group_filter(const FmsKeys *keys);
extern FmsGroupFilter *fms_group_filter_create(FmsKeys *keys,
											   const FmsGroupLimit *limit);

/*
 * Begins a sequence of records in order.  Is the next one wanted?  (True if
 * the filter does not know.)  How many were dropped since the last call?
 */
extern void fms_group_filter_begin(FmsGroupFilter *filter);
extern bool fms_group_filter_wants(FmsGroupFilter *filter,
								   const FmsRecord *record);
extern uint64 fms_group_filter_dropped(FmsGroupFilter *filter);

/* Is the row of that key known to be dropped behind the record? */
extern bool fms_group_filter_refuses(FmsGroupFilter *filter,
									 const FmsRecord *key,
									 const FmsRecord *earlier);

/* A hash of the key's group, if the key has it. */
extern uint32 fms_group_filter_hash(const FmsGroupFilter *filter,
									const FmsRecord *key);

/* Makes the key of a slot's tuple.  May detoast, hence allocate and ERROR. */
extern void fms_keys_encode(FmsKeys *keys, TupleTableSlot *slot,
							FmsKeyImage *image);

/* Makes the key and flags of a tuple again.  Sets its t_len to tuple_bytes. */
extern void fms_keys_encode_tuple(FmsKeys *keys, MinimalTuple tuple,
								  Size tuple_bytes, FmsKeyImage *image);

/* Does making a key again cost little?  Sort keys of ICU do not. */
extern bool fms_keys_are_cheap(const FmsKeys *keys);

/* Flags (record.h) of a key that is not exact; tuple: as a MinimalTuple. */
extern uint16 fms_keys_column_flags(FmsKeys *keys, TupleTableSlot *slot,
									const char *tuple, Size tuple_bytes);

/* Compares records or first keys whose first words are equal.  May ERROR. */
extern int	fms_keys_compare_rest(FmsKeys *keys, const FmsRecord *a,
								  const FmsRecord *b);

/* Compares any two records, or first keys. */
static inline int
fms_keys_compare(FmsKeys *keys, const FmsRecord *a, const FmsRecord *b)
{
	uint64		a_prefix = fms_record_prefix(a);
	uint64		b_prefix = fms_record_prefix(b);

	if (a_prefix != b_prefix)
		return a_prefix < b_prefix ? -1 : 1;
	return fms_keys_compare_rest(keys, a, b);
}

/* The same for equal keys; `equal` columns that they leave open are equal. */
extern int	fms_keys_compare_columns(FmsKeys *keys, const FmsRecord *a,
									 const FmsRecord *b, int equal);

/* Compares column i, for which there must be a comparator. */
extern int	fms_keys_compare_column(FmsKeys *keys, const FmsRecord *a,
									const FmsRecord *b, int i);

/* The first key of a block that starts with record; until the next call. */
extern const FmsRecord *fms_keys_make_first_key(FmsKeys *keys,
											const FmsRecord *record);

#endif							/* FMS_KEYS_H */
