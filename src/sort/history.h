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
 * For the spill's last merge, whose tuples have positions from 0 on.  Takes
 * about memory_bytes, and room for two tuples at least, and goes with the
 * spill.
 */
extern FmsHistory *fms_history_create(FmsSpill *spill, Size memory_bytes);

/*
 * The tuple at a position, which must exist; valid until the next call.  Steps
 * in either direction are cheap.  Elsewhere it merges again from the nearest
 * checkpoint before the position.
 */
extern MinimalTuple fms_history_fetch(FmsHistory *history, uint64 position);

/* Most tuples before that position are not read until they are asked for. */
extern void fms_history_skip(FmsHistory *history, uint64 position);

/* Keeps a way back to that position, instead of the last one marked. */
extern void fms_history_mark(FmsHistory *history, uint64 position);

#endif							/* FMS_HISTORY_H */
