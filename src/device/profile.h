/*-------------------------------------------------------------------------
 *
 * profile.h
 *	  What was measured of the devices under the tablespaces: kept in two
 *	  tables, and remembered.
 *
 *-------------------------------------------------------------------------
 */
#ifndef FMS_PROFILE_H
#define FMS_PROFILE_H

#include "postgres.h"

#include "base/device.h"
#include "device/probe.h"

/* How a profile was taken. */
typedef struct FmsProfileFacts
{
	Oid			tablespace;
	double		seconds;
	uint64		file_bytes;
	bool		uses_uring;
	bool		complete;		/* no point was left out for want of time */
} FmsProfileFacts;

/* Raises an error if there are no tables to keep a profile in. */
extern void fms_profile_require_tables(void);

/*
 * Replaces that tablespace's profile in the tables, in the current
 * transaction.  False, and nothing changes: points were left out, and the
 * profile that is there has plainly more of them.
 */
extern bool fms_profile_store(const FmsProfileFacts *facts,
							  const FmsProbePoint *points, int npoints);

/*
 * The device under temporary files that are made now.  Costs a look into the
 * tables the first time, and when they have changed.  All zero where nothing
 * was measured, or nothing can be read now; never waits for a lock, and leaves
 * no lock behind.
 */
extern void fms_profile_device(FmsDevice *device);

/*
 * The tablespace of that name, or NULL: the one that temporary files go to.
 * Raises an error if there is none, or if the user may not create files there.
 */
extern Oid	fms_profile_tablespace(const char *name);

#endif							/* FMS_PROFILE_H */
