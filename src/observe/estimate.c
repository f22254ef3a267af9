/*-------------------------------------------------------------------------
 *
 * estimate.c
 *	  How far a running sort is, and how long it still takes.
 *
 * Arithmetic on what the sort has counted so far, without state.  Whoever
 * looks on does it, in a process of its own.
 *
 * Percent is for watching, so it must never go back, whatever the planner
 * thought.  Run formation is three quarters.  It goes by tuples, of as many as
 * are expected; it comes close to its end, but not there, while more come than
 * expected.  In the merge it goes by blocks asked for, whose number is known
 * exactly: they are the block read order.  Intermediate passes have the first
 * half of the merge.
 *
 *	  0 ------------------------------- 75 ------- 87.5 ------- 100
 *	      tuples in / expected             passes    blocks / all
 *
 * The time left is a guess that may go either way, so it takes apart what
 * grows with what.  Of run formation:
 *
 *	  until the first tuple		once (an input that sorts, or hashes)
 *	  taking tuples in			by tuples in; the first filling of memory is
 *								slower than the others
 *	  sorting, writing runs		by tuples in runs: what lies in memory has it
 *								still before it, which with a large work_mem
 *								is much
 *
 * Of the merge, until a tenth of it has been seen, there is nothing but
 * comparison: what run formation took without its input is the sort's own
 * work on this machine with these keys.  Reading a tuple again and handing it
 * out is assumed to be a constant part of that, each level of the tree of
 * losers another, and each pass.  That leaves out what the parent does with a
 * tuple, which may be many times as much (sending it) or nothing (counting
 * it): that shows when the merge has begun.
 *
 * Why not by costs of the plan: they do not know what a client does, nor
 * CREATE TABLE AS, and are in no unit of time.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <math.h>

#include "observe/estimate.h"

/* Part of the percentage that run formation has. */
#define FORMATION_SHARE 0.75

/* Of run formation's part, what the expected tuples have. */
#define EXPECTED_SHARE	0.95

/* Of the merge, after which its own speed alone counts. */
#define SPEED_KNOWN		0.1

/* Before the first run: runs take so much of what taking tuples in took. */
#define RUNS_BY_TAKING	0.5

/* Filling memory again takes so much of filling it first. */
#define REFILL_BY_FILL	0.5

/* Memory filled again to that part, after which that speed alone counts. */
#define REFILL_KNOWN	0.125

/* Of run formation's own time: the last merge, and each level of its tree. */
#define MERGE_BY_FORMATION 0.3
#define LEVEL_BY_FORMATION 0.06

/* A pass of all tuples before it. */
#define PASS_BY_FORMATION 0.6

double
fms_estimate_tuples_in(const FmsWatched *sort)
{
	return (double) sort->earlier + sort->counters.tuples;
}

/* Of the input: 0 to 1, but 1 only when it has ended. */
static double
input_part(const FmsWatched *sort)
{
	double		part = fms_estimate_tuples_in(sort) / Max(sort->expected, 1);

	return part <= 1 ? EXPECTED_SHARE * part :
		1 - (1 - EXPECTED_SHARE) / part;
}

/*
 * How many times the tuples go through a merge before the last one, on
 * average.  As few are merged as will do: with a few runs too many, these and
 * one merge's worth of others.  fan_in 0: not known yet.
 */
static double
least_passes(double runs, double fan_in)
{
	if (runs <= fan_in || fan_in < 2)
		return 0;
	if (runs >= fan_in * fan_in)
		return log(runs) / log(fan_in) - 1;
	return (runs - fan_in) / (fan_in - 1) * fan_in / runs;
}

/* The same of a sort, whose result may be written as well. */
static double
earlier_passes(const FmsCounters *counters, double runs)
{
	return least_passes(runs, counters->runs_at_last) +
		(counters->options.materialize ? 1 : 0);
}

/* Of merging: 0 to 1, if passes before the last have such a part of it. */
static double
merge_part(const FmsCounters *counters, double passes_share)
{
	double		here = counters->merge_blocks == 0 ? 0 :
		Min(1, (double) counters->merge_blocks_done /
			counters->merge_blocks);
	int			todo = (int) counters->runs_at_first -
		(counters->options.materialize ? 1 : (int) counters->runs_at_last);
	double		done;

	if (todo <= 0)
		return here;
	if (counters->phase != FMS_PHASE_PASSES)
		return passes_share + (1 - passes_share) * here;
	/* merging n runs into one leaves n - 1 fewer */
	done = ((int) counters->runs_at_first - (int) counters->runs_left) +
		here * ((int) counters->merge_runs - 1);
	return passes_share * Min(1, done / todo);
}

double
fms_estimate_percent(const FmsWatched *sort)
{
	const FmsCounters *counters = &sort->counters;
	bool		loading = counters->phase == FMS_PHASE_LOADING;

	/* groups are loaded and handed out by turns */
	if (sort->grouped)
		return sort->last_group && !loading ? 100 : 100 * input_part(sort);
	if (loading)
		return 100 * FORMATION_SHARE * input_part(sort);
	if (counters->phase == FMS_PHASE_IN_MEMORY)
		return 100;
	return 100 * (FORMATION_SHARE +
				  (1 - FORMATION_SHARE) * merge_part(counters, 0.5));
}

/* ---- time ---- */

/* Does, or will, the sort write runs? */
static bool
spills(const FmsCounters *counters)
{
	return counters->runs > 0 || counters->run_began_us > 0 ||
		(counters->options.bound == 0 &&
		 counters->options.expected_bytes > counters->options.memory_bytes);
}

