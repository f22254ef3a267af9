/*-------------------------------------------------------------------------
 *
 * medium.c
 *	  Where a spill goes: into the page cache, or past it.
 *
 * Both are right somewhere.  Through the cache, bytes are copied twice, and
 * never see the device if they are read back before the kernel has begun to
 * write them.  Past it nothing is copied and nobody's pages are pushed out,
 * but every byte goes to the device and back.  What counts is how fast that
 * round trip is, and how much room the cache has (cache.c):
 *
 *	  round trip, MB/s     0 ......... 300 ............... 2000 ........
 *	                        slow            ordinary            fast
 *	  into the page cache   while there     while the kernel    never
 *	                        is memory       leaves it there
 *
 * On a slow device the sort would wait for it; on a fast one copying takes
 * longer than the device does.  A device that is not known is an ordinary one.
 *
 * How fast it is says its profile, until the sort knows better: every run that
 * is written past the cache gives bounds for the device's rate (device.c).
 * Thus a profile that is wrong, or none at all, costs a run or two:
 *
 *	  run 0       1          2         3         4 ..
 *	  |- cache -|- direct -|- direct -|- cache -|- cache ..
 *	            ^ no room left        ^ it has waited: the device is slow, and
 *	              in the background     there is memory that can be used then
 *
 * Where memory is short, that is not put off: of a spill that is expected not
 * to stay there, on a device that is not known, some megabytes are written out
 * from the page cache while it grows (trial.c), which show whether the device
 * is a plainly slow one.
 *
 *	  run 0 .. 11	   12 ..
 *	  |- cache ------|- cache, compressed ..	not taken: it is slow
 *
 * Short means that memory, a container's for instance, does not hold a spill
 * beside the pages of its input: the kernel then pushes some of both out, and
 * they have to be read again.  Any device that is not very slow takes what is
 * too much sooner than that.  One that is not known, or not quick, gets half
 * of the spill or less: both ways are under way at once, and to be wrong with
 * a half costs half as much.
 *
 *	  run 0 .. 19	   .. 36		  .. 71
 *	  |- cache ------|- direct -------------|  memory holds 20 runs so
 *	  |- cache --------------|- direct -----|  not known, or not quick
 *
 * A spill that has begun to grow in the cache is looked at again when it has
 * used up the part of the room that it was given.  What has been written stays
 * where it is; reads go where the writes went.  So one that is larger than the
 * room has a part of it in the cache, where small blocks cost least, and only
 * one that is many times as large leaves the cache alone.  One that is nearly
 * over when the room is used up stays to its end.
 *
 * The page cache may be what is slow: a kernel that looks for free memory,
 * or gets it back from its host, or holds up who has written much.  If what
 * goes into it takes longer, copying and waiting, than a device would take for
 * a round trip, and that adds up, the next run goes past it.  (A kernel that
 * is busy for some milliseconds does not count: that is over when it is seen.)
 * The spill comes back if the device proves to be a slow one, and then for
 * good.
 *
 * Why the sort does not measure the device's rate for itself, by reading and
 * writing something: that costs most on the devices for which it matters.
 *
 * Plain numbers, nothing to free and nothing that fails.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <math.h>

#include "device/cache.h"
#include "base/clock.h"
#include "device/medium.h"

/*
 * Round trips, MB/s.  Run formation makes some 400 MB of spill a second, so a
 * device that takes 600 MB/s and gives them back as fast does not hold it up.
 * Two copies by way of the page cache are a round trip of some 1000.
 */
#define VERY_SLOW_MB		150.0
#define PLAINLY_SLOW_MB		100.0	/* seen on trial, which is rough */
#define SLOW_MB				300.0
#define FAST_MB				2000.0

/*
 * A spill that is so many times what there is room for goes past it from the
 * beginning: it would push others' pages out and gain little by it.
 */
#define EXPECTED_MULTIPLE	4

/* A spill is about as large as expected within such a part of that. */
#define NEAR_FRACTION	4

/* For less than that it is not worth staying in the page cache. */
#define PART_MIN_BYTES		((uint64) 1024 * 1024)

/*
 * What is expected of an ordinary device that is not known: a round trip, and
 * requests a second, MB/s and millions.
 */
#define ORDINARY_MB			1000.0
#define ORDINARY_REQUESTS	0.07

/* A kernel that had something else to do for less than that is no proof. */
#define HICCUP_US			50000.0

/*
 * A device that is not known is tried with so much of a spill: more than a
 * slow one takes before it shows that.  With more only as long as it may be
 * one: what has been written out goes first when the page cache needs room.
 */
#define TRIAL_BYTES			(32.0 * 1024 * 1024)
#define TRIAL_MAX_BYTES		(2 * TRIAL_BYTES)

