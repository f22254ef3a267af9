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

/* What identifies a tablespace's device; empty: unknown. */
typedef struct FmsTempTablespace
{
	char		path[MAXPGPATH];	/* see pg_tablespace_location() */
	char		device[32];		/* file system's identifier, hexadecimal */
	char		host[256];
} FmsTempTablespace;

extern void fms_temp_tablespace_find(Oid tablespace, FmsTempTablespace *found);

/* Calls function with its temporary files there, or else in the database's. */
extern void fms_temp_tablespace_call(Oid tablespace, void (*function) (void *),
									 void *arg);

/* Raises the reason as an error if a file is not in the tablespace. */
extern void fms_temp_tablespace_check(Oid tablespace, const char *path);

#endif							/* FMS_TEMP_TABLESPACE_H */
