/*-------------------------------------------------------------------------
 *
 * merge.h
 *	  The merge phase: n sorted runs to one sequence of tuples.
 *
 *-------------------------------------------------------------------------
 */
#ifndef FMS_MERGE_H
#define FMS_MERGE_H

#include "postgres.h"

#include "formation/formation.h"
#include "merge/mode.h"

typedef struct FmsMerge FmsMerge;

/* All a merge needs to know; must stay while it goes on. */
typedef struct FmsMergePlan
{
	const FmsMode *mode;
	FmsKeys    *keys;
	FmsIo	   *io;
	FmsTape    *tape;
	FmsFirstKeyStore *first_keys;
	FmsCounters *counters;
	uint32		block_bytes;
	uint32		assist_blocks;	/* l, if the mode uses it */
	uint32		assist_first;	/* 1 .. l, those used before any wait */

	Size		writer_bytes;	/* of who writes the result, beside it; or 0 */

	/* what it has read, as it writes as much and nobody reads that again */
	bool		frees;

	/* sorted tuples in memory that arrived after all runs, or NULL */
	const FmsFormation *in_memory_run;
} FmsMergePlan;

/* Positions that a merge of n runs has: one each, and one for the rest. */
static inline int
fms_merge_positions(int nruns)
{
	return nruns + 1;
}

/*
 * Bytes that merging n runs takes: input buffer, tree, block read order and
 * buffers in which records of up to largest_bytes are put together and, if
 * there may be any, chunks are unpacked.  First keys may be NULL before there
 * are any.
 */
extern Size fms_merge_bytes(const FmsMode *mode,
							const FmsFirstKeyStore *first_keys, int nruns,
							uint32 assist_blocks, uint32 block_bytes,
							uint32 largest_bytes, bool compressed);

/*
 * Begins merging; starts the first reads.  Ties leave in the order of the
 * runs.  Memory comes from the current context.  from: NULL, or where a
 * merge of the same runs stood; it is read during the call only.
 */
extern FmsMerge *fms_merge_begin(const FmsMergePlan *plan, int nruns,
								 FmsRun **runs, const FmsPosition *from);

/*
 * Where it stands, fms_merge_positions() of them: merging from there gives
 * what fms_merge_next() would give from now on.  The record handed out last is
 * no longer valid.
 */
extern void fms_merge_tell(FmsMerge *merge, FmsPosition *positions);

/*
 * The next record, or NULL after the last one.  It lies in a sort block and
 * is valid until the next call.  May wait for I/O, ERROR, and run
 * comparators.
 */
extern const FmsRecord *fms_merge_next(FmsMerge *merge);

/* Likewise its tuple, for the executor, to be read only. */
extern MinimalTuple fms_merge_next_tuple(FmsMerge *merge);

/* Drains and frees; may come at any time. */
extern void fms_merge_end(FmsMerge *merge);

/*
 * Time spent so far on getting blocks, their order and waiting included, and
 * on unpacking them.
 */
extern double fms_merge_load_us(const FmsMerge *merge);

#endif							/* FMS_MERGE_H */
