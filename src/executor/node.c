/*-------------------------------------------------------------------------
 *
 * node.c
 *	  The FMSort plan node: how it is built and run.
 *
 *	  before it starts			run time
 *	  Sort						CustomScanState
 *	    |  fms_node_from_sort     |  first call: child's tuples -> FmsSort
 *	    v                         |  every call: next tuple of FmsSort
 *	  CustomScan "FMSort"         v
 *	    lefttree: Sort's child  child's PlanState
 *
 * The node keeps the Sort's whole Plan part (costs, parameters, node id) and
 * its child as lefttree, so that everything that walks plans treats it as it
 * treated the Sort.  The tuples are those of the child, so nothing is
 * projected.  What the keys are stands in custom_private as plain lists,
 * which can be copied, and sent to parallel workers.
 *
 * Tuples are handed out in place: the slot points into the sort's memory,
 * which stays as it is until the next call.
 *
 * Input that is in order of the first keys already (Incremental Sort) is
 * sorted group by group (groups.c), each with the same FmsSort, whose numbers
 * are added up.
 *
 * A bound.  ExecSetTupleBound() does not know our node.  So bound.c tells it
 * which LimitState is above it, and the node looks there when it starts to
 * load; by then the limit has been computed.
 *
 * Parallel workers report through the query's dynamic shared memory, which
 * the server offers only to nodes that are parallel-aware; so below a Gather
 * the node is, and EXPLAIN calls it "Parallel Custom Scan".  Each worker
 * sorts what it is given.  It reports when it has loaded, since a LIMIT may
 * end it before it ends by itself, and once more at the end; the leader
 * takes a copy before the shared memory goes.
 *
 * Begin does nothing expensive: EvalPlanQual initialises nodes that never
 * run.  Errors: the sort's memory is a child of the query's context, and
 * cleans up after itself when that goes (sort.c).
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/parallel.h"
#include "executor/executor.h"
#include "miscadmin.h"
#include "nodes/extensible.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "utils/memutils.h"

#include "base/compat.h"
#include "observe/counters.h"
#include "observe/explain.h"
#include "executor/groups.h"
#include "observe/last_sort.h"
#include "base/layout.h"
#include "executor/node.h"
#include "device/profile.h"
#include "observe/progress.h"
#include "keys/record.h"
#include "executor/settings.h"
#include "observe/slow_log.h"
#include "sort/sort.h"
#include "observe/stat.h"

/*
 * What custom_private means; another number for each change of that, since a
 * worker may have loaded another library than the session that planned.
 */
#ifndef FMS_PLAN_VERSION
#define FMS_PLAN_VERSION	2
#endif

/* custom_private: one list each, those of columns of the same length. */
enum
{
	PRIVATE_VERSION,			/* one int */
	PRIVATE_ATTNOS,				/* ints */
	PRIVATE_OPERATORS,			/* oids */
	PRIVATE_COLLATIONS,			/* oids */
	PRIVATE_NULLS_FIRST,		/* ints, 0 or 1 */
	PRIVATE_PRESORTED,			/* one int: number of presorted columns */
	PRIVATE_LISTS
};

/* A group of presorted input is not worth a sort if it is smaller. */
#define GROUP_MIN_TUPLES	32

/* What parallel workers report; in dynamic shared memory. */
typedef struct FmsWorkers
{
	FmsLayout	layout;			/* the leader's; another library's worker
								 * reports nothing */
	int			nworkers;
	FmsCounters counters[FLEXIBLE_ARRAY_MEMBER];	/* by worker number */
} FmsWorkers;

typedef struct FmsSortState
{
	CustomScanState css;		/* must be first */
	FmsKeySpec	spec;
	FmsGroups  *groups;			/* NULL: the input is in no order */
	int			presorted;		/* columns */

	/* what the parents may ask for */
	bool		rewindable;		/* to start again */
	bool		backward;
	bool		marks;
	const LimitState *limit;	/* NULL: see bound */
	uint64		bound;			/* 0: all tuples */

	FmsSort    *sort;			/* NULL: never loaded */
	FmsCounters *counters;		/* the sort's; others may look on */
	bool		started;		/* something has been loaded */
	bool		loaded;			/* the sort is ready to be read */
	bool		input_done;
	uint64		loaded_bound;	/* the bound it was loaded under */
	uint64		handed_out;		/* tuples, of this and earlier groups */
	FmsCounters earlier;		/* groups before this one */

	FmsWorkers *shared;			/* NULL outside parallel queries */
	FmsWorkers *reported;		/* leader: copy of it, or NULL */
} FmsSortState;

static uint64 nodes_begun = 0;

