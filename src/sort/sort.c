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
 * marking and restoring are arithmetic on positions.  Nulls of words are only
 * counted.  They stand before or behind all others:
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

#include "utils/memutils.h"
#include "utils/timestamp.h"

#include "base/clock.h"
#include "device/profile.h"
#include "formation/formation.h"
#include "sort/sizing.h"
#include "sort/sort.h"
#include "sort/spill.h"

/* Tuples between two updates of FMS_COUNT_TUPLES, in shared memory. */
#define PUBLISH_TUPLES	1024

/* The least work_mem. */
#define MEMORY_MIN_BYTES	((Size) 64 * 1024)

/*
 * Bytes by which the writer of the first run may exceed work_mem: else sorts
 * in the least work_mem would spill that PostgreSQL keeps in memory.
 */
#define WRITER_EXTRA_BYTES	((Size) 64 * 1024)

/* A place between two tuples. */
typedef struct FmsPlace
{
	uint64		next;			/* position of the next tuple forwards */
	bool		at_end;			/* behind the last one, having said so */
} FmsPlace;

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
	FmsPlace	place;			/* where the sort stands */
	FmsPlace	mark;			/* where it was marked */
};

static const FmsMode *const modes[] = {
	[FMS_MODE_FMSORT] = &fms_mode_fmsort,
	[FMS_MODE_DOUBLE_BUFFERING] = &fms_mode_double_buffering,
	[FMS_MODE_TRADITIONAL] = &fms_mode_traditional,
	[FMS_MODE_MULTI_BLOCK] = &fms_mode_multi_block,
	[FMS_MODE_FLASH] = &fms_mode_flash
};

StaticAssertDecl(lengthof(modes) == FMS_MODE_OFF, "each mode has its table");

/* Measured time of putting tuples, see clock.h. */
static double
measured_us(const FmsSort *sort)
{
	return sort->writing_us + sort->formation->arena.make_room_us +
		sort->formation->shrink_us;
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
	sort->place = sort->mark = (FmsPlace) {0};
	fms_formation_reset(sort->formation, sort->options.bound);
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
	sort->formation = fms_formation_create(fms_keys_create(desc, spec),
										   options->expected_bytes, scratch);
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
	if (sort->spill)
		fms_spill_end(sort->spill);
	sort->spill = NULL;
	sort->history = NULL;
	leave_share(sort);
	sort->options.bound = bound;
	sort->options.earlier_tuples = earlier_tuples;
	start(sort);
}

/*
 * Before the first run: looks up the device.  If the system has refused
 * memory, the sort goes on as if work_mem were as large as it gave.
 */
static void
begin_spill(FmsSort *sort)
{
	MemoryContext caller = MemoryContextSwitchTo(sort->context);
	FmsOptions	options = sort->options;
	const FmsArena *arena = &sort->formation->arena;

	if (arena->refused)
		options.memory_bytes = Min(options.memory_bytes,
								   Max(fms_arena_size(arena),
									   MEMORY_MIN_BYTES));
	fms_profile_device(&sort->device);
	options.device = &sort->device;
	if (sort->sizing.mode == NULL || sort->device.known || arena->refused)
		sort->sizing = fms_sizing_choose(modes[options.mode], &options);
	sort->spill = fms_spill_begin(sort->formation->keys, &options,
								  &sort->sizing, sort->counters);
	MemoryContextSwitchTo(caller);
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

	if (sort->sizing.mode == NULL)
	{
		sort->sizing = fms_sizing_choose(modes[sort->options.mode],
										 &sort->options);
		sort->budget_bytes = Min(sort->options.memory_bytes,
								 fms_sizing_formation_bytes(&sort->sizing, 0) +
								 WRITER_EXTRA_BYTES);
		fms_formation_filter_again(sort->formation);
		return;
	}
	write_run(sort, fms_sizing_run_bytes(
				  &sort->sizing, sort->runs,
				  fms_formation_memory_bytes(sort->formation)));
	if (sort->spill->nruns > fms_sizing_most_runs(&sort->sizing))
	{
		/* merging them needs the memory of the tuples */
		if (fms_formation_count(sort->formation) > 0)
			write_run(sort, fms_formation_memory_bytes(sort->formation));
		fms_arena_free(&sort->formation->arena);
		fms_spill_merge_early(sort->spill);
	}
	sort->budget_bytes =
		fms_sizing_formation_bytes(&sort->sizing, sort->spill->nruns);
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

static void
finish_in_memory(FmsSort *sort)
{
	uint64		held = fms_formation_count(sort->formation);
	uint64		bound = sort->options.bound;
	uint64		put = sort->tuples - sort->nulls;

	/* dropped tuples count as large as the others */
	sort->input_bytes = fms_arena_used(&sort->formation->arena);
	if (held > 0 && held < put)
		sort->input_bytes *= (double) put / held;
	fms_formation_sort(sort->formation);
	sort->count = fms_formation_count(sort->formation);
	fms_count_set(sort->counters, FMS_COUNT_METHOD,
				  bound > 0 && bound < sort->tuples ? FMS_METHOD_TOP_N :
				  FMS_METHOD_IN_MEMORY);
}

/* Writes what the last merge cannot keep, reduces the runs. */
static void
finish_spilling(FmsSort *sort)
{
	FmsFormation *formation = sort->formation;
	FmsSpill   *spill = sort->spill;
	Size		used = fms_formation_memory_bytes(formation);
	Size		keep = fms_spill_keep_bytes(spill, used);

	if (keep < used)
		write_run(sort, used - keep);
	keep = fms_formation_memory_bytes(formation);
	if (keep > 0)
	{
		fms_count_set(sort->counters, FMS_COUNT_KEPT_BYTES, keep);
		sort->input_bytes += keep;
		fms_formation_sort(formation);
		sort->count += fms_formation_count(formation);
		fms_arena_trim(&formation->arena);
	}
	else
		fms_arena_free(&formation->arena);
	fms_spill_reduce(spill, keep > 0 ? formation : NULL, sort->input_bytes);
	if (sort->options.backward || sort->options.marks)
		sort->history = fms_history_create(spill, sort->sizing.history_bytes);
	fms_count_set(sort->counters, FMS_COUNT_METHOD,
				  FMS_METHOD_EXTERNAL_MERGE);
}

static void
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
}

