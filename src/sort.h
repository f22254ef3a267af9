/*-------------------------------------------------------------------------
 *
 * sort.h
 *	  One sort, from its first tuple to its last.
 *
 *-------------------------------------------------------------------------
 */
#ifndef FMS_SORT_H
#define FMS_SORT_H

#include "postgres.h"

#include "access/htup_details.h"
#include "executor/tuptable.h"

#include "counters.h"
#include "keys.h"
#include "options.h"

typedef struct FmsSort FmsSort;

/*
 * Begins a sort of tuples of that type.  All its memory is a child of the
 * current context; if that goes away first, nothing stays behind.  Must be
 * called under the resource owner that shall own its files.
 */
extern FmsSort *fms_sort_begin(TupleDesc desc, const FmsKeySpec *spec,
							   const FmsOptions *options);

/* Adds a tuple; may write a run. */
extern void fms_sort_put(FmsSort *sort, TupleTableSlot *slot);

/*
 * There are no more tuples: sorts them, or writes the last run, merges down
 * to what one merge can do, and begins that.
 */
extern void fms_sort_perform(FmsSort *sort);

/*
 * The next tuple in order, or NULL.  Belongs to the sort, and is valid until
 * the next call.
 */
extern MinimalTuple fms_sort_get(FmsSort *sort);

/* Back to the first tuple. */
extern void fms_sort_rewind(FmsSort *sort);

/* Frees everything, at any time. */
extern void fms_sort_end(FmsSort *sort);

/* What it has done so far. */
extern void fms_sort_count(FmsSort *sort, FmsCounters *counters);

#endif							/* FMS_SORT_H */
