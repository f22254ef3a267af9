/*-------------------------------------------------------------------------
 *
 * leftovers.c
 *	  Refuses what a query would leave behind although it is rolled back.
 *
 * A rollback takes back settings, temporary tables, cursors opened, channels
 * listened on and large objects, but not what belongs to the session.  Hooks
 * refuse functions (advisory locks of the session, sequences, the seed of
 * random()) and commands (prepared statements, libraries, cursors of the
 * session, files).  They do not see state that a function keeps in its
 * language or library, cursors that it closes through SPI, and what it does
 * outside the server.
 *
 * The hooks stay installed, since others may have put theirs in front.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/transam.h"
#include "catalog/objectaccess.h"
#include "catalog/pg_proc.h"
#include "nodes/parsenodes.h"
#include "tcop/utility.h"
#include "utils/lsyscache.h"

#include "functions/leftovers.h"

static bool installed = false;
static int	depth = 0;			/* of nested calls of begin */
static object_access_hook_type previous_access = NULL;
static ProcessUtility_hook_type previous_utility = NULL;

static void
refuse(const char *what)
{
	if (what == NULL)
		return;
	ereport(ERROR,
			(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
			 errmsg("fmsort_compare() does not run a query that %s", what),
			 errdetail("The query is run several times, and a rollback would not take that back.")));
}

/* What a call of the function leaves behind, or NULL. */
static const char *
left_by_function(Oid function)
{
	const char *name = function < FirstNormalObjectId ?
		get_func_name(function) : NULL;

	if (name == NULL)
		return NULL;
	if (strcmp(name, "nextval") == 0 || strcmp(name, "setval") == 0)
		return "changes a sequence";
	if (strcmp(name, "setseed") == 0)
		return "sets the seed of random()";
	/* locks of a transaction go with it */
	if (strstr(name, "_advisory_") == NULL || strstr(name, "_xact_") != NULL)
		return NULL;
	return strstr(name, "unlock") ? "releases a session's advisory lock" :
		"takes a session's advisory lock";
}

/* What the command leaves behind, or NULL. */
static const char *
left_by_command(const Node *command)
{
	switch (nodeTag(command))
	{
		case T_PrepareStmt:
			return "prepares a statement";
		case T_DeallocateStmt:
			return "deallocates a statement";
		case T_LoadStmt:
			return "loads a library";
		case T_DiscardStmt:
			return "discards the session's state";
		case T_FetchStmt:
			return "moves a cursor";
		case T_ClosePortalStmt:
			return "closes a cursor";
		case T_CopyStmt:
			return ((const CopyStmt *) command)->filename ?
				"copies to or from a file or program" : NULL;
		default:
			return NULL;
	}
}

static void
check_access(ObjectAccessType access, Oid class, Oid object, int sub_object,
			 void *arg)
{
	if (depth > 0 && access == OAT_FUNCTION_EXECUTE &&
		class == ProcedureRelationId)
		refuse(left_by_function(object));
	if (previous_access)
		previous_access(access, class, object, sub_object, arg);
}

static void
check_utility(PlannedStmt *statement, const char *query_string,
			  bool read_only_tree, ProcessUtilityContext context,
			  ParamListInfo params, QueryEnvironment *environment,
			  DestReceiver *receiver, QueryCompletion *completion)
{
	if (depth > 0)
		refuse(left_by_command(statement->utilityStmt));
	if (previous_utility)
		previous_utility(statement, query_string, read_only_tree, context,
						 params, environment, receiver, completion);
	else
		standard_ProcessUtility(statement, query_string, read_only_tree,
								context, params, environment, receiver,
								completion);
}

void
fms_leftovers_refuse_begin(void)
{
	if (!installed)
	{
		previous_access = object_access_hook;
		object_access_hook = check_access;
		previous_utility = ProcessUtility_hook;
		ProcessUtility_hook = check_utility;
		installed = true;
	}
	depth++;
}

void
fms_leftovers_refuse_end(void)
{
	Assert(depth > 0);
	depth--;
}
