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
 * Makes the first of two measurements some time apart their mean: what slows a
 * machine down for a while does so to the sorts that are foreseen, too.
 */
extern void fms_tuple_cost_mean(FmsTupleCost *cost, const FmsTupleCost *other);

#endif							/* FMS_TUPLE_COST_H */
