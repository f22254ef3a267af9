/*-------------------------------------------------------------------------
 *
 * entries.c
 *	  Sorting what stands for the tuples in memory: prefix and place.
 *
 * An entry is the first ten bytes of a tuple's normalized key and the place of
 * its record, so most comparisons never leave the entries.  The place is the
 * distance from the first record; it grows with arrival, so comparing it last
 * makes the sort stable whatever algorithm sorts.
 *
 * Entries that are in order already, or nearly, are recognised at once, and
 * so are those in descending order (presorted.c).
 *
 * Others are packed into a word each and sorted as numbers, if their keys
 * differ in few enough bits (packed.c).  If not, they are dealt into buckets
 * by the leading bits in which they differ; buckets are in order already,
 * and in a bucket the keys differ in fewer bits.
 *
 *	  prefixes  low ......................................... high
 *	  buckets   |   0   |   1   |   2   | ..             | n - 1 |
 *	            sorted  being    not yet
 *	            taken   sorted   looked at
 *
 * A bucket is handed to the taker before the next one is sorted: when a run
 * is written, the device writes the first buckets while the processor sorts
 * the later ones.
 *
 * Entries whose ten bytes are the same, where these do not decide, look at
 * the next ten bytes of their keys, as far as keys are kept:
 *
 *	  key       C l e r k # 0 0 0 | 0 0 0 9 5 1 .. | ...
 *	  depth     0                  10               20
 *
 * and take these for their prefixes while they are sorted by them.  So keys
 * that begin alike are sorted like others, and only what all of the bytes
 * leave open is compared in the records.
 *
 * Memory: the stack (two arrays of bucket ends a level, few levels).  A
 * comparator may ERROR, and so may a check for interrupts, which each loop has
 * (interrupts.h); then the entries are in some order, some may be
 * missing, and prefixes may be those of a later part of the key: they can
 * only be forgotten.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "miscadmin.h"

#include "keys/entries.h"
#include "base/interrupts.h"
#include "keys/packed.h"
#include "keys/presorted.h"

/* As many buckets as leave some entries for each, up to what a cache holds. */
#define MAX_BUCKETS			2048
#define ENTRIES_A_BUCKET	8
/* Fewer entries than this are sorted by comparing. */
#define PACK_MIN_ENTRIES	16
/* Fewer than this, with the same prefix, compare their records. */
#define DEEPEN_MIN_ENTRIES	64
/* The taker gets so many at least, to be able to look ahead. */
#define TAKE_MIN_ENTRIES	256
/* Records looked at are fetched so far ahead. */
#define AHEAD				8

/*
 * With a check: ST_CHECK_FOR_INTERRUPTS has none where two entries change
 * places, which in descending order all do.
 */
static inline int
compare_entries(const FmsEntry *a, const FmsEntry *b,
				const FmsEntriesSort *sort)
{
	CHECK_FOR_INTERRUPTS();
	return fms_entries_compare(a, b, sort);
}

#define ST_SORT sort_by_comparing
#define ST_ELEMENT_TYPE FmsEntry
#define ST_COMPARE(a, b, sort) compare_entries(a, b, sort)
#define ST_COMPARE_ARG_TYPE const FmsEntriesSort
#define ST_SCOPE static
#define ST_DEFINE
#include "lib/sort_template.h"

static inline int
compare_arrival(const FmsEntry *a, const FmsEntry *b)
{
	uint64		a_place = fms_entry_place(a);
	uint64		b_place = fms_entry_place(b);

	CHECK_FOR_INTERRUPTS();
	return a_place < b_place ? -1 : a_place > b_place;
}

#define ST_SORT sort_by_arrival
#define ST_ELEMENT_TYPE FmsEntry
#define ST_COMPARE(a, b) compare_arrival(a, b)
#define ST_SCOPE static
#define ST_DEFINE
#include "lib/sort_template.h"

/* How entries are dealt: bucket = (prefix - low) >> shift. */
typedef struct FmsDeal
{
	uint64		low;			/* smallest prefix */
	int			shift;
	int			nbuckets;
	Size		ends[MAX_BUCKETS];	/* first entry after each bucket */
} FmsDeal;

static inline int
bucket_of(const FmsDeal *deal, const FmsEntry *entry)
{
	return (int) ((entry->prefix - deal->low) >> deal->shift);
}

