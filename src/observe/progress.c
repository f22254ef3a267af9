/*-------------------------------------------------------------------------
 *
 * progress.c
 *	  Running sorts, for other sessions to look at: fmsort_progress.
 *
 * Shared memory has some slots for each backend.  A sort that begins takes one
 * of its backend's slots and counts there (base/counters.h), so its counters
 * are visible as it counts, and the sort copies and sends nothing.
 *
 *	  backend 0	 [sort][sort][ -- ]..	 <-- written by backend 0 only
 *	  backend 1	 [ -- ][ -- ][ -- ]..
 *	  ..			 ^
 *	                 +-- any session copies it, and checks `changes`
 *
 * No locks: a slot has one writer.  A reader copies the slot between two looks
 * at the change counter, and again if that was odd or differs.
 *
 * Without shared memory, or if all slots of its backend are taken, a sort
 * counts in its own memory and is not shown.  A reset callback of the query's
 * memory context gives the slot back, also on ERROR and at exit.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <math.h>

#include "access/parallel.h"
#include "catalog/pg_authid.h"
#include "fmgr.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "storage/proc.h"
#include "storage/shmem.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/timestamp.h"
#include "utils/tuplestore.h"

#include "observe/reports.h"

/* Sorts that a backend can show at once. */
#define SLOTS			8

/* Copies made of a slot before it is left out. */
#define COPIES_MAX		1000

typedef struct FmsProgressSlot
{
	int			pid;			/* 0: no sort has the slot */
	int			leader_pid;		/* of a parallel worker, else 0 */
	Oid			database;
	Oid			user;
	FmsCounters counters;		/* its `changes` guards the whole slot */
} FmsProgressSlot;

/* Shared, [MaxBackends * SLOTS], or NULL. */
static FmsProgressSlot *slots = NULL;

PG_FUNCTION_INFO_V1(fmsort_progress);

/* ---- the writer's side ---- */

Size
fms_progress_shared_bytes(void)
{
	return mul_size(mul_size(MaxBackends, SLOTS), sizeof(FmsProgressSlot));
}

void
fms_progress_share(void)
{
	bool		found;

	slots = ShmemInitStruct("fmsort progress", fms_progress_shared_bytes(),
							&found);
	if (!found)
		memset(slots, 0, fms_progress_shared_bytes());
}

static void
leave_on_reset(void *arg)
{
	FmsProgressSlot *slot = arg;

	fms_counters_begin_change(&slot->counters);
	slot->pid = 0;
	fms_counters_end_change(&slot->counters);
}

/* A slot of this backend that no sort has, or NULL. */
static FmsProgressSlot *
free_slot(void)
{
	if (slots == NULL || MyProc == NULL)
		return NULL;
	for (int i = 0; i < SLOTS; i++)
	{
		ptrdiff_t	number = (MyProc - ProcGlobal->allProcs) * SLOTS + i;

		/* auxiliary processes come after the backends */
		if (number < MaxBackends * SLOTS && slots[number].pid != MyProcPid)
			return &slots[number];
	}
	return NULL;
}

FmsCounters *
fms_progress_shared(FmsCounters *counters)
{
	return slots != NULL && (char *) counters >= (char *) slots &&
		(char *) counters < (char *) &slots[MaxBackends * SLOTS] ?
		counters : NULL;
}

FmsCounters *
fms_progress_begin(void)
{
	MemoryContextCallback *callback;
	FmsProgressSlot *slot = free_slot();

	if (slot == NULL)
		return palloc0(sizeof(FmsCounters));

	callback = palloc(sizeof(MemoryContextCallback));
	callback->func = leave_on_reset;
	callback->arg = slot;
	fms_counters_begin_change(&slot->counters);
	slot->pid = MyProcPid;
	slot->leader_pid = IsParallelWorker() && MyProc->lockGroupLeader ?
		MyProc->lockGroupLeader->pid : 0;
	slot->database = MyDatabaseId;
	slot->user = GetSessionUserId();
	fms_counters_clear(&slot->counters);
	fms_counters_end_change(&slot->counters);
	MemoryContextRegisterResetCallback(CurrentMemoryContext, callback);
	return &slot->counters;
}

/* ---- the reader's side ---- */

/* A consistent copy; false if nothing is there, or it changes all the time. */
static bool
copy_slot(const FmsProgressSlot *slot, FmsProgressSlot *copy)
{
	volatile const uint64 *changes = &slot->counters.changes;

	for (int i = 0; i < COPIES_MAX; i++)
	{
		uint64		before = *changes;

		pg_read_barrier();
		memcpy(copy, slot, sizeof(FmsProgressSlot));
		pg_read_barrier();
		if (before == *changes && before % 2 == 0)
			return copy->pid != 0;
	}
	return false;
}

static bool
may_see(const FmsProgressSlot *slot)
{
	return has_privs_of_role(GetUserId(), slot->user) ||
		has_privs_of_role(GetUserId(), ROLE_PG_READ_ALL_STATS);
}

static void
add_row(ReturnSetInfo *result, FmsProgressSlot *slot)
{
	const FmsCounters *counters = &slot->counters;
	uint64		blocks = fms_counter(counters, FMS_COUNT_MERGE_BLOCKS);
	TimestampTz now = GetCurrentTimestamp();
	double		elapsed_us = Max(0, now - (TimestampTz)
								 fms_counter(counters, FMS_COUNT_STARTED));
	double		left_us = fms_estimate_left_us(counters, elapsed_us);
	double		percent = fms_estimate_percent(counters);
	FmsRow		row = fms_row_begin(result, counters,
									fms_counter(counters, FMS_COUNT_RUNS) > 0);

	fms_row_set(&row, "pid", Int32GetDatum(slot->pid));
	if (slot->leader_pid != 0)
		fms_row_set(&row, "leader_pid", Int32GetDatum(slot->leader_pid));
	fms_row_set(&row, "datid", ObjectIdGetDatum(slot->database));
	fms_row_set(&row, "usesysid", ObjectIdGetDatum(slot->user));
	fms_row_set(&row, "percent", Float8GetDatum(rint(percent * 10) / 10));
	/* unknown, or so late that there is no such time */
	if (left_us >= 0 && left_us < END_TIMESTAMP - now)
		fms_row_set(&row, "estimated_end_time",
					TimestampTzGetDatum(now + (int64) left_us));
	fms_row_set(&row, "tuples_done",
				Int64GetDatum(fms_estimate_tuples_in(counters)));
	if (blocks > 0)
		fms_row_set(&row, "blocks_done",
					Int64GetDatum(Min(fms_counter(counters,
												  FMS_COUNT_MERGE_BLOCKS_DONE),
									  blocks)));
	fms_row_end(&row);
}

Datum
fmsort_progress(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *result = (ReturnSetInfo *) fcinfo->resultinfo;

	fms_require_shared(slots);
	InitMaterializedSRF(fcinfo, 0);
	for (int i = 0; i < MaxBackends * SLOTS; i++)
	{
		FmsProgressSlot slot;

		if (copy_slot(&slots[i], &slot) &&
			may_see(&slot) &&
			fms_counter(&slot.counters, FMS_COUNT_STARTED) != 0)
			add_row(result, &slot);
	}
	return (Datum) 0;
}
