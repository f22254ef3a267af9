/*-------------------------------------------------------------------------
 *
 * stat.h
 *	  What all sorts of a database have done so far: fmsort_stat.
 *
 *-------------------------------------------------------------------------
 */
#ifndef FMS_STAT_H
#define FMS_STAT_H

#include "postgres.h"

#include "base/counters.h"

/* What it needs of shared memory, and making it there. */
extern Size fms_stat_shared_bytes(void);
extern void fms_stat_share(void);

/* A sort has ended.  Without shared memory nothing happens. */
extern void fms_stat_add(const FmsCounters *counters);

/*
 * A plan has so many Sorts that stay PostgreSQL's: those that only the server
 * can run, and those below another extension's nodes.
 */
extern void fms_stat_sorts_left(int to_server, int to_extensions);

#endif							/* FMS_STAT_H */
