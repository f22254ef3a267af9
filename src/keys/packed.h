/*-------------------------------------------------------------------------
 *
 * packed.h
 *	  Entries packed into one word each and sorted by radix.
 *
 *-------------------------------------------------------------------------
 */
#ifndef FMS_PACKED_H
#define FMS_PACKED_H

#include "postgres.h"

#include "keys/entry.h"

/* How a set of entries is packed; valid for that set only. */
typedef struct FmsPacking
{
	uint128		low;			/* smallest fms_entry_key() */
	int			shift;			/* bits at the end of the keys that are the
								 * same in all keys */
	int			key_bits;		/* of (key - low) >> shift; 0: equal keys */
	int			offset_bits;	/* of the record's offset / MAXIMUM_ALIGNOF */
} FmsPacking;

/* Computes the packing of at least one entry. */
extern FmsPacking fms_packing_of(const FmsEntry *entries, Size count);

static inline bool
fms_packing_fits(const FmsPacking *packing)
{
	return packing->key_bits + packing->offset_bits <= 64;
}

/*
 * Sorts two or more entries in place by fms_entry_key(), then by arrival.  The
 * packing must fit.  in_arrival: the entries are in order of arrival.  Runs no
 * comparator; after an interrupt the entries are undefined.
 */
extern void fms_packed_sort(const FmsPacking *packing, FmsEntry *entries,
							Size count, bool in_arrival);

#endif							/* FMS_PACKED_H */
