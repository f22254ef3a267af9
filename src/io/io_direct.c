/*-------------------------------------------------------------------------
 *
 * io_direct.c
 *	  The alignment that direct transfers need.
 *
 * open() accepts O_DIRECT, but a transfer that is not aligned to the device's
 * sectors and the file system's demands fails with EINVAL.  Linux 6.1 reports
 * the alignment for some file systems (statx()).  Otherwise, reads of growing
 * size find it:
 *
 *	  |........ hole .........|page|
 *							    ^ read here
 *
 * They read a page that has been written, since any read of a hole succeeds.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "io/io.h"
#include "base/options.h"

/* Asks the kernel; false: it does not say. */
static bool
ask_kernel(int fd, uint32 *alignment)
{
#ifdef STATX_DIOALIGN
	struct statx about;

	memset(&about, 0, sizeof(about));
	if (statx(fd, "", AT_EMPTY_PATH, STATX_DIOALIGN, &about) == 0 &&
		(about.stx_mask & STATX_DIOALIGN) != 0)
	{
		*alignment = about.stx_dio_offset_align == 0 ? 0 :
			Max(about.stx_dio_offset_align, about.stx_dio_mem_align);
		return true;
	}
#endif
	return false;
}

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

	if (ask_kernel(fd, &alignment))
	{
		errno = EINVAL;
		return alignment <= FMS_IO_ALIGN_BYTES ? alignment : 0;
	}
	for (alignment = FMS_BLOCK_QUANTUM_BYTES; alignment <= FMS_IO_ALIGN_BYTES;
		 alignment *= 2)
	{
		if (serves(fd, page_offset_bytes, alignment))
			return alignment;
	}
	return 0;
}
