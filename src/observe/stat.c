/*-------------------------------------------------------------------------
 *
 * stat.c
 *	  What all sorts of a database have done so far: fmsort_stat.
 *
 *	  sort ends --> pending, in this process --> totals, in shared memory
 *	                (no lock)      at the end of the transaction, or after
 *	                               some sorts or one that spilled
 *
 * Pending sums go to shared memory without waiting: if another backend has the
 * lock, they stay until the next occasion, at the latest until exit.  Each
 * sum is a counter added up over all sorts of a database, so this file names
 * no counter but those of sorts that stay PostgreSQL's.
 *
 * Databases that find the fixed table full share its last row.  Parallel
 * workers add their own sorts.  A sort whose query fails is not counted.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xact.h"
#include "fmgr.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "storage/ipc.h"
#include "storage/lwlock.h"
#include "storage/shmem.h"
#include "utils/builtins.h"
#include "utils/timestamp.h"

#include "observe/reports.h"

/* Rows; the last one is of all databases that have none. */
#define DATABASES		256

/* So many sorts may be pending within a transaction. */
#define PENDING_MAX		64

typedef struct FmsStatRow
{
	Oid			database;		/* invalid: the row of all others */
	TimestampTz since;
	FmsCounters sums;			/* each counter summed over all sorts */
} FmsStatRow;

typedef struct FmsStatShared
{
	LWLock	   *lock;			/* on all that follows */
	int			nrows;
	FmsStatRow	rows[DATABASES];
} FmsStatShared;

static FmsStatShared *shared = NULL;
static FmsCounters pending;
static int	npending = 0;		/* additions in it */
static bool registered = false;

PG_FUNCTION_INFO_V1(fmsort_stat);
PG_FUNCTION_INFO_V1(fmsort_stat_reset);

Size
fms_stat_shared_bytes(void)
{
	return sizeof(FmsStatShared);
}

void
fms_stat_share(void)
{
	bool		found;

	LWLockAcquire(AddinShmemInitLock, LW_EXCLUSIVE);
	shared = ShmemInitStruct("fmsort stat", sizeof(FmsStatShared), &found);
	if (!found)
	{
		memset(shared, 0, sizeof(FmsStatShared));
		shared->lock = &GetNamedLWLockTranche("fmsort")->lock;
	}
	LWLockRelease(AddinShmemInitLock);
}

/* ---- from pending to totals ---- */

static void
add_sums(FmsCounters *to, const FmsCounters *from)
{
	int			i;

	for (i = 0; i < FMS_NCOUNTERS; i++)
		to->values[i] += from->values[i];
}

/* This database's row, made if there is room.  Under the lock. */
static FmsStatRow *
my_row(void)
{
	FmsStatRow *row;
	int			i;

	for (i = 0; i < shared->nrows; i++)
	{
		if (shared->rows[i].database == MyDatabaseId)
			return &shared->rows[i];
	}
	if (shared->nrows == DATABASES)
		return &shared->rows[DATABASES - 1];
	row = &shared->rows[shared->nrows++];
	row->database = shared->nrows == DATABASES ? InvalidOid : MyDatabaseId;
	row->since = GetCurrentTimestamp();
	return row;
}

static void
flush_pending(bool wait)
{
	if (npending == 0)
		return;
	if (wait)
		LWLockAcquire(shared->lock, LW_EXCLUSIVE);
	else if (!LWLockConditionalAcquire(shared->lock, LW_EXCLUSIVE))
		return;
	add_sums(&my_row()->sums, &pending);
	LWLockRelease(shared->lock);
	memset(&pending, 0, sizeof(pending));
	npending = 0;
}

static void
flush_at_end_of_transaction(XactEvent event, void *arg)
{
	switch (event)
	{
		case XACT_EVENT_COMMIT:
		case XACT_EVENT_PARALLEL_COMMIT:
		case XACT_EVENT_ABORT:
		case XACT_EVENT_PARALLEL_ABORT:
		case XACT_EVENT_PREPARE:
			flush_pending(false);
			break;
		default:
			break;
	}
}

static void
flush_at_exit(int code, Datum arg)
{
	flush_pending(true);
}

/* Something is about to be added to the pending sums. */
static void
begin_pending(void)
{
	npending++;
	if (registered)
		return;
	registered = true;
	RegisterXactCallback(flush_at_end_of_transaction, NULL);
	before_shmem_exit(flush_at_exit, (Datum) 0);
}

/* ---- what is counted ---- */

void
fms_stat_add(const FmsCounters *counters)
{
	if (shared == NULL)
		return;
	begin_pending();
	add_sums(&pending, counters);
	if (npending >= PENDING_MAX || fms_counters_external(counters))
		flush_pending(false);
}

void
fms_stat_sorts_left(int to_server, int to_extensions)
{
	if (shared == NULL || to_server + to_extensions == 0)
		return;
	begin_pending();
	fms_count(&pending, FMS_COUNT_LEFT_TO_SERVER, to_server);
	fms_count(&pending, FMS_COUNT_LEFT_TO_EXTENSIONS, to_extensions);
	fms_count(&pending, FMS_COUNT_FALLBACKS, to_server + to_extensions);
}

/* ---- for users ---- */

Datum
fmsort_stat(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *result = (ReturnSetInfo *) fcinfo->resultinfo;
	FmsStatRow *rows;
	int			nrows;
	int			i;

	fms_require_shared(shared, "fmsort_stat");
	InitMaterializedSRF(fcinfo, 0);
	rows = palloc(DATABASES * sizeof(FmsStatRow));
	flush_pending(true);
	LWLockAcquire(shared->lock, LW_SHARED);
	nrows = shared->nrows;
	memcpy(rows, shared->rows, nrows * sizeof(FmsStatRow));
	LWLockRelease(shared->lock);

	for (i = 0; i < nrows; i++)
	{
		FmsRow		row = fms_row_begin(result, &rows[i].sums);

		if (OidIsValid(rows[i].database))
			fms_row_set(&row, "datid", ObjectIdGetDatum(rows[i].database));
		fms_row_set(&row, "stats_since", TimestampTzGetDatum(rows[i].since));
		fms_row_end(&row);
	}
	return (Datum) 0;
}

/* All databases: zero from now on. */
Datum
fmsort_stat_reset(PG_FUNCTION_ARGS)
{
	TimestampTz now = GetCurrentTimestamp();
	int			i;

	fms_require_shared(shared, "fmsort_stat_reset()");
	flush_pending(true);
	LWLockAcquire(shared->lock, LW_EXCLUSIVE);
	for (i = 0; i < shared->nrows; i++)
	{
		memset(&shared->rows[i].sums, 0, sizeof(FmsCounters));
		shared->rows[i].since = now;
	}
	LWLockRelease(shared->lock);
	PG_RETURN_VOID();
}
