/*-------------------------------------------------------------------------
 *
 * explain.c
 *	  What EXPLAIN says about an FMSort node.
 *
 * Structured formats give one property a fact, under the contract's names.
 * Text gives the same facts on a few lines, in the manner of the Sort node:
 *
 *	  Sort Key: o_orderdate
 *	  Sort Method: external merge  Disk: 217088kB
 *	  Merge Mode: fmsort  Runs: 55  Merge Passes: 1  Blocks: 53000  ...
 *	  I/O Method: io_uring  Direct I/O: true  Compression: 2.11
 *	  Run Formation Time: 700.1 ms  Input Time: 201.7 ms  ...
 *
 * With VERBOSE also what was chosen, and why, in words (why.c).
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "catalog/pg_collation.h"
#include "nodes/nodeFuncs.h"
#include "parser/parsetree.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/ruleutils.h"
#include "utils/typcache.h"

#include "base/compat.h"
#include "observe/explain.h"
#include "observe/why.h"

/* COLLATE, DESC or USING, NULLS: whatever is not the type's default. */
static void
append_ordering(StringInfo text, Oid type, const FmsKeySpec *spec, int i)
{
	TypeCacheEntry *entry = lookup_type_cache(type, TYPECACHE_LT_OPR |
											  TYPECACHE_GT_OPR);
	Oid			operator = spec->operators[i];
	Oid			collation = spec->collations[i];
	bool		descending = false;

	if (OidIsValid(collation) && collation != get_typcollation(type))
	{
		char	   *name = get_collation_name(collation);

		if (name)
			appendStringInfo(text, " COLLATE %s", quote_identifier(name));
	}

	if (operator == entry->gt_opr)
	{
		appendStringInfoString(text, " DESC");
		descending = true;
	}
	else if (operator != entry->lt_opr)
	{
		char	   *name = get_opname(operator);

		if (name)
			appendStringInfo(text, " USING %s", name);
		(void) get_equality_op_for_ordering_op(operator, &descending);
	}

	if (spec->nulls_first[i] != descending)
		appendStringInfoString(text, spec->nulls_first[i] ?
							   " NULLS FIRST" : " NULLS LAST");
}

void
fms_explain_keys(PlanState *planstate, const FmsKeySpec *spec,
				 int presorted, List *ancestors, ExplainState *es)
{
	List	   *context = set_deparse_context_plan(es->deparse_cxt,
												  planstate->plan, ancestors);
	/* not the node's own list: there a constant looks like a column */
	List	   *child_columns =
		((const CustomScan *) planstate->plan)->custom_scan_tlist;
	bool		prefix = fms_explain_relations(es) > 1 || es->verbose;
	List	   *keys = NIL;
	List	   *presorted_keys = NIL;
	int			i;

	for (i = 0; i < spec->ncolumns; i++)
	{
		TargetEntry *entry = get_tle_by_resno(child_columns,
											  spec->attnos[i]);
		char	   *expression;
		StringInfoData text;

		if (entry == NULL)
			elog(ERROR, "no target list entry for sort key %d",
				 spec->attnos[i]);
		expression = deparse_expression((Node *) entry->expr, context, prefix,
										true);
		initStringInfo(&text);
		appendStringInfoString(&text, expression);
		append_ordering(&text, exprType((Node *) entry->expr), spec, i);
		keys = lappend(keys, text.data);
		if (i < presorted)
			presorted_keys = lappend(presorted_keys, expression);
	}
	ExplainPropertyList("Sort Key", keys, es);
	if (presorted_keys)
		ExplainPropertyList("Presorted Key", presorted_keys, es);
}

/* One line: all that is short, for the node and for each worker. */
static void
append_method(StringInfo text, const FmsCounters *counters)
{
	appendStringInfo(text, "Sort Method: %s  %s: %llukB",
					 fms_counters_method_name(counters),
					 fms_counters_external(counters) ? "Disk" : "Memory",
					 (unsigned long long) fms_counters_space_kb(counters));
}

static void
append_merge(StringInfo text, const FmsCounters *counters)
{
	appendStringInfo(text,
					 "Merge Mode: %s  Runs: %llu  Merge Passes: %u  Blocks: %llu  Block Size: %u  Assist Blocks: %u",
					 fms_mode_name(counters->mode),
					 (unsigned long long) counters->runs,
					 counters->merge_passes,
					 (unsigned long long) counters->blocks,
					 counters->block_bytes, counters->assist_blocks);
}

static void
append_io(StringInfo text, const FmsCounters *counters)
{
	appendStringInfo(text, "I/O Method: %s  Direct I/O: %s",
					 fms_counters_io_method(counters),
					 counters->uses_direct_io ? "true" : "false");
	if (counters->compressible_bytes > 0)
		appendStringInfo(text, "  Compression: %.2f",
						 fms_counters_compression(counters));
}

