/*-------------------------------------------------------------------------
 *
 * free_memory.h
 *	  How much memory the page cache may use for a spill.
 *
 *-------------------------------------------------------------------------
 */
#ifndef FMS_FREE_MEMORY_H
#define FMS_FREE_MEMORY_H

/*
 * Free memory and clean page cache count as available.  All zero if the
 * system has no /proc.
 */
typedef struct FmsFreeMemory
{
	uint64		machine_bytes;	/* available on the machine */
	uint64		available_bytes;	/* available to this process: to its
									 * smallest control group */
	uint64		dirty_bytes;	/* page cache of that group which is not
								 * written yet */
	uint64		writeback_bytes;	/* that may become dirty before the kernel
									 * begins to write */
} FmsFreeMemory;

/* Reads /proc and /sys, for some tens of microseconds.  Never fails. */
extern FmsFreeMemory fms_free_memory(void);

#endif							/* FMS_FREE_MEMORY_H */
