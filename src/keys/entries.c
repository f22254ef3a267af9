/*-------------------------------------------------------------------------
 *
 * entries.c
 *	  Sorting the entries that stand for the tuples in memory.
 *
 * Entries that arrive nearly in order are mended (presorted.c).  If the keys
 * differ in few bits, the entries are packed into one word each and sorted by
 * radix (packed.c).  Otherwise they are dealt into buckets by their leading
 * bits, and each bucket is sorted:
 *
 *	  buckets   |   0   |   1   |   2   | ..             | n - 1 |
 *	            sorted  being    not
 *	            taken   sorted   sorted
 *
 * A sorted bucket is taken before the next bucket is sorted, so the device
 * writes while the processor sorts.  Entries with equal prefixes that do not
 * decide are sorted by the next ten bytes of their keys:
 *
 *	  key       C l e r k # 0 0 0 | 0 0 0 9 5 1 .. | ...
 *	  at byte   0                  10               20
 *
 * If keys are cut-off texts, more of the texts follows (key_tail.c).  Other
 * ties are sorted by merging, which compares columns.  Memory: the stack.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "miscadmin.h"

#include "base/interrupts.h"
#include "keys/entry.h"

#define MAX_BUCKETS			2048	/* limited by the L1 cache */
#define ENTRIES_PER_BUCKET	8		/* at least */
#define PACK_MIN_ENTRIES	32		/* fewer are sorted by comparing */
#define TAKE_MIN_ENTRIES	256		/* take() gets at least: it prefetches */
#define PREFETCH_AHEAD		8		/* records, in entries */

/* ST_CHECK_FOR_INTERRUPTS has no check where two entries are swapped. */
static inline int
compare(const FmsEntry *a, const FmsEntry *b, const FmsEntriesSort *sort)
{
	CHECK_FOR_INTERRUPTS();
	return fms_entries_compare(a, b, sort);
}

#define ST_SORT fms_entries_sort_by_comparing
#define ST_ELEMENT_TYPE FmsEntry
#define ST_COMPARE(a, b, sort) compare(a, b, sort)
#define ST_COMPARE_ARG_TYPE const FmsEntriesSort
#define ST_SCOPE extern
#define ST_DEFINE
#include "lib/sort_template.h"

/* How entries are dealt: bucket = (prefix - low) >> shift. */
typedef struct FmsDeal
{
	uint64		low;			/* smallest prefix */
	int			shift;
	int			nbuckets;
	Size		next[MAX_BUCKETS];	/* first entry not dealt, of each bucket */
	Size		ends[MAX_BUCKETS];	/* first entry after each bucket */
} FmsDeal;

/* Entries whose records are the same before a place. */
typedef struct FmsPart
{
	FmsEntry   *entries;
	Size		count;
	FmsKeyPlace place;			/* their prefixes start there */
	bool		in_arrival;		/* they are in order of arrival */
} FmsPart;

static void sort_part(FmsEntriesSort *sort, const FmsPart *part,
					  const FmsEntry **taken);

static inline int
bucket_of(const FmsDeal *deal, const FmsEntry *entry)
{
	return (int) ((entry->prefix - deal->low) >> deal->shift);
}

static void
choose_buckets(FmsDeal *deal, const FmsEntry *entries, Size count)
{
	uint64		high = entries[0].prefix;

	deal->low = high;
	fms_for_interruptible(i, count, sizeof(FmsEntry))
	{
		deal->low = Min(deal->low, entries[i].prefix);
		high = Max(high, entries[i].prefix);
	}
	Assert(deal->low < high);
	deal->nbuckets = MAX_BUCKETS;
	while (deal->nbuckets > 2 &&
		   (Size) deal->nbuckets * ENTRIES_PER_BUCKET > count)
		deal->nbuckets /= 2;
	deal->shift = 0;
	while ((high - deal->low) >> deal->shift >= (uint64) deal->nbuckets)
		deal->shift++;
}

