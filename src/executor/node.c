/*-------------------------------------------------------------------------
 *
 * node.c
 *	  The FMSort node at run time.
 *
 * The first call puts the child's tuples into an FmsSort; every call returns
 * its next tuple.  The slot points into the sort's memory, which stays
 * unchanged until the next call; if rows are words, it has the word's value.
 *
 * Presorted input (Incremental Sort) is sorted group by group (groups.c) with
 * one FmsSort.  The node adds up the counters of all groups.
 *
 * Parallel workers sort their own input, and report their counters in shared
 * memory.  The server gives that only to parallel-aware nodes, so EXPLAIN
 * calls an FMSort below a Gather "Parallel Custom Scan".
 *
 * Begin does nothing expensive: EvalPlanQual begins nodes that never run.  The
 * sort's reset callbacks clean up after errors (spill.c).
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/parallel.h"
#include "executor/executor.h"
#include "utils/memutils.h"

#include "base/compat.h"
#include "executor/sort_node.h"
#include "observe/reports.h"

/* Tuples of a group of presorted input, at least: each sort has a price. */
#define GROUP_MIN_TUPLES	32

/* Asked of the sort, and not of its child. */
#define FLAGS_OF_SORTS \
	(EXEC_FLAG_REWIND | EXEC_FLAG_BACKWARD | EXEC_FLAG_MARK)

/* What parallel workers report: in the query's dynamic shared memory. */
typedef struct FmsWorkers
{
	uint64		counters_bytes; /* the leader's FMS_COUNTERS_BYTES */
	int			nworkers;
	FmsCounters counters[FLEXIBLE_ARRAY_MEMBER];	/* by worker number */
} FmsWorkers;

typedef struct FmsSortState
{
	CustomScanState css;		/* must be first */
	List	   *targetlist;		/* the plan's, between create and begin */
	FmsKeySpec	spec;
	FmsGroups  *groups;			/* NULL: the input is in no order */
	int			presorted;		/* columns */
	PlanState  *gather;			/* child, if it forms runs; else NULL */

	int			eflags;			/* what the parents may ask for */
	LimitState *limit;			/* NULL: see bound */
	uint64		bound;			/* tuples, or 0: all */

	FmsSort    *sort;			/* NULL: never loaded */
	FmsCounters *counters;		/* the sort's; others may read them */
	bool		started;		/* something has been loaded */
	bool		loaded;			/* the sort is ready to be read */
	bool		input_done;
	uint64		loaded_bound;	/* the bound it was loaded under */
	uint64		returned;		/* tuples, of this and earlier groups */
	FmsCounters earlier;		/* of earlier groups */

	FmsWorkers *shared;			/* NULL outside parallel queries */
	FmsWorkers *reported;		/* leader: copy of it, or NULL */
} FmsSortState;

/* The child's row type, unless the target list has other names. */
static TupleDesc
result_type(TupleDesc child, List *targetlist)
{
	ListCell   *cell;

	foreach(cell, targetlist)
	{
		const TargetEntry *entry = lfirst(cell);
		const Form_pg_attribute column =
			TupleDescAttr(child, foreach_current_index(cell));

		if (entry->resname &&
			strcmp(entry->resname, NameStr(column->attname)) != 0)
			return ExecTypeFromTL(targetlist);
	}
	return child;
}

