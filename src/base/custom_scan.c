/*-------------------------------------------------------------------------
 *
 * custom_scan.c
 *	  A CustomScan node that takes the place of a node of PostgreSQL's.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"

#include "base/custom_scan.h"

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

CustomScan *
fms_custom_scan(const Plan *plan, Plan *child,
				const CustomScanMethods *methods)
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
