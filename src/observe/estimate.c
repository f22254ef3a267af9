/*-------------------------------------------------------------------------
 *
 * estimate.c
 *	  How far a running sort is, and how long it still takes.
 *
 * Arithmetic on the counters of the sort, in the process that looks at it.
 *
 * Part done.  Run formation counts as 75 % of the sort.  Its progress is the
 * number of tuples read divided by the planner's estimate.  If more tuples
 * arrive, the progress approaches 75 % without reaching it, so it never falls.
 * The merge's progress is the number of blocks asked for, divided by the
 * number of all blocks.  Intermediate passes count as half of the merge.
 *
 *	  0 ------------------------------- 75 ------- 87.5 ------- 100 %
 *	      tuples in / expected             passes    blocks / all
 *
 * Time left.  The estimate assumes that the sort continues at its average
 * speed so far; in the merge, at the merge's average speed once it is known.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "observe/reports.h"

/* Part of a sort that spills that run formation has. */
#define FORMATION_SHARE 0.75

/* Part of the input that the expected tuples have. */
#define EXPECTED_SHARE	0.98

/* Part of the merge that intermediate passes have, if there are any. */
#define PASSES_SHARE	0.5

/* Part of the sort after which the merge's own speed counts. */
#define SPEED_KNOWN		0.7525

double
fms_estimate_tuples_in(const FmsCounters *counters)
{
	return (double) fms_counter(counters, FMS_COUNT_EARLIER_TUPLES) +
		fms_counter(counters, FMS_COUNT_TUPLES) +
		fms_counter(counters, FMS_COUNT_WORKERS_TUPLES);
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

/* Does the sort load and hand out groups of presorted input alternately? */
static bool
is_grouped(const FmsCounters *counters)
{
	return fms_counter(counters, FMS_COUNT_PRESORTED) == FMS_YES;
}

/* The part of the sort that is done: 0 to 1. */
static double
part_done(const FmsCounters *counters)
{
	FmsPhase	phase = fms_counter(counters, FMS_COUNT_PHASE);

	if (is_grouped(counters))
		return phase != FMS_PHASE_LOADING &&
			fms_counter(counters, FMS_COUNT_LAST_GROUP) ?
			1 : input_part(counters);
	if (phase == FMS_PHASE_LOADING)
		return FORMATION_SHARE * input_part(counters);
	if (phase == FMS_PHASE_IN_MEMORY)
		return 1;
	return FORMATION_SHARE + (1 - FORMATION_SHARE) * merge_part(counters);
}

double
fms_estimate_percent(const FmsCounters *counters)
{
	return 100 * part_done(counters);
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

double
fms_estimate_left_us(const FmsCounters *counters, double elapsed_us)
{
	bool		grouped = is_grouped(counters);
	double		part = part_done(counters);
	double		from = 0;
	double		to = 1;

	if (part == 0)
		return -1;
	if (!grouped && part < FORMATION_SHARE && !spills(counters))
		to = FORMATION_SHARE;
	else if (!grouped && part > SPEED_KNOWN)
	{
		from = FORMATION_SHARE;
		elapsed_us -= fms_counter(counters, FMS_COUNT_FORMATION_NS) / 1000.0;
	}
	return Max(0, elapsed_us) * (to - part) / (part - from);
}
