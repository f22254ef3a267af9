/*-------------------------------------------------------------------------
 *
 * compression.h
 *	  Whether what a sort spills is compressed.
 *
 *-------------------------------------------------------------------------
 */
#ifndef FMS_COMPRESSION_H
#define FMS_COMPRESSION_H

#include "postgres.h"

#include "base/counters.h"
#include "device/medium.h"

/* What was compressed so far, and its size then. */
typedef struct FmsCompressed
{
	uint64		record_bytes;
	uint64		chunk_bytes;
} FmsCompressed;

typedef struct FmsCompression
{
	/* read by the owner */
	bool		on;				/* the next run is compressed */
	FmsCompressReason reason;

	/* its own */
	bool		settled;		/* by the setting, or by what it gained */
	double		expected_bytes; /* spilled in all, as the planner thinks */
} FmsCompression;

/* Decides about the first run, whose medium is known.  Never fails. */
extern void fms_compression_begin(FmsCompression *compression,
								  const FmsOptions *options,
								  const FmsMedium *medium);

/* A run has been written: decides about the next one. */
extern void fms_compression_next_run(FmsCompression *compression,
									 const FmsMedium *medium,
									 const FmsTapeUse *use,
									 const FmsCompressed *done);

#endif							/* FMS_COMPRESSION_H */
