/*-------------------------------------------------------------------------
 *
 * entry.h
 *	  Entries, which stand for records in memory, and sorting them.
 *
 *-------------------------------------------------------------------------
 */
#ifndef FMS_ENTRY_H
#define FMS_ENTRY_H

#include "keys/keys.h"

typedef struct FmsEntry
{
	uint64		prefix;			/* fms_record_prefix() */
	uint64		tail;			/* fms_record_prefix_rest(), 48 bits: offset */
} FmsEntry;

#define FMS_ENTRY_OFFSET_BITS 48

static inline uint64
fms_entry_offset(const FmsEntry *entry)
{
	return entry->tail & ((UINT64CONST(1) << FMS_ENTRY_OFFSET_BITS) - 1);
}

static inline uint128
fms_entry_key(const FmsEntry *entry)
{
	return (uint128) entry->prefix << 16 |
		entry->tail >> FMS_ENTRY_OFFSET_BITS;
}

static inline FmsEntry
fms_entry_of_key(uint128 key, uint64 offset)
{
	FmsEntry	entry;

	Assert(offset >> FMS_ENTRY_OFFSET_BITS == 0);
	entry.prefix = (uint64) (key >> 16);
	entry.tail = (uint64) key << FMS_ENTRY_OFFSET_BITS | offset;
	return entry;
}

static inline FmsEntry
fms_entry_make(const FmsRecord *record, uint64 offset)
{
	return fms_entry_of_key((uint128) fms_record_prefix(record) << 16 |
							fms_record_prefix_rest(record), offset);
}

static inline const FmsRecord *
fms_entry_record(const char *records, const FmsEntry *entry)
{
	return (const FmsRecord *) (records + fms_entry_offset(entry));
}

typedef struct FmsEntriesSort
{
	FmsKeys    *keys;
	bool		prefix_decides; /* fms_keys_prefix_decides() */
	const char *records;		/* entries' offsets count from here */

	/* NULL, or receives entries in order while others are being sorted */
	void		(*take) (const struct FmsEntriesSort *sort,
						 const FmsEntry *entries, Size count);
	void	   *arg;			/* for take() */
} FmsEntriesSort;

/* Where the prefixes of entries come from; zeroed: the keys' beginning. */
typedef struct FmsKeyPlace
{
	Size		at_bytes;		/* offset in the key or in the text */
	int			rounds;			/* places in the text so far; 0: in the key */
	bool		texts_equal;	/* other columns decide */
} FmsKeyPlace;

typedef enum FmsTies
{
	FMS_TIES_EQUAL,				/* the records are equal */
	FMS_TIES_COMPARE,			/* the keys are equal: compare columns */
	FMS_TIES_GO_ON				/* there are prefixes at the next place */
} FmsTies;

/* Moves to the next place, where the prefixes may differ (key_tail.c). */
extern FmsTies fms_entries_next_place(const FmsEntriesSort *sort,
									  const FmsEntry *entries, Size count,
									  FmsKeyPlace *place);

/* The next FMS_PREFIX_BYTES of the record's text, at a place in the text. */
extern uint128 fms_entries_text_prefix(const FmsEntriesSort *sort,
									   const FmsRecord *record,
									   const FmsKeyPlace *place);

/* Compares by key, then by arrival, the offset; sort NULL: by that alone. */
static inline int
fms_entries_compare(const FmsEntry *a, const FmsEntry *b,
					const FmsEntriesSort *sort)
{
	if (sort == NULL)
		return fms_entry_offset(a) < fms_entry_offset(b) ? -1 :
			fms_entry_offset(a) > fms_entry_offset(b);
	if (a->prefix != b->prefix)
		return a->prefix < b->prefix ? -1 : 1;
	if (!sort->prefix_decides &&
		(a->tail ^ b->tail) >> FMS_ENTRY_OFFSET_BITS == 0)
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

/*
 * Sorts entries that are in order of arrival, in place and stably.  Every
 * entry has been passed to sort->take() when it returns.  After an ERROR the
 * entries are undefined, here and below.
 */
extern void fms_entries_sort(FmsEntriesSort *sort, FmsEntry *entries,
							 Size count);

/* The same; false, with nothing changed, if they are not nearly in order. */
extern bool fms_entries_sort_presorted(const FmsEntriesSort *sort,
									   FmsEntry *entries, Size count);

/*
 * Sorts two entries or more by fms_entry_key(), then by arrival; false, with
 * nothing changed, if they do not fit into words.  in_arrival: are they in
 * order of arrival?
 */
extern bool fms_entries_sort_packed(FmsEntry *entries, Size count,
									bool in_arrival);

/* Sorts in the order of fms_entries_compare(). */
extern void fms_entries_sort_by_comparing(FmsEntry *entries, Size count,
										  const FmsEntriesSort *sort);

#endif							/* FMS_ENTRY_H */
