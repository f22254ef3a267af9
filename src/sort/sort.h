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

#include "base/counters.h"
#include "keys/keys.h"
#include "base/options.h"

typedef struct FmsSort FmsSort;

/*
 * Begins a sort of tuples of that type.  All its memory is a child of the
 * current context; if that goes away first, nothing stays behind.  Must be
 * called under the resource owner that shall own its files.  counters: where
 * it counts what it does, from zero on; must stay until it ends.
 * find_device: asked by a sort that spills, when it begins to, since most
 * sorts need not know; NULL: what the options say is all that is known.
 */
extern FmsSort *fms_sort_begin(TupleDesc desc, const FmsKeySpec *spec,
							   const FmsOptions *options,
							   FmsCounters *counters,
							   FmsFindDevice find_device);

/*
 * Forgets all tuples, for another sort of the same kind: cheaper than ending
 * this one and beginning another.
 */
extern void fms_sort_reset(FmsSort *sort, const FmsOptions *options);

/* Adds a tuple; may write a run. */
extern void fms_sort_put(FmsSort *sort, TupleTableSlot *slot);

/*
 * There are no more tuples: sorts them, or writes the last run, merges down
 * to what one merge can do, and begins that.
 */
extern void fms_sort_perform(FmsSort *sort);

/*
 * The next tuple in order, or NULL behind the last one; backwards the one
 * before the last returned (behind the last one: the last), or NULL before
 * the first.  Belongs to the sort, and is valid until the next call.
 * Backwards only if the options said so.
 */
extern MinimalTuple fms_sort_get(FmsSort *sort, bool forward);

/* Back to the first tuple. */
extern void fms_sort_rewind(FmsSort *sort);

/*
 * Remembers where it stands, and returns there: any number of times.  Only
 * if the options said so.
 */
extern void fms_sort_mark(FmsSort *sort);
extern void fms_sort_restore(FmsSort *sort);

/* Frees everything, at any time. */
extern void fms_sort_end(FmsSort *sort);

/* Brings all its counters up to date. */
extern void fms_sort_count(FmsSort *sort);

#endif							/* FMS_SORT_H */
