/*-------------------------------------------------------------------------
 *
 * sort.c
 *	  One sort, from its first tuple to its last.
 *
 *	            put                    perform
 *	  LOADING ------> memory full? --------------> all in memory: IN_MEMORY
 *	                     | yes                          get: next entry
 *	                     v
 *	              sort, write a run -------------> write the last run,
 *	              empty the memory                 merge while there are too
 *	                                               many runs: MERGING
 *	                                                   get: next of the merge
 *
 * Passes.  The last merge feeds the parent and is never written (ActiveSort).
 * If there are more runs than it can take, some are merged into one first:
 * as few as will do, and those that are smallest together, so little is
 * written twice.  Only neighbours are merged, and the result takes their
 * place: ties leave in the order of the runs, so that order must stay the
 * order of arrival.
 *
 *	  runs   0  1  2  3  4  5  6		the last merge takes 5
 *	         0  1 [2  3  4] 5  6		merge 3 neighbours
 *	         0  1     7     5  6
 *
 * Rewinding a merge starts it again: the runs are still there.
 *
 * Ownership.  Everything lies in one memory context of the sort's own, a
 * child of the caller's.  Its reset callback closes the I/O channel, which
 * drains what is in flight and unmaps the buffers, so the sort may simply be
 * forgotten on ERROR; requests and frames are in that very context (not in a
 * child, which would be freed before the callback runs).  The resource owner
 * deletes the files, before or after that.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "miscadmin.h"
#include "utils/memutils.h"

#include "clock.h"
#include "formation.h"
#include "merge.h"
#include "sizing.h"
#include "sort.h"

typedef enum FmsPhase
{
	FMS_PHASE_LOADING,
	FMS_PHASE_IN_MEMORY,
	FMS_PHASE_MERGING
} FmsPhase;

struct FmsSort
{
	MemoryContext context;
	MemoryContextCallback on_reset;
	FmsOptions	options;
	FmsCounters counters;
	FmsPhase	phase;
	FmsKeys    *keys;
	FmsSizing	sizing;
	instr_time	began;

	FmsFormation *formation;	/* NULL once everything is in runs */
	uint64		position;		/* IN_MEMORY: next entry */

	/* from the first spill on */
	FmsIo		io;
	FmsTape    *tape;			/* NULL: nothing was spilled */
	FmsFenceStore *fences;
	FmsRunWriter *writer;
	FmsRun	  **runs;			/* in order of arrival */
	int			nruns;
	int			runs_size;
	uint32		largest_bytes;	/* of any record in them */
	uint32		next_run_id;

	FmsMergePlan plan;			/* of the merge going on */
	FmsMerge   *merge;
	FmsSampler	sampler;		/* time in the merge, loading excluded */
	double		finished_merges_us; /* all time of earlier merges */
};

static const FmsMode *
mode_of(FmsModeChoice choice)
{
	switch (choice)
	{
		case FMS_MODE_FMSORT:
			return &fms_mode_fmsort;
		case FMS_MODE_DOUBLE_BUFFERING:
			return &fms_mode_double_buffering;
		case FMS_MODE_TRADITIONAL:
			return &fms_mode_traditional;
		case FMS_MODE_OFF:
			break;
	}
	elog(ERROR, "invalid merge mode %d", (int) choice);
	return NULL;				/* keep compiler quiet */
}

static void
close_io(void *arg)
{
	fms_io_close(&((FmsSort *) arg)->io);
}

FmsSort *
fms_sort_begin(TupleDesc desc, const FmsKeySpec *spec,
			   const FmsOptions *options)
{
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext,
												  "fmsort",
												  ALLOCSET_DEFAULT_SIZES);
	MemoryContext caller = MemoryContextSwitchTo(context);
	FmsSort    *sort = palloc0(sizeof(FmsSort));

	sort->context = context;
	sort->on_reset.func = close_io;
	sort->on_reset.arg = sort;
	MemoryContextRegisterResetCallback(context, &sort->on_reset);

	sort->options = *options;
	sort->counters.mode = options->mode;
	sort->phase = FMS_PHASE_LOADING;
	sort->keys = fms_keys_create(desc, spec);
	sort->formation = fms_formation_create(sort->keys);
	fms_sizing_init(&sort->sizing, mode_of(options->mode), options);
	sort->began = fms_clock_now();

	MemoryContextSwitchTo(caller);
	return sort;
}

/* Everything that only a sort that spills needs. */
static void
begin_spilling(FmsSort *sort)
{
	uint32		block_bytes = sort->sizing.block_bytes;

	fms_io_open(&sort->io, sort->options.io_method);
	sort->tape = fms_tape_open(&sort->io, sort->options.direct_io,
							   block_bytes, &sort->counters);
	sort->fences = fms_fences_create(sort->keys, &sort->io,
									 sort->options.direct_io,
									 sort->sizing.fences_bytes);
	sort->sizing.fences = sort->fences;
	sort->writer = fms_run_writer_create(&sort->io, sort->tape, sort->fences,
										 &sort->counters, block_bytes,
										 sort->options.memory_bytes);
	sort->counters.block_bytes = block_bytes;
	sort->counters.uses_uring = sort->io.method == &fms_io_uring_method;
	sort->counters.uses_direct_io = fms_tape_is_direct(sort->tape);
	if (sort->options.block_bytes > block_bytes)
		ereport(DEBUG1,
				(errmsg_internal("fmsort: work_mem holds no two runs' blocks of %u bytes, using %u",
								 sort->options.block_bytes, block_bytes)));
}

