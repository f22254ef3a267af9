/*-------------------------------------------------------------------------
 *
 * shared_files.h
 *	  The temporary files that the participants of a parallel sort share.
 *
 * The server deletes the set when the last process has left it.  The leader
 * opens the others' files when these are complete.
 *
 *-------------------------------------------------------------------------
 */
#ifndef FMS_SHARED_FILES_H
#define FMS_SHARED_FILES_H

#include "storage/fileset.h"

/* The participant that merges. */
#define FMS_LEADER			0

typedef struct FmsSharedFiles
{
	FileSet    *set;
	uint32		salt;			/* of all checksums, in all files */
	int			participant;	/* FMS_LEADER, or 1 + a worker's number */
} FmsSharedFiles;

/* Length of a file's name in the set, with its end, at most. */
#define FMS_SHARED_NAME_BYTES	32

/* The name of the participant's file of that kind. */
static inline const char *
fms_shared_file_name(const FmsSharedFiles *files, const char *kind,
					 char name[FMS_SHARED_NAME_BYTES])
{
	snprintf(name, FMS_SHARED_NAME_BYTES, "%s.%d", kind, files->participant);
	return name;
}

/* Are they the files of a process that hands them over to the leader? */
static inline bool
fms_shared_files_are_workers(const FmsSharedFiles *files)
{
	return files != NULL && files->participant != FMS_LEADER;
}

#endif							/* FMS_SHARED_FILES_H */
