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
 * The tables are the extension's and are dumped with the database; a profile
 * goes by its tablespace's name, since another server has other OIDs.  Users
 * may look at them, and their owner may correct them: so what is read is
 * checked, and numbers that make no sense count as not measured.
 *
 * Remembering.  A sort that spills asks for the device.  The answer is kept
 * until something says that the tables have changed: a statement trigger on
 * each sends an invalidation of its relation, as DDL does by itself.  Where
 * there is no such table (the library is loaded, the extension not created)
 * that is remembered, too, until any relation changes.
 *
 * Reading goes past SPI and the executor, in the way catalogs are read: it
 * happens in the middle of somebody else's plan, in parallel workers, too, and
 * must see what is committed now and not what that query's snapshot sees.  It
 * takes a lock only if it is free, so a sort never waits for an ALTER
 * EXTENSION; without it the device is unknown for this once.
 *
 * Writing uses SPI as the tables' owner, because who may measure need not be
 * allowed to write tables, and with a search_path of its own, because
 * what runs as the owner must not find the caller's operators.
 *
 * Memory: the device is static; reading takes a context of its own, freed
 * before the caller goes on, or by the caller's on ERROR.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <sys/utsname.h>

#include "access/genam.h"
#include "access/relation.h"
#include "access/table.h"
#include "catalog/indexing.h"
#include "catalog/pg_extension.h"
#include "catalog/pg_type.h"
#include "commands/tablespace.h"
#include "commands/trigger.h"
#include "executor/spi.h"
#include "storage/fd.h"
#include "storage/lmgr.h"
#include "utils/fmgroids.h"
#include "utils/guc.h"
#include "utils/inval.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/timestamp.h"

#include "compat.h"
#include "profile.h"

#define PROFILE_TABLE	"fmsort_device_profile"
#define RATE_TABLE		"fmsort_device_rate"

/* Numbers in FmsMergeCost. */
#define MERGE_COSTS		5

/* Columns of fmsort_device_profile; see the SQL definition. */
enum
{
	PROFILE_TABLESPACE,
	PROFILE_MEASURED_AT,
	PROFILE_KERNEL,
	PROFILE_SERVER,
	PROFILE_IO_METHOD,
	PROFILE_SECONDS,
	PROFILE_FILE_BYTES,
	PROFILE_FORMATION_NS,
	PROFILE_FORMATION_BYTE_NS,
	PROFILE_MERGE_NS,			/* see FmsMergeCost: its members in order */
	PROFILE_DIRECT_MERGE_NS = PROFILE_MERGE_NS + MERGE_COSTS,
	PROFILE_COLUMNS = PROFILE_DIRECT_MERGE_NS + MERGE_COSTS
};

static const Oid profile_types[PROFILE_COLUMNS] = {
	NAMEOID, TIMESTAMPTZOID, TEXTOID, TEXTOID, TEXTOID, FLOAT8OID, INT8OID,
	FLOAT8OID, FLOAT8OID, FLOAT8OID, FLOAT8OID, FLOAT8OID, FLOAT8OID,
	FLOAT8OID, FLOAT8OID, FLOAT8OID, FLOAT8OID, FLOAT8OID, FLOAT8OID
};

/* Columns of fmsort_device_rate. */
enum
{
	RATE_TABLESPACE,
	RATE_PATTERN,
	RATE_BLOCK_BYTES,
	RATE_DEPTH,
	RATE_MB,
	RATE_IOPS,
	RATE_P50,
	RATE_P95,
	RATE_P99,
	RATE_CPU,
	RATE_COLUMNS
};

