/*-------------------------------------------------------------------------
 *
 * async.c
 *	  Which Merge Appends become FMSort Merge nodes.
 *
 * Those with a foreign scan below that PostgreSQL's Append would execute
 * asynchronously: its wrapper can, the option async_capable of the table or
 * its server is on, and so is enable_async_append.
 *
 * A Merge Append stays if it prunes partitions when it runs, if the statement
 * locks rows, as asking ahead would lock more, and below a cursor that can go
 * back, where nodes do not learn that a FETCH has ended.
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
#include "shards/shards.h"

/* async_capable: the table's option goes before the server's. */
static bool
option_is_on(const ForeignTable *table)
{
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
	int			relation = -1;

	if (!IsA(plan, ForeignScan) || scan->operation != CMD_SELECT ||
		!GetFdwRoutineByServerId(scan->fs_server)->ForeignAsyncRequest)
		return false;
	while ((relation = bms_next_member(scan->fs_relids, relation)) >= 0)
	{
		const RangeTblEntry *entry = rt_fetch(relation, statement->rtable);

		if (entry->rtekind == RTE_RELATION &&
			entry->relkind == RELKIND_FOREIGN_TABLE &&
			option_is_on(GetForeignTable(entry->relid)))
			return true;
	}
	return false;
}

bool
fms_async_mark(List *children, const MergeAppend *merge,
			   const PlannedStmt *statement, int eflags)
{
	bool		found = false;
	ListCell   *cell;

	/* parallel workers have no connections */
	if (!enable_async_append || merge->plan.parallel_safe ||
		FMS_PRUNES(merge) || statement->rowMarks != NIL ||
		(eflags & EXEC_FLAG_BACKWARD))
		return false;
	foreach(cell, children)
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
	return found;
}