static void
begin_node(CustomScanState *css, EState *estate, int eflags)
{
	FmsSortState *state = (FmsSortState *) css;
	CustomScan *plan = (CustomScan *) css->ss.ps.plan;
	const TupleTableSlotOps *operations;
	TupleDesc	desc;

	plan->scan.plan.targetlist = state->targetlist;
	state->presorted = fms_plan_read(plan, &state->spec, &state->bound);
	state->eflags = eflags & FLAGS_OF_SORTS;
	outerPlanState(css) = ExecInitNode(outerPlan(plan), estate,
									   eflags & ~FLAGS_OF_SORTS);
	if (fms_plan_gathers_runs(outerPlan(plan)))
		state->gather = outerPlanState(css);
	desc = ExecGetResultType(outerPlanState(css));

	/* parents see the slot: minimal tuples, or the value of an only column */
	operations = desc->natts == 1 && TupleDescAttr(desc, 0)->attbyval ?
		&TTSOpsVirtual : &TTSOpsMinimalTuple;
	fms_init_scan_slot(estate, &css->ss, desc, operations);
	css->ss.ps.ps_ResultTupleDesc = result_type(desc, state->targetlist);
	css->ss.ps.resultops = operations;
	css->ss.ps.resultopsfixed = true;
	css->ss.ps.resultopsset = true;

	if (state->presorted > 0)
		state->groups = fms_groups_create(&css->ss.ps, desc, &state->spec,
										  state->presorted);
	/* the planner asks neither of an Incremental Sort */
	Assert(state->groups == NULL ||
		   !(state->eflags & (EXEC_FLAG_BACKWARD | EXEC_FLAG_MARK)));
}

/* ---- counters ---- */

/* Sets *counters to those of all groups so far. */
static void
count_node(const FmsSortState *state, FmsCounters *counters)
{
	double		elapsed_us = fms_node_elapsed_us(&state->css.ss.ps);

	if (state->loaded)
		fms_sort_count(state->sort);
	*counters = state->groups ? state->earlier : *state->counters;
	if (state->groups && state->loaded)
		fms_counters_add(counters, state->counters, false);
	if (elapsed_us >= 0)
		fms_counters_limit(counters, elapsed_us);
	fms_counters_complete(counters);
}

/* In a worker: reports to the leader. */
static void
report(const FmsSortState *state)
{
	FmsWorkers *shared = state->shared;

	if (shared && state->started && IsParallelWorker() &&
		ParallelWorkerNumber < shared->nworkers)
		count_node(state, &shared->counters[ParallelWorkerNumber]);
}

/* ---- the bound and the offset ---- */

void
fms_node_set_bound(PlanState *planstate, LimitState *limit, uint64 tuples)
{
	FmsSortState *state = (FmsSortState *) planstate;

	Assert(fms_plan_is_ours(planstate->plan));
	state->limit = limit;
	state->bound = tuples;
}

/* Number of tuples that will be asked for, or 0: all. */
static uint64
current_bound(const FmsSortState *state)
{
	const LimitState *limit = state->limit;

	if (limit == NULL)
		return state->bound;
	/* the last tuple may have any number of ties */
	if (limit->lstate == LIMIT_INITIAL || limit->noCount ||
		limit->limitOption == LIMIT_OPTION_WITH_TIES ||
		limit->count > PG_INT64_MAX - limit->offset)
		return 0;
	return limit->count + limit->offset;
}

uint64
fms_node_skip(PlanState *planstate, uint64 rows)
{
	FmsSortState *state = (FmsSortState *) planstate;

	Assert(fms_plan_is_ours(planstate->plan));
	/* its tuple may be in a block that goes */
	ExecClearTuple(state->css.ss.ss_ScanTupleSlot);
	return state->loaded ? fms_sort_skip(state->sort, rows) : 0;
}

/*
 * Passes over the rows of an OFFSET and counts them for the Limit: it is in
 * LIMIT_RESCAN from when it knows its offset until it has its first row.
 */
static void
skip_offset(FmsSortState *state)
{
	LimitState *limit = state->limit;
	uint64		skipped;

	if (limit == NULL || outerPlanState(limit) != &state->css.ss.ps ||
		limit->lstate != LIMIT_RESCAN || limit->position >= limit->offset ||
		(!limit->noCount && limit->count == 0))
		return;
	skipped = fms_sort_skip(state->sort, limit->offset - limit->position);
	limit->position += skipped;
	state->returned += skipped;
}

/* ---- loading ---- */