/* Moves each entry into its bucket, in place ("American flag sort"). */
static void
deal_entries(FmsDeal *deal, FmsEntry *entries, Size count)
{
	Size	   *next = deal->next;
	Size		sum = 0;
	Size		touched_bytes = 0;

	memset(next, 0, deal->nbuckets * sizeof(Size));
	fms_for_interruptible(i, count, sizeof(FmsEntry))
		next[bucket_of(deal, &entries[i])]++;
	for (int b = 0; b < deal->nbuckets; b++)
	{
		Size		size = next[b];

		next[b] = sum;
		sum += size;
		deal->ends[b] = sum;
	}

	for (int b = 0; b < deal->nbuckets; b++)
	{
		while (next[b] < deal->ends[b])
		{
			FmsEntry	entry = entries[next[b]];
			int			home = bucket_of(deal, &entry);

			while (home != b)
			{
				FmsEntry   *target = &entries[next[home]++];
				FmsEntry	displaced = *target;

				*target = entry;
				entry = displaced;
				home = bucket_of(deal, &entry);
				fms_interrupts_after(&touched_bytes, sizeof(FmsEntry));
			}
			entries[next[b]++] = entry;
			fms_interrupts_after(&touched_bytes, sizeof(FmsEntry));
		}
	}
}

/* Passes the entries from *taken to `end` on to take(). */
static void
take_until(FmsEntriesSort *sort, const FmsEntry **taken, const FmsEntry *end)
{
	if (sort->take && end > *taken)
		sort->take(sort, *taken, end - *taken);
	*taken = end;
}

static void
load_prefixes(const FmsEntriesSort *sort, const FmsPart *part)
{
	const char *records = sort->records;
	FmsEntry   *entries = part->entries;
	Size		count = part->count;

	fms_for_interruptible(i, count, FMS_INTERRUPT_RECORD_BYTES)
	{
		const FmsRecord *record = fms_entry_record(records, &entries[i]);
		uint128		prefix;

		if (i + PREFETCH_AHEAD < count)
			__builtin_prefetch(fms_entry_record(records,
												&entries[i + PREFETCH_AHEAD]));
		prefix = part->place.rounds == 0 ?
			fms_record_key_part(record, part->place.at_bytes) :
			fms_entries_text_prefix(sort, record, &part->place);
		entries[i] = fms_entry_of_key(prefix, fms_entry_offset(&entries[i]));
	}
}

/*
 * Sorts offsets of records with equal keys, stably, by the columns that the
 * keys leave undecided but the first `equal` ones.  `room`: half as many.
 */
static void
sort_by_columns(const FmsEntriesSort *sort, uint64 *offsets, Size count,
				uint64 *room, int equal)
{
	Size		half = count / 2;
	const uint64 *left = room;
	const uint64 *left_end = room + half;
	const uint64 *right = offsets + half;
	const char *records = sort->records;
	const uint64 *right_end = offsets + count;

	if (count < 2)
		return;
	sort_by_columns(sort, offsets, half, room, equal);
	sort_by_columns(sort, offsets + half, count - half, room, equal);
	fms_interrupts_memmove(room, offsets, half * sizeof(uint64));
	while (left < left_end)
	{
		CHECK_FOR_INTERRUPTS();
		if (right < right_end &&
			fms_keys_compare_columns(sort->keys,
									 (const FmsRecord *) (records + *left),
									 (const FmsRecord *) (records + *right),
									 equal) > 0)
			*offsets++ = *right++;
		else
			*offsets++ = *left++;
	}
}

/* The same for entries: half of their memory are offsets, half is the room. */
static void
sort_equal_keys(const FmsEntriesSort *sort, const FmsPart *part)
{
	FmsEntry   *entries = part->entries;
	Size		count = part->count;
	uint128		key = fms_entry_key(entries);
	uint64	   *offsets = (uint64 *) entries;

	fms_for_interruptible(i, count, sizeof(FmsEntry))
		offsets[i] = fms_entry_offset(&entries[i]);
	sort_by_columns(sort, offsets, count, offsets + count,
					part->place.texts_equal ? 1 : 0);
	fms_for_interruptible(i, count, sizeof(FmsEntry))
		entries[count - 1 - i] = fms_entry_of_key(key, offsets[count - 1 - i]);
}

