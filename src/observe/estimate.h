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

#include "base/counters.h"

/* A running sort, and what its counters do not know. */
typedef struct FmsWatched
{
	bool		grouped;		/* the input comes in groups */
	bool		last_group;		/* of them, the last one is loaded */
	double		expected;		/* tuples, as the planner guesses */
	uint64		earlier;		/* tuples in groups before this one */
	FmsCounters counters;		/* its `changes` guards all of this */
} FmsWatched;

/* Tuples that have come in. */
extern double fms_estimate_tuples_in(const FmsWatched *sort);

/*
 * 0 to 100; of one sort, it never falls but when a merge is begun again.
 * 100 only when the input has ended.
 */
extern double fms_estimate_percent(const FmsWatched *sort);

/*
 * Microseconds from now, when it has run for elapsed_us, until it hands out
 * its last tuple; never below 0.  -1: nobody knows yet.
 */
extern double fms_estimate_left_us(const FmsWatched *sort, double elapsed_us);

#endif							/* FMS_ESTIMATE_H */
