/*-------------------------------------------------------------------------
 *
 * compat.h
 *	  The differences between PostgreSQL's versions.
 *
 * Each macro or function is used in the same way with every version and hides
 * one difference.  No other file may test PG_VERSION_NUM (see make lint).
 *
 *-------------------------------------------------------------------------
 */
#ifndef FMS_COMPAT_H
#define FMS_COMPAT_H

#ifdef __GLIBC__
#include <gnu/libc-version.h>
#endif

#include "access/htup_details.h"
#include "access/stratnum.h"
#include "catalog/pg_collation.h"
#include "catalog/pg_database.h"
#include "catalog/pg_tablespace.h"
#include "commands/explain.h"
#include "executor/executor.h"
#include "executor/instrument.h"
#include "mb/pg_wchar.h"
#include "miscadmin.h"
#include "nodes/execnodes.h"
#include "nodes/pathnodes.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/pg_locale.h"
#include "utils/syscache.h"
#if PG_VERSION_NUM >= 180000
#include "access/cmptype.h"
#include "commands/explain_format.h"
#include "commands/explain_state.h"
#endif

#if PG_VERSION_NUM < 150000
#error "fmsort needs PostgreSQL 15 or newer"
#endif

/* Since 18, ExecutorRun_hook has no argument execute_once. */
#if PG_VERSION_NUM >= 180000
#define FMS_EXECUTOR_RUN_PARAMS \
	QueryDesc *query, ScanDirection direction, uint64 count
#define FMS_EXECUTOR_RUN_ARGS	query, direction, count
#else
#define FMS_EXECUTOR_RUN_PARAMS \
	QueryDesc *query, ScanDirection direction, uint64 count, \
	bool execute_once
#define FMS_EXECUTOR_RUN_ARGS	query, direction, count, execute_once
#endif

/* Number of relations in a plan.  Since 18, rtable has GROUP BY, too. */
#if PG_VERSION_NUM >= 180000
#define fms_explain_relations(es)	((es)->rtable_size)
#else
#define fms_explain_relations(es)	list_length((es)->rtable)
#endif

/* Sets explain_per_node_hook (since 18), and returns the previous one. */
#if PG_VERSION_NUM < 180000
typedef void (*explain_per_node_hook_type) (PlanState *planstate,
											List *ancestors,
											const char *relationship,
											const char *plan_name,
											ExplainState *es);
#endif

static inline explain_per_node_hook_type
fms_set_explain_node_hook(explain_per_node_hook_type hook)
{
#if PG_VERSION_NUM >= 180000
	explain_per_node_hook_type previous = explain_per_node_hook;

	explain_per_node_hook = hook;
	return previous;
#else
	return NULL;
#endif
}

/* heap_form_minimal_tuple() has an argument for extra bytes since 18. */
#if PG_VERSION_NUM >= 180000
#define fms_form_minimal_tuple(desc, values, nulls) \
	heap_form_minimal_tuple(desc, values, nulls, 0)
#else
#define fms_form_minimal_tuple(desc, values, nulls) \
	heap_form_minimal_tuple(desc, values, nulls)
#endif

/* Since 19: TupleDescFinalize(), and flags of ExecInitScanTupleSlot(). */
#if PG_VERSION_NUM >= 190000
#define fms_finish_tuple_desc(desc)	TupleDescFinalize(desc)
#define fms_init_scan_slot(estate, state, desc, operations) \
	ExecInitScanTupleSlot(estate, state, desc, operations, 0)
#else
#define fms_finish_tuple_desc(desc)	((void) 0)
#define fms_init_scan_slot(estate, state, desc, operations) \
	ExecInitScanTupleSlot(estate, state, desc, operations)
#endif

/* Properties of an ordering operator; false if no btree family has it. */
static inline bool
fms_ordering_op(Oid operator, Oid *family, Oid *type, bool *descending)
{
#if PG_VERSION_NUM >= 180000
	CompareType direction;		/* has the strategies' values */
#else
	int16		direction;
#endif

	if (!get_ordering_op_properties(operator, family, type, &direction))
		return false;
	*descending = (int) direction == BTGreaterStrategyNumber;
	return true;
}

/* A collation's provider, and its LC_COLLATE or NULL, from the catalogs. */
static inline char
fms_collation_provider(Oid collation, char **collate)
{
	bool		is_default = collation == DEFAULT_COLLATION_OID;
	bool		isnull;
	char		provider;
	HeapTuple	tuple;
	Datum		name;

	*collate = NULL;
	tuple = is_default ?
		SearchSysCache1(DATABASEOID, ObjectIdGetDatum(MyDatabaseId)) :
		SearchSysCache1(COLLOID, ObjectIdGetDatum(collation));
	if (!HeapTupleIsValid(tuple))
		return 0;
	if (is_default)
	{
		provider = ((Form_pg_database) GETSTRUCT(tuple))->datlocprovider;
		name = SysCacheGetAttr(DATABASEOID, tuple,
							   Anum_pg_database_datcollate, &isnull);
	}
	else
	{
		provider = ((Form_pg_collation) GETSTRUCT(tuple))->collprovider;
		name = SysCacheGetAttr(COLLOID, tuple,
							   Anum_pg_collation_collcollate, &isnull);
	}
	if (!isnull)
		*collate = TextDatumGetCString(name);
	ReleaseSysCache(tuple);
	return provider;
}

