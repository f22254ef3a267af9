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

/* Shows each FMSort of a started query its LIMIT, if any. */
extern void fms_bound_find_limits(QueryDesc *query);

/* In a parallel worker: the query will be asked for `tuples`; 0: all. */
extern void fms_bound_set(QueryDesc *query, uint64 tuples);

#endif							/* FMS_BOUND_H */
