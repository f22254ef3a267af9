/*-------------------------------------------------------------------------
 *
 * progress.c
 *	  Running sorts, for other sessions to look at: fmsort_progress.
 *
 * Shared memory has some places for every backend.  A sort that begins takes
 * one of its backend's, and its counters (counters.h) simply lie there: what
 * it counts is visible as it counts it, and nothing is ever copied or sent on
 * the sort's side.
 *
 *	  backend 0	 [sort][sort][ -- ]..	 <-- written by backend 0 only
 *	  backend 1	 [ -- ][ -- ][ -- ]..
 *	  ..			 ^
 *	                 +-- any session copies, checks `changes`, copies again
 *
 * No locks: a place has one writer.  The reader copies it between two looks
 * at the change counter that is part of the counters; if it was odd, or has
 * changed, the copy is of two sorts or of half a change, and is made again.
 *
 * What the numbers mean, in per cent and in time, is estimate.c's business.
 *
 * Without shared memory a sort counts in its own.  The same goes for a sort
 * that finds all places of its backend taken, and it is not to be seen.
 *
 * On ERROR: the place is given back by a reset callback of the query's memory
 * context, which runs after everything below it is gone; when the backend
 * exits, by a callback of its exit.  A backend that was killed takes shared
 * memory down with it.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/parallel.h"
#include "catalog/pg_authid.h"
#include "fmgr.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "storage/ipc.h"
#include "storage/lwlock.h"
#include "storage/proc.h"
#include "storage/shmem.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/timestamp.h"
#include "utils/tuplestore.h"

#include "base/clock.h"
#include "observe/estimate.h"
#include "observe/progress.h"

/* Sorts that a backend can show at once. */
#define PLACES			8

/* Copies made of a place before it is left out. */
#define COPIES_MAX		1000

#define RESULT_COLUMNS	25

typedef struct FmsProgressSlot
{
	bool		in_use;
	int			pid;
	int			leader_pid;		/* of a parallel worker, else 0 */
	Oid			database;
	Oid			user;
	FmsWatched	sort;			/* the `changes` of its counters guard all of
								 * this */
} FmsProgressSlot;

/* A place in shared memory begins on a cache line of its own. */
#define PLACE_BYTES		CACHELINEALIGN(sizeof(FmsProgressSlot))

static char *places = NULL;		/* shared, or NULL */
static bool exit_registered = false;

PG_FUNCTION_INFO_V1(fmsort_progress);

/* ---- the writer's side ---- */

Size
fms_progress_shared_bytes(void)
{
	return add_size(mul_size(mul_size(MaxBackends, PLACES), PLACE_BYTES),
					PG_CACHE_LINE_SIZE);
}

void
fms_progress_share(void)
{
	bool		found;
	char	   *memory;

	LWLockAcquire(AddinShmemInitLock, LW_EXCLUSIVE);
	memory = ShmemInitStruct("fmsort progress", fms_progress_shared_bytes(),
							 &found);
	places = (char *) CACHELINEALIGN(memory);
	if (!found)
		memset(memory, 0, fms_progress_shared_bytes());
	LWLockRelease(AddinShmemInitLock);
}

static FmsProgressSlot *
place_of(int backend, int number)
{
	return (FmsProgressSlot *) (places + ((Size) backend * PLACES + number) *
						 PLACE_BYTES);
}

/* Auxiliary processes come after the backends, and do not sort. */
static int
my_backend(void)
{
	return (int) (MyProc - ProcGlobal->allProcs);
}

static void
leave(FmsProgressSlot *place)
{
	fms_counters_begin_change(&place->sort.counters);
	place->in_use = false;
	fms_counters_end_change(&place->sort.counters);
}

static void
leave_at_exit(int code, Datum arg)
{
	int			i;

	for (i = 0; i < PLACES; i++)
		leave(place_of(DatumGetInt32(arg), i));
}

static void
leave_on_reset(void *arg)
{
	leave(arg);
}

