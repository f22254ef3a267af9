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

#include "options.h"
#include "profile.h"

/*
 * Sorts some tuples through the page cache and past it, which must be to be
 * had; takes about a second, a few on a slow device, and some 20 MB of
 * temporary file at a time, gone when it returns or on ERROR.
 */
extern void fms_tuple_cost_measure(FmsIoChoice io_method,
								   FmsTupleCost *cost);

/*
 * Of two measurements some time apart, keeps the one by which a sort takes
 * less time: a machine that others slow down for a while is not always slow.
 */
extern void fms_tuple_cost_lower(FmsTupleCost *cost,
								 const FmsTupleCost *other);

#endif							/* FMS_TUPLE_COST_H */
