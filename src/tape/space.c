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
 * has few extents.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "io/io.h"
#include "tape/tape.h"

void
fms_space_clear(FmsSpace *space)
{
	if (space->extents)
		pfree(space->extents);
	*space = (FmsSpace) {0};
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
	FmsFreeExtent *extents = space->extents;
	int			at = space->count;

	Assert(extent.from_bytes < extent.upto_bytes);
	while (at > 0 && extents[at - 1].from_bytes > extent.from_bytes)
		at--;
	Assert(at == 0 || extents[at - 1].upto_bytes <= extent.from_bytes);
	Assert(at == space->count || extent.upto_bytes <= extents[at].from_bytes);
	if (at < space->count && extent.upto_bytes == extents[at].from_bytes)
	{
		extent.upto_bytes = extents[at].upto_bytes;
		remove_at(space, at);
	}
	if (at > 0 && extents[at - 1].upto_bytes == extent.from_bytes)
	{
		extents[at - 1].upto_bytes = extent.upto_bytes;
		return;
	}
	if (space->count == space->size)
	{
		space->size = Max(16, 2 * space->size);
		extents = extents == NULL ?
			palloc(space->size * sizeof(FmsFreeExtent)) :
			repalloc(extents, space->size * sizeof(FmsFreeExtent));
		space->extents = extents;
	}
	memmove(&extents[at + 1], &extents[at],
			(space->count - at) * sizeof(FmsFreeExtent));
	extents[at] = extent;
	space->count++;
}

/* The whole pages of an extent; if it has none, upto_bytes <= from_bytes. */
static FmsFreeExtent
whole_pages(FmsFreeExtent extent)
{
	extent.from_bytes = FMS_IO_ALIGN(extent.from_bytes);
	extent.upto_bytes = FMS_IO_ALIGN_DOWN(extent.upto_bytes);
	return extent;
}

/* Index of the extent with most pages, or -1 if these do not hold `bytes`. */
static int
find_largest(const FmsSpace *space, Size bytes)
{
	uint64		largest_bytes = 0;
	int			largest = -1;

	for (int i = 0; i < space->count; i++)
	{
		FmsFreeExtent pages = whole_pages(space->extents[i]);

		if (pages.upto_bytes > pages.from_bytes + largest_bytes)
		{
			largest_bytes = pages.upto_bytes - pages.from_bytes;
			largest = i;
		}
	}
	return largest_bytes >= bytes ? largest : -1;
}

bool
fms_space_take(FmsSpace *space, Size bytes, FmsFreeExtent *extent)
{
	int			at = find_largest(space, bytes);
	FmsFreeExtent whole;

	if (at < 0 || extent == NULL)
		return at >= 0;
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
