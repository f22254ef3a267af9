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
 * Gives a query that has not started a plan with FMSort nodes, in the current
 * context.  It shares parts of the old plan, which is not written to.  eflags:
 * the executor's.  Returns false if no Sort was replaced.
 */
extern bool fms_replace_sorts(QueryDesc *query, int eflags);

/*
 * Why a Sort at or in this node of a running query stays PostgreSQL's: a
 * phrase, or NULL if there is no such Sort.  ancestors: the plan nodes above,
 * the nearest first.
 */
extern const char *fms_replace_why_not(const PlanState *planstate,
									   const List *ancestors);

#endif							/* FMS_REPLACE_H */
