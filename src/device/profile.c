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
 * A profile belongs to a tablespace's OID, file system and host.  If one of
 * them differs, as on a standby, the profile is ignored with a WARNING;
 * null or '' matches anything.
 *
 * Reading happens within a user's query.  It takes a lock only if the lock is
 * free, and releases it at once.  It tests each row of SnapshotAny against the
 * latest snapshot, so a serializable transaction takes no predicate lock.  The
 * tables' statement trigger invalidates what sessions remember.
 *
 * Writing bypasses the executor, as for catalogs: a user who may calibrate
 * needs no right to write the tables, and nobody's trigger runs.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <sys/statvfs.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "access/genam.h"
#include "access/parallel.h"
#include "access/relation.h"
#include "access/relscan.h"
#include "access/table.h"
#include "access/tableam.h"
#include "access/transam.h"
#include "access/xact.h"
#include "catalog/indexing.h"
#include "catalog/pg_extension.h"
#include "commands/tablespace.h"
#include "commands/trigger.h"
#include "executor/spi.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "storage/fd.h"
#include "storage/lmgr.h"
#include "utils/fmgroids.h"
#include "utils/guc.h"
#include "utils/inval.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"
#include "utils/timestamp.h"

#include "base/compat.h"
#include "device/profile.h"
#include "tape/tape.h"

/* Columns of fmsort_device_profile that identify the device. */
static const char *const place_columns[] = {"device", "host"};

typedef struct Reading
{
	Oid			tablespace;
	char		place[lengthof(place_columns)][MAXPGPATH];	/* "": unknown */
	bool		exists;			/* there is a profile */
	bool		matches;		/* ... of that place */
	FmsDevice	device;
} Reading;

/* The remembered device, under these tablespaces; none: nothing. */
static bool changed = false;	/* invalidated since it was set to false */
static int	remembered = 0;
static Oid	remembered_tablespaces[FMS_TAPE_STRIPES_MAX];
static FmsDevice remembered_device;
static Oid	profile_relation = InvalidOid;
static Oid	rate_relation = InvalidOid;

PG_FUNCTION_INFO_V1(fmsort_profile_changed);

static void
forget_relation(Datum arg, Oid relation)
{
	if (relation == InvalidOid || relation == profile_relation ||
		relation == rate_relation || rate_relation == InvalidOid)
		changed = true;
}

/* The tables' statement trigger. */
Datum
fmsort_profile_changed(PG_FUNCTION_ARGS)
{
	if (!CALLED_AS_TRIGGER(fcinfo))
		ereport(ERROR,
				(errcode(ERRCODE_E_R_I_E_TRIGGER_PROTOCOL_VIOLATED),
				 errmsg("function \"%s\" was not called by trigger manager",
						"fmsort_profile_changed")));
	CacheInvalidateRelcache(((TriggerData *) fcinfo->context)->tg_relation);
	return PointerGetDatum(NULL);
}

/* ---- reading ---- */

/* Sets the tables' OIDs; InvalidOid: this database has no extension. */
static void
find_tables(void)
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
	profile_relation = get_relname_relid("fmsort_device_profile", schema);
	rate_relation = get_relname_relid("fmsort_device_rate", schema);
}

/* What identifies the device under the tablespace. */
static void
find_place(Reading *reading)
{
	char		directory[MAXPGPATH] = "base";
	struct statvfs system;

	if (reading->tablespace != DEFAULTTABLESPACE_OID)
		snprintf(directory, MAXPGPATH, "pg_tblspc/%u", reading->tablespace);
	/* a device's number would change when the machine starts again */
	if (statvfs(directory, &system) == 0 && system.f_fsid != 0)
		snprintf(reading->place[0], MAXPGPATH, "%lx",
				 (unsigned long) system.f_fsid);
	if (gethostname(reading->place[1], MAXPGPATH - 1) != 0)
		reading->place[1][0] = '\0';
}

/*
 * The number of a column; 0: there is none, or its type is a user's, whose
 * functions must not run here.  Owners may alter tables.
 */
static int
column_number(TupleDesc desc, const char *name)
{
	int			number = SPI_fnumber(desc, name);

	return number > 0 && TupleDescAttr(desc, number - 1)->atttypid <
		FirstNormalObjectId ? number : 0;
}

/* A column as text; "" if it is null or missing. */
static const char *
get_column(HeapTuple tuple, TupleDesc desc, const char *name)
{
	char	   *value = SPI_getvalue(tuple, desc, column_number(desc, name));

	return value ? value : "";
}

