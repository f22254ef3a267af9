/*-------------------------------------------------------------------------
 *
 * presorted.h
 *	  Entries that arrive in order, backwards, or in order but for a few.
 *
 *-------------------------------------------------------------------------
 */
#ifndef FMS_PRESORTED_H
#define FMS_PRESORTED_H

#include "postgres.h"

#include "keys/entry.h"

/*
 * Sorts entries that are in order of arrival, if little has to be done; true:
 * they are sorted.  False: they are in order of arrival as before.  May run a
 * type's comparator, and ERROR like it; entries may be missing then.
 */
extern bool fms_presorted_sort(const FmsEntriesSort *sort, FmsEntry *entries,
							   Size count);

#endif							/* FMS_PRESORTED_H */
