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

#include "device.h"
#include "options.h"

typedef enum FmsProbePattern
{
	FMS_PROBE_SR,				/* sequential reads */
	FMS_PROBE_RR,				/* random reads */
	FMS_PROBE_SW,				/* sequential writes, over what is there */
	FMS_PROBE_RW,				/* random writes, likewise */
	FMS_PROBE_RR_MISALIGNED,	/* 512 bytes past a multiple of the size */
	FMS_PROBE_RW_MISALIGNED,
	FMS_PROBE_SW_AFTER_RW,		/* after a burst of random writes */
	FMS_PROBE_RR_WITH_SW,		/* by turns; the rate is that of both */
	FMS_PROBE_RR_LASTING,		/* the second half of the time only */
	FMS_PROBE_RR_JOINED,		/* of neighbours, as many as are one operation,
								 * into buffers that are none */
	FMS_PROBE_RR_USED,			/* of which the processor reads all */
	FMS_PROBE_APPEND,			/* as runs are written, at the file's end */
	FMS_PROBE_GIVE_BACK			/* making holes of what has been read */
} FmsProbePattern;

#define FMS_PROBE_PATTERNS	(FMS_PROBE_GIVE_BACK + 1)

/* Their space is given back in pieces of this. */
#define FMS_PROBE_HOLE_BYTES	(4 * 1024 * 1024)

/* A file smaller than this is not worth measuring. */
#define FMS_PROBE_FILE_MIN_BYTES	((uint64) 16 * 1024 * 1024)

typedef struct FmsProbeSpec
{
	FmsProbePattern pattern;	/* before APPEND */
	uint32		block_bytes;
	uint32		depth;			/* requests under way at once */
	double		seconds;		/* to spend; a slow device takes longer */
} FmsProbeSpec;

typedef struct FmsProbeResult
{
	double		mb_per_s;		/* MB of 1,000,000 bytes */
	double		iops;			/* requests a second */
	double		p50_us;			/* of requests, submission to completion */
	double		p95_us;
	double		p99_us;
	double		cpu_us;			/* of this process, a request */
} FmsProbeResult;

typedef struct FmsProbe FmsProbe;

/* As users write it: SR, RR misaligned, ... */
extern const char *fms_probe_name(FmsProbePattern pattern);

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
 * Writes the file, of so many bytes, or of fewer if that takes longer than so
 * many seconds.  Its second half is measured.  Comes first and once.
 */
extern void fms_probe_fill(FmsProbe *probe, uint64 file_bytes, double seconds,
						   FmsProbeResult *result);

/* Can that be measured here?  Not smaller than the device's sectors, e.g. */
extern bool fms_probe_can(const FmsProbe *probe, FmsProbePattern pattern,
						  uint32 block_bytes, uint32 depth);

extern void fms_probe_measure(FmsProbe *probe, const FmsProbeSpec *spec,
							  FmsProbeResult *result);

/*
 * Gives the file's space back, as the merge does, from the beginning on and
 * for not much longer than so many seconds.  What comes after half of the file
 * or of the time is measured.  Comes last: there is nothing to be read any
 * more.  False: the file system cannot do it, nothing measured.
 */
extern bool fms_probe_give_back(FmsProbe *probe, double seconds,
								FmsProbeResult *result);

/* What it turned out to be. */
extern bool fms_probe_uses_uring(const FmsProbe *probe);
extern uint64 fms_probe_file_bytes(const FmsProbe *probe);

extern void fms_probe_close(FmsProbe *probe);

#endif							/* FMS_PROBE_H */