/* Chooses buckets for entries whose prefixes are not all the same. */
static void
choose_buckets(FmsDeal *deal, const FmsEntry *entries, Size count)
{
	uint64		high = entries[0].prefix;
	Size		i;

	deal->low = high;
	for (i = 1; i < count;)
	{
		Size		stop = fms_interrupts_stretch(i, count, sizeof(FmsEntry));

		for (; i < stop; i++)
		{
			deal->low = Min(deal->low, entries[i].prefix);
			high = Max(high, entries[i].prefix);
		}
	}
	Assert(deal->low < high);
	deal->nbuckets = MAX_BUCKETS;
	while (deal->nbuckets > 2 &&
		   (Size) deal->nbuckets * ENTRIES_A_BUCKET > count)
		deal->nbuckets /= 2;
	deal->shift = 0;
	while ((high - deal->low) >> deal->shift >= (uint64) deal->nbuckets)
		deal->shift++;
}

/*
 * Moves each entry into its bucket, in place.  Each swap brings one entry
 * home (the "American flag" scheme), so presorted entries stay where they
 * are.
 */
static void
deal_entries(FmsDeal *deal, FmsEntry *entries, Size count)
{
	Size		next[MAX_BUCKETS];
	Size		sum = 0;
	Size		touched_bytes = 0;
	Size		i;
	int			b;

	memset(next, 0, deal->nbuckets * sizeof(Size));
	for (i = 0; i < count;)
	{
		Size		stop = fms_interrupts_stretch(i, count, sizeof(FmsEntry));

		for (; i < stop; i++)
			next[bucket_of(deal, &entries[i])]++;
	}
	for (b = 0; b < deal->nbuckets; b++)
	{
		Size		size = next[b];

		next[b] = sum;
		sum += size;
		deal->ends[b] = sum;
	}

	for (b = 0; b < deal->nbuckets; b++)
	{
		while (next[b] < deal->ends[b])
		{
			FmsEntry	entry = entries[next[b]];
			int			home = bucket_of(deal, &entry);

			while (home != b)
			{
				FmsEntry   *place = &entries[next[home]++];
				FmsEntry	displaced = *place;

				*place = entry;
				entry = displaced;
				home = bucket_of(deal, &entry);
				fms_interrupts_after(&touched_bytes, sizeof(FmsEntry));
			}
			entries[next[b]++] = entry;
			fms_interrupts_after(&touched_bytes, sizeof(FmsEntry));
		}
	}
}

/* The entries from the last ones taken up to here are in their final order. */
static void
take_until(FmsEntriesSort *sort, const FmsEntry **taken, const FmsEntry *end)
{
	if (sort->take && end > *taken)
		sort->take(sort->arg, *taken, end - *taken);
	*taken = end;
}

/*
 * Entries to be sorted by part of their keys: ten bytes from depth on.  What
 * comes before is the same in all of them.
 */
typedef struct FmsPiece
{
	FmsEntry   *entries;
	Size		count;
	int			depth;
	bool		in_arrival;		/* in order of arrival */
} FmsPiece;

static void sort_piece(FmsEntriesSort *sort, const FmsPiece *piece,
					   const FmsEntry **taken);

/* The entries get the part of their keys that begins at depth. */
static void
look_at(const FmsEntriesSort *sort, FmsEntry *entries, Size count, int depth)
{
	const char *records = sort->records;
	Size		i;

	for (i = 0; i < count;)
	{
		Size		stop = fms_interrupts_stretch(i, count,
												  FMS_INTERRUPT_RECORD_BYTES);

		for (; i < stop; i++)
		{
			const FmsRecord *record = fms_entry_record(records, &entries[i]);

			if (i + AHEAD < count)
				__builtin_prefetch(fms_entry_record(records,
													&entries[i + AHEAD]));
			entries[i] = fms_entry_of_key(fms_record_key_part(record, depth),
										  fms_entry_place(&entries[i]));
		}
	}
}

/* They get the part back that they are the same in. */
static void
look_back(FmsEntry *entries, Size count, uint128 key)
{
	Size		i;

	for (i = 0; i < count;)
	{
		Size		stop = fms_interrupts_stretch(i, count, sizeof(FmsEntry));

		for (; i < stop; i++)
			entries[i] = fms_entry_of_key(key, fms_entry_place(&entries[i]));
	}
}

