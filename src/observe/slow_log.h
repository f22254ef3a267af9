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

#include "base/counters.h"

/*
 * A sort has ended: logs it if it took limit_ms milliseconds of its own, never
 * if that is negative.
 */
extern void fms_slow_log(const FmsCounters *counters, int limit_ms);

#endif							/* FMS_SLOW_LOG_H */
