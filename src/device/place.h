/*-------------------------------------------------------------------------
 *
 * place.h
 *	  Temporary files in a tablespace that is not the session's choice.
 *
 *-------------------------------------------------------------------------
 */
#ifndef FMS_PLACE_H
#define FMS_PLACE_H

#include "postgres.h"

/* Where a tablespace is.  Empty: not known. */
typedef struct FmsPlace
{
	char		location[MAXPGPATH];	/* as pg_tablespace_location() says */
	char		device[32];		/* the file system's identifier, hexadecimal */
	char		host[256];		/* this machine's name */
} FmsPlace;

extern void fms_place_find(Oid tablespace, FmsPlace *place);

/*
 * Calls that function.  The temporary files that it makes are in that
 * tablespace, or, where fd.c cannot make one there, in the database's own.
 */
extern void fms_place_call(Oid tablespace, void (*function) (void *),
						   void *arg);

/* Raises an error if that file is not in the tablespace, which says why. */
extern void fms_place_check(Oid tablespace, const char *path);

#endif							/* FMS_PLACE_H */