static void
append_times(StringInfo text, const FmsCounters *counters)
{
	appendStringInfo(text,
					 "Run Formation Time: %.3f ms  Input Time: %.3f ms",
					 counters->formation_us / 1000.0,
					 counters->input_us / 1000.0);
	if (fms_counters_external(counters))
		appendStringInfo(text,
						 "  Block Order Time: %.3f ms  Merge Time: %.3f ms  Blocked Time: %.3f ms",
						 counters->order_us / 1000.0,
						 counters->merge_us / 1000.0,
						 counters->blocked_us / 1000.0);
}

/* Begins a line of text; a worker's lines say whose they are. */
static void
begin_line(ExplainState *es, int worker)
{
	appendStringInfoSpaces(es->str, es->indent * 2);
	if (worker >= 0)
		appendStringInfo(es->str, "Worker %d:  ", worker);
}

static void
explain_text(const FmsCounters *counters, int worker, ExplainState *es)
{
	begin_line(es, worker);
	append_method(es->str, counters);
	if (counters->sorts > 1)
		appendStringInfo(es->str, "  Groups: %llu",
						 (unsigned long long) counters->sorts);
	appendStringInfoChar(es->str, '\n');
	if (fms_counters_external(counters))
	{
		begin_line(es, worker);
		append_merge(es->str, counters);
		appendStringInfoChar(es->str, '\n');
		begin_line(es, worker);
		append_io(es->str, counters);
		appendStringInfoChar(es->str, '\n');
	}
	if (es->timing)
	{
		begin_line(es, worker);
		append_times(es->str, counters);
		appendStringInfoChar(es->str, '\n');
	}
	if (es->verbose)
	{
		begin_line(es, worker);
		appendStringInfo(es->str, "Why: %s\n", fms_why(counters));
	}
}

static void
explain_external(const FmsCounters *counters, ExplainState *es)
{
	ExplainPropertyText("Merge Mode",
						fms_mode_name(counters->mode), es);
	ExplainPropertyUInteger("Runs", NULL, counters->runs, es);
	ExplainPropertyInteger("Merge Passes", NULL, counters->merge_passes, es);
	ExplainPropertyUInteger("Blocks", NULL, counters->blocks, es);
	ExplainPropertyInteger("Block Size", NULL, counters->block_bytes, es);
	ExplainPropertyInteger("Assist Blocks", NULL, counters->assist_blocks,
						   es);
	ExplainPropertyText("I/O Method", fms_counters_io_method(counters), es);
	ExplainPropertyBool("Direct I/O", counters->uses_direct_io, es);
	if (counters->compressible_bytes > 0)
		ExplainPropertyFloat("Compression", NULL,
							 fms_counters_compression(counters), 2, es);
}

static void
explain_properties(const FmsCounters *counters, ExplainState *es)
{
	bool		external = fms_counters_external(counters);

	ExplainPropertyText("Sort Method", fms_counters_method_name(counters),
						es);
	ExplainPropertyInteger("Sort Space Used", "kB",
						   fms_counters_space_kb(counters), es);
	ExplainPropertyText("Sort Space Type", external ? "Disk" : "Memory", es);
	if (counters->sorts > 1)
		ExplainPropertyUInteger("Groups", NULL, counters->sorts, es);
	if (external)
		explain_external(counters, es);
	if (es->verbose)
		ExplainPropertyText("Why", fms_why(counters), es);
	if (!es->timing)
		return;
	ExplainPropertyFloat("Run Formation Time", "ms",
						 counters->formation_us / 1000.0, 3, es);
	ExplainPropertyFloat("Input Time", "ms", counters->input_us / 1000.0, 3,
						 es);
	if (external)
	{
		ExplainPropertyFloat("Block Order Time", "ms",
							 counters->order_us / 1000.0, 3, es);
		ExplainPropertyFloat("Merge Time", "ms", counters->merge_us / 1000.0,
							 3, es);
		ExplainPropertyFloat("Blocked Time", "ms",
							 counters->blocked_us / 1000.0, 3, es);
	}
}

void
fms_explain_counters(const FmsCounters *counters, ExplainState *es)
{
	if (es->format == EXPLAIN_FORMAT_TEXT)
		explain_text(counters, -1, es);
	else
		explain_properties(counters, es);
}

void
fms_explain_workers(const FmsCounters *workers, int nworkers,
					ExplainState *es)
{
	int			i;

	ExplainOpenGroup("Sort Workers", "Sort Workers", false, es);
	for (i = 0; i < nworkers; i++)
	{
		if (workers[i].method == FMS_METHOD_STILL_LOADING)
			continue;			/* did not start, or got no tuple */
		if (es->format == EXPLAIN_FORMAT_TEXT)
		{
			explain_text(&workers[i], i, es);
			continue;
		}
		ExplainOpenGroup("Worker", NULL, true, es);
		ExplainPropertyInteger("Worker Number", NULL, i, es);
		explain_properties(&workers[i], es);
		ExplainCloseGroup("Worker", NULL, true, es);
	}
	ExplainCloseGroup("Sort Workers", "Sort Workers", false, es);
}
