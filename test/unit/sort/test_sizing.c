/* links: order/ sort/sizing merge/ merge/modes/ */
/* links: formation/cutoff formation/run tape/compressed_chunk */
/* links: tape/packed_record */
/* links: tape/write_buffer */
/* links: io/ base/device */
/*
 * The invariants of sizing.c over a grid of settings: no more memory than
 * there is, except for the least that any merge needs; nothing given away.
 *
 * Seen to fail with: fits() without the writer; the search for the fan-in
 * ending one too high; halving a block of 2560 bytes to 1280; automatic l not
 * falling where the memory is small; room_for_tuples() for a run less, or
 * without the first keys; with a device: its sizes not held to block_share();
 * advice: a step less, a step more, without the first runs' parts, without the
 * largest record.
 */
#include "postgres.h"

#include "sort/sizing.h"
#include "no_filter.h"
#include "no_tape.h"
#include "shim.h"

/* ---- linked, but never called: nothing here sorts ---- */

NEVER_CALLED(int, fms_keys_compare_rest,
			 (FmsKeys *keys, const FmsRecord *a, const FmsRecord *b))
NEVER_CALLED(int, fms_keys_compare_columns,
			 (FmsKeys *keys, const FmsRecord *a, const FmsRecord *b,
			  int equal))
NEVER_CALLED(const FmsRecord *, fms_keys_make_first_key,
			 (FmsKeys *keys, const FmsRecord *record))
NEVER_CALLED(bool, fms_keys_prefix_decides, (const FmsKeys *keys))
NEVER_CALLED(const FmsWordType *, fms_keys_word_type, (const FmsKeys *keys))
NEVER_CALLED(void, fms_keys_encode_tuple,
			 (FmsKeys *keys, MinimalTuple tuple, Size tuple_bytes,
			  FmsKeyImage *image))

/* ---- the grid ---- */

static const FmsMode *const modes[] = {
	&fms_mode_fmsort, &fms_mode_double_buffering, &fms_mode_traditional,
	&fms_mode_multi_block, &fms_mode_flash
};
static const Size memories_kb[] = {
	64, 100, 128, 256, 1000, 1024, 4096, 10000, 65536, 262144, 1048576,
	16777216
};
static const uint32 blocks[] = {
	0, 512, 1024, 2560, 4096, 6144, 8192, 65536, 262144, 261632,
	FMS_BLOCK_MAX_BYTES
};
static const uint32 assists[] = {0, 1, 2, 3, 8, 64, FMS_ASSIST_MAX_BLOCKS};
static const uint32 largests[] = {0, 100, 9000, 300000};
static const double expectations[] = {0, 1e5, 1e8, 1e13};

static FmsOptions options;
static FmsDevice device;
static FmsSizing sizing;
static FmsMergeInput input;
static const char *broken;		/* the first rule that did not hold */

#define HOLDS(rule) \
	do { \
		if (!(rule) && broken == NULL) \
			broken = #rule; \
	} while (0)

static int
fan_in(uint32 largest_bytes, bool writes)
{
	input.largest_bytes = largest_bytes;
	return fms_sizing_fan_in(&sizing, &input, writes);
}

static FmsMergeSize
merge_size(int nruns, uint32 largest_bytes, bool writes)
{
	input.largest_bytes = largest_bytes;
	return fms_sizing_merge(&sizing, &input, nruns, writes);
}

static void
choose(const FmsMode *mode)
{
	memset(&input, 0, sizeof(input));
	input.compressed = options.compression == FMS_COMPRESS_ON;
	sizing = fms_sizing_choose(mode, &options);
}

static Size
bytes_needed(int nruns, uint32 assist, uint32 block_bytes,
			 uint32 largest_bytes, bool writes)
{
	return fms_merge_bytes(sizing.mode, &input.first_keys, nruns, assist,
						   block_bytes, largest_bytes, input.compressed) +
		(writes || sizing.mode->fills_memory ?
		 fms_run_writer_bytes(sizing.output_bytes, block_bytes) : 0) +
		sizing.first_keys_bytes;
}

