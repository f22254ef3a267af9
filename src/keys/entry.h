/*-------------------------------------------------------------------------
 *
 * entry.h
 *	  What stands for a tuple in memory: the prefix of its key, and its place.
 *
 *-------------------------------------------------------------------------
 */
#ifndef FMS_ENTRY_H
#define FMS_ENTRY_H

#include "postgres.h"

#include "keys/keys.h"

typedef struct FmsEntry
{
	uint64		prefix;			/* fms_record_prefix() */
	uint64		tail;			/* fms_record_prefix_rest() in the upper 16
								 * bits; in the others the place of the
								 * record, in bytes from the first one: it
								 * grows with arrival */
} FmsEntry;

#define FMS_ENTRY_PLACE_BITS 48

static inline FmsEntry
fms_entry_make(const FmsRecord *record, uint64 place)
{
	FmsEntry	entry;

	Assert(place >> FMS_ENTRY_PLACE_BITS == 0);
	entry.prefix = fms_record_prefix(record);
	entry.tail = ((uint64) fms_record_prefix_rest(record) <<
				  FMS_ENTRY_PLACE_BITS) | place;
	return entry;
}

static inline uint64
fms_entry_place(const FmsEntry *entry)
{
	return entry->tail & ((UINT64CONST(1) << FMS_ENTRY_PLACE_BITS) - 1);
}

/* What an entry holds of its key, as a number that compares like it. */
static inline uint128
fms_entry_key(const FmsEntry *entry)
{
	return (uint128) entry->prefix << 16 |
		entry->tail >> FMS_ENTRY_PLACE_BITS;
}

static inline FmsEntry
fms_entry_of_key(uint128 key, uint64 place)
{
	FmsEntry	entry;

	entry.prefix = (uint64) (key >> 16);
	entry.tail = (uint64) key << FMS_ENTRY_PLACE_BITS | place;
	return entry;
}

/*
 * Takes entries as soon as they are in their final order, while later ones
 * are still being sorted: each call gets the ones after those of the last.
 */
typedef void (*FmsEntriesTake) (void *arg, const FmsEntry *entries,
								Size count);

/* What is needed to compare and to hand out. */
typedef struct FmsEntriesSort
{
	FmsKeys    *keys;
	bool		prefix_decides; /* fms_keys_prefix_decides() */
	const char *records;	/* where places count from */
	FmsEntriesTake take;		/* may be NULL */
	void	   *arg;
} FmsEntriesSort;

static inline const FmsRecord *
fms_entry_record(const char *records, const FmsEntry *entry)
{
	return (const FmsRecord *) (records + fms_entry_place(entry));
}

/*
 * <0, 0, >0 by keys, then by arrival: 0 only for an entry and itself.  May
 * run a type's comparator.
 */
static inline int
fms_entries_compare(const FmsEntry *a, const FmsEntry *b,
					const FmsEntriesSort *sort)
{
	if (a->prefix != b->prefix)
		return a->prefix < b->prefix ? -1 : 1;
	if (!sort->prefix_decides &&
		(a->tail ^ b->tail) >> FMS_ENTRY_PLACE_BITS == 0)
	{
		int			order;

		order = fms_keys_compare_rest(sort->keys,
									  fms_entry_record(sort->records, a),
									  fms_entry_record(sort->records, b));
		if (order != 0)
			return order;
	}
	return a->tail < b->tail ? -1 : a->tail > b->tail;
}

#endif							/* FMS_ENTRY_H */
