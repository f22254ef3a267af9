/*-------------------------------------------------------------------------
 *
 * presorted.c
 *	  Sorting entries that arrive nearly in order, or in reverse order.
 *
 * Tables are often nearly in key order: they were loaded in it, and some rows
 * were updated later.  The sort goes through the entries once, keeps those in
 * order and takes out the outliers ("drop-merge sort").  Then it sorts the
 * few outliers and inserts them, the largest first:
 *
 *	  arrived	1 2 9 3 4 5 0 6 7 8
 *	  kept		1 2 3 4 5 6 7 8 _ _		outliers	9 0, sorted 0 9
 *	  inserted	_ 1 2 3 4 5 6 7 8 9
 *				0 1 2 3 4 5 6 7 8 9
 *
 * If at most OUTLIERS_AT_ONCE of the last kept entries are greater than the
 * next entry, those are the outliers; otherwise the entry is (9, not 3 to 5;
 * then 0).  If outliers become too many, they are inserted by arrival, and the
 * caller sorts in another way.  Random input is rejected after a few entries.
 *
 * Memory: 16 bytes for each OUTLIERS_FRACTION entries, palloc'd for the call.
 * If the allocation fails, the caller sorts in another way.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "base/interrupts.h"
#include "keys/entry.h"

/* Outliers allowed: a few, and one of this number of entries seen. */
#define OUTLIERS_FIRST		8
#define OUTLIERS_FRACTION	128
/* Kept entries that one smaller entry can turn into outliers. */
#define OUTLIERS_AT_ONCE	8

/* Are the entries in ascending order?  Returns how many at the beginning. */
static Size
count_ascending(const FmsEntriesSort *sort, const FmsEntry *entries,
				Size count)
{
	Size		i = 1;

	fms_for_interruptible(i, count, FMS_INTERRUPT_RECORD_BYTES)
	{
		if (fms_entries_compare(&entries[i - 1], &entries[i], sort) > 0)
			return i;
	}
	return i;
}

/*
 * Are the prefixes in strictly descending order?  Reversing entries with
 * equal prefixes would reverse ties.
 */
static bool
are_descending(const FmsEntry *entries, Size count)
{
	Size		i = 1;

	fms_for_interruptible(i, count, sizeof(FmsEntry))
	{
		if (entries[i - 1].prefix <= entries[i].prefix)
			return false;
	}
	return true;
}

static void
reverse(FmsEntry *entries, Size count)
{
	Size		i = 0;

	fms_for_interruptible(i, count / 2, 2 * sizeof(FmsEntry))
	{
		FmsEntry	entry = entries[i];

		entries[i] = entries[count - 1 - i];
		entries[count - 1 - i] = entry;
	}
}

static inline Size
allowed_outliers(Size seen)
{
	return OUTLIERS_FIRST + seen / OUTLIERS_FRACTION;
}

/* Number of the last kept entries that are greater, cut off if too many. */
static inline Size
count_greater(const FmsEntriesSort *sort, const FmsEntry *kept, Size nkept,
			  const FmsEntry *entry)
{
	Size		most = Min(nkept, OUTLIERS_AT_ONCE + 1);
	Size		greater = 0;

	while (greater < most &&
		   fms_entries_compare(&kept[nkept - 1 - greater], entry, sort) > 0)
		greater++;
	return greater;
}

/* Number of kept entries before `entry`, by key or (sort NULL) by arrival. */
static Size
position_of(const FmsEntriesSort *sort, const FmsEntry *kept, Size nkept,
			const FmsEntry *entry)
{
	Size		low = 0;
	Size		high = nkept;

	while (low < high)
	{
		Size		middle = low + (high - low) / 2;
		int			order;

		CHECK_FOR_INTERRUPTS();
		order = sort ? fms_entries_compare(&kept[middle], entry, sort) :
			fms_entries_compare_arrival(&kept[middle], entry);
		if (order < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* Inserts the outliers among the kept entries, by key or by arrival. */
static void
insert_outliers(const FmsEntriesSort *sort, FmsEntry *entries, Size nkept,
				FmsEntry *outliers, Size noutliers)
{
	if (sort)
		fms_entries_sort_by_key(outliers, noutliers, sort);
	else
		fms_entries_sort_by_arrival(outliers, noutliers);
	for (; noutliers > 0; noutliers--)
	{
		const FmsEntry *outlier = &outliers[noutliers - 1];
		Size		position = position_of(sort, entries, nkept, outlier);

		fms_interrupts_memmove(&entries[position + noutliers],
							   &entries[position],
							   (nkept - position) * sizeof(FmsEntry));
		entries[position + noutliers - 1] = *outlier;
		nkept = position;
	}
}

/* Sorts the entries if they have few outliers; `ascending` are in order. */
static bool
mend(const FmsEntriesSort *sort, FmsEntry *entries, Size count,
	 Size ascending)
{
	Size		most = allowed_outliers(count) + OUTLIERS_AT_ONCE;
	FmsEntry   *outliers = palloc_extended(most * sizeof(FmsEntry),
										   MCXT_ALLOC_HUGE |
										   MCXT_ALLOC_NO_OOM);
	Size		noutliers = 0;
	Size		nkept = ascending;
	Size		touched_bytes = 0;
	Size		i;

	if (outliers == NULL)
		return false;
	for (i = ascending; i < count && noutliers <= allowed_outliers(i); i++)
	{
		FmsEntry	entry = entries[i];
		Size		greater = count_greater(sort, entries, nkept, &entry);

		fms_interrupts_after(&touched_bytes, FMS_INTERRUPT_RECORD_BYTES);
		if (greater > OUTLIERS_AT_ONCE)
		{
			outliers[noutliers++] = entry;
			continue;
		}
		nkept -= greater;
		memcpy(&outliers[noutliers], &entries[nkept],
			   greater * sizeof(FmsEntry));
		noutliers += greater;
		entries[nkept++] = entry;
	}
	insert_outliers(i == count ? sort : NULL, entries, nkept, outliers,
					noutliers);
	pfree(outliers);
	return i == count;
}

bool
fms_entries_sort_presorted(const FmsEntriesSort *sort, FmsEntry *entries,
						   Size count)
{
	Size		ascending = count_ascending(sort, entries, count);

	if (ascending >= count)
		return true;
	if (are_descending(entries, count))
	{
		reverse(entries, count);
		return true;
	}
	return mend(sort, entries, count, ascending);
}
