/*-------------------------------------------------------------------------
 *
 * presorted.c
 *	  Sorting entries that arrive nearly in order.
 *
 * Tables are often nearly in key order.  The sort goes through the entries
 * once, keeps those in order and takes out the outliers ("drop-merge sort").
 * Then it sorts the outliers and merges them back, from the largest on:
 *
 *	  arrived	1 2 9 3 4 5 0 6 7 8
 *	  kept		1 2 3 4 5 6 7 8 _ _		outliers	9 0, sorted 0 9
 *	  merged	0 1 2 3 4 5 6 7 8 9
 *
 * The next entry is compared with the last kept entries.  If at most
 * OUTLIERS_AT_ONCE of these are greater, they become outliers (9); otherwise
 * the next entry does (0).  If there are too many outliers, the sort restores
 * the order of arrival, and the caller sorts in another way.
 *
 * Memory: for the outliers, palloc'd for the call; if that fails, the caller
 * sorts in another way, too.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "base/interrupts.h"
#include "keys/entry.h"

/* Outliers allowed: a few, and one of 128 entries seen. */
#define ALLOWED_OUTLIERS(seen)	(8 + (seen) / 128)
/* Kept entries that one smaller entry can turn into outliers. */
#define OUTLIERS_AT_ONCE	8

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

/* Merges the outliers with the kept entries; sort NULL: by arrival. */
static void
put_back(const FmsEntriesSort *sort, FmsEntry *entries, Size nkept,
		 FmsEntry *outliers, Size noutliers)
{
	Size		touched_bytes = 0;

	fms_entries_sort_by_comparing(outliers, noutliers, sort);
	while (noutliers > 0)
	{
		const FmsEntry *outlier = &outliers[noutliers - 1];
		FmsEntry   *target = &entries[nkept + noutliers - 1];

		fms_interrupts_after(&touched_bytes, FMS_INTERRUPT_RECORD_BYTES);
		if (nkept > 0 &&
			fms_entries_compare(outlier, &entries[nkept - 1], sort) < 0)
			*target = entries[--nkept];
		else
			*target = outliers[--noutliers];
	}
}

bool
fms_entries_sort_presorted(const FmsEntriesSort *sort, FmsEntry *entries,
						   Size count)
{
	Size		most = ALLOWED_OUTLIERS(count) + OUTLIERS_AT_ONCE;
	FmsEntry   *outliers = palloc_extended(most * sizeof(FmsEntry),
										   MCXT_ALLOC_HUGE |
										   MCXT_ALLOC_NO_OOM);
	Size		noutliers = 0;
	Size		nkept = Min(count, 1);
	Size		touched_bytes = 0;
	Size		i;

	if (outliers == NULL)
		return false;
	/* entries in order from the first one on stay where they are */
	while (nkept < count &&
		   fms_entries_compare(&entries[nkept - 1], &entries[nkept], sort) < 0)
	{
		fms_interrupts_after(&touched_bytes, FMS_INTERRUPT_RECORD_BYTES);
		nkept++;
	}
	for (i = nkept; i < count && noutliers <= ALLOWED_OUTLIERS(i); i++)
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
	put_back(i == count ? sort : NULL, entries, nkept, outliers, noutliers);
	pfree(outliers);
	return i == count;
}
