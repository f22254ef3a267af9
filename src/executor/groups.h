/*-------------------------------------------------------------------------
 *
 * groups.h
 *	  Input that is in order of the first sort columns already.
 *
 *-------------------------------------------------------------------------
 */
#ifndef FMS_GROUPS_H
#define FMS_GROUPS_H

#include "postgres.h"

#include "executor/executor.h"

#include "keys/keys.h"

typedef struct FmsGroups FmsGroups;

/*
 * For input of that type, in order of the first `presorted` columns of the
 * sort.  Lives in the current context, its slots in the parent's query.
 */
extern FmsGroups *fms_groups_create(PlanState *parent, TupleDesc desc,
									const FmsKeySpec *spec, int presorted);

/* Forgets the tuple carried: it was taken, or the input starts again. */
extern void fms_groups_drop_carried(FmsGroups *groups);

/*
 * Begins the next group, which should have at least so many tuples: groups
 * that have fewer are put together.
 */
extern void fms_groups_begin(FmsGroups *groups, uint64 at_least);

/*
 * The tuple that ended the last group and so is the first of this one, or
 * NULL.  Asked for once a group.
 */
extern TupleTableSlot *fms_groups_carried(FmsGroups *groups);

/*
 * Does the input's next tuple belong to the group?  If not, the group is
 * complete, and the tuple is kept for the next one.
 */
extern bool fms_groups_admit(FmsGroups *groups, TupleTableSlot *slot);

#endif							/* FMS_GROUPS_H */
