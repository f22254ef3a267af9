/*-------------------------------------------------------------------------
 *
 * predict.c
 *	  What a sort of so many bytes would do, and how long it would take.
 *
 * What it would do is asked of sizing.c, the same code that decides for sorts.
 * How long it takes is the model of Ajwani et al., reads and writes each at
 * the price that was measured for their size and depth, beside the processor's
 * time for the tuples:
 *
 *	  device		x * c_R(block, l)  +  y * c_W
 *	  processor		tuples * (a + b * bytes + w(runs, keys)) + x * d(l)
 *
 *	  processor  |####|####|####|####|		  the longer is what it takes,
 *	  device	 |======|======|======|======| and what of the shorter does
 *				 |       merge    |blocked|  not overlap
 *
 * The two overlap because the merge reads ahead and runs are written while the
 * next tuples are sorted.  The l assist blocks and the one that is exhausted
 * next go round, from the device to the merge and back, and either stands
 * still when the other has them all: hardly ever where l is large or one of
 * them is much faster, most with a single assist block, which is read while
 * the merge comes to the end of another.  The device also goes on while
 * whoever reads the sorted tuples does something with them, which is no part
 * of the merge's time.
 *
 * That is where blocks are wanted one after the other.  All runs begin with
 * the merge, though, and are read at the same pace: at first, all come to the
 * end of a block at once.  With each block they drift apart, large ones in per
 * cent of their length the least.  Until they have, no more of the blocks that
 * are wanted at once can have been read ahead than there are assist blocks.
 *
 * Blocks that begin with the same key lie one behind the other in the block
 * read order as in their run.  If they are asked for at once, they are one
 * read.
 *
 * A tuple costs most where the merge changes runs, which it does the less
 * often the more alike keys a run has: it takes them all before it looks
 * elsewhere.  So w is a price for changing runs, times what depends on how
 * many are alike and on how many runs there are.
 *
 * An earlier pass writes what it has merged: to the processor nearly what
 * writing a run is, and for each block what reading one is; to the device as
 * many bytes as it reads, at the rate that was measured for both by turns.
 *
 * A spill that is compressed (compression.c) is less than half as large, and
 * costs the processor a price a byte in run formation and in the merge.
 *
 * A spill that stays in the page cache costs no I/O, and as a rule no space on
 * the device.  The processor has prices of its own for each of the two: there
 * it copies, here it works for the driver.  Where memory has no room for it
 * beside the pages of what is sorted, the kernel begins to write, and has
 * others take the place of what has been written.  The merge then reads that
 * from the device:
 *
 *	  memory	|= input ===|= spill ====|
 *	  overflow				  |--------------|	as much has to go, of the
 *												spill only what was written
 *
 * Arithmetic; nothing is owned and nothing can fail.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <math.h>

#include "cache.h"
#include "compression.h"
#include "entries.h"
#include "io.h"
#include "medium.h"
#include "mode.h"
#include "predict.h"
#include "record.h"
#include "run.h"
#include "sizing.h"

/* In memory each record has an entry besides. */
#define ENTRY_BYTES			sizeof(FmsEntry)

/*
 * A tuple's price in the merge was measured with so many runs, of which each
 * has so many of a key (tuple_cost.c).  The part of it that is for changing
 * runs is gone with a hundred alike, and twice as much where all differ.
 *
 * Each further run has a block, and in it a line and a page, that the
 * processor's caches have to hold as well when the merge comes back to it.
 * With each they hold a smaller part of all, and in the end none: then a
 * change costs so many times more, of which a third is still to come after so
 * many runs.  (What the tree's further levels cost does not show beside it.)
 */
#define PRICED_RUNS			10
#define PRICED_ALIKE		8
#define RUNS_FRACTION_MAX	6.7
#define RUNS_IN_CACHES		70

/*
 * Whoever reads the sorted tuples takes so long for one at the least, before
 * it asks for the next: no part of the merge, but the device goes on.
 */
#define READER_NS			12.0

/*
 * So much of what a block costs in the page cache it costs as a part of a
 * larger read, too: it is copied all the same, page by page.
 */
#define CACHED_PART			0.4

/* See at_once_part(): the root of 2 pi. */
#define NORMAL_WIDTH		2.5066

/*
 * Compressing: how many times smaller records get (rows of texts and numbers
 * mostly 2.1 to 2.5), and what it takes, a byte as it was before.
 */
#define COMPRESSION_GAIN	2.25
#define COMPRESS_BYTE_NS	1.8
#define UNPACK_BYTE_NS		0.25

