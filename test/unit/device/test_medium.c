/* links: device/medium base/device */
/*
 * Where a spill goes, over kinds of devices and amounts of room: no clock and
 * no memory of this machine decide, only figures that the test makes up.
 *
 * Seen to fail with: a slow device asked for the room of an ordinary one;
 * observe() doing nothing; any device left again for the page cache; a page
 * cache that is left for a slow device; a few bytes believed; a trial that
 * does not end; a device that is slow for a moment taken for a slow one; a
 * spill that is nearly over sent past the page cache; one that memory does not
 * hold beside its input left there.
 */
#include "postgres.h"

#include <math.h>

#include "cache_made_up.h"
#include "device/medium.h"
#include "shim.h"

#define BLOCK	65536

/* ---- a sort ---- */

static FmsOptions options;
static FmsTapeUse use;
static FmsMedium medium;

/* With a device that reads and writes at that rate; 0: not known. */
static void
begin(double mb, uint64 expected)
{
	memset(&options, 0, sizeof(options));
	memset(&use, 0, sizeof(use));
	options.direct_io = FMS_DIRECT_AUTO;
	options.expected_bytes = expected;
	if (mb > 0)
	{
		fms_device_note(&options.device, FMS_PATTERN_APPEND, 262144, 4, mb);
		fms_device_note(&options.device, FMS_PATTERN_RR, BLOCK, 8, mb);
	}
	fms_medium_begin(&medium, &options, BLOCK);
}

/* A run of that size, which waited so long for its writes. */
static void
write_run(uint64 bytes, double blocked_us)
{
	use.written_bytes += bytes;
	if (medium.cached)
		use.cached_bytes += bytes;
	else
		use.write_blocked_us += blocked_us;
	fms_medium_next_run(&medium, &use);
}

/* Its rate was so many MB/s: far slower than this test can ever be stopped. */
static void
write_slow_run(double mb)
{
	double		hours_us = 10 * 3600 * 1e6;

	write_run((uint64) (mb * hours_us), hours_us);
}

static void
check_kinds(void)
{
	room = 100 * MB;
	memory = 1000 * MB;
	begin(0, 50 * MB);
	shim_ok(medium.cached && medium.reason == FMS_DIRECT_SMALL,
			"not known: the page cache, where it has room");
	begin(0, 500 * MB);
	shim_ok(!medium.cached && medium.reason == FMS_DIRECT_EXPECTED,
			"... and past it where it has none");
	begin(0, 300 * MB);
	shim_ok(medium.cached, "... but for the beginning of one not much larger");
	begin(1000, 500 * MB);
	shim_ok(!medium.cached && medium.reason == FMS_DIRECT_EXPECTED,
			"an ordinary device is like one that is not known");
	begin(30, 500 * MB);
	shim_ok(medium.cached && medium.reason == FMS_DIRECT_SLOW,
			"slow: the page cache while there is memory");
	begin(30, 5000 * MB);
	shim_ok(medium.cached, "... though it will not hold all");
	memory = 0;
	begin(30, 500 * MB);
	shim_ok(!medium.cached, "... but not without any");
	memory = 1000 * MB;
	begin(50000, 50 * MB);
	shim_ok(!medium.cached && medium.reason == FMS_DIRECT_FAST,
			"fast: past the page cache");
}

static void
check_settings(void)
{
	begin(30, 0);
	options.direct_io = FMS_DIRECT_ON;
	fms_medium_begin(&medium, &options, BLOCK);
	write_slow_run(1);
	shim_ok(!medium.cached && medium.reason == FMS_DIRECT_AS_SET,
			"on is on, whatever the device");
	options.direct_io = FMS_DIRECT_OFF;
	fms_medium_begin(&medium, &options, BLOCK);
	write_run(10000 * MB, 0);
	shim_ok(medium.cached && medium.reason == FMS_DIRECT_AS_SET,
			"off is off, whatever the room");
	begin(50000, 0);
	fms_medium_stay(&medium, true);
	write_run(10000 * MB, 0);
	shim_ok(medium.cached, "where there is no direct I/O it stays");
}

