/*-------------------------------------------------------------------------
 *
 * entries.h
 *	  Sorting entries, which stand for the tuples in memory.
 *
 *-------------------------------------------------------------------------
 */
#ifndef FMS_ENTRIES_H
#define FMS_ENTRIES_H

#include "postgres.h"

#include "keys/entry.h"

/* Sorts them, in place; all have been taken when it returns. */
extern void fms_entries_sort(FmsEntriesSort *sort, FmsEntry *entries,
							 Size count);

/* Puts entries back into the order of their arrival. */
extern void fms_entries_sort_by_arrival(FmsEntry *entries, Size count);

#endif							/* FMS_ENTRIES_H */
