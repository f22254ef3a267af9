/*-------------------------------------------------------------------------
 *
 * sizing.c
 *	  How a sort divides its memory: block size, fan-in, assist blocks.
 *
 *	  |<------------------------- work_mem -------------------------->|
 *	  |  n + l blocks  |  tree, order, first keys, long  |  writer or  |
 *	  |                |  records, in-memory run         |  history    |
 *
 * The first run needs the block size, and the number of runs n is known after
 * the last one.  So an automatic block size depends on the planner's estimate
 * of the input: the largest blocks of which the expected runs and the usual
 * assist blocks fit into memory.  A wrong estimate costs a pass or smaller
 * transfers.
 *
 * A block size that was set is kept, and the fan-in falls until the merge
 * fits.  If two runs do not fit, the block size is halved; if this is not
 * enough, the number of assist blocks is.
 *
 * Pure arithmetic: owns nothing, cannot fail.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <math.h>

#include "order/first_key_store.h"
#include "sort/sizing.h"

/* Bytes of an automatic block: a page at least. */
#define AUTO_BLOCK_MIN_BYTES	((uint32) 4 * 1024)
/* ... at most, on a device that was not measured: SSDs gain nothing by more */
#define AUTO_BLOCK_USUAL_BYTES	((uint32) 256 * 1024)
/* ... at most, on one that was: disks gain */
#define AUTO_BLOCK_MAX_BYTES	((uint32) 1024 * 1024)

/*
 * A block of half the size is as good if the device reads it at this part of
 * the rate.  Blocks below CHEAP_BLOCK_BYTES cost processor time.
 */
#define NEARLY_AS_FAST			0.95
#define CHEAP_BLOCK_BYTES		((uint32) 32 * 1024)

/* Automatic l: more reads at once do not make a device faster. */
#define AUTO_ASSIST_MAX			128
/* ... on a device that was not measured */
#define AUTO_ASSIST_USUAL		32
/* ... at the start of a merge, and at least on a measured device */
#define AUTO_ASSIST_FEW			8
/* ... that the fan-in leaves room for */
#define AUTO_ASSIST_MIN			4
/* ... of a mode whose assist blocks take all memory */
#define FILL_ASSIST_MAX			((Size) 1 << 20)

/* Bytes that a merge reads ahead at first: they stay in a core's cache. */
#define FIRST_READ_AHEAD_BYTES	((uint32) 128 * 1024)

/* Runs to expect without an estimate of the input. */
#define RUNS_UNKNOWN			32

/* Runs to be prepared for, as a multiple of those expected. */
#define RUNS_SPARE				1.1

/* The first runs are 1/8, 1/8, 1/4, 1/2 of memory: the input may end soon. */
#define FIRST_RUNS				4

/* Tuples are kept for the last merge if they are this part of all, or more. */
#define KEEP_FRACTION			4

/* Bytes of a run in a merge besides its block and readers of first keys. */
#define RUN_OVERHEAD_BYTES		512

/* Parts of memory: output buffers (and of the expected input, too) */
#define OUTPUT_FRACTION			8
#define OUTPUT_EXPECTED_FRACTION	32
/* ... first keys; the others go to a file */
#define FIRST_KEYS_BYTES(memory)	Max((memory) / 32, (Size) 7 * 512)
/* ... assist blocks beside an in-memory run */
#define READ_AHEAD_FRACTION		8
/* ... what going back in the last merge needs */
#define HISTORY_FRACTION		4

/* Advice is in steps of the least work_mem, up to 64 TB. */
#define ADVICE_STEP_BYTES		((Size) 64 * 1024)
#define ADVICE_MAX_BYTES		((Size) 1 << 46)
/* ... for this part of the runs more: formation leaves some memory unused */
#define ADVICE_RUNS_FRACTION	8

#define FAN_IN_MIN				2
#define FAN_IN_MAX				(1 << 20)

static Size
output_share(const FmsOptions *options)
{
	Size		share = options->memory_bytes / OUTPUT_FRACTION;

	if (options->block_bytes == 0 && options->expected_bytes > 0)
		share = (Size) Min(share,
						   options->expected_bytes / OUTPUT_EXPECTED_FRACTION);
	return share;
}

/* ---- the block size ---- */

/* Assist blocks that a device can use; depth: see FmsSizing.device_depth. */
static uint32
useful_assist(uint32 depth)
{
	return depth > 0 ? Max(depth, AUTO_ASSIST_FEW) : AUTO_ASSIST_USUAL;
}

