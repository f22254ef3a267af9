/*-------------------------------------------------------------------------
 *
 * bound.c
 *	  How the bound of a LIMIT reaches the sorts below it.
 *
 * ExecSetTupleBound() passes the number of tuples that a Limit needs to the
 * nodes below, but it knows only the server's own sort nodes.  When a query
 * has started, this file therefore walks down from each Limit as the server
 * does, and tells the FMSort nodes which Limit is above them.  The node reads
 * the Limit when it loads: then the Limit has computed its count with the
 * parameters of this execution.
 *
 * A parallel worker has no Limit.  The leader sends it the bound, and the
 * server passes it on as the number of tuples to run the query for.  A worker
 * runs its query once, so that number is a bound.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "miscadmin.h"
#include "nodes/nodeFuncs.h"

#include "executor/sort_node.h"
#include "shards/shards.h"

/* Sets the bound of the sorts all of whose tuples the node may return. */
static void
pass_on(PlanState *planstate, LimitState *limit, uint64 tuples)
{
	PlanState **children = NULL;
	int			n = 0;

	if (planstate == NULL)
		return;
	check_stack_depth();

	switch (nodeTag(planstate))
	{
		case T_CustomScanState:
			if (fms_plan_is_ours(planstate->plan))
				fms_node_set_bound(planstate, limit, tuples);
			else
				children = fms_merge_children(planstate, &n);
			break;
		case T_AppendState:
			children = ((AppendState *) planstate)->appendplans;
			n = ((AppendState *) planstate)->as_nplans;
			break;
		case T_MergeAppendState:
			children = ((MergeAppendState *) planstate)->mergeplans;
			n = ((MergeAppendState *) planstate)->ms_nplans;
			break;
		case T_SubqueryScanState:
			if (planstate->qual == NULL)
				pass_on(((SubqueryScanState *) planstate)->subplan, limit,
						tuples);
			break;
		case T_ResultState:
		case T_GatherState:
		case T_GatherMergeState:
			pass_on(outerPlanState(planstate), limit, tuples);
			break;
		default:
			break;
	}
	for (int i = 0; i < n; i++)
		pass_on(children[i], limit, tuples);
}

static bool
find_limits(PlanState *planstate, void *context)
{
	if (planstate == NULL)
		return false;
	check_stack_depth();
	if (IsA(planstate, LimitState))
		pass_on(outerPlanState(planstate), (LimitState *) planstate, 0);
	return planstate_tree_walker(planstate, find_limits, context);
}

void
fms_bound_find_limits(QueryDesc *query)
{
	(void) find_limits(query->planstate, NULL);
}

void
fms_bound_set(QueryDesc *query, uint64 tuples)
{
	pass_on(query->planstate, NULL, tuples);
}
