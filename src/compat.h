/*-------------------------------------------------------------------------
 *
 * compat.h
 *	  Every difference between server versions, and nothing else.
 *
 * No other file may test PG_VERSION_NUM (make lint holds us to it).  Each
 * entry gives one name that the rest of the code uses; the version tests
 * stay here, so supporting a new server is a change to one page.
 *
 *-------------------------------------------------------------------------
 */
#ifndef FMS_COMPAT_H
#define FMS_COMPAT_H

#include "postgres.h"

#ifdef __GLIBC__
#include <gnu/libc-version.h>
#endif

#include "access/htup_details.h"
#include "catalog/pg_collation.h"
#include "mb/pg_wchar.h"
#include "utils/builtins.h"
#include "utils/syscache.h"
#include "commands/explain.h"
#include "executor/instrument.h"
#include "utils/lsyscache.h"
#include "utils/pg_locale.h"
#if PG_VERSION_NUM >= 180000
#include "access/cmptype.h"
#include "commands/explain_format.h"
#include "commands/explain_state.h"
#endif

#if PG_VERSION_NUM < 150000
#error "fmsort needs PostgreSQL 15 or newer"
#endif

/*
 * FMS_EXECUTOR_RUN_PARAMS / _ARGS: ExecutorRun's hook lost its execute_once
 * argument in 18.
 */
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

/* heap_form_minimal_tuple() took a third argument in 18. */
static inline MinimalTuple
fms_form_minimal_tuple(TupleDesc desc, Datum *values, bool *nulls)
{
#if PG_VERSION_NUM >= 180000
	return heap_form_minimal_tuple(desc, values, nulls, 0);
#else
	return heap_form_minimal_tuple(desc, values, nulls);
#endif
}

/*
 * The operator family, input type and direction of an ordering operator.
 * Returns false if the operator belongs to no btree operator family.
 */
static inline bool
fms_ordering_op(Oid operator, Oid *family, Oid *type, bool *descending)
{
#if PG_VERSION_NUM >= 180000
	CompareType direction;

	if (!get_ordering_op_properties(operator, family, type, &direction))
		return false;
	*descending = (direction == COMPARE_GT);
#else
	int16		strategy;

	if (!get_ordering_op_properties(operator, family, type, &strategy))
		return false;
	*descending = (strategy == BTGreaterStrategyNumber);
#endif
	return true;
}

/*
 * Is it libc's C.UTF-8?  It compares bytes, too, but the server does not know:
 * since 2.35 glibc has it without any table of weights, and compares code
 * points, whose order is that of their UTF-8 bytes.
 */
#if PG_VERSION_NUM < 180000 && defined(__GLIBC__)
static inline bool
fms_collation_is_c_utf8(Oid collation)
{
	const char *name = NULL;
	bool		is_c_utf8;
	HeapTuple	tuple = NULL;

	if (GetDatabaseEncoding() != PG_UTF8 ||
		strverscmp(gnu_get_libc_version(), "2.35") < 0)
		return false;
	if (collation != DEFAULT_COLLATION_OID)
	{
		tuple = SearchSysCache1(COLLOID, ObjectIdGetDatum(collation));
		if (HeapTupleIsValid(tuple) &&
			((Form_pg_collation) GETSTRUCT(tuple))->collprovider ==
			COLLPROVIDER_LIBC)
		{
			Datum		value;
			bool		isnull;

			value = SysCacheGetAttr(COLLOID, tuple,
									Anum_pg_collation_collcollate, &isnull);
			if (!isnull)
				name = TextDatumGetCString(value);
		}
	}
	else if (pg_newlocale_from_collation(collation) == NULL)
		name = setlocale(LC_COLLATE, NULL);
	is_c_utf8 = name && (pg_strcasecmp(name, "C.UTF-8") == 0 ||
						 pg_strcasecmp(name, "C.utf8") == 0);
	if (HeapTupleIsValid(tuple))
		ReleaseSysCache(tuple);
	return is_c_utf8;
}
#else
#define fms_collation_is_c_utf8(collation) false
#endif

/* Does the collation compare bytes?  As the server knows it. */
static inline bool
fms_collation_is_c(Oid collation)
{
#if PG_VERSION_NUM >= 180000
	return pg_newlocale_from_collation(collation)->collate_is_c;
#else
	return lc_collate_is_c(collation) || fms_collation_is_c_utf8(collation);
#endif
}

/*
 * What a failed Assert() calls has these parameters: one less since 16.  The
 * unit tests have their own.
 */
#if PG_VERSION_NUM >= 160000
#define FMS_ASSERT_FAILED_PARAMS \
	const char *conditionName, const char *fileName, int lineNumber
#else
#define FMS_ASSERT_FAILED_PARAMS \
	const char *conditionName, const char *errorType, \
	const char *fileName, int lineNumber
#endif

/* Time blocked on temporary files, where this server keeps it. */
static inline instr_time *
fms_temp_read_time(void)
{
	return &pgBufferUsage.temp_blk_read_time;
}

static inline instr_time *
fms_temp_write_time(void)
{
	return &pgBufferUsage.temp_blk_write_time;
}

#endif							/* FMS_COMPAT_H */
