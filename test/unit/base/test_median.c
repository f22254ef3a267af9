/*
 * The middle of some measurements.
 *
 * Seen to fail with: the values not put in order.
 */
#include "postgres.h"

#include <math.h>

#include "base/median.h"
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
	double		three[] = {900, 2, 1};
	double		four[] = {4, 1, 3, 2};

	shim_ok(near(fms_median(one, 1), 7), "the median of one");
	shim_ok(near(fms_median(four, 4), 2.5), "... of an even number");
	shim_ok(near(fms_median(three, 3), 2), "... with one far off");
	return shim_done();
}