static void
check_growth(void)
{
	int			runs = 0;

	begin(0, 0);
	while (medium.cached && runs++ < 100)
		write_run(4 * MB, 0);
	shim_ok(use.cached_bytes > 60 * MB &&
			use.cached_bytes <= 100 * MB,
			"the room is used, in parts");
	shim_ok(medium.reason == FMS_DIRECT_OUTGROWN, "... and then left");
	write_run(400 * MB, 0);
	room = 10000 * MB;
	write_run(400 * MB, 0);
	shim_ok(!medium.cached, "an ordinary device is not left again");
	room = 100 * MB;

	begin(0, 120 * MB);
	for (runs = 0; runs < 28; runs++)
		write_run(4 * MB, 0);
	shim_ok(medium.cached, "what is nearly over by then stays");
	while (medium.cached && runs++ < 100)
		write_run(4 * MB, 0);
	shim_ok(use.cached_bytes > 140 * MB &&
			use.cached_bytes <= 154 * MB,
			"... but goes if far more comes than was expected");
	begin(0, 180 * MB);
	while (medium.cached && use.cached_bytes < 180 * MB)
		write_run(4 * MB, 0);
	shim_ok(use.cached_bytes <= 100 * MB,
			"what is half over by then goes");
}

/* Into the page cache, which takes so many MB/s. */
static void
cache_run(uint64 bytes, double mb)
{
	use.cached_us += bytes / mb;
	write_run(bytes, 0);
}

static void
check_slow_cache(void)
{
	room = memory = 100000 * MB;
	begin(0, 0);
	cache_run(100 * MB, 5000);
	shim_ok(medium.cached, "a page cache that is quick: no reason to leave");
	cache_run(8 * MB, 200);
	shim_ok(medium.cached, "a moment's hiccup is no reason");
	cache_run(100 * MB, 5000);
	cache_run(8 * MB, 200);
	shim_ok(medium.cached, "... nor is one now and one then");
	cache_run(8 * MB, 200);
	shim_ok(!medium.cached, "... but two at once are");

	begin(0, 0);
	cache_run(100 * MB, 500);
	shim_ok(!medium.cached && medium.reason == FMS_DIRECT_CACHE_SLOW,
			"slower than a device: past it");
	write_run(400 * MB, 0);
	shim_ok(!medium.cached, "... for good");
	write_slow_run(20);
	shim_ok(medium.cached && medium.reason == FMS_DIRECT_SLOW,
			"... unless the device is slower still");
	cache_run(100 * MB, 30);
	shim_ok(medium.cached, "... and that for good");

	begin(600, 0);
	cache_run(100 * MB, 500);
	shim_ok(medium.cached, "a device that is known is asked: slower, stay");
	cache_run(100 * MB, 200);
	shim_ok(!medium.cached, "... faster, leave");
	begin(30, 0);
	cache_run(100 * MB, 10);
	shim_ok(medium.cached, "a slow device is no better, ever");

	memset(&options, 0, sizeof(options));
	memset(&use, 0, sizeof(use));
	options.direct_io = FMS_DIRECT_AUTO;
	fms_medium_begin(&medium, &options, 4096);
	cache_run(100 * MB, 500);
	shim_ok(medium.cached,
			"many small requests are more than a device is expected to take");
	cache_run(100 * MB, 200);
	shim_ok(!medium.cached, "... but it is expected to take some");
	room = 100 * MB;
	memory = 1000 * MB;
}

