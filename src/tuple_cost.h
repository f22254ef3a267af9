/*-------------------------------------------------------------------------
 *
 * tuple_cost.h
 *	  What a tuple costs the processor, by sorts that are timed.
 *
 *-------------------------------------------------------------------------
 */
#ifndef FMS_TUPLE_COST_H
#define FMS_TUPLE_COST_H

#include "postgres.h"

#include "profile.h"

/*
 * Sorts some tuples through the page cache; takes some tenths of a second and
 * some 20 MB of temporary file, gone when it returns or on ERROR.
 */
extern void fms_tuple_cost_measure(FmsTupleCost *cost);

#endif							/* FMS_TUPLE_COST_H */
