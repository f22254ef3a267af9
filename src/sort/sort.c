/*-------------------------------------------------------------------------
 *
 * sort.c
 *	  One sort, from its first tuple to its last.
 *
 *	            put                    perform
 *	  LOADING ------> memory full? --------------> all in memory: IN_MEMORY
 *	                     | yes                          get: entry by entry
 *	                     v
 *	              sort, write a run -------------> write the last run,
 *	              empty the memory                 merge while there are too
 *	                                               many runs: MERGING
 *	                                                   get: from the merge
 *
 * A sort stands between two positions of tuples, 0 to count - 1.  Stepping,
 * marking and restoring are arithmetic on positions.  The tuple at a position:
 *
 *	  in memory				the entry of that number
 *	  merging, forwards		the next one of the merge, which may begin again,
 *							or near a tuple whose predecessors are skipped
 *	  merging, anywhere		from history.c
 *
 * Nulls of words are only counted.  They stand before or behind all others:
 *
 *	  position  0          nulls_at               nulls_at + nulls
 *	            |  values  |         nulls         |  values  |
 *
 * Ownership.  Everything is in one memory context, a child of the caller's, so
 * a sort may be forgotten on ERROR.  spill.c cleans up what is on disk.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#ifdef __GLIBC__
#include <malloc.h>
#endif

#include "utils/memutils.h"
#include "utils/timestamp.h"

#include "base/clock.h"
#include "device/profile.h"
#include "formation/formation.h"
#include "sort/history.h"
#include "sort/sizing.h"
#include "sort/sort.h"
#include "sort/spill.h"

/* Tuples between two updates of FMS_COUNT_TUPLES, in shared memory. */
#define PUBLISH_TUPLES	1024

/* The least work_mem. */
#define MEMORY_MIN_BYTES	((Size) 64 * 1024)

/*
 * Bytes by which the writer of the first run may exceed work_mem.  If the
 * least work_mem had to hold the writer, sorts would spill that PostgreSQL
 * keeps in memory.
 */
#define WRITER_EXTRA_BYTES	((Size) 64 * 1024)

struct FmsSort
{
	MemoryContext context;
	FmsOptions	options;
	FmsDevice	device;			/* under the spill */
	FmsCounters *counters;		/* the caller's; written only, not for every
								 * tuple */
	uint64		tuples;			/* put into it */
	uint64		published;		/* of them, counted */
	uint64		input_bytes;	/* of them, where they are not in memory */
	int			runs;			/* written by run formation */
	Size		budget_bytes;	/* for tuples and entries */
	TimestampTz started;
	FmsPhase	phase;
	FmsKeys    *keys;
	FmsSizing	sizing;			/* mode NULL: not chosen yet */

	FmsSampler	putting;		/* divides loading between us and the input */
	double		writing_us;		/* all time in make_room() */

	FmsShare   *share;			/* NULL: no other process takes part */
	FmsFormation *formation;	/* its memory is given back before merging */
	FmsSpill   *spill;			/* NULL: nothing was spilled */
	FmsHistory *history;		/* NULL: only forwards */

	uint64		count;			/* tuples to be had: those in memory or on
								 * disk, and nulls; with a filter more than
								 * that until the merge ends */
	uint64		nulls;			/* of words; its own are not counted before the
								 * end of the input */
	uint64		nulls_at;		/* position of the first one */
	uint64		position;		/* of the next tuple forwards */
	bool		at_end;			/* behind the last one, having said so */
	uint64		merged;			/* taken from the merge, without a history */
	uint64		mark_position;
	bool		mark_at_end;
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
		case FMS_MODE_MULTI_BLOCK:
			return &fms_mode_multi_block;
		case FMS_MODE_FLASH:
			return &fms_mode_flash;
		case FMS_MODE_OFF:
			break;
	}
	elog(ERROR, "invalid merge mode %d", (int) choice);
	return NULL;				/* keep compiler quiet */
}

static void
set_phase(FmsSort *sort, FmsPhase phase)
{
	sort->phase = phase;
	fms_count_set(sort->counters, FMS_COUNT_PHASE, phase);
}

/* Measured time of putting tuples, see clock.h. */
static double
measured_us(const FmsSort *sort)
{
	return sort->writing_us + fms_formation_rare_us(sort->formation);
}

