/*-------------------------------------------------------------------------
 *
 * group_limit.c
 *	  Parents that want a part of each group of a sort's rows.
 *
 *	  Unique, Group				the first row of each group
 *	  WindowAgg, run condition	row_number(), rank() or dense_rank() <= k
 *
 * Only a parent right above the Sort counts: a node in between may look at all
 * rows.  Its groups are the rows that are equal in the first sort columns, by
 * the equality operators of the same operator families and under the same
 * collations.
 *
 * A WindowAgg reads rows beyond its run condition, but does not return them if
 * it is the top one.  It has to be that, to have no other window function,
 * which might count these rows, and to evaluate nothing volatile for them.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/stratnum.h"
#include "catalog/pg_opfamily_d.h"
#include "catalog/pg_type_d.h"
#include "optimizer/clauses.h"
#include "optimizer/optimizer.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"

#include "executor/settings.h"
#include "executor/sort_node.h"

/* Are these the columns of the Sort from column `first` on? */
static bool
are_sorted(const Sort *sort, int first, int ncolumns,
		   const AttrNumber *columns, const Oid *operators,
		   const Oid *collations)
{
	int			i;

	if (first + ncolumns > sort->numCols)
		return false;
	for (i = 0; i < ncolumns; i++)
	{
		Oid			order = sort->sortOperators[first + i];

		if (columns[i] != sort->sortColIdx[first + i] ||
			collations[i] != sort->collations[first + i] ||
			operators[i] != get_equality_op_for_ordering_op(order, NULL))
			return false;
	}
	return true;
}

static FmsGroupCount
counts_of(Oid function)
{
	switch (function)
	{
		case F_ROW_NUMBER:
			return FMS_GROUP_ROWS;
		case F_RANK_:
			return FMS_GROUP_RANKS;
		case F_DENSE_RANK_:
			return FMS_GROUP_DENSE_RANKS;
		default:
			return FMS_GROUP_ALL;
	}
}

/* Sets the function and k of `function() <= k`; returns false if it is not. */
static bool
read_run_condition(const WindowAgg *window, FmsGroupLimit *limit)
{
	const OpExpr *condition = linitial(window->runConditionOrig);
	const WindowFunc *function;
	const Const *wanted;
	int			strategy;
	int64		k;

	if (!IsA(condition, OpExpr) || list_length(condition->args) != 2)
		return false;
	function = linitial(condition->args);
	wanted = lsecond(condition->args);
	strategy = get_op_opfamily_strategy(condition->opno,
										INTEGER_BTREE_FAM_OID);
	if (!IsA(function, WindowFunc) || !IsA(wanted, Const) ||
		wanted->constisnull || (strategy != BTLessStrategyNumber &&
								strategy != BTLessEqualStrategyNumber))
		return false;
	/* the family has no other types; they are extended as in a Datum */
	k = wanted->consttype == INT8OID ? DatumGetInt64(wanted->constvalue) :
		wanted->consttype == INT4OID ? DatumGetInt32(wanted->constvalue) :
		DatumGetInt16(wanted->constvalue);
	if (strategy == BTLessStrategyNumber)
		k -= k > PG_INT64_MIN;
	limit->counts = counts_of(function->winfnoid);
	limit->wanted = Max(k, 1);
	return k <= INT_MAX;
}

static bool
find_in_window(const WindowAgg *window, const Sort *sort,
			   FmsGroupLimit *limit)
{
	Node	   *list = (Node *) window->plan.targetlist;

	limit->columns = window->partNumCols;
	limit->peer_columns = window->partNumCols + window->ordNumCols;
	if (!window->topWindow || list_length(window->runConditionOrig) != 1 ||
		!read_run_condition(window, limit) ||
		find_window_functions(list, window->winref)->numWindowFuncs != 1 ||
		window->startOffset || window->endOffset ||
		contain_volatile_functions(list) ||
		!are_sorted(sort, 0, window->partNumCols, window->partColIdx,
					window->partOperators, window->partCollations))
		return false;
	return limit->counts == FMS_GROUP_ROWS ||
		are_sorted(sort, window->partNumCols, window->ordNumCols,
				   window->ordColIdx, window->ordOperators,
				   window->ordCollations);
}

FmsGroupLimit
fms_group_limit_find(const Plan *parent, const Sort *sort)
{
	FmsGroupLimit limit = {.counts = FMS_GROUP_ROWS,.wanted = 1};
	bool		found = false;

	if (parent && IsA(parent, Unique))
	{
		const Unique *unique = (const Unique *) parent;

		limit.columns = unique->numCols;
		found = are_sorted(sort, 0, unique->numCols, unique->uniqColIdx,
						   unique->uniqOperators, unique->uniqCollations);
	}
	else if (parent && IsA(parent, Group))
	{
		const Group *group = (const Group *) parent;

		limit.columns = group->numCols;
		found = are_sorted(sort, 0, group->numCols, group->grpColIdx,
						   group->grpOperators, group->grpCollations);
	}
	else if (parent && IsA(parent, WindowAgg))
		found = find_in_window((const WindowAgg *) parent, sort, &limit);
	return found && fms_settings_group_filter() ? limit : (FmsGroupLimit) {0};
}
