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

#include "io/io.h"

/* Several reads in one call: they go on where the one before ends. */
static int
read_joined(int fd, const struct iovec *vector, int n, uint64 offset_bytes)
{
	ssize_t		moved;

	do
	{
		moved = preadv(fd, vector, n, (off_t) offset_bytes);
	} while (moved < 0 && errno == EINTR);
	return moved < 0 ? -errno : (int) moved;
}

static int
sync_open(void)
{
	return 0;
}

static void
sync_submit(FmsIoRequest **requests, int n)
{
	struct iovec vector[FMS_IO_PARTS_MAX];

	while (n > 0)
	{
		int			joined = fms_io_join(requests, n, vector);

		fms_io_complete(requests[0], joined == 1 ?
						fms_io_transfer(requests[0]) :
						read_joined(requests[0]->fd, vector, joined,
									requests[0]->offset_bytes));
		requests += joined;
		n -= joined;
	}
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