/* Sets the counters of a sort that begins: the settings in force. */
static void
announce(const FmsSort *sort)
{
	const FmsOptions *options = &sort->options;
	FmsCounters *counters = sort->counters;

	fms_counters_begin_change(counters);
	fms_counters_clear(counters);
	fms_count_set(counters, FMS_COUNT_PHASE, FMS_PHASE_LOADING);
	fms_count_set(counters, FMS_COUNT_STARTED, sort->started);
	fms_count_set(counters, FMS_COUNT_MODE, options->mode);
	fms_count_set(counters, FMS_COUNT_WORK_MEM_BYTES, options->memory_bytes);
	fms_count_set(counters, FMS_COUNT_BOUND, options->bound);
	fms_count_set(counters, FMS_COUNT_SET_BLOCK_BYTES, options->block_bytes);
	fms_count_set(counters, FMS_COUNT_SET_ASSIST_BLOCKS,
				  options->assist_blocks);
	fms_count_set(counters, FMS_COUNT_SET_IO_METHOD, options->io_method);
	fms_count_set(counters, FMS_COUNT_SET_DIRECT_IO, options->direct_io);
	fms_count_set_guess(counters, FMS_COUNT_EXPECTED_BYTES,
						options->expected_bytes);
	fms_count_set_guess(counters, FMS_COUNT_TUPLES_EXPECTED,
						options->expected_tuples);
	fms_count_set(counters, FMS_COUNT_PRESORTED,
				  options->presorted ? FMS_YES : FMS_NO);
	fms_count_set(counters, FMS_COUNT_EARLIER_TUPLES,
				  options->earlier_tuples);
	fms_count_set(counters, FMS_COUNT_GROUPS, options->presorted);
	fms_counters_end_change(counters);
}

/* Makes it a sort without a tuple. */
static void
start(FmsSort *sort)
{
	if (sort->options.earlier_tuples == 0)
		sort->started = GetCurrentTimestamp();
	announce(sort);
	sort->phase = FMS_PHASE_LOADING;
	sort->tuples = 0;
	sort->published = 0;
	sort->runs = 0;
	sort->input_bytes = 0;
	sort->count = 0;
	sort->nulls = 0;
	sort->position = 0;
	sort->at_end = false;
	sort->merged = 0;
	sort->mark_position = 0;
	sort->mark_at_end = false;
	fms_formation_set_bound(sort->formation, sort->options.bound);
	/* a small sort needs no sizing: make_room() chooses it */
	sort->sizing.mode = NULL;
	sort->budget_bytes = sort->options.memory_bytes / 2;
	fms_sampler_begin(&sort->putting, measured_us(sort));
}

FmsSort *
fms_sort_begin(TupleDesc desc, const FmsKeySpec *spec,
			   const FmsOptions *options, FmsCounters *counters,
			   MemoryContext scratch)
{
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext,
												  "fmsort",
												  ALLOCSET_DEFAULT_SIZES);
	MemoryContext caller = MemoryContextSwitchTo(context);
	FmsSort    *sort = palloc0(sizeof(FmsSort));

	sort->context = context;
	sort->options = *options;
	sort->counters = counters;
	sort->keys = fms_keys_create(desc, spec);
	sort->formation = fms_formation_create(sort->keys, scratch);
	start(sort);
	MemoryContextSwitchTo(caller);
	return sort;
}

/* The files have been closed. */
static void
leave_share(FmsSort *sort)
{
	if (sort->share)
		fms_share_leave(sort->share);
	sort->share = NULL;
	sort->options.files = NULL;
	sort->options.agreed_block_bytes = 0;
}

void
fms_sort_reset(FmsSort *sort, uint64 bound, uint64 earlier_tuples)
{
	MemoryContext caller = MemoryContextSwitchTo(sort->context);

	if (sort->spill)
	{
		if (sort->history)
			fms_history_destroy(sort->history);
		sort->history = NULL;
		fms_spill_end(sort->spill);
		sort->spill = NULL;
	}
	leave_share(sort);
	fms_formation_clear(sort->formation);
	sort->options.bound = bound;
	sort->options.earlier_tuples = earlier_tuples;
	start(sort);
	MemoryContextSwitchTo(caller);
}

/*
 * Before the first run: looks up the device.  If the system has refused
 * memory, the sort goes on as if work_mem were as large as it gave.
 */
static void
begin_spill(FmsSort *sort)
{
	FmsOptions	options = sort->options;
	Size		refused_at = fms_formation_refused_at(sort->formation);

	if (refused_at > 0)
		options.memory_bytes = Min(options.memory_bytes,
								   Max(refused_at, MEMORY_MIN_BYTES));
	fms_profile_device(&sort->device);
	options.device = &sort->device;
	if (sort->sizing.mode == NULL || sort->device.known || refused_at > 0)
		sort->sizing = fms_sizing_choose(mode_of(options.mode), &options);
	sort->spill = fms_spill_begin(sort->keys, &options, &sort->sizing,
								  sort->counters);
}

