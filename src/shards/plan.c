/*-------------------------------------------------------------------------
 *
 * plan.c
 *	  Which Merge Appends become FMSort Merge nodes.
 *
 * Those with a child that is a foreign scan, if its wrapper can execute it
 * asynchronously and its user lets it: the option async_capable of the table
 * or its server is on, and so is enable_async_append.  These are the rules of
 * PostgreSQL's asynchronous Append.
 *
 * A Merge Append stays if it prunes partitions when it runs, or if the
 * statement locks rows: asking for rows ahead would lock more of them.  It
 * also stays below a cursor that can go back: there, the server does not tell
 * nodes that a FETCH has ended (shutdown_node() of merge.c).
 *
 * The first child is the node's lefttree, as the target list refers to it; the
 * others are custom_plans.  custom_private is the Merge Append itself, without
 * its children.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "catalog/pg_class.h"
#include "commands/defrem.h"
#include "executor/executor.h"
#include "foreign/fdwapi.h"
#include "foreign/foreign.h"
#include "optimizer/cost.h"
#include "parser/parsetree.h"

#include "base/compat.h"
#include "base/custom_scan.h"
#include "shards/shards.h"

static const CustomScanMethods plan_methods = {
	.CustomName = FMS_SHARDS_NAME,
	.CreateCustomScanState = fms_shards_create_state
};

void
fms_shards_register(void)
{
	RegisterCustomScanMethods(&plan_methods);
}

/* The option async_capable: the table's goes before the server's. */
static bool
option_is_on(Oid relation)
{
	ForeignTable *table = GetForeignTable(relation);
	ForeignServer *server = GetForeignServer(table->serverid);
	List	   *options = list_concat_copy(table->options, server->options);
	ListCell   *cell;

	foreach(cell, options)
	{
		DefElem    *option = lfirst(cell);

		if (strcmp(option->defname, "async_capable") == 0)
			return defGetBoolean(option);
	}
	return false;
}

/* Can it be asynchronous?  A join can if one of its tables can. */
static bool
can_be_async(const Plan *plan, const PlannedStmt *statement)
{
	const ForeignScan *scan = (const ForeignScan *) plan;
	FdwRoutine *routine;
	int			relation = -1;

	if (!IsA(plan, ForeignScan) || scan->operation != CMD_SELECT)
		return false;
	routine = GetFdwRoutineByServerId(scan->fs_server);
	if (routine->ForeignAsyncRequest == NULL ||
		routine->ForeignAsyncConfigureWait == NULL ||
		routine->ForeignAsyncNotify == NULL)
		return false;
	while ((relation = bms_next_member(scan->fs_relids, relation)) >= 0)
	{
		const RangeTblEntry *entry = rt_fetch(relation, statement->rtable);

		if (entry->rtekind == RTE_RELATION &&
			entry->relkind == RELKIND_FOREIGN_TABLE &&
			option_is_on(entry->relid))
			return true;
	}
	return false;
}

/* The children, with copies of those that can be asynchronous; or NIL. */
static List *
async_children(const List *children, const PlannedStmt *statement)
{
	List	   *result = list_copy(children);
	bool		found = false;
	ListCell   *cell;

	foreach(cell, result)
	{
		ForeignScan *copy;

		if (!can_be_async(lfirst(cell), statement))
			continue;
		copy = palloc(sizeof(ForeignScan));
		memcpy(copy, lfirst(cell), sizeof(ForeignScan));
		copy->scan.plan.async_capable = true;
		lfirst(cell) = copy;
		found = true;
	}
	return found ? result : NIL;
}

Plan *
fms_shards_plan(const MergeAppend *merge, List *children,
				const PlannedStmt *statement, int eflags)
{
	MergeAppend *bare;
	CustomScan *node;

	/* a parallel worker has no connections */
	if (!enable_async_append || merge->plan.parallel_safe ||
		fms_merge_append_prunes(merge) || statement->rowMarks != NIL ||
		(eflags & EXEC_FLAG_BACKWARD))
		return NULL;
	children = async_children(children, statement);
	if (children == NIL)
		return NULL;

	node = fms_custom_scan(&merge->plan, linitial(children), &plan_methods);
	node->custom_plans = list_copy_tail(children, 1);
	bare = makeNode(MergeAppend);
	*bare = *merge;
	bare->mergeplans = NIL;
	node->custom_private = list_make1(bare);
	return &node->scan.plan;
}

bool
fms_shards_is_ours(const Plan *plan)
{
	return IsA(plan, CustomScan) &&
		((const CustomScan *) plan)->methods == &plan_methods;
}

const MergeAppend *
fms_shards_merge_append(const CustomScan *node)
{
	return linitial_node(MergeAppend, node->custom_private);
}