static void
read_profile_row(HeapTuple tuple, TupleDesc desc, Reading *reading)
{
	reading->exists = reading->matches = true;
	for (int i = 0; i < (int) lengthof(place_columns); i++)
	{
		const char *place = get_column(tuple, desc, place_columns[i]);

		if (place[0] != '\0' && strcmp(place, reading->place[i]) != 0)
			reading->matches = false;
	}
}

static void
read_rate_row(HeapTuple tuple, TupleDesc desc, Reading *reading)
{
	fms_device_note(&reading->device, get_column(tuple, desc, "measurement"),
					atoi(get_column(tuple, desc, "block_size")),
					atoi(get_column(tuple, desc, "queue_depth")),
					strtod(get_column(tuple, desc, "bytes_per_second"),
						   NULL) / 1e6);
}

/*
 * Calls reader for the tablespace's rows of one of the tables.  False if it is
 * locked.
 */
static bool
read_rows(Oid relation, Reading *reading,
		  void (*reader) (HeapTuple, TupleDesc, Reading *))
{
	Relation	table;

	if (!ConditionalLockRelationOid(relation, AccessShareLock))
		return false;
	table = try_relation_open(relation, NoLock);
	if (table && table->rd_rel->relkind == RELKIND_RELATION)
	{
		TupleDesc	desc = RelationGetDescr(table);
		Snapshot	snapshot = RegisterSnapshot(GetCatalogSnapshot(relation));
		SysScanDesc scan = systable_beginscan(table, InvalidOid, false,
											  SnapshotAny, 0, NULL);
		HeapTuple	tuple;

		while (HeapTupleIsValid(tuple = systable_getnext(scan)))
		{
			if (table_tuple_satisfies_snapshot(table, scan->slot, snapshot) &&
				atooid(get_column(tuple, desc, "tablespace")) ==
				reading->tablespace)
				reader(tuple, desc, reading);
		}
		systable_endscan(scan);
		UnregisterSnapshot(snapshot);
	}
	if (table)
		relation_close(table, NoLock);
	UnlockRelationOid(relation, AccessShareLock);
	return true;
}

/* Reads a tablespace's profile.  False: a table is locked. */
static bool
read_profile(Reading *reading)
{
	if (!OidIsValid(profile_relation) || !OidIsValid(rate_relation))
		return true;
	find_place(reading);
	return read_rows(profile_relation, reading, read_profile_row) &&
		(!reading->matches ||
		 read_rows(rate_relation, reading, read_rate_row));
}

static void
warn_of_place(Oid tablespace)
{
	static bool warned = false;

	if (warned || IsParallelWorker())
		return;
	warned = true;
	ereport(WARNING,
			(errmsg("device profile of tablespace \"%s\" is ignored",
					get_tablespace_name(tablespace)),
			 errdetail("It was measured on another host or device."),
			 errhint("Run fmsort_calibrate() to replace it, or fmsort_calibrate_reset() to delete it.")));
}

/*
 * Reads the device that n tablespaces make together, with stripes in each.
 * False: a table is locked.
 */
static bool
read_devices(const Oid *tablespaces, int n, FmsDevice *device)
{
	for (int i = 0; i < n; i++)
	{
		Reading		reading = {.tablespace = tablespaces[i]};

		if (!read_profile(&reading))
			return false;
		if (reading.exists && !reading.matches)
			warn_of_place(tablespaces[i]);
		if (i == 0)
			*device = reading.device;
		else
			fms_device_add_stripe(device, &reading.device, i);
	}
	return true;
}

void
fms_profile_device(FmsDevice *device)
{
	static bool registered = false;
	Oid			tablespaces[FMS_TAPE_STRIPES_MAX];
	int			n = fms_temp_file_tablespaces(tablespaces,
											  FMS_TAPE_STRIPES_MAX);

	if (!registered)
		CacheRegisterRelcacheCallback(forget_relation, (Datum) 0);
	registered = true;
	if (remembered != n || changed ||
		memcmp(remembered_tablespaces, tablespaces, n * sizeof(Oid)) != 0)
	{
		MemoryContext context = AllocSetContextCreate(CurrentMemoryContext,
													  "fmsort profile",
													  ALLOCSET_SMALL_SIZES);
		MemoryContext caller = MemoryContextSwitchTo(context);

		/* an error while reading must not leave half of it */
		remembered = 0;
		changed = false;
		find_tables();
		remembered = read_devices(tablespaces, n, &remembered_device) ? n : 0;
		memcpy(remembered_tablespaces, tablespaces, n * sizeof(Oid));
		MemoryContextSwitchTo(caller);
		MemoryContextDelete(context);
	}
	*device = remembered_device;
}