static void
finish_input(FmsSort *sort)
{
	Assert(sort->phase == FMS_PHASE_LOADING);
	sort->nulls += sort->formation->nulls;
	count_input(sort);
}

void
fms_sort_perform(FmsSort *sort)
{
	const FmsWordType *words = sort->formation->words;

	finish_input(sort);
	if (sort->spill)
		finish_spilling(sort);
	else
		finish_in_memory(sort);
	fms_count_set_us(sort->counters, FMS_COUNT_FORMATION_NS,
					 fms_clock_since_us(sort->putting.begun) -
					 (sort->spill ? sort->spill->merges_us : 0));
	sort->phase = sort->spill ? FMS_PHASE_MERGING : FMS_PHASE_IN_MEMORY;
	fms_count_set(sort->counters, FMS_COUNT_PHASE, sort->phase);
	if (sort->options.bound > 0)
	{
		fms_count_set(sort->counters, FMS_COUNT_ROWS_REFUSED, sort->tuples -
					  sort->count - sort->nulls);
		/* runs may have more */
		sort->count = Min(sort->count, sort->options.bound);
	}
	sort->nulls_at = words && words->nulls_first ? 0 : sort->count;
	sort->count += sort->nulls;
	fms_count_set(sort->counters, FMS_COUNT_INPUT_BYTES, sort->input_bytes);
}

/* Number of tuples before a position that are not among the nulls. */
static inline uint64
values_before(const FmsSort *sort, uint64 position)
{
	return position <= sort->nulls_at ? position :
		position - Min(position - sort->nulls_at, sort->nulls);
}

/* NULL: all values from there on were dropped, see fms_spill_next(). */
static MinimalTuple
tuple_at(FmsSort *sort, uint64 position)
{
	Assert(position < sort->count);
	if (position >= sort->nulls_at && position - sort->nulls_at < sort->nulls)
		return sort->formation->words->null_tuple;

	position = values_before(sort, position);
	if (sort->phase == FMS_PHASE_IN_MEMORY)
	{
		const FmsRecord *record = fms_formation_get(sort->formation, position);

		/* it stays open: no key is compared any more */
		(void) fms_record_open(record);
		return fms_record_tuple(record);
	}

	Assert(sort->phase == FMS_PHASE_MERGING);
	if (sort->history)
		return fms_history_fetch(sort->history, position);
	if (position != sort->spill->next)
		fms_spill_move(sort->spill, position);
	return fms_spill_next(sort->spill);
}

static MinimalTuple
get_backward(FmsSort *sort)
{
	Assert(sort->options.backward || sort->phase == FMS_PHASE_IN_MEMORY);

	/* from behind the last one to the last one: the position stays */
	if (sort->place.at_end)
		sort->place.at_end = false;
	else if (sort->place.next > 0)
		sort->place.next--;
	return sort->place.next > 0 ? tuple_at(sort, sort->place.next - 1) : NULL;
}