static void
publish(FmsSort *sort)
{
	FmsCounters *leader = sort->share ? sort->share->shared->leader : NULL;

	if (leader && fms_shared_files_are_workers(sort->options.files))
		fms_count_atomically(leader, FMS_COUNT_WORKERS_TUPLES,
							 sort->tuples - sort->published);
	sort->published = sort->tuples;
	fms_count_set(sort->counters, FMS_COUNT_TUPLES, sort->tuples);
}

/* Writes the oldest tuples as a run, so that at least `bytes` become free. */
static void
write_run(FmsSort *sort, Size bytes)
{
	Size		before = fms_formation_memory_bytes(sort->formation);

	publish(sort);
	if (sort->spill == NULL)
		begin_spill(sort);
	sort->count += fms_spill_run(sort->spill, sort->formation, bytes);
	sort->runs++;
	sort->input_bytes += before - fms_formation_memory_bytes(sort->formation);
}

/* Memory is full: writes a run, and merges runs if they are too many. */
static void
make_room(FmsSort *sort)
{
	instr_time	start = fms_clock_now();
	MemoryContext caller;

	if (sort->sizing.mode == NULL)
	{
		sort->sizing = fms_sizing_choose(mode_of(sort->options.mode),
										 &sort->options);
		sort->budget_bytes = Min(sort->options.memory_bytes,
								 fms_sizing_formation_bytes(&sort->sizing, 0) +
								 WRITER_EXTRA_BYTES);
		fms_formation_filter_again(sort->formation);
		return;
	}
	caller = MemoryContextSwitchTo(sort->context);
	write_run(sort, fms_sizing_run_bytes(
				  &sort->sizing, sort->runs,
				  fms_formation_memory_bytes(sort->formation)));
	if (fms_spill_is_crowded(sort->spill))
	{
		if (fms_formation_count(sort->formation) > 0)
			write_run(sort, fms_formation_memory_bytes(sort->formation));
		fms_formation_give_back(sort->formation);
		fms_spill_merge_early(sort->spill);
	}
	sort->budget_bytes =
		fms_sizing_formation_bytes(&sort->sizing, fms_spill_runs(sort->spill));
	MemoryContextSwitchTo(caller);
	sort->writing_us += fms_clock_since_us(start);
}

static pg_attribute_always_inline void
put(FmsSort *sort, TupleTableSlot *slot)
{
	Assert(sort->phase == FMS_PHASE_LOADING);
	while (!fms_formation_put(sort->formation, slot, sort->budget_bytes))
		make_room(sort);
	if (sort->tuples++ % PUBLISH_TUPLES == 0)
		publish(sort);
}

static pg_noinline void
put_timed(FmsSort *sort, TupleTableSlot *slot)
{
	double		known_us = measured_us(sort);

	fms_sampler_start(&sort->putting);
	put(sort, slot);
	fms_sampler_add(&sort->putting, measured_us(sort) - known_us);
}

void
fms_sort_put(FmsSort *sort, TupleTableSlot *slot)
{
	if (likely(!fms_sampler_due(&sort->putting)))
		put(sort, slot);
	else
		put_timed(sort, slot);
}

/* loading_us: since the sort has begun. */
static void
finish_in_memory(FmsSort *sort, double loading_us)
{
	uint64		held = fms_formation_count(sort->formation);
	uint64		bound = sort->options.bound;
	uint64		put = sort->tuples - sort->nulls;

	/* dropped tuples count as large as the others */
	sort->input_bytes = fms_formation_memory_bytes(sort->formation);
	if (held > 0 && held < put)
		sort->input_bytes *= (double) put / held;
	fms_formation_finish(sort->formation);
	/* sorting few takes no longer than reading the clock */
	if (held > FMS_SAMPLER_FIRST)
		loading_us = fms_clock_since_us(sort->putting.begun);
	sort->count = fms_formation_count(sort->formation);
	fms_count_set(sort->counters, FMS_COUNT_METHOD,
				  bound > 0 && bound < sort->tuples ? FMS_METHOD_TOP_N :
				  FMS_METHOD_IN_MEMORY);
	fms_count_set_us(sort->counters, FMS_COUNT_FORMATION_NS, loading_us);
	set_phase(sort, FMS_PHASE_IN_MEMORY);
}

