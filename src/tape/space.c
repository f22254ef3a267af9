/*-------------------------------------------------------------------------
 *
 * space.c
 *	  The stretches of a tape that may be written again.
 *
 * A merge that writes its result reads as much as it writes.  What it has read
 * nobody needs any more, so that is where it writes, some way behind:
 *
 *	  run 0                      run 1
 *	  |#### read ####| to come  ||### read ####| to come    |
 *	  |<-- free ---->|           |<-- free --->|
 *
 * So a sort takes as much of the disk as its tuples, and a little, however
 * often they pass.  Holes in the file would keep that promise as well, and did
 * once.  But then the file system has to free what it will be asked for again,
 * tells some devices of it, and must remember of all that is written anew that
 * it is not garbage any longer; and a hole waits for the reads that are under
 * way.  Writing over what is there is what devices and file systems do best.
 *
 * Stretches that touch are one.  They are of bytes, since blocks may be
 * smaller than a page; what is taken is whole pages.  The largest is taken
 * first: so the pieces that the result lies in are few.  Since a merge frees
 * what it reads piece by piece, there are never many more stretches than runs
 * that it reads, so they stand in an array.
 *
 * Why not a number a block, in a heap, as in logtape.c?  There any block may
 * follow any other, and has room for the number of the next.  Here writes are
 * to be large, and a run's blocks are to be found without reading them.
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
	if (space->stretches)
		pfree(space->stretches);
	*space = (FmsSpace) {0};
}

/* The first one that begins behind that place, or count. */
static int
first_behind(const FmsSpace *space, uint64 at_bytes)
{
	int			low = 0;
	int			high = space->count;

	while (low < high)
	{
		int			middle = low + (high - low) / 2;

		if (space->stretches[middle].from_bytes > at_bytes)
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}

static void
insert_at(FmsSpace *space, int at, FmsStretch stretch)
{
	if (space->count == space->size)
	{
		space->size = Max(16, 2 * space->size);
		if (space->stretches == NULL)
			space->stretches = palloc(space->size * sizeof(FmsStretch));
		else
			space->stretches = repalloc(space->stretches,
										space->size * sizeof(FmsStretch));
	}
	memmove(&space->stretches[at + 1], &space->stretches[at],
			(space->count - at) * sizeof(FmsStretch));
	space->stretches[at] = stretch;
	space->count++;
}

static void
remove_at(FmsSpace *space, int at)
{
	space->count--;
	memmove(&space->stretches[at], &space->stretches[at + 1],
			(space->count - at) * sizeof(FmsStretch));
}

void
fms_space_add(FmsSpace *space, FmsStretch stretch)
{
	int			at = first_behind(space, stretch.from_bytes);
	FmsStretch *before = at > 0 ? &space->stretches[at - 1] : NULL;
	FmsStretch *behind = at < space->count ? &space->stretches[at] : NULL;

	Assert(stretch.from_bytes < stretch.upto_bytes);
	Assert(before == NULL || before->upto_bytes <= stretch.from_bytes);
	Assert(behind == NULL || stretch.upto_bytes <= behind->from_bytes);

	if (before && before->upto_bytes == stretch.from_bytes)
	{
		before->upto_bytes = stretch.upto_bytes;
		if (behind && behind->from_bytes == before->upto_bytes)
		{
			before->upto_bytes = behind->upto_bytes;
			remove_at(space, at);
		}
	}
	else if (behind && behind->from_bytes == stretch.upto_bytes)
		behind->from_bytes = stretch.from_bytes;
	else
		insert_at(space, at, stretch);
}

/* Its whole pages; none: empty, or less. */
static FmsStretch
whole_pages(FmsStretch stretch)
{
	stretch.from_bytes = FMS_IO_ALIGN(stretch.from_bytes);
	stretch.upto_bytes = FMS_IO_ALIGN_DOWN(stretch.upto_bytes);
	return stretch;
}

static bool
holds(FmsStretch stretch, Size bytes)
{
	stretch = whole_pages(stretch);
	return stretch.upto_bytes > stretch.from_bytes &&
		stretch.upto_bytes - stretch.from_bytes >= bytes;
}

/* The largest, if it holds so many bytes, else -1. */
static int
find_largest(const FmsSpace *space, Size bytes)
{
	int			largest = 0;
	int			i;

	for (i = 1; i < space->count; i++)
	{
		FmsStretch	one = space->stretches[i];
		FmsStretch	most = space->stretches[largest];

		if (one.upto_bytes - one.from_bytes >
			most.upto_bytes - most.from_bytes)
			largest = i;
	}
	return space->count > 0 && holds(space->stretches[largest], bytes) ?
		largest : -1;
}

bool
fms_space_has(const FmsSpace *space, Size bytes)
{
	return find_largest(space, bytes) >= 0;
}

bool
fms_space_take(FmsSpace *space, Size bytes, FmsStretch *stretch)
{
	int			at = find_largest(space, bytes);
	FmsStretch	whole;

	if (at < 0)
		return false;
	whole = space->stretches[at];
	remove_at(space, at);

	/* its edges stay, to be joined to what is freed beside them */
	*stretch = whole_pages(whole);
	if (whole.from_bytes < stretch->from_bytes)
		fms_space_add(space, (FmsStretch) {whole.from_bytes,
				stretch->from_bytes});
	if (stretch->upto_bytes < whole.upto_bytes)
		fms_space_add(space, (FmsStretch) {stretch->upto_bytes,
				whole.upto_bytes});
	return true;
}
