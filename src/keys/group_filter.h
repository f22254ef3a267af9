/*-------------------------------------------------------------------------
 *
 * group_filter.h
 *	  Dropping rows of a group that the parent does not want.
 *
 *-------------------------------------------------------------------------
 */
#ifndef FMS_GROUP_FILTER_H
#define FMS_GROUP_FILTER_H

#include "postgres.h"

#include "keys/keys.h"

/*
 * Begins a sequence of records in order.  stay: records stay where they are
 * until the sequence ends, otherwise until the next call.
 */
extern void fms_group_filter_begin(FmsGroupFilter *filter, bool stay);

/*
 * Is the next record of the sequence wanted?  True also if that is not known:
 * the parent drops rows itself.  May run a type's comparator.
 */
extern bool fms_group_filter_wants(FmsGroupFilter *filter,
								   const FmsRecord *record);

/* Keeps the words that are wanted of sorted ones; returns their number. */
extern Size fms_group_filter_words(FmsGroupFilter *filter, uint64 *words,
								   Size count);

/* Number of rows wanted of a group of n nulls. */
extern uint64 fms_group_filter_nulls(FmsGroupFilter *filter, uint64 n);

/* Number of rows dropped since the last call of this function. */
extern uint64 fms_group_filter_dropped(FmsGroupFilter *filter);

#endif							/* FMS_GROUP_FILTER_H */
