/*-------------------------------------------------------------------------
 *
 * profile.c
 *	  Device profiles of tablespaces, which two tables keep.
 *
 *	  fmsort_calibrate() --> fmsort_device_profile		a row a tablespace
 *							 fmsort_device_rate			a row a measurement
 *								|  first spill of a session, and after changes
 *								v
 *							 FmsDevice, in this process --> a sort's options
 *
 * A profile belongs to a tablespace's OID, location, file system and host.  If
 * one of them differs, as on a standby, the profile is ignored; null matches
 * anything.
 *
 * Reading happens within a user's query, in parallel workers, too.  It takes a
 * lock only if the lock is free, and releases it at once.  It scans with
 * SnapshotAny and tests each row against the latest snapshot: so both tables
 * are read as of one moment, and a serializable transaction takes no predicate
 * lock.  The tables' statement trigger invalidates what sessions remember.
 *
 * Writing bypasses the executor, as for catalogs: a user who may calibrate
 * needs no right to write the tables.
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
#include "base/sql_version.h"
#include "device/profile.h"
#include "device/temp_tablespace.h"

/*
 * A measurement that omitted points replaces a profile if it has this fraction
 * of its rates: how many points are measured in time varies.
 */
#define ENOUGH_PART		0.75

/* Columns of the tables, from 0; see the SQL definitions. */
enum
{
	PROFILE_LOCATION = 1, PROFILE_DEVICE, PROFILE_HOST, PROFILE_COLUMNS = 10,
	RATE_PATTERN = 1, RATE_BLOCK_BYTES, RATE_DEPTH, RATE_MB, RATE_COLUMNS
};

static const Oid profile_types[PROFILE_COLUMNS] = {
	OIDOID, TEXTOID, TEXTOID, TEXTOID, TIMESTAMPTZOID, TEXTOID, TEXTOID,
	TEXTOID, FLOAT8OID, INT8OID
};

static const Oid rate_types[RATE_COLUMNS] = {
	OIDOID, TEXTOID, INT4OID, INT4OID, FLOAT8OID
};

/* The remembered profile. */
static bool remembered = false;
static bool changed = false;	/* invalidated since it was set to false */
static Oid	remembered_tablespace;
static FmsDevice remembered_device;
static Oid	profile_relation = InvalidOid;
static Oid	rate_relation = InvalidOid;

PG_FUNCTION_INFO_V1(fmsort_profile_changed);

/* ---- forgetting ---- */

static void
forget_relation(Datum arg, Oid relation)
{
	if (relation == InvalidOid || relation == profile_relation ||
		relation == rate_relation || rate_relation == InvalidOid)
		changed = true;
}

static void
forget_tablespace(Datum arg, int cache, uint32 hash)
{
	changed = true;
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

/* The extension's schema; InvalidOid: this database has no extension. */
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

	profile_relation = get_relname_relid("fmsort_device_profile", schema);
	rate_relation = get_relname_relid("fmsort_device_rate", schema);
}

/*
 * Opens a table for reading; *table is NULL if there is none, or if it is
 * another version's.  False if it is locked.
 */
static bool
open_table(Oid relation, const Oid *types, int ncolumns, Relation *table)
{
	TupleDesc	desc;
	bool		fits;

	*table = NULL;
	if (!OidIsValid(relation))
		return true;
	if (!ConditionalLockRelationOid(relation, AccessShareLock))
		return false;
	*table = try_relation_open(relation, NoLock);
	if (*table == NULL)
	{
		UnlockRelationOid(relation, AccessShareLock);
		return true;
	}
	desc = RelationGetDescr(*table);
	fits = (*table)->rd_rel->relkind == RELKIND_RELATION &&
		desc->natts == ncolumns;
	for (int i = 0; fits && i < ncolumns; i++)
		fits = TupleDescAttr(desc, i)->atttypid == types[i];
	if (!fits)
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
	FmsTempTablespace location;
	bool		matches;		/* there is a profile of that location */
	int			nrates;
	FmsDevice	device;
} Reading;

/* Calls reader for the tablespace's rows; it is the tables' first column. */
static void
read_rows(Relation table, Snapshot snapshot, Reading *reading,
		  void (*reader) (const Datum *, const bool *, Reading *))
{
	SysScanDesc scan = systable_beginscan(table, InvalidOid, false,
										  SnapshotAny, 0, NULL);
	Datum		values[PROFILE_COLUMNS];
	bool		nulls[PROFILE_COLUMNS];
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
}

