/*-------------------------------------------------------------------------
 *
 * replace.c
 *	  Which Sorts become FMSort nodes.
 *
 * Sorts are replaced when a statement starts.  Until then other extensions,
 * the plan cache and DECLARE CURSOR see PostgreSQL's node types.
 *
 * The plan may be the plan cache's, so it is not written to.  Each node from
 * the root down to a Sort is copied without its children; the others are
 * shared:
 *
 *	  Limit						Limit'
 *	    Merge Join				  Merge Join'
 *	      Sort			==>		    FMSort
 *	        Seq Scan  <---------------+
 *	      Index Scan  <------------+
 *
 * Small Sorts are not replaced.  Two kinds are not replaced, but counted
 * (fmsort_stat): those of later grouping sets, which Agg runs itself, and
 * those below another extension's node, which may search for Sort nodes.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "executor/executor.h"
#include "miscadmin.h"
#include "nodes/plannodes.h"
#include "utils/memutils.h"

#include "executor/sort_node.h"
#include "observe/reports.h"
#include "shards/shards.h"

typedef struct FmsSorts
{
	int			replaced;		/* and Merge Appends */
	int			left;			/* to the server */
	int			left_to_extensions;
	int			next_node_id;	/* for a node that the planner has not made */
} FmsSorts;

/* The planner's ids are consecutive, and far from that. */
#define FIRST_NODE_ID		(1 << 30)

/*
 * Rows of a LIMIT up to which Gather Merge stays.  Measured: the segment and
 * the files of two workers take 2 to 4 ms longer than their queues.
 */
#define QUEUE_MAX_ROWS		1000

/* Cost of a sort with its input, beside which the node's start is little. */
#define EXPENSIVE_COST	1000.0

/* What a node inherits from the nodes above it. */
typedef struct FmsAncestry
{
	bool		below_extension;	/* below another extension's node */
	bool		below_gather;
	const PlannedStmt *statement;
	int			eflags;			/* the executor's, of the statement */
	const Plan *parent;			/* NULL: none */
	FmsSorts   *sorts;			/* counts them */
} FmsAncestry;

/* Empty and between two statements, or NULL. */
static MemoryContext spare_context = NULL;

static Plan *replaced(Plan *plan, FmsAncestry above);

/* Size of a node that may have Sorts below and can be copied; else 0. */
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
			FMS_SIZE(CustomScan);
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

/* Fewer rows than fmsort.min_rows are expected, and of cheap input. */
static bool
is_small(const Plan *sort)
{
	return sort->plan_rows < fms_settings_min_rows &&
		sort->total_cost < EXPENSIVE_COST;
}

/* Incremental Sorts stay below their Gather Merge: groups return early. */
static bool
is_parallel_sort(const Plan *plan, FmsAncestry above)
{
	const Limit *limit = (const Limit *) above.parent;

	if (limit && IsA(above.parent, Limit) && limit->limitOffset == NULL &&
		limit->plan.plan_rows <= QUEUE_MAX_ROWS)
		return false;
	return IsA(plan, GatherMerge) && IsA(plan->lefttree, Sort) &&
		!above.below_extension && fms_settings_parallel;
}

/* Number of later grouping sets, which Agg sorts itself. */
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

static List *
replaced_list(const List *plans, FmsAncestry above)
{
	List	   *result = list_copy(plans);
	ListCell   *cell;

	foreach(cell, result)
		lfirst(cell) = replaced(lfirst(cell), above);
	return result;
}

/* The node's list of children besides the left and right one, or NULL. */
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

/* The plan with its Sorts replaced; itself, if there are none. */
static Plan *
replaced(Plan *plan, FmsAncestry above)
{
	FmsAncestry below = above;
	int			before = above.sorts->replaced;
	Size		size;
	Plan	   *result;
	List	  **list;

	if (plan == NULL)
		return NULL;
	size = flat_size(plan);
	if (size == 0)
		return plan;
	check_stack_depth();

	below.parent = plan;
	below.below_extension |= IsA(plan, CustomScan);
	below.below_gather |= IsA(plan, Gather) || IsA(plan, GatherMerge);
	if (is_parallel_sort(plan, above))
	{
		above.sorts->replaced++;
		return fms_plan_from_gather_merge((GatherMerge *) plan,
										  replaced(plan->lefttree->lefttree,
												   below),
										  above.parent,
										  &above.sorts->next_node_id);
	}
	result = palloc(size);
	memcpy(result, plan, size);
	result->lefttree = replaced(plan->lefttree, below);
	result->righttree = replaced(plan->righttree, below);
	list = listed_children(result);
	if (list)
		*list = replaced_list(*list, below);
	if (IsA(plan, SubqueryScan))
		((SubqueryScan *) result)->subplan =
			replaced(((SubqueryScan *) plan)->subplan, below);
	if (IsA(plan, Agg))
		above.sorts->left += chain_sorts((Agg *) plan);

	if (is_sort(plan) && above.below_extension)
		above.sorts->left_to_extensions++;
	else if (is_sort(plan) && !is_small(plan))
	{
		above.sorts->replaced++;
		return fms_plan_from_sort((Sort *) plan, result->lefttree,
								  above.parent, above.below_gather);
	}
	else if (IsA(plan, MergeAppend) && !above.below_extension &&
			 fms_async_mark(*list, (MergeAppend *) plan, above.statement,
							above.eflags))
	{
		above.sorts->replaced++;
		return fms_plan_from_merge_append((MergeAppend *) plan, *list);
	}
	Assert(above.sorts->replaced == before || !below.below_extension);
	return above.sorts->replaced == before ? plan : result;
}

MemoryContext
fms_replace_sorts(QueryDesc *query, int eflags)
{
	MemoryContext caller = CurrentMemoryContext;
	MemoryContext context;
	PlannedStmt *statement = query->plannedstmt;
	FmsSorts	sorts = {.next_node_id = FIRST_NODE_ID};
	FmsAncestry top = {
		.statement = statement,
		.eflags = eflags,
		.sorts = &sorts
	};
	Plan	   *tree;
	List	   *subplans;

	if (spare_context == NULL)
		spare_context = AllocSetContextCreate(TopMemoryContext, "fmsort plan",
											  ALLOCSET_SMALL_SIZES);
	context = spare_context;
	/* an error may have left something */
	MemoryContextReset(context);
	MemoryContextSwitchTo(context);
	tree = replaced(statement->planTree, top);
	/* cells may be NULL: subplans that turned out not to be needed */
	subplans = replaced_list(statement->subplans, top);
	if ((eflags & EXEC_FLAG_EXPLAIN_ONLY) == 0)
		fms_stat_sorts_left(sorts.left, sorts.left_to_extensions);
	if (sorts.replaced > 0)
	{
		query->plannedstmt = makeNode(PlannedStmt);
		*query->plannedstmt = *statement;
		query->plannedstmt->planTree = tree;
		query->plannedstmt->subplans = subplans;
		MemoryContextSetParent(context, caller);
		spare_context = NULL;
	}
	MemoryContextSwitchTo(caller);
	return sorts.replaced > 0 ? context : NULL;
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
		if (IsA(ancestor, CustomScan) && !fms_plan_is_ours(ancestor))
		{
			const CustomScan *custom = (const CustomScan *) ancestor;

			return psprintf("below a node of another extension, Custom Scan (%s)",
							custom->methods->CustomName);
		}
	}
	return is_small(plan) ?
		"the planner expects fewer rows than fmsort.min_rows" : NULL;
}