static const Oid rate_types[RATE_COLUMNS] = {
	NAMEOID, TEXTOID, INT4OID, INT4OID, FLOAT8OID, FLOAT8OID, FLOAT8OID,
	FLOAT8OID, FLOAT8OID, FLOAT8OID
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

/*
 * Opens a table for reading, if it is one of ours and nobody is changing it;
 * else NULL.
 */
static Relation
open_table(Oid relation, const Oid *types, int ncolumns)
{
	Relation	table;
	int			i;

	if (!OidIsValid(relation) ||
		!ConditionalLockRelationOid(relation, AccessShareLock))
		return NULL;
	table = try_relation_open(relation, NoLock);
	if (table == NULL)
	{
		UnlockRelationOid(relation, AccessShareLock);
		return NULL;
	}
	/* another version of the extension may have other columns */
	for (i = 0; i < ncolumns; i++)
	{
		if (i >= RelationGetDescr(table)->natts ||
			TupleDescAttr(RelationGetDescr(table), i)->atttypid != types[i])
			break;
	}
	if (i < ncolumns || table->rd_rel->relkind != RELKIND_RELATION)
	{
		relation_close(table, AccessShareLock);
		return NULL;
	}
	return table;
}

/* ---- reading ---- */

typedef void (*RowReader) (const Datum *values, const bool *nulls, void *arg);

/* Calls reader with each row of that tablespace.  All tables begin with it. */
static void
read_rows(Relation table, const char *tablespace, RowReader reader, void *arg)
{
	SysScanDesc scan = systable_beginscan(table, InvalidOid, false, NULL, 0,
										  NULL);
	int			natts = RelationGetDescr(table)->natts;
	Datum	   *values = palloc(natts * sizeof(Datum));
	bool	   *nulls = palloc(natts * sizeof(bool));
	HeapTuple	tuple;

	while (HeapTupleIsValid(tuple = systable_getnext(scan)))
	{
		heap_deform_tuple(tuple, RelationGetDescr(table), values, nulls);
		if (!nulls[0] && strcmp(NameStr(*DatumGetName(values[0])),
								tablespace) == 0)
			reader(values, nulls, arg);
	}
	systable_endscan(scan);
}

/* A cost from the table, or 0: nothing that could be one. */
static double
cost_at(const Datum *values, const bool *nulls, int column)
{
	double		cost = nulls[column] ? 0 : DatumGetFloat8(values[column]);

	return cost > 0 && cost < 1e9 ? cost : 0;
}

static void
read_rate(const Datum *values, const bool *nulls, void *arg)
{
	FmsDevice  *device = arg;
	const char *pattern;

	if (nulls[RATE_PATTERN] || nulls[RATE_BLOCK_BYTES] || nulls[RATE_DEPTH] ||
		nulls[RATE_MB])
		return;
	pattern = TextDatumGetCString(values[RATE_PATTERN]);
	if (strcmp(pattern, fms_probe_name(FMS_PROBE_RR)) == 0)
		fms_device_note_read(device, DatumGetInt32(values[RATE_BLOCK_BYTES]),
							 DatumGetInt32(values[RATE_DEPTH]),
							 DatumGetFloat8(values[RATE_MB]));
	else if (strcmp(pattern, fms_probe_name(FMS_PROBE_RR_LASTING)) == 0)
		fms_device_note_lasting(device,
								DatumGetInt32(values[RATE_BLOCK_BYTES]),
								DatumGetFloat8(values[RATE_MB]));
	else if (strcmp(pattern, fms_probe_name(FMS_PROBE_RR_JOINED)) == 0)
		fms_device_note_joined(device,
							   DatumGetInt32(values[RATE_BLOCK_BYTES]),
							   DatumGetFloat8(values[RATE_MB]));
	else if (strcmp(pattern, fms_probe_name(FMS_PROBE_RR_USED)) == 0)
		fms_device_note_used(device, DatumGetFloat8(values[RATE_MB]));
	else if (strcmp(pattern, fms_probe_name(FMS_PROBE_RR_WITH_SW)) == 0)
		fms_device_note_mixed(device, DatumGetFloat8(values[RATE_MB]));
	else if (strcmp(pattern, fms_probe_name(FMS_PROBE_APPEND)) == 0)
		fms_device_note_write(device, DatumGetFloat8(values[RATE_MB]));
	else if (strcmp(pattern, fms_probe_name(FMS_PROBE_GIVE_BACK)) == 0)
		fms_device_note_give_back(device, DatumGetFloat8(values[RATE_MB]));
}

static void
read_merge_cost(const Datum *values, const bool *nulls, int column,
				FmsMergeCost *cost)
{
	cost->tuple_ns = cost_at(values, nulls, column++);
	cost->byte_ns = cost_at(values, nulls, column++);
	cost->change_ns = cost_at(values, nulls, column++);
	cost->block_ns = cost_at(values, nulls, column++);
	cost->submit_ns = cost_at(values, nulls, column);
}

typedef struct Header
{
	FmsTupleCost cost;
	TimestampTz measured_at;
} Header;

static void
read_header(const Datum *values, const bool *nulls, void *arg)
{
	Header	   *header = arg;

	if (!nulls[PROFILE_MEASURED_AT])
		header->measured_at =
			DatumGetTimestampTz(values[PROFILE_MEASURED_AT]);
	header->cost.formation_ns = cost_at(values, nulls, PROFILE_FORMATION_NS);
	header->cost.formation_byte_ns =
		cost_at(values, nulls, PROFILE_FORMATION_BYTE_NS);
	read_merge_cost(values, nulls, PROFILE_MERGE_NS, &header->cost.cached);
	read_merge_cost(values, nulls, PROFILE_DIRECT_MERGE_NS,
					&header->cost.direct);
}

/* Reads one of the tables.  False: not now, ask again. */
static bool
read_table(Oid relation, const Oid *types, int ncolumns,
		   const char *tablespace, RowReader reader, void *arg)
{
	MemoryContext context;
	MemoryContext caller;
	Relation	table;

	if (!OidIsValid(relation))
		return true;
	table = open_table(relation, types, ncolumns);
	if (table == NULL)
		return false;
	context = AllocSetContextCreate(CurrentMemoryContext, "fmsort profile",
									ALLOCSET_DEFAULT_SIZES);
	caller = MemoryContextSwitchTo(context);
	read_rows(table, tablespace, reader, arg);
	MemoryContextSwitchTo(caller);
	MemoryContextDelete(context);
	relation_close(table, AccessShareLock);
	return true;
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

/* The first of those that temporary files go to. */
static Oid
current_tablespace(void)
{
	Oid			first = InvalidOid;

	PrepareTempTablespaces();
	(void) GetTempTablespaces(&first, 1);
	return OidIsValid(first) ? first : MyDatabaseTableSpace;
}

/*
 * Reads the rates; true if they may be remembered: they were there to be read,
 * and nothing changed meanwhile.
 */
static bool
read_device(Oid tablespace, FmsDevice *device)
{
	uint64		before = changes;
	char	   *name = get_tablespace_name(tablespace);
	bool		read;

	memset(device, 0, sizeof(*device));
	find_tables();
	read = name == NULL ||
		read_table(rate_relation, rate_types, RATE_COLUMNS, name, read_rate,
				   device);
	return read && changes == before;
}

void
fms_profile_device(FmsDevice *device)
{
	Oid			tablespace = current_tablespace();

	watch();
	if (!remembered || remembered_tablespace != tablespace)
	{
		remembered = false;
		remembered_tablespace = tablespace;
		remembered = read_device(tablespace, &remembered_device);
	}
	*device = remembered_device;
}

void
fms_profile_look_up(Oid tablespace, FmsDevice *device, FmsTupleCost *cost,
					TimestampTz *measured_at)
{
	char	   *name = get_tablespace_name(tablespace);
	Header		header = {0};

	memset(device, 0, sizeof(*device));
	find_tables();
	if (name)
	{
		(void) read_table(rate_relation, rate_types, RATE_COLUMNS, name,
						  read_rate, device);
		(void) read_table(profile_relation, profile_types, PROFILE_COLUMNS,
						  name, read_header, &header);
	}
	*cost = header.cost;
	*measured_at = header.measured_at;
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

/* Runs a statement in which %s stands for a table, with typed arguments. */
static void
execute(const char *format, Oid schema, const char *table, int nargs,
		const Oid *types, Datum *values)
{
	char	   *name = quote_qualified_identifier(get_namespace_name(schema),
												  table);
	char	   *statement = psprintf(format, name);

	if (SPI_execute_with_args(statement, nargs, (Oid *) types, values, NULL,
							  false, 0) < 0)
		elog(ERROR, "could not run \"%s\"", statement);
	pfree(statement);
}

static void
store_merge_cost(const FmsMergeCost *cost, Datum *values)
{
	*values++ = Float8GetDatum(cost->tuple_ns);
	*values++ = Float8GetDatum(cost->byte_ns);
	*values++ = Float8GetDatum(cost->change_ns);
	*values++ = Float8GetDatum(cost->block_ns);
	*values = Float8GetDatum(cost->submit_ns);
}

static void
store_header(Oid schema, const FmsProfileFacts *facts, Datum tablespace)
{
	Datum		values[PROFILE_COLUMNS];
	struct utsname system;

	if (uname(&system) != 0)
		strlcpy(system.release, "unknown", sizeof(system.release));
	values[PROFILE_TABLESPACE] = tablespace;
	values[PROFILE_MEASURED_AT] = TimestampTzGetDatum(GetCurrentTimestamp());
	values[PROFILE_KERNEL] = CStringGetTextDatum(system.release);
	values[PROFILE_SERVER] =
		CStringGetTextDatum(GetConfigOption("server_version", false, false));
	values[PROFILE_IO_METHOD] =
		CStringGetTextDatum(facts->uses_uring ? "io_uring" : "sync");
	values[PROFILE_SECONDS] = Float8GetDatum(facts->seconds);
	values[PROFILE_FILE_BYTES] = Int64GetDatum(facts->file_bytes);
	values[PROFILE_FORMATION_NS] = Float8GetDatum(facts->cost.formation_ns);
	values[PROFILE_FORMATION_BYTE_NS] =
		Float8GetDatum(facts->cost.formation_byte_ns);
	store_merge_cost(&facts->cost.cached, &values[PROFILE_MERGE_NS]);
	store_merge_cost(&facts->cost.direct, &values[PROFILE_DIRECT_MERGE_NS]);
	execute("INSERT INTO %s VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19)",
			schema, PROFILE_TABLE, PROFILE_COLUMNS, profile_types, values);
}

static void
store_row(Oid schema, const FmsProfileRow *row, Datum tablespace)
{
	Datum		values[RATE_COLUMNS];

	values[RATE_TABLESPACE] = tablespace;
	values[RATE_PATTERN] = CStringGetTextDatum(fms_probe_name(row->pattern));
	values[RATE_BLOCK_BYTES] = Int32GetDatum(row->block_bytes);
	values[RATE_DEPTH] = Int32GetDatum(row->depth);
	values[RATE_MB] = Float8GetDatum(row->result.mb_per_s);
	values[RATE_IOPS] = Float8GetDatum(row->result.iops);
	values[RATE_P50] = Float8GetDatum(row->result.p50_us);
	values[RATE_P95] = Float8GetDatum(row->result.p95_us);
	values[RATE_P99] = Float8GetDatum(row->result.p99_us);
	values[RATE_CPU] = Float8GetDatum(row->result.cpu_us);
	execute("INSERT INTO %s VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)",
			schema, RATE_TABLE, RATE_COLUMNS, rate_types, values);
}

static void
store_as_owner(Oid schema, const FmsProfileFacts *facts,
			   const FmsProfileRow *rows, int nrows)
{
	NameData	name;
	Datum		tablespace = NameGetDatum(&name);
	int			i;

	namestrcpy(&name, get_tablespace_name(facts->tablespace));
	execute("DELETE FROM %s WHERE tablespace = $1", schema, PROFILE_TABLE, 1,
			profile_types, &tablespace);
	store_header(schema, facts, tablespace);
	for (i = 0; i < nrows; i++)
		store_row(schema, &rows[i], tablespace);
}

static Oid
owner_of(Oid relation)
{
	HeapTuple	tuple = SearchSysCache1(RELOID, ObjectIdGetDatum(relation));
	Oid			owner;

	if (!HeapTupleIsValid(tuple))
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_TABLE),
				 errmsg("table \"%s\" of extension \"fmsort\" does not exist",
						PROFILE_TABLE),
				 errhint("Create the extension anew.")));
	owner = ((Form_pg_class) GETSTRUCT(tuple))->relowner;
	ReleaseSysCache(tuple);
	return owner;
}

void
fms_profile_store(Oid schema, const FmsProfileFacts *facts,
				  const FmsProfileRow *rows, int nrows)
{
	Oid			owner = owner_of(get_relname_relid(PROFILE_TABLE, schema));
	Oid			caller;
	int			context;
	int			nest_level;

	/* on ERROR, the transaction's end undoes the first two of these */
	GetUserIdAndSecContext(&caller, &context);
	SetUserIdAndSecContext(owner, context | SECURITY_LOCAL_USERID_CHANGE |
						   SECURITY_RESTRICTED_OPERATION);
	nest_level = NewGUCNestLevel();
	(void) set_config_option("search_path", "pg_catalog, pg_temp",
							 PGC_USERSET, PGC_S_SESSION, GUC_ACTION_SAVE,
							 true, 0, false);
	SPI_connect();
	store_as_owner(schema, facts, rows, nrows);
	SPI_finish();
	AtEOXact_GUC(true, nest_level);
	SetUserIdAndSecContext(caller, context);
}
