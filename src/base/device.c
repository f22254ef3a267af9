/*-------------------------------------------------------------------------
 *
 * device.c
 *	  Profile of the device under a sort's temporary files.
 *
 * fmsort_calibrate() measures random reads on a grid of block sizes and queue
 * depths, their limits in the long run, and how fast runs are written.
 *
 * Pure arithmetic over numbers that may be nonsense.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <math.h>

#include "base/device.h"

#define DEPTH_MAX		FMS_DEVICE_DEPTH(FMS_DEVICE_DEPTHS - 1)

/* MB/s; no device reaches it. */
#define RATE_MAX_MB		1e6

/* The fraction of the best rate that counts as the best. */
#define NEARLY_ALL		0.95

/* Two bounds within this factor give a rate. */
#define BOUNDS_NEAR		3.0

/* A profile that is wrong by more than this factor is another device's. */
#define FAR_OUTSIDE		2.0

const char *const fms_pattern_names[FMS_PATTERNS] = {
	"SR", "RR", "SW", "RW", "RR lasting", "append"
};

int
fms_device_pattern_index(const char *name)
{
	for (int i = 0; i < FMS_PATTERNS; i++)
	{
		if (pg_strcasecmp(name, fms_pattern_names[i]) == 0)
			return i;
	}
	return -1;
}

/* The i with first << i == value. */
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
	return index_of(block_bytes, FMS_DEVICE_BLOCK_BYTES(0), FMS_DEVICE_BLOCKS);
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
	device->known |= pattern == FMS_PATTERN_RR ||
		pattern == FMS_PATTERN_APPEND;
}

/*
 * The best rate of a measured block size with at most that depth: disturbances
 * only slow a measurement down.
 */
static double
rate_at(const FmsDevice *device, int block_index, uint32 depth)
{
	double		best = device->read_mb[block_index][0];

	for (int i = 1; i < FMS_DEVICE_DEPTHS && FMS_DEVICE_DEPTH(i) <= depth; i++)
		best = Max(best, device->read_mb[block_index][i]);
	return best;
}

/*
 * A block size that was not measured counts as the next smaller one that was,
 * or else as a part of the next larger one.
 */
double
fms_device_read_mb(const FmsDevice *device, uint32 block_bytes, uint32 depth)
{
	double		lasting = Min(device->lasting_mb,
							  (double) device->lasting_requests * block_bytes);
	double		mb = 0;
	int			i;

	for (i = FMS_DEVICE_BLOCKS - 1; i >= 0 && mb <= 0; i--)
	{
		if (FMS_DEVICE_BLOCK_BYTES(i) <= block_bytes)
			mb = rate_at(device, i, depth);
	}
	for (i = 0; i < FMS_DEVICE_BLOCKS && mb <= 0; i++)
		mb = rate_at(device, i, depth) * block_bytes /
			FMS_DEVICE_BLOCK_BYTES(i);
	return lasting > 0 ? Min(mb, lasting) : mb;
}

uint32
fms_device_enough_depth(const FmsDevice *device, uint32 block_bytes)
{
	double		best;
	uint32		depth = 1;

	/* every sort asks, however small */
	if (!device->known)
		return 0;
	best = fms_device_read_mb(device, block_bytes, DEPTH_MAX);
	if (best <= 0)
		return 0;
	while (fms_device_read_mb(device, block_bytes, depth) < NEARLY_ALL * best)
		depth *= 2;
	return depth;
}

double
fms_device_round_trip_mb(const FmsDevice *device, uint32 block_bytes,
						 bool async_reads)
{
	double		write_mb = device->write_mb;
	double		read_mb = fms_device_read_mb(device, block_bytes,
											 async_reads ? DEPTH_MAX : 1);

	if (write_mb <= 0)
		return 0;
	if (read_mb <= 0)
		read_mb = write_mb;
	return 1 / (1 / write_mb + 1 / read_mb);
}

/* Multiplies all rates. */
static void
scale(FmsDevice *device, double factor)
{
	device->write_mb *= factor;
	device->lasting_mb *= factor;
	device->lasting_requests *= factor;
	for (int i = 0; i < FMS_DEVICE_BLOCKS; i++)
	{
		for (int j = 0; j < FMS_DEVICE_DEPTHS; j++)
			device->read_mb[i][j] *= factor;
	}
}

/*
 * No other load can falsify the bounds bytes / elapsed <= rate <= bytes /
 * blocked.  A write rate outside moves to the nearer bound, and all other
 * rates in proportion.  If it is far outside, the profile is forgotten.
 */
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
