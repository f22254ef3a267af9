/*-------------------------------------------------------------------------
 *
 * sizing.c
 *	  How large the blocks, how many runs at once, how many assist blocks.
 *
 * Three numbers share one memory:
 *
 *	  |<------------------------- work_mem ------------------------->|
 *	  |  n + l blocks  |  tree, order, first keys, long records | writer |
 *	                                                          or history
 *
 * The block size has to be known when the first run is written, the number
 * of runs only when the last one has been.  So an automatic block size goes
 * by the planner's guess of the input: large enough for cheap transfers, small
 * enough that all expected runs, a tenth more, and the usual assist blocks
 * fit.  A wrong guess costs a pass or some smaller transfers, never more.
 *
 * A block size that was set is kept, and the fan-in falls until the memory
 * holds it; only where not even two runs fit is the block size halved, and
 * only where the smallest blocks do not fit either does l fall.  EXPLAIN shows
 * what came of it.
 *
 * The same arithmetic says afterwards how much memory would have done: it is
 * gone through with more and more memory until what is wanted comes true.
 *
 * Pure arithmetic; nothing is owned and nothing can fail.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "io/huge_page.h"
#include "sort/sizing.h"

/* An automatic block size stays between these. */
#define AUTO_BLOCK_MIN_BYTES	((uint32) 4096)
#define AUTO_BLOCK_MAX_BYTES	((uint32) 256 * 1024)

/* The same where the device was measured, and the least l counted on there. */
#define DEVICE_BLOCK_MIN_BYTES	((uint32) 32 * 1024)
#define DEVICE_BLOCK_MAX_BYTES	((uint32) 1024 * 1024)
#define DEVICE_ASSIST_MIN		8

/* A larger block must read so many times as fast to be worth its memory. */
#define GAIN_USUAL		1.05
#define GAIN_LARGE		1.25

/* Automatic l: what a device can use, and what a merge should have. */
#define AUTO_ASSIST_MAX		128
#define AUTO_ASSIST_USUAL	32
#define AUTO_ASSIST_MIN		4

/* ... where l fills the memory, so that frames can be counted */
#define FILL_ASSIST_MAX		((Size) 1 << 20)

/*
 * ... and before a merge had to wait: so many bytes, which stay in the
 * processor's caches, but not too few blocks.
 */
#define FIRST_ASSIST_MIN	8
#define FIRST_READ_AHEAD_BYTES	((uint32) 128 * 1024)

/* Runs to expect where the planner says nothing. */
#define RUNS_UNKNOWN		32

/*
 * More runs than expected, to be prepared for.  Not many: if there are still
 * more, only as many are merged first as the last merge cannot take, while
 * smaller blocks would cost all of the merge.
 */
#define RUNS_SPARE			1.1

/* Runs that are parts of memory because they are the first (sort.c). */
#define FIRST_PARTS		4

/* What a run takes beside its block and what is read of its first keys. */
#define RUN_OVERHEAD_BYTES	512

/*
 * Output buffers should have this part of the memory, but no more than that
 * part of what is expected: where little is written, the memory is better
 * filled with rows that need not be.
 */
#define OUTPUT_FRACTION		8
#define OUTPUT_EXPECTED_FRACTION	32

/* First keys stay in memory up to this part of it. */
#define FIRST_KEYS_FRACTION		32

/* Assist blocks for so much are enough where much is merged from memory. */
#define REST_READ_AHEAD_BYTES	((Size) 512 * 1024)

/* Where little is, more of them, up to this part of the memory. */
#define REST_ASSIST_FRACTION	4

/* Going back in the last merge takes this part of it, where it is wanted. */
#define HISTORY_FRACTION	4

/*
 * What a merge's buffers may take beyond work_mem to be whole huge pages: this
 * part of it, between these.  As they leave next to nothing of work_mem they
 * would hardly ever be without.
 */