static Node *create_state(CustomScan *plan);

static const CustomScanMethods plan_methods = {
	.CustomName = FMS_NODE_NAME,
	.CreateCustomScanState = create_state
};

void
fms_node_register(void)
{
	RegisterCustomScanMethods(&plan_methods);
}

uint64
fms_node_begun(void)
{
	return nodes_begun;
}

/* ---- building it ---- */

/*
 * The node's own target list: the child's columns, one by one.  A constant
 * stays one, as in a Sort's list, so that EXPLAIN prints it without
 * parentheses.
 */
static List *
pass_through_tlist(List *tlist)
{
	List	   *result = NIL;
	ListCell   *cell;

	foreach(cell, tlist)
	{
		TargetEntry *entry = flatCopyTargetEntry(lfirst(cell));
		Node	   *expr = (Node *) entry->expr;

		if (!IsA(expr, Const))
			entry->expr = (Expr *) makeVar(INDEX_VAR, entry->resno,
										   exprType(expr), exprTypmod(expr),
										   exprCollation(expr), 0);
		result = lappend(result, entry);
	}
	return result;
}

Plan *
fms_node_from_sort(const Sort *sort, Plan *child, bool below_gather)
{
	CustomScan *node = makeNode(CustomScan);
	int			presorted = IsA(sort, IncrementalSort) ?
		((const IncrementalSort *) sort)->nPresortedCols : 0;
	List	   *attnos = NIL;
	List	   *operators = NIL;
	List	   *collations = NIL;
	List	   *nulls_first = NIL;
	int			i;

	for (i = 0; i < sort->numCols; i++)
	{
		attnos = lappend_int(attnos, sort->sortColIdx[i]);
		operators = lappend_oid(operators, sort->sortOperators[i]);
		collations = lappend_oid(collations, sort->collations[i]);
		nulls_first = lappend_int(nulls_first, sort->nullsFirst[i]);
	}

	node->scan.plan = sort->plan;
	node->scan.plan.type = T_CustomScan;
	node->scan.plan.lefttree = child;
	node->scan.plan.parallel_aware = below_gather;
	node->scan.plan.targetlist = pass_through_tlist(sort->plan.targetlist);
	node->scan.scanrelid = 0;
	/* like an Incremental Sort, a node of presorted input has only a group */
	node->flags = presorted > 0 ? 0 : CUSTOMPATH_SUPPORT_BACKWARD_SCAN |
		CUSTOMPATH_SUPPORT_MARK_RESTORE;
	node->custom_scan_tlist = sort->plan.targetlist;
	node->custom_private = lcons(list_make1_int(FMS_PLAN_VERSION),
								 list_make5(attnos, operators, collations,
											nulls_first,
											list_make1_int(presorted)));
	node->methods = &plan_methods;
	return &node->scan.plan;
}

/* ---- beginning and ending ---- */

/*
 * A session that has loaded the library before it was replaced starts
 * parallel workers that load the new one.
 */
static void
check_plan(const CustomScan *plan)
{
	if (list_length(plan->custom_private) != PRIVATE_LISTS ||
		linitial_int(linitial(plan->custom_private)) != FMS_PLAN_VERSION)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("this plan was made by another version of fmsort"),
				 errhint("Connect again: this session has loaded the library before it was replaced.")));
}

static void
read_spec(const CustomScan *plan, FmsKeySpec *spec)
{
	List	   *attnos = list_nth(plan->custom_private, PRIVATE_ATTNOS);
	List	   *operators = list_nth(plan->custom_private,
									 PRIVATE_OPERATORS);
	List	   *collations = list_nth(plan->custom_private,
									  PRIVATE_COLLATIONS);
	List	   *nulls_first = list_nth(plan->custom_private,
									   PRIVATE_NULLS_FIRST);
	int			n = list_length(attnos);
	int			i;

	spec->ncolumns = n;
	spec->attnos = palloc(n * sizeof(AttrNumber));
	spec->operators = palloc(n * sizeof(Oid));
	spec->collations = palloc(n * sizeof(Oid));
	spec->nulls_first = palloc(n * sizeof(bool));
	for (i = 0; i < n; i++)
	{
		spec->attnos[i] = list_nth_int(attnos, i);
		spec->operators[i] = list_nth_oid(operators, i);
		spec->collations[i] = list_nth_oid(collations, i);
		spec->nulls_first[i] = list_nth_int(nulls_first, i) != 0;
	}
}

