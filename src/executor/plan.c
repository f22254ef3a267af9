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
 * Unique and Group want one row of each group of equal rows.  So do, or k of
 * them, a run condition row_number(), rank() or dense_rank() <= k of the top
 * WindowAgg, which reads rows beyond it, but does not return them.  It must
 * have no other window function, which might count these rows, and evaluate
 * nothing volatile for them.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/stratnum.h"
#include "catalog/pg_opfamily_d.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/clauses.h"
#include "optimizer/optimizer.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"

#include "executor/settings.h"
#include "executor/sort_node.h"

/*
 * Number of the format of custom_private, and of the meaning of FmsCounters: a
 * parallel worker may have loaded another version of the library than the
 * session that planned.
 */
#ifndef FMS_PLAN_VERSION
#define FMS_PLAN_VERSION	4
#endif

/* custom_private is a list of one list: these ints, then those of columns. */
enum
{
	PRIVATE_VERSION,
	PRIVATE_PRESORTED,			/* number of presorted columns */
	PRIVATE_COUNTS,				/* FmsGroupLimit */
	PRIVATE_GROUP_COLUMNS,
	PRIVATE_WANTED,
	PRIVATE_COLUMNS
};

/* Ints of a column: its number, operator, collation, 1 if nulls are first. */
#define COLUMN_INTS		4

static const CustomScanMethods plan_methods = {
	.CustomName = FMS_NODE_NAME,
	.CreateCustomScanState = fms_node_create_state
};

void
fms_plan_register(void)
{
	RegisterCustomScanMethods(&plan_methods);
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

/* Are these the columns of the Sort from column `first` on, and equality? */
static bool
are_sorted(const Sort *sort, int first, int ncolumns,
		   const AttrNumber *columns, const Oid *operators,
		   const Oid *collations)
{
	int			i;

	for (i = 0; i < ncolumns && first + i < sort->numCols; i++)
	{
		Oid			order = sort->sortOperators[first + i];

		if (columns[i] != sort->sortColIdx[first + i] ||
			collations[i] != sort->collations[first + i] ||
			operators[i] != get_equality_op_for_ordering_op(order, NULL))
			break;
	}
	return i == ncolumns;
}

/* Sets the limit of a WindowAgg's run condition; returns false if none. */
static bool
read_window(const WindowAgg *window, const Sort *sort, FmsGroupLimit *limit)
{
	Node	   *list = (Node *) window->plan.targetlist;
	const OpExpr *test = list_length(window->runConditionOrig) == 1 ?
		linitial(window->runConditionOrig) : NULL;
	bool		is_test = test && IsA(test, OpExpr) &&
		IsA(linitial(test->args), WindowFunc) &&
		IsA(lsecond(test->args), Const);
	const Const *k = is_test ? lsecond(test->args) : NULL;
	Oid			function;
	int			strategy;
	int64		wanted;

	if (!is_test || k->constisnull || !window->topWindow ||
		window->startOffset || window->endOffset ||
		contain_volatile_functions(list) ||
		find_window_functions(list, window->winref)->numWindowFuncs != 1)
		return false;
	function = ((const WindowFunc *) linitial(test->args))->winfnoid;
	strategy = get_op_opfamily_strategy(test->opno, INTEGER_BTREE_FAM_OID);
	/* a Datum has smaller integers extended */
	wanted = DatumGetInt64(k->constvalue);
	if (strategy == BTLessStrategyNumber)
		wanted -= wanted > 0;
	else if (strategy != BTLessEqualStrategyNumber)
		return false;
	limit->columns = window->partNumCols;
	limit->wanted = Max(wanted, 1);
	limit->counts = function == F_ROW_NUMBER ? FMS_GROUP_ROWS :
		function == F_RANK_ ? FMS_GROUP_RANKS :
		function == F_DENSE_RANK_ ? FMS_GROUP_DENSE_RANKS : FMS_GROUP_ALL;
	return wanted <= INT_MAX &&
		are_sorted(sort, 0, window->partNumCols, window->partColIdx,
				   window->partOperators, window->partCollations) &&
		(function == F_ROW_NUMBER ||
		 (window->partNumCols + window->ordNumCols == sort->numCols &&
		  are_sorted(sort, window->partNumCols, window->ordNumCols,
					 window->ordColIdx, window->ordOperators,
					 window->ordCollations)));
}

/* What of each group does the parent, which may be NULL, want? */
static FmsGroupLimit
limit_of(const Plan *parent, const Sort *sort)
{
	FmsGroupLimit limit = {.counts = FMS_GROUP_ROWS,.wanted = 1};
	bool		found = false;

	if (parent == NULL || !fms_settings_group_filter())
		return (FmsGroupLimit) {0};
	if (IsA(parent, Unique))
	{
		const Unique *unique = (const Unique *) parent;

		limit.columns = unique->numCols;
		found = are_sorted(sort, 0, unique->numCols, unique->uniqColIdx,
						   unique->uniqOperators, unique->uniqCollations);
	}
	else if (IsA(parent, Group))
	{
		const Group *group = (const Group *) parent;

		limit.columns = group->numCols;
		found = are_sorted(sort, 0, group->numCols, group->grpColIdx,
						   group->grpOperators, group->grpCollations);
	}
	else if (IsA(parent, WindowAgg))
		found = read_window((const WindowAgg *) parent, sort, &limit);
	return found ? limit : (FmsGroupLimit) {0};
}

Plan *
fms_plan_from_sort(const Sort *sort, Plan *child, const Plan *parent,
				   bool below_gather)
{
	CustomScan *node = makeNode(CustomScan);
	int			presorted = IsA(sort, IncrementalSort) ?
		((const IncrementalSort *) sort)->nPresortedCols : 0;
	List	   *ints = list_make2_int(FMS_PLAN_VERSION, presorted);
	FmsGroupLimit limit = limit_of(parent, sort);
	int			i;

	ints = lappend_int(ints, limit.counts);
	ints = lappend_int(ints, limit.columns);
	ints = lappend_int(ints, limit.wanted);
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
	spec->limit.counts = list_nth_int(ints, PRIVATE_COUNTS);
	spec->limit.columns = list_nth_int(ints, PRIVATE_GROUP_COLUMNS);
	spec->limit.wanted = list_nth_int(ints, PRIVATE_WANTED);
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
