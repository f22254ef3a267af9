/*-------------------------------------------------------------------------
 *
 * replace.c
 *	  Which Sorts become FMSort nodes.
 *
 * Sorts are replaced when a statement starts, not when it is planned.  Until
 * then the plan is PostgreSQL's: other extensions, the plan cache and
 * DECLARE CURSOR decide by the types of its nodes.  And path hooks would see
 * only some Sorts: the planner makes those below merge joins, Append and
 * Unique without a path.
 *
 * The plan may be the plan cache's, so it is never written to.  The nodes on
 * the way from a root down to a Sort are copied, each without its children;
 * everything else is shared:
 *
 *	  Limit						Limit'
 *	    Merge Join				  Merge Join'
 *	      Sort			==>		    FMSort
 *	        Seq Scan  <---------------+
 *	      Index Scan  <------------+
 *
 * These Sorts stay PostgreSQL's, and are counted (fmsort_stat):
 * - the Sorts on Agg.chain, which describe later phases of grouping sets and
 *   never run as nodes;
 * - what is below a custom node of another extension, whose code may look for
 *   its Sorts by type, or give them a bound;
 * - what is below a type of node that flat_size() does not list.
 * A ForeignScan's lefttree, a local join that only EvalPlanQual runs, stays
 * as it is, too.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "executor/executor.h"
#include "miscadmin.h"
#include "nodes/extensible.h"
#include "nodes/plannodes.h"

#include "executor/node.h"
#include "executor/replace.h"
#include "observe/stat.h"

typedef struct FmsPlace
{
	bool		below_gather;
	bool		keep;			/* Sorts here stay PostgreSQL's */
	bool		below_extension;	/* because they are another extension's */
} FmsPlace;

/* Sorts that stay PostgreSQL's. */
typedef struct FmsLeft
{
	int			to_server;
	int			to_extensions;
} FmsLeft;

static Plan *replaced(Plan *plan, FmsPlace place, FmsLeft *left);

/*
 * The size of a node that may have Sorts below and that we know how to copy,
 * else 0.
 */
static Size
flat_size(const Plan *plan)
{
#define FMS_SIZE(type)	case T_##type: return sizeof(type)
	switch (nodeTag(plan))
	{
			FMS_SIZE(Result);
			FMS_SIZE(ProjectSet);
			FMS_SIZE(ModifyTable);
			FMS_SIZE(Append);
			FMS_SIZE(MergeAppend);
			FMS_SIZE(RecursiveUnion);
			FMS_SIZE(SubqueryScan);
			FMS_SIZE(NestLoop);
			FMS_SIZE(MergeJoin);
			FMS_SIZE(HashJoin);
			FMS_SIZE(Material);
			FMS_SIZE(Memoize);
			FMS_SIZE(Sort);
			FMS_SIZE(IncrementalSort);
			FMS_SIZE(Group);
			FMS_SIZE(Agg);
			FMS_SIZE(WindowAgg);
			FMS_SIZE(Unique);
			FMS_SIZE(Gather);
			FMS_SIZE(GatherMerge);
			FMS_SIZE(Hash);
			FMS_SIZE(SetOp);
			FMS_SIZE(LockRows);
			FMS_SIZE(Limit);
		default:
			return 0;
	}
#undef FMS_SIZE
}

static bool
is_sort(const Plan *plan)
{
	return IsA(plan, Sort) || IsA(plan, IncrementalSort);
}

/* Phases of grouping sets that Agg sorts by itself. */
static int
chain_sorts(const Agg *agg)
{
	int			sorts = 0;
	ListCell   *cell;

	foreach(cell, agg->chain)
	{
		if (((Agg *) lfirst(cell))->plan.lefttree)
			sorts++;
	}
	return sorts;
}

/* The list itself, if nothing in it is replaced. */
static List *
replaced_list(List *plans, FmsPlace place, FmsLeft *left)
{
	List	   *result = plans;
	int			i;

	for (i = 0; i < list_length(plans); i++)
	{
		Plan	   *plan = list_nth(plans, i);
		Plan	   *with = replaced(plan, place, left);

		if (with == plan)
			continue;
		if (result == plans)
			result = list_copy(plans);
		lfirst(list_nth_cell(result, i)) = with;
	}
	return result;
}

