/*-------------------------------------------------------------------------
 *
 * probe.h
 *	  Measuring a device through a temporary file, one pattern at a time.
 *
 *-------------------------------------------------------------------------
 */
#ifndef FMS_PROBE_H
#define FMS_PROBE_H

#include "postgres.h"

#include "base/device.h"
#include "base/options.h"

/* Runs are written, nearly, in pieces of this size, so many at once. */
#define FMS_PROBE_APPEND_BYTES	262144
#define FMS_PROBE_APPEND_DEPTH	4

/* Space is given back in pieces of this. */
#define FMS_PROBE_HOLE_BYTES	(4 * 1024 * 1024)

/* What is measured, and what came of it. */
typedef struct FmsProbePoint
{
	FmsPattern	pattern;
	uint32		block_bytes;
	uint32		depth;			/* requests under way at once */
	double		mb_per_s;		/* MB of 1,000,000 bytes */
} FmsProbePoint;

typedef struct FmsProbe FmsProbe;

/*
 * Makes an empty temporary file in that tablespace (a temporary tablespace or
 * the database's own), under the current resource owner.  Raises an error if
 * it cannot be there, or if direct I/O is asked for and not to be had.
 * Memory is a child of the current context; whichever of the two goes first,
 * the probe may be forgotten on ERROR.
 */
extern FmsProbe *fms_probe_open(Oid tablespace, FmsIoChoice io_method,
								bool direct);

/*
 * Writes the file, until it has so many bytes or so many seconds are over.
 * Its second half is measured.  Comes first and once.
 */
extern void fms_probe_fill(FmsProbe *probe, uint64 file_bytes, double seconds,
						   FmsProbePoint *point);

/* Can that point be measured?  No block is smaller than a sector, e.g. */
extern bool fms_probe_can(const FmsProbe *probe, const FmsProbePoint *point);

/*
 * Measures a point of the patterns SR to RR lasting for so many seconds; it
 * takes longer on a device that needs longer for 5/4 of `depth` requests.
 */
extern void fms_probe_measure(FmsProbe *probe, double seconds,
							  FmsProbePoint *point);

/*
 * Gives the file's space back from the beginning on, for so many seconds.  The
 * second half is measured.  Comes last.  False: the file system cannot do it.
 */
extern bool fms_probe_give_back(FmsProbe *probe, double seconds,
								FmsProbePoint *point);

extern bool fms_probe_uses_uring(const FmsProbe *probe);
extern uint64 fms_probe_file_bytes(const FmsProbe *probe);
extern void fms_probe_close(FmsProbe *probe);

#endif							/* FMS_PROBE_H */
