/*-------------------------------------------------------------------------
 *
 * why.h
 *	  What a sort chose, and why, in words.
 *
 *-------------------------------------------------------------------------
 */
#ifndef FMS_WHY_H
#define FMS_WHY_H

#include "postgres.h"

#include "base/counters.h"

/* One line, in the current context. */
extern char *fms_why(const FmsCounters *counters);

#endif							/* FMS_WHY_H */
