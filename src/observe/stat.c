/*-------------------------------------------------------------------------
 *
 * stat.c
 *	  What all sorts of a database have done so far: fmsort_stat.
 *
 *	  sort ends --> pending, in this process --> totals, in shared memory
 *	                (no lock)      at the end of the transaction, or after
 *	                               some sorts or one that spilled
 *
 * A query may sort a million times (LATERAL), so a sort that ends only adds to
 * sums of its own process.  These go to shared memory when a transaction ends
 * and before that if much has come together.  If another backend is at it
 * right then they wait for the next occasion: nobody is held up by statistics,
 * but at exit.
 *
 * Totals have a fixed table, a row a database.  Databases that find it full
 * share the last row.  It starts empty with the server, as a crash would empty
 * it anyway; to keep numbers longer, sample the view.
 *
 * Parallel workers add what they did themselves.  Sorts whose query fails are
 * not counted: what they did was not finished.
 *
 * Why not a file of its own per session, or the server's statistics collector:
 * that takes no extensions before 18.
 *
 * On ERROR: pending sums stay, and go out with the abort.
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
#include "utils/tuplestore.h"

#include "base/sql_version.h"
#include "observe/stat.h"

/* Rows; the last one is of all databases that have none. */
#define DATABASES		256

/* So many sorts may be pending within a transaction. */
#define PENDING_MAX		64

#define RESULT_COLUMNS	30

/* Sums; all of them counts, so that they can be added one by one. */
typedef struct FmsStatSums
{
	uint64		in_memory;		/* sorts by method */
	uint64		top_n;
	uint64		external;
	uint64		tuples;
	uint64		spilled_bytes;
	uint64		read_bytes;
	uint64		written_bytes;
	uint64		runs;
	uint64		merge_passes;
	uint64		more_passes;	/* sorts that took more than one */
	uint64		blocks;
	uint64		reads;
	uint64		read_batches;
	uint64		writes;
	uint64		formation_us;
	uint64		input_us;
	uint64		order_us;
	uint64		merge_us;
	uint64		blocked_us;
	uint64		spills_avoided;
	uint64		kept_bytes;
	uint64		uring_refused;	/* fall-backs */
	uint64		direct_refused;
	uint64		block_lowered;
	uint64		left_to_server; /* Sorts that stayed PostgreSQL's */
	uint64		left_to_extensions;
} FmsStatSums;

#define NSUMS (sizeof(FmsStatSums) / sizeof(uint64))

typedef struct FmsStatRow
{
	Oid			database;		/* invalid: the row of all others */
	TimestampTz since;
	FmsStatSums sums;
} FmsStatRow;

typedef struct FmsStatShared
{
	LWLock	   *lock;			/* on all that follows */
	int			nrows;
	FmsStatRow	rows[DATABASES];
} FmsStatShared;

static FmsStatShared *shared = NULL;
static FmsStatSums pending;
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
add_sums(FmsStatSums *to, const FmsStatSums *from)
{
	uint64	   *to_sums = (uint64 *) to;
	const uint64 *from_sums = (const uint64 *) from;
	size_t		i;

	for (i = 0; i < NSUMS; i++)
		to_sums[i] += from_sums[i];
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

/*
 * A bound has kept the tuples in memory that otherwise would not have fitted.
 */
static bool
avoided_spill(const FmsCounters *counters)
{
	return counters->method == FMS_METHOD_TOP_N &&
		counters->input_bytes > counters->options.memory_bytes;
}

static void
add_counters(FmsStatSums *sums, const FmsCounters *counters)
{
	sums->in_memory += counters->method == FMS_METHOD_IN_MEMORY;
	sums->top_n += counters->method == FMS_METHOD_TOP_N;
	sums->external += fms_counters_external(counters);
	sums->tuples += counters->tuples;
	sums->formation_us += (uint64) counters->formation_us;
	sums->input_us += (uint64) counters->input_us;
	sums->spills_avoided += avoided_spill(counters);
	if (!fms_counters_external(counters))
		return;
	sums->spilled_bytes += counters->spilled_bytes;
	sums->read_bytes += counters->read_bytes;
	sums->written_bytes += counters->written_bytes;
	sums->runs += counters->runs;
	sums->merge_passes += counters->merge_passes;
	sums->more_passes += counters->merge_passes > 1;
	sums->blocks += counters->blocks;
	sums->reads += counters->reads;
	sums->read_batches += counters->read_batches;
	sums->writes += counters->writes;
	sums->order_us += (uint64) counters->order_us;
	sums->merge_us += (uint64) counters->merge_us;
	sums->blocked_us += (uint64) counters->blocked_us;
	sums->kept_bytes += counters->kept_bytes;
	sums->uring_refused += fms_counters_uring_refused(counters);
	sums->direct_refused += fms_counters_direct_refused(counters);
	sums->block_lowered += fms_counters_block_lowered(counters);
}

void
fms_stat_add(const FmsCounters *counters)
{
	if (shared == NULL)
		return;
	begin_pending();
	add_counters(&pending, counters);
	if (npending >= PENDING_MAX || fms_counters_external(counters))
		flush_pending(false);
}

void
fms_stat_sorts_left(int to_server, int to_extensions)
{
	if (shared == NULL || to_server + to_extensions == 0)
		return;
	begin_pending();
	pending.left_to_server += to_server;
	pending.left_to_extensions += to_extensions;
}

/* ---- for users ---- */

static void
require_shared(const char *what)
{
	if (shared == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("%s needs shared memory that fmsort has not got",
						what),
				 errdetail("The library was not loaded when the server started."),
				 errhint("Add \"fmsort\" to shared_preload_libraries in postgresql.conf and restart the server.")));
}