static void
begin_node(CustomScanState *css, EState *estate, int eflags)
{
	FmsSortState *state = (FmsSortState *) css;
	CustomScan *plan = (CustomScan *) css->ss.ps.plan;
	TupleDesc	desc;

	nodes_begun++;
	check_plan(plan);
	read_spec(plan, &state->spec);
	state->presorted = linitial_int(list_nth(plan->custom_private,
											 PRIVATE_PRESORTED));
	state->rewindable = (eflags & EXEC_FLAG_REWIND) != 0;
	state->backward = (eflags & EXEC_FLAG_BACKWARD) != 0;
	state->marks = (eflags & EXEC_FLAG_MARK) != 0;
	outerPlanState(css) = ExecInitNode(outerPlan(plan), estate,
									   eflags & ~(EXEC_FLAG_REWIND |
												  EXEC_FLAG_BACKWARD |
												  EXEC_FLAG_MARK));
	desc = ExecGetResultType(outerPlanState(css));

	/*
	 * The executor has made a virtual scan slot; ours holds minimal tuples.
	 * Nothing is projected, so parents see that slot: the child's tuples have
	 * the constants of the target list, too.
	 */
	fms_init_scan_slot(estate, &css->ss, desc, &TTSOpsMinimalTuple);
	css->ss.ps.ps_ProjInfo = NULL;
	css->ss.ps.resultops = &TTSOpsMinimalTuple;
	css->ss.ps.resultopsfixed = true;
	css->ss.ps.resultopsset = true;

	if (state->presorted > 0)
		state->groups = fms_groups_create(&css->ss.ps, desc, &state->spec,
										  state->presorted);
	/* the planner asks neither of an Incremental Sort */
	Assert(state->groups == NULL || (!state->backward && !state->marks));
}

static void
count_node(FmsSortState *state, FmsCounters *counters)
{
	double		elapsed_us = fms_node_elapsed_us(&state->css.ss.ps);

	*counters = state->earlier;
	if (state->loaded)
	{
		fms_sort_count(state->sort);
		fms_counters_add(counters, state->counters);
	}
	if (elapsed_us >= 0)
		fms_counters_limit(counters, elapsed_us);
	fms_counters_complete(counters);
}

/* The sort's tuples are not wanted any more; what it did may be asked for. */
static void
finish_sort(FmsSortState *state)
{
	FmsCounters counters;

	if (!state->started)
		return;
	ExecClearTuple(state->css.ss.ss_ScanTupleSlot);
	count_node(state, &counters);
	if (fms_counters_performed(&counters))
	{
		fms_last_sort_remember(&counters);
		fms_stat_add(&counters);
		fms_slow_log(&counters, fms_settings_log_min_duration());
	}
	memset(&state->earlier, 0, sizeof(state->earlier));
	state->started = false;
	state->loaded = false;
	state->input_done = false;
	state->handed_out = 0;
}

static void
remember_workers(const FmsSortState *state)
{
	int			i;

	for (i = 0; state->reported && i < state->reported->nworkers; i++)
	{
		if (fms_counters_performed(&state->reported->counters[i]))
			fms_last_sort_remember(&state->reported->counters[i]);
	}
}

static void
end_node(CustomScanState *css)
{
	FmsSortState *state = (FmsSortState *) css;

	finish_sort(state);
	remember_workers(state);
	if (state->sort)
		fms_sort_end(state->sort);
	state->sort = NULL;
	ExecEndNode(outerPlanState(css));
}

/* ---- the bound ---- */

bool
fms_node_is_plan(const Plan *plan)
{
	return IsA(plan, CustomScan) &&
		((const CustomScan *) plan)->methods == &plan_methods;
}

bool
fms_node_is_sort(const PlanState *planstate)
{
	return IsA(planstate, CustomScanState) &&
		fms_node_is_plan(planstate->plan);
}

void
fms_node_set_limit(PlanState *planstate, const LimitState *limit)
{
	Assert(fms_node_is_sort(planstate));
	((FmsSortState *) planstate)->limit = limit;
}

void
fms_node_set_bound(PlanState *planstate, uint64 bound)
{
	Assert(fms_node_is_sort(planstate));
	((FmsSortState *) planstate)->bound = bound;
}

/* How many tuples will be asked for?  0: all of them. */
static uint64
current_bound(const FmsSortState *state)
{
	const LimitState *limit = state->limit;

	if (limit == NULL)
		return state->bound;
	/* ties of the last tuple may be any number */
	if (limit->lstate == LIMIT_INITIAL || limit->noCount ||
		limit->limitOption == LIMIT_OPTION_WITH_TIES ||
		limit->count > PG_INT64_MAX - limit->offset)
		return 0;
	return limit->count + limit->offset;
}

