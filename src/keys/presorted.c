/*-------------------------------------------------------------------------
 *
 * presorted.c
 *	  Entries that arrive in order, backwards, or in order but for a few.
 *
 * Tables are often in the order of a key because they were loaded in it, or
 * because it counts up.  But hardly ever wholly: COPY puts a short row into
 * the room that an earlier page has left, two sessions write at once, a row
 * is updated.  One row of five hundred out of place must not cost a sort of
 * all the others.
 *
 * So the entries are gone through once.  Those in order stay, closing up; the
 * strays are taken out.  They are few, so they are sorted by comparing, and
 * then put where they belong, from the last one on:
 *
 *	  arrived	1 2 9 3 4 5 0 6 7 8
 *	  stay		1 2 3 4 5 6 7 8 _ _		strays	9 0, sorted 0 9
 *	  put back	_ 1 2 3 4 5 6 7 8 9
 *				0 1 2 3 4 5 6 7 8 9
 *
 * Which one is astray, 9 or the 3 behind it?  If only a few of the entries
 * that stayed are greater than the one at hand, they are; else it is.  (The
 * scheme is known as drop-merge sort.)  When there are more strays than a
 * small part of what was gone through, the entries are in some other order:
 * the strays are put back where they were, and another sort takes over.  On
 * entries in random order that is after the first few.
 *
 * Why not natural runs, as in Timsort: that merges all entries several times
 * for the same few strays, and needs room for half of them.
 *
 * Memory: room for the strays, palloc'd for the time of a call, some 16 bytes
 * for each STRAYS_FRACTION entries.  It goes with its context on ERROR.  If
 * the system refuses it, nothing is mended.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "base/interrupts.h"
#include "keys/presorted.h"

/* One of so many may be astray, and at the beginning a few more. */
#define STRAYS_FRACTION		128
#define STRAYS_FIRST		8
/* So many entries that stayed are called strays because of one behind them. */
#define STRAYS_AT_ONCE		8

/* These check for interrupts: sorting by them does not everywhere. */
typedef int (*FmsEntriesCompare) (const FmsEntry *a, const FmsEntry *b,
								  const FmsEntriesSort *sort);

#define ST_SORT sort_strays
#define ST_ELEMENT_TYPE FmsEntry
#define ST_COMPARE_RUNTIME_POINTER
#define ST_COMPARE_ARG_TYPE const FmsEntriesSort
#define ST_COMPARATOR_TYPE_NAME FmsEntriesCompare
#define ST_SCOPE static
#define ST_DEFINE
#include "lib/sort_template.h"

static int
compare_arrival(const FmsEntry *a, const FmsEntry *b,
				const FmsEntriesSort *sort)
{
	uint64		a_place = fms_entry_place(a);
	uint64		b_place = fms_entry_place(b);

	CHECK_FOR_INTERRUPTS();
	return a_place < b_place ? -1 : a_place > b_place;
}

static int
compare_keys(const FmsEntry *a, const FmsEntry *b, const FmsEntriesSort *sort)
{
	CHECK_FOR_INTERRUPTS();
	return fms_entries_compare(a, b, sort);
}

