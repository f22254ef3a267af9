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
 * Likewise a CustomScan "FMSort Merge" in place of a Merge Append: lefttree is
 * its first child, to which the target list refers; custom_plans are the
 * others, and custom_private is the Merge Append without its children.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"

#include "executor/sort_node.h"
#include "shards/shards.h"

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

static const CustomScanMethods merge_methods = {
	.CustomName = FMS_MERGE_NAME,
	.CreateCustomScanState = fms_merge_create_state
};

void
fms_plan_register(void)
{
	RegisterCustomScanMethods(&plan_methods);
	RegisterCustomScanMethods(&merge_methods);
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

/* A node in the place of `plan`, above `child`. */
static CustomScan *
node_in_place(const Plan *plan, Plan *child, const CustomScanMethods *methods)
{
	CustomScan *node = makeNode(CustomScan);

	node->scan.plan = *plan;
	node->scan.plan.type = T_CustomScan;
	node->scan.plan.lefttree = child;
	node->scan.plan.targetlist = pass_through_tlist(plan->targetlist);
	node->scan.scanrelid = 0;
	node->custom_scan_tlist = plan->targetlist;
	node->methods = methods;
	return node;
}

Plan *
fms_plan_from_sort(const Sort *sort, Plan *child, bool below_gather)
{
	CustomScan *node = node_in_place(&sort->plan, child, &plan_methods);
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

	node->scan.plan.parallel_aware = below_gather;
	/* like an Incremental Sort, a node of presorted input has only a group */
	node->flags = presorted > 0 ? 0 : CUSTOMPATH_SUPPORT_BACKWARD_SCAN |
		CUSTOMPATH_SUPPORT_MARK_RESTORE;
	node->custom_private = list_make1(ints);
	return &node->scan.plan;
}

Plan *
fms_plan_from_merge_append(const MergeAppend *merge, List *children)
{
	CustomScan *node = node_in_place(&merge->plan, linitial(children),
									 &merge_methods);
	MergeAppend *bare = makeNode(MergeAppend);

	*bare = *merge;
	bare->mergeplans = NIL;
	node->custom_plans = list_copy_tail(children, 1);
	node->custom_private = list_make1(bare);
	return &node->scan.plan;
}

bool
fms_plan_is_ours(const Plan *plan)
{
	return IsA(plan, CustomScan) &&
		((const CustomScan *) plan)->methods == &plan_methods;
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
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("this plan was made by another version of fmsort"),
				 errhint("Connect again: this session has loaded the library before it was replaced.")));

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