static void
read_profile_row(const Datum *values, const bool *nulls, Reading *reading)
{
	const char *here[] = {reading->location.path, reading->location.device,
	reading->location.host};

	reading->matches = true;
	for (int i = 0; i < (int) lengthof(here); i++)
	{
		if (!nulls[PROFILE_LOCATION + i] &&
			strcmp(TextDatumGetCString(values[PROFILE_LOCATION + i]),
				   here[i]) != 0)
			reading->matches = false;
	}
}

static void
read_rate_row(const Datum *values, const bool *nulls, Reading *reading)
{
	int			pattern;

	/* owners may change the columns */
	for (int i = 0; i < RATE_COLUMNS; i++)
	{
		if (nulls[i])
			return;
	}
	reading->nrates++;
	pattern =
		fms_device_pattern_index(TextDatumGetCString(values[RATE_PATTERN]));
	if (pattern >= 0)
		fms_device_note(&reading->device, pattern,
						DatumGetInt32(values[RATE_BLOCK_BYTES]),
						DatumGetInt32(values[RATE_DEPTH]),
						DatumGetFloat8(values[RATE_MB]));
}

/* Reads a tablespace's profile.  False: a table is locked. */
static bool
read_profile(Reading *reading)
{
	Relation	profiles;
	Relation	rates = NULL;
	bool		readable;

	find_tables();
	readable = open_table(profile_relation, profile_types, PROFILE_COLUMNS,
						  &profiles) &&
		open_table(rate_relation, rate_types, RATE_COLUMNS, &rates);
	if (profiles && rates)
	{
		Snapshot	snapshot =
			RegisterSnapshot(GetCatalogSnapshot(rate_relation));

		fms_temp_tablespace_find(reading->tablespace, &reading->location);
		read_rows(profiles, snapshot, reading, read_profile_row);
		if (reading->matches)
			read_rows(rates, snapshot, reading, read_rate_row);
		UnregisterSnapshot(snapshot);
	}
	if (profiles)
		relation_close(profiles, AccessShareLock);
	if (rates)
		relation_close(rates, AccessShareLock);
	return readable;
}

/* The tablespace of the next temporary file. */
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
	static bool registered = false;
	Reading		reading = {.tablespace = current_tablespace()};

	if (!registered)
	{
		CacheRegisterRelcacheCallback(forget_relation, (Datum) 0);
		CacheRegisterSyscacheCallback(TABLESPACEOID, forget_tablespace,
									  (Datum) 0);
		registered = true;
	}
	if (!remembered || changed || remembered_tablespace != reading.tablespace)
	{
		changed = remembered = false;
		remembered = read_profile(&reading);
		remembered_tablespace = reading.tablespace;
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
	right = tablespace == MyDatabaseTableSpace ? ACLCHECK_OK :
		fms_tablespace_aclcheck(tablespace);
	if (right != ACLCHECK_OK)
		aclcheck_error(right, OBJECT_TABLESPACE, name);
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

/* Deletes a tablespace's rows. */
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
	bool		nulls[PROFILE_COLUMNS] = {false};
	HeapTuple	tuple = heap_form_tuple(RelationGetDescr(table), values,
										nulls);

	CatalogTupleInsert(table, tuple);
	heap_freetuple(tuple);
}

bool
fms_profile_store(const FmsProfileFacts *facts, const FmsProbePoint *points,
				  int npoints)
{
	Datum		tablespace = ObjectIdGetDatum(facts->tablespace);
	struct utsname system = {.release = "unknown"};
	Reading		old = {.tablespace = facts->tablespace};
	Relation	profiles;
	Relation	rates;

	fms_profile_require_tables();
	/* calibrations take turns; readers do not wait */
	profiles = table_open(profile_relation, ShareRowExclusiveLock);
	rates = table_open(rate_relation, RowExclusiveLock);
	(void) read_profile(&old);
	if (!facts->complete && npoints < old.nrates * ENOUGH_PART)
	{
		table_close(rates, RowExclusiveLock);
		table_close(profiles, ShareRowExclusiveLock);
		return false;
	}
	delete_rows(rates, facts->tablespace);
	delete_rows(profiles, facts->tablespace);
	(void) uname(&system);
	insert_row(profiles, (Datum[PROFILE_COLUMNS]) {
		tablespace, CStringGetTextDatum(old.location.path),
		CStringGetTextDatum(old.location.device),
		CStringGetTextDatum(old.location.host),
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
