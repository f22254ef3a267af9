/*-------------------------------------------------------------------------
 *
 * sort.h
 *	  One sort, from its first tuple to its last.
 *
 *-------------------------------------------------------------------------
 */
#ifndef FMS_SORT_H
#define FMS_SORT_H

#include "access/htup_details.h"
#include "executor/tuptable.h"
#include "storage/dsm.h"

#include "base/counters.h"
#include "keys/keys.h"
#include "base/options.h"

typedef struct FmsSort FmsSort;

/*
 * Begins a sort.  Its memory is a child of the current context; its files
 * belong to the current resource owner.  The options need not have the device.
 * counters: set to zero.  scratch: a context for values in progress, which the
 * sort resets.  Both must stay until the sort ends.
 */
extern FmsSort *fms_sort_begin(TupleDesc desc, const FmsKeySpec *spec,
							   const FmsOptions *options,
							   FmsCounters *counters,
							   MemoryContext scratch);

/* Forgets tuples and counters, for a sort with the same other options. */
extern void fms_sort_reset(FmsSort *sort, uint64 bound,
						   uint64 earlier_tuples);

/* Adds a tuple; may write a run. */
extern void fms_sort_put(FmsSort *sort, TupleTableSlot *slot);

/* After the last tuple: sorts, or merges runs until one merge takes all. */
extern void fms_sort_perform(FmsSort *sort);

/*
 * The next tuple, or NULL after the last one; valid until the next call.
 * Backwards, if the options allow it: the tuple before the one returned last
 * (after the end: the last tuple), or NULL.
 */
extern MinimalTuple fms_sort_get(FmsSort *sort, bool forward);

/* Passes over up to `rows` tuples, if the options say so; returns how many. */
extern uint64 fms_sort_skip(FmsSort *sort, uint64 rows);

/* Back to the first tuple. */
extern void fms_sort_rewind(FmsSort *sort);

/* Remembers where it stands, and returns there.  If the options say so. */
extern void fms_sort_mark(FmsSort *sort);
extern void fms_sort_restore(FmsSort *sort);

/* Frees everything, at any time. */
extern void fms_sort_end(FmsSort *sort);

/* ---- parallel sorts: workers form runs, the leader merges them ---- */

/*
 * Before the leader's first tuple: lets as many workers take part as the
 * options say.  progress: NULL, or shared counters where workers count their
 * tuples.  Returns the handle with which they join, or DSM_HANDLE_INVALID: the
 * server has no segment left, and the leader sorts alone.
 */
extern dsm_handle fms_sort_share(FmsSort *sort, FmsCounters *progress);

/* A worker's fms_sort_begin(), under the leader's options. */
extern FmsSort *fms_sort_join(TupleDesc desc, const FmsKeySpec *spec,
							  dsm_handle handle, int worker,
							  FmsCounters *counters, MemoryContext scratch);

/* In place of fms_sort_perform(): leaves runs and counters to the leader. */
extern void fms_sort_hand_over(FmsSort *sort);

/*
 * In the leader, after the end of the worker of that number: adds its tuples.
 * Returns its counters, which stay until the sort is reset or ends; not
 * performed: the worker did not start.
 */
extern const FmsCounters *fms_sort_adopt(FmsSort *sort, int worker);

/* Brings all its counters up to date. */
extern void fms_sort_count(FmsSort *sort);

#endif							/* FMS_SORT_H */
