/*-------------------------------------------------------------------------
 *
 * spill.c
 *	  What a sort has on disk: runs, and the merge of them all.
 *
 *	  run   run   run .. run		each a memory full of sorted tuples
 *	    \     \___/     /			too many? some are merged first
 *	     \      |      /
 *	      last merge ----> tuples	never written
 *
 * If the last merge cannot take all runs, earlier merges turn some into one:
 * as few runs as necessary, the smallest, and only neighbours, since ties
 * leave in the order of the runs, which is that of arrival.  If descriptions
 * of runs take too much memory, the smallest are merged during the input.
 *
 * The in-memory run: tuples still in memory when the input ends.  If the last
 * merge can spare their memory, it takes them from there, as its last run.
 *
 * Ownership.  Everything is in one memory context, whose reset callback closes
 * the I/O channel, drains it and unmaps its buffers; requests and frames are
 * in that context, not in a child.  The resource owner deletes the files.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "miscadmin.h"
#include "utils/memutils.h"

#include "order/first_key_store.h"
#include "sort/spill.h"

/* Bits of a run's id that number the runs of one participant. */
#define RUN_ID_BITS			20

static void
close_io(void *arg)
{
	fms_io_close(&((FmsSpill *) arg)->io);
}

/* What merges have to deal with by now. */
static FmsMergeInput
merge_input(const FmsSpill *spill)
{
	FmsMergeInput input = {
		.first_keys = fms_first_keys_memory(spill->plan.first_keys),
		.in_memory_run_bytes = spill->in_memory_run ?
		fms_formation_memory_bytes(spill->in_memory_run) : 0,
		.runs = spill->nruns,
		.largest_bytes = spill->largest_bytes,
		.compressed = spill->compressed
	};

	return input;
}

static int
fan_in(const FmsSpill *spill, bool writes)
{
	FmsMergeInput input = merge_input(spill);

	return fms_sizing_fan_in(spill->sizing, &input, writes);
}

/* Brings the facts up to date: a run is complete. */
static void
note_facts(FmsSpill *spill)
{
	FmsSpillFacts *facts = &spill->facts;
	const FmsTape *tape = spill->plan.tape;
	uint64		run_bytes = tape->written_bytes - facts->written_bytes;
	/* after an early merge, a run may lie in free extents of the page cache */
	bool		direct = spill->choice.direct &&
		tape->cached_bytes == facts->cached_bytes;

	facts->written_bytes = tape->written_bytes;
	facts->cached_bytes = tape->cached_bytes;
	fms_run_compressed(spill->writer, &facts->compressible_bytes,
					   &facts->compressed_bytes);
	fms_spill_policy_observe(facts, direct, run_bytes,
							 fms_clock_since_us(spill->run_began),
							 tape->write_blocked_us - spill->run_blocked_us);
}

/* Opens the channel, or opens it again: a small spill needs no ring. */
static void
open_channel(FmsSpill *spill)
{
	fms_run_flush(spill->writer);
	fms_io_close(&spill->io);
	fms_io_open(&spill->io, fms_spill_policy_is_small(&spill->facts) ?
				FMS_IO_SYNC : spill->options.io_method);
	spill->facts.async_reads = !spill->io.method->submit_blocks;
	fms_count_set(spill->plan.counters, FMS_COUNT_IO_METHOD,
				  spill->io.method == &fms_io_uring_method ? FMS_IO_URING :
				  FMS_IO_SYNC);
}

/*
 * Chooses direct I/O and compression for the next run, which begins.  If the
 * tape cannot turn to direct I/O or back, the choice follows it.
 */
