/*-------------------------------------------------------------------------
 *
 * io_direct.h
 *	  What transfers past the page cache have to be aligned to.
 *
 *-------------------------------------------------------------------------
 */
#ifndef FMS_IO_DIRECT_H
#define FMS_IO_DIRECT_H

#include "postgres.h"

/*
 * Alignment in bytes that direct transfers of a file need: offset, length and
 * memory must be multiples of it.  It is at most FMS_IO_ALIGN_BYTES.  Returns
 * 0 if the file has no direct I/O, or none with that alignment; errno says
 * why.
 *
 * The descriptor is open with O_DIRECT.  A page that has been written begins
 * at page_offset_bytes.
 */
extern uint32 fms_io_direct_alignment(int fd, uint64 page_offset_bytes);

#endif							/* FMS_IO_DIRECT_H */
