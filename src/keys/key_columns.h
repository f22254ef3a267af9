/*-------------------------------------------------------------------------
 *
 * key_columns.h
 *	  A sort's columns: private to the folder.
 *
 *	  columns   0 ..            undecided ..   nencoded ..  ncolumns
 *	            |<------------ in the key ------->|
 *	            |<- equal if the  ->|<- compared if the keys ->|
 *	            |   keys are equal  |   are equal              |
 *
 *-------------------------------------------------------------------------
 */
#ifndef FMS_KEY_COLUMNS_H
#define FMS_KEY_COLUMNS_H

#include "executor/tuptable.h"
#include "utils/sortsupport.h"

#include "keys/encode.h"
#include "keys/word.h"

/* ---- collation.c: bytes that memcmp() orders like texts ---- */

typedef struct FmsSortKeys
{
	struct UCollator *collator; /* NULL: there are no sort keys */
	bool		exact;			/* equal keys mean equal texts */
	bool		deterministic;	/* of equal keys, the texts' bytes decide */
	Size		max_bytes;		/* of a key to make */
} FmsSortKeys;

/*
 * Bytes of a sort key: what the server trusts, whatever the collation, and
 * what to make at most.  30 bytes take ICU longer than the comparisons that
 * they save, and so do 16 of fewer texts than this (measured).
 */
#define FMS_SORT_KEY_TRUSTED	8
#define FMS_SORT_KEY_MAX		16
#define FMS_SORT_KEY_TEXTS		20000

/* Looks up a collation that is not C.  May ERROR (no such collation). */
extern FmsSortKeys fms_sort_keys_of(Oid collation);

/* Writes a sort key of up to `room` bytes, none of them zero; their number. */
extern Size fms_sort_key_make(const FmsSortKeys *keys, const char *text,
							  Size length, char *key, Size room);

/* ---- key_types.c ---- */

/* Writes a value that is not null (encode.h).  May detoast and ERROR. */
typedef void (*FmsEncodeDatum) (FmsKeyWriter *writer, Datum value,
								const FmsSortKeys *sort_keys);

typedef enum FmsKeyKind
{
	FMS_KEY_SIGNED,				/* by value, all bits of a signed integer */
	FMS_KEY_UNSIGNED,			/* by value, all bits of an unsigned one */
	FMS_KEY_COLLATED,			/* the collation decides the order */
	FMS_KEY_OTHER
} FmsKeyKind;

typedef struct FmsKeyType
{
	Oid			function;		/* btree comparison function */
	FmsEncodeDatum encode;
	uint8		bytes;			/* length of every encoding; 0: it varies */
	FmsKeyKind	kind;
} FmsKeyType;

/* The row of a btree comparison function, or NULL. */
extern const FmsKeyType *fms_key_type_find(Oid function);

/* ---- keys.c ---- */

typedef struct FmsColumn
{
	SortSupportData comparator; /* columns before `undecided` have none */
	AttrNumber	attno;			/* in the tuples */
	uint8		invert;			/* 0xFF if descending */
	uint8		null_byte;		/* less or more than FMS_VALUE_BYTE */
	FmsEncodeDatum encode;		/* NULL: the column has no encoding */
	int			bits;			/* of an integer, else 0 */
	uint64		flip;			/* bits that an integer's encoding inverts */
	FmsSortKeys sort_keys;		/* for encode() */
	bool		is_bytes;		/* text whose encoding is its bytes */
	int			length;			/* fixed; -1: up to a zero byte; 0: neither */
} FmsColumn;

struct FmsKeys
{
	TupleDesc	desc;			/* of the tuples */
	TupleDesc	first_key_desc; /* of a first key's tuple: the key columns */
	int			ncolumns;
	int			nencoded;		/* columns in the key */
	int			undecided;		/* first column that equal keys leave open */
	bool		prefix_decides; /* no key is longer than a prefix */
	bool		are_integers;	/* ... and all columns are integers */
	AttrNumber	offset_attno;	/* whose offset records have, or 0 */
	FmsWordType *words;			/* NULL: rows are not words */
	struct FmsGroupFilter *filter;	/* or NULL */
	MemoryContext context;		/* current at creation */
	FmsRecordBuffer first_key;		/* the first key made last */
	bool		cheap;			/* no column has sort keys of ICU */
	TupleTableSlot *slot;		/* of fms_keys_encode_tuple(), or NULL */
	FmsColumn	columns[FLEXIBLE_ARRAY_MEMBER];
};

/* ---- key_compare.c ---- */

/* Column i of a record or first key. */
extern Datum fms_keys_column(const struct FmsKeys *keys,
							 const FmsRecord *record, int i, bool *isnull);

#endif							/* FMS_KEY_COLUMNS_H */