/*
 * Writes the tuples that the last merge cannot keep in memory.  Returns the
 * in-memory run, or NULL.
 */
static const FmsFormation *
write_last_run(FmsSort *sort)
{
	Size		used = fms_formation_memory_bytes(sort->formation);
	Size		keep =
		fms_sizing_keep_bytes(used,
							  fms_spill_in_memory_run_bytes(sort->spill));

	if (keep < used)
		write_run(sort, used - keep);
	if (fms_formation_count(sort->formation) == 0)
	{
		fms_formation_give_back(sort->formation);
		return NULL;
	}
	sort->count += fms_formation_count(sort->formation);
	keep = fms_formation_memory_bytes(sort->formation);
	fms_count_set(sort->counters, FMS_COUNT_KEPT_BYTES, keep);
	sort->input_bytes += keep;
	fms_formation_sort(sort->formation);
	fms_formation_trim(sort->formation);
	return sort->formation;
}

/* Writes the last run, reduces the runs, begins the last merge. */
static void
finish_spilling(FmsSort *sort)
{
	const FmsFormation *in_memory_run = write_last_run(sort);

	fms_spill_flush(sort->spill);
	fms_count_set_us(sort->counters, FMS_COUNT_FORMATION_NS,
					 fms_clock_since_us(sort->putting.begun) -
					 fms_spill_early_us(sort->spill));
	fms_spill_reduce(sort->spill, in_memory_run, sort->input_bytes);
	if (sort->options.backward || sort->options.marks)
		sort->history = fms_history_create(sort->spill,
										   sort->sizing.history_bytes,
										   sort->options.backward);
	fms_count_set(sort->counters, FMS_COUNT_METHOD,
				  FMS_METHOD_EXTERNAL_MERGE);
	set_phase(sort, FMS_PHASE_MERGING);
}

static void
place_nulls(FmsSort *sort)
{
	const FmsWordType *type = fms_keys_word_type(sort->keys);

	sort->nulls_at = type && type->nulls_first ? 0 : sort->count;
	sort->count += sort->nulls;
}

/* Counts what has come in.  Returns the microseconds since the sort began. */
static double
count_input(FmsSort *sort)
{
	double		loading_us = fms_clock_since_us(sort->putting.begun);

	fms_count_set_us(sort->counters, FMS_COUNT_FORMATION_NS, loading_us);
	fms_count_set_us(sort->counters, FMS_COUNT_INPUT_NS, loading_us -
					 fms_sampler_own_us(&sort->putting, loading_us,
										measured_us(sort)));
	publish(sort);
	fms_count_set(sort->counters, FMS_COUNT_MEMORY_BYTES,
				  fms_formation_memory_bytes(sort->formation));
	return loading_us;
}

/* The input has ended.  Returns likewise. */
static double
finish_input(FmsSort *sort)
{
	Assert(sort->phase == FMS_PHASE_LOADING);
	sort->nulls += fms_formation_nulls(sort->formation);
	return count_input(sort);
}

void
fms_sort_perform(FmsSort *sort)
{
	MemoryContext caller = MemoryContextSwitchTo(sort->context);
	double		loading_us = finish_input(sort);

	if (sort->spill)
		finish_spilling(sort);
	else
		finish_in_memory(sort, loading_us);
	if (sort->options.bound > 0)
	{
		fms_count_set(sort->counters, FMS_COUNT_ROWS_REFUSED, sort->tuples -
					  sort->count - sort->nulls);
		/* runs may have more */
		sort->count = Min(sort->count, sort->options.bound);
	}
	place_nulls(sort);
	fms_count_set(sort->counters, FMS_COUNT_INPUT_BYTES, sort->input_bytes);
	MemoryContextSwitchTo(caller);
}

/* The next tuple of a merge that only goes forwards, or begins again. */
static MinimalTuple
next_merged(FmsSort *sort, uint64 position)
{
	MinimalTuple tuple;

	if (position != sort->merged)
		fms_spill_move(sort->spill, sort->merged, position);
	tuple = fms_spill_next(sort->spill);
	if (tuple == NULL && fms_keys_group_filter(sort->keys) == NULL &&
		!fms_spill_is_cut(sort->spill))
		elog(ERROR, "the merge ended before tuple " UINT64_FORMAT, position);
	sort->merged = position + 1;
	return tuple;
}