/*
 * In an earlier pass a tuple is neither taken in nor sorted, only copied and
 * written: so much of what a byte costs in run formation.  In the page cache
 * that was measured with pages which were made for it, while a pass writes
 * over those that it has read.
 */
#define REWRITE_PART		0.6
#define REWRITE_CACHED_PART	0.35

/*
 * What reading a byte into the page cache takes, where memory is full: a page
 * for it has to be found, which means that another one goes.
 */
#define RECLAIM_BYTE_NS		0.4

/*
 * A pass is held up by its writes as well, which have few buffers and wait
 * behind the reads that are under way: as if so many blocks went round.
 */
#define PASS_BLOCKS			2

/*
 * The kernel writes some time after it could have begun to, so what is pushed
 * out grows faster than what may have been written: measured with devices that
 * write 5, 20 and 60 per cent of a spill in the time.
 */
#define PUSHED_OUT_POWER	1.5

/* See sort.c: the first runs are parts of memory, and a small rest is none. */
#define FIRST_RUNS			4
#define REST_FRACTION		4

/* The last merge; or all before it, which write what they merge. */
typedef struct Stage
{
	bool		writes;
	bool		even;			/* its runs are equally long */
	int			runs;			/* that a merge takes, at most */
	double		bytes;			/* that all its merges read; 0: none */
	double		in_run;			/* tuples, of those that come from memory */
	double		alike;			/* of them, that have the same key */
	uint32		assist_blocks;
	uint32		assist_first;	/* see sizing.h */
	double		joined;			/* blocks in one read */
	double		read_mb;		/* of such reads, MB/s; 0: not known */
	uint32		piece_bytes;	/* of what is written, in one go */
	uint32		pieces;			/* at once */
} Stage;

typedef struct Volumes
{
	double		memory_bytes;	/* all tuples, as they lie in memory */
	double		formation_bytes;	/* memory for them at once */
	double		tape_fraction;	/* of bytes in memory that go to tape */
	double		gain;			/* how many times smaller than the records what
								 * is written is; 1: not compressed */
	double		in_block;		/* tuples */
	Stage		passes;
	Stage		last;
} Volumes;

/* Counts the runs that sort.c would write, and what stays in memory. */
static void
form_runs(const FmsSizing *sizing, const Volumes *volumes,
		  FmsPrediction *prediction)
{
	double		memory = volumes->formation_bytes;
	double		left = volumes->memory_bytes - memory;
	double		kept = memory;
	double		rest;

	for (; left > 0; prediction->runs++)
	{
		int			runs = Min(prediction->runs, FIRST_RUNS);
		double		part = ldexp(memory, Max(runs, 1) - FIRST_RUNS);

		/* memory is full of what has come since */
		kept = memory - Max(0, part - left);
		left -= part;
	}
	rest = fms_sizing_rest(sizing, prediction->runs, 0);
	if (kept > rest)
	{
		if (rest < kept / REST_FRACTION)
			rest = 0;
		prediction->runs++;
		kept = rest;
	}
	prediction->kept_bytes = kept;
	prediction->spilled_bytes = (volumes->memory_bytes - kept) *
		volumes->tape_fraction;
}

/* Would they be compressed?  Then they are smaller from here on. */
static void
compress(const FmsOptions *options, FmsSizing *sizing, Volumes *volumes,
		 FmsPrediction *prediction)
{
	prediction->compressed =
		fms_compression_expected(options, sizing->block_bytes,
								 prediction->spilled_bytes);
	volumes->gain = prediction->compressed ? COMPRESSION_GAIN : 1;
	prediction->spilled_bytes /= volumes->gain;
	sizing->bundled = prediction->compressed;
}

/* Runs that have been through as many passes, about as large each. */
typedef struct Level
{
	int			runs;
	double		bytes;			/* of all of them */
} Level;

/* Takes so many runs away; returns their bytes. */
static double
take_runs(Level *level, int runs)
{
	double		bytes = level->runs > 0 ?
		level->bytes * runs / level->runs : 0;

	level->runs -= runs;
	level->bytes -= bytes;
	return bytes;
}

