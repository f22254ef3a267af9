/*-------------------------------------------------------------------------
 *
 * spill.h
 *	  What a sort has on disk: runs, and the merge of them all.
 *
 *-------------------------------------------------------------------------
 */
#ifndef FMS_SPILL_H
#define FMS_SPILL_H

#include "postgres.h"

#include "base/clock.h"
#include "device/spill_policy.h"
#include "formation/formation.h"
#include "merge/merge.h"
#include "sort/share.h"
#include "sort/sizing.h"

/* Others read these fields, only spill.c changes them. */
typedef struct FmsSpill
{
	MemoryContext context;
	MemoryContextCallback on_reset;
	const FmsSizing *sizing;
	FmsOptions	options;

	FmsIo		io;
	FmsMergePlan plan;			/* of all merges, or of the one going on */
	FmsRunWriter *writer;		/* NULL once all is written */
	FmsCutoff  *cutoff;			/* of the tuples in runs, or NULL */
	FmsRun	  **runs;			/* in order of arrival */
	int			nruns;
	int			runs_size;
	int			runs_to_cut;	/* number of runs at which they are cut */
	uint32		largest_bytes;	/* of any record in them */
	uint64		rows;			/* written by run formation, in blocks */
	uint64		blocks;
	bool		compressed;		/* some have compressed chunks */
	uint32		next_run_id;
	FmsSpillFacts facts;		/* until the last run */
	FmsSpillChoice choice;		/* for the next run */
	instr_time	run_began;		/* when that choice was made */
	double		run_blocked_us; /* waiting for writes until then */

	const FmsFormation *in_memory_run;	/* or NULL */
	FmsMerge   *merge;			/* NULL: none */
	uint64		next;			/* number of the last merge's next tuple */
	FmsSampler	stepping;		/* divides the last merge's time between it
								 * and the parent */
	double		merges_us;		/* earlier merges, and beginning this one */
} FmsSpill;

/*
 * Opens the I/O channel and the tape.  Memory: a child of the current context,
 * whose end drains and closes the channel.  The current resource owner has the
 * files.  keys, the options' device and files, sizing and counters must stay.
 */
extern FmsSpill *fms_spill_begin(FmsKeys *keys, const FmsOptions *options,
								 const FmsSizing *sizing,
								 FmsCounters *counters);

/*
 * Writes the oldest tuples as a run, so that at least `bytes` become free.
 * Returns the number of tuples in the run.
 */
extern uint64 fms_spill_run(FmsSpill *spill, FmsFormation *formation,
							Size bytes);

/*
 * The descriptions of the runs take too much memory: merges the smallest runs.
 * The formation must have given its memory back.
 */
extern void fms_spill_merge_early(FmsSpill *spill);

/*
 * The input has ended with used_bytes of tuples in memory.  The bytes of these
 * that the last merge can take from there.
 */
extern Size fms_spill_keep_bytes(const FmsSpill *spill, Size used_bytes);

/*
 * After the last run: merges runs until one merge can take those that are
 * left.  in_memory_run: sorted tuples for the last merge, or NULL; all other
 * memory of the formation must have been given back.  input_bytes: tuples and
 * entries of the whole input.
 */
extern void fms_spill_reduce(FmsSpill *spill,
							 const FmsFormation *in_memory_run,
							 uint64 input_bytes);

/* In a worker, then: leaves its runs to the leader. */
extern void fms_spill_hand_over(FmsSpill *spill, FmsPart *part);

/*
 * In the leader, before it reduces: adds the runs of a worker that has ended.
 * files: the worker's.
 */
extern void fms_spill_adopt(FmsSpill *spill, const FmsPart *part,
							const FmsSharedFiles *files);

/*
 * Begins the last merge, or begins it again: with tuple number `next`, at the
 * positions where fms_spill_tell() found it; NULL: at the first tuple.  A
 * merge that has not begun does so by itself.
 */
extern void fms_spill_start(FmsSpill *spill, const FmsPosition *from,
							uint64 next);

/*
 * See fms_merge_next_tuple(), fms_merge_tell().  NULL before the last tuple
 * was returned: others were dropped.
 */
extern MinimalTuple fms_spill_next(FmsSpill *spill);
extern void fms_spill_tell(FmsSpill *spill, FmsPosition *positions);

/* Moves the last merge to tuple number `to`, in either direction. */
extern void fms_spill_move(FmsSpill *spill, uint64 to);

/* Brings counters up to date that do not change as they are counted. */
extern void fms_spill_count(FmsSpill *spill);

/* Drains, closes the files, frees everything; at any time. */
extern void fms_spill_end(FmsSpill *spill);

#endif							/* FMS_SPILL_H */
