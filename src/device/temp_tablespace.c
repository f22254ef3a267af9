/*-------------------------------------------------------------------------
 *
 * temp_tablespace.c
 *	  Temporary files in a tablespace that is not the session's choice.
 *
 * fd.c chooses among the temporary tablespaces, one file after the other, so
 * for the length of a call there is just one of them.  (Setting
 * temp_tablespaces would do as well, but for whoever has no right to do that,
 * and it would look a name up that is known already.)
 *
 * Memory: fd.c keeps the pointers, so both lists are the transaction's.  On
 * ERROR the session's list is in force again before anybody else makes a file.
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

/* fd.c's list, which says how long it is only if all of it was asked for. */
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

/*
 * Where a file cannot be made in the tablespace that was chosen, fd.c makes it
 * in the database's own, silently.  Then find out why it could not.
 */
void
fms_temp_tablespace_check(Oid tablespace, const char *path)
{
	char		directory[MAXPGPATH];
	int			error;

	TempTablespacePath(directory, tablespace);
	if (strncmp(path, directory, strlen(directory)) == 0 &&
		path[strlen(directory)] == '/')
		return;

	error = EIO;
	if (MakePGDirectory(directory) < 0 && errno != EEXIST)
		error = errno;
	else if (access(directory, W_OK | X_OK) != 0)
		error = errno;
	errno = error;
	ereport(ERROR,
			(errcode_for_file_access(),
			 errmsg("could not create a temporary file in tablespace \"%s\": %m",
					get_tablespace_name(tablespace)),
			 errdetail("The directory is \"%s\".", directory)));
}

/*
 * A file system's identifier outlives a restart where the file system has a
 * UUID; where it has none, the kernel makes one of the device's number.
 */
static void
find_device(const char *directory, FmsTempTablespace *place)
{
	struct statvfs system;
	struct stat file;

	if (statvfs(directory, &system) == 0 && system.f_fsid != 0)
		snprintf(place->device, sizeof(place->device), "%lx",
				 (unsigned long) system.f_fsid);
	else if (stat(directory, &file) == 0)
		snprintf(place->device, sizeof(place->device), "%lx",
				 (unsigned long) file.st_dev);
}

void
fms_temp_tablespace_find(Oid tablespace, FmsTempTablespace *place)
{
	char		directory[MAXPGPATH] = "base";

	/* the names end where they are cut, too */
	memset(place, 0, sizeof(*place));
	if (tablespace != DEFAULTTABLESPACE_OID)
	{
		snprintf(directory, sizeof(directory), "pg_tblspc/%u", tablespace);
		if (readlink(directory, place->location,
					 sizeof(place->location) - 1) < 0)
			place->location[0] = '\0';
	}
	find_device(directory, place);
	if (gethostname(place->host, sizeof(place->host) - 1) != 0)
		place->host[0] = '\0';
}
