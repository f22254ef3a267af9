/*-------------------------------------------------------------------------
 *
 * bound.h
 *	  How the bound of a LIMIT reaches the sorts below it.
 *
 *-------------------------------------------------------------------------
 */
#ifndef FMS_BOUND_H
#define FMS_BOUND_H

#include "postgres.h"

#include "executor/execdesc.h"

/* Shows every FMSort of a query that has been started its LIMIT, if any. */
extern void fms_bound_find_limits(QueryDesc *query);

/*
 * In a parallel worker: no more than so many tuples will be asked of the
 * query, 0: all.
 */
extern void fms_bound_set(QueryDesc *query, uint64 bound);

#endif							/* FMS_BOUND_H */
