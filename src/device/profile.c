/*-------------------------------------------------------------------------
 *
 * profile.c
 *	  What was measured of the devices under the tablespaces: kept in two
 *	  tables, and remembered.
 *
 *	  fmsort_calibrate() --> fmsort_device_profile		a row a tablespace
 *							 fmsort_device_rate			a row a measurement
 *								|  first spill of a session, and after changes
 *								v
 *							 FmsDevice, in this process --> a sort's options
 *
 * A profile belongs to a tablespace's OID, location, device and host.  Where
 * one of them differs, as on a standby, the profile is ignored; null matches
 * anything.  Owners may correct the numbers, so those that make no sense count
 * as not measured.
 *
 * Reading happens in the middle of a user's query, in parallel workers, too.
 * It takes a lock only if the lock is free, and releases it at once.  It scans
 * with SnapshotAny and asks for each row whether the latest snapshot sees it:
 * so both tables are read as of one moment, and a serializable transaction
 * takes no predicate lock, as it would for a scan with an MVCC snapshot.
 *
 * The answer is remembered until a statement trigger on the tables, or DDL,
 * invalidates their relation.  Writing goes the way that catalogs
 * are written: whoever may measure need have no right to write the tables.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <sys/utsname.h>

#include "access/genam.h"
#include "access/relation.h"
#include "access/relscan.h"
#include "access/table.h"
#include "access/tableam.h"
#include "access/xact.h"
#include "catalog/indexing.h"
#include "catalog/pg_extension.h"
#include "catalog/pg_type.h"
#include "commands/tablespace.h"
#include "commands/trigger.h"
#include "miscadmin.h"
#include "storage/fd.h"
#include "storage/lmgr.h"
#include "utils/fmgroids.h"
#include "utils/guc.h"
#include "utils/inval.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"
#include "utils/timestamp.h"

#include "base/compat.h"
#include "device/temp_tablespace.h"
#include "device/profile.h"
#include "base/sql_version.h"

#define PROFILE_TABLE	"fmsort_device_profile"
#define RATE_TABLE		"fmsort_device_rate"

/*
 * A measurement that left points out replaces a profile if it has such a part
 * of its rates: how many points have their turn is a matter of chance, too.
 */
#define ENOUGH_PART		0.75

/* The tables' columns; see the SQL definitions. */
enum
{
	PROFILE_TABLESPACE, PROFILE_LOCATION, PROFILE_DEVICE, PROFILE_HOST,
	PROFILE_MEASURED_AT, PROFILE_KERNEL, PROFILE_SERVER, PROFILE_IO_METHOD,
	PROFILE_SECONDS, PROFILE_FILE_BYTES,
	PROFILE_COLUMNS
};

static const Oid profile_types[PROFILE_COLUMNS] = {
	OIDOID, TEXTOID, TEXTOID, TEXTOID, TIMESTAMPTZOID, TEXTOID, TEXTOID,
	TEXTOID, FLOAT8OID, INT8OID
};

enum
{
	RATE_TABLESPACE, RATE_PATTERN, RATE_BLOCK_BYTES, RATE_DEPTH, RATE_MB,
	RATE_COLUMNS
};

static const Oid rate_types[RATE_COLUMNS] = {
	OIDOID, TEXTOID, INT4OID, INT4OID, FLOAT8OID
};

/* What is remembered, and of what. */
static bool remembered = false;
static uint64 changes = 0;		/* that we were told of */
static Oid	remembered_tablespace;
static FmsDevice remembered_device;
static Oid	profile_relation = InvalidOid;
static Oid	rate_relation = InvalidOid;

PG_FUNCTION_INFO_V1(fmsort_profile_changed);

/* ---- forgetting ---- */

static void
forget(void)
{
	remembered = false;
	changes++;
}

static void
forget_relation(Datum arg, Oid relation)
{
	if (relation == InvalidOid || relation == profile_relation ||
		relation == rate_relation || rate_relation == InvalidOid)
		forget();
}

