/*-------------------------------------------------------------------------
 *
 * planner.h
 *	  Which Sorts become FMSort nodes.
 *
 *-------------------------------------------------------------------------
 */
#ifndef FMS_PLANNER_H
#define FMS_PLANNER_H

#include "postgres.h"

#include "nodes/plannodes.h"

/* Replaces Sorts of a finished plan, in place. */
extern void fms_planner_replace_sorts(PlannedStmt *statement);

#endif							/* FMS_PLANNER_H */
