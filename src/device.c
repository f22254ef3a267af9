/*-------------------------------------------------------------------------
 *
 * device.c
 *	  What is known of the device under a sort: how fast it reads in which
 *	  pieces.
 *
 * A merge reads blocks in an order that the device cannot guess, so what
 * matters is the rate of random reads, and that depends on their size and on
 * how many are under way at once:
 *
 *	  MB/s			depth 1   2   4 ..  64
 *	    512 B		      .   .   .      .
 *	    1 kB		      .   .   .      .		measured (calibrate.c)
 *	    ..
 *	    4 MB		      .   .   .      .
 *
 * Between the points the rate goes by the logarithm of size and depth, which
 * is how devices scale: straight up, then level.
 *
 * A point is a short measurement and may have been disturbed, and disturbances
 * only slow things down.  A reader that has l requests to give may always give
 * fewer, so a rate counts for all greater depths, too.  Choices compare the
 * best rates; what is foreseen is a mean of those that are nearly as good.
 *
 * And of sizes: a read takes a time, and each byte of it, so those of half a
 * size and of twice as much lie on a line with its own.  What disturbed one of
 * the three has hardly disturbed the others.  So the line between the two
 * counts twice as much as what was measured on it:
 *
 *	  us		|				o
 *	  a read	|		 x
 *				|	o
 *				+---------------- bytes
 *
 * What a short measurement does not see is a limit that a device keeps over
 * some time, as clouds' disks do: so many MB and so many requests a second,
 * but the first after a pause at any rate.  Two long measurements see it, and
 * no point counts for more than they allow:
 *
 *	  MB/s		      .   .   .
 *	    ------------.-----------		MB/s, of large blocks
 *	          /   .
 *	        / .							requests a second, of small ones
 *
 * Nor does a measurement use what it reads.  A merge does, so its blocks are
 * in the processor's caches when the device fills them again.  A device that
 * copies, as a host does for a virtual disk, has to get each line from there
 * first.  One more measurement uses what it reads (`RR used`), and by a part
 * of what it took longer for a byte, a merge does.
 *
 * Measurements grow stale, and copies of a database move to other devices.  A
 * sort that writes bytes past the page cache has bounds for the rate that
 * cannot be wrong, however busy it is otherwise, since the device writes while
 * the sort waits for it, and writes no more than it was given:
 *
 *	  elapsed   |---------------------------------|	 bytes / elapsed  <=  rate
 *	  blocked      |----|      |---|        |---|	 rate  <=  bytes / blocked
 *
 * A rate outside of them is moved to the nearer one, and the rates of reads
 * are moved in proportion: whatever made the ones wrong has hardly spared the
 * others.  One that is far outside was measured on something else (another
 * disk, another limit of a cloud's).  The bound says how wrong it is at least,
 * not what is right, so nothing of it counts any more.
 *
 * In the end, a sort's files give their space back.  To a file system that is
 * cheap, unless it tells the device of each stretch (the mount option
 * "discard"): then it may take as long as reading did, and is a part of the
 * round trip.
 *
 * Pure arithmetic over numbers that may be nonsense; nothing is owned and
 * nothing can fail.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <math.h>

#include "device.h"

/* No device does more; a greater number is a mistake. */
#define RATE_MAX_MB		1e6

/* This part of the best rate is as good as the best. */
#define NEARLY_ALL		0.95

/* And this part is what a measurement of the same may differ by. */
#define NEARLY_USUAL	0.85

/* The bounds of a rate are near enough for a guess within this factor. */
#define BOUNDS_NEAR		3.0

/* A rate that is wrong by more than this factor says nothing. */
#define FAR_OUTSIDE		2.0

/*
 * A merge does not come back to a block's memory as soon as the measurement
 * does, so that less of it is still in a cache: such a part.  By some hundreds
 * of merges, of which some lose twice as much and some nothing, for seconds at
 * a time.  Those with more memory for blocks than caches hold lose no less:
 * what the device does not wait for, the processor does.
 */
#define USED_PART			0.4

/* Larger pieces than were measured may be written so many times as fast. */
#define PIECES_GAIN_MAX	2.0

/* The largest blocks in which reads and writes by turns are measured. */
#define MIXED_BLOCK_BYTES	262144

int
fms_device_block_index(int64 block_bytes)
{
	int			i;

	for (i = 0; i < FMS_DEVICE_BLOCKS; i++)
	{
		if (FMS_DEVICE_BLOCK_BYTES(i) == block_bytes)
			return i;
	}
	return -1;
}