static void
forget_tablespace(Datum arg, int cache, uint32 hash)
{
	forget();
}

static void
watch(void)
{
	static bool watching = false;

	if (watching)
		return;
	CacheRegisterRelcacheCallback(forget_relation, (Datum) 0);
	CacheRegisterSyscacheCallback(TABLESPACEOID, forget_tablespace,
								  (Datum) 0);
	watching = true;
}

/* The tables' statement trigger. */
Datum
fmsort_profile_changed(PG_FUNCTION_ARGS)
{
	if (!CALLED_AS_TRIGGER(fcinfo))
		ereport(ERROR,
				(errcode(ERRCODE_E_R_I_E_TRIGGER_PROTOCOL_VIOLATED),
				 errmsg("fmsort_profile_changed() is a trigger of fmsort's own tables")));
	CacheInvalidateRelcache(((TriggerData *) fcinfo->context)->tg_relation);
	return PointerGetDatum(NULL);
}

/* ---- finding the tables ---- */

/* The extension's schema, or InvalidOid: not created here. */
static Oid
extension_schema(void)
{
	Relation	extensions = table_open(ExtensionRelationId, AccessShareLock);
	ScanKeyData key;
	SysScanDesc scan;
	HeapTuple	tuple;
	Oid			schema = InvalidOid;

	ScanKeyInit(&key, Anum_pg_extension_extname, BTEqualStrategyNumber,
				F_NAMEEQ, CStringGetDatum("fmsort"));
	scan = systable_beginscan(extensions, ExtensionNameIndexId, true, NULL, 1,
							  &key);
	tuple = systable_getnext(scan);
	if (HeapTupleIsValid(tuple))
		schema = ((Form_pg_extension) GETSTRUCT(tuple))->extnamespace;
	systable_endscan(scan);
	table_close(extensions, AccessShareLock);
	return schema;
}

static void
find_tables(void)
{
	Oid			schema = extension_schema();

	profile_relation = rate_relation = InvalidOid;
	if (!OidIsValid(schema))
		return;
	profile_relation = get_relname_relid(PROFILE_TABLE, schema);
	rate_relation = get_relname_relid(RATE_TABLE, schema);
}

/* Another version of the extension has other columns. */
static bool
has_columns(Relation table, const Oid *types, int ncolumns)
{
	TupleDesc	desc = RelationGetDescr(table);

	if (table->rd_rel->relkind != RELKIND_RELATION || desc->natts != ncolumns)
		return false;
	for (int i = 0; i < ncolumns; i++)
	{
		if (TupleDescAttr(desc, i)->atttypid != types[i])
			return false;
	}
	return true;
}

/*
 * Opens a table for reading.  False: somebody is changing it.  NULL: there is
 * no such table of ours.
 */
static bool
open_table(Oid relation, const Oid *types, int ncolumns, Relation *table)
{
	*table = NULL;
	if (!OidIsValid(relation))
		return true;
	if (!ConditionalLockRelationOid(relation, AccessShareLock))
		return false;
	*table = try_relation_open(relation, NoLock);
	if (*table == NULL)
		UnlockRelationOid(relation, AccessShareLock);
	else if (!has_columns(*table, types, ncolumns))
	{
		relation_close(*table, AccessShareLock);
		*table = NULL;
	}
	return true;
}

/* ---- reading ---- */

typedef struct Reading
{
	Oid			tablespace;
	FmsTempTablespace	place;
	bool		matches;		/* there is a profile of that place */
	int			nrates;
	FmsDevice	device;
} Reading;

typedef void (*RowReader) (const Datum *values, const bool *nulls,
						   Reading *reading);

