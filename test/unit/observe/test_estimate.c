/* links: observe/estimate */
/*
 * Sorts that go on evenly, and what is said of them meanwhile.
 *
 * Seen to fail with: the merge going on not counted among the passes; no
 * merge before the first run; the merge's own speed not looked at; a
 * percentage that goes on beyond what was expected; the last group not 100.
 */
#include "postgres.h"

#include <math.h>

#include "observe/reports.h"
#include "shim.h"

#define TUPLES		1000000
#define RUNS		40

static FmsCounters sort;

static void
set(FmsCounter counter, double value)
{
	fms_count_set(&sort, counter, (uint64) value);
}

/* Run formation of a sort that spills, with so many tuples in. */
static void
load(double tuples)
{
	memset(&sort, 0, sizeof(sort));
	set(FMS_COUNT_PHASE, FMS_PHASE_LOADING);
	set(FMS_COUNT_TUPLES_EXPECTED, TUPLES);
	set(FMS_COUNT_EXPECTED_BYTES, TUPLES * 100.0);
	set(FMS_COUNT_WORK_MEM_BYTES, TUPLES * 100.0 / RUNS);
	set(FMS_COUNT_TUPLES, tuples);
}

/* Its last merge, after 3 s of run formation. */
static void
merge(double part)
{
	load(TUPLES);
	set(FMS_COUNT_PHASE, FMS_PHASE_MERGING);
	set(FMS_COUNT_RUNS, RUNS);
	set(FMS_COUNT_RUNS_AT_FIRST, RUNS);
	set(FMS_COUNT_FORMATION_NS, 3e9);
	set(FMS_COUNT_MERGE_BLOCKS, 1000);
	set(FMS_COUNT_MERGE_BLOCKS_DONE, 1000 * part);
}

static bool
is_about(double value, double expected)
{
	return fabs(value - expected) <= 0.06 * expected;
}

static void
check_time_left(void)
{
	load(0);
	shim_ok(fms_estimate_left_us(&sort, 5) == -1,
			"without a tuple nobody knows");
	load(TUPLES / 2);
	shim_ok(is_about(fms_estimate_left_us(&sort, 1.5e6), 2.5e6),
			"half of the input: the other half, and a merge of a third");
	set(FMS_COUNT_WORK_MEM_BYTES, TUPLES * 200.0);
	shim_ok(is_about(fms_estimate_left_us(&sort, 1.5e6), 1.5e6),
			"in memory: no merge");
	set(FMS_COUNT_PHASE, FMS_PHASE_IN_MEMORY);
	shim_ok(fms_estimate_left_us(&sort, 3e6) == 0 &&
			fms_estimate_percent(&sort) == 100, "... and done when loaded");
	merge(0);
	shim_ok(is_about(fms_estimate_left_us(&sort, 3e6), 1e6),
			"a merge that has not begun takes its share");
	merge(0.1);
	shim_ok(is_about(fms_estimate_left_us(&sort, 4e6), 9e6),
			"... and a slow one says so as it goes on");
	merge(1);
	shim_ok(fms_estimate_left_us(&sort, 5e6) == 0, "... until its end");
}

/* Several passes, merge by merge: 40 runs, 8 at once. */
static void
check_passes(void)
{
	double		percent = 0;
	bool		grows = true;
	int			runs = RUNS;
	int			done;

	merge(0);
	set(FMS_COUNT_PHASE, FMS_PHASE_PASSES);
	set(FMS_COUNT_RUNS_TOO_MANY, RUNS - 8);
	while (runs > 8)
	{
		int			n = Min(8, runs - 8 + 1);

		set(FMS_COUNT_RUNS_LEFT, runs);
		set(FMS_COUNT_MERGE_RUNS, n);
		for (done = 0; done <= 1000; done += 100)
		{
			double		now;

			set(FMS_COUNT_MERGE_BLOCKS_DONE, done);
			now = fms_estimate_percent(&sort);
			grows &= now >= percent;
			percent = now;
		}
		runs -= n - 1;
	}
	shim_ok(grows && percent > 87 && percent <= 87.5,
			"passes lie between three quarters and seven eighths");
	set(FMS_COUNT_PHASE, FMS_PHASE_MERGING);
	set(FMS_COUNT_MERGE_BLOCKS_DONE, 0);
	shim_ok(fms_estimate_percent(&sort) == 87.5, "... then the last merge");
}

/* Whatever the planner thought. */
static void
check_percent(void)
{
	bool		grows = true;
	bool		inside = true;
	int			e;

	for (e = 0; e <= 8; e++)
	{
		double		before = 0;
		int			i;

		for (i = 0; i <= 100; i++)
		{
			double		now;

			load(TUPLES / 100.0 * i);
			set(FMS_COUNT_TUPLES_EXPECTED, e == 0 ? 0 :
				TUPLES * pow(10, e - 4));
			now = fms_estimate_percent(&sort);
			grows &= now >= before;
			inside &= now < 75;
			before = now;
		}
		merge(0);
		grows &= fms_estimate_percent(&sort) >= before;
	}
	shim_ok(grows, "the percentage grows, whatever was expected");
	shim_ok(inside, "... and is below 75 until the merge begins");
	merge(1);
	shim_ok(fms_estimate_percent(&sort) == 100, "... and 100 at the end");
}

static void
check_groups(void)
{
	load(TUPLES / 4);
	set(FMS_COUNT_EARLIER_TUPLES, TUPLES / 4);
	set(FMS_COUNT_PRESORTED, FMS_YES);
	shim_ok(is_about(fms_estimate_percent(&sort), 47.5), "groups: by tuples");
	shim_ok(is_about(fms_estimate_left_us(&sort, 1e6), 1e6),
			"... and so the time");
	set(FMS_COUNT_PHASE, FMS_PHASE_IN_MEMORY);
	set(FMS_COUNT_LAST_GROUP, 1);
	shim_ok(fms_estimate_percent(&sort) == 100, "... 100 in the last one");
}

int
main(void)
{
	check_time_left();
	check_passes();
	check_percent();
	check_groups();
	return shim_done();
}
