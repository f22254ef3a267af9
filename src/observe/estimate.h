/*-------------------------------------------------------------------------
 *
 * estimate.h
 *	  How far a running sort is, and how long it still takes.
 *
 *-------------------------------------------------------------------------
 */
#ifndef FMS_ESTIMATE_H
#define FMS_ESTIMATE_H

#include "postgres.h"

#include "observe/counters.h"

/* Tuples that have come in, those of earlier groups included. */
extern double fms_estimate_tuples_in(const FmsCounters *counters);

/*
 * 0 to 100.  It falls only if a merge begins again, and is 100 only after the
 * input's end.
 */
extern double fms_estimate_percent(const FmsCounters *counters);

/*
 * Microseconds until the sort, which has run for elapsed_us, hands out its
 * last tuple; at least 0.  -1: unknown, before the first tuple.
 */
extern double fms_estimate_left_us(const FmsCounters *counters,
								   double elapsed_us);

#endif							/* FMS_ESTIMATE_H */
