/*-------------------------------------------------------------------------
 *
 * io_sync.c
 *	  The I/O method without any asynchrony: submitting is doing.
 *
 * For systems without io_uring, and the reference for what a method has to
 * do.  A request is carried out before submit returns, so there is never
 * anything to poll for or to drain.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "io.h"

static int
sync_open(void)
{
	return 0;
}

static void
sync_submit(int fd, FmsIoRequest **requests, int n)
{
	int			i;

	for (i = 0; i < n; i++)
		fms_io_complete(requests[i], fms_io_transfer(fd, requests[i]));
}

static void
sync_poll(void)
{
}

static int
sync_wait(void)
{
	/* nothing can be in flight, so nobody can wait */
	return -EINVAL;
}

static void
sync_close(void)
{
}

const FmsIoMethod fms_io_sync_method = {
	.name = "sync",
	.submit_blocks = true,
	.open = sync_open,
	.submit = sync_submit,
	.poll = sync_poll,
	.wait = sync_wait,
	.close = sync_close
};
