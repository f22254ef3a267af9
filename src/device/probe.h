/*-------------------------------------------------------------------------
 *
 * probe.h
 *	  Measures a device through a temporary file.
 *
 *-------------------------------------------------------------------------
 */
#ifndef FMS_PROBE_H
#define FMS_PROBE_H

#include "base/device.h"
#include "base/options.h"

/* One measurement. */
typedef struct FmsProbePoint
{
	FmsPattern	pattern;
	uint32		block_bytes;
	uint32		depth;			/* requests in flight at once */
	double		mb_per_s;		/* result, MB of 1,000,000 bytes; 0: none */
} FmsProbePoint;

typedef struct FmsProbe FmsProbe;

/*
 * Makes an empty temporary file in a temporary tablespace or the database's
 * own, under the current resource owner.  Raises an error if that fails, or if
 * direct I/O is requested and the file system has none.  Memory comes from the
 * current context.  On ERROR the probe may be forgotten.
 */
extern FmsProbe *fms_probe_open(Oid tablespace, FmsIoChoice io_method,
								bool direct);

/* Are the point's block size and depth possible here? */
extern bool fms_probe_can(const FmsProbe *probe, const FmsProbePoint *point);

/*
 * Measures a point for `seconds`, or longer if 5/4 of point->depth requests
 * take longer.  FMS_PATTERN_APPEND stops when the file has file_bytes; the
 * other patterns need a file.
 */
extern void fms_probe_measure(FmsProbe *probe, double seconds,
							  uint64 file_bytes, FmsProbePoint *point);

extern uint64 fms_probe_file_bytes(const FmsProbe *probe);
extern const char *fms_probe_io_method(const FmsProbe *probe);
extern void fms_probe_close(FmsProbe *probe);

#endif							/* FMS_PROBE_H */