/* Sorts entries with equal prefixes, which are in order of arrival. */
static void
sort_ties(FmsEntriesSort *sort, const FmsPart *ties)
{
	FmsPart		rest = *ties;
	uint128		key = fms_entry_key(rest.entries);
	FmsTies		next = fms_entries_next_place(sort, rest.entries, rest.count,
											  &rest.place);

	/* it has read whole texts */
	CHECK_FOR_INTERRUPTS();
	if (next == FMS_TIES_EQUAL)
		return;
	if (next == FMS_TIES_COMPARE)
	{
		sort_equal_keys(sort, &rest);
		return;
	}
	if (rest.count < PACK_MIN_ENTRIES)
	{
		fms_entries_sort_by_comparing(rest.entries, rest.count, sort);
		return;
	}
	check_stack_depth();
	load_prefixes(sort, &rest);
	rest.in_arrival = true;
	sort_part(sort, &rest, NULL);
	fms_for_interruptible(i, rest.count, sizeof(FmsEntry))
		rest.entries[i] =
			fms_entry_of_key(key, fms_entry_offset(&rest.entries[i]));
}

/* The part is in order of its prefixes, then of arrival; sorts all ties. */
static void
sort_all_ties(FmsEntriesSort *sort, const FmsPart *part)
{
	FmsPart		ties = *part;
	FmsEntry   *entries = part->entries;
	Size		start = 0;
	Size		touched_bytes = 0;

	for (Size i = 1; i <= part->count; i++)
	{
		fms_interrupts_after(&touched_bytes, sizeof(FmsEntry));
		if (i < part->count &&
			fms_entry_key(&entries[i]) == fms_entry_key(&entries[start]))
			continue;
		ties.entries = &entries[start];
		ties.count = i - start;
		if (ties.count > 1)
			sort_ties(sort, &ties);
		start = i;
	}
}

static void
sort_buckets(FmsEntriesSort *sort, const FmsPart *part, const FmsEntry **taken)
{
	/* the stack would keep its size */
	FmsDeal    *deal = palloc(sizeof(FmsDeal));
	FmsPart		bucket = *part;
	Size		start = 0;

	check_stack_depth();
	choose_buckets(deal, part->entries, part->count);
	deal_entries(deal, part->entries, part->count);
	bucket.in_arrival = false;
	for (int b = 0; b < deal->nbuckets; b++)
	{
		bucket.entries = part->entries + start;
		bucket.count = deal->ends[b] - start;
		if (bucket.count > 0)
			sort_part(sort, &bucket, taken);
		start = deal->ends[b];
	}
	pfree(deal);
}

/* Sorts a part; everything before it is sorted.  taken NULL: nothing is. */
static void
sort_part(FmsEntriesSort *sort, const FmsPart *part, const FmsEntry **taken)
{
	const FmsEntry *end = part->entries + part->count;

	CHECK_FOR_INTERRUPTS();
	if (part->count < PACK_MIN_ENTRIES)
		fms_entries_sort_by_comparing(part->entries, part->count, sort);
	else if (!fms_entries_sort_packed(part->entries, part->count,
									  part->in_arrival))
		sort_buckets(sort, part, taken);
	else if (!sort->prefix_decides)
		sort_all_ties(sort, part);
	if (taken && end - *taken >= TAKE_MIN_ENTRIES)
		take_until(sort, taken, end);
}

void
fms_entries_sort(FmsEntriesSort *sort, FmsEntry *entries, Size count)
{
	const FmsEntry *taken = entries;

	/* comparing few entries notices their order, too */
	if (count < PACK_MIN_ENTRIES ||
		!fms_entries_sort_presorted(sort, entries, count))
	{
		FmsPart		all = {entries, count, {0}, true};

		sort_part(sort, &all, &taken);
	}
	take_until(sort, &taken, entries + count);
}
