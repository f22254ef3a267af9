/*-------------------------------------------------------------------------
 *
 * device.c
 *	  What is known of the device under a sort: how fast it reads in which
 *	  pieces.
 *
 * A merge reads at random, so its rate depends on the block size and on the
 * number of reads at once.  calibrate.c measures a grid of both.  Between the
 * points the rate goes by the logarithm of size and depth.
 *
 *	  MB/s			depth 1   2   4 ..  64
 *	    512 B		      .   .   .      .
 *	    ..
 *	    4 MB		      .   .   .      .
 *
 * A point is a short measurement.  Disturbances only slow it down, and l reads
 * at once may always be fewer, so a rate counts for all greater depths, too.
 * Two longer measurements show what the device sustains: so many MB and so
 * many requests a second (clouds' disks).  No point counts for more.
 *
 * Measurements grow stale.  A sort that writes past the page cache has bounds
 * that no other load can falsify: bytes / elapsed <= rate <= bytes / blocked.
 * A rate outside of them is moved to the nearer bound, and all other rates in
 * proportion.  One that is far outside belongs to another device; the whole
 * profile is forgotten then.
 *
 * Pure arithmetic over numbers that may be nonsense; nothing is owned and
 * nothing can fail.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <math.h>

#include "base/device.h"

/* No device does more; a greater number is a mistake. */
#define RATE_MAX_MB		1e6

/* This part of the best rate is as good as the best. */
#define NEARLY_ALL		0.95

/* The bounds of a rate are near enough for a guess within this factor. */
#define BOUNDS_NEAR		3.0

/* A rate that is wrong by more than this factor says nothing. */
#define FAR_OUTSIDE		2.0

const char *const fms_pattern_names[FMS_PATTERNS] = {
	"SR", "RR", "SW", "RW", "RR lasting", "append", "give back"
};

static int
index_of(int64 value, int64 first, int n)
{
	for (int i = 0; i < n; i++)
	{
		if (first << i == value)
			return i;
	}
	return -1;
}

int
fms_device_block_index(int64 block_bytes)
{
	return index_of(block_bytes, FMS_DEVICE_BLOCK_BYTES(0),
					FMS_DEVICE_BLOCKS);
}

int
fms_device_depth_index(int64 depth)
{
	return index_of(depth, FMS_DEVICE_DEPTH(0), FMS_DEVICE_DEPTHS);
}

static bool
is_rate(double mb)
{
	/* false for NaN, too */
	return mb > 0 && mb <= RATE_MAX_MB;
}

void
fms_device_note(FmsDevice *device, FmsPattern pattern, int64 block_bytes,
				int64 depth, double mb)
{
	int			block_index = fms_device_block_index(block_bytes);
	int			depth_index = fms_device_depth_index(depth);

	if (block_index < 0 || depth_index < 0 || !is_rate(mb))
		return;
	if (pattern == FMS_PATTERN_RR)
		device->read_mb[block_index][depth_index] = mb;
	else if (pattern == FMS_PATTERN_RR_LASTING)
	{
		device->lasting_mb = Max(device->lasting_mb, mb);
		device->lasting_requests = Max(device->lasting_requests,
									   mb / block_bytes);
	}
	else if (pattern == FMS_PATTERN_APPEND)
		device->write_mb = mb;
	else if (pattern == FMS_PATTERN_GIVE_BACK)
		device->give_back_mb = mb;
	device->known |= pattern == FMS_PATTERN_RR ||
		pattern == FMS_PATTERN_APPEND;
}

/* The best rate at one of the sizes with depths up to depth_index. */
static double
rate_at(const FmsDevice *device, int block_index, int depth_index)
{
	double		best = 0;
	int			i;

	for (i = 0; i <= depth_index; i++)
		best = Max(best, device->read_mb[block_index][i]);
	return best;
}

/* That at any depth, by its logarithm. */
static double
rate_between(const FmsDevice *device, int block_index, double depth_log)
{
	int			below = (int) depth_log;
	double		low = rate_at(device, block_index, below);
	double		high;

	if (below >= FMS_DEVICE_DEPTHS - 1)
		return low;
	high = rate_at(device, block_index, below + 1);
	return low + (high - low) * (depth_log - below);
}