static void
choose_for_run(FmsSpill *spill)
{
	FmsSpillFacts *facts = &spill->facts;
	FmsCounters *counters = spill->plan.counters;
	FmsSpillChoice choice;

	if (spill->io.method == NULL ||
		(spill->choice.direct_reason == FMS_DIRECT_SMALL &&
		 !fms_spill_policy_is_small(facts)))
		open_channel(spill);
	choice = fms_spill_policy_choose(facts, &spill->choice);
	if (choice.direct != spill->choice.direct)
	{
		/* the run's buffers are mapped for its kind of transfers */
		fms_run_flush(spill->writer);
		if (!fms_tape_set_direct(spill->plan.tape, choice.direct,
								 facts->direct_io == FMS_DIRECT_ON))
		{
			facts->direct_fixed = true;
			choice = fms_spill_policy_choose(facts, &spill->choice);
		}
	}
	spill->choice = choice;
	fms_count_set(counters, FMS_COUNT_DIRECT_REASON, choice.direct_reason);
	fms_count_set(counters, FMS_COUNT_COMPRESS_REASON,
				  choice.compress_reason);
	fms_count_set(counters, FMS_COUNT_DEVICE_KB, choice.device_mb * 1000);
	fms_count_set(counters, FMS_COUNT_DEVICE_SEEN, facts->device_seen);
	fms_count_set(counters, FMS_COUNT_DIRECT_IO,
				  fms_tape_is_direct(spill->plan.tape) ? FMS_YES : FMS_NO);
	spill->run_began = fms_clock_now();
	spill->run_blocked_us = spill->plan.tape->write_blocked_us;
}

static FmsRun *
begin_run(FmsSpill *spill, FmsCutoff *cutoff)
{
	FmsRun	   *run = palloc(sizeof(FmsRun));
	bool		compressed = spill->choice.compressed;

	spill->compressed |= compressed;
	fms_run_begin(spill->writer, run, spill->next_run_id++, compressed,
				  cutoff);
	return run;
}

static void
open_files(FmsSpill *spill)
{
	const FmsOptions *options = &spill->options;
	const FmsSizing *sizing = spill->sizing;
	FmsMergePlan *plan = &spill->plan;
	uint32		block_bytes = sizing->block_bytes;
	/* comparisons by mode or block size are of plain blocks */
	bool		packs = options->mode == FMS_MODE_FMSORT &&
		!sizing->block_was_set && fms_keys_are_cheap(plan->keys);

	fms_spill_policy_begin(&spill->facts, options, block_bytes);
	plan->tape = fms_tape_open(&spill->io, block_bytes, options->checksums,
							   options->files, plan->counters);
	plan->first_keys = fms_first_keys_create(plan->keys, plan->counters,
											 sizing->first_keys_bytes,
											 options->files);
	if (options->files)
		spill->next_run_id = options->files->participant << RUN_ID_BITS;
	spill->writer = fms_run_writer_create(plan->tape, plan->first_keys,
										  sizing->mode->order, packs,
										  sizing->output_bytes);
	fms_count_set(plan->counters, FMS_COUNT_BLOCK_BYTES, block_bytes);
	choose_for_run(spill);
	if (options->block_bytes > block_bytes)
		ereport(DEBUG1,
				(errmsg_internal("fmsort: work_mem does not hold two runs' blocks of %u bytes, using %u",
								 options->block_bytes, block_bytes)));
}

FmsSpill *
fms_spill_begin(FmsKeys *keys, const FmsOptions *options,
				const FmsSizing *sizing, FmsCounters *counters)
{
	/* blocks that do not grow: their unused ends count in work_mem, too */
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext,
												  "fmsort spill", 0,
												  ALLOCSET_DEFAULT_INITSIZE,
												  ALLOCSET_DEFAULT_INITSIZE);
	MemoryContext caller = MemoryContextSwitchTo(context);
	FmsSpill   *spill = palloc0(sizeof(FmsSpill));

	spill->context = context;
	spill->on_reset.func = close_io;
	spill->on_reset.arg = spill;
	MemoryContextRegisterResetCallback(context, &spill->on_reset);
	spill->sizing = sizing;
	spill->options = *options;
	spill->plan = (FmsMergePlan) {
		.mode = sizing->mode,
		.keys = keys,
		.io = &spill->io,
		.counters = counters,
		.block_bytes = sizing->block_bytes
	};
	spill->compressed = options->compression == FMS_COMPRESS_ON;
	spill->runs_size = 64;
	spill->runs = palloc(spill->runs_size * sizeof(FmsRun *));
	open_files(spill);
	if (options->bound > 0 && options->cutoff)
		spill->cutoff = fms_cutoff_create(keys, options->bound);
	MemoryContextSwitchTo(caller);
	return spill;
}