/* Do the tuples loaded under one bound do under another? */
static bool
bound_suffices(uint64 loaded, uint64 wanted)
{
	return loaded == 0 || (wanted > 0 && wanted <= loaded);
}

/* ---- running ---- */

/* Writes what this process did where the leader will look. */
static void
report(FmsSortState *state)
{
	FmsWorkers *shared = state->shared;

	if (shared && IsParallelWorker() && state->started &&
		ParallelWorkerNumber < shared->nworkers)
		count_node(state, &shared->counters[ParallelWorkerNumber]);
}

/* Gets the sort ready for tuples: makes it, or uses it again. */
static void
prepare_sort(FmsSortState *state)
{
	EState	   *estate = state->css.ss.ps.state;
	Plan	   *plan = state->css.ss.ps.plan;
	MemoryContext caller;
	FmsOptions	options;

	/* the planner's sum of widths is an int, and may have become negative */
	fms_settings_snapshot(&options, plan->plan_rows *
						  fms_record_expected_bytes(Max(plan->plan_width, 0)));
	/* a plan begun before fmsort.mode was set to off goes on as it was */
	if (options.mode == FMS_MODE_OFF)
		options.mode = FMS_MODE_FMSORT;
	options.backward = state->backward;
	options.marks = state->marks;
	options.expected_tuples = outerPlan(plan)->plan_rows;
	options.presorted = state->groups != NULL;
	options.earlier_tuples = fms_counter(&state->earlier, FMS_COUNT_TUPLES);
	options.bound = state->loaded_bound;
	if (options.bound > 0)
		options.bound = Max(options.bound, state->handed_out + 1) -
			state->handed_out;

	caller = MemoryContextSwitchTo(estate->es_query_cxt);
	if (state->sort)
		fms_sort_reset(state->sort, &options);
	else
	{
		state->counters = fms_progress_begin();
		state->sort = fms_sort_begin(ExecGetResultType(outerPlanState(state)),
									 &state->spec, &options,
									 state->counters, fms_profile_device);
	}
	MemoryContextSwitchTo(caller);
}

/* Puts the next group of presorted input into the sort. */
static void
put_group(FmsSortState *state)
{
	FmsGroups  *groups = state->groups;
	uint64		at_least = GROUP_MIN_TUPLES;
	TupleTableSlot *slot;

	if (state->loaded_bound > state->handed_out)
		at_least = Min(at_least, state->loaded_bound - state->handed_out);
	fms_groups_begin(groups, at_least);
	slot = fms_groups_carried(groups);
	if (slot)
	{
		fms_sort_put(state->sort, slot);
		fms_groups_drop_carried(groups);
	}
	for (;;)
	{
		slot = ExecProcNode(outerPlanState(state));
		if (TupIsNull(slot))
		{
			state->input_done = true;
			break;
		}
		if (!fms_groups_admit(groups, slot))
			break;
		fms_sort_put(state->sort, slot);
	}
}

/* Puts all of the child's tuples into the sort. */
static void
put_all(FmsSortState *state)
{
	TupleTableSlot *slot;

	for (;;)
	{
		slot = ExecProcNode(outerPlanState(state));
		if (TupIsNull(slot))
			break;
		fms_sort_put(state->sort, slot);
	}
	state->input_done = true;
}

/* Sorts the child's tuples, or the next group of them. */
static void
load(FmsSortState *state)
{
	EState	   *estate = state->css.ss.ps.state;
	ScanDirection direction = estate->es_direction;

	if (!state->started)
	{
		state->loaded_bound = current_bound(state);
		if (state->groups)
			fms_groups_drop_carried(state->groups);
	}
	prepare_sort(state);
	state->started = true;
	estate->es_direction = ForwardScanDirection;
	if (state->groups)
		put_group(state);
	else
		put_all(state);
	fms_sort_perform(state->sort);
	estate->es_direction = direction;
	state->loaded = true;
	if (state->groups && state->input_done)
		fms_count_set(state->counters, FMS_COUNT_LAST_GROUP, 1);
	report(state);
}

/* The group has been read; its numbers are kept. */
static void
finish_group(FmsSortState *state)
{
	count_node(state, &state->earlier);
	state->loaded = false;
}

static TupleTableSlot *
exec_node(CustomScanState *css)
{
	FmsSortState *state = (FmsSortState *) css;
	TupleTableSlot *slot = css->ss.ss_ScanTupleSlot;
	EState	   *estate = css->ss.ps.state;
	bool		forward = !ScanDirectionIsBackward(estate->es_direction);

	for (;;)
	{
		MinimalTuple tuple;

		if (!state->loaded)
			load(state);
		tuple = fms_sort_get(state->sort, forward);
		if (tuple)
		{
			state->handed_out++;
			return ExecStoreMinimalTuple(tuple, slot, false);
		}
		ExecClearTuple(slot);
		if (state->input_done)
			return slot;
		finish_group(state);
	}
}

