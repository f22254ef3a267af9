/*-------------------------------------------------------------------------
 *
 * io_pinned.c
 *	  Buffers whose pages the kernel holds for as long as the ring has them.
 *
 * For a direct transfer the kernel looks up the pages of its buffer, takes
 * hold of each, and lets go of them in the end.  A merge makes tens of
 * thousands of small transfers, always to the same pool.  So its buffers are
 * registered with the ring: looked up and held once, and named by a number
 * from then on.
 *
 *	  slot       0          1          2      ..      15
 *	         | pool     | stream   | (free) |    |  (free) |
 *	          ^ a request's buffer lies in here: transfer "fixed" in slot 0
 *
 * Held memory cannot be swapped, so the kernel limits how much of it a user
 * may have (RLIMIT_MEMLOCK, often 8 MB for all of a server's processes).
 * Some kernels count the rings, too, and a ring is worth far more than what
 * is saved here.  So half of the limit is for rings; of the other half each
 * process takes no more than it could if all that the server may have did the
 * same.  What is not to be had is simply not pinned: the transfers are the
 * same, only a little dearer.
 * Pinning touches every page, so it is for buffers that will be used
 * throughout, and pointless for the page cache, which is copied from.
 *
 * The table belongs to the process's one ring and goes with it.  Only the
 * process that made the ring may change it.  No palloc; no errors but an
 * interrupt while a buffer is added, since the others are called while an
 * error is being cleaned up.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <liburing.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include "base/interrupts.h"
#include "io/io_pinned.h"

#define SLOTS				16
/* Smaller buffers are not worth the call. */
#define SMALLEST_BYTES		((Size) 64 * 1024)
/* The kernel takes no larger ones. */
#define LARGEST_BYTES		((Size) 1024 * 1024 * 1024)
/* This part of what the user may lock is for buffers, of all processes. */
#define LIMIT_FRACTION		2

/* Since Linux 5.14; older headers do not know it, older kernels refuse it. */
#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

typedef struct FmsPinned
{
	char	   *buffer;			/* NULL: the slot is free */
	Size		bytes;
} FmsPinned;

static FmsPinned pinned[SLOTS];
static Size pinned_bytes = 0;	/* all of them together */
static bool can_pin = false;	/* the ring has a table for them */

void
fms_io_pinned_begin(struct io_uring *ring)
{
	memset(pinned, 0, sizeof(pinned));
	pinned_bytes = 0;
	can_pin = io_uring_register_buffers_sparse(ring, SLOTS) == 0;
}

/* May this process have so much more? */
static bool
within_limit(Size bytes)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_MEMLOCK, &limit) != 0)
		return false;
	return limit.rlim_cur == RLIM_INFINITY ||
		pinned_bytes + bytes <= limit.rlim_cur / LIMIT_FRACTION / MaxBackends;
}

/* Tells the ring what a slot holds from now on: no bytes, nothing. */
static bool
update_slot(struct io_uring *ring, int slot, char *buffer, Size bytes)
{
	struct iovec vector = {.iov_base = buffer,.iov_len = bytes};
	__u64		tag = 0;

	return io_uring_register_buffers_update_tag(ring, slot, &vector, &tag,
												1) == 1;
}

/*
 * Gets the memory of a buffer piece by piece.  Else pinning would get it, a
 * gigabyte in one call that cannot be interrupted.
 */
static void
populate(char *buffer, Size bytes)
{
	Size		done;

	for (done = 0; done < bytes; done += FMS_INTERRUPT_IO_BYTES)
	{
		CHECK_FOR_INTERRUPTS();
		(void) madvise(buffer + done,
					   Min(FMS_INTERRUPT_IO_BYTES, bytes - done),
					   MADV_POPULATE_WRITE);
	}
}

void
fms_io_pinned_add(struct io_uring *ring, char *buffer, Size bytes)
{
	int			slot;

	if (!can_pin || bytes < SMALLEST_BYTES || bytes > LARGEST_BYTES ||
		!within_limit(bytes))
		return;
	for (slot = 0; slot < SLOTS; slot++)
	{
		if (pinned[slot].buffer == NULL)
			break;
	}
	if (slot == SLOTS)
		return;
	populate(buffer, bytes);
	if (!update_slot(ring, slot, buffer, bytes))
		return;
	pinned[slot].buffer = buffer;
	pinned[slot].bytes = bytes;
	pinned_bytes += bytes;
}

void
fms_io_pinned_remove(struct io_uring *ring, const char *buffer)
{
	int			slot = fms_io_pinned_find(buffer, 1);

	if (slot < 0)
		return;
	Assert(pinned[slot].buffer == buffer);
	/* even if the ring keeps its hold, nobody uses the slot any more */
	if (!update_slot(ring, slot, NULL, 0))
		can_pin = false;
	pinned_bytes -= pinned[slot].bytes;
	pinned[slot].buffer = NULL;
}

int
fms_io_pinned_find(const char *buffer, Size bytes)
{
	int			slot;

	for (slot = 0; slot < SLOTS; slot++)
	{
		const FmsPinned *candidate = &pinned[slot];

		if (candidate->buffer != NULL && buffer >= candidate->buffer &&
			buffer + bytes <= candidate->buffer + candidate->bytes)
			return slot;
	}
	return -1;
}