/* The record stays open: no key is compared any more. */
static MinimalTuple
tuple_in_memory(FmsSort *sort, uint64 position)
{
	const FmsRecord *record = fms_formation_get(sort->formation, position);

	(void) fms_record_open(record);
	return fms_record_tuple(record);
}

/* Number of tuples before a position that are not among the nulls. */
static inline uint64
values_before(const FmsSort *sort, uint64 position)
{
	return position <= sort->nulls_at ? position :
		position - Min(position - sort->nulls_at, sort->nulls);
}

/* NULL: the filter has dropped all values from there on. */
static MinimalTuple
tuple_at(FmsSort *sort, uint64 position)
{
	MemoryContext caller;
	MinimalTuple tuple;

	Assert(position < sort->count);
	if (position >= sort->nulls_at && position - sort->nulls_at < sort->nulls)
		return fms_keys_word_type(sort->keys)->null_tuple;

	position = values_before(sort, position);
	if (sort->phase == FMS_PHASE_IN_MEMORY)
		return tuple_in_memory(sort, position);

	Assert(sort->phase == FMS_PHASE_MERGING);
	if (sort->history == NULL)
		return next_merged(sort, position);
	caller = MemoryContextSwitchTo(sort->context);
	tuple = fms_history_fetch(sort->history, position);
	MemoryContextSwitchTo(caller);
	return tuple;
}

static MinimalTuple
get_backward(FmsSort *sort)
{
	Assert(sort->options.backward || sort->phase == FMS_PHASE_IN_MEMORY);

	/* from behind the last one to the last one: the position stays */
	if (sort->at_end)
		sort->at_end = false;
	else if (sort->position > 0)
		sort->position--;
	return sort->position > 0 ? tuple_at(sort, sort->position - 1) : NULL;
}

MinimalTuple
fms_sort_get(FmsSort *sort, bool forward)
{
	if (unlikely(!forward))
		return get_backward(sort);
	while (sort->position < sort->count)
	{
		MinimalTuple tuple = tuple_at(sort, sort->position);

		if (likely(tuple))
		{
			sort->position++;
			return tuple;
		}
		sort->nulls_at = Min(sort->nulls_at, sort->position);
		sort->count = values_before(sort, sort->position) + sort->nulls;
	}
	sort->at_end = true;
	return NULL;
}

uint64
fms_sort_skip(FmsSort *sort, uint64 rows)
{
	MemoryContext caller = MemoryContextSwitchTo(sort->context);
	uint64		skipped = Min(rows, sort->count - sort->position);
	uint64		values;

	if (!sort->options.skips)
		skipped = 0;
	sort->position += skipped;
	values = values_before(sort, sort->position);
	if (sort->history)
		fms_history_skip(sort->history, values);
	else if (sort->phase == FMS_PHASE_MERGING)
	{
		fms_spill_move(sort->spill, sort->merged, values);
		sort->merged = values;
	}
	fms_count(sort->counters, FMS_COUNT_ROWS_SKIPPED, skipped);
	MemoryContextSwitchTo(caller);
	return skipped;
}

void
fms_sort_rewind(FmsSort *sort)
{
	Assert(sort->phase != FMS_PHASE_LOADING);
	sort->position = 0;
	sort->at_end = false;
	sort->mark_position = 0;
	sort->mark_at_end = false;
}

void
fms_sort_mark(FmsSort *sort)
{
	Assert(sort->options.marks);
	sort->mark_position = sort->position;
	sort->mark_at_end = sort->at_end;
	if (sort->history)
		fms_history_mark(sort->history, values_before(sort, sort->position));
}

void
fms_sort_restore(FmsSort *sort)
{
	Assert(sort->options.marks);
	sort->position = sort->mark_position;
	sort->at_end = sort->mark_at_end;
}

void
fms_sort_end(FmsSort *sort)
{
	bool		spilled = sort->spill != NULL;

	if (spilled)
		fms_spill_end(sort->spill);
	leave_share(sort);
	fms_formation_end(sort->formation);
	MemoryContextDelete(sort->context);
#ifdef __GLIBC__
	/* malloc() would keep it for as long as the session lives */
	if (spilled)
		(void) malloc_trim(0);
#endif
}

static void
count_dropped(FmsSort *sort)
{
	FmsGroupFilter *filter = fms_keys_group_filter(sort->keys);

	if (filter)
		fms_count(sort->counters, FMS_COUNT_DUPLICATES_DROPPED,
				  fms_group_filter_dropped(filter));
}

