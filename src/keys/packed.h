/*-------------------------------------------------------------------------
 *
 * packed.h
 *	  Entries packed into a word each, and sorted as such.
 *
 *-------------------------------------------------------------------------
 */
#ifndef FMS_PACKED_H
#define FMS_PACKED_H

#include "postgres.h"

#include "keys/entry.h"

/* How some entries are packed; valid for just these. */
typedef struct FmsPacking
{
	uint128		low;			/* smallest key: fms_entry_key() */
	int			shift;			/* bits at the keys' end that are all alike */
	int			key_bits;		/* that remain of the differences; 0: all keys
								 * are the same */
	int			back_bits;		/* for the ways to the records */
} FmsPacking;

/* Looks at all entries (one at least) and says how to pack them. */
extern FmsPacking fms_packing_of(const FmsEntry *entries, Size count);

/* Does a word hold the key and the way? */
static inline bool
fms_packing_fits(const FmsPacking *packing)
{
	return packing->key_bits + packing->back_bits <= 64;
}

/*
 * Sorts the entries, in place, by what they hold of their keys, then by
 * arrival.  The packing must fit.  in_arrival: they are in order of arrival
 * now.  Runs no comparator, but may be interrupted: then the entries can only
 * be forgotten.
 */
extern void fms_packed_sort(const FmsPacking *packing, FmsEntry *entries,
							Size count, bool in_arrival);

#endif							/* FMS_PACKED_H */
