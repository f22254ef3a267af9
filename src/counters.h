/*-------------------------------------------------------------------------
 *
 * counters.h
 *	  What a sort did, in numbers.
 *
 * One struct without a pointer in it, so that it can be copied into shared
 * memory, kept after its sort is gone, and handed to EXPLAIN, to
 * fmsort_last_sort() and to a test alike.  Each layer counts what it alone
 * knows; nobody adds the same thing twice.
 *
 *-------------------------------------------------------------------------
 */
#ifndef FMS_COUNTERS_H
#define FMS_COUNTERS_H

#include "c.h"

#include "options.h"

typedef enum FmsSortMethod
{
	FMS_METHOD_STILL_LOADING,
	FMS_METHOD_IN_MEMORY,
	FMS_METHOD_EXTERNAL_MERGE
} FmsSortMethod;

typedef struct FmsCounters
{
	/* what happened (sort.c) */
	FmsSortMethod method;
	FmsModeChoice mode;
	uint64		tuples;			/* put into the sort */
	uint64		memory_bytes;	/* tuples and entries at the end of input */

	/* run formation and passes (formation.c, sort.c) */
	uint64		runs;			/* written by run formation */
	uint32		merge_passes;	/* 1 = every tuple was written once */

	/* the tape and its blocks (tape.c, run.c, merge.c) */
	uint64		blocks;			/* written by run formation */
	uint32		block_bytes;
	uint32		assist_blocks;	/* l of the last merge; 0 outside fmsort */
	bool		uses_uring;
	bool		uses_direct_io;
	uint64		spilled_bytes;	/* size of the temporary files */
	uint64		read_bytes;
	uint64		written_bytes;
	uint64		reads;			/* requests */
	uint64		read_batches;	/* submissions that carried reads */
	uint64		writes;

	/* time, in microseconds */
	double		formation_us;	/* first tuple asked for .. last run written,
								 * the input's own time included */
	double		input_us;		/* of that, spent below the sort */
	double		order_us;		/* making the block read order */
	double		merge_us;		/* all passes, the parent's time excluded */
	double		blocked_us;		/* of that, waiting for reads */
} FmsCounters;

#endif							/* FMS_COUNTERS_H */