static void
check_wrong_profiles(void)
{
	memory = (uint64) 1 << 62;
	begin(300, 500 * MB);
	medium.device.write_mb = 50000;
	medium.cached = false;
	write_slow_run(20);
	shim_ok(medium.cached && medium.reason == FMS_DIRECT_SLOW,
			"a device far slower than its profile: back to the page cache");
	shim_ok(medium.device_seen && medium.device.write_mb <= 20.001,
			"... as it was seen");
	begin(50000, 50 * MB);
	write_slow_run(1000);
	shim_ok(medium.cached && medium.reason == FMS_DIRECT_SMALL,
			"a device that is ordinary and no fast one: back as well");
	begin(50000, 50 * MB);
	memset(&medium.device, 0, sizeof(medium.device));
	write_run(1 * MB, 0);
	shim_ok(medium.cached && medium.reason == FMS_DIRECT_SMALL,
			"... and one that has been forgotten");
	begin(0, 500 * MB);
	write_slow_run(20);
	shim_ok(medium.cached && medium.device_seen,
			"without a profile it is seen, too");
	begin(1000, 500 * MB);
	write_run(400 * MB, 0);
	shim_ok(!medium.cached, "a device that never made it wait is not slow");
	memory = 1000 * MB;
}

/* On trial: the device has taken so many bytes, and that is what was seen. */
static void
look(double tried_bytes, double bytes, double elapsed_us, double blocked_us)
{
	FmsSeen		seen = {bytes, elapsed_us, blocked_us};

	fms_medium_tried(&medium, tried_bytes, &seen);
}

/* On trial: the device has taken so many bytes, of late at that rate. */
static void
tried(double bytes, double mb)
{
	double		us = 60 * 1000;

	if (medium.on_trial)
		look(bytes, mb * us, us, us);
	write_run(4 * MB, 0);
}

/* Memory will not hold it, and nobody knows the device. */
static void
check_trial(void)
{
	room = 100 * MB;
	memory = 300 * MB;
	begin(0, 200 * MB);
	shim_ok(medium.cached && medium.on_trial,
			"not known, and memory is short: the device is to be tried");
	tried(4 * MB, 1000);
	shim_ok(medium.on_trial, "... with more than a run");
	tried(8 * MB, 30);
	shim_ok(!medium.on_trial && medium.cached &&
			medium.reason == FMS_DIRECT_SLOW,
			"plainly a slow one: memory is used");
	shim_ok(medium.device_seen && fms_medium_is_very_slow(&medium),
			"... as it was seen");

	begin(0, 200 * MB);
	tried(12 * MB, 1000);
	shim_ok(medium.on_trial, "an ordinary one: that goes on for a while");
	tried(34 * MB, 1000);
	shim_ok(!medium.on_trial && medium.reason == FMS_DIRECT_SMALL &&
			!medium.device_seen, "... and then nothing is known of it");

	begin(0, 200 * MB);
	tried(8 * MB, 250);
	shim_ok(medium.on_trial, "not so slow that it is plain");
	look(8 * MB, 30 * 40000, 40000, 40000);
	shim_ok(medium.on_trial, "nor if it was for a moment only");
	look(40 * MB, 30 * 40000, 40000, 40000);
	shim_ok(medium.on_trial, "... but then it goes on");
	look(8 * MB, 30 * 60000, 60000, 0);
	shim_ok(medium.on_trial, "nor if nobody knows when it was there");

	begin(0, 200 * MB);
	room = 0;
	for (int runs = 0; runs < 20 && medium.cached; runs++)
		write_run(4 * MB, 0);
	shim_ok(!medium.cached && !medium.on_trial,
			"past the page cache there is nothing to be written out");
	room = 100 * MB;

	begin(0, 200 * MB);
	fms_medium_stay(&medium, true);
	shim_ok(!medium.on_trial, "nor is a choice to be made any more");
	begin(1000, 200 * MB);
	shim_ok(!medium.on_trial, "a device that is known needs no trial");
	memory = 1000 * MB;
	begin(0, 200 * MB);
	shim_ok(!medium.on_trial, "nor where memory holds the spill and its input");
}

/* Until it goes past the page cache; returns what is in it. */
static uint64
grow(uint64 expected)
{
	while (medium.cached && use.cached_bytes < expected)
		write_run(4 * MB, 0);
	return use.cached_bytes;
}