void
fms_sort_count(FmsSort *sort)
{
	if (sort->phase == FMS_PHASE_LOADING)
		(void) count_input(sort);
	count_dropped(sort);
	if (sort->spill)
		fms_spill_count(sort->spill);
}

/* ---- parallel sorts ---- */

/* Takes part in what is shared. */
static void
take_part(FmsSort *sort, FmsShare *share)
{
	sort->share = share;
	sort->options.files = &share->files;
}

/*
 * The blocks of all participants have one size, so it is chosen before any of
 * them spills.
 */
dsm_handle
fms_sort_share(FmsSort *sort, FmsCounters *progress)
{
	MemoryContext caller = MemoryContextSwitchTo(sort->context);
	FmsOptions	options = sort->options;
	FmsShare   *share;

	Assert(sort->share == NULL && sort->spill == NULL);
	fms_profile_device(&sort->device);
	options.device = &sort->device;
	options.agreed_block_bytes =
		fms_sizing_choose(mode_of(options.mode), &options).block_bytes;
	share = fms_share_create(&options, options.workers);
	if (share)
	{
		share->shared->leader = progress;
		sort->options.agreed_block_bytes = options.agreed_block_bytes;
		take_part(sort, share);
	}
	MemoryContextSwitchTo(caller);
	return share ? dsm_segment_handle(share->segment) : DSM_HANDLE_INVALID;
}

FmsSort *
fms_sort_join(TupleDesc desc, const FmsKeySpec *spec, dsm_handle handle,
			  int worker, FmsCounters *counters, MemoryContext scratch)
{
	FmsShare   *share = fms_share_join(handle, worker);
	FmsOptions	options = share->shared->options;
	FmsKeySpec	keys = *spec;
	FmsSort    *sort;

	/* the leader does it */
	options.materialize = false;
	/* all participants make the same keys */
	keys.tuples = options.expected_tuples;
	sort = fms_sort_begin(desc, &keys, &options, counters, scratch);
	take_part(sort, share);
	return sort;
}

void
fms_sort_hand_over(FmsSort *sort)
{
	MemoryContext caller = MemoryContextSwitchTo(sort->context);
	FmsPart    *part =
		&sort->share->shared->parts[sort->share->files.participant - 1];

	(void) finish_input(sort);
	if (sort->options.bound > 0)
		fms_formation_finish(sort->formation);
	if (fms_formation_count(sort->formation) > 0)
		write_run(sort, fms_formation_memory_bytes(sort->formation));
	fms_formation_give_back(sort->formation);
	if (sort->spill)
		fms_spill_reduce(sort->spill, NULL, sort->input_bytes);
	fms_count_set_us(sort->counters, FMS_COUNT_FORMATION_NS,
					 fms_clock_since_us(sort->putting.begun));
	fms_count_set(sort->counters, FMS_COUNT_INPUT_BYTES, sort->input_bytes);
	fms_count_set(sort->counters, FMS_COUNT_METHOD,
				  FMS_METHOD_EXTERNAL_MERGE);
	count_dropped(sort);
	part->tuples = sort->tuples;
	part->input_bytes = sort->input_bytes;
	part->count = sort->count;
	part->nulls = sort->nulls;
	if (sort->spill)
		fms_spill_hand_over(sort->spill, part);
	memcpy(part->counters, sort->counters, FMS_COUNTERS_BYTES);
	MemoryContextSwitchTo(caller);
}

/* Writes the tuples whose memory the descriptions of n more runs need. */
static void
make_room_for_runs(FmsSort *sort, int n)
{
	Size		used = fms_formation_memory_bytes(sort->formation);
	Size		room =
		fms_sizing_formation_bytes(&sort->sizing,
								   fms_spill_runs(sort->spill) + n);

	if (used > room)
		write_run(sort, used - room);
}

const FmsCounters *
fms_sort_adopt(FmsSort *sort, int worker)
{
	MemoryContext caller = MemoryContextSwitchTo(sort->context);
	const FmsPart *part = &sort->share->shared->parts[worker];

	sort->tuples += part->tuples;
	sort->input_bytes += part->input_bytes;
	sort->count += part->count;
	sort->nulls += part->nulls;
	if (part->nruns > 0)
	{
		FmsSharedFiles files = fms_share_files(sort->share, worker);

		if (sort->spill == NULL)
			begin_spill(sort);
		make_room_for_runs(sort, part->nruns);
		fms_spill_adopt(sort->spill, part, &files);
	}
	MemoryContextSwitchTo(caller);
	return (const FmsCounters *) part->counters;
}
