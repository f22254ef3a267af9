/*-------------------------------------------------------------------------
 *
 * temp_file.c
 *	  A temporary file of PostgreSQL's, with direct I/O and asynchronous
 *	  transfers.
 *
 * OpenTemporaryFile() gives us temp_tablespaces, temp_file_limit,
 * log_temp_files, pg_stat_database and deletion.  Two things are added here.
 *
 * Direct I/O.  fd.c reopens a file with its first flags.  So a second virtual
 * file on the same path has O_DIRECT.  A file may turn to direct I/O once, and
 * back once.  Each offset is transferred as it was written.
 *
 *	  |<-- page cache -->|<-------- direct -------->|<-- page cache -->|
 *	                     ^ direct_from              ^ direct_upto
 *
 * Accounting.  fd.c charges only FileWrite().  So the file reserves space by
 * writing its last page, and asynchronous writes go below the end that fd.c
 * knows.
 *
 *	  |<------- written ------->|<-- reserved -->|
 *	  |  run 0  |  run 1  | ... |          |page |
 *	                                             ^ charged
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <fcntl.h>
#include <unistd.h>

#include "commands/tablespace.h"
#include "miscadmin.h"
#include "utils/wait_event.h"

#include "base/compat.h"
#include "tape/tape.h"

/* Bounds of a reservation, which is 1/32 of the file. */
#define RESERVE_MIN_BYTES	((uint64) 64 * 1024)
#define RESERVE_MAX_BYTES	((uint64) 8 * 1024 * 1024)

/* Kind of a file in a set (base/options.h). */
#define TAPE_NAME			"tape"

int
fms_temp_file_tablespaces(Oid *tablespaces, int most)
{
	int			n;

	PrepareTempTablespaces();
	n = GetTempTablespaces(tablespaces, most);
	if (n == 0)
		tablespaces[n++] = InvalidOid;
	for (int i = 0; i < n; i++)
		if (!OidIsValid(tablespaces[i]))
			tablespaces[i] = MyDatabaseTableSpace;
	return n;
}

void
fms_temp_file_open(FmsTempFile *file, uint32 block_bytes,
				   const FmsSharedFiles *shared)
{
	char		name[FMS_SHARED_NAME_BYTES];

	*file = (FmsTempFile) {
		.block_bytes = block_bytes,
		.direct_from_bytes = PG_UINT64_MAX,
		.direct_upto_bytes = PG_UINT64_MAX
	};
	PrepareTempTablespaces();
	if (shared == NULL)
		file->file = OpenTemporaryFile(false);
	else
		file->file = FileSetCreate(shared->set,
								   fms_shared_file_name(shared, TAPE_NAME,
														name));
}

/* Opens a virtual file on the path, which exists. */
static File
open_again(const char *path, int flags)
{
	File		file = PathNameOpenTemporaryFile(path, O_RDWR | flags);

	if (file <= 0)
		elog(ERROR, "sort temporary file \"%s\" has disappeared", path);
	return file;
}

void
fms_temp_file_adopt(FmsTempFile *file, const FmsTempFile *written,
					const FmsSharedFiles *shared)
{
	char		name[FMS_SHARED_NAME_BYTES];

	*file = *written;
	(void) fms_shared_file_name(shared, TAPE_NAME, name);
	file->file = FileSetOpen(shared->set, name, O_RDWR);
	if (file->file <= 0)
		elog(ERROR, "shared sort temporary file \"%s\" has disappeared",
			 name);
	if (written->direct_file > 0)
		file->direct_file = open_again(FilePathName(file->file), PG_O_DIRECT);
}

void
fms_temp_file_close(FmsTempFile *file)
{
	if (file->direct_file > 0)
		FileClose(file->direct_file);
	FileClose(file->file);
}

static File
file_at(const FmsTempFile *file, uint64 offset_bytes)
{
	return fms_temp_file_is_direct_at(file, offset_bytes) ?
		file->direct_file : file->file;
}

int
fms_temp_file_fd(const FmsTempFile *file, uint64 offset_bytes)
{
	return FileGetRawDesc(file_at(file, offset_bytes));
}

/* FileSize() is the cheapest call that makes fd.c reopen a file. */
void
fms_temp_file_reopen(FmsTempFile *file, uint64 offset_bytes)
{
	File		which = file_at(file, offset_bytes);

	if (FileGetRawDesc(which) < 0 && FileSize(which) < 0)
		ereport(ERROR,
				(errcode_for_file_access(),
				 errmsg("could not reopen sort temporary file \"%s\": %m",
						FilePathName(file->file))));
	Assert(FileGetRawDesc(which) >= 0);
}

