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

/*
 * Calls that function.  The temporary files that it makes are in that
 * tablespace, or, where fd.c cannot make one there, in the database's own.
 */
extern void fms_place_call(Oid tablespace, void (*function) (void *),
						   void *arg);

#endif							/* FMS_PLACE_H */
