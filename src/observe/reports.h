/*-------------------------------------------------------------------------
 *
 * reports.h
 *	  What sorts report: EXPLAIN, fmsort_last_sort(), fmsort_stat,
 *	  fmsort_progress, the log.
 *
 *-------------------------------------------------------------------------
 */
#ifndef FMS_REPORTS_H
#define FMS_REPORTS_H

#include "base/compat.h"
#include "keys/keys.h"
#include "observe/counters.h"

/* ---- explain.c ---- */

/*
 * Shows Sort Key, deparsed from the node's target list, and Presorted Key if
 * the input is in order of the first `presorted` keys, more than 0.
 */
extern void fms_explain_keys(PlanState *planstate, const FmsKeySpec *spec,
							 int presorted, List *ancestors,
							 ExplainState *es);

/* What the sort did; times only if they were asked for. */
extern void fms_explain_counters(const FmsCounters *counters,
								 ExplainState *es);

/*
 * The same for each parallel worker that sorted.  Not in the server's own
 * group "Workers", which no extension can add to.
 */
extern void fms_explain_workers(const FmsCounters *workers, int nworkers,
								ExplainState *es);

/*
 * What each participant of a parallel sort formed: parts[0] is the leader's,
 * the others are the workers'.
 */
extern void fms_explain_parts(const FmsCounters *parts, int nparts,
							  ExplainState *es);

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

/* Are those counters in shared memory? */
extern bool fms_progress_is_shared(const FmsCounters *counters);

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
