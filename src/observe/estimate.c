/*-------------------------------------------------------------------------
 *
 * estimate.c
 *	  How far a running sort is, and how long it still takes.
 *
 * Arithmetic on the counters of the sort, in the process that looks at it.
 *
 * Percent.  Run formation has three quarters; it goes by tuples, of those
 * that the planner expects.  If more come, the percentage approaches the end
 * of run formation without reaching it, so it never falls.  The merge goes by
 * blocks, whose number is exact: the block read order has them all.
 * Intermediate passes have the first half of the merge.
 *
 *	  0 ------------------------------- 75 ------- 87.5 ------- 100
 *	      tuples in / expected             passes    blocks / all
 *
 * Time left.  Each phase goes on at its own speed so far.  The merge that has
 * not begun, or hardly, takes as long as its share of the percentage says.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "observe/estimate.h"

/* Part of the percentage that run formation has. */
#define FORMATION_SHARE 0.75

/* Part of run formation's share that the expected tuples have. */
#define EXPECTED_SHARE	0.95

/* Part of the merge that intermediate passes have, if there are any. */
#define PASSES_SHARE	0.5

/* Part of the merge after which its own speed counts. */
#define SPEED_KNOWN		0.01

double
fms_estimate_tuples_in(const FmsCounters *counters)
{
	return (double) fms_counter(counters, FMS_COUNT_EARLIER_TUPLES) +
		fms_counter(counters, FMS_COUNT_TUPLES);
}

/* The part of the input that has come in: 0 to 1, and less than 1. */
static double
input_part(const FmsCounters *counters)
{
	double		expected = fms_counter(counters, FMS_COUNT_TUPLES_EXPECTED);
	double		part = fms_estimate_tuples_in(counters) / Max(expected, 1);

	return part <= 1 ? EXPECTED_SHARE * part :
		1 - (1 - EXPECTED_SHARE) / part;
}

/* The part of all merges that is done: 0 to 1. */
static double
merge_part(const FmsCounters *counters)
{
	double		blocks = fms_counter(counters, FMS_COUNT_MERGE_BLOCKS);
	double		too_many = fms_counter(counters, FMS_COUNT_RUNS_TOO_MANY);
	double		here = blocks == 0 ? 0 :
		Min(1, fms_counter(counters, FMS_COUNT_MERGE_BLOCKS_DONE) / blocks);
	double		gone;

	if (too_many == 0)
		return here;
	if (fms_counter(counters, FMS_COUNT_PHASE) != FMS_PHASE_PASSES)
		return PASSES_SHARE + (1 - PASSES_SHARE) * here;
	/* merging n runs into one leaves n - 1 fewer */
	gone = (double) fms_counter(counters, FMS_COUNT_RUNS_AT_FIRST) -
		fms_counter(counters, FMS_COUNT_RUNS_LEFT) +
		here * Max(0, fms_counter(counters, FMS_COUNT_MERGE_RUNS) - 1.0);
	return PASSES_SHARE * Min(1, gone / too_many);
}

/* The same for times: an input that has not ended has at least 1/20 left. */
static double
input_time_part(const FmsCounters *counters)
{
	double		expected = fms_counter(counters, FMS_COUNT_TUPLES_EXPECTED);

	return Min(fms_estimate_tuples_in(counters) / Max(expected, 1),
			   EXPECTED_SHARE);
}

/* Does the sort load and hand out groups of presorted input alternately? */
static bool
is_grouped(const FmsCounters *counters)
{
	return fms_counter(counters, FMS_COUNT_PRESORTED) == FMS_YES;
}

double
fms_estimate_percent(const FmsCounters *counters)
{
	bool		loading = fms_counter(counters, FMS_COUNT_PHASE) ==
		FMS_PHASE_LOADING;

	if (is_grouped(counters))
		return !loading && fms_counter(counters, FMS_COUNT_LAST_GROUP) ?
			100 : 100 * input_part(counters);
	if (loading)
		return 100 * FORMATION_SHARE * input_part(counters);
	if (fms_counter(counters, FMS_COUNT_PHASE) == FMS_PHASE_IN_MEMORY)
		return 100;
	return 100 * (FORMATION_SHARE +
				  (1 - FORMATION_SHARE) * merge_part(counters));
}

/* Does the sort write runs, or will it? */
static bool
spills(const FmsCounters *counters)
{
	return fms_counter(counters, FMS_COUNT_RUNS) > 0 ||
		(fms_counter(counters, FMS_COUNT_BOUND) == 0 &&
		 fms_counter(counters, FMS_COUNT_EXPECTED_BYTES) >
		 fms_counter(counters, FMS_COUNT_WORK_MEM_BYTES));
}

/* What a merge takes by its share, after formation_us. */
static double
merge_us_by_share(double formation_us)
{
	return formation_us * (1 - FORMATION_SHARE) / FORMATION_SHARE;
}

double
fms_estimate_left_us(const FmsCounters *counters, double elapsed_us)
{
	double		part = input_time_part(counters);
	double		formation_us;

	switch ((FmsPhase) fms_counter(counters, FMS_COUNT_PHASE))
	{
		case FMS_PHASE_LOADING:
			if (part == 0)
				return -1;
			formation_us = elapsed_us / part;
			if (!is_grouped(counters) && spills(counters))
				return formation_us - elapsed_us +
					merge_us_by_share(formation_us);
			return formation_us - elapsed_us;
		case FMS_PHASE_IN_MEMORY:
			if (!is_grouped(counters) ||
				fms_counter(counters, FMS_COUNT_LAST_GROUP))
				return 0;
			return elapsed_us / part - elapsed_us;
		case FMS_PHASE_PASSES:
		case FMS_PHASE_MERGING:
			break;
	}
	formation_us = fms_counter(counters, FMS_COUNT_FORMATION_NS) / 1000.0;
	part = merge_part(counters);
	if (part < SPEED_KNOWN)
		return merge_us_by_share(formation_us) * (1 - part);
	return Max(0, elapsed_us - formation_us) * (1 - part) / part;
}
