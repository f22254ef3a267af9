/*-------------------------------------------------------------------------
 *
 * io_sync.c
 *	  The synchronous I/O method: submit carries requests out.
 *
 * For systems without io_uring, and the reference for a method's contract.
 * Nothing is ever in flight, so there is nothing to poll or to wait for.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "io/io.h"

/* Reads n buffers with one call.  Bytes moved, or -errno. */
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

const FmsIoMethod fms_io_sync_method = {
	.name = "sync",
	.submit_blocks = true,
	.submit = sync_submit
};
