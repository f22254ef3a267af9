/*-------------------------------------------------------------------------
 *
 * profile.h
 *	  Device profiles of tablespaces, which two tables keep.
 *
 *-------------------------------------------------------------------------
 */
#ifndef FMS_PROFILE_H
#define FMS_PROFILE_H

#include "base/device.h"
#include "device/probe.h"

/* How a profile was measured. */
typedef struct FmsProfileFacts
{
	Oid			tablespace;
	double		seconds;
	uint64		file_bytes;
	const char *io_method;
	bool		complete;		/* there was time for all of it */
} FmsProfileFacts;

/*
 * Replaces the tablespace's profile, in the current transaction.  False, and
 * nothing changes, if there are no points; or if they are incomplete and there
 * is a profile of this device.
 */
extern bool fms_profile_store(const FmsProfileFacts *facts,
							  const FmsProbePoint *points, int npoints);

/* Deletes the tablespace's profile; InvalidOid: all profiles. */
extern void fms_profile_delete(Oid tablespace);

/*
 * The device under the session's next tape: of several tablespaces, what they
 * make together.  All zero if one has no profile, or if it cannot be read now.
 * Waits for no lock and keeps none.  A profile of another place is a WARNING,
 * once a session.
 */
extern void fms_profile_device(FmsDevice *device);

/*
 * The tablespace of that name; of the session's next temporary files for NULL.
 * Raises an error if there is none, or if the user may not create files there.
 */
extern Oid	fms_profile_tablespace(const char *name);

#endif							/* FMS_PROFILE_H */