/* A place of this backend that no sort has, or NULL. */
static FmsProgressSlot *
free_place(void)
{
	int			backend;
	int			i;

	if (places == NULL || MyProc == NULL)
		return NULL;
	backend = my_backend();
	if (backend < 0 || backend >= MaxBackends)
		return NULL;
	if (!exit_registered)
	{
		before_shmem_exit(leave_at_exit, Int32GetDatum(backend));
		exit_registered = true;
	}
	for (i = 0; i < PLACES; i++)
	{
		if (!place_of(backend, i)->in_use)
			return place_of(backend, i);
	}
	return NULL;
}

/* Makes it this backend's, and a new sort's. */
static void
enter(FmsProgressSlot *place)
{
	place->in_use = true;
	place->pid = MyProcPid;
	place->leader_pid = IsParallelWorker() && MyProc->lockGroupLeader ?
		MyProc->lockGroupLeader->pid : 0;
	place->database = MyDatabaseId;
	place->user = GetSessionUserId();
}

FmsCounters *
fms_progress_begin(double expected, bool grouped)
{
	MemoryContextCallback *callback;
	FmsProgressSlot   *place = free_place();

	if (place == NULL)
		return &((FmsProgressSlot *)
				 palloc0(sizeof(FmsProgressSlot)))->sort.counters;

	callback = palloc(sizeof(MemoryContextCallback));
	callback->func = leave_on_reset;
	callback->arg = place;
	fms_counters_begin_change(&place->sort.counters);
	enter(place);
	place->sort.grouped = grouped;
	place->sort.last_group = false;
	place->sort.expected = expected;
	place->sort.earlier = 0;
	fms_counters_end_change(&place->sort.counters);
	MemoryContextRegisterResetCallback(CurrentMemoryContext, callback);
	return &place->sort.counters;
}

static FmsProgressSlot *
place_with(FmsCounters *counters)
{
	return (FmsProgressSlot *) ((char *) counters -
						 offsetof(FmsProgressSlot, sort.counters));
}

void
fms_progress_next_group(FmsCounters *counters, uint64 earlier)
{
	FmsProgressSlot   *place = place_with(counters);

	fms_counters_begin_change(counters);
	place->sort.earlier = earlier;
	place->sort.last_group = false;
	counters->tuples = 0;
	fms_counters_end_change(counters);
}

void
fms_progress_last_group(FmsCounters *counters)
{
	place_with(counters)->sort.last_group = true;
}

/* ---- the reader's side ---- */

static const char *
phase_name(const FmsCounters *counters)
{
	switch (counters->phase)
	{
		case FMS_PHASE_LOADING:
			return "run formation";
		case FMS_PHASE_PASSES:
			return "intermediate merge";
		case FMS_PHASE_MERGING:
			return "last merge";
		case FMS_PHASE_IN_MEMORY:
			return "reading from memory";
	}
	return "unknown";
}

/*
 * A consistent copy.  False if nothing is there; or if it changes all the
 * time: then it is a sort too small to be looked at.
 */
static bool
copy_place(const FmsProgressSlot *place, FmsProgressSlot *copy)
{
	volatile const uint32 *changes = &place->sort.counters.changes;
	int			i;

	for (i = 0; i < COPIES_MAX; i++)
	{
		uint32		before = *changes;

		pg_read_barrier();
		memcpy(copy, place, sizeof(FmsProgressSlot));
		pg_read_barrier();
		if (before == *changes && before % 2 == 0)
			return copy->in_use;
	}
	return false;
}

static bool
may_see(const FmsProgressSlot *place)
{
	return has_privs_of_role(GetUserId(), place->user) ||
		has_privs_of_role(GetUserId(), ROLE_PG_READ_ALL_STATS);
}

/* The planner guesses up to 1e100 rows. */
static int64
bigint_of(double number)
{
	return number < (double) PG_INT64_MAX ? (int64) number : PG_INT64_MAX;
}