/* Assist blocks to have room for, if blocks have that size. */
static uint32
expected_assist(const FmsOptions *options, uint32 block_bytes)
{
	return options->assist_blocks > 0 ? options->assist_blocks :
		useful_assist(fms_device_enough_depth(options->device, block_bytes));
}

/* Bytes for each block, with all expected runs and `assist` assist blocks. */
static double
block_share(const FmsOptions *options, uint32 assist)
{
	double		memory = options->memory_bytes;
	Size		first_keys_bytes = FIRST_KEYS_BYTES(options->memory_bytes);
	double		run_bytes = memory - first_keys_bytes -
		fms_run_writer_bytes(output_share(options), AUTO_BLOCK_MIN_BYTES);
	double		runs = FIRST_RUNS * (1 + options->workers) + RUNS_SPARE *
		(options->expected_bytes > 0 ?
		 options->expected_bytes / Max(run_bytes, memory / 4) : RUNS_UNKNOWN);

	return (memory - runs * (RUN_OVERHEAD_BYTES +
							 fms_first_keys_run_bytes())) / (runs + assist);
}

/* Does the device read half as large a block nearly as fast? */
static bool
half_is_as_fast(const FmsDevice *device, uint32 block_bytes, uint32 assist)
{
	return block_bytes / 2 >= CHEAP_BLOCK_BYTES &&
		fms_device_read_mb(device, block_bytes / 2, assist) >=
		NEARLY_AS_FAST * fms_device_read_mb(device, block_bytes, assist);
}

static uint32
automatic_block_bytes(const FmsOptions *options)
{
	bool		measured = fms_device_enough_depth(options->device,
												   AUTO_BLOCK_USUAL_BYTES) > 0;
	uint32		bytes = measured ? AUTO_BLOCK_MAX_BYTES :
		AUTO_BLOCK_USUAL_BYTES;

	for (; bytes > AUTO_BLOCK_MIN_BYTES; bytes /= 2)
	{
		uint32		assist = expected_assist(options, bytes);

		if (bytes <= block_share(options, assist) &&
			!(measured && half_is_as_fast(options->device, bytes, assist)))
			break;
	}
	return bytes;
}

static void
set_block_bytes(FmsSizing *sizing, uint32 block_bytes)
{
	sizing->block_bytes = block_bytes;
	sizing->writer_bytes = fms_run_writer_bytes(sizing->output_bytes,
												block_bytes);
}

/* Half a block.  A device may take whole pages only: pages stay whole. */
static uint32
half_of(uint32 block_bytes)
{
	uint32		half = block_bytes / 2;
	uint32		quantum = half >= FMS_IO_ALIGN_BYTES ? FMS_IO_ALIGN_BYTES :
		FMS_BLOCK_QUANTUM_BYTES;

	return half - half % quantum;
}

/* ---- merges ---- */

/* Assist blocks that a fan-in may not go below. */
static uint32
assist_floor(const FmsSizing *sizing)
{
	return sizing->assist_wanted > 0 ? sizing->assist_wanted :
		AUTO_ASSIST_MIN;
}

static bool
fits(const FmsSizing *sizing, const FmsMergeInput *input, int nruns,
	 uint32 assist, bool writes)
{
	Size		needed = fms_merge_bytes(sizing->mode, &input->first_keys,
										 nruns, assist, sizing->block_bytes,
										 input->largest_bytes,
										 input->compressed);

	/* an input buffer as in run formation leaves the output's alone */
	if (writes || sizing->mode->fills_memory)
		needed += sizing->writer_bytes;
	if (!writes)
		needed += sizing->history_bytes + input->in_memory_run_bytes;
	/* while a result is written, its first keys may use up the share */
	if (writes || input->first_keys.share_bytes == 0)
		needed += sizing->first_keys_bytes;
	else
		needed += input->first_keys.memory_bytes;
	/* descriptions of runs that this merge does not take */
	needed += Max(input->runs - nruns, 0) * FMS_RUN_BYTES;
	return needed <= sizing->memory_bytes;
}

