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
			fms_device_note(&device, "random_read", FMS_DEVICE_BLOCK_BYTES(b),
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
	shim_ok(fms_device_read_mb(&device, 511, 8) == 0,
			"a smaller size than any is not known");
}

static void
check_depths(void)
{
	memset(&device, 0, sizeof(device));
	fms_device_note(&device, "random_read", 4096, 1, 100);
	fms_device_note(&device, "random_read", 4096, 8, 400);
	fms_device_note(&device, "random_read", 4096, 32, 90);	/* disturbed */
	fms_device_note(&device, "random_read", 4096, 64, 410);
	shim_ok(fms_device_read_mb(&device, 4096, 32) == 400,
			"more at once are never slower");
	shim_ok(fms_device_enough_depth(&device, 4096) == 8,
			"enough is what brings nearly all");
	shim_ok(fms_device_read_mb(&device, 4096, 64) == 410, "and all is the best");
	shim_ok(fms_device_read_mb(&device, 16384, 8) == 400,
			"a size that was not measured goes by the next smaller one");
}

static void
check_nonsense(void)
{
	memset(&device, 0, sizeof(device));
	fms_device_note(&device, "random_read", 4096, 1, NAN);
	fms_device_note(&device, "random_read", 4096, 1, -1);
	fms_device_note(&device, "random_read", 4096, 1, 0);
	fms_device_note(&device, "random_read", 4096, 1, INFINITY);
	fms_device_note(&device, "random_read", 4097, 1, 100);
	fms_device_note(&device, "random_read", -4096, 1, 100);
	fms_device_note(&device, "random_read", 4096, 3, 100);
	fms_device_note(&device, "random_read", 4096, PG_INT64_MAX, 100);
	fms_device_note(&device, "append", 262144, 4, NAN);
	fms_device_note(&device, "append", 262144, 4, 1e300);
	fms_device_note(&device, "random_read lasting", 4096, 8, 100);
	shim_ok(!device.known && device.write_mb == 0,
			"nonsense is not known");
	shim_ok(fms_device_read_mb(&device, 4096, 8) == 0 &&
			fms_device_enough_depth(&device, 4096) == 0 &&
			fms_device_read_mb(&device, 4096, 64) == 0,
			"and nothing follows from nothing");
	fms_device_note(&device, "append", 262144, 4, 250);
	shim_ok(device.known && device.write_mb == 250, "a rate is a rate");
}

/* 1,000 MB/s to write, 500 to read: 3 ms a MB */
static void
check_round_trip(void)
{
	memset(&device, 0, sizeof(device));
	shim_ok(fms_device_round_trip_mb(&device, 4096) == 0,
			"no round trip without a rate");
	fms_device_note(&device, "append", 262144, 4, 1000);
	shim_ok(fabs(fms_device_round_trip_mb(&device, 4096) - 500) < 0.01,
			"reads that are not known are as fast as writes");
	fms_device_note(&device, "random_read", 4096, 1, 250);
	fms_device_note(&device, "random_read", 4096, 8, 500);
	shim_ok(fabs(fms_device_round_trip_mb(&device, 4096) -
				 1000 / 3.0) < 0.01, "there and back takes both times");
}

/* Stripes on two devices, then on three. */
static void
check_stripes(void)
{
	FmsDevice	other = {0};

	memset(&device, 0, sizeof(device));
	fms_device_note(&device, "append", 262144, 4, 100);
	fms_device_note(&device, "random_read", 4096, 8, 50);
	fms_device_note(&other, "append", 262144, 4, 80);
	fms_device_note(&other, "random_read", 4096, 8, 90);
	fms_device_add_stripe(&device, &other, 1);
	shim_ok(device.write_mb == 160 &&
			fms_device_read_mb(&device, 4096, 8) == 100,
			"two devices are twice as fast as the slower one");
	fms_device_add_stripe(&device, &other, 2);
	shim_ok(device.write_mb == 240 &&
			fms_device_read_mb(&device, 4096, 8) == 150,
			"... three of them three times");
	memset(&other, 0, sizeof(other));
	fms_device_add_stripe(&device, &other, 3);
	shim_ok(!device.known && device.write_mb == 0 &&
			fms_device_read_mb(&device, 4096, 8) == 0,
			"... and with an unknown one unknown");
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
	fms_device_note(&device, "append", 262144, 4, mb);
	fms_device_note(&device, "random_read", 65536, 8, mb);
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
	shim_ok(correct(100e6, 0.04e6, 0) && fabs(device.write_mb - 2500) < 0.1,
			"... however far");
	memset(&device, 0, sizeof(device));
	shim_ok(!correct(100e6, 1e6, 0.05e6) && device.write_mb == 0,
			"a device that is not known stays so while it may be a usual one");
	shim_ok(correct(100e6, 1e6, 0.9e6) && fabs(device.write_mb - 111.1) < 0.1,
			"... or else counts as the bound");
	shim_ok(!correct(0, 0, 0) && !correct(1, -1, -1),
			"nonsense corrects nothing");
}

int
main(void)
{
	check_points();
	check_round_trip();
	check_stripes();
	check_bounds();
	check_depths();
	check_nonsense();
	return shim_done();
}
