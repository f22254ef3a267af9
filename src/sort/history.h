/*-------------------------------------------------------------------------
 *
 * history.h
 *	  Going back in a merge.
 *
 *-------------------------------------------------------------------------
 */
#ifndef FMS_HISTORY_H
#define FMS_HISTORY_H

#include "postgres.h"

#include "access/htup_details.h"

#include "sort/spill.h"

typedef struct FmsHistory FmsHistory;

/*
 * Begins the spill's last merge, and makes its tuples accessible by their
 * position.  backward: any position may be asked for again; else only those
 * from the mark on (and 0).  Takes about memory_bytes, and at least what two
 * tuples need.  Current context.
 */
extern FmsHistory *fms_history_create(FmsSpill *spill, Size memory_bytes,
									  bool backward);

extern void fms_history_destroy(FmsHistory *history);

/*
 * The tuple at that position, counted from 0, which must exist.  Valid until
 * the next call.  Cheap one after the other, forwards or backwards; elsewhere
 * merges again from the nearest checkpoint before it.
 */
extern MinimalTuple fms_history_fetch(FmsHistory *history, uint64 position);

/* Keeps a way back to that position, instead of the last one marked. */
extern void fms_history_mark(FmsHistory *history, uint64 position);

#endif							/* FMS_HISTORY_H */