/* Makes the sort ready for tuples; the first time creates it. */
static void
prepare_sort(FmsSortState *state)
{
	EState	   *estate = state->css.ss.ps.state;
	Plan	   *plan = state->css.ss.ps.plan;
	uint64		earlier = fms_counter(&state->earlier, FMS_COUNT_TUPLES);
	uint64		bound = state->loaded_bound;
	MemoryContext scratch =
		state->css.ss.ps.ps_ExprContext->ecxt_per_tuple_memory;
	MemoryContext caller;
	FmsOptions	options;

	if (bound > 0)
		bound = Max(bound, state->returned + 1) - state->returned;
	if (state->sort)
	{
		fms_sort_reset(state->sort, bound, earlier);
		return;
	}

	/* the planner's sum of widths is an int, and may have become negative */
	fms_settings_snapshot(&options, plan->plan_rows *
						  fms_record_expected_bytes(Max(plan->plan_width, 0)));
	/* a plan begun before fmsort.mode was set to off goes on as it was */
	if (options.mode == FMS_MODE_OFF)
		options.mode = FMS_MODE_FMSORT;
	options.backward = (state->eflags & EXEC_FLAG_BACKWARD) != 0;
	options.marks = (state->eflags & EXEC_FLAG_MARK) != 0;
	options.expected_tuples = plan->plan_rows;
	options.presorted = state->groups != NULL;
	options.earlier_tuples = earlier;
	options.bound = bound;
	if (state->gather)
		options.workers = ((Gather *) state->gather->plan)->num_workers;

	caller = MemoryContextSwitchTo(estate->es_query_cxt);
	state->counters = fms_progress_begin();
	state->sort = fms_sort_begin(ExecGetResultType(outerPlanState(state)),
								 &state->spec, &options, state->counters,
								 scratch);
	MemoryContextSwitchTo(caller);
}

/* Puts the child's tuples, or the next group of them, into the sort. */
static void
put_tuples(FmsSortState *state)
{
	PlanState  *child = outerPlanState(state);
	FmsGroups  *groups = state->groups;
	uint64		at_least = GROUP_MIN_TUPLES;
	TupleTableSlot *slot;

	if (groups && state->loaded_bound > state->returned)
		at_least = Min(at_least, state->loaded_bound - state->returned);
	if (groups)
		fms_groups_begin(groups, at_least);
	for (;;)
	{
		slot = groups ? fms_groups_next(groups, child) : ExecProcNode(child);
		if (TupIsNull(slot))
			break;
		fms_sort_put(state->sort, slot);
	}
	state->input_done = groups == NULL || !fms_groups_follow(groups);
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
			fms_groups_restart(state->groups);
	}
	prepare_sort(state);
	state->started = true;
	estate->es_direction = ForwardScanDirection;
	if (state->gather)
		fms_runs_begin(state->gather, state->sort, state->counters);
	put_tuples(state);
	if (state->gather)
		fms_runs_end(state->gather);
	fms_sort_perform(state->sort);
	estate->es_direction = direction;
	state->loaded = true;
	if (state->groups && state->input_done)
		fms_count_set(state->counters, FMS_COUNT_LAST_GROUP, 1);
	skip_offset(state);
	/* a LIMIT may end a worker before its node ends */
	report(state);
}

/* No more of the sort's tuples are wanted: publishes its counters. */
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
		fms_slow_log(&counters, fms_settings_log_min_duration_ms);
	}
	memset(&state->earlier, 0, sizeof(state->earlier));
	state->started = false;
	state->loaded = false;
	state->input_done = false;
	state->returned = 0;
}

/* ---- running ---- */