/* Fewer bytes prove nothing. */
#define SEEN_MIN_BYTES		((uint64) 2 * 1024 * 1024)

typedef enum DeviceKind
{
	DEVICE_SLOW,
	DEVICE_ORDINARY,
	DEVICE_FAST
} DeviceKind;

static DeviceKind
kind_of(const FmsDevice *device, uint32 block_bytes)
{
	double		mb = fms_device_round_trip_mb(device, block_bytes);

	if (mb <= 0)
		return DEVICE_ORDINARY;
	return mb < SLOW_MB ? DEVICE_SLOW :
		mb > FAST_MB ? DEVICE_FAST : DEVICE_ORDINARY;
}

/* What may still go into the page cache when so much has. */
static uint64
room_bytes(DeviceKind kind, uint64 taken_bytes)
{
	switch (kind)
	{
		case DEVICE_SLOW:
			return fms_cache_memory_bytes(taken_bytes);
		case DEVICE_ORDINARY:
			return fms_cache_room_bytes(taken_bytes);
		case DEVICE_FAST:
			break;
	}
	return 0;
}

static void
begin_run(FmsMedium *medium, const FmsTapeUse *use)
{
	medium->run_began = fms_clock_now();
	medium->run_from_bytes = use->written_bytes;
	medium->run_blocked_us = use->write_blocked_us;
}

static void
go_direct(FmsMedium *medium, FmsDirectReason reason)
{
	medium->cached = false;
	medium->reason = reason;
}

static void
go_cached(FmsMedium *medium, DeviceKind kind, uint64 upto_bytes)
{
	medium->cached = true;
	medium->reason = kind == DEVICE_SLOW ? FMS_DIRECT_SLOW : FMS_DIRECT_SMALL;
	medium->look_again_bytes = upto_bytes;
}

/* Has it got what memory holds of it, or what is worth more there? */
static bool
has_its_share(const FmsMedium *medium, uint64 taken_bytes)
{
	return medium->share_bytes < medium->expected_bytes &&
		taken_bytes >= medium->share_bytes &&
		!medium->on_trial && !fms_medium_is_very_slow(medium);
}

/* Decides for a spill of which only the expected size is known. */
static void
decide(FmsMedium *medium, const FmsOptions *options)
{
	double		expected = options->expected_bytes;
	double		overflow = fms_cache_overflow_bytes(expected, 0);
	double		mb = fms_medium_device_mb(medium);
	DeviceKind	kind = kind_of(&medium->device, medium->block_bytes);
	uint64		room = room_bytes(kind, 0);

	medium->on_trial = overflow > 0 && mb <= 0;
	medium->share_bytes = Max(expected - overflow,
							  mb < SLOW_MB ? expected / 2 : 0);
	if (kind == DEVICE_FAST)
		go_direct(medium, FMS_DIRECT_FAST);
	else if (has_its_share(medium, 0))
		go_direct(medium, FMS_DIRECT_CROWDED);
	else if (kind == DEVICE_SLOW ? room < PART_MIN_BYTES :
			 room == 0 || expected / EXPECTED_MULTIPLE > room)
		go_direct(medium, FMS_DIRECT_EXPECTED);
	else
		go_cached(medium, kind, Max(fms_cache_part_bytes(room), 1));
	medium->on_trial &= medium->cached;
}

void
fms_medium_begin(FmsMedium *medium, const FmsOptions *options,
				 uint32 block_bytes)
{
	memset(medium, 0, sizeof(*medium));
	medium->device = options->device;
	medium->block_bytes = block_bytes;
	medium->expected_bytes = options->expected_bytes;
	medium->settled = options->direct_io != FMS_DIRECT_AUTO;
	medium->cached = options->direct_io == FMS_DIRECT_OFF;
	medium->reason = FMS_DIRECT_AS_SET;
	if (!medium->settled)
		decide(medium, options);
	medium->run_began = fms_clock_now();
}

void
fms_medium_end_trial(FmsMedium *medium)
{
	medium->on_trial = false;
}

/*
 * What comes of a trial is whether the device is a slow one.  One that is not
 * plainly so has been seen between two looks, by a kernel that had other
 * things to do: its rate is not known better than before.
 */
void
fms_medium_tried(FmsMedium *medium, double tried_bytes, const FmsSeen *seen)
{
	FmsDevice	device = medium->device;
	bool		is_slow = fms_device_correct(&device, seen) &&
		fms_device_round_trip_mb(&device, medium->block_bytes) <
		PLAINLY_SLOW_MB;
	/* surely not, even by the longest time that it may have taken one way */
	bool		is_quick = seen->bytes >=
		seen->elapsed_us * 2 * PLAINLY_SLOW_MB;

	if (is_slow && seen->blocked_us >= HICCUP_US)
	{
		medium->device = device;
		medium->device_seen = true;
		fms_medium_end_trial(medium);
		/* there may be more room for it now */
		medium->look_again_bytes = 0;
	}
	else if (tried_bytes >= (is_quick ? TRIAL_BYTES : TRIAL_MAX_BYTES))
		fms_medium_end_trial(medium);
}