/* The columns of fmsort_progress() in order; see the SQL definition. */
static void
fill_row(const FmsProgressSlot *place, Datum *values, bool *nulls)
{
	const FmsCounters *counters = &place->sort.counters;
	const FmsOptions *options = &counters->options;
	TimestampTz now = GetCurrentTimestamp();
	double		elapsed_us = fms_clock_since_us(counters->began);
	double		left = fms_estimate_left_us(&place->sort, elapsed_us);
	bool		spilled = counters->runs > 0;
	int			i = 0;

	memset(nulls, 0, RESULT_COLUMNS * sizeof(bool));
	values[i++] = Int32GetDatum(place->pid);
	nulls[i] = place->leader_pid == 0;
	values[i++] = Int32GetDatum(place->leader_pid);
	values[i++] = ObjectIdGetDatum(place->database);
	values[i++] = ObjectIdGetDatum(place->user);
	values[i++] = CStringGetTextDatum(phase_name(counters));
	values[i++] = Float8GetDatum(fms_estimate_percent(&place->sort));
	values[i++] = TimestampTzGetDatum(now - (int64) elapsed_us);
	/* not known, or so late that there is no such time */
	nulls[i] = !(left >= 0 && left < END_TIMESTAMP - now);
	values[i] = nulls[i] ? (Datum) 0 : TimestampTzGetDatum(now + (int64) left);
	i++;
	values[i++] = Int64GetDatum((int64) fms_estimate_tuples_in(&place->sort));
	values[i++] = Int64GetDatum(bigint_of(place->sort.expected));
	values[i++] = Int64GetDatum(counters->runs);
	nulls[i] = counters->phase != FMS_PHASE_PASSES &&
		counters->phase != FMS_PHASE_MERGING;
	nulls[i + 1] = nulls[i + 2] = nulls[i];
	values[i++] = Int32GetDatum(counters->runs_left);
	values[i++] = Int64GetDatum(Min(counters->merge_blocks_done,
									counters->merge_blocks));
	values[i++] = Int64GetDatum(counters->merge_blocks);
	values[i++] = Int64GetDatum(counters->read_bytes);
	values[i++] = Int64GetDatum(counters->written_bytes);
	values[i++] = Float8GetDatum(counters->blocked_us / 1000.0);
	values[i++] = Int64GetDatum(options->memory_bytes / 1024);
	values[i++] = CStringGetTextDatum(fms_mode_name(options->mode));
	nulls[i] = nulls[i + 2] = nulls[i + 3] = !spilled;
	values[i++] = Int32GetDatum(counters->block_bytes);
	nulls[i] = nulls[i - 1] || counters->merge_blocks == 0;
	values[i++] = Int32GetDatum(counters->assist_blocks);
	values[i++] = CStringGetTextDatum(fms_counters_io_method(counters));
	values[i++] = BoolGetDatum(counters->uses_direct_io);
	nulls[i] = options->bound == 0;
	values[i++] = Int64GetDatum(options->bound);
	values[i++] = BoolGetDatum(place->sort.grouped);
	Assert(i == RESULT_COLUMNS);
}

Datum
fmsort_progress(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *result = (ReturnSetInfo *) fcinfo->resultinfo;
	int			backend;
	int			i;

	if (places == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("fmsort_progress needs shared memory that fmsort has not got"),
				 errdetail("The library was not loaded when the server started."),
				 errhint("Add \"fmsort\" to shared_preload_libraries in postgresql.conf and restart the server.")));
	InitMaterializedSRF(fcinfo, 0);
	for (backend = 0; backend < MaxBackends; backend++)
	{
		for (i = 0; i < PLACES; i++)
		{
			FmsProgressSlot	place;
			Datum		values[RESULT_COLUMNS] = {0};
			bool		nulls[RESULT_COLUMNS];

			if (!copy_place(place_of(backend, i), &place) ||
				!may_see(&place) ||
				INSTR_TIME_IS_ZERO(place.sort.counters.began))
				continue;
			fill_row(&place, values, nulls);
			tuplestore_putvalues(result->setResult, result->setDesc, values,
								 nulls);
		}
	}
	return (Datum) 0;
}