/* Stores the tuple; of an only by-value column the value. */
static inline TupleTableSlot *
store_tuple(TupleTableSlot *slot, MinimalTuple tuple)
{
	Form_pg_attribute column;

	if (!TTS_IS_VIRTUAL(slot))
		return ExecStoreMinimalTuple(tuple, slot, false);
	ExecClearTuple(slot);
	column = TupleDescAttr(slot->tts_tupleDescriptor, 0);
	slot->tts_values[0] = fms_word_tuple_value(tuple, column->attlen,
											   &slot->tts_isnull[0]);
	return ExecStoreVirtualTuple(slot);
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
			state->returned++;
			return store_tuple(slot, tuple);
		}
		ExecClearTuple(slot);
		if (state->input_done)
			return slot;
		/* the group has been read; its counters are kept */
		count_node(state, &state->earlier);
		state->loaded = false;
	}
}

/* Can what is loaded be read again from its start? */
static bool
can_rewind(const FmsSortState *state)
{
	uint64		bound = current_bound(state);

	return state->loaded && state->input_done && state->groups == NULL &&
		outerPlanState(state)->chgParam == NULL && state->eflags != 0 &&
		(state->loaded_bound == 0 ||
		 (bound > 0 && bound <= state->loaded_bound));
}

static void
rescan_node(CustomScanState *css)
{
	FmsSortState *state = (FmsSortState *) css;
	PlanState  *child = outerPlanState(css);

	/* a child whose parameters changed is rescanned by its first call */
	if (!state->started)
		return;
	if (can_rewind(state))
	{
		ExecClearTuple(css->ss.ss_ScanTupleSlot);
		fms_sort_rewind(state->sort);
		/* the Limit has computed its offset again */
		skip_offset(state);
		return;
	}
	finish_sort(state);
	if (child->chgParam == NULL)
		ExecReScan(child);
}

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

static void
end_node(CustomScanState *css)
{
	FmsSortState *state = (FmsSortState *) css;

	finish_sort(state);
	for (int i = 0; state->reported && i < state->reported->nworkers; i++)
	{
		if (fms_counters_performed(&state->reported->counters[i]))
			fms_last_sort_remember(&state->reported->counters[i]);
	}
	if (state->sort)
		fms_sort_end(state->sort);
	state->sort = NULL;
	ExecEndNode(outerPlanState(css));
}

/* ---- parallel query ---- */

static Size
workers_bytes(int nworkers)
{
	return offsetof(FmsWorkers, counters) + nworkers * sizeof(FmsCounters);
}

static Size
estimate_shared(CustomScanState *css, ParallelContext *context)
{
	return workers_bytes(context->nworkers);
}

/* Called again before workers are started again. */
static void
begin_shared(CustomScanState *css, ParallelContext *context, void *memory)
{
	FmsWorkers *workers = memory;

	memset(workers, 0, workers_bytes(context->nworkers));
	workers->counters_bytes = FMS_COUNTERS_BYTES;
	workers->nworkers = context->nworkers;
	((FmsSortState *) css)->shared = workers;
}

/* A worker may have loaded another library than the leader. */
static void
join_shared(CustomScanState *css, shm_toc *toc, void *memory)
{
	FmsWorkers *workers = memory;

	if (workers->counters_bytes == FMS_COUNTERS_BYTES)
		((FmsSortState *) css)->shared = workers;
}

/* The shared memory goes next.  A cursor may call this several times. */
static void
shutdown_node(CustomScanState *css)
{
	FmsSortState *state = (FmsSortState *) css;
	Size		size;

	report(state);
	if (state->shared == NULL || IsParallelWorker())
		return;
	size = workers_bytes(state->shared->nworkers);
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
			fms_explain_sort(&counters, -1, es);
	}
	if (state->reported)
		fms_explain_processes(state->reported->counters,
							  state->reported->nworkers, false, es);
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

Node *
fms_node_create_state(CustomScan *plan)
{
	FmsSortState *state = (FmsSortState *) newNode(sizeof(FmsSortState),
												   T_CustomScanState);

	state->css.methods = &exec_methods;

	/* the executor would make a projection of it; begin_node() puts it back */
	state->targetlist = plan->scan.plan.targetlist;
	plan->scan.plan.targetlist = NIL;
	return (Node *) state;
}