static void
add_run(FmsSpill *spill, FmsRun *run)
{
	if (spill->nruns == spill->runs_size)
	{
		spill->runs_size *= 2;
		spill->runs = repalloc_huge(spill->runs,
									spill->runs_size * sizeof(FmsRun *));
	}
	spill->runs[spill->nruns++] = run;
	spill->largest_bytes = Max(spill->largest_bytes, run->largest_bytes);
	spill->level = Max(spill->level, run->level);
}

/* Frees a run that is not in the list any more. */
static void
forget_run(FmsSpill *spill, FmsRun *run)
{
	CHECK_FOR_INTERRUPTS();
	fms_first_keys_forget(spill->plan.first_keys, &run->first_keys);
	fms_run_forget(run);
	pfree(run);
}

/* Number of runs at which they are cut, if n are left of the last time. */
static int
next_cut(int n)
{
	return n + n / 8 + 1;
}

/*
 * Gives back what earlier runs have beyond the cutoff, once there are 1/8 more
 * runs.  The newest run has ended at the cutoff.
 */
static void
cut_runs(FmsSpill *spill, const FmsRecord *cutoff)
{
	const FmsMergePlan *plan = &spill->plan;
	int			n = 0;

	if (spill->nruns < spill->runs_to_cut)
		return;
	fms_run_flush(spill->writer);
	for (int i = 0; i < spill->nruns; i++)
	{
		FmsRun	   *run = spill->runs[i];

		if (i < spill->nruns - 1)
			fms_run_cut(run, plan->first_keys, plan->tape, cutoff);
		if (run->nblocks > 0)
			spill->runs[n++] = run;
		else
			forget_run(spill, run);
	}
	spill->nruns = n;
	spill->runs_to_cut = next_cut(n);
}

uint64
fms_spill_run(FmsSpill *spill, FmsFormation *formation, Size bytes)
{
	MemoryContext caller = MemoryContextSwitchTo(spill->context);
	FmsRun	   *run = begin_run(spill, spill->cutoff);
	const FmsRecord *cutoff;
	uint64		written;

	fms_formation_spill(formation, spill->writer, bytes);
	written = fms_run_finish(spill->writer);
	spill->rows += written;
	cutoff = spill->cutoff ? fms_cutoff_record(spill->cutoff) : NULL;
	add_run(spill, run);
	fms_count(spill->plan.counters, FMS_COUNT_RUNS, 1);
	spill->blocks += run->nblocks;
	fms_count(spill->plan.counters, FMS_COUNT_BLOCKS, run->nblocks);
	note_facts(spill);
	if (cutoff)
	{
		fms_formation_set_cutoff(formation, cutoff);
		cut_runs(spill, cutoff);
	}
	choose_for_run(spill);
	MemoryContextSwitchTo(caller);
	return written;
}

/* Publishes the merge that begins, for fmsort_progress. */
static void
announce_merge(FmsSpill *spill, int first, int n, bool writes,
			   const FmsPosition *from)
{
	FmsCounters *counters = spill->plan.counters;
	uint64		blocks = 0;
	uint64		done = 0;

	for (int i = 0; i < n; i++)
	{
		blocks += spill->runs[first + i]->nblocks;
		done += from ? from[i].block : 0;
	}
	fms_counters_begin_change(counters);
	fms_count_set(counters, FMS_COUNT_PHASE,
				  writes ? FMS_PHASE_PASSES : FMS_PHASE_MERGING);
	fms_count_set(counters, FMS_COUNT_RUNS_LEFT, spill->nruns);
	fms_count_set(counters, FMS_COUNT_MERGE_RUNS, n);
	fms_count_set(counters, FMS_COUNT_MERGE_BLOCKS, blocks);
	fms_count_set(counters, FMS_COUNT_MERGE_BLOCKS_DONE, done);
	fms_counters_end_change(counters);
}

static void
begin_merge(FmsSpill *spill, int first, int n, bool writes,
			const FmsPosition *from)
{
	FmsMergePlan *plan = &spill->plan;
	FmsMergeInput input = merge_input(spill);
	FmsMergeSize size = fms_sizing_merge(spill->sizing, &input, n, writes);

	plan->in_memory_run = writes ? NULL : spill->in_memory_run;
	plan->frees = writes;
	plan->assist_blocks = size.assist_blocks;
	plan->assist_first = size.assist_first;
	fms_count_set(plan->counters, FMS_COUNT_ASSIST_BLOCKS,
				  plan->assist_blocks);
	spill->merge = fms_merge_begin(plan, n, &spill->runs[first], from);
}

