/* links: base/device */
/*
 * What is known of a device: the points measured come back, between them the
 * rate lies between theirs, and nonsense counts as not measured.
 *
 * Seen to fail with: is_rate() taking everything.
 */
#include "postgres.h"

#include <math.h>

#include "base/device.h"
#include "shim.h"

static FmsDevice device;

static void
check_points(void)
{
	bool		same = true;
	int			b;
	int			d;

	memset(&device, 0, sizeof(device));
	for (b = 0; b < FMS_DEVICE_BLOCKS; b++)
	{
		for (d = 0; d < FMS_DEVICE_DEPTHS; d++)
			fms_device_note(&device, FMS_PATTERN_RR, FMS_DEVICE_BLOCK_BYTES(b),
								 FMS_DEVICE_DEPTH(d), 10 * (b + 1) + d);
	}
	for (b = 0; b < FMS_DEVICE_BLOCKS; b++)
	{
		uint32		bytes = FMS_DEVICE_BLOCK_BYTES(b);

		for (d = 0; d < FMS_DEVICE_DEPTHS; d++)
		{
			uint32		depth = FMS_DEVICE_DEPTH(d);
			double		rate = fms_device_read_mb(&device, bytes, depth);

			same &= fabs(rate - (10 * (b + 1) + d)) < 1e-6;
		}
	}
	shim_ok(same, "what was measured comes back");
	shim_ok(fms_device_read_mb(&device, 5000, 9) ==
			fms_device_read_mb(&device, 4096, 8),
			"between two points: the lower");
	shim_ok(fms_device_read_mb(&device, 4096, 1000) ==
			fms_device_read_mb(&device, 4096, 64),
			"more at once than was measured brings no more");
	shim_ok(fms_device_read_mb(&device, 1, 0) > 0, "no size is too small");
}

static void
check_depths(void)
{
	memset(&device, 0, sizeof(device));
	fms_device_note(&device, FMS_PATTERN_RR, 4096, 1, 100);
	fms_device_note(&device, FMS_PATTERN_RR, 4096, 8, 400);
	fms_device_note(&device, FMS_PATTERN_RR, 4096, 32, 90);	/* disturbed */
	fms_device_note(&device, FMS_PATTERN_RR, 4096, 64, 410);
	shim_ok(fms_device_read_mb(&device, 4096, 32) == 400,
			"more at once are never slower");
	shim_ok(fms_device_enough_depth(&device, 4096) == 8,
			"enough is what brings nearly all");
	shim_ok(fms_device_read_mb(&device, 4096, 64) == 410, "and all is the best");
	shim_ok(fms_device_read_mb(&device, 16384, 8) == 400,
			"a size that was not measured goes by the nearest");
	shim_ok(fms_device_read_mb(&device, 1024, 8) == 100,
			"and smaller ones bring less in proportion");
}

static void
check_nonsense(void)
{
	memset(&device, 0, sizeof(device));
	fms_device_note(&device, FMS_PATTERN_RR, 4096, 1, NAN);
	fms_device_note(&device, FMS_PATTERN_RR, 4096, 1, -1);
	fms_device_note(&device, FMS_PATTERN_RR, 4096, 1, 0);
	fms_device_note(&device, FMS_PATTERN_RR, 4096, 1, INFINITY);
	fms_device_note(&device, FMS_PATTERN_RR, 4097, 1, 100);
	fms_device_note(&device, FMS_PATTERN_RR, -4096, 1, 100);
	fms_device_note(&device, FMS_PATTERN_RR, 4096, 3, 100);
	fms_device_note(&device, FMS_PATTERN_RR, 4096, PG_INT64_MAX, 100);
	fms_device_note(&device, FMS_PATTERN_APPEND, 262144, 4, NAN);
	fms_device_note(&device, FMS_PATTERN_APPEND, 262144, 4, 1e300);
	shim_ok(!device.known && device.write_mb == 0,
			"nonsense is not known");
	shim_ok(fms_device_read_mb(&device, 4096, 8) == 0 &&
			fms_device_enough_depth(&device, 4096) == 0 &&
			fms_device_read_mb(&device, 4096, 64) == 0,
			"and nothing follows from nothing");
	fms_device_note(&device, FMS_PATTERN_APPEND, 262144, 4, 250);
	shim_ok(device.known && device.write_mb == 250, "a rate is a rate");
}

/* 1,000 MB/s to write, 500 to read: 3 ms a MB */
static void
check_round_trip(void)
{
	memset(&device, 0, sizeof(device));
	shim_ok(fms_device_round_trip_mb(&device, 4096, true) == 0,
			"no round trip without a rate");
	fms_device_note(&device, FMS_PATTERN_APPEND, 262144, 4, 1000);
	shim_ok(fabs(fms_device_round_trip_mb(&device, 4096, true) - 500) < 0.01,
			"reads that are not known are as fast as writes");
	fms_device_note(&device, FMS_PATTERN_RR, 4096, 1, 250);
	fms_device_note(&device, FMS_PATTERN_RR, 4096, 8, 500);
	shim_ok(fabs(fms_device_round_trip_mb(&device, 4096, true) -
				 1000 / 3.0) < 0.01, "there and back takes both times");
	shim_ok(fabs(fms_device_round_trip_mb(&device, 4096, false) - 200) < 0.01,
			"... longer with one read at a time");
}

