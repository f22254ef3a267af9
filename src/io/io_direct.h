/*-------------------------------------------------------------------------
 *
 * io_direct.h
 *	  The alignment that direct transfers need.
 *
 *-------------------------------------------------------------------------
 */
#ifndef FMS_IO_DIRECT_H
#define FMS_IO_DIRECT_H

#include "postgres.h"

/*
 * Returns the alignment in bytes of offset, length and memory that direct
 * transfers of the file need, at most FMS_IO_ALIGN_BYTES.  0: the file has no
 * direct I/O with that alignment; errno says why.
 *
 * fd is open with O_DIRECT.  The page at page_offset_bytes has been written.
 */
extern uint32 fms_io_direct_alignment(int fd, uint64 page_offset_bytes);

#endif							/* FMS_IO_DIRECT_H */
