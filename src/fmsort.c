/*-------------------------------------------------------------------------
 *
 * fmsort.c
 *	  The library's entrance: settings, the node, the hooks.
 *
 * create_upper_paths_hook	shows the planner parallel sorts at their cost
 * ExecutorStart_hook	replaces the Sorts of the plan, and shows the new nodes
 *						their LIMIT; in parallel workers ExecutorRun_hook does
 * ExecutorRun_hook		lets the topmost FMSort pass over the rows of a MOVE
 * ExecutorRun_hook,
 * ProcessUtility_hook	tell the client's statements apart, for
 *						fmsort_last_sort(): what runs inside another
 *						statement (a function, DO, CALL) is part of that one
 * shmem_request_hook,
 * shmem_startup_hook	make room for what processes share, if the library is
 *						loaded when the server starts
 * explain_per_node_hook	says why a Sort was not replaced (since 18)
 *
 * Each hook calls the one that was installed before it.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/parallel.h"
#include "executor/executor.h"
#include "fmgr.h"
#include "miscadmin.h"
#include "optimizer/planner.h"
#include "storage/ipc.h"
#include "storage/lwlock.h"
#include "storage/shmem.h"
#include "tcop/utility.h"

#include "base/compat.h"
#include "executor/executor.h"
#include "executor/sort_node.h"
#include "io/io.h"
#include "observe/reports.h"

PG_MODULE_MAGIC;

void		_PG_init(void);

static create_upper_paths_hook_type previous_paths = NULL;
static ExecutorStart_hook_type previous_start = NULL;
static ExecutorRun_hook_type previous_run = NULL;
static ProcessUtility_hook_type previous_utility = NULL;
static shmem_request_hook_type previous_request = NULL;
static shmem_startup_hook_type previous_startup = NULL;
static explain_per_node_hook_type previous_explain = NULL;

/* 0 outside any statement, 1 in the client's, more in those inside it */
static int	statement_depth = 0;

/*
 * Is it the part of a plan that the leader sent?  Its Sorts have been replaced
 * by the leader, or not, and both must run the same plan.
 */
static bool
is_leaders_plan(const QueryDesc *query)
{
	return IsParallelWorker() && query->dest->mydest == DestTupleQueue;
}

static void
start_query(QueryDesc *query, int eflags)
{
	bool		is_leaders = is_leaders_plan(query);
	MemoryContext plan = NULL;

	if (fms_settings.mode != FMS_MODE_OFF && !is_leaders)
		plan = fms_replace_sorts(query, eflags);
	if (previous_start)
		previous_start(query, eflags);
	else
		standard_ExecutorStart(query, eflags);
	/*
	 * A SQL function's context outlives the queries of all of its calls.
	 * Hooks read query->plannedstmt before standard_ExecutorEnd(), not after.
	 */
	if (plan && query->estate)
		MemoryContextSetParent(plan, query->estate->es_query_cxt);
	/* most queries sort nothing: do not walk them */
	if (plan || is_leaders)
		fms_bound_find_limits(query);
}

static void
plan_step(PlannerInfo *root, UpperRelationKind stage, RelOptInfo *input,
		  RelOptInfo *output, void *extra)
{
	if (previous_paths)
		previous_paths(root, stage, input, output, extra);
	fms_add_parallel_paths(root, stage, output);
}

static void
explain_plan_node(PlanState *planstate, List *ancestors,
				  const char *relationship, const char *plan_name,
				  ExplainState *es)
{
	const char *reason = NULL;

	if (es->verbose && fms_settings.mode != FMS_MODE_OFF)
		reason = fms_replace_why_not(planstate, ancestors);
	if (reason)
		ExplainPropertyText("Sort Left to PostgreSQL", reason, es);
	if (previous_explain)
		previous_explain(planstate, ancestors, relationship, plan_name, es);
}

static void
enter_statement(void)
{
	if (statement_depth == 0)
		fms_last_sort_new_statement();
	statement_depth++;
}

