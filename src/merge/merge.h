/*-------------------------------------------------------------------------
 *
 * merge.h
 *	  The merge phase: n sorted runs become one sequence of tuples.
 *
 *-------------------------------------------------------------------------
 */
#ifndef FMS_MERGE_H
#define FMS_MERGE_H

#include "merge/input.h"

typedef struct FmsMerge FmsMerge;

/* Memory of a merge in bytes; records have up to largest_bytes. */
extern Size fms_merge_bytes(const FmsMode *mode,
							const FmsFirstKeyMemory *first_keys, int nruns,
							uint32 assist_blocks, uint32 block_bytes,
							uint32 largest_bytes, bool compressed);

/*
 * Begins a merge in the current context and starts its first reads.  Ties
 * leave in the order of runs[].  plan and runs must outlive the merge.  from:
 * NULL, or the positions of an earlier merge of the same runs.
 */
extern FmsMerge *fms_merge_begin(const FmsMergePlan *plan, int nruns,
								 FmsRun **runs, const FmsPosition *from);

/*
 * Stores the merge's positions, one of each run and one of the in-memory run,
 * for a merge that goes on there.  Invalidates the record returned last.
 */
extern void fms_merge_tell(FmsMerge *merge, FmsPosition *positions);

/* Returns the next record, valid until the next call; NULL after the last. */
extern const FmsRecord *fms_merge_next(FmsMerge *merge);

/* The same, as a tuple that the executor must not change. */
extern MinimalTuple fms_merge_next_tuple(FmsMerge *merge);

/* Drains the reads and frees the merge, at any time. */
extern void fms_merge_end(FmsMerge *merge);

/* Time spent on getting blocks, with their order, waiting and unpacking. */
extern double fms_merge_load_us(const FmsMerge *merge);

#endif							/* FMS_MERGE_H */
