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
 * child's tuples as they are.  custom_private has the Sort's keys as a node
 * that the server copies and sends to parallel workers.
 *
 * Unique and Group want one row of each group of equal rows.  A run condition
 * row_number(), rank() or dense_rank() <= k of the top WindowAgg wants k.
 * That node must have no other window function, which might count rows beyond,
 * and evaluate nothing volatile for them.
 *
 * Likewise a CustomScan "FMSort Merge" replaces a Merge Append: lefttree is
 * its first child, to which the target list refers, custom_plans are the
 * others, custom_private is the Merge Append without its children.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/stratnum.h"
#include "catalog/pg_opfamily_d.h"
#include "optimizer/clauses.h"
#include "optimizer/optimizer.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"

#include "base/compat.h"
#include "executor/sort_node.h"
#include "shards/shards.h"

/*
 * Of the format of custom_private and the meaning of FmsCounters: a parallel
 * worker may have loaded another library than the session that planned.
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

static const CustomScanMethods merge_methods = {
	.CustomName = FMS_MERGE_NAME,
	.CreateCustomScanState = fms_merge_create_state
};

void
fms_plan_register(void)
{
	RegisterCustomScanMethods(&plan_methods);
	RegisterCustomScanMethods(&runs_methods);
	RegisterCustomScanMethods(&merge_methods);
}

static CustomScan *
node_in_place(const Plan *plan, Plan *child, const CustomScanMethods *methods)
{
	CustomScan *node = makeNode(CustomScan);

	node->scan.plan = *plan;
	node->scan.plan.type = T_CustomScan;
	node->scan.plan.lefttree = child;
	node->methods = methods;
	return node;
}

/* A copy of the Sort with its keys alone. */
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

/* Where different texts are equal, pattern operators and citext do not. */
static bool
compares_like_equality(Oid order, Oid collation)
{
	Oid			family;
	Oid			type;
	bool		descending;

	return !OidIsValid(collation) ||
		get_collation_isdeterministic(collation) ||
		(fms_ordering_op(order, &family, &type, &descending) &&
		 (family == TEXT_BTREE_FAM_OID || family == BPCHAR_BTREE_FAM_OID));
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

		if (!compares_like_equality(order, collations[i]) ||
			columns[i] != sort->sortColIdx[first + i] ||
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
		contain_volatile_functions(list) || contain_subplans(list) ||
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
	return wanted <= PG_INT32_MAX &&
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

	if (parent == NULL || !fms_settings_group_filter)
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
	CustomScan *node = node_in_place(&sort->plan, child, &plan_methods);
	FmsGroupLimit limit = limit_of(parent, sort);

	node->scan.plan.parallel_aware = below_gather;
	/* like an Incremental Sort, a node of presorted input has only a group */
	node->flags = IsA(sort, IncrementalSort) ? 0 :
		CUSTOMPATH_SUPPORT_BACKWARD_SCAN | CUSTOMPATH_SUPPORT_MARK_RESTORE;
	node->custom_private =
		list_make2(list_make4_int(FMS_PLAN_VERSION, limit.counts,
								  limit.columns, limit.wanted),
				   keys_of(sort));
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

/* Does the list return all columns of the child in order? */
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
						   const Plan *parent, int *next_node_id)
{
	const Sort *sort = (const Sort *) merge->plan.lefttree;
	bool		passes_through = is_pass_through(merge->plan.targetlist,
												 sort->plan.targetlist);
	Sort		merging = *sort;
	Plan	   *runs;
	Plan	   *node;
	Result	   *projection;

	/* what the parent says of columns is about those of the Gather Merge */
	if (!passes_through)
		parent = NULL;
	runs = fms_plan_from_sort(sort, child, parent, true);

	((CustomScan *) runs)->methods = &runs_methods;
	((CustomScan *) runs)->flags = 0;
	runs->plan_rows = 0;
	runs->startup_cost = runs->total_cost = sort->plan.startup_cost;

	merging.plan = merge->plan;
	merging.plan.plan_node_id = (*next_node_id)++;
	if (!passes_through)
	{
		merging.plan.targetlist = sort->plan.targetlist;
		merging.plan.initPlan = NIL;
	}
	node = fms_plan_from_sort(&merging, gather_from(merge, runs), parent,
							  false);
	if (passes_through)
		return node;
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
fms_plan_gathers_runs(const Plan *plan)
{
	return IsA(plan, Gather) && has_methods(outerPlan(plan), &runs_methods);
}

void
fms_plan_report_version(void)
{
	ereport(ERROR,
			(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
			 errmsg("this plan was made by another version of fmsort"),
			 errhint("Connect again: this session loaded the library before it was replaced.")));
}

int
fms_plan_read(const CustomScan *plan, FmsKeySpec *spec, uint64 *bound)
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
	spec->limit.counts = lsecond_int(version);
	spec->limit.columns = lthird_int(version);
	spec->limit.wanted = lfourth_int(version);
	spec->tuples = plan->scan.plan.plan_rows;
	*bound = 0;
	/* all rows are one group: the limit is a bound */
	if (spec->limit.counts == FMS_GROUP_ROWS && spec->limit.columns == 0)
	{
		spec->limit.counts = FMS_GROUP_ALL;
		*bound = spec->limit.wanted;
	}
	return IsA(keys, IncrementalSort) ?
		((const IncrementalSort *) keys)->nPresortedCols : 0;
}
