/*-------------------------------------------------------------------------
 *
 * runs_node.c
 *	  What the participants of a parallel sort run: a node that forms runs.
 *
 *	  FMSort (node.c)			merges all participants' runs
 *	    Gather					starts the workers, and waits for them
 *	      FMSort Runs			child's tuples -> FmsSort, returns no row
 *	        Parallel Seq Scan
 *
 * In the leader, the tuples go into the sort of the FMSort above.  In a
 * worker, they go into a sort of its own, which it hands over (sort/share.c).
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/parallel.h"
#include "executor/executor.h"

#include "executor/sort_node.h"
#include "observe/reports.h"

/* What workers learn, in the query's dynamic shared memory. */
typedef struct FmsInvitation
{
	uint64		counters_bytes; /* the leader's FMS_COUNTERS_BYTES */
	dsm_handle	handle;			/* of what the participants share */
} FmsInvitation;

typedef struct FmsRunsState
{
	CustomScanState css;		/* must be first */
	FmsKeySpec	spec;

	FmsSort    *sort;			/* leader: where its tuples go */
	FmsCounters *counters;		/* that sort's */
	int			nworkers;		/* planned, once there are parts */
	FmsCounters *parts;			/* of the leader and each worker, or NULL */
	dsm_handle	handle;			/* DSM_HANDLE_INVALID: no worker takes part */
} FmsRunsState;

static void
begin_runs(CustomScanState *css, EState *estate, int eflags)
{
	FmsRunsState *state = (FmsRunsState *) css;
	CustomScan *plan = (CustomScan *) css->ss.ps.plan;
	uint64		bound;			/* not used: the share has the leader's */

	(void) fms_plan_read(plan, &state->spec, &bound);
	outerPlanState(css) = ExecInitNode(outerPlan(plan), estate, eflags);
}

/* ---- forming runs ---- */

/* A worker's own sort. */
static FmsSort *
join_sort(const FmsRunsState *state)
{
	const PlanState *node = &state->css.ss.ps;
	MemoryContext caller = MemoryContextSwitchTo(node->state->es_query_cxt);
	FmsSort    *sort =
		fms_sort_join(ExecGetResultType(outerPlanState(node)), &state->spec,
					  state->handle, ParallelWorkerNumber,
					  palloc0(sizeof(FmsCounters)),
					  node->ps_ExprContext->ecxt_per_tuple_memory);

	MemoryContextSwitchTo(caller);
	return sort;
}

static TupleTableSlot *
exec_runs(CustomScanState *css)
{
	FmsRunsState *state = (FmsRunsState *) css;
	PlanState  *child = outerPlanState(css);
	FmsSort    *sort = state->sort ? state->sort : join_sort(state);
	TupleTableSlot *slot;

	while (slot = ExecProcNode(child), !TupIsNull(slot))
		fms_sort_put(sort, slot);
	if (state->sort)
	{
		fms_sort_count(sort);
		state->parts[0] = *state->counters;
	}
	else
	{
		fms_sort_hand_over(sort);
		fms_sort_end(sort);
	}
	return NULL;
}

static void
rescan_runs(CustomScanState *css)
{
	if (outerPlanState(css)->chgParam == NULL)
		ExecReScan(outerPlanState(css));
}

static void
end_runs(CustomScanState *css)
{
	ExecEndNode(outerPlanState(css));
}

/* ---- the leader's FMSort ---- */

void
fms_runs_begin(PlanState *gather, FmsSort *sort, FmsCounters *counters)
{
	FmsRunsState *state = (FmsRunsState *) outerPlanState(gather);
	/* it is this execution's own (replace.c) */
	Gather	   *plan = (Gather *) gather->plan;
	/* the Gather has been given workers */
	bool		divided = state->handle != DSM_HANDLE_INVALID;

	state->sort = sort;
	state->counters = counters;
	state->handle = DSM_HANDLE_INVALID;
	if (state->parts == NULL)
	{
		state->nworkers = plan->num_workers;
		state->parts =
			MemoryContextAlloc(gather->state->es_query_cxt,
							   (1 + plan->num_workers) * sizeof(FmsCounters));
	}
	memset(state->parts, 0, (1 + state->nworkers) * sizeof(FmsCounters));
	if (gather->state->es_use_parallel_mode && state->nworkers > 0)
		state->handle = fms_sort_share(sort, fms_progress_shared(counters));
	/* a Gather that has divided its input cannot go on without workers */
	if (state->handle == DSM_HANDLE_INVALID && divided)
		ereport(ERROR,
				(errcode(ERRCODE_INSUFFICIENT_RESOURCES),
				 errmsg("could not sort in parallel again"),
				 errdetail("The server has no dynamic shared memory segment left."),
				 errhint("Run the query again, or set fmsort.parallel to \"off\".")));
	plan->num_workers = state->handle == DSM_HANDLE_INVALID ? 0 :
		state->nworkers;
}

void
fms_runs_end(PlanState *gather)
{
	FmsRunsState *state = (FmsRunsState *) outerPlanState(gather);

	if (state->handle == DSM_HANDLE_INVALID)
		return;
	for (int i = 0; i < state->nworkers; i++)
		state->parts[1 + i] = *fms_sort_adopt(state->sort, i);
	fms_counters_begin_change(state->counters);
	for (int i = 0; i < state->nworkers; i++)
		fms_counters_add(state->counters, &state->parts[1 + i], true);
	fms_count_set(state->counters, FMS_COUNT_WORKERS_TUPLES, 0);
	fms_counters_end_change(state->counters);
}

/* ---- parallel query ---- */

static Size
estimate_shared(CustomScanState *css, ParallelContext *context)
{
	return sizeof(FmsInvitation);
}

/* Called again before workers are started again. */
static void
begin_shared(CustomScanState *css, ParallelContext *context, void *memory)
{
	*(FmsInvitation *) memory = (FmsInvitation) {
		.counters_bytes = FMS_COUNTERS_BYTES,
		.handle = ((FmsRunsState *) css)->handle
	};
}

/* A worker may have loaded another library than the leader. */
static void
join_shared(CustomScanState *css, shm_toc *toc, void *memory)
{
	const FmsInvitation *invitation = memory;

	if (invitation->counters_bytes != FMS_COUNTERS_BYTES)
		fms_plan_report_version();
	((FmsRunsState *) css)->handle = invitation->handle;
}

static void
explain_runs(CustomScanState *css, List *ancestors, ExplainState *es)
{
	FmsRunsState *state = (FmsRunsState *) css;

	if (es->analyze && state->parts)
		fms_explain_processes(state->parts, 1 + state->nworkers, true, es);
}

static const CustomExecMethods exec_methods = {
	.CustomName = FMS_RUNS_NODE_NAME,
	.BeginCustomScan = begin_runs,
	.ExecCustomScan = exec_runs,
	.EndCustomScan = end_runs,
	.ReScanCustomScan = rescan_runs,
	.EstimateDSMCustomScan = estimate_shared,
	.InitializeDSMCustomScan = begin_shared,
	.ReInitializeDSMCustomScan = begin_shared,
	.InitializeWorkerCustomScan = join_shared,
	.ExplainCustomScan = explain_runs
};

Node *
fms_runs_create_state(CustomScan *plan)
{
	FmsRunsState *state = (FmsRunsState *) newNode(sizeof(FmsRunsState),
												   T_CustomScanState);

	state->css.methods = &exec_methods;
	return (Node *) state;
}