/* Puts a run into the list at that position. */
static void
insert_run(FmsSort *sort, FmsRun *run, int at)
{
	if (sort->nruns >= sort->runs_size)
	{
		sort->runs_size = Max(64, sort->runs_size * 2);
		if (sort->runs == NULL)
			sort->runs = palloc(sort->runs_size * sizeof(FmsRun *));
		else
			sort->runs = repalloc_huge(sort->runs, sort->runs_size *
									   sizeof(FmsRun *));
	}
	memmove(&sort->runs[at + 1], &sort->runs[at],
			(sort->nruns - at) * sizeof(FmsRun *));
	sort->runs[at] = run;
	sort->nruns++;
	sort->largest_bytes = Max(sort->largest_bytes, run->largest_bytes);
}

/* Writes what is in memory as a run. */
static void
spill(FmsSort *sort)
{
	FmsRun	   *run = palloc0(sizeof(FmsRun));

	if (sort->tape == NULL)
		begin_spilling(sort);
	fms_run_begin(sort->writer, run, sort->next_run_id++, 0);
	fms_formation_spill(sort->formation, sort->writer);
	fms_run_finish(sort->writer);
	insert_run(sort, run, sort->nruns);
	sort->counters.runs++;
	sort->counters.blocks += run->nblocks;
}

/* Memory for tuples and entries while runs are being formed. */
static Size
formation_budget(const FmsSort *sort)
{
	Size		memory = sort->sizing.memory_bytes;
	Size		taken = sort->sizing.writer_bytes + sort->sizing.fences_bytes;

	return Max(memory / 4, memory > taken ? memory - taken : 0);
}

void
fms_sort_put(FmsSort *sort, TupleTableSlot *slot)
{
	MemoryContext caller = MemoryContextSwitchTo(sort->context);

	Assert(sort->phase == FMS_PHASE_LOADING);
	if (!fms_formation_put(sort->formation, slot, formation_budget(sort)))
	{
		spill(sort);
		if (!fms_formation_put(sort->formation, slot, formation_budget(sort)))
			elog(ERROR, "an empty sort memory refused a tuple");
	}
	sort->counters.tuples++;
	MemoryContextSwitchTo(caller);
}

/* How many passes the tuples of n runs have been through, at most. */
static uint32
highest_level(FmsRun *const *runs, int n)
{
	uint32		level = 0;
	int			i;

	for (i = 0; i < n; i++)
		level = Max(level, runs[i]->level);
	return level;
}

/* Begins merging the n runs from `first` on. */
static void
begin_merge(FmsSort *sort, int first, int n, bool writes)
{
	FmsMergePlan *plan = &sort->plan;

	plan->mode = sort->sizing.mode;
	plan->keys = sort->keys;
	plan->io = &sort->io;
	plan->tape = sort->tape;
	plan->fences = sort->fences;
	plan->counters = &sort->counters;
	plan->block_bytes = sort->sizing.block_bytes;
	plan->assist_blocks =
		fms_sizing_assist(&sort->sizing, n, sort->largest_bytes, writes);
	sort->counters.assist_blocks = plan->assist_blocks;
	sort->merge = fms_merge_begin(plan, n, &sort->runs[first]);
}

static void
end_merge(FmsSort *sort)
{
	sort->finished_merges_us += fms_merge_load_us(sort->merge);
	fms_merge_end(sort->merge);
	sort->merge = NULL;
}

/* Merges n neighbouring runs into one, which takes their place. */
static void
merge_into_run(FmsSort *sort, int first, int n)
{
	instr_time	start = fms_clock_now();
	FmsRun	   *result = palloc0(sizeof(FmsRun));
	const FmsRecord *record;
	uint32		level = highest_level(&sort->runs[first], n);
	int			i;

	begin_merge(sort, first, n, true);
	fms_run_begin(sort->writer, result, sort->next_run_id++, level + 1);
	while ((record = fms_merge_next(sort->merge)) != NULL)
	{
		CHECK_FOR_INTERRUPTS();
		fms_run_append(sort->writer, record);
	}
	fms_run_finish(sort->writer);
	fms_run_flush(sort->writer);
	fms_merge_end(sort->merge);
	sort->merge = NULL;

	for (i = first; i < first + n; i++)
	{
		fms_fences_forget(sort->fences, &sort->runs[i]->fences);
		pfree(sort->runs[i]);
	}
	sort->nruns -= n;
	memmove(&sort->runs[first], &sort->runs[first + n],
			(sort->nruns - first) * sizeof(FmsRun *));
	insert_run(sort, result, first);
	sort->finished_merges_us += fms_clock_since_us(start);
}