#define ROUNDING_FRACTION	16
#define ROUNDING_MIN_BYTES	((Size) 512 * 1024)
#define ROUNDING_MAX_BYTES	((Size) 2 * 1024 * 1024)

/* Advice is given in steps of this, the least work_mem. */
#define ADVICE_STEP_BYTES	((Size) 64 * 1024)
#define ADVICE_SPARE_FRACTION	8
#define ADVICE_MAX_BYTES	((Size) 1 << 46)

#define FAN_IN_MIN			2
#define FAN_IN_MAX			(1 << 20)

/* Assist blocks that a fan-in may not go below. */
static uint32
assist_floor(const FmsSizing *sizing)
{
	return sizing->assist_wanted > 0 ? sizing->assist_wanted :
		AUTO_ASSIST_MIN;
}

/*
 * What a merge takes.  One that writes its result needs a writer, the last
 * one a history.
 */
static Size
merge_takes(const FmsSizing *sizing, int nruns, uint32 assist,
			uint32 largest_bytes, bool writes)
{
	Size needed = fms_merge_bytes(sizing->mode, sizing->first_keys, nruns,
								  assist, sizing->block_bytes, largest_bytes,
								  sizing->compressed);

	/* an input buffer as in run formation leaves the output's alone */
	if (writes || sizing->mode->fills_memory)
		needed += sizing->writer_bytes;
	if (!writes)
		needed += sizing->history_bytes + sizing->rest_bytes;
	/* while a result is written, its first keys may use up the share */
	if (writes || sizing->first_keys == NULL)
		needed += sizing->first_keys_bytes;
	else
		needed += fms_first_keys_memory_bytes(sizing->first_keys);
	return needed;
}

static bool
fits(const FmsSizing *sizing, int nruns, uint32 assist, uint32 largest_bytes,
	 bool writes)
{
	return merge_takes(sizing, nruns, assist, largest_bytes, writes) <=
		sizing->memory_bytes;
}

static Size
output_share(const FmsOptions *options)
{
	Size		share = options->memory_bytes / OUTPUT_FRACTION;

	if (options->block_bytes == 0 && options->expected_bytes > 0)
		share = (Size) Min(share,
						   options->expected_bytes / OUTPUT_EXPECTED_FRACTION);
	return share;
}

/* What a block may have for all expected runs and so many assist blocks. */
static double
block_share(const FmsOptions *options, uint32 assist)
{
	double		memory = options->memory_bytes;
	double		run_bytes = memory - memory / FIRST_KEYS_FRACTION -
		fms_run_writer_bytes(output_share(options), AUTO_BLOCK_MIN_BYTES);
	double		runs = FIRST_PARTS + RUNS_SPARE *
		(options->expected_bytes > 0 ?
		 options->expected_bytes / Max(run_bytes, memory / 4) : RUNS_UNKNOWN);

	/* a great many runs have many first keys, and read them from their tape */
	return (memory - runs * (RUN_OVERHEAD_BYTES +
							 fms_first_keys_run_bytes(options->memory_bytes /
													  FIRST_KEYS_FRACTION))) /
		(runs + assist);
}

/*
 * For a device that has been measured: of the sizes that fit together with
 * as many assist blocks as it can use, the one it reads fastest, and of those
 * that it reads nearly as fast the smallest.  Larger than the largest usual
 * size only where it gains much.  A profile that is wrong costs transfers of
 * another size, never a pass: what fits does not depend on it.
 */
static uint32
measured_block_bytes(const FmsOptions *options)
{
	uint32		best = 0;
	double		best_mb = 0;
	uint32		bytes;

	for (bytes = DEVICE_BLOCK_MIN_BYTES; bytes <= DEVICE_BLOCK_MAX_BYTES;
		 bytes *= 2)
	{
		uint32		assist = options->assist_blocks > 0 ?
			options->assist_blocks :
			Max(fms_device_enough_depth(&options->device, bytes),
				DEVICE_ASSIST_MIN);
		double		mb = fms_device_read_mb(&options->device, bytes, assist);

		if (bytes > block_share(options, assist))
			break;
		if (mb > best_mb * (bytes > AUTO_BLOCK_MAX_BYTES ? GAIN_LARGE :
							GAIN_USUAL))
		{
			best = bytes;
			best_mb = mb;
		}
	}
	return best;
}

