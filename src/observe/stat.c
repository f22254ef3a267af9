/*-------------------------------------------------------------------------
 *
 * stat.c
 *	  What all sorts of a database have done so far: fmsort_stat.
 *
 * A sort that has ended adds its counters to the process's sums.  When the
 * transaction ends, the process adds its sums to the database's, in shared
 * memory: a lock for each sort would cost small sorts a tenth of their time.
 * A sum is a counter added up over all sorts, so this file names only the
 * counters of sorts that stay PostgreSQL's.
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
#include "storage/lwlock.h"
#include "storage/shmem.h"
#include "utils/builtins.h"
#include "utils/timestamp.h"

#include "observe/reports.h"

/* Rows; the last one is of all databases that have none. */
#define DATABASES		256

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
static FmsCounters pending;		/* sums of this transaction */
static bool is_pending = false;

PG_FUNCTION_INFO_V1(fmsort_stat);
PG_FUNCTION_INFO_V1(fmsort_stat_reset);

/* This database's sums, made if there is room.  Under the lock. */
static FmsCounters *
find_sums(void)
{
	FmsStatRow *row;

	for (int i = 0; i < shared->nrows; i++)
	{
		if (shared->rows[i].database == MyDatabaseId)
			return &shared->rows[i].sums;
	}
	if (shared->nrows == DATABASES)
		return &shared->rows[DATABASES - 1].sums;
	row = &shared->rows[shared->nrows++];
	row->database = shared->nrows == DATABASES ? InvalidOid : MyDatabaseId;
	row->since = GetCurrentTimestamp();
	return &row->sums;
}

static void
add_sums(FmsCounters *to, const FmsCounters *from)
{
	for (int i = 0; i < FMS_NCOUNTERS; i++)
		to->values[i] += from->values[i];
}

static void
flush_pending(void)
{
	if (!is_pending)
		return;
	LWLockAcquire(shared->lock, LW_EXCLUSIVE);
	add_sums(find_sums(), &pending);
	LWLockRelease(shared->lock);
	memset(&pending, 0, sizeof(pending));
	is_pending = false;
}

/* An exit ends the transaction, too. */
static void
end_transaction(XactEvent event, void *arg)
{
	flush_pending();
}

Size
fms_stat_shared_bytes(void)
{
	return sizeof(FmsStatShared);
}

void
fms_stat_share(void)
{
	bool		found;

	if (shared == NULL)			/* not after a crash */
		RegisterXactCallback(end_transaction, NULL);
	shared = ShmemInitStruct("fmsort stat", sizeof(FmsStatShared), &found);
	if (!found)
	{
		memset(shared, 0, sizeof(FmsStatShared));
		shared->lock = &GetNamedLWLockTranche("fmsort")->lock;
	}
}

void
fms_stat_add(const FmsCounters *counters)
{
	if (shared == NULL)
		return;
	add_sums(&pending, counters);
	is_pending = true;
}

void
fms_stat_sorts_left(int to_server, int to_extensions)
{
	if (shared == NULL || to_server + to_extensions == 0)
		return;
	fms_count(&pending, FMS_COUNT_LEFT_TO_SERVER, to_server);
	fms_count(&pending, FMS_COUNT_LEFT_TO_EXTENSIONS, to_extensions);
	fms_count(&pending, FMS_COUNT_FALLBACKS, to_server + to_extensions);
	is_pending = true;
}

Datum
fmsort_stat(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *result = (ReturnSetInfo *) fcinfo->resultinfo;
	FmsStatRow *rows;
	int			nrows;

	fms_require_shared(shared);
	InitMaterializedSRF(fcinfo, 0);
	rows = palloc(DATABASES * sizeof(FmsStatRow));
	flush_pending();
	LWLockAcquire(shared->lock, LW_SHARED);
	nrows = shared->nrows;
	memcpy(rows, shared->rows, nrows * sizeof(FmsStatRow));
	LWLockRelease(shared->lock);

	for (int i = 0; i < nrows; i++)
	{
		FmsRow		row = fms_row_begin(result, &rows[i].sums, true);

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

	fms_require_shared(shared);
	flush_pending();
	LWLockAcquire(shared->lock, LW_EXCLUSIVE);
	for (int i = 0; i < shared->nrows; i++)
	{
		memset(&shared->rows[i].sums, 0, sizeof(FmsCounters));
		shared->rows[i].since = now;
	}
	LWLockRelease(shared->lock);
	PG_RETURN_VOID();
}
