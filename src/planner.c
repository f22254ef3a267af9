/*-------------------------------------------------------------------------
 *
 * planner.c
 *	  Which Sorts become FMSort nodes.
 *
 * All of them, seen from the finished plan.  Path hooks would see only some:
 * the planner makes the Sorts below merge joins, Append and Unique without a
 * path, at the very end.  And the finished plan is the place where nothing
 * that was decided on costs changes any more: the plan is what it would have
 * been, with another node doing the sorting.
 *
 * Not touched:
 * - the Sorts on Agg.chain, which only describe later phases of grouping
 *   sets and are never run as nodes (they are counted: fmsort_stat);
 * - a ForeignScan's lefttree, a local join that only EvalPlanQual runs.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "miscadmin.h"
#include "nodes/plannodes.h"

#include "node.h"
#include "planner.h"
#include "stat.h"

static void replace(Plan **link, bool below_gather);

static void
replace_list(List *plans, bool below_gather)
{
	ListCell   *cell;

	foreach(cell, plans)
	{
		Plan	   *plan = lfirst(cell);

		replace(&plan, below_gather);
		lfirst(cell) = plan;
	}
}

/* Sorts of later phases, which stay PostgreSQL's. */
static void
count_chain(const Agg *agg)
{
	int			sorts = 0;
	ListCell   *cell;

	foreach(cell, agg->chain)
	{
		if (((Agg *) lfirst(cell))->plan.lefttree)
			sorts++;
	}
	fms_stat_left_to_server(sorts);
}

/*
 * Replaces the plan at this place, if it is a Sort, and all Sorts below.
 */
static void
replace(Plan **link, bool below_gather)
{
	Plan	   *plan = *link;

	if (plan == NULL)
		return;
	check_stack_depth();

	switch (nodeTag(plan))
	{
		case T_Sort:
		case T_IncrementalSort:
			replace(&plan->lefttree, below_gather);
			*link = fms_node_from_sort((Sort *) plan, below_gather);
			return;
		case T_Append:
			replace_list(((Append *) plan)->appendplans, below_gather);
			return;
		case T_MergeAppend:
			replace_list(((MergeAppend *) plan)->mergeplans, below_gather);
			return;
		case T_SubqueryScan:
			replace(&((SubqueryScan *) plan)->subplan, below_gather);
			return;
		case T_CustomScan:
			replace_list(((CustomScan *) plan)->custom_plans, below_gather);
			break;
		case T_ForeignScan:
			return;
		case T_Agg:
			count_chain((Agg *) plan);
			break;
		case T_Gather:
		case T_GatherMerge:
			below_gather = true;
			break;
		default:
			break;
	}
	replace(&plan->lefttree, below_gather);
	replace(&plan->righttree, below_gather);
}

void
fms_planner_replace_sorts(PlannedStmt *statement)
{
	replace(&statement->planTree, false);
	/* cells may be NULL: subplans that turned out not to be needed */
	replace_list(statement->subplans, false);
}
