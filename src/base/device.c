/*-------------------------------------------------------------------------
 *
 * device.c
 *	  Arithmetic over the rates that fmsort_calibrate() measured.
 *
 * The rates are in tables that users may edit, so any value may occur.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "base/device.h"

/* MB/s: more than any device has, and of writing to an unknown device. */
#define RATE_MAX_MB		1e6
#define USUAL_WRITE_MB	1000.0

/* The fraction of the best rate that counts as the best. */
#define NEARLY_ALL		0.95

const char *const fms_pattern_names[FMS_PATTERNS] = {
	"sequential_read", "random_read", "sequential_write", "random_write", "append"
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

static bool
is_rate(double mb)
{
	/* false for NaN, too */
	return mb > 0 && mb <= RATE_MAX_MB;
}

void
fms_device_note(FmsDevice *device, const char *pattern, int64 block_bytes,
				int64 depth, double mb)
{
	int			block = index_of(block_bytes, FMS_DEVICE_BLOCK_BYTES(0),
								 FMS_DEVICE_BLOCKS);
	int			i = index_of(depth, FMS_DEVICE_DEPTH(0), FMS_DEVICE_DEPTHS);

	if (block < 0 || i < 0 || !is_rate(mb))
		return;
	if (pg_strcasecmp(pattern, fms_pattern_names[FMS_PATTERN_RR]) == 0)
		device->read_mb[block][i] = mb;
	else if (pg_strcasecmp(pattern,
						   fms_pattern_names[FMS_PATTERN_APPEND]) == 0)
		device->write_mb = mb;
	else
		return;
	device->known = true;
}

/* The best rate with at most that depth, of the next smaller known block. */
double
fms_device_read_mb(const FmsDevice *device, uint32 block_bytes, uint32 depth)
{
	double		mb = 0;

	for (int i = FMS_DEVICE_BLOCKS - 1; i >= 0 && mb <= 0; i--)
	{
		if (FMS_DEVICE_BLOCK_BYTES(i) > block_bytes)
			continue;
		for (int j = 0; j < FMS_DEVICE_DEPTHS; j++)
		{
			if (FMS_DEVICE_DEPTH(j) <= depth)
				mb = Max(mb, device->read_mb[i][j]);
		}
	}
	return mb;
}

uint32
fms_device_enough_depth(const FmsDevice *device, uint32 block_bytes)
{
	double		best;
	uint32		depth = 1;

	if (device == NULL || !device->known)
		return 0;
	best = fms_device_read_mb(device, block_bytes, FMS_DEVICE_DEPTH_MAX);
	if (best <= 0)
		return 0;
	while (fms_device_read_mb(device, block_bytes, depth) < NEARLY_ALL * best)
		depth *= 2;
	return depth;
}

double
fms_device_round_trip_mb(const FmsDevice *device, uint32 block_bytes)
{
	double		write_mb = device->write_mb;
	double		read_mb = fms_device_read_mb(device, block_bytes,
											 FMS_DEVICE_DEPTH_MAX);

	if (write_mb <= 0)
		return 0;
	if (read_mb <= 0)
		read_mb = write_mb;
	return 1 / (1 / write_mb + 1 / read_mb);
}

/* Rate of n devices and another one. */
static double
stripe_mb(double mb, double other_mb, int n)
{
	return Min(mb / n, other_mb) * (n + 1);
}

void
fms_device_add_stripe(FmsDevice *device, const FmsDevice *other, int n)
{
	device->known = device->known && other->known;
	device->write_mb = stripe_mb(device->write_mb, other->write_mb, n);
	for (int i = 0; i < FMS_DEVICE_BLOCKS; i++)
	{
		for (int j = 0; j < FMS_DEVICE_DEPTHS; j++)
			device->read_mb[i][j] = stripe_mb(device->read_mb[i][j],
											  other->read_mb[i][j], n);
	}
}

/*
 * bytes / elapsed <= rate <= bytes / blocked, whatever else loads the device.
 * A write rate outside moves there, and the rates of reads in proportion.
 */
bool
fms_device_correct(FmsDevice *device, const FmsSeen *seen)
{
	/* bytes a microsecond are MB a second */
	double		least = seen->elapsed_us > 0 ?
		seen->bytes / seen->elapsed_us : 0;
	double		most = seen->blocked_us > 0 ?
		seen->bytes / seen->blocked_us : RATE_MAX_MB;
	double		before = device->write_mb > 0 ? device->write_mb :
		USUAL_WRITE_MB;
	double		after = Max(least, Min(before, most));

	if (!is_rate(least) || !is_rate(most) || after == before)
		return false;
	device->write_mb = after;
	for (int i = 0; i < FMS_DEVICE_BLOCKS; i++)
	{
		for (int j = 0; j < FMS_DEVICE_DEPTHS; j++)
			device->read_mb[i][j] *= after / before;
	}
	return true;
}