void
fms_temp_file_reserve(FmsTempFile *file, uint64 upto_bytes)
{
	static const PGAlignedXLogBlock zeroes;
	uint64		charged = file->charged_bytes;
	uint64		more = Max(RESERVE_MIN_BYTES,
						   Min(RESERVE_MAX_BYTES, charged / 32));
	uint64		page;

	StaticAssertStmt(sizeof(zeroes) >= FMS_IO_ALIGN_BYTES,
					 "one page of zeroes is needed");

	if (upto_bytes <= charged)
		return;
	page = FMS_IO_ALIGN(Max(upto_bytes, charged + more)) - FMS_IO_ALIGN_BYTES;

	errno = 0;
	if (FileWrite(file->file, (char *) zeroes.data, FMS_IO_ALIGN_BYTES, page,
				  WAIT_EVENT_BUFFILE_WRITE) != FMS_IO_ALIGN_BYTES)
		ereport(ERROR,
				(errcode_for_file_access(),
				 errmsg("could not extend sort temporary file \"%s\": %m",
						FilePathName(file->file))));

	/*
	 * Have the file system allocate space for direct writes: else each of
	 * them does it, with the file locked.  If this fails, so may the write.
	 */
	if (charged < page && fms_temp_file_is_direct_at(file, page))
		(void) fallocate(FileGetRawDesc(file->file), 0, (off_t) charged,
						 (off_t) (page - charged));
	file->charged_bytes = page + FMS_IO_ALIGN_BYTES;
}

void
fms_temp_file_trim(FmsTempFile *file, uint64 end_bytes)
{
	if (file->charged_bytes == end_bytes)
		return;
	if (FileTruncate(file->file, end_bytes, WAIT_EVENT_BUFFILE_TRUNCATE) != 0)
		ereport(ERROR,
				(errcode_for_file_access(),
				 errmsg("could not truncate sort temporary file \"%s\": %m",
						FilePathName(file->file))));
	file->charged_bytes = end_bytes;
}

/* Opens the direct file.  False, with errno set, if there is no direct I/O. */
static bool
open_direct(FmsTempFile *file)
{
	char	   *path = FilePathName(file->file);
	int			probe;
	int			error;

	/* fd.c raises an error if its open fails, so ask the file system first */
	fms_temp_file_reserve(file, FMS_IO_ALIGN_BYTES);
	probe = OpenTransientFile(path, O_RDWR | PG_O_DIRECT | PG_BINARY);
	if (probe < 0)
		return false;
	file->direct_alignment =
		fms_io_direct_alignment(probe,
								file->charged_bytes - FMS_IO_ALIGN_BYTES);
	error = file->direct_alignment == 0 ? errno : EINVAL;
	CloseTransientFile(probe);
	if (file->direct_alignment == 0 ||
		file->block_bytes % file->direct_alignment != 0)
	{
		errno = error;
		return false;
	}

	file->direct_file = open_again(path, PG_O_DIRECT);
	return true;
}

bool
fms_temp_file_set_direct(FmsTempFile *file, uint64 end_bytes, bool direct)
{
	if (fms_temp_file_is_direct_at(file, end_bytes) == direct)
		return true;
	if (!direct)
		file->direct_upto_bytes = end_bytes;
	else if (file->direct_file <= 0 && open_direct(file))
		file->direct_from_bytes = end_bytes;
	else
		return false;
	return true;
}

void
fms_temp_file_report_no_direct(const FmsTempFile *file)
{
	int			error = errno;
	uint32		alignment = file->direct_alignment;

	ereport(ERROR,
			(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
			 errmsg("direct I/O is not possible for sort temporary file \"%s\" with blocks of %u bytes",
					FilePathName(file->file), file->block_bytes),
			 alignment > 0 ?
			 errdetail("The device transfers multiples of %u bytes.",
					   alignment) :
			 errdetail("The file system refuses it: %s.", strerror(error)),
			 alignment > 0 ?
			 errhint("Set fmsort.direct_io to \"auto\", or use blocks of a multiple of %u bytes. If fmsort.block_size is automatic, raise work_mem or lower fmsort.assist_blocks.",
					 alignment) :
			 errhint("Set fmsort.direct_io to \"auto\", or point temp_tablespaces to another file system.")));
}