/* Merges the n runs from `first` on into one, which takes their place. */
static void
merge_into_run(FmsSpill *spill, int first, int n)
{
	FmsRun	   *result;
	const FmsRecord *record;
	instr_time	start;

	fms_run_flush(spill->writer);
	start = fms_clock_now();
	begin_merge(spill, first, n, true, NULL);
	result = begin_run(spill, NULL);
	while ((record = fms_merge_next(spill->merge)) != NULL)
	{
		CHECK_FOR_INTERRUPTS();
		fms_run_append(spill->writer, record);
	}
	(void) fms_run_finish(spill->writer);
	fms_run_flush(spill->writer);
	fms_merge_end(spill->merge);
	spill->merge = NULL;

	for (int i = first; i < first + n; i++)
	{
		result->level = Max(result->level, spill->runs[i]->level + 1);
		forget_run(spill, spill->runs[i]);
	}
	spill->level = Max(spill->level, result->level);
	spill->runs[first] = result;
	spill->nruns -= n - 1;
	memmove(&spill->runs[first + 1], &spill->runs[first + n],
			(spill->nruns - first - 1) * sizeof(FmsRun *));
	spill->runs_to_cut = Min(spill->runs_to_cut, next_cut(spill->nruns));
	spill->merges_us += fms_clock_since_us(start);
}

/* The n neighbouring runs with the fewest blocks. */
static int
smallest_neighbours(const FmsSpill *spill, int n)
{
	uint64		smallest = PG_UINT64_MAX;
	uint64		sum = 0;
	int			best = 0;

	for (int i = 0; i < spill->nruns; i++)
	{
		sum += spill->runs[i]->nblocks;
		if (i >= n)
			sum -= spill->runs[i - n]->nblocks;
		if (i >= n - 1 && sum < smallest)
		{
			smallest = sum;
			best = i - n + 1;
		}
	}
	return best;
}

/*
 * Merges the smallest neighbours into one run: as many as one merge can take,
 * or as necessary so that `leave` runs are left.
 */
static void
merge_smallest(FmsSpill *spill, int leave, bool announce)
{
	int			n = Min(fan_in(spill, true), spill->nruns - leave + 1);
	int			first = smallest_neighbours(spill, n);

	if (announce)
		announce_merge(spill, first, n, true, NULL);
	merge_into_run(spill, first, n);
}

void
fms_spill_merge_early(FmsSpill *spill)
{
	MemoryContext caller = MemoryContextSwitchTo(spill->context);
	int			most = fms_sizing_most_runs(spill->sizing) / 2;

	while (spill->nruns > most)
		merge_smallest(spill, most, false);
	MemoryContextSwitchTo(caller);
}

Size
fms_spill_keep_bytes(const FmsSpill *spill, Size used_bytes)
{
	FmsMergeInput input = merge_input(spill);

	return spill->options.materialize ? 0 :
		fms_sizing_keep_bytes(spill->sizing, &input, spill->nruns, used_bytes);
}

/*
 * How many runs may be left?  As many as the last merge takes, of which a
 * worker has its part; where the result is to be written, too, those that one
 * merge can write, and then one.
 */
static int
runs_to_leave(const FmsSpill *spill)
{
	bool		materialize = spill->options.materialize;
	int			most = fan_in(spill, materialize);

	if (fms_shared_files_are_workers(spill->options.files))
		return Max(most / (1 + spill->options.workers), 1);
	return materialize && spill->nruns <= most ? 1 : most;
}

