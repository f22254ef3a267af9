/*-------------------------------------------------------------------------
 *
 * sort_node.h
 *	  The FMSort nodes: in plans, at run time, and what their files share.
 *
 *-------------------------------------------------------------------------
 */
#ifndef FMS_SORT_NODE_H
#define FMS_SORT_NODE_H

#include "executor/execdesc.h"
#include "nodes/execnodes.h"
#include "nodes/extensible.h"
#include "nodes/pathnodes.h"
#include "nodes/plannodes.h"

#include "keys/keys.h"
#include "sort/sort.h"

/* The nodes' names, in EXPLAIN and to the server. */
#define FMS_NODE_NAME "FMSort"
#define FMS_RUNS_NODE_NAME "FMSort Runs"

/* ---- replace.c: which Sorts become FMSort nodes ---- */

/*
 * Gives a query that has not started a plan with FMSort nodes, which shares
 * parts of the old one.  eflags: the executor's.  Returns the plan's memory
 * context, a child of the current one, or NULL if no Sort was replaced.
 */
extern MemoryContext fms_replace_sorts(QueryDesc *query, int eflags);

/* Why a Sort at or in this node stays PostgreSQL's: a phrase, or NULL. */
extern const char *fms_replace_why_not(const PlanState *planstate,
									   const List *ancestors);

/* ---- parallel_paths.c: parallel sorts for the planner ---- */

/* For create_upper_paths_hook: adds parallel paths to that step's output. */
extern void fms_add_parallel_paths(PlannerInfo *root, UpperRelationKind stage,
								   RelOptInfo *output);

/* ---- plan.c: the node in a plan tree ---- */

/* Makes our nodes known to the server, once a process. */
extern void fms_plan_register(void);

/*
 * Does what a Sort or Incremental Sort would do above `child`.  parent: whose
 * rows the sort's become, or NULL.  below_gather: parallel workers may run it.
 */
extern Plan *fms_plan_from_sort(const Sort *sort, Plan *child,
								const Plan *parent, bool below_gather);

/* For a Gather Merge above a Sort of `child`; takes ids from *next_node_id. */
extern Plan *fms_plan_from_gather_merge(const GatherMerge *merge, Plan *child,
										const Plan *parent, int *next_node_id);

/* An FMSort Merge node (shards/) that does what a Merge Append would do. */
extern Plan *fms_plan_from_merge_append(const MergeAppend *merge,
										List *children);

/* Is it an FMSort node?  A Gather of nodes that form runs? */
extern bool fms_plan_is_ours(const Plan *plan);
extern bool fms_plan_gathers_runs(const Plan *plan);

/*
 * Sets *spec to the node's sort keys, which belong to the plan, and *bound to
 * the rows wanted (0: all).  Returns the number of columns that the input is
 * in order of.  Raises an error if another version of the library made the
 * plan.
 */
extern int	fms_plan_read(const CustomScan *plan, FmsKeySpec *spec,
						  uint64 *bound);

/* Raises the error of fms_plan_read(). */
extern void fms_plan_report_version(void) __attribute__((noreturn));

/* ---- node.c: the node at run time ---- */

extern Node *fms_node_create_state(CustomScan *plan);

/* No more tuples are asked for than `limit`, if any, or `tuples` (0: all). */
extern void fms_node_set_bound(PlanState *planstate, LimitState *limit,
							   uint64 tuples);

/* Passes over up to `rows` tuples that are loaded; returns their number. */
extern uint64 fms_node_skip(PlanState *planstate, uint64 rows);

/* ---- runs_node.c: what the participants of a parallel sort run ---- */

extern Node *fms_runs_create_state(CustomScan *plan);

/*
 * In the leader, before the Gather is asked: it shall form runs for the sort.
 * Without shared memory for that, the Gather will start no worker.  At its
 * end, fms_runs_end() adds what the workers have left to the sort.
 */
extern void fms_runs_begin(PlanState *gather, FmsSort *sort,
						   FmsCounters *counters);
extern void fms_runs_end(PlanState *gather);

/* ---- bound.c: how the bound of a LIMIT reaches the sorts below it ---- */

/* Shows each FMSort of a started query its LIMIT, if any. */
extern void fms_bound_find_limits(QueryDesc *query);

/* In a parallel worker: the query will be asked for `tuples`; 0: all. */
extern void fms_bound_set(QueryDesc *query, uint64 tuples);

/* ---- groups.c: input in order of the first sort columns ---- */

typedef struct FmsGroups FmsGroups;

/* For input that is in order of the first `presorted` columns of the sort. */
extern FmsGroups *fms_groups_create(PlanState *parent, TupleDesc desc,
									const FmsKeySpec *spec, int presorted);

/* The input starts again. */
extern void fms_groups_restart(FmsGroups *groups);

/*
 * Begins the next group, of `at_least` tuples or more.  fms_groups_next()
 * returns its next tuple, which is empty or NULL after the last one; then
 * fms_groups_follow() is true if another group follows.
 */
extern void fms_groups_begin(FmsGroups *groups, uint64 at_least);
extern TupleTableSlot *fms_groups_next(FmsGroups *groups, PlanState *input);
extern bool fms_groups_follow(const FmsGroups *groups);

/* ---- settings.c: the fmsort.* settings ---- */

/* Defines the settings; called once, when the library is loaded. */
extern void fms_settings_define(void);

/* What a sort gets a snapshot of; the mode may be FMS_MODE_OFF. */
extern FmsOptions fms_settings;

/* fmsort.min_rows, .parallel, .debug_group_filter, .log_min_duration */
extern int	fms_settings_min_rows;
extern bool fms_settings_parallel;
extern bool fms_settings_group_filter;
extern int	fms_settings_log_min_duration_ms;

/* Copies the settings and work_mem.  expected_bytes: of the input, or 0. */
extern void fms_settings_snapshot(FmsOptions *options, double expected_bytes);

#endif							/* FMS_SORT_NODE_H */