/* See fms_spill_reduce(): those that are smallest are merged first. */
static void
plan_passes(FmsSizing *sizing, Volumes *volumes, FmsPrediction *prediction)
{
	Level		now = {prediction->runs, prediction->spilled_bytes};
	Level		merged = {0, 0};
	int			most = fms_sizing_fan_in(sizing, 0, true);
	int			passes = 1;		/* through which `merged` has been */
	int			last;

	sizing->rest_bytes = prediction->kept_bytes;
	last = fms_sizing_fan_in(sizing, 0, false);
	volumes->passes.writes = volumes->passes.even = true;
	volumes->passes.runs = Min(most, now.runs);
	prediction->merge_passes = 1;
	while (now.runs + merged.runs > last)
	{
		int			n = Min(most, now.runs + merged.runs - last + 1);
		int			small = Min(n, now.runs);
		double		bytes = take_runs(&now, small) +
			take_runs(&merged, n - small);

		volumes->passes.bytes += bytes;
		merged.runs++;
		merged.bytes += bytes;
		prediction->merge_passes = Max(prediction->merge_passes,
									   1 + passes + (n > small ? 1 : 0));
		if (now.runs == 0)
		{
			now = merged;
			merged = (Level) {0, 0};
			passes++;
		}
	}
	volumes->last.runs = now.runs + merged.runs;
	volumes->last.bytes = prediction->spilled_bytes;
	volumes->last.even = prediction->merge_passes == 1;
}

/*
 * How often runs change, by how often they did at the measured price, if each
 * has so many of a key.  Level where nearly each tuple changes them.
 */
static double
change_factor(double alike)
{
	return 2 / (1 + pow(alike / PRICED_ALIKE, 1.5));
}

/* How many tuples of a key a run has, on average. */
static double
alike_in_run(int runs, const FmsExpectedInput *input)
{
	return input->keys > 0 ?
		Max(input->tuples / input->keys / Max(runs, 1), 1) : PRICED_ALIKE;
}

/*
 * What the tuples cost in a merge of so many runs that have so many alike,
 * microseconds.
 */
static double
tuples_us(const FmsMergeCost *cost, int runs, double alike,
		  const FmsExpectedInput *input)
{
	double		further = Max(0, runs - PRICED_RUNS);
	double		change = change_factor(alike) *
		(1 + RUNS_FRACTION_MAX * (1 - exp(-further / RUNS_IN_CACHES)));

	/* changing runs is a part of a tuple, unless the table says otherwise */
	return input->tuples / 1000 *
		Max(0, cost->tuple_ns + cost->byte_ns * input->tuple_bytes +
			cost->change_ns * (change - 1));
}

/*
 * How many blocks are one read.  A stretch of such that begin with the same
 * key is asked for in one go as far as that goes, and at the ends of these it
 * is cut.
 */
static double
blocks_in_read(const Stage *stage, double in_block, uint32 block_bytes)
{
	double		batch = fms_io_batch_at_leisure(stage->assist_first);
	double		stretch = stage->alike / in_block;
	double		most = (double) FMS_IO_JOINED_MAX_BYTES / block_bytes;

	return Max(1, Min(Min(stretch / (1 + stretch / batch), most),
					  FMS_IO_PARTS_MAX));
}

/* How it reads, with so many runs of the input at first. */
static void
plan_reads(Stage *stage, const FmsSizing *sizing, const FmsDevice *device,
		   const FmsExpectedInput *input, double in_block, int runs)
{
	uint32		block_bytes = sizing->block_bytes;

	stage->in_run = input->tuples / Max(runs, 1);
	stage->alike = alike_in_run(runs, input);
	stage->assist_blocks = fms_sizing_assist(sizing, stage->runs, 0,
											 stage->writes);
	stage->assist_first = fms_sizing_assist_first(sizing,
												  stage->assist_blocks);
	stage->joined = blocks_in_read(stage, in_block, block_bytes);
	stage->piece_bytes = fms_run_piece_bytes(sizing->output_bytes,
											 block_bytes);
	stage->pieces = sizing->writer_bytes / stage->piece_bytes;
	stage->read_mb = fms_device_merge_mb(device, block_bytes,
										 stage->assist_blocks,
										 stage->joined);
}

/* What the merge was measured to cost there. */
static const FmsMergeCost *
merge_cost(const FmsTupleCost *cost, bool cached)
{
	bool		measured = cost->direct.tuple_ns > 0 ||
		cost->direct.byte_ns > 0;

	return cached || !measured ? &cost->cached : &cost->direct;
}

/*
 * What a block costs: its part of a read, and of asking for some at once: as
 * many as if the device were ahead, since otherwise it decides.
 */
static double
block_cost_us(const FmsMergeCost *cost, const Stage *stage, bool cached)
{
	double		batch = fms_io_batch_at_leisure(stage->assist_first);
	double		part = 1 / stage->joined;

	if (cached)
		part = CACHED_PART + (1 - CACHED_PART) * part;
	return (cost->block_ns * part + cost->submit_ns / batch) / 1000;
}

