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
 *   sets and are never run as nodes;
 * - a ForeignScan's lefttree, a local join that only EvalPlanQual runs;
 * - Sorts that may be told a bound (a LIMIT above, through nodes that pass a
 *   bound on): the stock Sort keeps the first n tuples in a heap;
 * - Sorts whose position will be marked and restored (inner side of a merge
 *   join).
 * The last two are not done by our node yet; the reason is logged at DEBUG1.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "miscadmin.h"
#include "nodes/plannodes.h"

#include "node.h"
#include "planner.h"

/* What a node's parent may do to it. */
typedef struct FmsDemands
{
	bool		bounded;		/* tell it how many tuples are needed */
	bool		marked;			/* mark and restore its position */
} FmsDemands;

static const FmsDemands no_demands = {false, false};

static void replace(Plan **link, FmsDemands demands);

static void
replace_list(List *plans, FmsDemands demands)
{
	ListCell   *cell;

	foreach(cell, plans)
	{
		Plan	   *plan = lfirst(cell);

		replace(&plan, demands);
		lfirst(cell) = plan;
	}
}

/* Why a Sort has to stay, or NULL. */
static const char *
reason_to_keep(FmsDemands demands)
{
	if (demands.bounded)
		return "a LIMIT bounds it";
	if (demands.marked)
		return "a merge join marks and restores its position";
	return NULL;
}

static void
replace_sort(Plan **link, FmsDemands demands)
{
	const char *reason = reason_to_keep(demands);

	replace(&(*link)->lefttree, no_demands);
	if (reason)
		ereport(DEBUG1,
				(errmsg_internal("fmsort: keeping PostgreSQL's Sort: %s",
								 reason)));
	else
		*link = fms_node_from_sort((Sort *) *link);
}

static void
replace_below_limit(Limit *limit)
{
	FmsDemands	demands = no_demands;

	demands.bounded = limit->limitCount != NULL &&
		limit->limitOption != LIMIT_OPTION_WITH_TIES;
	replace(&limit->plan.lefttree, demands);
}

static void
replace_below_merge_join(MergeJoin *join)
{
	FmsDemands	demands = no_demands;

	replace(&join->join.plan.lefttree, demands);
	demands.marked = !join->skip_mark_restore;
	replace(&join->join.plan.righttree, demands);
}

/*
 * Replaces the plan at this place, if it is a Sort, and all Sorts below.
 * Bounds are passed on by the nodes that ExecSetTupleBound() descends.
 */
static void
replace(Plan **link, FmsDemands demands)
{
	Plan	   *plan = *link;
	FmsDemands	below = no_demands;

	if (plan == NULL)
		return;
	check_stack_depth();

	switch (nodeTag(plan))
	{
		case T_Sort:
			replace_sort(link, demands);
			return;
		case T_Limit:
			replace_below_limit((Limit *) plan);
			return;
		case T_MergeJoin:
			replace_below_merge_join((MergeJoin *) plan);
			return;
		case T_Append:
			below.bounded = demands.bounded;
			replace_list(((Append *) plan)->appendplans, below);
			return;
		case T_MergeAppend:
			below.bounded = demands.bounded;
			replace_list(((MergeAppend *) plan)->mergeplans, below);
			return;
		case T_SubqueryScan:
			below.bounded = demands.bounded && plan->qual == NIL;
			replace(&((SubqueryScan *) plan)->subplan, below);
			return;
		case T_CustomScan:
			replace_list(((CustomScan *) plan)->custom_plans, no_demands);
			break;
		case T_ForeignScan:
			return;
		case T_Result:
		case T_Gather:
		case T_GatherMerge:
			below.bounded = demands.bounded;
			break;
		default:
			break;
	}
	replace(&plan->lefttree, below);
	replace(&plan->righttree, no_demands);
}

void
fms_planner_replace_sorts(PlannedStmt *statement)
{
	replace(&statement->planTree, no_demands);
	/* cells may be NULL: subplans that turned out not to be needed */
	replace_list(statement->subplans, no_demands);
}
