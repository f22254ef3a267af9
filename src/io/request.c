/*-------------------------------------------------------------------------
 *
 * request.c
 *	  Requests: carrying out, completing.
 *
 * A request is one operation or several.  Nothing here raises an error.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <unistd.h>

#include "io/io.h"

void
fms_io_complete(FmsIoRequest *request, int result)
{
	Assert(request->state == FMS_IO_IN_FLIGHT);
	Assert(request->io->in_flight > 0);
	request->result = result;
	request->state = FMS_IO_DONE;
	request->io->in_flight--;
	if (request->group)
		(*request->group)--;
}

/*
 * Carries out the operation at that offset in the request.  Bytes moved, or
 * -errno.
 */
static int
transfer_operation(const FmsIoRequest *request, uint32 at_bytes)
{
	char	   *buffer = request->buffer + at_bytes;
	uint32		bytes = fms_io_operation_bytes(request, at_bytes);
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
		int			result = transfer_operation(request, moved);

		if (result < 0)
			return result;
		if ((uint32) result < fms_io_operation_bytes(request, moved))
			return moved + result;
		moved += result;
	}
	return moved;
}
