/*-------------------------------------------------------------------------
 *
 * temp_tablespace.h
 *	  Temporary files in a tablespace that is not the session's choice.
 *
 *-------------------------------------------------------------------------
 */
#ifndef FMS_TEMP_TABLESPACE_H
#define FMS_TEMP_TABLESPACE_H

#include "postgres.h"

/* Where a tablespace is.  Empty: not known. */
typedef struct FmsTempTablespace
{
	char		location[MAXPGPATH];	/* as pg_tablespace_location() says */
	char		device[32];		/* the file system's identifier, hexadecimal */
	char		host[256];		/* this machine's name */
} FmsTempTablespace;

extern void fms_temp_tablespace_find(Oid tablespace, FmsTempTablespace *place);

/*
 * Calls that function.  The temporary files that it makes are in that
 * tablespace, or, where fd.c cannot make one there, in the database's own.
 */
extern void fms_temp_tablespace_call(Oid tablespace, void (*function) (void *),
						   void *arg);

/* Raises an error if that file is not in the tablespace, which says why. */
extern void fms_temp_tablespace_check(Oid tablespace, const char *path);

#endif							/* FMS_TEMP_TABLESPACE_H */