int
fms_device_depth_index(int64 depth)
{
	int			i;

	for (i = 0; i < FMS_DEVICE_DEPTHS; i++)
	{
		if (FMS_DEVICE_DEPTH(i) == depth)
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
fms_device_note_read(FmsDevice *device, int64 block_bytes, int64 depth,
					 double mb)
{
	int			block_index = fms_device_block_index(block_bytes);
	int			depth_index = fms_device_depth_index(depth);

	if (block_index < 0 || depth_index < 0 || !is_rate(mb))
		return;
	device->read_mb[block_index][depth_index] = mb;
	device->known = true;
}

void
fms_device_note_lasting(FmsDevice *device, int64 block_bytes, double mb)
{
	if (fms_device_block_index(block_bytes) < 0 || !is_rate(mb))
		return;
	device->lasting_mb = Max(device->lasting_mb, mb);
	device->lasting_requests = Max(device->lasting_requests,
								   mb / block_bytes);
}

void
fms_device_note_joined(FmsDevice *device, int64 block_bytes, double mb)
{
	if (fms_device_block_index(block_bytes) < 0 || !is_rate(mb))
		return;
	device->joined_blocks = Max(device->joined_blocks, mb / block_bytes);
}

void
fms_device_note_used(FmsDevice *device, double mb)
{
	if (is_rate(mb))
		device->used_mb = mb;
}

void
fms_device_note_write(FmsDevice *device, double mb)
{
	if (!is_rate(mb))
		return;
	device->write_mb = mb;
	device->known = true;
}

void
fms_device_note_mixed(FmsDevice *device, double mb)
{
	if (is_rate(mb))
		device->mixed_mb = Max(device->mixed_mb, mb);
}

void
fms_device_note_give_back(FmsDevice *device, double mb)
{
	if (is_rate(mb))
		device->give_back_mb = mb;
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

/*
 * The best of several is good by luck as well, so those that are nearly as
 * good count, too.
 */
static double
nearly_best_at(const FmsDevice *device, int block_index, int depth_index)
{
	double		enough = NEARLY_USUAL *
		rate_at(device, block_index, depth_index);
	double		sum = 0;
	int			n = 0;
	int			i;

	for (i = 0; i <= depth_index; i++)
	{
		if (device->read_mb[block_index][i] < enough)
			continue;
		sum += device->read_mb[block_index][i];
		n++;
	}
	return sum / n;
}

/* Microseconds from one such read to the next; 0: not known. */
static double
interval_us(const FmsDevice *device, int block_index, int depth_index)
{
	double		mb;

	if (block_index < 0 || block_index >= FMS_DEVICE_BLOCKS)
		return 0;
	mb = nearly_best_at(device, block_index, depth_index);
	return mb > 0 ? FMS_DEVICE_BLOCK_BYTES(block_index) / mb : 0;
}

/* The usual one: by that size, half of it and twice as much. */
static double
usual_at(const FmsDevice *device, int block_index, int depth_index)
{
	double		us = interval_us(device, block_index, depth_index);
	double		half = interval_us(device, block_index - 1, depth_index);
	double		twice = interval_us(device, block_index + 1, depth_index);

	if (us <= 0)
		return 0;
	if (half > 0 && twice > 0)
		us = (us + 2 * (2 * half + twice) / 3) / 3;
	return FMS_DEVICE_BLOCK_BYTES(block_index) / us;
}

/* One of the two. */
typedef double (*RateAt) (const FmsDevice *device, int block_index,
						  int depth_index);

/* It at any depth, by its logarithm. */
static double
rate_between(const FmsDevice *device, RateAt at, int block_index,
			 double depth_log)
{
	int			below = (int) depth_log;
	double		low = at(device, block_index, below);
	double		high;

	if (below >= FMS_DEVICE_DEPTHS - 1)
		return low;
	high = at(device, block_index, below + 1);
	return low + (high - low) * (depth_log - below);
}

/* The rate in a short measurement. */
static double
momentary_mb(const FmsDevice *device, RateAt at, uint32 block_bytes,
			 uint32 depth)
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
		return rate_between(device, at, above, depth_log) *
			block_bytes / FMS_DEVICE_BLOCK_BYTES(above);
	low = rate_between(device, at, below, depth_log);
	if (above >= FMS_DEVICE_BLOCKS || above == below)
		return low;
	high = rate_between(device, at, above, depth_log);
	return low + (high - low) * (block_log - below) / (above - below);
}

/* What of any rate lasts; 0: not known. */
static double
lasting_mb(const FmsDevice *device, uint32 block_bytes)
{
	return Min(device->lasting_mb,
			   (double) device->lasting_requests * block_bytes);
}

/* A rate that was measured for a moment, as far as it lasts. */
static double
lasting_of(const FmsDevice *device, uint32 block_bytes, double mb)
{
	double		lasting = lasting_mb(device, block_bytes);

	return lasting > 0 ? Min(mb, lasting) : mb;
}

/*
 * A device so slow that measuring it took all the time there was is known by
 * what lasts alone.
 */
static double
or_lasting(const FmsDevice *device, uint32 block_bytes, double mb)
{
	return mb > 0 ? mb : lasting_mb(device, block_bytes);
}

double
fms_device_read_mb(const FmsDevice *device, uint32 block_bytes, uint32 depth)
{
	return lasting_of(device, block_bytes,
					  momentary_mb(device, rate_at, block_bytes, depth));
}

static double
usual_mb(const FmsDevice *device, uint32 block_bytes, uint32 depth)
{
	return lasting_of(device, block_bytes,
					  momentary_mb(device, usual_at, block_bytes, depth));
}

/*
 * What a read takes longer for each block after its first.  The parts that
 * were measured took so much more than as many bytes in one piece.
 */
static double
further_block_us(const FmsDevice *device)
{
	double		bytes = FMS_DEVICE_JOINED_BLOCK_BYTES *
		FMS_DEVICE_JOINED_PARTS;
	double		whole_mb = usual_mb(device, bytes, FMS_DEVICE_JOINED_DEPTH /
									FMS_DEVICE_JOINED_PARTS);

	if (device->joined_blocks <= 0 || whole_mb <= 0)
		return 0;
	return Max(0, FMS_DEVICE_JOINED_PARTS / device->joined_blocks -
			   bytes / whole_mb) / (FMS_DEVICE_JOINED_PARTS - 1);
}

/* With so many blocks in a read. */
static double
joined_mb(const FmsDevice *device, uint32 block_bytes, uint32 depth,
		  double joined)
{
	double		bytes = block_bytes * joined;
	double		whole_mb = usual_mb(device, bytes, depth / joined);

	if (whole_mb <= 0)
		return 0;
	return bytes / (bytes / whole_mb +
					(joined - 1) * further_block_us(device));
}

/* What a byte takes longer, as its place was in a processor's cache. */
static double
used_byte_us(const FmsDevice *device)
{
	double		unused_mb = usual_mb(device, FMS_DEVICE_USED_BLOCK_BYTES,
									 FMS_DEVICE_USED_DEPTH);

	if (device->used_mb <= 0 || unused_mb <= 0)
		return 0;
	return Max(0, 1 / device->used_mb - 1 / unused_mb) * USED_PART;
}

double
fms_device_merge_mb(const FmsDevice *device, uint32 block_bytes,
					uint32 depth, double joined)
{
	double		mb = or_lasting(device, block_bytes,
								usual_mb(device, block_bytes, depth));

	if (joined > 1)
		mb = Max(mb, joined_mb(device, block_bytes, depth, joined));
	return mb > 0 ? 1 / (1 / mb + used_byte_us(device)) : 0;
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
fms_device_round_trip_mb(const FmsDevice *device, uint32 block_bytes)
{
	double		write_mb = device->write_mb;
	double		read_mb = fms_device_best_mb(device, block_bytes);

	if (write_mb <= 0)
		return 0;
	if (read_mb <= 0)
		read_mb = write_mb;
	return 1 / (1 / write_mb + 1 / read_mb +
				(device->give_back_mb > 0 ? 1 / device->give_back_mb : 0));
}

/*
 * Some devices read and write at once, others one or the other.  How many
 * times what they bring by turns is what they bring one after the other?
 * Measured with large blocks, and the same for all: small ones are slower both
 * ways.
 */
static double
mixed_gain(const FmsDevice *device)
{
	double		read_mb = or_lasting(device, MIXED_BLOCK_BYTES,
									 fms_device_best_mb(device,
														MIXED_BLOCK_BYTES));

	if (device->mixed_mb <= 0 || device->write_mb <= 0 || read_mb <= 0)
		return 1;
	return device->mixed_mb * (1 / read_mb + 1 / device->write_mb) / 2;
}

/*
 * What writing takes a byte, in such pieces, so many at once.  It was measured
 * with others.  Smaller or fewer ones take as much longer as reads do, whose
 * time is known for all.
 */
static double
write_byte_us(const FmsDevice *device, uint32 piece_bytes, uint32 pieces)
{
	double		measured_mb = usual_mb(device, FMS_DEVICE_APPEND_BLOCK_BYTES,
									   FMS_DEVICE_APPEND_DEPTH);
	double		read_mb = usual_mb(device, piece_bytes, pieces);
	double		us = device->write_mb > 0 ? 1 / device->write_mb : 0;

	if (us <= 0 || measured_mb <= 0 || read_mb <= 0)
		return us;
	return Max(us / PIECES_GAIN_MAX, us + 1 / read_mb - 1 / measured_mb);
}

double
fms_device_rewrite_us(const FmsDevice *device, double bytes, double read_mb,
					  uint32 piece_bytes, uint32 pieces)
{
	double		read_us = read_mb > 0 ? bytes / read_mb : 0;
	double		write_us = bytes * write_byte_us(device, piece_bytes, pieces);

	return Max((read_us + write_us) / mixed_gain(device),
			   Max(read_us, write_us));
}

/* All rates, so many times what they were. */
static void
scale(FmsDevice *device, double factor)
{
	int			i;
	int			j;

	device->write_mb *= factor;
	device->mixed_mb *= factor;
	device->lasting_mb *= factor;
	device->lasting_requests *= factor;
	device->joined_blocks *= factor;
	device->used_mb *= factor;
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
