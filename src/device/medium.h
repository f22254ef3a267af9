/*-------------------------------------------------------------------------
 *
 * medium.h
 *	  Where a spill goes: into the page cache, or past it.
 *
 *-------------------------------------------------------------------------
 */
#ifndef FMS_MEDIUM_H
#define FMS_MEDIUM_H

#include "postgres.h"

#include "portability/instr_time.h"

#include "base/counters.h"
#include "tape/tape.h"

typedef struct FmsMedium
{
	/* read by the owner */
	bool		cached;			/* what is written next goes into the page
								 * cache */
	FmsDirectReason reason;
	FmsDevice	device;			/* what is known of it by now */
	bool		device_seen;	/* the sort's own observations overruled a
								 * profile, or there was none */
	bool		on_trial;		/* what is in the page cache is to be written
								 * out, to see the device */

	/* its own */
	bool		settled;		/* by the setting, or as it must be */
	uint32		block_bytes;
	double		expected_bytes; /* of the spill; 0: not known */
	double		share_bytes;	/* of it, what goes into the page cache unless
								 * the device is very slow; less than all if
								 * memory does not hold it beside its input */
	uint64		look_again_bytes;	/* in the page cache: so much may be */
	uint64		cache_from_bytes;	/* when its rate was last looked at: what
									 * had gone into it, */
	double		cache_from_us;	/* how long that had taken, */
	double		cache_lost_us;	/* and how much longer than by a device */

	/* of runs that were written past the page cache */
	FmsSeen		seen;
	instr_time	run_began;
	uint64		run_from_bytes; /* written until then */
	double		run_blocked_us; /* blocked until then */
} FmsMedium;

/* Decides where the first run goes.  Never fails. */
extern void fms_medium_begin(FmsMedium *medium, const FmsOptions *options,
							 uint32 block_bytes);

/*
 * On trial: the device has taken so many bytes, of which that was seen of late
 * (trial.h).  Before fms_medium_next_run().
 */
extern void fms_medium_tried(FmsMedium *medium, double tried_bytes,
							 const FmsSeen *seen);

/* The device cannot be tried, or need not be any more. */
extern void fms_medium_end_trial(FmsMedium *medium);

/* A run has been written: decides where the next one goes. */
extern void fms_medium_next_run(FmsMedium *medium,
								const FmsTapeUse *use);

/* The file system has no direct I/O, or had enough of changes. */
extern void fms_medium_stay(FmsMedium *medium, bool cached);

/* Is the device known to be so slow that bytes are worth more than time? */
extern bool fms_medium_is_very_slow(const FmsMedium *medium);

/* Its round trip, MB/s; 0: not known. */
extern double fms_medium_device_mb(const FmsMedium *medium);

#endif							/* FMS_MEDIUM_H */