/* What writing one costs: each is asked for by itself, and does not wait. */
static double
write_cost_us(const FmsMergeCost *cost, const Stage *stage)
{
	return stage->writes ? (cost->block_ns + cost->submit_ns) / 1000 : 0;
}

/*
 * What part of the reads cannot be ahead of the merge, as more blocks are
 * wanted at once than there are assist blocks?  After half of its blocks, a
 * run is off its pace by about the root of the tuples that have gone: that is
 * the deviation of a normal distribution, which is as dense in its middle as
 * an even one some times as wide.  Runs that are not equally long are off each
 * other's pace from the beginning; and a stage that writes reads for half of
 * the time.
 */
static double
at_once_part(const Stage *stage, double in_block)
{
	double		drift = sqrt(stage->in_run / 2) / in_block;
	double		behind = stage->runs - (double) stage->assist_blocks;
	double		reads = stage->writes ? 0.5 : 1;

	if (!stage->even || behind <= 0)
		return 0;
	return reads * behind / stage->runs * Max(0, 1 - NORMAL_WIDTH * drift);
}

/*
 * What part of the shorter of the two does not overlap, if blocks go round
 * between the device and the processor, so many of them, and each takes its
 * time for one by chance: a closed network of two queues.
 */
static double
alone_part(double shorter, double longer, double blocks)
{
	double		ratio = shorter / longer;

	/* the limit of what comes below */
	if (ratio > 0.999)
		return 1 / blocks;
	return pow(ratio, blocks - 1) * (1 - ratio) / (1 - pow(ratio, blocks));
}

/*
 * How many reads' worth of blocks go round?  The assist blocks, and what the
 * merge empties next.  And a run whose block is exhausted has none until its
 * fence wins, a tuple of its own later: so many frames more are free.
 */
static double
blocks_that_go_round(const Stage *stage, double in_block)
{
	double		read = (stage->assist_blocks + stage->runs / in_block) /
		stage->joined + 1;

	return stage->writes ? Min(read, PASS_BLOCKS) : read;
}

/* How long is the stage blocked, if it and the rest are busy that long? */
static double
blocked_us(double device_us, double busy_us, const Stage *stage,
		   double in_block)
{
	double		shorter = Min(device_us, busy_us);
	double		longer = Max(device_us, busy_us);

	if (shorter <= 0)
		return device_us;
	return longer - busy_us + shorter *
		Max(alone_part(shorter, longer, blocks_that_go_round(stage, in_block)),
			at_once_part(stage, in_block));
}

/* Microseconds for so many bytes at so many MB/s. */
static double
transfer_us(double bytes, double mb)
{
	return mb > 0 ? bytes / mb : 0;
}

/*
 * How many bytes of a spill in the page cache a merge of all of it reads from
 * the device.  While memory is full, the device takes as many as it can.
 * Those can be taken away as the input's pages can, in that proportion; and
 * what comes back takes a place again, another byte's for each.
 */
static double
pushed_out_bytes(const FmsDevice *device, double formation_us, double bytes)
{
	double		overflow = fms_cache_overflow_bytes(bytes, 0);
	double		full_us = formation_us * Min(overflow / bytes, 1);
	double		written_part = Min(device->write_mb * full_us / bytes, 1);

	return Min(overflow * pow(written_part, PUSHED_OUT_POWER), bytes);
}

/* What the tuples and blocks of a stage cost the processor. */
static double
busy_us(const Stage *stage, const FmsTupleCost *cost,
		const FmsExpectedInput *input, const FmsPrediction *prediction,
		double gain)
{
	bool		cached = prediction->cached;
	const FmsMergeCost *each = merge_cost(cost, cached);
	double		byte_ns = 0;

	if (stage->writes)
		byte_ns += cost->formation_byte_ns *
			(cached ? REWRITE_CACHED_PART : REWRITE_PART);
	if (prediction->compressed)
		byte_ns += gain * (UNPACK_BYTE_NS +
						   (stage->writes ? COMPRESS_BYTE_NS : 0));
	return tuples_us(each, stage->runs, stage->alike, input) *
		stage->bytes / prediction->spilled_bytes +
		stage->bytes / prediction->block_bytes *
		(block_cost_us(each, stage, cached) + write_cost_us(each, stage)) +
		stage->bytes * byte_ns / 1000;
}

static double
formation_us(const FmsTupleCost *cost, const FmsExpectedInput *input,
			 const Volumes *volumes, const FmsPrediction *prediction)
{
	double		us = input->tuples / 1000 *
		(cost->formation_ns + cost->formation_byte_ns * input->tuple_bytes);

	if (prediction->compressed)
		us += prediction->spilled_bytes * volumes->gain *
			COMPRESS_BYTE_NS / 1000;
	return us;
}

