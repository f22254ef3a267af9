/* links: device */
/*
 * What is known of a device: the points measured come back, between them the
 * rate lies between theirs, and nonsense counts as not measured.
 *
 * Seen to fail with: is_rate() taking everything.
 */
#include "postgres.h"

#include <math.h>

#include "device.h"
#include "shim.h"

static FmsDevice device;

static void
check_points(void)
{
	bool		same = true;
	bool		between = true;
	int			b;
	int			d;

	memset(&device, 0, sizeof(device));
	for (b = 0; b < FMS_DEVICE_BLOCKS; b++)
	{
		for (d = 0; d < FMS_DEVICE_DEPTHS; d++)
			fms_device_note_read(&device, FMS_DEVICE_BLOCK_BYTES(b),
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
			if (b + 1 < FMS_DEVICE_BLOCKS)
			{
				/* half-way by the logarithm: 1.41 times the size */
				rate = fms_device_read_mb(&device, bytes * 1.4142, depth);
				between &= fabs(rate - (10 * (b + 1) + d + 5)) < 0.1;
			}
		}
	}
	shim_ok(same, "what was measured comes back");
	shim_ok(between, "between two sizes, by the logarithm");
	shim_ok(fms_device_read_mb(&device, 4096, 1000) ==
			fms_device_read_mb(&device, 4096, 64),
			"more at once than was measured brings no more");
	shim_ok(fms_device_read_mb(&device, 1, 0) > 0, "no size is too small");
}

static void
check_depths(void)
{
	memset(&device, 0, sizeof(device));
	fms_device_note_read(&device, 4096, 1, 100);
	fms_device_note_read(&device, 4096, 8, 400);
	fms_device_note_read(&device, 4096, 32, 90);	/* disturbed */
	fms_device_note_read(&device, 4096, 64, 410);
	shim_ok(fms_device_read_mb(&device, 4096, 32) == 400,
			"more at once are never slower");
	shim_ok(fms_device_enough_depth(&device, 4096) == 8,
			"enough is what brings nearly all");
	shim_ok(fms_device_best_mb(&device, 4096) == 410, "and all is the best");
	shim_ok(fms_device_read_mb(&device, 16384, 8) == 400,
			"a size that was not measured goes by the nearest");
	shim_ok(fms_device_read_mb(&device, 1024, 8) == 100,
			"and smaller ones bring less in proportion");
}

static void
check_nonsense(void)
{
	memset(&device, 0, sizeof(device));
	fms_device_note_read(&device, 4096, 1, NAN);
	fms_device_note_read(&device, 4096, 1, -1);
	fms_device_note_read(&device, 4096, 1, 0);
	fms_device_note_read(&device, 4096, 1, INFINITY);
	fms_device_note_read(&device, 4097, 1, 100);
	fms_device_note_read(&device, -4096, 1, 100);
	fms_device_note_read(&device, 4096, 3, 100);
	fms_device_note_read(&device, 4096, PG_INT64_MAX, 100);
	fms_device_note_write(&device, NAN);
	fms_device_note_write(&device, 1e300);
	fms_device_note_give_back(&device, NAN);
	fms_device_note_give_back(&device, -1);
	shim_ok(!device.known && device.write_mb == 0 && device.give_back_mb == 0,
			"nonsense is not known");
	shim_ok(fms_device_read_mb(&device, 4096, 8) == 0 &&
			fms_device_enough_depth(&device, 4096) == 0 &&
			fms_device_best_mb(&device, 4096) == 0,
			"and nothing follows from nothing");
	fms_device_note_write(&device, 250);
	shim_ok(device.known && device.write_mb == 250, "a rate is a rate");
}

/* 1,000 MB/s to write, 500 to read: 3 ms a MB, and what giving back takes. */
static void
check_round_trip(void)
{
	memset(&device, 0, sizeof(device));
	fms_device_note_write(&device, 1000);
	fms_device_note_read(&device, 4096, 1, 500);
	shim_ok(fabs(fms_device_round_trip_mb(&device, 4096) - 1000 / 3.0) < 0.01,
			"there and back takes both times");
	fms_device_note_give_back(&device, 500);
	shim_ok(fabs(fms_device_round_trip_mb(&device, 4096) - 200) < 0.01,
			"and the space has to go back");
}

/* A megabyte, written in pieces as they were measured. */
static double
rewrite_us(double read_mb)
{
	return fms_device_rewrite_us(&device, 1e6, read_mb,
								 FMS_DEVICE_APPEND_BLOCK_BYTES,
								 FMS_DEVICE_APPEND_DEPTH);
}

