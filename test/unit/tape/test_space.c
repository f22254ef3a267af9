/* links: tape/space */
/*
 * What may be written again is what has been freed and not taken since: every
 * byte once, whole pages, the largest extent first, and extents that touch
 * are one.  Against a map of a small tape, a flag a byte.
 *
 * Seen to fail with: fms_space_add() not joining what is behind; whole_pages()
 * rounding outwards; fms_space_take() forgetting the edges.
 */
#include "postgres.h"

#include <string.h>

#include "io/io.h"
#include "shim.h"
#include "tape/tape.h"

#define TAPE_PAGES	64
#define TAPE_BYTES	(TAPE_PAGES * FMS_IO_ALIGN_BYTES)
/* Blocks are multiples of this, pages or not. */
#define QUANTUM		512

/* The tape: is that piece of it free? */
static bool is_free[TAPE_BYTES / QUANTUM];

static void
set_free(FmsFreeExtent extent, bool to)
{
	uint64		at;

	for (at = extent.from_bytes; at < extent.upto_bytes; at += QUANTUM)
		is_free[at / QUANTUM] = to;
}

static bool
all_are(FmsFreeExtent extent, bool wanted)
{
	uint64		at;

	for (at = extent.from_bytes; at < extent.upto_bytes; at += QUANTUM)
	{
		if (is_free[at / QUANTUM] != wanted)
			return false;
	}
	return true;
}

/* Do the extents say what the map does, in order, none touching the next? */
static bool
agrees(const FmsSpace *space)
{
	uint64		at = 0;
	int			i;

	for (i = 0; i < space->count; i++)
	{
		FmsFreeExtent	one = space->extents[i];
		FmsFreeExtent	between = {at, one.from_bytes};

		if (one.from_bytes >= one.upto_bytes ||
			(i > 0 && one.from_bytes <= at) ||
			!all_are(between, false) || !all_are(one, true))
			return false;
		at = one.upto_bytes;
	}
	return all_are((FmsFreeExtent) {at, TAPE_BYTES}, false);
}

/* Of whole pages in a row that are free, the most. */
static Size
most_in_a_row(void)
{
	Size		most = 0;
	uint64		from = 0;

	while (from < TAPE_BYTES)
	{
		uint64		upto = from;

		while (upto < TAPE_BYTES && is_free[upto / QUANTUM])
			upto += QUANTUM;
		if (FMS_IO_ALIGN_DOWN(upto) > FMS_IO_ALIGN(from))
			most = Max(most, FMS_IO_ALIGN_DOWN(upto) - FMS_IO_ALIGN(from));
		from = upto + QUANTUM;
	}
	return most;
}

/* A extent of what is not free, or none. */
static bool
pick_used(FmsFreeExtent *extent)
{
	uint64		most = QUANTUM * (1 + shim_below(40));
	uint64		at = (uint64) shim_below(TAPE_BYTES / QUANTUM) * QUANTUM;

	while (at < TAPE_BYTES && is_free[at / QUANTUM])
		at += QUANTUM;
	extent->from_bytes = at;
	while (at < TAPE_BYTES && !is_free[at / QUANTUM] &&
		   at < extent->from_bytes + most)
		at += QUANTUM;
	extent->upto_bytes = at;
	return extent->from_bytes < extent->upto_bytes;
}

static void
test_against_map(void)
{
	FmsSpace	space = {0};
	bool		disagreed = false;
	int			taken = 0;
	int			mistaken = 0;
	int			i;

	memset(is_free, 0, sizeof(is_free));
	for (i = 0; i < 20000; i++)
	{
		FmsFreeExtent	extent;
		Size		bytes = QUANTUM *
			(1 + shim_below(8 * FMS_IO_ALIGN_BYTES / QUANTUM));

		if (shim_below(3) > 0)
		{
			if (!pick_used(&extent))
				continue;
			fms_space_add(&space, extent);
			set_free(extent, true);
		}
		else if (fms_space_take(&space, bytes, NULL))
		{
			mistaken += !fms_space_take(&space, bytes, &extent);
			mistaken += extent.from_bytes % FMS_IO_ALIGN_BYTES != 0 ||
				extent.upto_bytes % FMS_IO_ALIGN_BYTES != 0 ||
				extent.upto_bytes - extent.from_bytes < bytes ||
				!all_are(extent, true);
			set_free(extent, false);
			taken++;
		}
		else
			mistaken += fms_space_take(&space, bytes, &extent) ||
				most_in_a_row() >= bytes + 2 * FMS_IO_ALIGN_BYTES;
		disagreed |= !agrees(&space);
	}
	shim_ok(taken > 1000, "%d extents were taken", taken);
	shim_ok(mistaken == 0,
			"each of whole pages that were free, and one when there is one");
	shim_ok(!disagreed, "what is free is what was freed and not taken");
	fms_space_clear(&space);
	shim_ok(space.count == 0 && !fms_space_take(&space, 1, NULL),
			"nothing is left when it is cleared");
}

static void
test_largest_first(void)
{
	FmsSpace	space = {0};
	FmsFreeExtent	extent;

	shim_ok(!fms_space_take(&space, 1, &extent), "empty: nothing to take");
	fms_space_add(&space, (FmsFreeExtent) {0, 8192});
	fms_space_add(&space, (FmsFreeExtent) {20480 - 512, 40960 + 512});
	fms_space_add(&space, (FmsFreeExtent) {81920, 90112});
	shim_ok(!fms_space_take(&space, 20480 + 512, NULL),
			"what is no whole page does not count");
	shim_ok(fms_space_take(&space, 4096, &extent) &&
			extent.from_bytes == 20480 && extent.upto_bytes == 40960,
			"the largest is taken, its whole pages");
	fms_space_add(&space, (FmsFreeExtent) {8192, 20480 - 512});
	shim_ok(fms_space_take(&space, 4096, &extent) &&
			extent.from_bytes == 0 && extent.upto_bytes == 20480,
			"its edge is joined to what is freed beside it");
	fms_space_clear(&space);
}

int
main(void)
{
	shim_seed();
	test_largest_first();
	test_against_map();
	return shim_done();
}
