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
 * For input that is in order of the first `presorted` columns of the sort.
 * Lives in the current context, its slots in the query of `parent`.
 */
extern FmsGroups *fms_groups_create(PlanState *parent, TupleDesc desc,
									const FmsKeySpec *spec, int presorted);

/* The input starts again. */
extern void fms_groups_restart(FmsGroups *groups);

/* Begins the next group, of `at_least` tuples or more. */
extern void fms_groups_begin(FmsGroups *groups, uint64 at_least);

/* The group's next tuple; empty or NULL after its last one. */
extern TupleTableSlot *fms_groups_next(FmsGroups *groups, PlanState *input);

/* After that: true if another group follows. */
extern bool fms_groups_follow(const FmsGroups *groups);

#endif							/* FMS_GROUPS_H */
