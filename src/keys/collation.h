/*-------------------------------------------------------------------------
 *
 * collation.h
 *	  ICU sort keys: bytes that memcmp() orders as a collation orders texts.
 *
 *-------------------------------------------------------------------------
 */
#ifndef FMS_COLLATION_H
#define FMS_COLLATION_H

#include "postgres.h"

typedef struct FmsSortKeys
{
	struct UCollator *collator; /* NULL: there are no sort keys */
	bool		exact;			/* equal keys mean equal texts; otherwise only
								 * FMS_SORT_KEY_TRUSTED bytes may be used */
	bool		deterministic;	/* texts with equal keys are ordered by their
								 * bytes */
} FmsSortKeys;

/* Bytes of a sort key that the server trusts, whatever the collation. */
#define FMS_SORT_KEY_TRUSTED	8

/*
 * Bytes of a sort key to make, at most.  Measured: 30 bytes take ICU longer
 * than the comparisons that they save.
 */
#define FMS_SORT_KEY_MAX		16

/* Looks up a collation that is not C.  May ERROR (no such collation). */
extern FmsSortKeys fms_sort_keys_of(Oid collation);

/*
 * Writes the first `room` bytes of a text's sort key and returns their number;
 * less than `room` means the whole key.  No byte of a sort key is zero.  May
 * ERROR (out of memory).
 */
extern Size fms_sort_key_make(const FmsSortKeys *keys, const char *text,
							  Size length, char *key, Size room);

#endif							/* FMS_COLLATION_H */
