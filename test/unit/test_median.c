/*
 * The middle of some measurements, and the mean of those in it.
 *
 * Seen to fail with: no value left out of the mean; one left out of two; the
 * values not put in order.
 */
#include "postgres.h"

#include <math.h>

#include "median.h"
#include "shim.h"

static bool
near(double a, double b)
{
	return fabs(a - b) < 1e-9;
}

int
main(void)
{
	double		one[] = {7};
	double		two[] = {9, 1};
	double		three[] = {900, 2, 1};
	double		modes[] = {38, 20, 1e6, 21, 36};
	double		four[] = {4, 1, 3, 2};

	shim_ok(near(fms_median(one, 1), 7), "the median of one");
	shim_ok(near(fms_median(four, 4), 2.5), "... of an even number");
	shim_ok(near(fms_median(three, 3), 2), "... with one far off");

	shim_ok(near(fms_middle_mean(one, 1), 7), "the mean of one");
	shim_ok(near(fms_middle_mean(two, 2), 5), "... of two, which are all");
	shim_ok(near(fms_middle_mean(three, 3), 2), "... with one far off");
	shim_ok(near(fms_middle_mean(modes, 5), (21.0 + 36 + 38) / 3),
			"... of two usual times lies between them");
	return shim_done();
}