/* How many entries from the first on are in ascending order? */
static Size
ascending(const FmsEntriesSort *sort, const FmsEntry *entries, Size count)
{
	Size		i;

	for (i = 1; i < count;)
	{
		Size		stop = fms_interrupts_stretch(i, count,
												  FMS_INTERRUPT_RECORD_BYTES);

		for (; i < stop; i++)
		{
			if (fms_entries_compare(&entries[i - 1], &entries[i], sort) > 0)
				return i;
		}
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

	for (i = 1; i < count;)
	{
		Size		stop = fms_interrupts_stretch(i, count, sizeof(FmsEntry));

		for (; i < stop; i++)
		{
			if (entries[i - 1].prefix <= entries[i].prefix)
				return false;
		}
	}
	return true;
}

static void
turn_round(FmsEntry *entries, Size count)
{
	Size		low = 0;

	while (low < count / 2)
	{
		Size		stop = fms_interrupts_stretch(low, count / 2,
												  2 * sizeof(FmsEntry));

		for (; low < stop; low++)
		{
			FmsEntry	entry = entries[low];

			entries[low] = entries[count - 1 - low];
			entries[count - 1 - low] = entry;
		}
	}
}

/* Strays that may have been found among so many entries. */
static inline Size
allowed_strays(Size seen)
{
	return STRAYS_FIRST + seen / STRAYS_FRACTION;
}

/* How many of the last ones are greater?  Looks at no more than it must. */
static inline Size
later_ones(const FmsEntriesSort *sort, const FmsEntry *entries, Size count,
		   const FmsEntry *entry)
{
	Size		most = Min(count, STRAYS_AT_ONCE + 1);
	Size		later = 0;

	while (later < most &&
		   fms_entries_compare(&entries[count - 1 - later], entry, sort) > 0)
		later++;
	return later;
}

/* How many of the entries, which are in that order, go before this one? */
static Size
place_of(const FmsEntriesSort *sort, FmsEntriesCompare compare,
		 const FmsEntry *entries, Size count, const FmsEntry *entry)
{
	Size		low = 0;
	Size		high = count;

	while (low < high)
	{
		Size		middle = low + (high - low) / 2;

		if (compare(&entries[middle], entry, sort) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* Puts strays among the entries that stayed, which are in that order. */
static void
put_back(const FmsEntriesSort *sort, FmsEntriesCompare compare,
		 FmsEntry *entries, Size stayed, FmsEntry *strays, Size nstrays)
{
	sort_strays(strays, nstrays, compare, sort);
	while (nstrays > 0)
	{
		const FmsEntry *stray = &strays[nstrays - 1];
		Size		place = place_of(sort, compare, entries, stayed, stray);

		/* those behind it have moved already; these make room for the rest */
		fms_interrupts_memmove(&entries[place + nstrays], &entries[place],
							   (stayed - place) * sizeof(FmsEntry));
		entries[place + nstrays - 1] = *stray;
		stayed = place;
		nstrays--;
	}
}

/* Takes out the strays; the first ones are known to be in order. */
static bool
mend(const FmsEntriesSort *sort, FmsEntry *entries, Size count, Size in_order)
{
	FmsEntry   *strays = palloc_extended((allowed_strays(count) +
										  STRAYS_AT_ONCE) * sizeof(FmsEntry),
										 MCXT_ALLOC_HUGE |
										 MCXT_ALLOC_NO_OOM);
	Size		nstrays = 0;
	Size		stayed = in_order;
	Size		touched_bytes = 0;
	Size		i;

	/* the other sort needs no room */
	if (strays == NULL)
		return false;
	for (i = in_order; i < count && nstrays <= allowed_strays(i); i++)
	{
		FmsEntry	entry = entries[i];
		Size		later = later_ones(sort, entries, stayed, &entry);

		fms_interrupts_after(&touched_bytes, FMS_INTERRUPT_RECORD_BYTES);
		if (later > STRAYS_AT_ONCE)
		{
			strays[nstrays++] = entry;
			continue;
		}
		stayed -= later;
		memcpy(&strays[nstrays], &entries[stayed], later * sizeof(FmsEntry));
		nstrays += later;
		entries[stayed++] = entry;
	}
	put_back(sort, i == count ? compare_keys : compare_arrival, entries,
			 stayed, strays, nstrays);
	pfree(strays);
	return i == count;
}

bool
fms_presorted_sort(const FmsEntriesSort *sort, FmsEntry *entries, Size count)
{
	Size		in_order = ascending(sort, entries, count);

	if (in_order >= count)
		return true;
	if (descending(entries, count))
	{
		turn_round(entries, count);
		return true;
	}
	return mend(sort, entries, count, in_order);
}
