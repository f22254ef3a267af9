/*-------------------------------------------------------------------------
 *
 * request.c
 *	  Requests: joining neighbours, carrying out, completing.
 *
 * Reads of adjacent ranges that are submitted together become one operation
 * with a vector of their buffers; its result is divided among them:
 *
 *	  requests	[0, 8 kB) [8, 16 kB) [16, 24 kB)	one read of 24 kB
 *	  result	20 kB: 8 kB, 8 kB, 4 kB
 *
 * A request may also be cut into pieces, an operation each.
 *
 * Nothing here raises an error.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <unistd.h>

#include "io/io.h"

/* Does next read the range behind request's? */
static bool
is_neighbour(const FmsIoRequest *request, const FmsIoRequest *next)
{
	return request->fd == next->fd &&
		!request->is_write && !next->is_write &&
		request->piece_bytes == 0 && next->piece_bytes == 0 &&
		request->offset_bytes + request->length_bytes == next->offset_bytes;
}

int
fms_io_join(FmsIoRequest **requests, int n, struct iovec *vector)
{
	Size		bytes = 0;
	int			i;

	Assert(n > 0);
	n = Min(n, FMS_IO_PARTS_MAX);
	for (i = 0; i < n; i++)
	{
		FmsIoRequest *request = requests[i];

		if (i > 0)
		{
			if (!is_neighbour(requests[i - 1], request) ||
				bytes + request->length_bytes > FMS_IO_JOINED_MAX_BYTES)
				break;
			requests[i - 1]->next_part = request;
		}
		vector[i].iov_base = request->buffer;
		vector[i].iov_len = request->length_bytes;
		bytes += request->length_bytes;
	}
	return i;
}

void
fms_io_complete(FmsIoRequest *request, int result)
{
	int			left = result;

	while (request)
	{
		FmsIoRequest *next = request->next_part;

		Assert(request->state == FMS_IO_IN_FLIGHT);
		Assert(request->io->in_flight > 0);
		request->result = Min(left, (int) request->length_bytes);
		request->state = FMS_IO_DONE;
		request->io->in_flight--;
		if (request->group)
			(*request->group)--;
		if (left >= 0)
		{
			/* parts that a short operation did not reach: try again */
			left -= request->result;
			if (left == 0)
				left = -EAGAIN;
		}
		request = next;
	}
}

/* Moves the piece at that offset in the request.  Bytes moved, or -errno. */
static int
transfer_piece(const FmsIoRequest *request, uint32 at_bytes)
{
	char	   *buffer = request->buffer + at_bytes;
	uint32		bytes = fms_io_piece_bytes(request, at_bytes);
	off_t		offset = (off_t) (request->offset_bytes + at_bytes);
	ssize_t		moved;

	do
	{
		if (request->is_write)
			moved = pwrite(request->fd, buffer, bytes, offset);
		else
			moved = pread(request->fd, buffer, bytes, offset);
	} while (moved < 0 && errno == EINTR);
	return moved < 0 ? -errno : (int) moved;
}

int
fms_io_transfer(const FmsIoRequest *request)
{
	uint32		moved = 0;

	while (moved < request->length_bytes)
	{
		int			result = transfer_piece(request, moved);

		if (result < 0)
			return result;
		if ((uint32) result < fms_io_piece_bytes(request, moved))
			return moved + result;
		moved += result;
	}
	return moved;
}
