/*-------------------------------------------------------------------------
 *
 * space.c
 *	  The free extents of a tape, which may be written again.
 *
 * A merge pass writes as much as it reads, and writes where it has read:
 *
 *	  run 0                      run 1
 *	  |#### read ####| to come  ||### read ####| to come    |
 *	  |<-- free ---->|           |<-- free --->|
 *
 * So several passes need little more space than the spill.  Extents that touch
 * are joined.  They are in bytes, since blocks may be smaller than a page, but
 * whole pages are taken.  The largest extent is taken first, so the result
 * lies in few pieces.  A pass reads few runs, each of which has one extent or
 * two, so an array holds them.
 *
 * Memory: one array, palloc'd.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "io/io.h"
#include "tape/space.h"

void
fms_space_clear(FmsSpace *space)
{
	if (space->extents)
		pfree(space->extents);
	*space = (FmsSpace) {0};
}

/* Index of the first extent that begins behind at_bytes, or count. */
static int
first_behind(const FmsSpace *space, uint64 at_bytes)
{
	int			low = 0;
	int			high = space->count;

	while (low < high)
	{
		int			middle = low + (high - low) / 2;

		if (space->extents[middle].from_bytes > at_bytes)
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}

static void
insert_at(FmsSpace *space, int at, FmsFreeExtent extent)
{
	if (space->count == space->size)
	{
		space->size = Max(16, 2 * space->size);
		space->extents = space->extents == NULL ?
			palloc(space->size * sizeof(FmsFreeExtent)) :
			repalloc(space->extents, space->size * sizeof(FmsFreeExtent));
	}
	memmove(&space->extents[at + 1], &space->extents[at],
			(space->count - at) * sizeof(FmsFreeExtent));
	space->extents[at] = extent;
	space->count++;
}

static void
remove_at(FmsSpace *space, int at)
{
	space->count--;
	memmove(&space->extents[at], &space->extents[at + 1],
			(space->count - at) * sizeof(FmsFreeExtent));
}

void
fms_space_add(FmsSpace *space, FmsFreeExtent extent)
{
	int			at = first_behind(space, extent.from_bytes);
	FmsFreeExtent *before = at > 0 ? &space->extents[at - 1] : NULL;
	FmsFreeExtent *behind = at < space->count ? &space->extents[at] : NULL;

	Assert(extent.from_bytes < extent.upto_bytes);
	Assert(before == NULL || before->upto_bytes <= extent.from_bytes);
	Assert(behind == NULL || extent.upto_bytes <= behind->from_bytes);

	if (before && before->upto_bytes == extent.from_bytes)
	{
		before->upto_bytes = extent.upto_bytes;
		if (behind && behind->from_bytes == before->upto_bytes)
		{
			before->upto_bytes = behind->upto_bytes;
			remove_at(space, at);
		}
	}
	else if (behind && behind->from_bytes == extent.upto_bytes)
		behind->from_bytes = extent.from_bytes;
	else
		insert_at(space, at, extent);
}

/* The whole pages of an extent; if it has none, empty or less than that. */
static FmsFreeExtent
whole_pages(FmsFreeExtent extent)
{
	extent.from_bytes = FMS_IO_ALIGN(extent.from_bytes);
	extent.upto_bytes = FMS_IO_ALIGN_DOWN(extent.upto_bytes);
	return extent;
}

/* Index of the largest extent, or -1 if its pages do not hold `bytes`. */
static int
find_largest(const FmsSpace *space, Size bytes)
{
	uint64		largest_bytes = 0;
	int			largest = -1;
	FmsFreeExtent pages;
	int			i;

	for (i = 0; i < space->count; i++)
	{
		FmsFreeExtent one = space->extents[i];

		if (one.upto_bytes - one.from_bytes > largest_bytes)
		{
			largest_bytes = one.upto_bytes - one.from_bytes;
			largest = i;
		}
	}
	if (largest < 0)
		return -1;
	pages = whole_pages(space->extents[largest]);
	return pages.upto_bytes > pages.from_bytes &&
		pages.upto_bytes - pages.from_bytes >= bytes ? largest : -1;
}

bool
fms_space_has(const FmsSpace *space, Size bytes)
{
	return find_largest(space, bytes) >= 0;
}

bool
fms_space_take(FmsSpace *space, Size bytes, FmsFreeExtent *extent)
{
	int			at = find_largest(space, bytes);
	FmsFreeExtent whole;

	if (at < 0)
		return false;
	whole = space->extents[at];
	remove_at(space, at);

	/* its edges stay, to be joined to what is freed beside them */
	*extent = whole_pages(whole);
	if (whole.from_bytes < extent->from_bytes)
		fms_space_add(space, (FmsFreeExtent) {whole.from_bytes,
				extent->from_bytes});
	if (extent->upto_bytes < whole.upto_bytes)
		fms_space_add(space, (FmsFreeExtent) {extent->upto_bytes,
				whole.upto_bytes});
	return true;
}
