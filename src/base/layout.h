/*-------------------------------------------------------------------------
 *
 * layout.h
 *	  How two versions of the library tell that they share memory.
 *
 * A library that is replaced on disk stays in the processes that have loaded
 * it, while new processes (a session's parallel workers, too) load the new
 * one.  Both see the same shared memory.  So that begins with a stamp, and a
 * process that finds another stamp than its own does not use the memory.
 *
 *-------------------------------------------------------------------------
 */
#ifndef FMS_LAYOUT_H
#define FMS_LAYOUT_H

#include "postgres.h"

/*
 * Number of the layout.  It changes with the meaning of fields in shared
 * memory (FmsCounters, FmsPlace, FmsStatShared, FmsIoShared, FmsWorkers);
 * sizes are part of the stamp.
 */
#ifndef FMS_LAYOUT_VERSION
#define FMS_LAYOUT_VERSION	2
#endif

/* A stamp, without padding: stamps are compared as bytes. */
typedef struct FmsLayout
{
	uint32		magic;
	uint32		version;
	uint32		counters_bytes;
	uint32		io_bytes;		/* of the area; 0: not in this memory */
	uint64		stat_bytes;		/* likewise */
	uint64		progress_bytes; /* likewise */
} FmsLayout;

StaticAssertDecl(sizeof(FmsLayout) == 32,
				 "a stamp must not be padded, and stays as it is");

/* This library's stamp, for areas of these sizes in bytes. */
extern FmsLayout fms_layout(uint64 stat_bytes, uint64 progress_bytes,
							uint32 io_bytes);

extern bool fms_layout_is(const FmsLayout *layout, const FmsLayout *ours);

/*
 * Stamps the server's shared memory, or compares the stamp that is there.
 * Returns false, and logs it, if this library must not use the areas.  Called
 * in the startup hook.
 */
extern bool fms_layout_claim(const FmsLayout *ours);

#endif							/* FMS_LAYOUT_H */
