/*-------------------------------------------------------------------------
 *
 * slow_log.h
 *	  A line in the server log for each slow sort.
 *
 *-------------------------------------------------------------------------
 */
#ifndef FMS_SLOW_LOG_H
#define FMS_SLOW_LOG_H

#include "postgres.h"

#include "counters.h"

/* A sort has ended: logs it if fmsort.log_min_duration says so. */
extern void fms_slow_log(const FmsCounters *counters);

#endif							/* FMS_SLOW_LOG_H */