Oid
fms_profile_tablespace(const char *name)
{
	Oid			tablespace;
	AclResult	right;

	if (name == NULL)
	{
		(void) fms_temp_file_tablespaces(&tablespace, 1);
		return tablespace;
	}
	tablespace = get_tablespace_oid(name, false);
	if (tablespace == GLOBALTABLESPACE_OID)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("tablespace \"%s\" cannot hold temporary files",
						name)));
	right = tablespace == MyDatabaseTableSpace ? ACLCHECK_OK :
		fms_tablespace_aclcheck(tablespace);
	if (right != ACLCHECK_OK)
		aclcheck_error(right, OBJECT_TABLESPACE, name);
	return tablespace;
}

/* ---- writing ---- */

/* Deletes a tablespace's rows; InvalidOid: all rows. */
static void
delete_rows(Relation table, Oid tablespace)
{
	SysScanDesc scan = systable_beginscan(table, InvalidOid, false, NULL, 0,
										  NULL);
	HeapTuple	tuple;

	while (HeapTupleIsValid(tuple = systable_getnext(scan)))
	{
		if (!OidIsValid(tablespace) ||
			atooid(get_column(tuple, RelationGetDescr(table), "tablespace")) ==
			tablespace)
			CatalogTupleDelete(table, &tuple->t_self);
	}
	systable_endscan(scan);
}

typedef struct Value
{
	const char *name;
	char	   *text;
} Value;

static void
insert_row(Relation table, const Value *row, int n)
{
	TupleDesc	desc = RelationGetDescr(table);
	char	  **texts = palloc0(desc->natts * sizeof(char *));

	for (int i = 0; i < n; i++)
	{
		int			number = column_number(desc, row[i].name);

		if (number > 0)
			texts[number - 1] = row[i].text;
	}
	CatalogTupleInsert(table,
					   BuildTupleFromCStrings(TupleDescGetAttInMetadata(desc),
											  texts));
}

static void
insert_profile(Relation profiles, Relation rates, Reading *place,
			   const FmsProfileFacts *facts, const FmsProbePoint *points,
			   int npoints)
{
	char	   *tablespace = psprintf("%u", facts->tablespace);
	struct utsname system = {.release = "unknown"};

	(void) uname(&system);
	insert_row(profiles, (Value[]) {
		{"tablespace", tablespace},
		{"device", place->place[0]},
		{"host", place->place[1]},
		{"measured_at", pstrdup(timestamptz_to_str(GetCurrentTimestamp()))},
		{"kernel", system.release},
		{"server_version",
		pstrdup(GetConfigOption("server_version", false, false))},
		{"io_method", pstrdup(facts->io_method)},
		{"seconds", psprintf("%.3f", facts->seconds)},
		{"file_bytes", psprintf(UINT64_FORMAT, facts->file_bytes)}
	}, 9);
	for (int i = 0; i < npoints; i++)
		insert_row(rates, (Value[]) {
			{"tablespace", tablespace},
			{"measurement", pstrdup(fms_pattern_names[points[i].pattern])},
			{"block_size", psprintf("%u", points[i].block_bytes)},
			{"queue_depth", psprintf("%u", points[i].depth)},
			{"bytes_per_second", psprintf("%.0f", points[i].mb_per_s * 1e6)}
		}, 5);
}

/* Calibrations take turns; readers do not wait. */
static void
open_tables(Relation *profiles, Relation *rates)
{
	find_tables();
	*profiles = table_open(profile_relation, ShareRowExclusiveLock);
	*rates = table_open(rate_relation, RowExclusiveLock);
}

static void
delete_profile(Relation profiles, Relation rates, Oid tablespace)
{
	delete_rows(rates, tablespace);
	delete_rows(profiles, tablespace);
	CacheInvalidateRelcache(rates);
}

void
fms_profile_delete(Oid tablespace)
{
	Relation	profiles;
	Relation	rates;

	open_tables(&profiles, &rates);
	delete_profile(profiles, rates, tablespace);
	table_close(rates, NoLock);
	table_close(profiles, NoLock);
}

bool
fms_profile_store(const FmsProfileFacts *facts, const FmsProbePoint *points,
				  int npoints)
{
	Reading		old = {.tablespace = facts->tablespace};
	Relation	profiles;
	Relation	rates;
	bool		stored;

	open_tables(&profiles, &rates);
	(void) read_profile(&old);
	stored = npoints > 0 && (facts->complete || !old.matches);
	if (stored)
	{
		delete_profile(profiles, rates, facts->tablespace);
		insert_profile(profiles, rates, &old, facts, points, npoints);
		CommandCounterIncrement();
	}
	table_close(rates, NoLock);
	table_close(profiles, NoLock);
	return stored;
}