/* Sorts entries whose prefixes are the same. */
static void
sort_alike(FmsEntriesSort *sort, const FmsPiece *piece)
{
	FmsEntry   *entries = piece->entries;
	Size		count = piece->count;
	const FmsRecord *record = fms_entry_record(sort->records, entries);
	int			deeper = piece->depth + FMS_PREFIX_BYTES;
	bool		all_seen = deeper >= record->key_bytes;

	/* keys are prefix-free, so what holds for one record holds for all */
	if (sort->prefix_decides ||
		(all_seen && (record->flags & FMS_RECORD_EXACT)))
	{
		if (!piece->in_arrival)
			sort_by_arrival(entries, count);
	}
	else if (all_seen || count < DEEPEN_MIN_ENTRIES)
		sort_by_comparing(entries, count, sort);
	else
	{
		uint128		key = fms_entry_key(entries);
		FmsPiece	below = *piece;

		check_stack_depth();
		below.depth = deeper;
		look_at(sort, entries, count, deeper);
		sort_piece(sort, &below, NULL);
		look_back(entries, count, key);
	}
}

/* The entries are in order of their prefixes; sorts those that are alike. */
static void
sort_ties(FmsEntriesSort *sort, const FmsPiece *piece)
{
	Size		start = 0;
	Size		touched_bytes = 0;
	Size		i;

	for (i = 1; i <= piece->count; i++)
	{
		FmsPiece	alike = *piece;

		fms_interrupts_after(&touched_bytes, sizeof(FmsEntry));
		if (i < piece->count && fms_entry_key(&piece->entries[i]) ==
			fms_entry_key(&piece->entries[start]))
			continue;
		alike.entries += start;
		alike.count = i - start;
		alike.in_arrival = true;
		if (alike.count > 1)
			sort_alike(sort, &alike);
		start = i;
	}
}

/* Sorts bucket by bucket. */
static void
sort_dealt(FmsEntriesSort *sort, const FmsPiece *piece,
		   const FmsEntry **taken)
{
	FmsDeal		deal;
	FmsPiece	bucket = *piece;
	Size		start = 0;
	int			b;

	/* each level uses up some of the prefix's 64 bits, so this ends */
	check_stack_depth();
	choose_buckets(&deal, piece->entries, piece->count);
	deal_entries(&deal, piece->entries, piece->count);
	bucket.in_arrival = false;
	for (b = 0; b < deal.nbuckets; b++)
	{
		bucket.entries = piece->entries + start;
		bucket.count = deal.ends[b] - start;
		if (bucket.count > 0)
			sort_piece(sort, &bucket, taken);
		start = deal.ends[b];
	}
}

/* Sorts entries; those before them are sorted already. */
static void
sort_piece(FmsEntriesSort *sort, const FmsPiece *piece,
		   const FmsEntry **taken)
{
	const FmsEntry *end = piece->entries + piece->count;

	CHECK_FOR_INTERRUPTS();
	if (piece->count < PACK_MIN_ENTRIES)
		sort_by_comparing(piece->entries, piece->count, sort);
	else
	{
		FmsPacking	packing = fms_packing_of(piece->entries, piece->count);

		if (packing.key_bits == 0)
			sort_alike(sort, piece);
		else if (fms_packing_fits(&packing))
		{
			fms_packed_sort(&packing, piece->entries, piece->count,
							piece->in_arrival);
			if (!sort->prefix_decides)
				sort_ties(sort, piece);
		}
		else
			sort_dealt(sort, piece, taken);
	}
	if (taken && end - *taken >= TAKE_MIN_ENTRIES)
		take_until(sort, taken, end);
}

void
fms_entries_sort(FmsEntriesSort *sort, FmsEntry *entries, Size count)
{
	const FmsEntry *taken = entries;

	if (!fms_presorted_sort(sort, entries, count))
	{
		FmsPiece	all = {entries, count, 0, true};

		sort_piece(sort, &all, &taken);
	}
	take_until(sort, &taken, entries + count);
}

void
fms_entries_sort_by_arrival(FmsEntry *entries, Size count)
{
	sort_by_arrival(entries, count);
}