/* Adds a run that was written past the page cache to what is known. */
static void
observe(FmsMedium *medium, const FmsTapeUse *use)
{
	double		blocked_us = use->write_blocked_us -
		medium->run_blocked_us;

	medium->seen.bytes += use->written_bytes - medium->run_from_bytes;
	medium->seen.elapsed_us += Max(fms_clock_since_us(medium->run_began),
								   blocked_us);
	medium->seen.blocked_us += blocked_us;
	if (medium->seen.bytes >= SEEN_MIN_BYTES &&
		fms_device_correct(&medium->device, &medium->seen))
		medium->device_seen = true;
}

/*
 * Past the page cache: is that not right any more?  An ordinary device is left
 * only if it was chosen for being a fast one.
 */
static bool
speaks_for_cache(const FmsMedium *medium, DeviceKind kind)
{
	return kind == DEVICE_SLOW ||
		(kind == DEVICE_ORDINARY && medium->reason == FMS_DIRECT_FAST);
}

/*
 * In the page cache: does that take longer than the device would?  What is
 * lost adds up over the runs, and what is gained later is taken off it.
 */
static bool
cache_is_slow(FmsMedium *medium, const FmsTapeUse *use)
{
	uint64		bytes = use->cached_bytes - medium->cache_from_bytes;
	double		us = use->cached_us - medium->cache_from_us;
	double		device_mb = fms_medium_device_mb(medium);

	if (device_mb <= 0)
		device_mb = Min(ORDINARY_MB, medium->block_bytes * ORDINARY_REQUESTS);
	medium->cache_lost_us = Max(0, medium->cache_lost_us + us -
								bytes / device_mb);
	medium->cache_from_bytes = use->cached_bytes;
	medium->cache_from_us = use->cached_us;
	return medium->cache_lost_us > HICCUP_US;
}

/*
 * Is it about as large by now as was expected, so that not much is to come?
 * Some megabytes past the page cache would stand behind all that the kernel
 * has begun to write.
 */
static bool
is_nearly_over(const FmsMedium *medium, uint64 taken_bytes)
{
	return fabs(taken_bytes - medium->expected_bytes) <=
		medium->expected_bytes / NEAR_FRACTION;
}

/* From the page cache past it, or back? */
static void
reconsider(FmsMedium *medium, const FmsTapeUse *use)
{
	DeviceKind	kind = kind_of(&medium->device, medium->block_bytes);
	uint64		taken_bytes = use->cached_bytes;
	uint64		part;

	if (medium->cached && kind == DEVICE_ORDINARY &&
		cache_is_slow(medium, use))
	{
		go_direct(medium, FMS_DIRECT_CACHE_SLOW);
		return;
	}
	if (has_its_share(medium, taken_bytes))
	{
		if (medium->cached)
			go_direct(medium, FMS_DIRECT_CROWDED);
		return;
	}
	if (medium->cached ? taken_bytes <= medium->look_again_bytes :
		!speaks_for_cache(medium, kind))
		return;
	part = fms_cache_part_bytes(room_bytes(kind, taken_bytes));
	/* coming back has to be worth it: twice as much as staying */
	if (part >= (medium->cached ? PART_MIN_BYTES : 2 * PART_MIN_BYTES))
		go_cached(medium, kind, taken_bytes + part);
	else if (medium->cached && is_nearly_over(medium, taken_bytes))
		medium->reason = FMS_DIRECT_NEARLY_OVER;
	else if (medium->cached)
		go_direct(medium, FMS_DIRECT_OUTGROWN);
}

void
fms_medium_next_run(FmsMedium *medium, const FmsTapeUse *use)
{
	if (!medium->cached)
		observe(medium, use);
	if (!medium->settled)
		reconsider(medium, use);
	medium->on_trial &= medium->cached;
	begin_run(medium, use);
}

void
fms_medium_stay(FmsMedium *medium, bool cached)
{
	medium->settled = true;
	medium->cached = cached;
	fms_medium_end_trial(medium);
}

bool
fms_medium_is_very_slow(const FmsMedium *medium)
{
	double		mb = fms_medium_device_mb(medium);

	return mb > 0 && mb < VERY_SLOW_MB;
}

double
fms_medium_device_mb(const FmsMedium *medium)
{
	return fms_device_round_trip_mb(&medium->device, medium->block_bytes);
}