/* The rate in a short measurement. */
static double
momentary_mb(const FmsDevice *device, uint32 block_bytes, uint32 depth)
{
	double		block_log = log2(Max(block_bytes, 512) / 512.0);
	double		depth_log = log2(Max(depth, 1));
	int			below;
	int			above;
	double		low;
	double		high;

	block_log = Min(block_log, FMS_DEVICE_BLOCKS - 1);
	depth_log = Min(depth_log, FMS_DEVICE_DEPTHS - 1);

	/* the nearest sizes that were measured, from either side */
	for (below = (int) block_log; below >= 0; below--)
	{
		if (rate_at(device, below, FMS_DEVICE_DEPTHS - 1) > 0)
			break;
	}
	for (above = (int) ceil(block_log); above < FMS_DEVICE_BLOCKS; above++)
	{
		if (rate_at(device, above, FMS_DEVICE_DEPTHS - 1) > 0)
			break;
	}
	if (below < 0 && above >= FMS_DEVICE_BLOCKS)
		return 0;
	if (below < 0)
		return rate_between(device, above, depth_log) *
			block_bytes / FMS_DEVICE_BLOCK_BYTES(above);
	low = rate_between(device, below, depth_log);
	if (above >= FMS_DEVICE_BLOCKS || above == below)
		return low;
	high = rate_between(device, above, depth_log);
	return low + (high - low) * (block_log - below) / (above - below);
}

double
fms_device_read_mb(const FmsDevice *device, uint32 block_bytes, uint32 depth)
{
	double		mb = momentary_mb(device, block_bytes, depth);
	double		lasting = Min(device->lasting_mb,
							  (double) device->lasting_requests * block_bytes);

	return lasting > 0 ? Min(mb, lasting) : mb;
}

double
fms_device_best_mb(const FmsDevice *device, uint32 block_bytes)
{
	return fms_device_read_mb(device, block_bytes,
							  FMS_DEVICE_DEPTH(FMS_DEVICE_DEPTHS - 1));
}

uint32
fms_device_enough_depth(const FmsDevice *device, uint32 block_bytes)
{
	double		best;
	int			i;

	/* asked for every sort, however small */
	if (!device->known)
		return 0;
	best = fms_device_best_mb(device, block_bytes);
	if (best <= 0)
		return 0;
	for (i = 0; i < FMS_DEVICE_DEPTHS - 1; i++)
	{
		if (fms_device_read_mb(device, block_bytes, FMS_DEVICE_DEPTH(i)) >=
			NEARLY_ALL * best)
			break;
	}
	return FMS_DEVICE_DEPTH(i);
}

double
fms_device_round_trip_mb(const FmsDevice *device, uint32 block_bytes,
						 bool async_reads)
{
	double		write_mb = device->write_mb;
	double		read_mb = async_reads ?
		fms_device_best_mb(device, block_bytes) :
		fms_device_read_mb(device, block_bytes, 1);

	if (write_mb <= 0)
		return 0;
	if (read_mb <= 0)
		read_mb = write_mb;
	return 1 / (1 / write_mb + 1 / read_mb);
}

/* All rates, so many times what they were. */
static void
scale(FmsDevice *device, double factor)
{
	int			i;
	int			j;

	device->write_mb *= factor;
	device->lasting_mb *= factor;
	device->lasting_requests *= factor;
	for (i = 0; i < FMS_DEVICE_BLOCKS; i++)
	{
		for (j = 0; j < FMS_DEVICE_DEPTHS; j++)
			device->read_mb[i][j] *= factor;
	}
}

bool
fms_device_correct(FmsDevice *device, const FmsSeen *seen)
{
	/* bytes a microsecond are MB a second */
	double		least = seen->elapsed_us > 0 ?
		seen->bytes / seen->elapsed_us : 0;
	double		most = seen->blocked_us > 0 ?
		seen->bytes / seen->blocked_us : RATE_MAX_MB;
	bool		forgotten;

	if (!is_rate(least) || !is_rate(most) || least > most)
		return false;
	forgotten = device->write_mb > most * FAR_OUTSIDE ||
		(device->write_mb > 0 && device->write_mb * FAR_OUTSIDE < least);
	if (forgotten)
		memset(device, 0, sizeof(*device));
	if (device->write_mb <= 0)
	{
		if (most > least * BOUNDS_NEAR)
			return forgotten;
		device->write_mb = sqrt(least * most);
		return true;
	}
	if (device->write_mb >= least && device->write_mb <= most)
		return false;
	scale(device, (device->write_mb < least ? least : most) /
		  device->write_mb);
	return true;
}