static void
run(FMS_EXECUTOR_RUN_PARAMS)
{
	if (previous_run)
		previous_run(FMS_EXECUTOR_RUN_ARGS);
	else
		standard_ExecutorRun(FMS_EXECUTOR_RUN_ARGS);
}

/*
 * Runs a query whose `count` rows are forgotten: a cursor's MOVE, or the rows
 * before that of a FETCH ABSOLUTE or RELATIVE.  The first row fills the sort,
 * and the cursor will stand on the last one.
 */
static void
run_move(FMS_EXECUTOR_RUN_PARAMS)
{
	uint64		wanted = count;
	uint64		skipped;

	count = 1;
	run(FMS_EXECUTOR_RUN_ARGS);
	if (query->estate->es_processed == 0)
		return;
	skipped = fms_node_skip(query->planstate, wanted - 2);
	count = wanted - 1 - skipped;
	run(FMS_EXECUTOR_RUN_ARGS);
	query->estate->es_processed += 1 + skipped;
	FMS_ADD_TOTAL_PROCESSED(query->estate, skipped);
}

static void
run_query(FMS_EXECUTOR_RUN_PARAMS)
{
	enter_statement();
	if (is_leaders_plan(query))
		fms_bound_set(query, count);
	PG_TRY();
	{
		if (query->dest == None_Receiver && count > 2 &&
			ScanDirectionIsForward(direction) &&
			fms_plan_is_ours(query->planstate->plan))
			run_move(FMS_EXECUTOR_RUN_ARGS);
		else
			run(FMS_EXECUTOR_RUN_ARGS);
	}
	PG_FINALLY();
	{
		statement_depth--;
	}
	PG_END_TRY();
}

static void
run_utility(PlannedStmt *statement, const char *query_string,
			bool read_only_tree, ProcessUtilityContext context,
			ParamListInfo params, QueryEnvironment *environment,
			DestReceiver *receiver, QueryCompletion *completion)
{
	enter_statement();
	PG_TRY();
	{
		if (previous_utility)
			previous_utility(statement, query_string, read_only_tree,
							 context, params, environment, receiver,
							 completion);
		else
			standard_ProcessUtility(statement, query_string, read_only_tree,
									context, params, environment, receiver,
									completion);
	}
	PG_FINALLY();
	{
		statement_depth--;
	}
	PG_END_TRY();
}

static void
request_memory(void)
{
	if (previous_request)
		previous_request();
	RequestAddinShmemSpace(fms_stat_shared_bytes());
	RequestAddinShmemSpace(fms_progress_shared_bytes());
	RequestAddinShmemSpace(sizeof(FmsIoShared));
	RequestNamedLWLockTranche("fmsort", 1);
}

static void
share_io(void)
{
	bool		found;
	FmsIoShared *memory = ShmemInitStruct("fmsort I/O", sizeof(FmsIoShared),
										  &found);

	fms_io_share(memory, !found);
}

static void
share_memory(void)
{
	if (previous_startup)
		previous_startup();
	LWLockAcquire(AddinShmemInitLock, LW_EXCLUSIVE);
	fms_stat_share();
	fms_progress_share();
	share_io();
	LWLockRelease(AddinShmemInitLock);
}

void
_PG_init(void)
{
	fms_settings_define();
	fms_plan_register();

	previous_paths = create_upper_paths_hook;
	create_upper_paths_hook = plan_step;
	previous_start = ExecutorStart_hook;
	ExecutorStart_hook = start_query;
	previous_run = ExecutorRun_hook;
	ExecutorRun_hook = run_query;
	previous_utility = ProcessUtility_hook;
	ProcessUtility_hook = run_utility;
	previous_explain = fms_set_explain_node_hook(explain_plan_node);
	if (!process_shared_preload_libraries_in_progress)
		return;
	previous_request = shmem_request_hook;
	shmem_request_hook = request_memory;
	previous_startup = shmem_startup_hook;
	shmem_startup_hook = share_memory;
}
