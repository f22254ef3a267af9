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

#include "datatype/timestamp.h"

#include "device.h"
#include "probe.h"

/*
 * What the merge costs the processor, in nanoseconds: for each tuple, each
 * byte of it, each block, and each time it asks for one or several of these.
 */
typedef struct FmsMergeCost
{
	double		tuple_ns;
	double		byte_ns;
	double		change_ns;		/* of tuple_ns, for changing runs */
	double		block_ns;
	double		submit_ns;
} FmsMergeCost;

/*
 * What sorting costs it, by sorts that were timed; waiting for the device
 * excluded.
 */
typedef struct FmsTupleCost
{
	double		formation_ns;	/* to take it in, sort it, write it */
	double		formation_byte_ns;	/* and each byte of it */
	FmsMergeCost cached;		/* where blocks come from the page cache */
	FmsMergeCost direct;		/* past it; all zero: not measured */
} FmsTupleCost;

/* How a profile was taken. */
typedef struct FmsProfileFacts
{
	Oid			tablespace;
	double		seconds;
	uint64		file_bytes;
	bool		uses_uring;
	FmsTupleCost cost;
} FmsProfileFacts;

typedef struct FmsProfileRow
{
	FmsProbePattern pattern;
	uint32		block_bytes;
	uint32		depth;
	FmsProbeResult result;
} FmsProfileRow;

/*
 * Replaces that tablespace's profile in the tables of that schema, in the
 * current transaction, with the rights of the tables' owner.
 */
extern void fms_profile_store(Oid schema, const FmsProfileFacts *facts,
							  const FmsProfileRow *rows, int nrows);

/*
 * The device under temporary files that are made now.  Costs a look into the
 * tables the first time, and when they have changed.  All zero where nothing
 * was measured, or nothing can be read now; never waits for a lock.
 */
extern void fms_profile_device(FmsDevice *device);

/*
 * The same for that tablespace, with what tuples cost (0: not known) and when
 * it was measured (0: never).
 */
extern void fms_profile_look_up(Oid tablespace, FmsDevice *device,
								FmsTupleCost *cost, TimestampTz *measured_at);

/*
 * The tablespace of that name, or NULL: the one that temporary files go to.
 * Raises an error if there is none, or if the user may not create files there.
 */
extern Oid	fms_profile_tablespace(const char *name);

#endif							/* FMS_PROFILE_H */