/* An earlier pass reads and writes: one after the other, or at once? */
static void
check_rewrite(void)
{
	memset(&device, 0, sizeof(device));
	fms_device_note_write(&device, 100);
	shim_ok(fabs(rewrite_us(200) - 15000) < 1,
			"not known: one after the other");
	fms_device_note_mixed(&device, 125);
	fms_device_note_mixed(&device, 100);
	fms_device_note_mixed(&device, NAN);
	shim_ok(fabs(rewrite_us(200) - 15000) < 1,
			"nor is it where nobody knows what reads alone bring");
	fms_device_note_read(&device, 262144, 8, 200);
	shim_ok(fabs(rewrite_us(200) - 16000) < 1,
			"known: as fast as both were");
	shim_ok(fabs(rewrite_us(50) - 32000) < 1,
			"in small blocks in proportion");
	fms_device_note_mixed(&device, 1000);
	shim_ok(fabs(rewrite_us(200) - 10000) < 1,
			"but no faster than either of them");
	memset(device.read_mb, 0, sizeof(device.read_mb));
	fms_device_note_lasting(&device, 1048576, 50);
	shim_ok(fabs(rewrite_us(50) - 20000) < 1,
			"what reads alone bring is what lasts, if nothing else is known");
}

/*
 * Written at 100 MB/s in pieces of 256 kB, of which four are read at 200, a
 * single one at 100, one of 128 kB at 50, and one of 4 MB at 1,000.
 */
static void
check_pieces(void)
{
	memset(&device, 0, sizeof(device));
	fms_device_note_write(&device, 100);
	fms_device_note_read(&device, 262144, 4, 200);
	fms_device_note_read(&device, 262144, 1, 100);
	fms_device_note_read(&device, 131072, 1, 50);
	fms_device_note_read(&device, 4194304, 1, 1000);
	shim_ok(fabs(fms_device_rewrite_us(&device, 1e6, 1000, 262144, 1) -
				 16000) < 1,
			"fewer pieces at once take longer, by as much as reading them");
	shim_ok(fabs(fms_device_rewrite_us(&device, 1e6, 1000, 131072, 1) -
				 26000) < 1,
			"and so do smaller ones");
	shim_ok(fabs(fms_device_rewrite_us(&device, 1e6, 1000, 4194304, 1) -
				 7000) < 1,
			"larger ones are faster");
	fms_device_note_write(&device, 400);
	shim_ok(fabs(fms_device_rewrite_us(&device, 1e6, 1000, 4194304, 1) -
				 2250) < 1,
			"but not by more than twice");
	memset(device.read_mb, 0, sizeof(device.read_mb));
	shim_ok(fabs(fms_device_rewrite_us(&device, 1e6, 1000, 131072, 1) -
				 3500) < 1,
			"nothing to compare with");
}

/* The best of several is luck, one far below it a disturbance. */
static void
check_usual(void)
{
	memset(&device, 0, sizeof(device));
	fms_device_note_read(&device, 4096, 1, 100);
	fms_device_note_read(&device, 4096, 8, 1000);
	fms_device_note_read(&device, 4096, 16, 900);
	fms_device_note_read(&device, 4096, 64, 10);
	shim_ok(fms_device_merge_mb(&device, 4096, 1, 1) == 100 &&
			fms_device_merge_mb(&device, 4096, 8, 1) == 1000,
			"one measurement is the usual one");
	shim_ok(fms_device_merge_mb(&device, 4096, 64, 1) == 950 &&
			fms_device_read_mb(&device, 4096, 64) == 1000,
			"of two the usual one is between them, the best is the best");
	fms_device_note_lasting(&device, 4096, 500);
	shim_ok(fms_device_merge_mb(&device, 4096, 64, 1) == 500,
			"and neither is more than what lasts");
	memset(&device, 0, sizeof(device));
	shim_ok(fms_device_merge_mb(&device, 4096, 8, 1) == 0, "not known");
}

/*
 * A read takes 10 us, and 1 a kB: 14, 18 and 26 us.  The point in the middle,
 * disturbed, took twice as long.
 */
static void
check_line(void)
{
	memset(&device, 0, sizeof(device));
	fms_device_note_read(&device, 8192, 1, 8192 / 36.0);
	fms_device_note_read(&device, 16384, 1, 16384 / 26.0);
	shim_ok(fabs(8192 / fms_device_merge_mb(&device, 8192, 1, 1) - 36) < 0.01,
			"without a size on either side, what was measured");
	fms_device_note_read(&device, 4096, 1, 4096 / 14.0);
	shim_ok(fabs(8192 / fms_device_merge_mb(&device, 8192, 1, 1) - 24) < 0.01,
			"with both, a third of it and two of the line between them");
	shim_ok(fabs(fms_device_read_mb(&device, 8192, 1) - 8192 / 36.0) < 0.01,
			"choices go by what was measured");
	fms_device_note_read(&device, 8192, 1, 8192 / 18.0);
	shim_ok(fabs(8192 / fms_device_merge_mb(&device, 8192, 1, 1) - 18) < 0.01,
			"what lies on the line is the usual one");
	fms_device_note_read(&device, 2097152, 1, 1000);
	fms_device_note_read(&device, 4194304, 1, 1200);
	shim_ok(fabs(fms_device_merge_mb(&device, 4194304, 1, 1) - 1200) < 0.01,
			"the largest size has none above it");
}