/* Memory will not hold it beside its input. */
static void
check_crowd(void)
{
	room = memory = 300 * MB;
	begin(1000, 140 * MB);
	shim_ok(grow(140 * MB) == 140 * MB && medium.reason == FMS_DIRECT_SMALL,
			"a spill that memory holds beside its input");
	begin(1000, 200 * MB);
	shim_ok(grow(200 * MB) == 100 * MB &&
			medium.reason == FMS_DIRECT_CROWDED,
			"... or not: what it holds of it");
	write_run(400 * MB, 0);
	shim_ok(!medium.cached, "... and no more");
	begin(1000, 300 * MB);
	shim_ok(!medium.cached && medium.reason == FMS_DIRECT_CROWDED,
			"nothing of it, if memory is full of the input");
	begin(400, 280 * MB);
	shim_ok(grow(280 * MB) == 140 * MB &&
			medium.reason == FMS_DIRECT_CROWDED,
			"half of it if the device is none of the quickest");
	write_slow_run(320);
	shim_ok(!medium.cached, "... that is seen to be slow: the other half, too");
	write_slow_run(20);
	shim_ok(medium.cached && medium.reason == FMS_DIRECT_SLOW,
			"... but not if it is seen to be very slow");
	begin(200, 200 * MB);
	shim_ok(grow(200 * MB) == 200 * MB && medium.reason == FMS_DIRECT_SLOW,
			"all of it if that is known");
	begin(0, 280 * MB);
	fms_medium_end_trial(&medium);
	shim_ok(grow(280 * MB) == 140 * MB &&
			medium.reason == FMS_DIRECT_CROWDED && !medium.device_seen,
			"half of it if nothing is known");
	room = 100 * MB;
	memory = 1000 * MB;
}

static bool
correct(FmsDevice *device, double bytes, double elapsed_us, double blocked_us)
{
	FmsSeen		seen = {bytes, elapsed_us, blocked_us};

	return fms_device_correct(device, &seen);
}

/* Rates outside of the bounds move to them, and reads along. */
static void
check_bounds(void)
{
	FmsDevice	device;

	begin(1000, 0);
	device = options.device;
	shim_ok(!correct(&device, 100e6, 1e6, 0.05e6),
			"inside its bounds (100 to 2000 MB/s) a rate stays");
	shim_ok(correct(&device, 100e6, 1e6, 0.125e6) &&
			fabs(device.write_mb - 800) < 0.1,
			"above them it falls to the upper");
	shim_ok(fabs(fms_device_read_mb(&device, BLOCK, 8) - 800) < 0.1,
			"... and reads with it");
	shim_ok(correct(&device, 100e6, 0.1e6, 0) &&
			fabs(device.write_mb - 1000) < 0.1,
			"below them it rises to the lower");
	shim_ok(correct(&device, 100e6, 1e6, 0.25e6) && !device.known &&
			device.write_mb == 0 && fms_device_read_mb(&device, BLOCK, 8) == 0,
			"far above wide ones it is forgotten");
	device = options.device;
	shim_ok(correct(&device, 100e6, 0.04e6, 0) && device.write_mb == 0,
			"... and far below");
	device = options.device;
	shim_ok(correct(&device, 100e6, 1e6, 0.5e6) &&
			fabs(device.write_mb - 141.4) < 0.1 &&
			fms_device_read_mb(&device, BLOCK, 8) == 0,
			"... but what narrow ones say is believed");
	memset(&device, 0, sizeof(device));
	shim_ok(!correct(&device, 100e6, 1e6, 0.1e6) &&
			device.write_mb == 0,
			"wide bounds say nothing of a device that is not known");
	shim_ok(correct(&device, 100e6, 1e6, 0.9e6) &&
			device.write_mb > 100 && device.write_mb < 112,
			"narrow ones do");
	shim_ok(!correct(&device, 0, 0, 0) &&
			!correct(&device, 1, -1, -1),
			"nonsense corrects nothing");
	shim_ok(fms_device_round_trip_mb(&options.device, BLOCK) == 500,
			"there and back takes both times");
}

int
main(void)
{
	check_kinds();
	check_settings();
	check_growth();
	check_slow_cache();
	check_wrong_profiles();
	check_trial();
	check_crowd();
	check_bounds();
	return shim_done();
}