FmsSizing
fms_sizing_choose(const FmsMode *mode, const FmsOptions *options)
{
	FmsMergeInput input = {
		.compressed = options->compression == FMS_COMPRESS_ON
	};
	FmsSizing	sizing = {
		.mode = mode,
		.memory_bytes = options->memory_bytes,
		.output_bytes = output_share(options),
		.first_keys_bytes = FIRST_KEYS_BYTES(options->memory_bytes),
		.history_bytes = options->backward || options->marks ?
		options->memory_bytes / HISTORY_FRACTION : 0,
		.block_was_set = options->block_bytes > 0,
		.workers = options->workers,
		.assist_wanted = options->assist_blocks
	};

	set_block_bytes(&sizing, options->agreed_block_bytes > 0 ?
					options->agreed_block_bytes : options->block_bytes > 0 ?
					options->block_bytes : automatic_block_bytes(options));
	while (options->agreed_block_bytes == 0 &&
		   sizing.block_bytes > FMS_BLOCK_MIN_BYTES &&
		   !fits(&sizing, &input, FAN_IN_MIN, assist_floor(&sizing), true))
		set_block_bytes(&sizing, half_of(sizing.block_bytes));
	while (sizing.assist_wanted > 1 &&
		   !fits(&sizing, &input, FAN_IN_MIN, sizing.assist_wanted, true))
		sizing.assist_wanted /= 2;
	sizing.device_depth = fms_device_enough_depth(options->device,
												  sizing.block_bytes);
	return sizing;
}

/*
 * The most runs, if nruns is 0, or else assist blocks that fit: from `low`,
 * which need not fit, to `high` - 1.
 */
static uint32
most_that_fit(const FmsSizing *sizing, const FmsMergeInput *input, int nruns,
			  bool writes, uint32 low, uint32 high)
{
	while (high - low > 1)
	{
		uint32		middle = low + (high - low) / 2;

		if (nruns > 0 ? fits(sizing, input, nruns, middle, writes) :
			fits(sizing, input, middle, assist_floor(sizing), writes))
			low = middle;
		else
			high = middle;
	}
	return low;
}

int
fms_sizing_fan_in(const FmsSizing *sizing, const FmsMergeInput *input,
				  bool writes)
{
	return most_that_fit(sizing, input, 0, writes, FAN_IN_MIN, FAN_IN_MAX);
}

FmsMergeSize
fms_sizing_merge(const FmsSizing *sizing, const FmsMergeInput *input,
				 int nruns, bool writes)
{
	uint32		most = AUTO_ASSIST_MAX;
	uint32		first = Max(AUTO_ASSIST_FEW,
							FIRST_READ_AHEAD_BYTES / sizing->block_bytes);
	uint32		assist;

	if (!sizing->mode->assists)
		return (FmsMergeSize) {0};
	if (sizing->assist_wanted > 0)
		return (FmsMergeSize) {sizing->assist_wanted, sizing->assist_wanted};
	if (sizing->mode->fills_memory)
		most = Max(most, Min(sizing->memory_bytes / sizing->block_bytes,
							 FILL_ASSIST_MAX));
	assist = most_that_fit(sizing, input, nruns, writes, 1, most + 1);
	return (FmsMergeSize) {assist, Min(assist, first)};
}

/* ---- the in-memory run ---- */

/* Bytes of first keys after one run more, which may send them to the file. */
static Size
first_keys_to_come(const FmsSizing *sizing,
				   const FmsFirstKeyMemory *first_keys, int nruns)
{
	Size		now = first_keys->memory_bytes;
	Size		run = now / Max(nruns, 1);

	if (first_keys->largest_bytes > 0 ||
		now + 2 * run < sizing->first_keys_bytes)
		return Max(now, sizing->first_keys_bytes);
	return sizing->first_keys_bytes +
		(nruns + 1) * fms_first_keys_run_bytes();
}

/* Bytes that tuples may keep beside a merge of `nruns` runs. */
static Size
room_for_tuples(const FmsSizing *sizing, const FmsMergeInput *input,
				int nruns)
{
	Size		memory = sizing->memory_bytes;
	uint32		most_assist = memory / READ_AHEAD_FRACTION /
		sizing->block_bytes;
	uint32		assist = sizing->assist_wanted > 0 ? sizing->assist_wanted :
		Max(AUTO_ASSIST_MIN, Min(useful_assist(sizing->device_depth),
								 most_assist));
	Size		taken;

	/* several passes need all memory */
	if (sizing->block_was_set ||
		nruns >= fms_sizing_fan_in(sizing, input, false))
		return 0;
	/* writing the other tuples makes one run more */
	taken = fms_merge_bytes(sizing->mode, &input->first_keys, nruns + 1,
							assist, sizing->block_bytes, input->largest_bytes,
							input->compressed) +
		first_keys_to_come(sizing, &input->first_keys, nruns) +
		sizing->history_bytes;
	if (sizing->mode->fills_memory)
		taken += sizing->writer_bytes;
	return taken < memory ? memory - taken : 0;
}