static void
rescan_node(CustomScanState *css)
{
	FmsSortState *state = (FmsSortState *) css;
	PlanState  *child = outerPlanState(css);

	/*
	 * If nothing has been loaded yet, a child that needs it is rescanned when
	 * it is first asked for a tuple.
	 */
	if (!state->started)
		return;
	if (child->chgParam != NULL || !state->loaded || !state->input_done ||
		state->groups || !(state->rewindable || state->backward ||
						   state->marks) ||
		!bound_suffices(state->loaded_bound, current_bound(state)))
	{
		finish_sort(state);
		if (child->chgParam == NULL)
			ExecReScan(child);
		return;
	}
	ExecClearTuple(css->ss.ss_ScanTupleSlot);
	fms_sort_rewind(state->sort);
}

/* Before the first tuple there is nothing to mark, or to return to. */
static void
mark_node(CustomScanState *css)
{
	FmsSortState *state = (FmsSortState *) css;

	if (state->loaded)
		fms_sort_mark(state->sort);
}

static void
restore_node(CustomScanState *css)
{
	FmsSortState *state = (FmsSortState *) css;

	if (state->loaded)
		fms_sort_restore(state->sort);
}

/* ---- parallel query ---- */

static Size
workers_size(int nworkers)
{
	return offsetof(FmsWorkers, counters) + nworkers * sizeof(FmsCounters);
}

static Size
estimate_shared(CustomScanState *css, ParallelContext *context)
{
	return workers_size(context->nworkers);
}

/* For the first time, or for workers that are started again. */
static void
begin_shared(CustomScanState *css, ParallelContext *context, void *memory)
{
	FmsSortState *state = (FmsSortState *) css;

	state->shared = memory;
	memset(state->shared, 0, workers_size(context->nworkers));
	state->shared->layout = fms_layout(0, 0);
	state->shared->nworkers = context->nworkers;
}

static void
join_shared(CustomScanState *css, shm_toc *toc, void *memory)
{
	FmsWorkers *shared = memory;
	FmsLayout	layout = fms_layout(0, 0);

	if (fms_layout_is(&shared->layout, &layout))
		((FmsSortState *) css)->shared = shared;
}

/*
 * In a worker: the last report.  In the leader: the shared memory goes next.
 * May come several times, and before the end: a cursor is asked for pieces.
 */
static void
shutdown_node(CustomScanState *css)
{
	FmsSortState *state = (FmsSortState *) css;
	Size		size;

	if (state->shared == NULL)
		return;
	if (IsParallelWorker())
	{
		report(state);
		return;
	}
	size = workers_size(state->shared->nworkers);
	if (state->reported == NULL)
		state->reported = MemoryContextAlloc(css->ss.ps.state->es_query_cxt,
											 size);
	memcpy(state->reported, state->shared, size);
	state->shared = NULL;
}

static void
explain_node(CustomScanState *css, List *ancestors, ExplainState *es)
{
	FmsSortState *state = (FmsSortState *) css;
	FmsCounters counters;

	fms_explain_keys(&css->ss.ps, &state->spec, state->presorted, ancestors,
					 es);
	if (!es->analyze)
		return;
	if (state->started)
	{
		count_node(state, &counters);
		if (fms_counters_performed(&counters))
			fms_explain_counters(&counters, es);
	}
	if (state->reported)
		fms_explain_workers(state->reported->counters,
							state->reported->nworkers, es);
}

static const CustomExecMethods exec_methods = {
	.CustomName = FMS_NODE_NAME,
	.BeginCustomScan = begin_node,
	.ExecCustomScan = exec_node,
	.EndCustomScan = end_node,
	.ReScanCustomScan = rescan_node,
	.MarkPosCustomScan = mark_node,
	.RestrPosCustomScan = restore_node,
	.EstimateDSMCustomScan = estimate_shared,
	.InitializeDSMCustomScan = begin_shared,
	.ReInitializeDSMCustomScan = begin_shared,
	.InitializeWorkerCustomScan = join_shared,
	.ShutdownCustomScan = shutdown_node,
	.ExplainCustomScan = explain_node
};

static Node *
create_state(CustomScan *plan)
{
	FmsSortState *state = (FmsSortState *) newNode(sizeof(FmsSortState),
												   T_CustomScanState);

	state->css.methods = &exec_methods;
	return (Node *) state;
}
