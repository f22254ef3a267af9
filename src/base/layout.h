/*-------------------------------------------------------------------------
 *
 * layout.h
 *	  What two libraries share in memory, and how they tell that they agree.
 *
 * A library that is replaced on disk stays in the processes that have loaded
 * it, while new processes load the new one: a session's parallel workers do.
 * Both then see the same shared memory.  So each area begins with a stamp, and
 * whoever finds another stamp than its own leaves the area alone.
 *
 *-------------------------------------------------------------------------
 */
#ifndef FMS_LAYOUT_H
#define FMS_LAYOUT_H

#include "postgres.h"

/*
 * Another number for each change of a struct in shared memory (FmsCounters,
 * FmsPlace, FmsStatShared, FmsWorkers) that leaves its size as it is, or of
 * what its fields mean.  Sizes are part of the stamp.
 */
#ifndef FMS_LAYOUT_VERSION
#define FMS_LAYOUT_VERSION	1
#endif

/* Sizes in bytes.  Without padding: stamps are compared as bytes. */
typedef struct FmsLayout
{
	uint32		magic;
	uint32		version;
	uint64		counters_bytes;
	uint64		stat_bytes;		/* of the area; 0: not in this memory */
	uint64		progress_bytes; /* likewise */
} FmsLayout;

StaticAssertDecl(sizeof(FmsLayout) == 32,
				 "a stamp must not be padded, and stays as it is");

/* This library's stamp. */
extern FmsLayout fms_layout(uint64 stat_bytes, uint64 progress_bytes);

/* Is that one the same? */
extern bool fms_layout_is(const FmsLayout *layout, const FmsLayout *ours);

/*
 * Stamps the server's shared memory, or looks at the stamp that is there.
 * Returns whether this library may use the areas; logs why not.  Under
 * AddinShmemInitLock's rules: in the startup hook.
 */
extern bool fms_layout_claim(const FmsLayout *ours);

#endif							/* FMS_LAYOUT_H */
