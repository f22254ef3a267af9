/*-------------------------------------------------------------------------
 *
 * trial.h
 *	  How fast the device takes what is in the page cache, to see the device.
 *
 *-------------------------------------------------------------------------
 */
#ifndef FMS_TRIAL_H
#define FMS_TRIAL_H

#include "postgres.h"

#include "portability/instr_time.h"

#include "base/device.h"
#include "tape/tape.h"

/* All zero at first.  It is not moved while the channel has its request. */
typedef struct FmsTrial
{
	/* read by the owner, after a look */
	uint64		tried_bytes;	/* that the device has taken */
	bool		failed;			/* it cannot be tried */
	FmsSeen		seen;			/* of late; with what is under way, as if it
								 * had just arrived, once that is slower */

	/* its own */
	FmsIoRequest request;		/* the stretch that is under way */
	instr_time	began;			/* of that */
	double		unfinished_us;	/* it had not arrived so long after that */
	FmsSeen		arrived;		/* without that */
	uint64		asked_bytes;	/* of the tape, from its beginning */
	uint64		ready_bytes;	/* that may be asked for */
} FmsTrial;

/*
 * Sees what has arrived, and asks for the next stretch.  All of the tape is in
 * the page cache.  To be called every few megabytes; does not wait, unless the
 * channel's method always does.  Never fails.
 */
extern void fms_trial_look(FmsTrial *trial, FmsIo *io, FmsTape *tape);

#endif							/* FMS_TRIAL_H */
