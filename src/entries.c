/*-------------------------------------------------------------------------
 *
 * entries.c
 *	  Sorting what stands for the tuples in memory: prefix and place.
 *
 * An entry is the first ten bytes of a tuple's normalized key and the way to
 * its record, so most comparisons never leave the entries.  The way is the
 * distance back from the memory's end; that grows with arrival, so comparing
 * it last makes the sort stable whatever algorithm sorts.
 *
 * Entries are dealt into buckets by the leading significant bits of their
 * first words (of all values between the smallest and the largest one, so it
 * does not matter which bytes of the key vary).  Buckets are in order
 * already; a large one is dealt again, a small one is sorted by comparing.
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
 * Entries that are in order already are recognised at once, and so are those
 * in descending order: both take one look at each entry, no more.
 *
 * Memory: the stack (two arrays of bucket ends a level, few levels).  A
 * comparator may ERROR; then the entries are in some order, none lost.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "miscadmin.h"

#include "entries.h"

/* As many buckets as leave some entries for each, up to what a cache holds. */
#define MAX_BUCKETS			2048
#define ENTRIES_A_BUCKET	8
/* Fewer entries than this are sorted by comparing. */
#define DEAL_MIN_ENTRIES	256

#define ST_SORT sort_by_comparing
#define ST_ELEMENT_TYPE FmsEntry
#define ST_COMPARE(a, b, sort) fms_entries_compare(a, b, sort)
#define ST_COMPARE_ARG_TYPE const FmsEntriesSort
#define ST_CHECK_FOR_INTERRUPTS
#define ST_SCOPE static
#define ST_DEFINE
#include "lib/sort_template.h"

static inline int
compare_arrival(const FmsEntry *a, const FmsEntry *b)
{
	uint64		a_back = fms_entry_back(a);
	uint64		b_back = fms_entry_back(b);

	return a_back < b_back ? -1 : a_back > b_back;
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

/* Chooses buckets for the entries.  False: all prefixes are the same. */
static bool
choose_buckets(FmsDeal *deal, const FmsEntry *entries, Size count)
{
	uint64		high = entries[0].prefix;
	Size		i;

	deal->low = high;
	for (i = 1; i < count; i++)
	{
		deal->low = Min(deal->low, entries[i].prefix);
		high = Max(high, entries[i].prefix);
	}
	deal->nbuckets = MAX_BUCKETS;
	while ((Size) deal->nbuckets * ENTRIES_A_BUCKET > count)
		deal->nbuckets /= 2;
	deal->shift = 0;
	while ((high - deal->low) >> deal->shift >= (uint64) deal->nbuckets)
		deal->shift++;
	return deal->low < high;
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
	Size		i;
	int			b;

	memset(next, 0, deal->nbuckets * sizeof(Size));
	for (i = 0; i < count; i++)
		next[bucket_of(deal, &entries[i])]++;
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
			}
			entries[next[b]++] = entry;
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

/* Sorts entries; those before them are sorted already. */
static void
sort_in_pieces(FmsEntriesSort *sort, FmsEntry *entries, Size count,
			   const FmsEntry **taken)
{
	FmsDeal		deal;
	Size		start = 0;
	int			b;

	CHECK_FOR_INTERRUPTS();
	if (count < DEAL_MIN_ENTRIES || !choose_buckets(&deal, entries, count))
	{
		sort_by_comparing(entries, count, sort);
		/* not less, so that the taker can look ahead */
		if (entries + count - *taken >= DEAL_MIN_ENTRIES)
			take_until(sort, taken, entries + count);
		return;
	}

	/* each level uses up some of the prefix's 64 bits, so this ends */
	check_stack_depth();
	deal_entries(&deal, entries, count);
	for (b = 0; b < deal.nbuckets; b++)
	{
		if (deal.ends[b] > start)
			sort_in_pieces(sort, entries + start, deal.ends[b] - start,
						   taken);
		start = deal.ends[b];
	}
}

/* How many entries from the first on are in ascending order? */
static Size
ascending(const FmsEntriesSort *sort, const FmsEntry *entries, Size count)
{
	Size		i;

	for (i = 1; i < count; i++)
	{
		if (fms_entries_compare(&entries[i - 1], &entries[i], sort) > 0)
			break;
	}
	return i;
}

/*
 * Are all of them in strictly descending order of their prefixes?  Where
 * keys may be equal, turning them round would turn ties round.
 */
static bool
descending(const FmsEntry *entries, Size count)
{
	Size		i;

	for (i = 1; i < count; i++)
	{
		if (entries[i - 1].prefix <= entries[i].prefix)
			return false;
	}
	return true;
}

static void
turn_round(FmsEntry *entries, Size count)
{
	FmsEntry   *low = entries;
	FmsEntry   *high = entries + count - 1;

	while (low < high)
	{
		FmsEntry	entry = *low;

		*low++ = *high;
		*high-- = entry;
	}
}

void
fms_entries_sort(FmsEntriesSort *sort, FmsEntry *entries, Size count)
{
	const FmsEntry *taken = entries;

	if (count > 1 && ascending(sort, entries, count) < count)
	{
		if (descending(entries, count))
			turn_round(entries, count);
		else
			sort_in_pieces(sort, entries, count, &taken);
	}
	take_until(sort, &taken, entries + count);
}

void
fms_entries_sort_by_arrival(FmsEntry *entries, Size count)
{
	sort_by_arrival(entries, count);
}
