/*-------------------------------------------------------------------------
 *
 * median.h
 *	  The middle of some measurements.
 *
 * A machine that does something else meanwhile makes some of them longer, by
 * any amount, which moves a mean as far as it likes, and the middle hardly.
 *
 *-------------------------------------------------------------------------
 */
#ifndef FMS_MEDIAN_H
#define FMS_MEDIAN_H

#include "postgres.h"

static inline int
fms_median_compare(const void *a, const void *b)
{
	double		x = *(const double *) a;
	double		y = *(const double *) b;

	return (x > y) - (x < y);
}

/* Puts the values in order; of an even number, half-way between two. */
static inline double
fms_median(double *values, int n)
{
	Assert(n > 0);
	qsort(values, n, sizeof(double), fms_median_compare);
	return (values[(n - 1) / 2] + values[n / 2]) / 2;
}

#endif							/* FMS_MEDIAN_H */