/*
 * Is it libc's C.UTF-8?  Since glibc 2.35 that compares code points, whose
 * order is that of their UTF-8 bytes.  The server does not know.
 */
#ifdef __GLIBC__
static inline bool
fms_collation_is_c_utf8(Oid collation)
{
	char	   *collate;

	if (GetDatabaseEncoding() != PG_UTF8 ||
		strverscmp(gnu_get_libc_version(), "2.35") < 0)
		return false;
	return fms_collation_provider(collation, &collate) == COLLPROVIDER_LIBC &&
		collate != NULL &&
		(pg_strcasecmp(collate, "C.UTF-8") == 0 ||
		 pg_strcasecmp(collate, "C.utf8") == 0);
}
#else
#define fms_collation_is_c_utf8(collation) false
#endif

/* Does the collation compare bytes? */
static inline bool
fms_collation_is_c(Oid collation)
{
#if PG_VERSION_NUM >= 180000
	bool		is_c = pg_newlocale_from_collation(collation)->collate_is_c;
#else
	bool		is_c = lc_collate_is_c(collation);
#endif

	return is_c || fms_collation_is_c_utf8(collation);
}

/* The server's ICU collator, or NULL.  Since 19, a locale has no provider. */
#ifdef USE_ICU
static inline struct UCollator *
fms_collation_icu(Oid collation)
{
	pg_locale_t locale = pg_newlocale_from_collation(collation);
#if PG_VERSION_NUM >= 190000
	char	   *collate;

	return fms_collation_provider(collation, &collate) == COLLPROVIDER_ICU ?
		locale->icu.ucol : NULL;
#else
	return locale != NULL && locale->provider == COLLPROVIDER_ICU ?
		locale->info.icu.ucol : NULL;
#endif
}
#endif

/* The path of a Unique node.  Until 18, UniquePath was a semijoin's. */
#if PG_VERSION_NUM >= 190000
#define FmsUniquePath		UniquePath
#define T_FmsUniquePath		T_UniquePath
#else
#define FmsUniquePath		UpperUniquePath
#define T_FmsUniquePath		T_UpperUniquePath
#endif

/* Since 18, paths count their disabled nodes apart from their costs. */
#if PG_VERSION_NUM >= 180000
#define FMS_ADD_DISABLED_NODES(path, with, without) \
	((path)->disabled_nodes += \
	 (with)->disabled_nodes - (without)->disabled_nodes)
#else
#define FMS_ADD_DISABLED_NODES(path, with, without) ((void) 0)
#endif

/* Adds to the rows of all ExecutorRun() calls, which 16 began to count. */
#if PG_VERSION_NUM >= 160000
#define FMS_ADD_TOTAL_PROCESSED(estate, rows) \
	((estate)->es_total_processed += (rows))
#else
#define FMS_ADD_TOTAL_PROCESSED(estate, rows) ((void) 0)
#endif

/* Does a Merge Append prune partitions when it runs? */
#if PG_VERSION_NUM >= 180000
#define FMS_PRUNES(merge)	((merge)->part_prune_index >= 0)
#else
#define FMS_PRUNES(merge)	((merge)->part_prune_info != NULL)
#endif

/* The owner of a WaitEventSet: since 17, a resource owner. */
#if PG_VERSION_NUM >= 170000
#define FMS_WAIT_EVENT_SET_OWNER	CurrentResourceOwner
#else
#define FMS_WAIT_EVENT_SET_OWNER	CurrentMemoryContext
#endif

/* The parameters of ExceptionalCondition(), which unit tests define. */
#if PG_VERSION_NUM >= 160000
#define FMS_ASSERT_FAILED_PARAMS \
	const char *conditionName, const char *fileName, int lineNumber
#else
#define FMS_ASSERT_FAILED_PARAMS \
	const char *conditionName, const char *errorType, \
	const char *fileName, int lineNumber
#endif

/* May the user create files in that tablespace? */
#if PG_VERSION_NUM >= 160000
#define fms_tablespace_aclcheck(tablespace) \
	object_aclcheck(TableSpaceRelationId, tablespace, GetUserId(), ACL_CREATE)
#else
#define fms_tablespace_aclcheck(tablespace) \
	pg_tablespace_aclcheck(tablespace, GetUserId(), ACL_CREATE)
#endif

/* Time that the executor has measured in the node; -1: not known now. */
static inline double
fms_node_elapsed_us(const PlanState *planstate)
{
#if PG_VERSION_NUM >= 190000
	const Instrumentation *instrument = planstate->instrument ?
		&planstate->instrument->instr : NULL;
#else
	const Instrumentation *instrument = planstate->instrument;
#endif

	if (instrument == NULL || !instrument->need_timer ||
		!INSTR_TIME_IS_ZERO(instrument->starttime))
		return -1;
#if PG_VERSION_NUM >= 190000
	return (INSTR_TIME_GET_DOUBLE(instrument->total) +
			INSTR_TIME_GET_DOUBLE(planstate->instrument->counter)) * 1e6;
#else
	return (instrument->total +
			INSTR_TIME_GET_DOUBLE(instrument->counter)) * 1e6;
#endif
}

#endif							/* FMS_COMPAT_H */