static uint32
automatic_block_bytes(const FmsOptions *options)
{
	uint32		assist = options->assist_blocks > 0 ?
		options->assist_blocks : AUTO_ASSIST_USUAL;
	double		share = block_share(options, assist);
	uint32		bytes = AUTO_BLOCK_MAX_BYTES;
	uint32		measured = options->device.known ?
		measured_block_bytes(options) : 0;

	if (measured > 0)
		return measured;

	while (bytes > AUTO_BLOCK_MIN_BYTES && bytes > share)
		bytes /= 2;
	return bytes;
}

static void
set_block_bytes(FmsSizing *sizing, uint32 block_bytes)
{
	sizing->block_bytes = block_bytes;
	sizing->writer_bytes = fms_run_writer_bytes(sizing->output_bytes,
												block_bytes);
}

/* Devices may take whole pages only, so pages stay whole if there are any. */
static uint32
half_of(uint32 block_bytes)
{
	uint32		half = block_bytes / 2;
	uint32		quantum = half >= FMS_IO_ALIGN_BYTES ? FMS_IO_ALIGN_BYTES :
		FMS_BLOCK_QUANTUM_BYTES;

	return half - half % quantum;
}

void
fms_sizing_init(FmsSizing *sizing, const FmsMode *mode,
				const FmsOptions *options)
{
	sizing->mode = mode;
	sizing->memory_bytes = options->memory_bytes;
	sizing->output_bytes = output_share(options);
	sizing->first_keys_bytes = options->memory_bytes / FIRST_KEYS_FRACTION;
	sizing->rest_bytes = 0;
	sizing->block_was_set = options->block_bytes > 0;
	sizing->compressed = options->compression == FMS_COMPRESS_ON;
	sizing->history_bytes = options->backward || options->marks ?
		options->memory_bytes / HISTORY_FRACTION : 0;
	sizing->first_keys = NULL;
	sizing->assist_wanted = options->assist_blocks;
	sizing->assist_enough = 0;
	set_block_bytes(sizing, options->block_bytes > 0 ?
					options->block_bytes : automatic_block_bytes(options));

	while (sizing->block_bytes > FMS_BLOCK_MIN_BYTES &&
		   !fits(sizing, FAN_IN_MIN, assist_floor(sizing), 0, true))
	{
		set_block_bytes(sizing, half_of(sizing->block_bytes));
	}
	while (sizing->assist_wanted > 1 &&
		   !fits(sizing, FAN_IN_MIN, sizing->assist_wanted, 0, true))
		sizing->assist_wanted /= 2;
	sizing->assist_enough = fms_device_enough_depth(&options->device,
													sizing->block_bytes);
}

/*
 * What first keys may come to take when a run more has been written, which may
 * take them to their tape.  Readers' buffers aside if they are there already.
 */
static Size
first_keys_to_come(const FmsSizing *sizing, int nruns)
{
	Size		now = sizing->first_keys == NULL ? 0 :
		fms_first_keys_memory_bytes(sizing->first_keys);
	Size		run = now / Max(nruns, 1);

	if (sizing->first_keys == NULL || now + 2 * run <
		sizing->first_keys_bytes ||
		fms_first_key_reader_buffer_bytes(sizing->first_keys,
										  FMS_FIRST_KEYS_AHEAD) > 0)
		return Max(now, sizing->first_keys_bytes);
	return sizing->first_keys_bytes + fms_first_keys_tape_bytes() +
		(nruns + 1) * fms_first_keys_run_bytes(sizing->first_keys_bytes);
}

