/*-------------------------------------------------------------------------
 *
 * explain.c
 *	  What EXPLAIN says about an FMSort node.
 *
 * Structured formats print one property a fact.  Text prints the same facts on
 * a few lines:
 *
 *	  Sort Key: o_orderdate
 *	  Sort Method: external merge  Disk: 217088kB
 *	  Merge Mode: fmsort  Runs: 55  Merge Passes: 1  Blocks: 53000  ...
 *	  I/O Method: io_uring  Direct I/O: true  Compression: 2.11
 *	  Run Formation Time: 700.1 ms  Input Time: 201.7 ms  ...
 *
 * With VERBOSE also the reasons of its choices (why.c).
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
#include "observe/reports.h"

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

static void
append_counter(StringInfo text, const FmsCounters *counters,
			   FmsCounter counter)
{
	uint64		value = fms_counter(counters, counter);

	switch (fms_counter_info[counter].unit)
	{
		case FMS_UNIT_NS:
			appendStringInfo(text, "%.3f ms", fms_counter_ms(counters, counter));
			break;
		case FMS_UNIT_RATIO:
			appendStringInfo(text, "%.2f", (double) value / FMS_RATIO_ONE);
			break;
		case FMS_UNIT_YES_NO:
			appendStringInfoString(text, value == FMS_YES ? "true" : "false");
			break;
		case FMS_UNIT_NUMBER:
			appendStringInfo(text, UINT64_FORMAT, value);
			break;
		default:
			appendStringInfoString(text, fms_counter_name(counters, counter));
			break;
	}
}

static void
explain_counter(const FmsCounters *counters, FmsCounter counter,
				ExplainState *es)
{
	const char *label = fms_counter_info[counter].label;
	uint64		value = fms_counter(counters, counter);

	switch (fms_counter_info[counter].unit)
	{
		case FMS_UNIT_NS:
			ExplainPropertyFloat(label, "ms",
								 fms_counter_ms(counters, counter), 3, es);
			break;
		case FMS_UNIT_RATIO:
			ExplainPropertyFloat(label, NULL,
								 (double) value / FMS_RATIO_ONE, 2, es);
			break;
		case FMS_UNIT_YES_NO:
			ExplainPropertyBool(label, value == FMS_YES, es);
			break;
		case FMS_UNIT_NUMBER:
			ExplainPropertyUInteger(label, NULL, value, es);
			break;
		default:
			ExplainPropertyText(label, fms_counter_name(counters, counter),
								es);
			break;
	}
}

/* Begins a line of text; a worker's line names the worker. */
static void
begin_line(ExplainState *es, int worker)
{
	appendStringInfoSpaces(es->str, es->indent * 2);
	if (worker >= 0)
		appendStringInfo(es->str, "Worker %d:  ", worker);
}

/* Prints the counters of a line, if there are any. */
static void
explain_line(const FmsCounters *counters, int worker, FmsExplainLine line,
			 FmsExplainLine more, ExplainState *es)
{
	bool		text = es->format == EXPLAIN_FORMAT_TEXT;
	bool		first = true;
	int			i;

	for (i = 0; i < FMS_NCOUNTERS; i++)
	{
		const FmsCounterInfo *info = &fms_counter_info[i];

		if (info->line == FMS_LINE_NONE ||
			(info->line != line && info->line != more) ||
			(info->unit == FMS_UNIT_RATIO && fms_counter(counters, i) == 0))
			continue;
		if (!text)
		{
			explain_counter(counters, i, es);
			continue;
		}
		if (first)
			begin_line(es, worker);
		appendStringInfo(es->str, "%s%s: ", first ? "" : "  ", info->label);
		append_counter(es->str, counters, i);
		first = false;
	}
	if (!first)
		appendStringInfoChar(es->str, '\n');
}

/* What kind of sort it was, and its space. */
static void
explain_method(const FmsCounters *counters, int worker, ExplainState *es)
{
	const char *method = fms_counter_name(counters, FMS_COUNT_METHOD);
	const char *type = fms_counter_name(counters, FMS_COUNT_SPACE_TYPE);
	uint64		kb = fms_counter_kb(counters, FMS_COUNT_SPACE_BYTES);
	uint64		groups = fms_counter(counters, FMS_COUNT_GROUPS);

	if (es->format != EXPLAIN_FORMAT_TEXT)
	{
		ExplainPropertyText("Sort Method", method, es);
		ExplainPropertyUInteger("Sort Space Used", "kB", kb, es);
		ExplainPropertyText("Sort Space Type", type, es);
		if (groups > 1)
			ExplainPropertyUInteger("Groups", NULL, groups, es);
		return;
	}
	begin_line(es, worker);
	appendStringInfo(es->str, "Sort Method: %s  %s: " UINT64_FORMAT "kB",
					 method, type, kb);
	if (groups > 1)
		appendStringInfo(es->str, "  Groups: " UINT64_FORMAT, groups);
	appendStringInfoChar(es->str, '\n');
}

static void
explain_why(const FmsCounters *counters, int worker, ExplainState *es)
{
	if (es->format != EXPLAIN_FORMAT_TEXT)
	{
		ExplainPropertyText("Why", fms_why(counters), es);
		return;
	}
	begin_line(es, worker);
	appendStringInfo(es->str, "Why: %s\n", fms_why(counters));
}

/* One sort, of the node itself (worker: -1) or of a worker. */
static void
explain_sort(const FmsCounters *counters, int worker, ExplainState *es)
{
	bool		text = es->format == EXPLAIN_FORMAT_TEXT;
	bool		external = fms_counters_external(counters);

	explain_method(counters, worker, es);
	if (external)
	{
		explain_line(counters, worker, FMS_LINE_MERGE, FMS_LINE_NONE, es);
		explain_line(counters, worker, FMS_LINE_IO, FMS_LINE_NONE, es);
	}
	if (es->verbose && !text)
		explain_why(counters, worker, es);
	if (es->timing)
		explain_line(counters, worker, FMS_LINE_TIMES,
					 external ? FMS_LINE_MERGE_TIMES : FMS_LINE_NONE, es);
	if (es->verbose && text)
		explain_why(counters, worker, es);
}

void
fms_explain_counters(const FmsCounters *counters, ExplainState *es)
{
	explain_sort(counters, -1, es);
}

void
fms_explain_workers(const FmsCounters *workers, int nworkers,
					ExplainState *es)
{
	int			i;

	ExplainOpenGroup("Sort Workers", "Sort Workers", false, es);
	for (i = 0; i < nworkers; i++)
	{
		if (!fms_counters_performed(&workers[i]))
			continue;			/* did not start, or got no tuple */
		if (es->format == EXPLAIN_FORMAT_TEXT)
		{
			explain_sort(&workers[i], i, es);
			continue;
		}
		ExplainOpenGroup("Worker", NULL, true, es);
		ExplainPropertyInteger("Worker Number", NULL, i, es);
		explain_sort(&workers[i], i, es);
		ExplainCloseGroup("Worker", NULL, true, es);
	}
	ExplainCloseGroup("Sort Workers", "Sort Workers", false, es);
}
