/*-------------------------------------------------------------------------
 *
 * groups.c
 *	  Input that is in order of the first sort columns already.
 *
 * Such input (from an index, say) falls into groups of tuples that agree in
 * these columns; sorting one group after the other gives the whole order.
 * The first tuple can leave when the first group has been read, a LIMIT ends
 * the work after a few groups, and memory holds one group at a time; a group
 * that does not fit spills like any sort.
 *
 *	  a | 1 1 1 1 1 2 2 3 3 3 3 ... 3 | 4 4 4 4 4 4 ... 4 | 5 ..
 *	    | put together   ^            | one large group   |
 *	                     at_least reached: the group ends where a changes
 *
 * Sorting has a price per sort, so small groups are put together until there
 * are enough tuples; then the group ends at the first tuple that differs in
 * the presorted columns from the one that made it enough.  All are sorted by
 * all columns, so it does not matter how many groups are in it.
 *
 * Equality is that of the ordering operators' families, as for the server's
 * Incremental Sort; nulls are equal to each other.
 *
 * Memory: two tuples, in slots of the query's.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "utils/lsyscache.h"

#include "executor/groups.h"

struct FmsGroups
{
	ExprState  *equal;			/* in the presorted columns? */
	ExprContext *econtext;
	TupleTableSlot *pivot;		/* the tuple that made it enough */
	TupleTableSlot *carried;	/* first of the next group, or empty */
	uint64		at_least;
	uint64		count;			/* tuples of this group */
};

FmsGroups *
fms_groups_create(PlanState *parent, TupleDesc desc, const FmsKeySpec *spec,
				  int presorted)
{
	FmsGroups  *groups = palloc0(sizeof(FmsGroups));
	Oid		   *equal = palloc(presorted * sizeof(Oid));
	int			i;

	for (i = 0; i < presorted; i++)
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
fms_groups_drop_carried(FmsGroups *groups)
{
	ExecClearTuple(groups->carried);
}

void
fms_groups_begin(FmsGroups *groups, uint64 at_least)
{
	groups->at_least = Max(at_least, 1);
	groups->count = 0;
}

TupleTableSlot *
fms_groups_carried(FmsGroups *groups)
{
	if (TupIsNull(groups->carried))
		return NULL;
	(void) fms_groups_admit(groups, groups->carried);
	return groups->carried;
}

bool
fms_groups_admit(FmsGroups *groups, TupleTableSlot *slot)
{
	groups->count++;
	if (groups->count < groups->at_least)
		return true;
	if (groups->count == groups->at_least)
	{
		ExecCopySlot(groups->pivot, slot);
		return true;
	}
	groups->econtext->ecxt_innertuple = slot;
	groups->econtext->ecxt_outertuple = groups->pivot;
	if (ExecQualAndReset(groups->equal, groups->econtext))
		return true;
	ExecCopySlot(groups->carried, slot);
	return false;
}
