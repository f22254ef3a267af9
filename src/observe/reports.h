/*-------------------------------------------------------------------------
 *
 * reports.h
 *	  What sorts report: EXPLAIN, fmsort_last_sort(), fmsort_stat,
 *	  fmsort_progress, the log.
 *
 * Completes FmsCounters, so that a file that includes this header can read
 * counters (base/counters.h), copy them and allocate them.
 *
 *-------------------------------------------------------------------------
 */
#ifndef FMS_REPORTS_H
#define FMS_REPORTS_H

#include "nodes/execnodes.h"

#include "base/compat.h"
#include "base/counters.h"
#include "keys/keys.h"

/* ---- counters.c ---- */

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

/* Otherwise a report shows nothing, or null. */
extern bool fms_counter_known(const FmsCounters *counters,
							  FmsCounter counter);

/*
 * Adds another sort's counters; fms_counters_complete() must follow.  is_part:
 * of a participant of the same sort, whose settings and times do not count,
 * since the times passed at the same time.
 */
extern void fms_counters_add(FmsCounters *total, const FmsCounters *one,
							 bool is_part);

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

/* ---- explain.c ---- */

/*
 * Shows Sort Key, deparsed from the node's target list, and Presorted Key if
 * the input is in order of the first `presorted` keys, more than 0.
 */
extern void fms_explain_keys(PlanState *planstate, const FmsKeySpec *spec,
							 int presorted, List *ancestors,
							 ExplainState *es);

/*
 * What a sort did; times only if they were asked for.  worker: the number of
 * the worker that sorted, or -1.
 */
extern void fms_explain_sort(const FmsCounters *counters, int worker,
							 ExplainState *es);

/*
 * The same for each of n parallel workers that sorted or, with are_parts, what
 * the leader and then each worker of a parallel sort formed.  Not in the
 * server's own group "Workers", which no extension can add to.
 */
extern void fms_explain_processes(const FmsCounters *counters, int n,
								  bool are_parts, ExplainState *es);

/*
 * A sort has ended: logs it if it took limit_ms milliseconds of its own, never
 * if that is negative.
 */
extern void fms_slow_log(const FmsCounters *counters, int limit_ms);

/* ---- last_sort.c ---- */

/* A statement of the client's begins (not one inside a function). */
extern void fms_last_sort_new_statement(void);

/* A sort of the current statement has ended.  Never fails. */
extern void fms_last_sort_remember(const FmsCounters *counters);

/* ---- stat.c ---- */

/* What it needs of shared memory, and making it there. */
extern Size fms_stat_shared_bytes(void);
extern void fms_stat_share(void);

/* A sort has ended.  Without shared memory nothing happens. */
extern void fms_stat_add(const FmsCounters *counters);

/*
 * Counts Sorts of a plan that stay PostgreSQL's: to_server that only the
 * server can run, and to_extensions below another extension's nodes.
 */
extern void fms_stat_sorts_left(int to_server, int to_extensions);

/* ---- progress.c ---- */

/* What it needs of shared memory, and making it there. */
extern Size fms_progress_shared_bytes(void);
extern void fms_progress_share(void);

/*
 * The counters of a sort that begins, valid as long as the current memory
 * context: in shared memory if a slot is free, else in that context.
 */
extern FmsCounters *fms_progress_begin(void);

/* Those counters if they are in shared memory, else NULL. */
extern FmsCounters *fms_progress_shared(FmsCounters *counters);

/* ---- estimate.c ---- */

/* Tuples that have come in, those of earlier groups and workers included. */
extern double fms_estimate_tuples_in(const FmsCounters *counters);

/*
 * 0 to 100.  It falls only if a merge begins again, and is 100 only after the
 * input's end.
 */
extern double fms_estimate_percent(const FmsCounters *counters);

/*
 * Microseconds until the sort, which has run for elapsed_us, hands out its
 * last tuple; at least 0.  -1: unknown, before the first tuple.
 */
extern double fms_estimate_left_us(const FmsCounters *counters,
								   double elapsed_us);

/* ---- decision.c ---- */

/* One line, in the current context; NULL if there is nothing to say. */
extern char *fms_decision(const FmsCounters *counters);

#endif							/* FMS_REPORTS_H */