void
fms_spill_reduce(FmsSpill *spill, const FmsFormation *in_memory_run,
				 uint64 input_bytes)
{
	MemoryContext caller = MemoryContextSwitchTo(spill->context);
	FmsCounters *counters = spill->plan.counters;
	FmsMergeInput input;
	FmsAdvice	advice;
	int			last;

	spill->in_memory_run = in_memory_run;
	last = spill->options.materialize ? 1 : fan_in(spill, false);
	fms_counters_begin_change(counters);
	fms_count_set(counters, FMS_COUNT_RUNS_AT_FIRST, spill->nruns);
	fms_count_set(counters, FMS_COUNT_RUNS_TOO_MANY,
				  Max(spill->nruns, last) - last);
	fms_counters_end_change(counters);

	while (spill->nruns > (last = runs_to_leave(spill)))
		merge_smallest(spill, last, true);
	fms_run_writer_destroy(spill->writer);
	spill->writer = NULL;
	fms_tape_trim(spill->plan.tape);
	fms_count(counters, FMS_COUNT_SPILLED_BYTES, spill->plan.tape->end_bytes);
	fms_count_set(counters, FMS_COUNT_MERGE_PASSES, spill->level + 1);
	/* with which memory would it have been easier? */
	input = merge_input(spill);
	advice = fms_sizing_advise(spill->sizing->mode, &spill->options, &input,
							   input_bytes);
	fms_count_set(counters, FMS_COUNT_ONE_PASS_BYTES, advice.one_pass_bytes);
	fms_count_set(counters, FMS_COUNT_IN_MEMORY_BYTES,
				  advice.in_memory_bytes);
	MemoryContextSwitchTo(caller);
}

void
fms_spill_hand_over(FmsSpill *spill, FmsPart *part)
{
	Assert(spill->writer == NULL);
	fms_first_keys_hand_over(spill->plan.first_keys);
	fms_share_put_runs(spill->options.files, spill->runs, spill->nruns);
	part->tape = spill->plan.tape->files[0];
	part->first_keys_largest_bytes =
		fms_first_keys_memory(spill->plan.first_keys).largest_bytes;
	part->compressed = spill->compressed;
	part->nruns = spill->nruns;
}

void
fms_spill_adopt(FmsSpill *spill, const FmsPart *part,
				const FmsSharedFiles *files)
{
	MemoryContext caller = MemoryContextSwitchTo(spill->context);
	const FmsMergePlan *plan = &spill->plan;
	uint64		distance = fms_tape_adopt(plan->tape, &part->tape, files);
	FmsFirstKeyFile *first_keys =
		fms_first_key_file_adopt(files, part->first_keys_largest_bytes,
								 plan->counters);
	FmsRun	  **runs = fms_share_get_runs(files, part->nruns);

	for (int i = 0; i < part->nruns; i++)
	{
		fms_run_move(runs[i], distance);
		fms_first_keys_adopt(plan->first_keys, first_keys,
							 &runs[i]->first_keys);
		spill->blocks += runs[i]->nblocks;
		add_run(spill, runs[i]);
	}
	spill->rows += part->count;
	spill->compressed |= part->compressed;
	pfree(runs);
	fms_first_key_file_close(first_keys);
	MemoryContextSwitchTo(caller);
}

double
fms_spill_merging_us(const FmsSpill *spill)
{
	const FmsSampler *stepping = &spill->stepping;

	if (spill->merge == NULL)
		return spill->merges_us;
	return spill->merges_us +
		fms_sampler_own_us(stepping, fms_clock_since_us(stepping->begun),
						   fms_merge_load_us(spill->merge));
}

static void
stop(FmsSpill *spill)
{
	spill->merges_us = fms_spill_merging_us(spill);
	if (spill->merge)
		fms_merge_end(spill->merge);
	spill->merge = NULL;
	spill->next = 0;
}

void
fms_spill_start(FmsSpill *spill, const FmsPosition *from, uint64 next)
{
	MemoryContext caller = MemoryContextSwitchTo(spill->context);
	instr_time	start;

	Assert(spill->writer == NULL);
	stop(spill);
	start = fms_clock_now();
	announce_merge(spill, 0, spill->nruns, false, from);
	begin_merge(spill, 0, spill->nruns, false, from);
	spill->next = next;
	spill->merges_us += fms_clock_since_us(start);
	fms_sampler_begin(&spill->stepping, fms_merge_load_us(spill->merge));
	MemoryContextSwitchTo(caller);
}

static pg_noinline MinimalTuple
next_timed(FmsSpill *spill)
{
	double		known_us = fms_merge_load_us(spill->merge);
	MinimalTuple tuple;

	fms_sampler_start(&spill->stepping);
	tuple = fms_merge_next_tuple(spill->merge);
	fms_sampler_add(&spill->stepping,
					fms_merge_load_us(spill->merge) - known_us);
	return tuple;
}

