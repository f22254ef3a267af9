/*-------------------------------------------------------------------------
 *
 * io_direct.c
 *	  The alignment that direct transfers need.
 *
 * open() accepts O_DIRECT, but a transfer that is not aligned to the device's
 * sectors and the file system's demands fails with EINVAL.  Reads of growing
 * size find the alignment:
 *
 *	  |........ hole .........|page|
 *							    ^ read here
 *
 * They read a page that has been written, since any read of a hole succeeds.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <unistd.h>

#include "io/io.h"
#include "base/options.h"

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
