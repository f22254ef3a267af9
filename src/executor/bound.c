/*-------------------------------------------------------------------------
 *
 * bound.c
 *	  How the bound of a LIMIT reaches the sorts below it.
 *
 * When a Limit knows how many tuples it needs, it tells the nodes below it
 * (ExecSetTupleBound), but of those that sort only the server's own.  So when
 * a query has been started, we go down from each Limit the way the server
 * would, and show it to the FMSort nodes that are found there:
 *
 *	  Limit -> Result, SubqueryScan without a condition, Append,
 *			   MergeAppend, Gather, GatherMerge -> ... -> FMSort
 *
 * What the Limit needs is read from it later (node.c), so it is computed
 * once, by the Limit, with the parameters of each execution.
 *
 * A parallel worker has no Limit: the leader sends it the bound, and the
 * server hands it on as the number of tuples to run the query for.  That is
 * a bound, because a worker runs its query only once.
 *
 * Owns nothing; cannot fail, but for a stack that is too deep.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "miscadmin.h"
#include "nodes/nodeFuncs.h"

#include "executor/bound.h"
#include "base/compat.h"
#include "executor/node.h"

/* Either of the two says what an FMSort is to be told. */
typedef struct FmsBound
{
	const LimitState *limit;
	uint64		tuples;
} FmsBound;

static void pass_on(PlanState *planstate, const FmsBound *bound);

static void
pass_on_to_all(PlanState **planstates, int n, const FmsBound *bound)
{
	int			i;

	for (i = 0; i < n; i++)
		pass_on(planstates[i], bound);
}

/* Down to the sorts whose every tuple may become one of the Limit's. */
static void
pass_on(PlanState *planstate, const FmsBound *bound)
{
	if (planstate == NULL)
		return;
	check_stack_depth();

	switch (nodeTag(planstate))
	{
		case T_CustomScanState:
			if (!fms_node_is_sort(planstate))
				break;
			if (bound->limit)
				fms_node_set_limit(planstate, bound->limit);
			else
				fms_node_set_bound(planstate, bound->tuples);
			break;
		case T_AppendState:
			pass_on_to_all(((AppendState *) planstate)->appendplans,
						   ((AppendState *) planstate)->as_nplans, bound);
			break;
		case T_MergeAppendState:
			pass_on_to_all(((MergeAppendState *) planstate)->mergeplans,
						   ((MergeAppendState *) planstate)->ms_nplans,
						   bound);
			break;
		case T_SubqueryScanState:
			if (planstate->qual == NULL)
				pass_on(((SubqueryScanState *) planstate)->subplan, bound);
			break;
		case T_ResultState:
		case T_GatherState:
		case T_GatherMergeState:
			pass_on(outerPlanState(planstate), bound);
			break;
		default:
			break;
	}
}

static bool
find_limits(PlanState *planstate, void *context)
{
	if (planstate == NULL)
		return false;
	check_stack_depth();
	if (IsA(planstate, LimitState))
	{
		FmsBound	bound = {.limit = (LimitState *) planstate};

		pass_on(outerPlanState(planstate), &bound);
	}
	return planstate_tree_walker(planstate, find_limits, context);
}

void
fms_bound_find_limits(QueryDesc *query)
{
	(void) find_limits(query->planstate, NULL);
}

void
fms_bound_set(QueryDesc *query, uint64 bound)
{
	FmsBound	told = {.tuples = bound};

	pass_on(query->planstate, &told);
}