/*
 * The merge has ended.  Comparisons that contradict each other may have cut
 * off more tuples than were counted, and the filter drops some.
 */
static void
check_end(const FmsSpill *spill)
{
	if (spill->cutoff == NULL &&
		fms_keys_group_filter(spill->plan.keys) == NULL)
		elog(ERROR, "the merge ended before tuple " UINT64_FORMAT,
			 spill->next);
}

MinimalTuple
fms_spill_next(FmsSpill *spill)
{
	MemoryContext caller = MemoryContextSwitchTo(spill->context);
	MinimalTuple tuple;

	if (unlikely(spill->merge == NULL))
		fms_spill_start(spill, NULL, 0);
	if (likely(!fms_sampler_due(&spill->stepping)))
		tuple = fms_merge_next_tuple(spill->merge);
	else
		tuple = next_timed(spill);
	MemoryContextSwitchTo(caller);
	if (likely(tuple))
		spill->next++;
	else
		check_end(spill);
	return tuple;
}

void
fms_spill_tell(FmsSpill *spill, FmsPosition *positions)
{
	MemoryContext caller = MemoryContextSwitchTo(spill->context);

	fms_merge_tell(spill->merge, positions);
	MemoryContextSwitchTo(caller);
}

/*
 * Is it worth while to begin the merge again near tuple number `to` instead of
 * merging on from `at`?  It then reads up to two blocks of each run in vain,
 * and passing over a first key takes about as long as merging a row.
 */
static bool
can_skip(const FmsSpill *spill, uint64 at, uint64 to)
{
	uint64		rows_a_block = spill->rows / Max(spill->blocks, 1) + 1;

	return spill->sizing->mode->order != FMS_ORDER_NONE &&
		to >= at + 2 * spill->nruns * rows_a_block &&
		to - at >= to / rows_a_block;
}

/* Begins the merge again without records that are among the first `rows`. */
static void
start_near(FmsSpill *spill, uint64 rows)
{
	int			n = spill->nruns;
	FmsPosition *from = palloc0((n + 1) * sizeof(FmsPosition));
	const FmsFirstKeys **first_keys = palloc(n * sizeof(FmsFirstKeys *));
	uint32	   *last_rows = palloc(n * sizeof(uint32));
	uint64		at = spill->next;
	uint64		blocks = 0;
	uint64		skipped;

	for (int i = 0; i < n; i++)
	{
		first_keys[i] = &spill->runs[i]->first_keys;
		last_rows[i] = spill->runs[i]->last_rows;
	}
	/* the readers of first keys take its memory */
	stop(spill);
	skipped = fms_read_order_skip(spill->plan.first_keys,
								  spill->sizing->mode->order, n, first_keys,
								  last_rows, rows, from);
	fms_spill_start(spill, from, skipped);
	for (int i = 0; i < n; i++)
		blocks += from[i].block;
	/* after a merge up to `at`, about as large a part as of the rows */
	fms_count(spill->plan.counters, FMS_COUNT_BLOCKS_SKIPPED, (double) blocks *
			  (Max(skipped, at) - at) / Max(skipped, 1));
	pfree(last_rows);
	pfree(first_keys);
	pfree(from);
}

void
fms_spill_move(FmsSpill *spill, uint64 to)
{
	MemoryContext caller = MemoryContextSwitchTo(spill->context);
	/* rows in memory count as if all came first */
	uint64		in_memory = spill->in_memory_run ?
		fms_formation_count(spill->in_memory_run) : 0;

	if (to < spill->next)
		stop(spill);
	if (can_skip(spill, spill->next + in_memory, to))
		start_near(spill, to - in_memory);
	while (spill->next < to && fms_spill_next(spill) != NULL)
		CHECK_FOR_INTERRUPTS();
	MemoryContextSwitchTo(caller);
}

void
fms_spill_end(FmsSpill *spill)
{
	/* nothing may be in flight when the files go */
	fms_io_close(&spill->io);
	if (spill->plan.first_keys)
		fms_first_keys_destroy(spill->plan.first_keys);
	if (spill->plan.tape)
		fms_tape_close(spill->plan.tape);
	MemoryContextDelete(spill->context);
}
