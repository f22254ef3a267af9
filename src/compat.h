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

#include "access/htup_details.h"
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

/* Does the collation compare bytes?  As the server knows it. */
static inline bool
fms_collation_is_c(Oid collation)
{
#if PG_VERSION_NUM >= 180000
	return pg_newlocale_from_collation(collation)->collate_is_c;
#else
	return lc_collate_is_c(collation);
#endif
}

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
