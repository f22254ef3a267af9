/*-------------------------------------------------------------------------
 *
 * collation.h
 *	  Sort keys: bytes that memcmp() orders as a collation orders texts.
 *
 *-------------------------------------------------------------------------
 */
#ifndef FMS_COLLATION_H
#define FMS_COLLATION_H

#include "postgres.h"

/* Where a collation's sort keys come from, and what they are good for. */
typedef struct FmsSortKeys
{
	struct UCollator *collator; /* NULL: there are no sort keys */
	bool		exact;			/* equal keys mean equal texts.  If not, only
								 * a beginning of FMS_SORT_KEY_TRUSTED bytes
								 * may be used, and ties are open. */
	bool		deterministic;	/* texts with equal keys are ordered by their
								 * bytes */
} FmsSortKeys;

#define FMS_SORT_KEY_TRUSTED	8

/*
 * What is asked for at most.  ICU takes its time for each byte: thirty of
 * them cost more than the comparisons that they save.
 */
#define FMS_SORT_KEY_MAX		16

/* Looks a collation up, which must not be C.  May ERROR (there is none). */
extern FmsSortKeys fms_sort_keys_of(Oid collation);

/*
 * Writes the first `room` bytes of a text's sort key, and returns how many
 * these are: less than `room` if that was all of it.  No byte of a sort key
 * is zero.  May ERROR (no memory).
 */
extern Size fms_sort_key_make(const FmsSortKeys *keys, const char *text,
							  Size length, char *key, Size room);

#endif							/* FMS_COLLATION_H */
