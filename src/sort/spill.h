/*-------------------------------------------------------------------------
 *
 * spill.h
 *	  What a sort has on disk: runs, and the merge of them all.
 *
 *-------------------------------------------------------------------------
 */
#ifndef FMS_SPILL_H
#define FMS_SPILL_H

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
	uint32		level;			/* the highest of any run so far */
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

/* Writes the oldest tuples, `bytes` or more, as a run.  Returns how many. */
extern uint64 fms_spill_run(FmsSpill *spill, FmsFormation *formation,
							Size bytes);

/* Merges the smallest runs.  The formation has given its memory back. */
extern void fms_spill_merge_early(FmsSpill *spill);

/* Of used_bytes in memory at the end, those that the last merge can take. */
extern Size fms_spill_keep_bytes(const FmsSpill *spill, Size used_bytes);

/*
 * After the last run: merges runs until one merge can take those that are
 * left.  in_memory_run: sorted tuples for the last merge, or NULL; no other
 * tuples have memory.  input_bytes: tuples and entries of the whole input.
 */
extern void fms_spill_reduce(FmsSpill *spill,
							 const FmsFormation *in_memory_run,
							 uint64 input_bytes);

/* In a worker, then: leaves its runs to the leader. */
extern void fms_spill_hand_over(FmsSpill *spill, FmsPart *part);

/* In the leader, before it reduces: adds a worker's runs, in its files. */
extern void fms_spill_adopt(FmsSpill *spill, const FmsPart *part,
							const FmsSharedFiles *files);

/*
 * Begins the last merge again with tuple number `next`, at the positions where
 * fms_spill_tell() found it; NULL: at the first tuple, as it does by itself.
 */
extern void fms_spill_start(FmsSpill *spill, const FmsPosition *from,
							uint64 next);

/* See fms_merge_next_tuple(), fms_merge_tell(). */
extern MinimalTuple fms_spill_next(FmsSpill *spill);
extern void fms_spill_tell(FmsSpill *spill, FmsPosition *positions);

/* Moves the last merge to tuple number `to`, in either direction. */
extern void fms_spill_move(FmsSpill *spill, uint64 to);

/* Microseconds of all merges so far, without their parent's time. */
extern double fms_spill_merging_us(const FmsSpill *spill);

/* Drains, closes the files, frees everything; at any time. */
extern void fms_spill_end(FmsSpill *spill);

/* ---- going back in the last merge: history.c ---- */

typedef struct FmsHistory FmsHistory;

/* Goes with the spill.  Takes memory_bytes, and room for two tuples. */
extern FmsHistory *fms_history_create(FmsSpill *spill, Size memory_bytes);

/*
 * The tuple of that number, which must exist; valid until the next call.
 * Steps in either direction are cheap.
 */
extern MinimalTuple fms_history_fetch(FmsHistory *history, uint64 position);

/* Most tuples before that position are not read until they are asked for. */
extern void fms_history_skip(FmsHistory *history, uint64 position);

/* Keeps a way back to that position, instead of the last one marked. */
extern void fms_history_mark(FmsHistory *history, uint64 position);

#endif							/* FMS_SPILL_H */
