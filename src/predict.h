/*-------------------------------------------------------------------------
 *
 * predict.h
 *	  What a sort of so many bytes would do, and how long it would take.
 *
 *-------------------------------------------------------------------------
 */
#ifndef FMS_PREDICT_H
#define FMS_PREDICT_H

#include "postgres.h"

#include "options.h"
#include "profile.h"

typedef struct FmsPrediction
{
	bool		external;		/* else in memory; the rest is then 0 */
	int			runs;
	uint32		merge_passes;
	uint32		block_bytes;
	uint32		assist_blocks;
	bool		cached;			/* the spill stays in the page cache */
	bool		compressed;
	double		read_mb;		/* of the merge's reads, MB/s; 0: not known */
	double		spilled_bytes;
	double		kept_bytes;		/* merged from memory */

	/* in microseconds */
	double		formation_us;	/* without the input's own time */
	double		merge_us;		/* all passes */
	double		blocked_us;		/* of that, waiting for the device */
} FmsPrediction;

/* The input, as far as the caller knows it. */
typedef struct FmsExpectedInput
{
	double		tuples;
	double		tuple_bytes;
	double		keys;			/* different ones; 0: not known */
} FmsExpectedInput;

/*
 * Settings and device stand in the options; times are 0 where neither device
 * nor cost is known.
 */
extern void fms_predict(const FmsOptions *options, const FmsTupleCost *cost,
						const FmsExpectedInput *input,
						FmsPrediction *prediction);

#endif							/* FMS_PREDICT_H */
