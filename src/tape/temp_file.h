/*-------------------------------------------------------------------------
 *
 * temp_file.h
 *	  A temporary file of PostgreSQL's, with direct I/O and asynchronous
 *	  transfers.
 *
 *-------------------------------------------------------------------------
 */
#ifndef FMS_TEMP_FILE_H
#define FMS_TEMP_FILE_H

#include "postgres.h"

#include "storage/fd.h"

#include "base/shared_files.h"
#include "io/io.h"

/* Fields are temp_file.c's own. */
typedef struct FmsTempFile
{
	File		file;			/* accounting, and buffered transfers */
	File		direct_file;	/* O_DIRECT on the same path, or 0 */
	uint64		direct_from_bytes;	/* offsets where direct I/O begins and */
	uint64		direct_upto_bytes;	/* ends; PG_UINT64_MAX: not yet */
	uint32		block_bytes;
	uint32		direct_alignment;	/* 0: not asked, or no direct I/O */
	uint64		charged_bytes;	/* the file's size, as fd.c knows it */
} FmsTempFile;

/* Fills in the session's temporary tablespaces.  Their number, 1 to `most`. */
extern int	fms_temp_file_tablespaces(Oid *tablespaces, int most);

/*
 * Opens a file of the current resource owner's, in the session's next
 * temporary tablespace.  Transfers are of multiples of block_bytes.  shared:
 * where other processes will find the file, or NULL.
 */
extern void fms_temp_file_open(FmsTempFile *file, uint32 block_bytes,
							   const FmsSharedFiles *shared);

/* Opens a file of another process, which has closed it; written: as then. */
extern void fms_temp_file_adopt(FmsTempFile *file, const FmsTempFile *written,
								const FmsSharedFiles *shared);

/* Closes the file, and deletes it unless it is shared: its set does that. */
extern void fms_temp_file_close(FmsTempFile *file);

/*
 * Transfers from end_bytes on use direct I/O from now on, or the page cache.
 * False, with nothing changed, if the file system has no direct I/O for these
 * blocks (errno says why), or if direct I/O has ended before.
 */
extern bool fms_temp_file_set_direct(FmsTempFile *file, uint64 end_bytes,
									 bool direct);

/* Raises the error for set_direct() having failed. */
extern void fms_temp_file_report_no_direct(const FmsTempFile *file)
			__attribute__((noreturn));

/* Do transfers at that offset use direct I/O? */
static inline bool
fms_temp_file_is_direct_at(const FmsTempFile *file, uint64 offset_bytes)
{
	return offset_bytes >= file->direct_from_bytes &&
		offset_bytes < file->direct_upto_bytes;
}

/* The descriptor for that offset, or -1.  Valid until fd.c is called again. */
extern int	fms_temp_file_fd(const FmsTempFile *file, uint64 offset_bytes);

/* Reopens it, if necessary; fd.c may close another one for that. */
extern void fms_temp_file_reopen(FmsTempFile *file, uint64 offset_bytes);

/* Charges the file up to upto_bytes; raises temp_file_limit's error. */
extern void fms_temp_file_reserve(FmsTempFile *file, uint64 upto_bytes);

/* Gives up what is reserved behind end_bytes.  Nothing may be in flight. */
extern void fms_temp_file_trim(FmsTempFile *file, uint64 end_bytes);

#endif							/* FMS_TEMP_FILE_H */