Size
fms_sizing_keep_bytes(const FmsSizing *sizing, const FmsMergeInput *input,
					  int nruns, Size used_bytes)
{
	Size		room = room_for_tuples(sizing, input, nruns);

	if (used_bytes <= room)
		return used_bytes;
	return room < used_bytes / KEEP_FRACTION ? 0 : room;
}

/* ---- runs to come ---- */

Size
fms_sizing_run_bytes(const FmsSizing *sizing, uint64 runs, Size used_bytes)
{
	if (sizing->block_was_set || runs >= FIRST_RUNS)
		return used_bytes;
	return used_bytes >> (FIRST_RUNS - Max(runs, 1));
}

FmsForecast
fms_sizing_forecast(const FmsSizing *sizing, const FmsMergeInput *input,
					double input_bytes)
{
	FmsForecast forecast = {0};
	Size		memory = fms_sizing_formation_bytes(sizing, 0);
	double		left = input_bytes - memory;
	double		part = 0;
	Size		held;

	if (left <= 0)
		return forecast;
	/* each time that memory is full, the next run makes room */
	for (; left > 0 && forecast.runs < FIRST_RUNS; forecast.runs++)
	{
		part = fms_sizing_run_bytes(sizing, forecast.runs, memory);
		left -= part;
	}
	if (left > 0)
	{
		double		most = fms_sizing_most_runs(sizing);
		double		whole;

		/* descriptions on average: at first, or between early merges */
		memory = fms_sizing_formation_bytes(sizing, Min(left / memory / 2,
														most * 3 / 4));
		whole = ceil(left / memory);
		forecast.runs += (int64) whole;
		left -= whole * memory;
		part = memory;
	}
	/* the input ends in the room that the last of these made */
	held = memory + Max(left, -part);
	forecast.in_memory_run_bytes =
		fms_sizing_keep_bytes(sizing, input, (int) forecast.runs, held);
	if (forecast.in_memory_run_bytes < held)
		forecast.runs++;
	return forecast;
}

/* Is that memory enough for one pass, or for all of the input? */
static bool
suffices(Size memory_bytes, const FmsMode *mode, const FmsOptions *options,
		 const FmsMergeInput *input, uint64 input_bytes, bool one_pass)
{
	FmsOptions	with = *options;
	FmsSizing	sizing;
	FmsForecast forecast;

	with.memory_bytes = memory_bytes;
	/* as if the planner had known */
	with.expected_bytes = (double) input_bytes;
	sizing = fms_sizing_choose(mode, &with);
	if (input_bytes <= fms_sizing_formation_bytes(&sizing, 0))
		return true;
	if (!one_pass)
		return false;
	forecast = fms_sizing_forecast(&sizing, input, (double) input_bytes);
	return forecast.runs + 1 + forecast.runs / ADVICE_RUNS_FRACTION <=
		fms_sizing_fan_in(&sizing, input, false);
}

/* Doubles, then halves the distance. */
static Size
least_memory(const FmsMode *mode, const FmsOptions *options,
			 const FmsMergeInput *input, uint64 input_bytes, bool one_pass)
{
	Size		enough = ADVICE_STEP_BYTES;
	Size		too_little = 0;

	while (enough < ADVICE_MAX_BYTES &&
		   !suffices(enough, mode, options, input, input_bytes, one_pass))
	{
		too_little = enough;
		enough *= 2;
	}
	while (enough - too_little > ADVICE_STEP_BYTES)
	{
		Size		middle = too_little + (enough - too_little) / 2;

		middle -= middle % ADVICE_STEP_BYTES;
		if (suffices(middle, mode, options, input, input_bytes, one_pass))
			enough = middle;
		else
			too_little = middle;
	}
	return enough;
}

FmsAdvice
fms_sizing_advise(const FmsMode *mode, const FmsOptions *options,
				  const FmsMergeInput *input, uint64 input_bytes)
{
	FmsMergeInput all_on_disk = *input;
	FmsAdvice	advice;

	all_on_disk.in_memory_run_bytes = 0;
	advice.one_pass_bytes = least_memory(mode, options, &all_on_disk,
										 input_bytes, true);
	advice.in_memory_bytes = least_memory(mode, options, &all_on_disk,
										  input_bytes, false);
	return advice;
}
