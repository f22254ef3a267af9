/*-------------------------------------------------------------------------
 *
 * replace.h
 *	  Which Sorts become FMSort nodes.
 *
 *-------------------------------------------------------------------------
 */
#ifndef FMS_REPLACE_H
#define FMS_REPLACE_H

#include "postgres.h"

#include "executor/execdesc.h"
#include "nodes/execnodes.h"

/*
 * Gives a query that has not been started a plan with FMSort nodes.  The old
 * plan is not written to; the new one shares with it whatever is the same,
 * and the rest lies in the current context.  eflags: the executor's.
 */
extern void fms_replace_sorts(QueryDesc *query, int eflags);

/*
 * Why a Sort at or in this node of a running query stays PostgreSQL's.
 * ancestors: the plan nodes above it, the nearest first.  NULL if there is no
 * such Sort; else a phrase in the current context.
 */
extern const char *fms_replace_why_not(const PlanState *planstate,
									   const List *ancestors);

#endif							/* FMS_REPLACE_H */
