/*-------------------------------------------------------------------------
 *
 * plan.c
 *	  The FMSort node in a plan tree: a CustomScan in place of a Sort.
 *
 *	  Sort						CustomScan "FMSort"
 *	    lefttree: child	  ==>	  plan part of the Sort, lefttree: child
 *								  custom_private: the sort keys
 *
 * The node has the Sort's costs, parameters and node id, and its child as
 * lefttree, so code that walks plans treats it like the Sort.  It returns the
 * child's tuples as they are.  custom_private holds plain ints: plans are
 * copied, and sent to parallel workers.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"

#include "executor/sort_node.h"

/*
 * Number of the format of custom_private, and of the meaning of FmsCounters: a
 * parallel worker may have loaded another version of the library than the
 * session that planned.
 */
#ifndef FMS_PLAN_VERSION
#define FMS_PLAN_VERSION	3
#endif

/* custom_private is a list of one list: these ints, then those of columns. */
enum
{
	PRIVATE_VERSION,
	PRIVATE_PRESORTED,			/* number of presorted columns */
	PRIVATE_COLUMNS
};

/* Ints of a column: its number, operator, collation, 1 if nulls are first. */
#define COLUMN_INTS		4

static const CustomScanMethods plan_methods = {
	.CustomName = FMS_NODE_NAME,
	.CreateCustomScanState = fms_node_create_state
};

static const CustomScanMethods runs_methods = {
	.CustomName = FMS_RUNS_NODE_NAME,
	.CreateCustomScanState = fms_runs_create_state
};

void
fms_plan_register(void)
{
	RegisterCustomScanMethods(&plan_methods);
	RegisterCustomScanMethods(&runs_methods);
}

/*
 * A target list of the child's columns.  A constant stays a constant, as in a
 * Sort's list, so that EXPLAIN prints it without parentheses.
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
fms_plan_from_sort(const Sort *sort, Plan *child, bool below_gather)
{
	CustomScan *node = makeNode(CustomScan);
	int			presorted = IsA(sort, IncrementalSort) ?
		((const IncrementalSort *) sort)->nPresortedCols : 0;
	List	   *ints = list_make2_int(FMS_PLAN_VERSION, presorted);
	int			i;

	for (i = 0; i < sort->numCols; i++)
	{
		ints = lappend_int(ints, sort->sortColIdx[i]);
		ints = lappend_int(ints, (int) sort->sortOperators[i]);
		ints = lappend_int(ints, (int) sort->collations[i]);
		ints = lappend_int(ints, sort->nullsFirst[i]);
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
	node->custom_private = list_make1(ints);
	node->methods = &plan_methods;
	return &node->scan.plan;
}

/* A Gather of what Gather Merge gathers, which returns no row. */
static Plan *
gather_from(const GatherMerge *merge, Plan *child)
{
	Gather	   *gather = makeNode(Gather);

	gather->plan = merge->plan;
	gather->plan.type = T_Gather;
	gather->plan.lefttree = child;
	gather->plan.targetlist = merge->plan.lefttree->targetlist;
	gather->plan.initPlan = NIL;
	gather->plan.plan_rows = 0;
	gather->plan.total_cost = gather->plan.startup_cost;
	gather->num_workers = merge->num_workers;
	gather->rescan_param = merge->rescan_param;
	gather->initParam = merge->initParam;
	return &gather->plan;
}

/*
 * Rows of all participants, of which each is expected to get sort_rows: the
 * leader does less, the more workers it has to attend to (costsize.c).
 */
static double
rows_of_all(double sort_rows, int nworkers)
{
	double		leader = 1 - 0.3 * nworkers;

	return sort_rows *
		(nworkers + (parallel_leader_participation ? Max(leader, 0) : 0));
}

/* Does the list return the child's columns, all of them and in order? */
static bool
is_pass_through(const List *tlist, const List *child_tlist)
{
	ListCell   *cell;

	foreach(cell, tlist)
	{
		const TargetEntry *entry = lfirst(cell);
		const Var  *var = (const Var *) entry->expr;

		if (!IsA(var, Var) || var->varno != OUTER_VAR ||
			var->varattno != entry->resno)
			return false;
	}
	return list_length(tlist) == list_length(child_tlist);
}

Plan *
fms_plan_from_gather_merge(const GatherMerge *merge, Plan *child,
						   int *next_node_id)
{
	const Sort *sort = (const Sort *) merge->plan.lefttree;
	Plan	   *runs = fms_plan_from_sort(sort, child, true);
	Sort		merging = *sort;
	Plan	   *node;
	Result	   *projection;

	((CustomScan *) runs)->methods = &runs_methods;
	((CustomScan *) runs)->flags = 0;
	runs->plan_rows = 0;
	runs->startup_cost = runs->total_cost = sort->plan.startup_cost;

	merging.plan = merge->plan;
	merging.plan.plan_node_id = (*next_node_id)++;
	merging.plan.plan_rows = rows_of_all(sort->plan.plan_rows,
										 merge->num_workers);
	if (is_pass_through(merge->plan.targetlist, sort->plan.targetlist))
		return fms_plan_from_sort(&merging, gather_from(merge, runs), false);

	merging.plan.targetlist = sort->plan.targetlist;
	merging.plan.initPlan = NIL;
	node = fms_plan_from_sort(&merging, gather_from(merge, runs), false);
	projection = makeNode(Result);
	projection->plan = merge->plan;
	projection->plan.type = T_Result;
	projection->plan.plan_node_id = (*next_node_id)++;
	projection->plan.lefttree = node;
	return &projection->plan;
}

static bool
has_methods(const Plan *plan, const CustomScanMethods *methods)
{
	return IsA(plan, CustomScan) &&
		((const CustomScan *) plan)->methods == methods;
}

bool
fms_plan_is_ours(const Plan *plan)
{
	return has_methods(plan, &plan_methods);
}

bool
fms_plan_forms_runs(const Plan *plan)
{
	return has_methods(plan, &runs_methods);
}

void
fms_plan_report_version(void)
{
	ereport(ERROR,
			(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
			 errmsg("this plan was made by another version of fmsort"),
			 errhint("Connect again: this session has loaded the library before it was replaced.")));
}

int
fms_plan_read(const CustomScan *plan, FmsKeySpec *spec)
{
	const List *ints = linitial(plan->custom_private);
	int			n;
	int			i;

	/* earlier versions have several lists */
	if (list_length(plan->custom_private) != 1 ||
		list_nth_int(ints, PRIVATE_VERSION) != FMS_PLAN_VERSION)
		fms_plan_report_version();

	n = (list_length(ints) - PRIVATE_COLUMNS) / COLUMN_INTS;
	spec->ncolumns = n;
	spec->attnos = palloc(n * sizeof(AttrNumber));
	spec->operators = palloc(n * sizeof(Oid));
	spec->collations = palloc(n * sizeof(Oid));
	spec->nulls_first = palloc(n * sizeof(bool));
	for (i = 0; i < n; i++)
	{
		int			at = PRIVATE_COLUMNS + i * COLUMN_INTS;

		spec->attnos[i] = list_nth_int(ints, at);
		spec->operators[i] = (Oid) list_nth_int(ints, at + 1);
		spec->collations[i] = (Oid) list_nth_int(ints, at + 2);
		spec->nulls_first[i] = list_nth_int(ints, at + 3) != 0;
	}
	return list_nth_int(ints, PRIVATE_PRESORTED);
}
