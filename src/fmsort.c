/*-------------------------------------------------------------------------
 *
 * fmsort.c
 *	  The library's entrance: settings, the node, the hooks.
 *
 * planner_hook			replaces the Sorts of the finished plan
 * ExecutorStart_hook	shows the sorts their LIMIT; in parallel workers
 *						ExecutorRun_hook does
 * ExecutorRun_hook,
 * ProcessUtility_hook	tell the client's statements apart, for
 *						fmsort_last_sort(): what runs inside another
 *						statement (a function, DO, CALL) is part of that one
 * shmem_request_hook,
 * shmem_startup_hook	make room for statistics and progress, if the library
 *						is loaded when the server starts
 *
 * Each calls whoever was there before.
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
#include "tcop/utility.h"

#include "bound.h"
#include "compat.h"
#include "last_sort.h"
#include "layout.h"
#include "node.h"
#include "planner.h"
#include "progress.h"
#include "settings.h"
#include "stat.h"

PG_MODULE_MAGIC;

void		_PG_init(void);

static planner_hook_type previous_planner = NULL;
static ExecutorStart_hook_type previous_start = NULL;
static ExecutorRun_hook_type previous_run = NULL;
static ProcessUtility_hook_type previous_utility = NULL;
static shmem_request_hook_type previous_request = NULL;
static shmem_startup_hook_type previous_startup = NULL;

/* 0 outside any statement, 1 in the client's, more in those inside it */
static int	statement_depth = 0;

static PlannedStmt *
plan_query(Query *parse, const char *query_string, int cursor_options,
		   ParamListInfo params)
{
	PlannedStmt *statement;

	if (previous_planner)
		statement = previous_planner(parse, query_string, cursor_options,
									 params);
	else
		statement = standard_planner(parse, query_string, cursor_options,
									 params);
	if (fms_settings_mode() != FMS_MODE_OFF)
		fms_planner_replace_sorts(statement);
	return statement;
}

static void
start_query(QueryDesc *query, int eflags)
{
	uint64		begun = fms_node_begun();

	if (previous_start)
		previous_start(query, eflags);
	else
		standard_ExecutorStart(query, eflags);
	/* most queries sort nothing: do not walk them */
	if (fms_node_begun() > begun)
		fms_bound_find_limits(query);
}

static void
enter_statement(void)
{
	if (statement_depth == 0)
		fms_last_sort_new_statement();
	statement_depth++;
}

static void
run_query(FMS_EXECUTOR_RUN_PARAMS)
{
	enter_statement();
	if (IsParallelWorker() && statement_depth == 1)
		fms_bound_set(query, count);
	PG_TRY();
	{
		if (previous_run)
			previous_run(FMS_EXECUTOR_RUN_ARGS);
		else
			standard_ExecutorRun(FMS_EXECUTOR_RUN_ARGS);
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
	RequestAddinShmemSpace(sizeof(FmsLayout));
	RequestAddinShmemSpace(fms_stat_shared_bytes());
	RequestAddinShmemSpace(fms_progress_shared_bytes());
	RequestNamedLWLockTranche("fmsort", 1);
}

static void
share_memory(void)
{
	FmsLayout	layout = fms_layout(fms_stat_shared_bytes(),
									fms_progress_shared_bytes());

	if (previous_startup)
		previous_startup();
	if (!fms_layout_claim(&layout))
		return;
	fms_stat_share();
	fms_progress_share();
}

void
_PG_init(void)
{
	fms_settings_define();
	fms_node_register();

	previous_planner = planner_hook;
	planner_hook = plan_query;
	previous_start = ExecutorStart_hook;
	ExecutorStart_hook = start_query;
	previous_run = ExecutorRun_hook;
	ExecutorRun_hook = run_query;
	previous_utility = ProcessUtility_hook;
	ProcessUtility_hook = run_utility;
	if (!process_shared_preload_libraries_in_progress)
		return;
	previous_request = shmem_request_hook;
	shmem_request_hook = request_memory;
	previous_startup = shmem_startup_hook;
	shmem_startup_hook = share_memory;
}