/* Calls reader with each row of that tablespace.  All tables begin with it. */
static void
read_rows(Relation table, Snapshot snapshot, RowReader reader,
		  Reading *reading)
{
	SysScanDesc scan = systable_beginscan(table, InvalidOid, false,
										  SnapshotAny, 0, NULL);
	int			natts = RelationGetDescr(table)->natts;
	Datum	   *values = palloc(natts * sizeof(Datum));
	bool	   *nulls = palloc(natts * sizeof(bool));
	HeapTuple	tuple;

	while (HeapTupleIsValid(tuple = systable_getnext(scan)))
	{
		if (!table_tuple_satisfies_snapshot(table, scan->slot, snapshot))
			continue;
		heap_deform_tuple(tuple, RelationGetDescr(table), values, nulls);
		if (!nulls[0] && DatumGetObjectId(values[0]) == reading->tablespace)
			reader(values, nulls, reading);
	}
	systable_endscan(scan);
	pfree(values);
	pfree(nulls);
}

static void
read_header(const Datum *values, const bool *nulls, Reading *reading)
{
	const char *place[] = {reading->place.location, reading->place.device,
	reading->place.host};

	reading->matches = true;
	for (int i = 0; i < (int) lengthof(place); i++)
	{
		if (!nulls[PROFILE_LOCATION + i] &&
			strcmp(TextDatumGetCString(values[PROFILE_LOCATION + i]),
				   place[i]) != 0)
			reading->matches = false;
	}
}

static void
read_rate(const Datum *values, const bool *nulls, Reading *reading)
{
	for (int i = 0; i < RATE_COLUMNS; i++)
	{
		if (nulls[i])
			return;
	}
	reading->nrates++;
	for (int i = 0; i < FMS_PATTERNS; i++)
	{
		if (strcmp(TextDatumGetCString(values[RATE_PATTERN]),
				   fms_pattern_names[i]) == 0)
			fms_device_note(&reading->device, i,
							DatumGetInt32(values[RATE_BLOCK_BYTES]),
							DatumGetInt32(values[RATE_DEPTH]),
							DatumGetFloat8(values[RATE_MB]));
	}
}

/*
 * Reads that tablespace's profile.  True if the answer may be remembered: the
 * tables could be read, and nothing changed meanwhile.
 */
static bool
read_profile(Oid tablespace, Reading *reading)
{
	uint64		before = changes;
	Relation	profiles;
	Relation	rates = NULL;
	bool		readable;

	memset(reading, 0, sizeof(*reading));
	reading->tablespace = tablespace;
	fms_temp_tablespace_find(tablespace, &reading->place);
	find_tables();
	readable = open_table(profile_relation, profile_types, PROFILE_COLUMNS,
						  &profiles) &&
		open_table(rate_relation, rate_types, RATE_COLUMNS, &rates);
	if (profiles && rates)
	{
		Snapshot	snapshot =
			RegisterSnapshot(GetCatalogSnapshot(rate_relation));

		read_rows(profiles, snapshot, read_header, reading);
		if (reading->matches)
			read_rows(rates, snapshot, read_rate, reading);
		UnregisterSnapshot(snapshot);
	}
	if (profiles)
		relation_close(profiles, AccessShareLock);
	if (rates)
		relation_close(rates, AccessShareLock);
	return readable && changes == before;
}

/* The first of those that temporary files go to. */
static Oid
current_tablespace(void)
{
	Oid			first = InvalidOid;

	PrepareTempTablespaces();
	(void) GetTempTablespaces(&first, 1);
	return OidIsValid(first) ? first : MyDatabaseTableSpace;
}

void
fms_profile_device(FmsDevice *device)
{
	Oid			tablespace = current_tablespace();
	Reading		reading;

	watch();
	if (!remembered || remembered_tablespace != tablespace)
	{
		remembered = false;
		remembered_tablespace = tablespace;
		remembered = read_profile(tablespace, &reading);
		remembered_device = reading.device;
	}
	*device = remembered_device;
}

