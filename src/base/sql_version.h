/*-------------------------------------------------------------------------
 *
 * sql_version.h
 *	  The error of a library that is newer than the extension's SQL objects.
 *
 *-------------------------------------------------------------------------
 */
#ifndef FMS_SQL_VERSION_H
#define FMS_SQL_VERSION_H

#include "access/tupdesc.h"

static inline void
fms_refuse_version(void)
{
	ereport(ERROR,
			(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
			 errmsg("the SQL objects of extension \"fmsort\" do not fit the library"),
			 errhint("Run ALTER EXTENSION fmsort UPDATE.")));
}

/* Raises that error if a function was defined with other columns. */
static inline void
fms_require_columns(TupleDesc desc, int ncolumns)
{
	if (desc->natts != ncolumns)
		fms_refuse_version();
}

#endif							/* FMS_SQL_VERSION_H */