static void
check_block_size(void)
{
	uint32		block = sizing.block_bytes;
	bool		assists = sizing.mode->assists;
	uint32		least = options.assist_blocks ? options.assist_blocks : 1;

	HOLDS(block >= FMS_BLOCK_MIN_BYTES && block <= FMS_BLOCK_MAX_BYTES);
	HOLDS(block % FMS_BLOCK_QUANTUM_BYTES == 0);
	HOLDS(sizing.writer_bytes ==
		  fms_run_writer_bytes(sizing.output_bytes, block));
	HOLDS(sizing.output_bytes <= options.memory_bytes / 8);
	HOLDS(sizing.memory_bytes == options.memory_bytes);

	/* a block size that was set is lowered only where it has to be */
	if (options.block_bytes > 0)
	{
		HOLDS(block <= options.block_bytes);
		if (block < options.block_bytes && options.assist_blocks > 0)
			HOLDS(bytes_needed(2, least, options.block_bytes, 0, true) >
				  options.memory_bytes);
	}
	/* and l only after that */
	HOLDS(sizing.assist_wanted <= options.assist_blocks);
	if (sizing.assist_wanted < options.assist_blocks)
		HOLDS(block == FMS_BLOCK_MIN_BYTES && sizing.assist_wanted >= 1);
	/* so that two runs of small tuples fit in any work_mem there may be */
	HOLDS(bytes_needed(2, assists ? Max(sizing.assist_wanted, 1) : 0, block,
					   0, true) <= options.memory_bytes);
}

static void
check_merge(uint32 largest, bool writes)
{
	bool		assists = sizing.mode->assists;
	int			n = fan_in(largest, writes);
	uint32		l = merge_size(n, largest, writes).assist_blocks;
	uint32		fewest = sizing.assist_wanted > 0 ? sizing.assist_wanted : l;

	HOLDS(n >= 2);
	HOLDS(assists ? l >= 1 : l == 0);
	HOLDS(l <= FMS_ASSIST_MAX_BLOCKS ||
		  (sizing.mode->fills_memory && sizing.assist_wanted == 0));
	if (assists && sizing.assist_wanted > 0)
		HOLDS(l == sizing.assist_wanted);

	/* within the memory, or two runs and as few assist blocks as may be */
	if (bytes_needed(n, l, sizing.block_bytes, largest, writes) >
		sizing.memory_bytes)
		HOLDS(n == 2 && (!assists || l <= Max(1, sizing.assist_wanted)));

	/* a run or (where l is automatic) a block more would not have fitted */
	if (n < 1 << 19)
		HOLDS(bytes_needed(n + 1, assists ? Max(fewest, 4) : 0,
						   sizing.block_bytes, largest, writes) >
			  sizing.memory_bytes);

	/* fewer runs leave room for as many assist blocks or more */
	if (n > 2)
		HOLDS(merge_size(2, largest, writes).assist_blocks >= l);
	/* who writes beside merging has less for merging */
	if (!writes)
		HOLDS(fan_in(largest, true) <= n);
	/* long tuples take room */
	HOLDS(fan_in(0, writes) >= n);
}

/*
 * Tuples that stay in memory leave a merge of the runs its memory.  There are
 * half as many bytes of them each time, so at last the merge has no more room.
 */
static void
check_in_memory_run(uint32 largest)
{
	Size		used;
	Size		kept;
	int			n;

	for (n = 1; n <= 20; n++)
	{
		kept = 0;
		for (used = sizing.memory_bytes; used > 1024 && kept < used / 2;
			 used /= 2)
		{
			uint32		l;

			input.largest_bytes = largest;
			kept = fms_sizing_keep_bytes(&sizing, &input, n, used);
			HOLDS(kept < sizing.memory_bytes && kept <= used);
			HOLDS(kept == 0 || options.block_bytes == 0);
			if (kept == 0)
				continue;
			input.in_memory_run_bytes = kept;
			HOLDS(fan_in(largest, false) >= n + 1);
			l = merge_size(n + 1, largest, false).assist_blocks;
			HOLDS(bytes_needed(n + 1, l, sizing.block_bytes, largest, false) +
				  kept <= sizing.memory_bytes);
			HOLDS(!sizing.mode->assists || l >= 4 ||
				  sizing.assist_wanted > 0);
			input.in_memory_run_bytes = 0;
		}
	}
}

static void
check_settings(void)
{
	int			i;

	check_block_size();
	check_in_memory_run(0);
	check_in_memory_run(9000);
	for (i = 0; i < (int) lengthof(largests); i++)
	{
		check_merge(largests[i], false);
		check_merge(largests[i], true);
	}
}

