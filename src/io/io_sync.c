/*-------------------------------------------------------------------------
 *
 * io_sync.c
 *	  The synchronous I/O method: submitting a request carries it out, but a
 *	  read through the page cache is only announced to the kernel.
 *
 * For systems without io_uring, and the reference for a method's contract.
 * Nothing is ever in flight, so there is nothing to poll or to wait for.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "io/io.h"

static void
sync_submit(FmsIoRequest **requests, int n)
{
	for (int i = 0; i < n; i++)
	{
		if (requests[i]->cached && !requests[i]->is_write)
			fms_io_announce(requests[i]);
		else
			fms_io_complete(requests[i], fms_io_transfer(requests[i]));
	}
}

const FmsIoMethod fms_io_sync_method = {
	.name = "sync",
	.submit_blocks = true,
	.submit = sync_submit
};
