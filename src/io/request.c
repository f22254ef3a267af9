/*-------------------------------------------------------------------------
 *
 * request.c
 *	  Carries requests out, completes them, finds direct I/O's alignment.
 *
 * Nothing here raises an error.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <fcntl.h>
#include <sys/uio.h>
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

void
fms_io_announce(FmsIoRequest *request)
{
	Assert(request->state == FMS_IO_IN_FLIGHT && !request->is_write);
	/* if this fails, nothing is read ahead */
	(void) posix_fadvise(request->fd, (off_t) request->offset_bytes,
						 (off_t) request->length_bytes, POSIX_FADV_WILLNEED);
	request->state = FMS_IO_ANNOUNCED;
	request->io->in_flight--;
}

bool
fms_io_transfer_cached(const FmsIoRequest *request)
{
	struct iovec piece = {request->buffer, request->length_bytes};

	return preadv2(request->fd, &piece, 1, (off_t) request->offset_bytes,
				   RWF_NOWAIT) == (ssize_t) request->length_bytes;
}

/* Carries out the operation at that offset: bytes moved, or -errno. */
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

/* ---- the alignment of direct transfers ---- */

/* Does a read succeed that is aligned to this and not to more? */
static bool
serves(int fd, uint64 page_offset_bytes, uint32 alignment)
{
	static char page[FMS_IO_ALIGN_BYTES]
		pg_attribute_aligned(FMS_IO_ALIGN_BYTES);
	uint32		at = alignment % FMS_IO_ALIGN_BYTES;
	ssize_t		got;

	do
	{
		got = pread(fd, page + at, alignment,
					(off_t) (page_offset_bytes + at));
	} while (got < 0 && errno == EINTR);
	if (got >= 0 && got != (ssize_t) alignment)
		errno = EINVAL;
	return got == (ssize_t) alignment;
}

/*
 * open() accepts O_DIRECT, but a transfer that is not aligned to the device's
 * sectors and the file system's demands fails with EINVAL.  Reads of growing
 * size find the alignment.  They read a page that has been written, since any
 * read of a hole succeeds.
 */
uint32
fms_io_direct_alignment(int fd, uint64 page_offset_bytes)
{
	uint32		alignment;

	Assert(page_offset_bytes % FMS_IO_ALIGN_BYTES == 0);

	for (alignment = FMS_BLOCK_QUANTUM_BYTES; alignment <= FMS_IO_ALIGN_BYTES;
		 alignment *= 2)
	{
		if (serves(fd, page_offset_bytes, alignment))
			return alignment;
	}
	return 0;
}
