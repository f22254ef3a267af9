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
 * child's tuples as they are: its target list is the Sort's, which refers to
 * the child's columns.  custom_private has a copy of the Sort with its keys
 * alone, as a node that the server copies and sends to parallel workers.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "executor/sort_node.h"

/*
 * Number of the format of custom_private, and of the meaning of FmsCounters: a
 * parallel worker may have loaded another version of the library than the
 * session that planned.
 */
#ifndef FMS_PLAN_VERSION
#define FMS_PLAN_VERSION	4
#endif

static const CustomScanMethods plan_methods = {
	.CustomName = FMS_NODE_NAME,
	.CreateCustomScanState = fms_node_create_state
};

void
fms_plan_register(void)
{
	RegisterCustomScanMethods(&plan_methods);
}

/* A copy of the Sort that has only its keys. */
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

Plan *
fms_plan_from_sort(const Sort *sort, Plan *child, bool below_gather)
{
	CustomScan *node = makeNode(CustomScan);

	node->scan.plan = sort->plan;
	node->scan.plan.type = T_CustomScan;
	node->scan.plan.lefttree = child;
	node->scan.plan.parallel_aware = below_gather;
	/* like an Incremental Sort, a node of presorted input has only a group */
	node->flags = IsA(sort, IncrementalSort) ? 0 :
		CUSTOMPATH_SUPPORT_BACKWARD_SCAN | CUSTOMPATH_SUPPORT_MARK_RESTORE;
	node->custom_private = list_make2(list_make1_int(FMS_PLAN_VERSION),
									  keys_of(sort));
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
	const List *version = linitial(plan->custom_private);
	const Sort *keys;

	if (!IsA(version, IntList) || linitial_int(version) != FMS_PLAN_VERSION)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("this plan was made by another version of fmsort"),
				 errhint("Connect again: this session has loaded the library before it was replaced.")));

	keys = lsecond(plan->custom_private);
	spec->ncolumns = keys->numCols;
	spec->attnos = keys->sortColIdx;
	spec->operators = keys->sortOperators;
	spec->collations = keys->collations;
	spec->nulls_first = keys->nullsFirst;
	spec->tuples = plan->scan.plan.plan_rows;
	return IsA(keys, IncrementalSort) ?
		((const IncrementalSort *) keys)->nPresortedCols : 0;
}