/* Runs there will be; the first ones are less than memory is full of. */
static double
all_runs(const FmsCounters *counters, double all)
{
	if (counters->full_tuples == 0)
		return counters->options.expected_bytes /
			counters->options.memory_bytes;
	return counters->runs + Max(0, all - counters->runs_tuples) /
		counters->full_tuples;
}

/* Tuples there will be: always a little more. */
static double
all_tuples(const FmsWatched *sort)
{
	return Max(sort->expected,
			   fms_estimate_tuples_in(sort) * (2 - EXPECTED_SHARE));
}

/* What an external sort will spend, in microseconds. */
typedef struct FmsForecast
{
	double		formation_us;
	double		own_us;			/* of that, without the input */
	double		runs;
} FmsForecast;

/*
 * Taking all tuples in, of which some are, and which went on for taking_us, of
 * that input_us for the input.  Filling memory for the first time is slower:
 * the kernel has to find it.
 */
static double
all_taking_us(const FmsWatched *sort, double all, double taking_us,
			  double input_us)
{
	const FmsCounters *counters = &sort->counters;
	double		tuples = fms_estimate_tuples_in(sort);
	double		own_us = Max(0, taking_us - input_us);
	double		full = counters->full_tuples;
	double		full_us = counters->full_us - counters->first_us;
	double		later = tuples - full;
	double		all_us = taking_us * all / tuples;
	double		known;

	if (!spills(counters))
		return all_us;
	if (full == 0)
		full = Min(all, Max(tuples, all * counters->options.memory_bytes /
							counters->options.expected_bytes));
	all_us -= own_us / tuples * (all - full) * (1 - REFILL_BY_FILL);
	if (counters->full_tuples == 0 || later <= 0)
		return all_us;
	known = Min(1, later / (full * REFILL_KNOWN));
	return (1 - known) * all_us +
		known * (full_us + Max(0, taking_us - full_us) / later *
				 (all - full));
}

/* While tuples come in, at least one of which is there. */
static void
foresee_formation(const FmsWatched *sort, double elapsed_us,
				  FmsForecast *forecast)
{
	const FmsCounters *counters = &sort->counters;
	double		all = all_tuples(sort);
	double		until_us = counters->run_began_us > 0 ?
		counters->run_began_us : elapsed_us;
	double		taking_us = Max(0, until_us - counters->first_us -
								counters->runs_us);
	double		input_us = Min(taking_us, Max(0, counters->input_us -
											  counters->first_us));
	double		own_us;
	double		runs_us = 0;

	taking_us = all_taking_us(sort, all, taking_us, input_us);
	input_us *= all / fms_estimate_tuples_in(sort);
	own_us = Max(0, taking_us - input_us);
	if (counters->runs_tuples > 0)
		runs_us = counters->runs_us * all / counters->runs_tuples;
	else if (spills(counters))
		runs_us = RUNS_BY_TAKING * own_us;
	forecast->runs = spills(counters) ? all_runs(counters, all) : 0;
	forecast->own_us = own_us + runs_us;
	forecast->formation_us = Max(elapsed_us, counters->first_us + taking_us +
								 runs_us);
}

/* When run formation is over. */
static void
recall_formation(const FmsCounters *counters, FmsForecast *forecast)
{
	forecast->runs = Max(counters->runs, counters->runs_at_first);
	forecast->formation_us = counters->formation_us;
	forecast->own_us = Max(0, counters->formation_us - counters->input_us);
}

/* What all merges take, under a parent that takes no time. */
static double
merge_us(const FmsForecast *forecast, const FmsCounters *counters)
{
	return forecast->own_us *
		(MERGE_BY_FORMATION + LEVEL_BY_FORMATION * log2(1 + forecast->runs) +
		 PASS_BY_FORMATION * earlier_passes(counters, forecast->runs));
}

static double
loading_left_us(const FmsWatched *sort, double elapsed_us)
{
	FmsForecast forecast;
	double		merging_us = 0;

	if (fms_estimate_tuples_in(sort) == 0)
		return -1;
	foresee_formation(sort, elapsed_us, &forecast);
	if (spills(&sort->counters))
		merging_us = merge_us(&forecast, &sort->counters);
	return forecast.formation_us + merging_us - elapsed_us;
}

static double
merging_left_us(const FmsWatched *sort, double elapsed_us)
{
	const FmsCounters *counters = &sort->counters;
	double		passed_us = Max(0, elapsed_us - counters->formation_us);
	FmsForecast forecast;
	double		all_us;
	double		passes;
	double		part;

	recall_formation(counters, &forecast);
	all_us = merge_us(&forecast, counters);
	passes = earlier_passes(counters, forecast.runs);
	part = merge_part(counters, passes / (passes + 1));
	if (part > 0)
	{
		double		known = Min(1, part / SPEED_KNOWN);

		all_us = (1 - known) * all_us + known * passed_us / part;
	}
	return Max(0, all_us - passed_us);
}

/* Loading and handing out go on together. */
static double
groups_left_us(const FmsWatched *sort, double elapsed_us)
{
	double		tuples = fms_estimate_tuples_in(sort);

	if (tuples == 0)
		return -1;
	return elapsed_us * all_tuples(sort) / tuples - elapsed_us;
}

double
fms_estimate_left_us(const FmsWatched *sort, double elapsed_us)
{
	if (sort->grouped)
		return groups_left_us(sort, elapsed_us);
	switch (sort->counters.phase)
	{
		case FMS_PHASE_LOADING:
			return loading_left_us(sort, elapsed_us);
		case FMS_PHASE_IN_MEMORY:
			return 0;
		case FMS_PHASE_PASSES:
		case FMS_PHASE_MERGING:
			break;
	}
	return merging_left_us(sort, elapsed_us);
}
