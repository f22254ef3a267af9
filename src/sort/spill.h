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

#include "base/counters.h"
#include "formation/formation.h"
#include "merge/merge.h"
#include "sort/share.h"
#include "sort/sizing.h"

typedef struct FmsSpill FmsSpill;

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

/* Number of runs on disk. */
extern int	fms_spill_runs(const FmsSpill *spill);

/*
 * Do the descriptions of the runs take too much memory?  Then the formation
 * writes all of its tuples and gives its memory back, and
 * fms_spill_merge_early() merges the smallest runs.
 */
extern bool fms_spill_is_crowded(const FmsSpill *spill);

/*
 * May runs end at a cutoff?  Then comparisons that contradict each other may
 * leave fewer tuples than were counted.
 */
extern bool fms_spill_is_cut(const FmsSpill *spill);
extern void fms_spill_merge_early(FmsSpill *spill);

/* Microseconds that early merges have taken. */
extern double fms_spill_early_us(const FmsSpill *spill);

/* Waits until all runs are on disk. */
extern void fms_spill_flush(FmsSpill *spill);

/* Bytes that tuples may keep that are not written; see sizing.h. */
extern Size fms_spill_in_memory_run_bytes(const FmsSpill *spill);

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

/* Positions of the last merge, see fms_merge_tell(). */
extern int	fms_spill_positions(const FmsSpill *spill);

/*
 * Begins the last merge, or begins it again: at the first record, or where
 * fms_spill_tell() found it.  A merge that has not begun does so by itself.
 */
extern void fms_spill_start(FmsSpill *spill, const FmsPosition *from);

/* See fms_merge_next_tuple(), fms_merge_tell(). */
extern MinimalTuple fms_spill_next(FmsSpill *spill);
extern void fms_spill_tell(FmsSpill *spill, FmsPosition *positions);

/* Moves the merge from its record number `at` to `to`, in either direction. */
extern void fms_spill_move(FmsSpill *spill, uint64 at, uint64 to);

/* Brings counters up to date that do not change as they are counted. */
extern void fms_spill_count(FmsSpill *spill);

/* Drains, closes the files, frees everything; at any time. */
extern void fms_spill_end(FmsSpill *spill);

#endif							/* FMS_SPILL_H */