/* With the same blocks, and as many to assist, more memory is never worse. */
static void
check_growth(const FmsMode *mode, uint32 largest)
{
	int			before = 0;
	uint32		block_before = 0;
	uint32		assist_before = 0;
	int			i;

	for (i = 0; i < (int) lengthof(memories_kb); i++)
	{
		int			n;

		options.memory_bytes = memories_kb[i] * 1024;
		choose(mode);
		n = fan_in(largest, false);
		if (options.block_bytes > 0)
		{
			HOLDS(sizing.block_bytes >= block_before);
			if (sizing.block_bytes == block_before &&
				sizing.assist_wanted == assist_before)
				HOLDS(n >= before);
		}
		before = n;
		block_before = sizing.block_bytes;
		assist_before = sizing.assist_wanted;
	}
}

static void
check_mode(const FmsMode *mode)
{
	int			b;
	int			a;
	int			m;
	int			e;

	for (b = 0; b < (int) lengthof(blocks); b++)
	{
		for (a = 0; a < (int) lengthof(assists); a++)
		{
			for (e = 0; e < (int) lengthof(expectations); e++)
			{
				options.block_bytes = blocks[b];
				options.assist_blocks = assists[a];
				options.expected_bytes = expectations[e];
				options.compression = shim_below(2) ? FMS_COMPRESS_ON :
					FMS_COMPRESS_OFF;
				for (m = 0; m < (int) lengthof(memories_kb); m++)
				{
					options.memory_bytes = memories_kb[m] * 1024;
					choose(mode);
					check_settings();
					if (broken)
						return;
				}
				check_growth(mode, 0);
				check_growth(mode, 9000);
				if (broken)
					return;
			}
		}
	}
}

/* A device that may have been measured, or made up. */
static void
invent_device(void)
{
	int			b;
	int			d;

	memset(&device, 0, sizeof(device));
	for (b = 0; b < FMS_DEVICE_BLOCKS; b++)
	{
		for (d = 0; d < FMS_DEVICE_DEPTHS; d++)
		{
			if (shim_below(4) > 0)
				fms_device_note(&device, "random_read",
								FMS_DEVICE_BLOCK_BYTES(b),
								FMS_DEVICE_DEPTH(d),
								1 + shim_below(1000 << b));
		}
	}
}

/*
 * Whatever is said of the device, an automatic block size leaves room for all
 * runs that are expected: a profile that is wrong costs no pass.
 */
static void
check_devices(void)
{
	int			i;
	int			m;

	options.block_bytes = options.assist_blocks = 0;

	options.device = &device;

	/* a device of which only writes are known is like an unknown one */
	memset(&device, 0, sizeof(device));
	for (m = 0; m < (int) lengthof(memories_kb); m++)
	{
		uint32		unknown;

		options.memory_bytes = memories_kb[m] * 1024;
		device.known = false;
		choose(&fms_mode_fmsort);
		unknown = sizing.block_bytes;
		fms_device_note(&device, "append",
						FMS_DEVICE_BLOCK_BYTES(0), FMS_DEVICE_DEPTH(0), 100);
		choose(&fms_mode_fmsort);
		HOLDS(device.known && sizing.block_bytes == unknown);
	}

	for (i = 0; i < 300; i++)
	{
		invent_device();
		for (m = 0; m < (int) lengthof(memories_kb); m++)
		{
			int			runs = 1 + shim_below(100);

			options.memory_bytes = memories_kb[m] * 1024;
			options.expected_bytes = (double) options.memory_bytes * runs;
			choose(&fms_mode_fmsort);
			HOLDS(sizing.block_bytes <= 16 * 1024 ||
				  (uint64) sizing.block_bytes * (runs + 4 + 8) <=
				  options.memory_bytes);
			check_settings();
			if (broken)
				return;
		}
	}
}

/* ---- advice ---- */

/* Advice is in steps of that, and looks no further. */
#define STEP_BYTES		65536

/*
 * Runs that so much input makes with that memory; those that the last
 * merge takes from memory are one.  Written anew: sort.c does it with tuples.
 */