Oid
fms_profile_tablespace(const char *name)
{
	Oid			tablespace;
	AclResult	right;

	if (name == NULL)
		return current_tablespace();
	tablespace = get_tablespace_oid(name, false);
	if (tablespace == GLOBALTABLESPACE_OID)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("there are no temporary files in tablespace \"%s\"",
						name)));
	if (tablespace != MyDatabaseTableSpace)
	{
		right = fms_tablespace_aclcheck(tablespace);
		if (right != ACLCHECK_OK)
			aclcheck_error(right, OBJECT_TABLESPACE, name);
	}
	return tablespace;
}

/* ---- writing ---- */

void
fms_profile_require_tables(void)
{
	Relation	table;
	bool		readable;

	find_tables();
	readable = open_table(profile_relation, profile_types, PROFILE_COLUMNS,
						  &table);
	if (table)
		relation_close(table, AccessShareLock);
	else if (readable)
		fms_refuse_version();
}

/* Deletes that tablespace's rows. */
static void
delete_rows(Relation table, Oid tablespace)
{
	SysScanDesc scan = systable_beginscan(table, InvalidOid, false, NULL, 0,
										  NULL);
	HeapTuple	tuple;

	while (HeapTupleIsValid(tuple = systable_getnext(scan)))
	{
		bool		isnull;
		Datum		value = heap_getattr(tuple, 1, RelationGetDescr(table),
										 &isnull);

		if (!isnull && DatumGetObjectId(value) == tablespace)
			CatalogTupleDelete(table, &tuple->t_self);
	}
	systable_endscan(scan);
}

static void
insert_row(Relation table, Datum *values)
{
	bool	   *nulls = palloc0(RelationGetDescr(table)->natts * sizeof(bool));
	HeapTuple	tuple = heap_form_tuple(RelationGetDescr(table), values,
										nulls);

	CatalogTupleInsert(table, tuple);
	heap_freetuple(tuple);
	pfree(nulls);
}

bool
fms_profile_store(const FmsProfileFacts *facts, const FmsProbePoint *points,
				  int npoints)
{
	Datum		tablespace = ObjectIdGetDatum(facts->tablespace);
	struct utsname system = {.release = "unknown"};
	Reading		reading;
	Relation	profiles;
	Relation	rates;

	fms_profile_require_tables();
	/* one calibration after the other; whoever reads does not wait */
	profiles = table_open(profile_relation, ShareRowExclusiveLock);
	rates = table_open(rate_relation, RowExclusiveLock);
	(void) read_profile(facts->tablespace, &reading);
	if (!facts->complete && npoints < reading.nrates * ENOUGH_PART)
	{
		table_close(rates, RowExclusiveLock);
		table_close(profiles, ShareRowExclusiveLock);
		return false;
	}
	delete_rows(rates, facts->tablespace);
	delete_rows(profiles, facts->tablespace);
	(void) uname(&system);
	insert_row(profiles, (Datum[PROFILE_COLUMNS]) {
		tablespace, CStringGetTextDatum(reading.place.location),
		CStringGetTextDatum(reading.place.device),
		CStringGetTextDatum(reading.place.host),
		TimestampTzGetDatum(GetCurrentTimestamp()),
		CStringGetTextDatum(system.release),
		CStringGetTextDatum(GetConfigOption("server_version", false, false)),
		CStringGetTextDatum(fms_io_method_name(facts->uses_uring ?
											   FMS_IO_URING : FMS_IO_SYNC)),
		Float8GetDatum(facts->seconds), Int64GetDatum(facts->file_bytes)
	});
	for (int i = 0; i < npoints; i++)
		insert_row(rates, (Datum[RATE_COLUMNS]) {
			tablespace,
			CStringGetTextDatum(fms_pattern_names[points[i].pattern]),
			Int32GetDatum(points[i].block_bytes),
			Int32GetDatum(points[i].depth), Float8GetDatum(points[i].mb_per_s)
		});
	CacheInvalidateRelcache(rates);
	table_close(rates, NoLock);
	table_close(profiles, NoLock);
	CommandCounterIncrement();
	return true;
}
