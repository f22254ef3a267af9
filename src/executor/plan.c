/*-------------------------------------------------------------------------
 *
 * plan.c
 *	  The FMSort node in a plan tree: a CustomScan in place of a Sort.
 *
 *	  Sort						CustomScan "FMSort"
 *	    lefttree: child	  ==>	  plan part of the Sort, lefttree: child
 *								  custom_private: version, the Sort
 *
 * The node has the Sort's costs, parameters and node id, and its child as
 * lefttree, so code that walks plans treats it like the Sort.  It returns the
 * child's tuples as they are: its target list is the Sort's, which refers to
 * the child's columns.  custom_private has a copy of the Sort with its keys
 * alone, as a node that the server copies and sends to parallel workers.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "optimizer/optimizer.h"

#include "executor/sort_node.h"

/*
 * Number of the format of custom_private, and of the meaning of FmsCounters: a
 * parallel worker may have loaded another version of the library than the
 * session that planned.
 */
#ifndef FMS_PLAN_VERSION
#define FMS_PLAN_VERSION	4
#endif

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

/* A copy of the Sort that has only its keys. */
static Sort *
keys_of(const Sort *sort)
{
	Size		size = IsA(sort, IncrementalSort) ? sizeof(IncrementalSort) :
		sizeof(Sort);
	Sort	   *keys = palloc(size);

	memcpy(keys, sort, size);
	memset((char *) &keys->plan + sizeof(NodeTag), 0,
		   sizeof(Plan) - sizeof(NodeTag));
	return keys;
}

Plan *
fms_plan_from_sort(const Sort *sort, Plan *child, bool below_gather)
{
	CustomScan *node = makeNode(CustomScan);

	node->scan.plan = sort->plan;
	node->scan.plan.type = T_CustomScan;
	node->scan.plan.lefttree = child;
	node->scan.plan.parallel_aware = below_gather;
	/* like an Incremental Sort, a node of presorted input has only a group */
	node->flags = IsA(sort, IncrementalSort) ? 0 :
		CUSTOMPATH_SUPPORT_BACKWARD_SCAN | CUSTOMPATH_SUPPORT_MARK_RESTORE;
	node->custom_private = list_make2(list_make1_int(FMS_PLAN_VERSION),
									  keys_of(sort));
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
	const List *version = linitial(plan->custom_private);
	const Sort *keys;

	if (!IsA(version, IntList) || linitial_int(version) != FMS_PLAN_VERSION)
		fms_plan_report_version();

	keys = lsecond(plan->custom_private);
	spec->ncolumns = keys->numCols;
	spec->attnos = keys->sortColIdx;
	spec->operators = keys->sortOperators;
	spec->collations = keys->collations;
	spec->nulls_first = keys->nullsFirst;
	spec->tuples = plan->scan.plan.plan_rows;
	return IsA(keys, IncrementalSort) ?
		((const IncrementalSort *) keys)->nPresortedCols : 0;
}
