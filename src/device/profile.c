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
 * one of them differs, as on a standby, the profile is ignored; null or ''
 * matches anything.
 *
 * Reading happens within a user's query, in parallel workers, too.  It takes a
 * lock only if the lock is free, and releases it at once.  It scans with
 * SnapshotAny and tests each row against the latest snapshot, so a
 * serializable transaction takes no predicate lock.  The tables' statement
 * trigger invalidates what sessions remember.
 *
 * Writing is SQL that runs as the tables' owner: a user who may calibrate
 * needs no right to write them.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <sys/statvfs.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "access/genam.h"
#include "access/relation.h"
#include "access/relscan.h"
#include "access/table.h"
#include "access/tableam.h"
#include "catalog/pg_extension.h"
#include "commands/tablespace.h"
#include "commands/trigger.h"
#include "executor/spi.h"
#include "miscadmin.h"
#include "storage/fd.h"
#include "storage/lmgr.h"
#include "utils/fmgroids.h"
#include "utils/inval.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"

#include "base/compat.h"
#include "device/profile.h"

/*
 * A measurement that omitted points replaces a profile if it has this fraction
 * of its rates: how many points are measured in time varies.
 */
#define ENOUGH_PART		0.75

/* Columns of fmsort_device_profile that identify the device. */
static const char *const place_columns[] = {"location", "device", "host"};

typedef struct Reading
{
	Oid			tablespace;
	char		place[lengthof(place_columns)][MAXPGPATH];	/* "": unknown */
	bool		matches;		/* there is a profile of that place */
	int			nrates;
	FmsDevice	device;
} Reading;

/* The remembered profile. */
static bool remembered = false;
static bool changed = false;	/* invalidated since it was set to false */
static Oid	remembered_tablespace;
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
				 errmsg("fmsort_profile_changed() is a trigger of fmsort's own tables")));
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
	{
		snprintf(directory, MAXPGPATH, "pg_tblspc/%u", reading->tablespace);
		if (readlink(directory, reading->place[0], MAXPGPATH - 1) < 0)
			reading->place[0][0] = '\0';
	}
	/* a device's number would change when the machine starts again */
	if (statvfs(directory, &system) == 0 && system.f_fsid != 0)
		snprintf(reading->place[1], MAXPGPATH, "%lx",
				 (unsigned long) system.f_fsid);
	if (gethostname(reading->place[2], MAXPGPATH - 1) != 0)
		reading->place[2][0] = '\0';
}

/* A column as text; "" if it is null or missing, as owners may alter tables. */
static const char *
get_column(HeapTuple tuple, TupleDesc desc, const char *name)
{
	char	   *value = SPI_getvalue(tuple, desc, SPI_fnumber(desc, name));

	return value ? value : "";
}

static void
read_profile_row(HeapTuple tuple, TupleDesc desc, Reading *reading)
{
	reading->matches = true;
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
	fms_device_note(&reading->device,
					fms_device_pattern(get_column(tuple, desc, "pattern")),
					atoi(get_column(tuple, desc, "block_bytes")),
					atoi(get_column(tuple, desc, "queue_depth")),
					strtod(get_column(tuple, desc, "mb_per_s"), NULL));
	reading->nrates++;
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
	Oid			tablespace = current_tablespace();

	if (!registered)
		CacheRegisterRelcacheCallback(forget_relation, (Datum) 0);
	registered = true;
	if (!remembered || changed || remembered_tablespace != tablespace)
	{
		Reading		reading = {.tablespace = tablespace};
		MemoryContext context = AllocSetContextCreate(CurrentMemoryContext,
													  "fmsort profile",
													  ALLOCSET_SMALL_SIZES);
		MemoryContext caller = MemoryContextSwitchTo(context);

		changed = remembered = false;
		find_tables();
		remembered = read_profile(&reading);
		remembered_tablespace = tablespace;
		remembered_device = reading.device;
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

/* Replaces the profile of that place, as the tables' owner. */
static void
write_profile(const Reading *place, const FmsProfileFacts *facts,
			  const FmsProbePoint *points, int npoints, Oid owner)
{
	Oid			namespace = get_rel_namespace(profile_relation);
	const char *schema = quote_identifier(get_namespace_name(namespace));
	struct utsname system = {.release = "unknown"};
	StringInfoData sql;
	Oid			user;
	int			security;

	(void) uname(&system);
	initStringInfo(&sql);
	/* the rates of the old profile go with it */
	appendStringInfo(&sql, "DELETE FROM %s.fmsort_device_profile "
					 "WHERE tablespace OPERATOR(pg_catalog.=) '%u'; "
					 "INSERT INTO %s.fmsort_device_profile VALUES ('%u'",
					 schema, facts->tablespace, schema, facts->tablespace);
	for (int i = 0; i < (int) lengthof(place_columns); i++)
		appendStringInfo(&sql, ", %s", quote_literal_cstr(place->place[i]));
	appendStringInfo(&sql, ", pg_catalog.clock_timestamp(), %s, "
					 "pg_catalog.current_setting('server_version'), '%s', "
					 "'%.17g', " UINT64_FORMAT "); "
					 "INSERT INTO %s.fmsort_device_rate VALUES ",
					 quote_literal_cstr(system.release), facts->io_method,
					 facts->seconds, facts->file_bytes, schema);
	for (int i = 0; i < npoints; i++)
		appendStringInfo(&sql, "%s('%u', '%s', %u, %u, '%.17g')",
						 i > 0 ? ", " : "", facts->tablespace,
						 fms_pattern_names[points[i].pattern],
						 points[i].block_bytes, points[i].depth,
						 points[i].mb_per_s);
	GetUserIdAndSecContext(&user, &security);
	SetUserIdAndSecContext(owner, security | SECURITY_LOCAL_USERID_CHANGE |
						   SECURITY_RESTRICTED_OPERATION);
	SPI_connect();
	if (SPI_execute(sql.data, false, 0) != SPI_OK_INSERT)
		elog(ERROR, "could not store the profile");
	SPI_finish();
	SetUserIdAndSecContext(user, security);
}

bool
fms_profile_store(const FmsProfileFacts *facts, const FmsProbePoint *points,
				  int npoints)
{
	Reading		old = {.tablespace = facts->tablespace};
	Relation	profiles;
	bool		enough;

	find_tables();
	/* calibrations take turns; readers do not wait */
	profiles = table_open(profile_relation, ShareRowExclusiveLock);
	(void) read_profile(&old);
	enough = npoints > 0 &&
		(facts->complete || npoints >= old.nrates * ENOUGH_PART);
	if (enough)
		write_profile(&old, facts, points, npoints,
					  profiles->rd_rel->relowner);
	table_close(profiles, enough ? NoLock : ShareRowExclusiveLock);
	return enough;
}
