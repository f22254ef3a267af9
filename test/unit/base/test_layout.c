/* links: base/layout */
/*
 * Shared memory that another version of the library has made is left alone.
 *
 * Seen to fail with: a stamp that was found not looked at; sizes left out of
 * it.
 */
#include "postgres.h"

#include "storage/lwlock.h"
#include "storage/shmem.h"

#include "base/layout.h"
#include "shim.h"

/* ---- of the server ---- */

LWLockPadded *MainLWLockArray = NULL;

static FmsLayout memory;
static bool there = false;

bool
LWLockAcquire(LWLock *lock, LWLockMode mode)
{
	return true;
}

void
LWLockRelease(LWLock *lock)
{
}

void *
ShmemInitStruct(const char *name, Size size, bool *found)
{
	*found = there;
	there = true;
	return size == sizeof(FmsLayout) ? &memory : NULL;
}

/* ---- */

int
main(void)
{
	FmsLayout	ours = fms_layout(1000, 2000, 16);
	FmsLayout	other = ours;
	int			logged;

	shim_ok(fms_layout_claim(&ours) && fms_layout_is(&memory, &ours),
			"the first one stamps the memory");
	logged = shim_logged;
	shim_ok(fms_layout_claim(&ours) && shim_logged == logged,
			"the same library may use it");

	other.version++;
	shim_ok(!fms_layout_claim(&other), "another version may not");
	shim_ok(shim_logged == logged + 1, "... and says so");
	other = ours;
	other.counters_bytes += 8;
	shim_ok(!fms_layout_claim(&other), "nor one with other counters");
	other = fms_layout(1000, 2008, 16);
	shim_ok(!fms_layout_claim(&other), "nor one with another area");
	other = fms_layout(992, 2000, 16);
	shim_ok(!fms_layout_claim(&other), "... either of them");
	other = fms_layout(1000, 2000, 24);
	shim_ok(!fms_layout_claim(&other), "... nor that of I/O");
	shim_ok(fms_layout_is(&memory, &ours), "and the stamp stays");
	return shim_done();
}