/*
 * Automatic l where tuples stay in memory, too.  With n runs what stays is
 * at most one part in n of the input, and saves reading and writing that; the
 * assist blocks that it takes the memory of are missed by all the other parts.
 * So l grows with n, or to what a measured device can use.
 */
static uint32
assist_beside_rest(const FmsSizing *sizing, int nruns)
{
	Size		ahead = Min(REST_READ_AHEAD_BYTES, sizing->memory_bytes / 8);
	uint32		least = Max(AUTO_ASSIST_MIN, Min(AUTO_ASSIST_USUAL,
												 ahead / sizing->block_bytes));
	uint32		most = sizing->memory_bytes / REST_ASSIST_FRACTION /
		sizing->block_bytes;
	uint32		useful = Max(sizing->assist_enough,
							 Min(AUTO_ASSIST_USUAL, nruns));

	return Max(least, Min(useful, most));
}

Size
fms_sizing_rounding_bytes(const FmsSizing *sizing)
{
	return Max(ROUNDING_MIN_BYTES,
			   Min(ROUNDING_MAX_BYTES,
				   sizing->memory_bytes / ROUNDING_FRACTION));
}

/*
 * So many blocks, if they are more than a huge page, want so many more to be
 * whole ones.  Without them, a device that reads some into small pages takes
 * longer for all than what is kept in that memory saves.
 */
static uint32
to_huge_pages(const FmsSizing *sizing, uint32 blocks)
{
	Size		bytes = (Size) blocks * sizing->block_bytes;
	Size		rounding = TYPEALIGN(FMS_HUGE_PAGE_BYTES, bytes) - bytes;
	Size		beyond = fms_sizing_rounding_bytes(sizing);

	if (bytes <= FMS_HUGE_PAGE_BYTES || rounding <= beyond)
		return 0;
	return (rounding - beyond + sizing->block_bytes - 1) /
		sizing->block_bytes;
}

Size
fms_sizing_rest(const FmsSizing *sizing, int nruns, uint32 largest_bytes)
{
	uint32		assist = sizing->assist_wanted > 0 ? sizing->assist_wanted :
		assist_beside_rest(sizing, nruns);
	Size		taken;

	/* writing the others is one run more, with first keys of its own */
	assist += to_huge_pages(sizing, sizing->mode->blocks(nruns + 1, assist));
	taken = fms_merge_bytes(sizing->mode, sizing->first_keys, nruns + 1,
							assist, sizing->block_bytes, largest_bytes,
							sizing->compressed) +
		first_keys_to_come(sizing, nruns) + sizing->history_bytes;
	if (sizing->mode->fills_memory)
		taken += sizing->writer_bytes;

	if (sizing->block_was_set || taken >= sizing->memory_bytes)
		return 0;
	return sizing->memory_bytes - taken;
}

int
fms_sizing_fan_in(const FmsSizing *sizing, uint32 largest_bytes, bool writes)
{
	int			low = FAN_IN_MIN;
	int			high = FAN_IN_MAX;

	/* low always may be, high is the first that may not */
	while (high - low > 1)
	{
		int			middle = low + (high - low) / 2;

		if (fits(sizing, middle, assist_floor(sizing), largest_bytes, writes))
			low = middle;
		else
			high = middle;
	}
	return low;
}

uint32
fms_sizing_assist(const FmsSizing *sizing, int nruns, uint32 largest_bytes,
				  bool writes)
{
	uint32		low = 1;
	uint32		high = AUTO_ASSIST_MAX + 1;

	if (!sizing->mode->assists)
		return 0;
	if (sizing->assist_wanted > 0)
		return sizing->assist_wanted;
	if (sizing->mode->fills_memory)
		high = Max(high, Min(sizing->memory_bytes / sizing->block_bytes,
							 FILL_ASSIST_MAX) + 1);

	/* low always may be, high is the first that may not */
	while (high - low > 1)
	{
		uint32		middle = low + (high - low) / 2;

		if (fits(sizing, nruns, middle, largest_bytes, writes))
			low = middle;
		else
			high = middle;
	}
	return low;
}