static bool
correct(double bytes, double elapsed_us, double blocked_us)
{
	FmsSeen		seen = {bytes, elapsed_us, blocked_us};

	return fms_device_correct(&device, &seen);
}

static void
set_rate(double mb)
{
	memset(&device, 0, sizeof(device));
	fms_device_note(&device, FMS_PATTERN_APPEND, 262144, 4, mb);
	fms_device_note(&device, FMS_PATTERN_RR, 65536, 8, mb);
}

/* Rates outside of the bounds move to them, and reads along. */
static void
check_bounds(void)
{
	set_rate(1000);
	shim_ok(!correct(100e6, 1e6, 0.05e6),
			"inside its bounds (100 to 2000 MB/s) a rate stays");
	shim_ok(correct(100e6, 1e6, 0.125e6) && fabs(device.write_mb - 800) < 0.1,
			"above them it falls to the upper");
	shim_ok(fabs(fms_device_read_mb(&device, 65536, 8) - 800) < 0.1,
			"... and reads with it");
	shim_ok(correct(100e6, 0.1e6, 0) && fabs(device.write_mb - 1000) < 0.1,
			"below them it rises to the lower");
	shim_ok(correct(100e6, 1e6, 0.25e6) && !device.known &&
			device.write_mb == 0 &&
			fms_device_read_mb(&device, 65536, 8) == 0,
			"far above wide ones it is forgotten");
	set_rate(1000);
	shim_ok(correct(100e6, 0.04e6, 0) && device.write_mb == 0,
			"... and far below");
	set_rate(1000);
	shim_ok(correct(100e6, 1e6, 0.5e6) &&
			fabs(device.write_mb - 141.4) < 0.1 &&
			fms_device_read_mb(&device, 65536, 8) == 0,
			"... but what narrow ones say is believed");
	memset(&device, 0, sizeof(device));
	shim_ok(!correct(100e6, 1e6, 0.1e6) && device.write_mb == 0,
			"wide bounds say nothing of a device that is not known");
	shim_ok(correct(100e6, 1e6, 0.9e6) &&
			device.write_mb > 100 && device.write_mb < 112,
			"narrow ones do");
	shim_ok(!correct(0, 0, 0) && !correct(1, -1, -1),
			"nonsense corrects nothing");
}

/* 1,000 MB/s at first, then 125 and 3,000 requests a second. */
static void
check_lasting(void)
{
	memset(&device, 0, sizeof(device));
	fms_device_note(&device, FMS_PATTERN_RR, 4096, 64, 1000);
	fms_device_note(&device, FMS_PATTERN_RR, 1048576, 64, 1000);
	fms_device_note(&device, FMS_PATTERN_RR_LASTING, 4096, 8, 12.288);
	fms_device_note(&device, FMS_PATTERN_RR_LASTING, 1048576, 8, 125);
	shim_ok(fabs(fms_device_read_mb(&device, 4096, 64) - 12.288) < 0.001 &&
			fabs(fms_device_read_mb(&device, 32768, 64) - 98.304) < 0.01,
			"of small blocks no more than so many last");
	shim_ok(fabs(fms_device_read_mb(&device, 65536, 64) - 125) < 0.01 &&
			fabs(fms_device_read_mb(&device, 1048576, 64) - 125) < 0.01,
			"... and of large ones no more MB");
	fms_device_note(&device, FMS_PATTERN_RR, 4096, 1, 5);
	shim_ok(fms_device_read_mb(&device, 4096, 1) == 5,
			"what is slower is as slow as it is");
	fms_device_note(&device, FMS_PATTERN_RR, 1048576, 1, 500);
	shim_ok(fms_device_enough_depth(&device, 1048576) == 1,
			"and fewer at once are enough for that");
	memset(device.read_mb, 0, sizeof(device.read_mb));
	shim_ok(fms_device_read_mb(&device, 4096, 8) == 0 &&
			fms_device_enough_depth(&device, 4096) == 0,
			"what lasts is no rate by itself");
	fms_device_note(&device, FMS_PATTERN_RR, 1048576, 64, 1000);
	fms_device_note(&device, FMS_PATTERN_RR_LASTING, 4096, 8, NAN);
	fms_device_note(&device, FMS_PATTERN_RR_LASTING, 1000, 8, 5000);
	shim_ok(fabs(fms_device_read_mb(&device, 1048576, 64) - 125) < 0.01,
			"nonsense does not last");
}

int
main(void)
{
	check_points();
	check_round_trip();
	check_bounds();
	check_lasting();
	check_depths();
	check_nonsense();
	return shim_done();
}