static Datum
milliseconds(uint64 us)
{
	return Float8GetDatum(us / 1000.0);
}

/* The columns of fmsort_stat() in order; see the SQL definition. */
static void
fill_row(const FmsStatRow *row, Datum *values, bool *nulls)
{
	const FmsStatSums *sums = &row->sums;
	int			i = 0;

	memset(nulls, 0, RESULT_COLUMNS * sizeof(bool));
	nulls[i] = !OidIsValid(row->database);
	values[i++] = ObjectIdGetDatum(row->database);
	values[i++] = Int64GetDatum(sums->in_memory + sums->top_n +
								sums->external);
	values[i++] = Int64GetDatum(sums->in_memory);
	values[i++] = Int64GetDatum(sums->top_n);
	values[i++] = Int64GetDatum(sums->external);
	values[i++] = Int64GetDatum(sums->tuples);
	values[i++] = Int64GetDatum(sums->spilled_bytes);
	values[i++] = Int64GetDatum(sums->read_bytes);
	values[i++] = Int64GetDatum(sums->written_bytes);
	values[i++] = Int64GetDatum(sums->runs);
	values[i++] = Int64GetDatum(sums->merge_passes);
	values[i++] = Int64GetDatum(sums->more_passes);
	values[i++] = Int64GetDatum(sums->blocks);
	values[i++] = Int64GetDatum(sums->reads);
	values[i++] = Int64GetDatum(sums->read_batches);
	values[i++] = Int64GetDatum(sums->writes);
	values[i++] = milliseconds(sums->formation_us);
	values[i++] = milliseconds(sums->input_us);
	values[i++] = milliseconds(sums->order_us);
	values[i++] = milliseconds(sums->merge_us);
	values[i++] = milliseconds(sums->blocked_us);
	values[i++] = Int64GetDatum(sums->spills_avoided);
	values[i++] = Int64GetDatum(sums->kept_bytes);
	values[i++] = Int64GetDatum(sums->uring_refused);
	values[i++] = Int64GetDatum(sums->direct_refused);
	values[i++] = Int64GetDatum(sums->block_lowered);
	values[i++] = Int64GetDatum(sums->left_to_server);
	values[i++] = Int64GetDatum(sums->left_to_extensions);
	values[i++] = Int64GetDatum(sums->uring_refused + sums->direct_refused +
								sums->block_lowered + sums->left_to_server +
								sums->left_to_extensions);
	values[i++] = TimestampTzGetDatum(row->since);
	Assert(i == RESULT_COLUMNS);
}

Datum
fmsort_stat(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *result = (ReturnSetInfo *) fcinfo->resultinfo;
	FmsStatRow *rows;
	int			nrows;
	int			i;

	require_shared("fmsort_stat");
	InitMaterializedSRF(fcinfo, 0);
	fms_require_columns(result->setDesc, RESULT_COLUMNS);
	rows = palloc(DATABASES * sizeof(FmsStatRow));
	flush_pending(true);
	LWLockAcquire(shared->lock, LW_SHARED);
	nrows = shared->nrows;
	memcpy(rows, shared->rows, nrows * sizeof(FmsStatRow));
	LWLockRelease(shared->lock);

	for (i = 0; i < nrows; i++)
	{
		Datum		values[RESULT_COLUMNS];
		bool		nulls[RESULT_COLUMNS];

		fill_row(&rows[i], values, nulls);
		tuplestore_putvalues(result->setResult, result->setDesc, values,
							 nulls);
	}
	return (Datum) 0;
}

/* All databases: zero from now on. */
Datum
fmsort_stat_reset(PG_FUNCTION_ARGS)
{
	TimestampTz now = GetCurrentTimestamp();
	int			i;

	require_shared("fmsort_stat_reset()");
	flush_pending(true);
	LWLockAcquire(shared->lock, LW_EXCLUSIVE);
	for (i = 0; i < shared->nrows; i++)
	{
		memset(&shared->rows[i].sums, 0, sizeof(FmsStatSums));
		shared->rows[i].since = now;
	}
	LWLockRelease(shared->lock);
	PG_RETURN_VOID();
}
