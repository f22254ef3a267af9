/*-------------------------------------------------------------------------
 *
 * neighbour.c
 *	  Another extension, as demanding as those that people run beside fmsort.
 *
 * planner_hook		raises an error if the finished plan has a custom node with
 *					scanrelid 0 that is not its own; counts plans; with
 *					neighbour.wrap puts a custom node of its own on top of a
 *					plan whose root, below a Limit maybe, is a Sort
 * the custom node	raises an error unless its child is a running Sort, and
 *					hands a Limit's count on to that Sort (neighbour.bound)
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <limits.h>

#include "commands/explain.h"
#include "executor/executor.h"
#include "fmgr.h"
#include "nodes/extensible.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/planner.h"
#include "utils/guc.h"

PG_MODULE_MAGIC;

void		_PG_init(void);

#if PG_VERSION_NUM >= 190000
#define PLANNER_PARAMS \
	Query *parse, const char *query_string, int cursor_options, \
	ParamListInfo params, ExplainState *es
#define PLANNER_ARGS	parse, query_string, cursor_options, params, es
#else
#define PLANNER_PARAMS \
	Query *parse, const char *query_string, int cursor_options, \
	ParamListInfo params
#define PLANNER_ARGS	parse, query_string, cursor_options, params
#endif

static planner_hook_type previous_planner = NULL;
static int	plans = 0;
static int	bound = 0;
static bool wrap = false;

static Node *create_state(CustomScan *plan);

static const CustomScanMethods plan_methods = {
	.CustomName = "Neighbour",
	.CreateCustomScanState = create_state
};

static void
begin_node(CustomScanState *css, EState *estate, int eflags)
{
	CustomScan *plan = (CustomScan *) css->ss.ps.plan;
	PlanState  *state = ExecInitNode(linitial(plan->custom_plans), estate,
									 eflags);

	css->custom_ps = list_make1(state);
	if (!IsA(state, SortState))
		elog(ERROR, "neighbour: the child is node %d, not a Sort",
			 (int) nodeTag(state));
	if (bound > 0)
		ExecSetTupleBound(bound, state);
}

static TupleTableSlot *
exec_node(CustomScanState *css)
{
	return ExecProcNode(linitial(css->custom_ps));
}

static void
end_node(CustomScanState *css)
{
	ExecEndNode(linitial(css->custom_ps));
}

static void
rescan_node(CustomScanState *css)
{
	ExecReScan(linitial(css->custom_ps));
}

static const CustomExecMethods exec_methods = {
	.CustomName = "Neighbour",
	.BeginCustomScan = begin_node,
	.ExecCustomScan = exec_node,
	.EndCustomScan = end_node,
	.ReScanCustomScan = rescan_node
};

static Node *
create_state(CustomScan *plan)
{
	CustomScanState *state = makeNode(CustomScanState);

	state->methods = &exec_methods;
	return (Node *) state;
}

static void
look_at(const Plan *plan)
{
	if (plan == NULL)
		return;
	if (IsA(plan, CustomScan) &&
		((const CustomScan *) plan)->scan.scanrelid == 0 &&
		((const CustomScan *) plan)->methods != &plan_methods)
		elog(ERROR, "neighbour: the plan has a custom node that I do not know");
	look_at(plan->lefttree);
	look_at(plan->righttree);
}

static Plan *
wrapped(Plan *sort)
{
	CustomScan *node = makeNode(CustomScan);
	ListCell   *cell;

	node->scan.plan = *sort;
	node->scan.plan.type = T_CustomScan;
	node->scan.plan.lefttree = NULL;
	node->scan.plan.initPlan = NIL;
	node->scan.plan.targetlist = NIL;
	foreach(cell, sort->targetlist)
	{
		TargetEntry *entry = flatCopyTargetEntry(lfirst(cell));
		TargetEntry *type = flatCopyTargetEntry(entry);
		Node	   *expr = (Node *) entry->expr;

		/* what the child returns, for EXPLAIN and for the slot's types */
		type->expr = (Expr *) makeNullConst(exprType(expr), exprTypmod(expr),
											exprCollation(expr));
		node->custom_scan_tlist = lappend(node->custom_scan_tlist, type);
		entry->expr = (Expr *) makeVarFromTargetEntry(INDEX_VAR, entry);
		node->scan.plan.targetlist = lappend(node->scan.plan.targetlist,
											 entry);
	}
	node->custom_plans = list_make1(sort);
	node->methods = &plan_methods;
	return &node->scan.plan;
}

static PlannedStmt *
plan_query(PLANNER_PARAMS)
{
	PlannedStmt *statement = previous_planner ?
		previous_planner(PLANNER_ARGS) : standard_planner(PLANNER_ARGS);
	ListCell   *cell;

	plans++;
	look_at(statement->planTree);
	foreach(cell, statement->subplans)
		look_at(lfirst(cell));
	if (wrap && IsA(statement->planTree, Sort))
		statement->planTree = wrapped(statement->planTree);
	else if (wrap && IsA(statement->planTree, Limit) &&
			 IsA(outerPlan(statement->planTree), Sort))
		outerPlan(statement->planTree) =
			wrapped(outerPlan(statement->planTree));
	return statement;
}

void
_PG_init(void)
{
	RegisterCustomScanMethods(&plan_methods);
	DefineCustomBoolVariable("neighbour.wrap", "Wraps Sorts at the top.", NULL,
							 &wrap, false, PGC_USERSET, 0, NULL, NULL, NULL);
	DefineCustomIntVariable("neighbour.bound", "Bound for wrapped Sorts.", NULL,
							&bound, 0, 0, INT_MAX, PGC_USERSET, 0, NULL, NULL,
							NULL);
	DefineCustomIntVariable("neighbour.plans", "Statements planned.", NULL,
							&plans, 0, 0, INT_MAX, PGC_USERSET, 0, NULL, NULL,
							NULL);
	previous_planner = planner_hook;
	planner_hook = plan_query;
}
