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

#include "base/counters.h"

/* A statement of the client's begins (not one inside a function). */
extern void fms_last_sort_new_statement(void);

/* A sort of the current statement has ended.  Never fails. */
extern void fms_last_sort_remember(const FmsCounters *counters);

/*
 * How many sorts of the statement that is running are kept (its last ones),
 * and each of them, oldest first.
 */
extern int	fms_last_sort_kept(void);
extern const FmsCounters *fms_last_sort_get(int number);

#endif							/* FMS_LAST_SORT_H */
