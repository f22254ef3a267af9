/*-------------------------------------------------------------------------
 *
 * last_sort.h
 *	  What this session's last statement sorted: fmsort_last_sort().
 *
 *-------------------------------------------------------------------------
 */
#ifndef FMS_LAST_SORT_H
#define FMS_LAST_SORT_H

#include "postgres.h"

#include "counters.h"

/* A statement of the client's begins (not one inside a function). */
extern void fms_last_sort_new_statement(void);

/* A sort of the current statement has ended.  Never fails. */
extern void fms_last_sort_remember(const FmsCounters *counters);

#endif							/* FMS_LAST_SORT_H */