Size
fms_sizing_spare(const FmsSizing *sizing, int nruns, uint32 assist,
				 uint32 largest_bytes, bool writes)
{
	Size		taken = merge_takes(sizing, nruns, assist, largest_bytes,
									writes);

	return sizing->memory_bytes > taken ? sizing->memory_bytes - taken : 0;
}

uint32
fms_sizing_assist_first(const FmsSizing *sizing, uint32 assist)
{
	return sizing->assist_wanted > 0 ? assist :
		Min(assist, Max(FIRST_ASSIST_MIN,
						FIRST_READ_AHEAD_BYTES / sizing->block_bytes));
}

/* A question about a sort with some memory; see least_memory(). */
typedef struct FmsQuestion
{
	const FmsSizing *done;		/* of the sort as it was */
	FmsOptions	options;		/* memory: the one in question */
	uint64		input_bytes;
	uint32		largest_bytes;
	bool		(*holds) (const FmsSizing *sizing,
						  const struct FmsQuestion *question);
} FmsQuestion;

static bool
fits_into_memory(const FmsSizing *sizing, const FmsQuestion *question)
{
	return question->input_bytes <= fms_sizing_formation_bytes(sizing);
}

static bool
takes_one_pass(const FmsSizing *sizing, const FmsQuestion *question)
{
	Size		run_bytes = fms_sizing_formation_bytes(sizing);
	uint64		runs = (question->input_bytes + run_bytes - 1) / run_bytes;

	if (!sizing->block_was_set)
		runs += FIRST_PARTS;
	/* run formation does not fill its memory to the last byte */
	runs += runs / ADVICE_SPARE_FRACTION;
	return fits_into_memory(sizing, question) ||
		runs <= (uint64) fms_sizing_fan_in(sizing, question->largest_bytes,
										   false);
}

static bool
holds_with(FmsQuestion *question, Size memory_bytes)
{
	FmsSizing	sizing;

	question->options.memory_bytes = memory_bytes;
	fms_sizing_init(&sizing, question->done->mode, &question->options);
	sizing.first_keys = question->done->first_keys;
	sizing.compressed = question->done->compressed;
	return question->holds(&sizing, question);
}

/* Doubles, then halves the distance. */
static Size
least_memory(FmsQuestion *question)
{
	Size		enough = ADVICE_STEP_BYTES;
	Size		too_little = 0;

	/* as if the planner had known */
	question->options.expected_bytes = (double) question->input_bytes;
	while (enough < ADVICE_MAX_BYTES && !holds_with(question, enough))
	{
		too_little = enough;
		enough *= 2;
	}
	while (enough - too_little > ADVICE_STEP_BYTES)
	{
		Size		middle = too_little + (enough - too_little) / 2;

		middle -= middle % ADVICE_STEP_BYTES;
		if (holds_with(question, middle))
			enough = middle;
		else
			too_little = middle;
	}
	return enough;
}

Size
fms_sizing_for_memory(const FmsSizing *done, const FmsOptions *options,
					  uint64 input_bytes)
{
	FmsQuestion question = {
		.done = done,
		.options = *options,
		.input_bytes = input_bytes,
		.holds = fits_into_memory
	};

	return least_memory(&question);
}

Size
fms_sizing_for_one_pass(const FmsSizing *done, const FmsOptions *options,
						uint64 input_bytes, uint32 largest_bytes)
{
	FmsQuestion question = {
		.done = done,
		.options = *options,
		.input_bytes = input_bytes,
		.largest_bytes = largest_bytes,
		.holds = takes_one_pass
	};

	return least_memory(&question);
}