/*
 * Blocks that are one read: more than each alone.  Sixteen bring 1,228.8 MB/s,
 * and would bring 3,000 if they were one: 31.5 us longer, 2.1 for each.
 */
static void
check_joined(void)
{
	memset(&device, 0, sizeof(device));
	fms_device_note_read(&device, 4096, 1, 100);
	fms_device_note_read(&device, 4096, 16, 600);
	fms_device_note_read(&device, 32768, 1, 2000);
	fms_device_note_read(&device, 32768, 2, 3000);
	shim_ok(fms_device_merge_mb(&device, 4096, 16, 1) == 600,
			"one block is one read");
	shim_ok(fabs(fms_device_merge_mb(&device, 4096, 16, 8) - 3000) < 0.01,
			"not known: eight of 4 kB are one of 32 kB");
	fms_device_note_joined(&device, 4096, NAN);
	fms_device_note_joined(&device, 4000, 100);
	fms_device_note_joined(&device, 4096, 1228.8);
	fms_device_note_joined(&device, 4096, 1000);
	shim_ok(fabs(fms_device_merge_mb(&device, 4096, 16, 8) - 1279.2) < 0.1,
			"known: each further one takes its time");
	fms_device_note_read(&device, 4096, 16, 1500);
	shim_ok(fabs(fms_device_merge_mb(&device, 4096, 16, 8) - 1500) < 0.01,
			"but no slower than by themselves");
}

/* 2,000 MB/s, and 1,000 if all is used: half a millisecond a MB. */
static void
check_used(void)
{
	memset(&device, 0, sizeof(device));
	fms_device_note_read(&device, 4096, 1, 500);
	fms_device_note_used(&device, 1000);
	shim_ok(fabs(fms_device_merge_mb(&device, 4096, 1, 1) - 500) < 0.01,
			"nothing to compare with");
	fms_device_note_read(&device, 131072, 64, 2000);
	fms_device_note_used(&device, NAN);
	shim_ok(fabs(fms_device_merge_mb(&device, 131072, 64, 1) -
				 2000 / 1.4) < 0.01 &&
			fabs(fms_device_merge_mb(&device, 4096, 1, 1) -
				 500 / 1.1) < 0.01,
			"a part of that is a merge's, for a byte of any block");
	shim_ok(fms_device_read_mb(&device, 131072, 64) == 2000,
			"... and of nobody else");
	fms_device_note_used(&device, 3000);
	shim_ok(fabs(fms_device_merge_mb(&device, 131072, 64, 1) - 2000) < 0.01,
			"using it does not make reads faster");
}

/* 1,000 MB/s at first, then 125 and 3,000 requests a second. */
static void
check_lasting(void)
{
	memset(&device, 0, sizeof(device));
	fms_device_note_read(&device, 4096, 64, 1000);
	fms_device_note_read(&device, 1048576, 64, 1000);
	fms_device_note_lasting(&device, 4096, 12.288);
	fms_device_note_lasting(&device, 1048576, 125);
	shim_ok(fabs(fms_device_read_mb(&device, 4096, 64) - 12.288) < 0.001 &&
			fabs(fms_device_read_mb(&device, 32768, 64) - 98.304) < 0.01,
			"of small blocks no more than so many last");
	shim_ok(fabs(fms_device_read_mb(&device, 65536, 64) - 125) < 0.01 &&
			fabs(fms_device_best_mb(&device, 1048576) - 125) < 0.01,
			"... and of large ones no more MB");
	fms_device_note_read(&device, 4096, 1, 5);
	shim_ok(fms_device_read_mb(&device, 4096, 1) == 5,
			"what is slower is as slow as it is");
	fms_device_note_read(&device, 1048576, 1, 500);
	shim_ok(fms_device_enough_depth(&device, 65536) == 1,
			"and fewer at once are enough for that");
	memset(device.read_mb, 0, sizeof(device.read_mb));
	shim_ok(fabs(fms_device_merge_mb(&device, 4096, 8, 1) - 12.288) <
			0.001 &&
			fms_device_enough_depth(&device, 4096) == 0,
			"if nothing else was measured that is its rate, at any depth");
	fms_device_note_read(&device, 1048576, 64, 1000);
	fms_device_note_lasting(&device, 4096, NAN);
	fms_device_note_lasting(&device, 1000, 5000);
	shim_ok(fabs(fms_device_best_mb(&device, 1048576) - 125) < 0.01,
			"nonsense does not last");
}

int
main(void)
{
	check_points();
	check_round_trip();
	check_lasting();
	check_rewrite();
	check_pieces();
	check_usual();
	check_line();
	check_joined();
	check_used();
	check_depths();
	check_nonsense();
	return shim_done();
}
