/*-------------------------------------------------------------------------
 *
 * median.h
 *	  The middle of some measurements.
 *
 * A machine that does something else meanwhile makes some of them longer, by
 * any amount, which moves a mean as far as it likes, and the middle hardly.
 *
 * One whose speed goes up and down, as its neighbours work or rest, has two
 * usual times, and the median is one of them: whatever takes long takes what
 * lies between.  That is the mean of those in the middle.
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

/* The mean of all but the least and the greatest.  Puts them in order. */
static inline double
fms_middle_mean(double *values, int n)
{
	int			left_out = n > 2 ? 1 : 0;
	double		sum = 0;
	int			i;

	Assert(n > 0);
	qsort(values, n, sizeof(double), fms_median_compare);
	for (i = left_out; i < n - left_out; i++)
		sum += values[i];
	return sum / (n - 2 * left_out);
}

#endif							/* FMS_MEDIAN_H */
