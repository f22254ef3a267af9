/*-------------------------------------------------------------------------
 *
 * place.c
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

#include "commands/tablespace.h"
#include "miscadmin.h"
#include "storage/fd.h"
#include "utils/memutils.h"

#include "place.h"

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
fms_place_call(Oid tablespace, void (*function) (void *), void *arg)
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