/* The n neighbouring runs with the fewest blocks. */
static int
smallest_neighbours(const FmsSort *sort, int n)
{
	uint64		sum = 0;
	uint64		smallest;
	int			best = 0;
	int			i;

	for (i = 0; i < n; i++)
		sum += sort->runs[i]->nblocks;
	smallest = sum;
	for (i = n; i < sort->nruns; i++)
	{
		sum += sort->runs[i]->nblocks;
		sum -= sort->runs[i - n]->nblocks;
		if (sum < smallest)
		{
			smallest = sum;
			best = i - n + 1;
		}
	}
	return best;
}

/* Merges runs until one merge can take all that are left. */
static void
reduce_runs(FmsSort *sort)
{
	for (;;)
	{
		int			last = fms_sizing_fan_in(&sort->sizing,
											 sort->largest_bytes, false);
		int			n;

		if (sort->nruns <= last)
			break;
		n = Min(fms_sizing_fan_in(&sort->sizing, sort->largest_bytes, true),
				sort->nruns - last + 1);
		merge_into_run(sort, smallest_neighbours(sort, n), n);
	}
}

/* The last run, then whatever has to be merged before the last merge. */
static void
finish_spilling(FmsSort *sort)
{
	if (fms_formation_count(sort->formation) > 0)
		spill(sort);
	fms_run_flush(sort->writer);
	fms_formation_destroy(sort->formation);
	sort->formation = NULL;
	sort->counters.formation_us = fms_clock_since_us(sort->began);

	reduce_runs(sort);
	fms_run_writer_destroy(sort->writer);
	sort->writer = NULL;
	fms_tape_trim(sort->tape);
	sort->counters.spilled_bytes = fms_tape_end(sort->tape);

	sort->counters.merge_passes = highest_level(sort->runs, sort->nruns) + 1;
}

void
fms_sort_perform(FmsSort *sort)
{
	MemoryContext caller = MemoryContextSwitchTo(sort->context);

	Assert(sort->phase == FMS_PHASE_LOADING);
	sort->counters.memory_bytes = fms_formation_memory_bytes(sort->formation);
	if (sort->tape == NULL)
	{
		fms_formation_sort(sort->formation);
		sort->counters.method = FMS_METHOD_IN_MEMORY;
		sort->counters.formation_us = fms_clock_since_us(sort->began);
		sort->phase = FMS_PHASE_IN_MEMORY;
	}
	else
	{
		finish_spilling(sort);
		begin_merge(sort, 0, sort->nruns, false);
		sort->counters.method = FMS_METHOD_EXTERNAL_MERGE;
		sort->phase = FMS_PHASE_MERGING;
	}
	MemoryContextSwitchTo(caller);
}

/* The next record of the merge, timed now and then. */
static inline const FmsRecord *
next_merged(FmsSort *sort)
{
	const FmsRecord *record;
	double		loading_us;
	instr_time	start;

	if (likely(!fms_sampler_due(&sort->sampler)))
		return fms_merge_next(sort->merge);

	loading_us = fms_merge_load_us(sort->merge);
	start = fms_clock_now();
	record = fms_merge_next(sort->merge);
	fms_sampler_add(&sort->sampler, fms_clock_since_us(start) -
					(fms_merge_load_us(sort->merge) - loading_us));
	return record;
}

MinimalTuple
fms_sort_get(FmsSort *sort)
{
	const FmsRecord *record = NULL;

	if (sort->phase == FMS_PHASE_IN_MEMORY)
	{
		if (sort->position < fms_formation_count(sort->formation))
			record = fms_formation_get(sort->formation, sort->position++);
	}
	else
	{
		MemoryContext caller = MemoryContextSwitchTo(sort->context);

		Assert(sort->phase == FMS_PHASE_MERGING);
		record = next_merged(sort);
		MemoryContextSwitchTo(caller);
	}
	return record ? fms_record_tuple(record) : NULL;
}

void
fms_sort_rewind(FmsSort *sort)
{
	MemoryContext caller = MemoryContextSwitchTo(sort->context);

	Assert(sort->phase != FMS_PHASE_LOADING);
	if (sort->phase == FMS_PHASE_IN_MEMORY)
		sort->position = 0;
	else
	{
		end_merge(sort);
		begin_merge(sort, 0, sort->nruns, false);
	}
	MemoryContextSwitchTo(caller);
}

void
fms_sort_end(FmsSort *sort)
{
	/* nothing may be in flight when the files go */
	fms_io_close(&sort->io);
	if (sort->fences)
		fms_fences_destroy(sort->fences);
	if (sort->tape)
		fms_tape_close(sort->tape);
	MemoryContextDelete(sort->context);
}

void
fms_sort_count(FmsSort *sort, FmsCounters *counters)
{
	*counters = sort->counters;
	if (sort->fences)
		fms_fences_count(sort->fences, counters);
	counters->merge_us = sort->finished_merges_us + sort->sampler.total_us;
	if (sort->merge)
		counters->merge_us += fms_merge_load_us(sort->merge);
}
