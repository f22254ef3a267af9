/*-------------------------------------------------------------------------
 *
 * groups.c
 *	  Input that is in order of the first sort columns already.
 *
 * Tuples that are equal in these columns form a group.  Sorting one group
 * after the other gives the whole order: the first tuple can leave after the
 * first group, a LIMIT ends the work early, and memory holds one group.
 *
 *	  a | 1 1 1 1 1 2 2 3 3 3 3 ... 3 | 4 4 4 4 4 4 ... 4 | 5 ..
 *	    | put together   ^            | one large group   |
 *	                     at_least: the group ends where a changes
 *
 * Each sort has a fixed cost, so small groups are put together until there are
 * enough tuples.  Equality is that of the ordering operators' families, as in
 * the server's Incremental Sort; nulls are equal to each other.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "executor/executor.h"
#include "utils/lsyscache.h"

#include "executor/sort_node.h"

struct FmsGroups
{
	ExprState  *equal;			/* in the presorted columns */
	ExprContext *econtext;
	TupleTableSlot *pivot;		/* tuple number at_least of the group */
	TupleTableSlot *carried;	/* first tuple of the next group */
	bool		carries;		/* carried holds a tuple */
	uint64		missing;		/* tuples until the pivot, itself included */
};

FmsGroups *
fms_groups_create(PlanState *parent, TupleDesc desc, const FmsKeySpec *spec,
				  int presorted)
{
	FmsGroups  *groups = palloc0(sizeof(FmsGroups));
	Oid		   *equal = palloc(presorted * sizeof(Oid));

	for (int i = 0; i < presorted; i++)
	{
		equal[i] = get_equality_op_for_ordering_op(spec->operators[i], NULL);
		if (!OidIsValid(equal[i]))
			elog(ERROR, "missing equality operator for ordering operator %u",
				 spec->operators[i]);
	}
	groups->equal = execTuplesMatchPrepare(desc, presorted, spec->attnos,
										   equal, spec->collations, parent);
	groups->econtext = CreateExprContext(parent->state);
	groups->pivot = ExecInitExtraTupleSlot(parent->state, desc,
										   &TTSOpsMinimalTuple);
	groups->carried = ExecInitExtraTupleSlot(parent->state, desc,
											 &TTSOpsMinimalTuple);
	return groups;
}

void
fms_groups_restart(FmsGroups *groups)
{
	groups->carries = false;
}

void
fms_groups_begin(FmsGroups *groups, uint64 at_least)
{
	groups->missing = Max(at_least, 1);
}

TupleTableSlot *
fms_groups_next(FmsGroups *groups, PlanState *input)
{
	TupleTableSlot *slot = groups->carries ? groups->carried :
		ExecProcNode(input);

	groups->carries = false;
	if (TupIsNull(slot))
		return slot;
	if (groups->missing > 0)
	{
		if (--groups->missing == 0)
			ExecCopySlot(groups->pivot, slot);
		return slot;
	}
	groups->econtext->ecxt_innertuple = slot;
	groups->econtext->ecxt_outertuple = groups->pivot;
	if (ExecQualAndReset(groups->equal, groups->econtext))
		return slot;
	ExecCopySlot(groups->carried, slot);
	groups->carries = true;
	return NULL;
}

bool
fms_groups_follow(const FmsGroups *groups)
{
	return groups->carries;
}
