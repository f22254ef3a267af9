/*-------------------------------------------------------------------------
 *
 * counters.h
 *	  Reading counters: what the reports have in common.
 *
 * Completes FmsCounters, so that a file that includes this header can read
 * counters, copy them and allocate them.  The table itself is in
 * base/counters.h.
 *
 *-------------------------------------------------------------------------
 */
#ifndef FMS_OBSERVE_COUNTERS_H
#define FMS_OBSERVE_COUNTERS_H

#include "lib/stringinfo.h"
#include "nodes/execnodes.h"

#include "base/counters.h"

struct FmsCounters
{
	uint64		changes;		/* odd: a change is going on */
	uint64		values[FMS_NCOUNTERS];
};

StaticAssertDecl(sizeof(FmsCounters) == FMS_COUNTERS_BYTES,
				 "base/counters.h writes counters by their number");

/* How EXPLAIN and the log print a counter; SQL columns have bytes. */
typedef enum FmsUnit
{
	FMS_UNIT_NUMBER,
	FMS_UNIT_KB,				/* bytes, printed in kB */
	FMS_UNIT_NS,				/* nanoseconds, printed in milliseconds */
	FMS_UNIT_MODE,				/* names */
	FMS_UNIT_PHASE,
	FMS_UNIT_METHOD,
	FMS_UNIT_SPACE_TYPE,
	FMS_UNIT_IF_KNOWN,			/* number; from here on, 0 is null */
	FMS_UNIT_KB_IF_KNOWN,		/* bytes, printed in kB */
	FMS_UNIT_RATIO,				/* 1 / FMS_RATIO_ONE */
	FMS_UNIT_TIMESTAMP,			/* TimestampTz */
	FMS_UNIT_YES_NO,			/* FMS_YES, FMS_NO */
	FMS_UNIT_IO_METHOD			/* name */
} FmsUnit;

#define FMS_RATIO_ONE	1000000

/* How the value of several sorts comes about. */
typedef enum FmsCombination
{
	FMS_COMBINE_SUM,
	FMS_COMBINE_MAX,
	FMS_COMBINE_LAST,			/* that is not 0 */
	FMS_COMBINE_DERIVED			/* by fms_counters_complete() */
} FmsCombination;

/* The line of EXPLAIN's text format that a counter is in. */
typedef enum FmsLine
{
	FMS_LINE_NONE,
	FMS_LINE_METHOD,
	FMS_LINE_LESS,				/* if not 0 */
	FMS_LINE_LOG,				/* not in EXPLAIN, but in the log */
	FMS_LINE_TIMES,				/* with TIMING */
	FMS_LINE_MERGE_TIMES,		/* the same line; from here on, of sorts that
								 * spill */
	FMS_LINE_MERGE,
	FMS_LINE_IO
} FmsLine;

typedef struct FmsCounterInfo
{
	FmsUnit		unit;
	FmsCombination combination;
	FmsLine		line;
	const char *label;			/* in EXPLAIN and the log, or NULL */
	const char *column;			/* in SQL functions, or NULL */
} FmsCounterInfo;

extern const FmsCounterInfo fms_counter_info[FMS_NCOUNTERS];

static inline uint64
fms_counter(const FmsCounters *counters, FmsCounter counter)
{
	return counters->values[counter];
}

/* The name that the value stands for; NULL: none, or not a name. */
extern const char *fms_counter_name(const FmsCounters *counters,
									FmsCounter counter);

/* A counter in the unit that reports print. */
typedef struct FmsNumber
{
	double		value;
	int			digits;			/* behind the decimal point */
	const char *unit;			/* or NULL */
} FmsNumber;

extern FmsNumber fms_counter_number(const FmsCounters *counters,
									FmsCounter counter);

/* Do reports of the lines from..to show the counter of such a sort? */
extern bool fms_counter_shown(const FmsCounters *counters, FmsCounter counter,
							  FmsLine from, FmsLine to);

/* Appends the counter, behind a gap if there are others: "Label: value". */
extern void fms_counter_append(StringInfo text, const FmsCounters *counters,
							   FmsCounter counter);

/* Appends these counters. */
extern void fms_counters_append(StringInfo text, const FmsCounters *counters,
								FmsLine from, FmsLine to);

/* Adds another sort's counters; fms_counters_complete() must follow. */
extern void fms_counters_add(FmsCounters *total, const FmsCounters *one);

/*
 * Adds what a participant of a parallel sort counted to the sort's own
 * counters: not times, which passed at the same time, nor settings.
 */
extern void fms_counters_add_part(FmsCounters *total,
								  const FmsCounters *part);

/* Computes the derived counters; may be repeated. */
extern void fms_counters_complete(FmsCounters *counters);

/*
 * Cuts times that were estimated from samples to the elapsed_us that the
 * executor has measured in the node; fms_counters_complete() must follow.
 */
extern void fms_counters_limit(FmsCounters *counters, double elapsed_us);

/* Did the sort write to disk? */
static inline bool
fms_counters_external(const FmsCounters *counters)
{
	return fms_counter(counters, FMS_COUNT_METHOD) ==
		FMS_METHOD_EXTERNAL_MERGE;
}

/* Has the sort been performed?  Otherwise there is nothing to report. */
static inline bool
fms_counters_performed(const FmsCounters *counters)
{
	return fms_counter(counters, FMS_COUNT_METHOD) !=
		FMS_METHOD_STILL_LOADING;
}

/* Raises an error without shared memory. */
extern void fms_require_shared(const void *shared);

/* A row of a SQL function; columns are filled by name. */
typedef struct FmsRow
{
	ReturnSetInfo *result;
	Datum	   *values;
	bool	   *nulls;
} FmsRow;

/*
 * Begins a row of a materialized result with all columns that are named after
 * counters; the others are null, and so are those of a merge if the sort does
 * not spill.  Current context.
 */
extern FmsRow fms_row_begin(ReturnSetInfo *result,
							const FmsCounters *counters, bool spills);

/* Sets a column; nothing if there is no such column. */
extern void fms_row_set(FmsRow *row, const char *column, Datum value);

/* Adds the row to the result. */
extern void fms_row_end(FmsRow *row);

/* Raises the error of a library newer than the extension's SQL objects. */
static inline void
fms_refuse_version(void)
{
	ereport(ERROR,
			(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
			 errmsg("the SQL objects of extension \"fmsort\" do not fit the library"),
			 errhint("Run ALTER EXTENSION fmsort UPDATE.")));
}

/* Raises that error if a function was defined with other columns. */
static inline void
fms_require_columns(TupleDesc desc, int ncolumns)
{
	if (desc->natts != ncolumns)
		fms_refuse_version();
}

#endif							/* FMS_OBSERVE_COUNTERS_H */