/* What the device does for a stage, if all comes from it. */
static double
direct_us(const Stage *stage, const FmsDevice *device)
{
	return stage->writes ?
		fms_device_rewrite_us(device, stage->bytes, stage->read_mb,
							  stage->piece_bytes, stage->pieces) :
		transfer_us(stage->bytes, stage->read_mb);
}

/*
 * A stage's time, and what of it is waiting.  If the spill is in the page
 * cache, so many of its bytes are not, each stage reads its part of them, and
 * getting them back is work besides.
 */
static void
predict_stage(const Stage *stage, const FmsDevice *device,
			  const FmsTupleCost *cost, const FmsExpectedInput *input,
			  const Volumes *volumes, double pushed_out,
			  FmsPrediction *prediction)
{
	double		busy;
	double		blocked;
	double		reader_us = stage->writes ? 0 :
		input->tuples * READER_NS / 1000;
	double		device_us;

	if (stage->bytes <= 0)
		return;
	pushed_out *= stage->bytes / prediction->spilled_bytes;
	busy = busy_us(stage, cost, input, prediction, volumes->gain) +
		pushed_out * RECLAIM_BYTE_NS / 1000;
	device_us = prediction->cached ?
		transfer_us(pushed_out, stage->read_mb) : direct_us(stage, device);
	blocked = blocked_us(device_us, busy + reader_us, stage,
						 volumes->in_block);
	prediction->merge_us += busy + blocked;
	prediction->blocked_us += blocked;
}

static void
predict_times(const FmsOptions *options, const FmsTupleCost *cost,
			  const FmsExpectedInput *input, const Volumes *volumes,
			  FmsPrediction *prediction)
{
	const FmsDevice *device = &options->device;
	double		bytes = prediction->spilled_bytes;
	double		pushed_out = 0;

	prediction->formation_us = formation_us(cost, input, volumes, prediction);
	if (!prediction->external)
		return;
	if (prediction->cached)
		pushed_out = pushed_out_bytes(device, prediction->formation_us, bytes);
	else
		prediction->formation_us = Max(prediction->formation_us,
									   transfer_us(bytes, device->write_mb));
	predict_stage(&volumes->passes, device, cost, input, volumes, pushed_out,
				  prediction);
	predict_stage(&volumes->last, device, cost, input, volumes, pushed_out,
				  prediction);
}

/* How both stages read, once it is known how many runs each has. */
static void
plan_stages(const FmsOptions *options, const FmsSizing *sizing,
			const FmsExpectedInput *input, double record_bytes,
			Volumes *volumes, FmsPrediction *prediction)
{
	Stage	   *last = &volumes->last;

	volumes->in_block = Max(1, sizing->block_bytes * volumes->gain /
							record_bytes);
	plan_reads(&volumes->passes, sizing, &options->device, input,
			   volumes->in_block, prediction->runs);
	plan_reads(last, sizing, &options->device, input, volumes->in_block,
			   last->runs);
	prediction->block_bytes = sizing->block_bytes;
	prediction->assist_blocks = last->assist_blocks;
	prediction->read_mb = last->read_mb;
	prediction->cached = fms_medium_caches(options, sizing->block_bytes,
										   prediction->spilled_bytes);
}

void
fms_predict(const FmsOptions *options, const FmsTupleCost *cost,
			const FmsExpectedInput *input, FmsPrediction *prediction)
{
	FmsSizing	sizing;
	Volumes		volumes = {0};
	double		record_bytes = fms_record_expected_bytes(input->tuple_bytes);

	memset(prediction, 0, sizeof(*prediction));
	fms_sizing_init(&sizing, &fms_mode_fmsort, options);
	volumes.memory_bytes = input->tuples * (record_bytes + ENTRY_BYTES);
	volumes.formation_bytes = Max(sizing.memory_bytes / 4.0,
								  (double) sizing.memory_bytes -
								  sizing.writer_bytes - sizing.fences_bytes);
	volumes.tape_fraction = record_bytes / (record_bytes + ENTRY_BYTES);
	prediction->external = volumes.memory_bytes > volumes.formation_bytes;
	if (prediction->external)
	{
		form_runs(&sizing, &volumes, prediction);
		compress(options, &sizing, &volumes, prediction);
		plan_passes(&sizing, &volumes, prediction);
		plan_stages(options, &sizing, input, record_bytes, &volumes,
					prediction);
	}
	predict_times(options, cost, input, &volumes, prediction);
}
