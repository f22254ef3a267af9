/*-------------------------------------------------------------------------
 *
 * temp_tablespace.c
 *	  Temporary files in a tablespace that is not the session's choice.
 *
 * For the length of a call, fd.c's list has one temporary tablespace.  fd.c
 * keeps the pointer, so the lists live as long as the transaction.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "catalog/pg_tablespace.h"
#include "commands/tablespace.h"
#include "miscadmin.h"
#include "storage/fd.h"
#include "utils/memutils.h"

#include "device/temp_tablespace.h"

/* A copy of fd.c's list; its length shows only if all of it fits. */
static Oid *
current_tablespaces(int *n)
{
	Oid		   *list = NULL;
	int			size = 8;

	do
	{
		size *= 2;
		list = MemoryContextAlloc(TopTransactionContext, size * sizeof(Oid));
		*n = GetTempTablespaces(list, size);
	} while (*n == size);
	return list;
}

void
fms_temp_tablespace_call(Oid tablespace, void (*function) (void *), void *arg)
{
	Oid		   *chosen;
	Oid		   *before;
	int			nbefore;

	PrepareTempTablespaces();
	chosen = MemoryContextAlloc(TopTransactionContext, sizeof(Oid));
	*chosen = tablespace == MyDatabaseTableSpace ? InvalidOid : tablespace;
	before = current_tablespaces(&nbefore);
	SetTempTablespaces(chosen, 1);
	PG_TRY();
	{
		function(arg);
	}
	PG_FINALLY();
	{
		SetTempTablespaces(before, nbefore);
	}
	PG_END_TRY();
}

void
fms_temp_tablespace_check(Oid tablespace, const char *path)
{
	char		directory[MAXPGPATH];

	TempTablespacePath(directory, tablespace);
	if (strncmp(path, directory, strlen(directory)) == 0 &&
		path[strlen(directory)] == '/')
		return;

	/* fd.c fell back silently: find out why */
	if ((MakePGDirectory(directory) == 0 || errno == EEXIST) &&
		access(directory, W_OK | X_OK) == 0)
		errno = EIO;
	ereport(ERROR,
			(errcode_for_file_access(),
			 errmsg("could not create a temporary file in tablespace \"%s\": %m",
					get_tablespace_name(tablespace)),
			 errdetail("The directory is \"%s\".", directory)));
}

void
fms_temp_tablespace_find(Oid tablespace, FmsTempTablespace *found)
{
	char		directory[MAXPGPATH] = "base";
	struct statvfs system;
	struct stat file;

	memset(found, 0, sizeof(*found));
	if (tablespace != DEFAULTTABLESPACE_OID)
	{
		snprintf(directory, sizeof(directory), "pg_tblspc/%u", tablespace);
		if (readlink(directory, found->path, sizeof(found->path) - 1) < 0)
			found->path[0] = '\0';
	}
	/* the device's number may change when the machine starts again */
	if (statvfs(directory, &system) == 0 && system.f_fsid != 0)
		snprintf(found->device, sizeof(found->device), "%lx",
				 (unsigned long) system.f_fsid);
	else if (stat(directory, &file) == 0)
		snprintf(found->device, sizeof(found->device), "%lx",
				 (unsigned long) file.st_dev);
	if (gethostname(found->host, sizeof(found->host) - 1) != 0)
		found->host[0] = '\0';
}