/* The children that are neither the left nor the right one, if any. */
static List **
listed_children(Plan *plan)
{
	switch (nodeTag(plan))
	{
		case T_Append:
			return &((Append *) plan)->appendplans;
		case T_MergeAppend:
			return &((MergeAppend *) plan)->mergeplans;
		case T_CustomScan:
			return &((CustomScan *) plan)->custom_plans;
		default:
			return NULL;
	}
}

/* Where a node's children are, if the node is there. */
static FmsPlace
place_below(const Plan *plan, FmsPlace place)
{
	place.below_gather |= IsA(plan, Gather) || IsA(plan, GatherMerge);
	place.keep |= flat_size(plan) == 0;
	place.below_extension |= IsA(plan, CustomScan);
	return place;
}

/*
 * The plan with its Sorts replaced: itself, if there are none.  Adds to *left
 * how many stay PostgreSQL's.
 */
static Plan *
replaced(Plan *plan, FmsPlace place, FmsLeft *left)
{
	FmsPlace	below;
	Plan	   *lefttree;
	Plan	   *righttree;
	List	  **link;
	List	   *list = NIL;
	Plan	   *subplan = NULL;
	Plan	   *result;

	if (plan == NULL || IsA(plan, ForeignScan))
		return plan;
	check_stack_depth();

	below = place_below(plan, place);
	lefttree = replaced(plan->lefttree, below, left);
	righttree = replaced(plan->righttree, below, left);
	link = listed_children(plan);
	if (link)
		list = replaced_list(*link, below, left);
	if (IsA(plan, SubqueryScan))
		subplan = replaced(((SubqueryScan *) plan)->subplan, below, left);
	if (IsA(plan, Agg))
		left->to_server += chain_sorts((Agg *) plan);

	if (is_sort(plan))
	{
		if (!place.keep)
			return fms_node_from_sort((Sort *) plan, lefttree,
									  place.below_gather);
		if (place.below_extension)
			left->to_extensions++;
		else
			left->to_server++;
	}
	if (lefttree == plan->lefttree && righttree == plan->righttree &&
		(link == NULL || list == *link) &&
		(subplan == NULL || subplan == ((SubqueryScan *) plan)->subplan))
		return plan;

	Assert(!below.keep);
	result = palloc(flat_size(plan));
	memcpy(result, plan, flat_size(plan));
	result->lefttree = lefttree;
	result->righttree = righttree;
	if (link)
		*listed_children(result) = list;
	if (subplan)
		((SubqueryScan *) result)->subplan = subplan;
	return result;
}

void
fms_replace_sorts(QueryDesc *query, int eflags)
{
	PlannedStmt *statement = query->plannedstmt;
	FmsPlace	top = {0};
	FmsLeft		left = {0};
	Plan	   *tree = replaced(statement->planTree, top, &left);

	/* cells may be NULL: subplans that turned out not to be needed */
	List	   *subplans = replaced_list(statement->subplans, top, &left);

	if ((eflags & EXEC_FLAG_EXPLAIN_ONLY) == 0)
		fms_stat_sorts_left(left.to_server, left.to_extensions);
	if (tree == statement->planTree && subplans == statement->subplans)
		return;
	query->plannedstmt = makeNode(PlannedStmt);
	*query->plannedstmt = *statement;
	query->plannedstmt->planTree = tree;
	query->plannedstmt->subplans = subplans;
}

const char *
fms_replace_why_not(const PlanState *planstate, const List *ancestors)
{
	const Plan *plan = planstate->plan;
	const ListCell *cell;

	if (IsA(plan, Agg) && chain_sorts((const Agg *) plan) > 0)
		return "second and later grouping sets are sorted inside the Agg node";
	if (!is_sort(plan))
		return NULL;
	foreach(cell, ancestors)
	{
		const Plan *ancestor = lfirst(cell);

		/* the plan of a subquery begins here */
		if (IsA(ancestor, SubPlan))
			return NULL;
		if (IsA(ancestor, CustomScan) && !fms_node_is_plan(ancestor))
		{
			const CustomScan *custom = (const CustomScan *) ancestor;

			return psprintf("below a node of another extension, Custom Scan (%s)",
							custom->methods->CustomName);
		}
	}
	return NULL;
}