static int
count_runs(uint64 input_bytes)
{
	Size		room = fms_sizing_formation_bytes(&sizing, 0);
	Size		held = 0;
	int			runs = 0;

	while (input_bytes > room - held)
	{
		input_bytes -= room - held;
		held = room;
		if (sizing.block_was_set || runs >= 4)
			held = 0;
		else
			held -= held >> (runs > 1 ? 4 - runs : 3);
		runs++;
	}
	held += input_bytes;
	return runs > 0 && held > 0 ? runs + 1 : runs;
}

/* Is that memory enough?  For all of it, or for one pass. */
static bool
does(Size memory_bytes, bool all, uint64 input_bytes, uint32 largest)
{
	int			runs;

	options.memory_bytes = memory_bytes;
	options.expected_bytes = (double) input_bytes;
	choose(sizing.mode);
	runs = count_runs(input_bytes);
	if (all || runs == 0)
		return runs == 0;
	return runs <= fan_in(largest, false);
}

/* By trying one size after the other. */
static Size
least_that_does(bool all, uint64 input_bytes, uint32 largest)
{
	Size		memory = STEP_BYTES;

	while (!does(memory, all, input_bytes, largest))
		memory += STEP_BYTES;
	return memory;
}

static void
check_advice_for(uint64 input_bytes, uint32 largest)
{
	const FmsOptions asked = options;
	FmsAdvice	advice;
	Size		all;
	Size		one_pass;
	int			i;

	input.largest_bytes = largest;
	advice = fms_sizing_advise(sizing.mode, &asked, &input, input_bytes);
	all = advice.in_memory_bytes;
	one_pass = advice.one_pass_bytes;
	HOLDS(all % STEP_BYTES == 0 && one_pass % STEP_BYTES == 0);
	HOLDS(one_pass <= all);

	/* all in memory: exactly, and with any more */
	HOLDS(all == least_that_does(true, input_bytes, largest));
	for (i = 0; i < 64; i++)
		HOLDS(does(all + i * STEP_BYTES, true, input_bytes, largest));

	/*
	 * One pass: it does.  Nothing is said of a little more, or less: blocks
	 * and the writer's memory grow in steps, and then take from the others.
	 */
	HOLDS(does(one_pass, false, input_bytes, largest));
	HOLDS(one_pass >= least_that_does(false, input_bytes, largest));
	options = asked;
}

static void
check_advice(void)
{
	static const uint32 set_blocks[] = {0, 512, 8192, 65536};
	static const uint32 set_assists[] = {0, 8, 64};
	int			i;

	for (i = 0; i < 400 && broken == NULL; i++)
	{
		memset(&options, 0, sizeof(options));
		options.memory_bytes = memories_kb[shim_below(5)] * 1024;
		options.block_bytes = set_blocks[shim_below(lengthof(set_blocks))];
		options.assist_blocks =
			set_assists[shim_below(lengthof(set_assists))];
		options.compression = shim_below(2) ? FMS_COMPRESS_ON :
			FMS_COMPRESS_OFF;
		choose(modes[shim_below(lengthof(modes))]);
		/* 100 kB to 200 MB */
		check_advice_for((uint64) (100 * 1024) << shim_below(11) |
						 shim_below(100000), largests[shim_below(3)]);
	}
}

int
main(void)
{
	int			i;

	shim_seed();
	for (i = 0; i < (int) lengthof(modes); i++)
	{
		broken = NULL;
		check_mode(modes[i]);
		if (!shim_ok(broken == NULL, "mode %d: sizes over a grid of settings",
					 i))
			shim_note("broken: %s; work_mem=%zu block_size=%u assist_blocks=%u expected=%g -> block %u assist %u",
					  broken, options.memory_bytes, options.block_bytes,
					  options.assist_blocks, options.expected_bytes,
					  sizing.block_bytes, sizing.assist_wanted);
	}
	broken = NULL;
	check_devices();
	if (!shim_ok(broken == NULL, "sizes for devices that were measured"))
		shim_note("broken: %s; work_mem=%zu expected=%g -> block %u", broken,
				  options.memory_bytes, options.expected_bytes,
				  sizing.block_bytes);
	broken = NULL;
	check_advice();
	if (!shim_ok(broken == NULL, "advice does what it promises"))
		shim_note("broken: %s; work_mem=%zu block_size=%u assist_blocks=%u",
				  broken, options.memory_bytes,
				  options.block_bytes, options.assist_blocks);
	return shim_done();
}