MinimalTuple
fms_sort_get(FmsSort *sort, bool forward)
{
	if (unlikely(!forward))
		return get_backward(sort);
	while (sort->place.next < sort->count)
	{
		MinimalTuple tuple = tuple_at(sort, sort->place.next);

		if (likely(tuple))
		{
			sort->place.next++;
			return tuple;
		}
		sort->nulls_at = Min(sort->nulls_at, sort->place.next);
		sort->count = values_before(sort, sort->place.next) + sort->nulls;
	}
	sort->place.at_end = true;
	return NULL;
}

uint64
fms_sort_skip(FmsSort *sort, uint64 rows)
{
	uint64		left = sort->count - sort->place.next;
	uint64		skipped = sort->options.skips ? Min(rows, left) : 0;
	uint64		values;

	sort->place.next += skipped;
	values = values_before(sort, sort->place.next);
	if (sort->history)
		fms_history_skip(sort->history, values);
	else if (sort->phase == FMS_PHASE_MERGING)
		fms_spill_move(sort->spill, values);
	fms_count(sort->counters, FMS_COUNT_ROWS_SKIPPED, skipped);
	return skipped;
}

void
fms_sort_rewind(FmsSort *sort)
{
	Assert(sort->phase != FMS_PHASE_LOADING);
	sort->place = sort->mark = (FmsPlace) {0};
}

void
fms_sort_mark(FmsSort *sort)
{
	Assert(sort->options.marks);
	sort->mark = sort->place;
	if (sort->history)
		fms_history_mark(sort->history, values_before(sort, sort->place.next));
}

void
fms_sort_restore(FmsSort *sort)
{
	Assert(sort->options.marks);
	sort->place = sort->mark;
}

void
fms_sort_end(FmsSort *sort)
{
	if (sort->spill)
	{
		fms_spill_end(sort->spill);
		fms_arena_free(&sort->formation->arena);
	}
	else
		fms_arena_end(&sort->formation->arena);
	leave_share(sort);
	MemoryContextDelete(sort->context);
}

static void
count_dropped(FmsSort *sort)
{
	FmsGroupFilter *filter = fms_keys_group_filter(sort->formation->keys);

	if (filter)
		fms_count(sort->counters, FMS_COUNT_DUPLICATES_DROPPED,
				  fms_group_filter_dropped(filter));
}

void
fms_sort_count(FmsSort *sort)
{
	if (sort->phase == FMS_PHASE_LOADING)
		count_input(sort);
	count_dropped(sort);
	if (sort->spill)
		fms_count_set_us(sort->counters, FMS_COUNT_MERGING_NS,
						 fms_spill_merging_us(sort->spill));
}

/* ---- parallel sorts ---- */

/* All blocks have one size, so it is chosen before any participant spills. */
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
		fms_sizing_choose(modes[options.mode], &options).block_bytes;
	share = fms_share_create(&options);
	if (share)
	{
		share->shared->leader = progress;
		sort->share = share;
		sort->options.files = &share->files;
		sort->options.agreed_block_bytes = options.agreed_block_bytes;
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
	sort->share = share;
	sort->options.files = &share->files;
	return sort;
}

void
fms_sort_hand_over(FmsSort *sort)
{
	FmsPart    *part =
		&sort->share->shared->parts[sort->share->files.participant - 1];

	finish_input(sort);
	if (sort->options.bound > 0)
		fms_formation_sort(sort->formation);
	if (fms_formation_count(sort->formation) > 0)
		write_run(sort, fms_formation_memory_bytes(sort->formation));
	fms_arena_free(&sort->formation->arena);
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
}

const FmsCounters *
fms_sort_adopt(FmsSort *sort, int worker)
{
	const FmsPart *part = &sort->share->shared->parts[worker];

	sort->tuples += part->tuples;
	sort->input_bytes += part->input_bytes;
	sort->count += part->count;
	sort->nulls += part->nulls;
	if (part->nruns > 0)
	{
		FmsSharedFiles files = fms_share_files(sort->share, worker);
		Size		used = fms_formation_memory_bytes(sort->formation);
		Size		room;

		if (sort->spill == NULL)
			begin_spill(sort);
		/* the descriptions of the runs need memory */
		room = fms_sizing_formation_bytes(&sort->sizing,
										  sort->spill->nruns + part->nruns);
		if (used > room)
			write_run(sort, used - room);
		fms_spill_adopt(sort->spill, part, &files);
	}
	return (const FmsCounters *) part->counters;
}
