/*-------------------------------------------------------------------------
 *
 * layout.c
 *	  How two versions of the library tell that they share memory.
 *
 * The stamp is an area of its own, of a size that never changes: if the size
 * of an area differs, the server raises an error in every new connection.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "storage/lwlock.h"
#include "storage/shmem.h"

#include "base/counters.h"
#include "base/layout.h"

#define LAYOUT_MAGIC	0x464D534C	/* "FMSL" */

FmsLayout
fms_layout(uint64 stat_bytes, uint64 progress_bytes, uint32 io_bytes)
{
	FmsLayout	layout = {
		.magic = LAYOUT_MAGIC,
		.version = FMS_LAYOUT_VERSION,
		.counters_bytes = FMS_COUNTERS_BYTES,
		.io_bytes = io_bytes,
		.stat_bytes = stat_bytes,
		.progress_bytes = progress_bytes
	};

	return layout;
}

bool
fms_layout_is(const FmsLayout *layout, const FmsLayout *ours)
{
	return memcmp(layout, ours, sizeof(FmsLayout)) == 0;
}

bool
fms_layout_claim(const FmsLayout *ours)
{
	FmsLayout  *shared;
	bool		found;
	bool		claimed = true;

	LWLockAcquire(AddinShmemInitLock, LW_EXCLUSIVE);
	shared = ShmemInitStruct("fmsort layout", sizeof(FmsLayout), &found);
	if (!found)
		*shared = *ours;
	else
		claimed = fms_layout_is(shared, ours);
	LWLockRelease(AddinShmemInitLock);
	if (!claimed)
		ereport(LOG,
				(errmsg("shared memory of fmsort was made by another version of the library"),
				 errdetail("Sorts of this process are in neither fmsort_stat nor fmsort_progress."),
				 errhint("Restart the server.")));
	return claimed;
}
