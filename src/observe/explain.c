/*-------------------------------------------------------------------------
 *
 * explain.c
 *	  What EXPLAIN says about an FMSort node, and the log about a slow sort.
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
 * With VERBOSE also the reasons of its choices (decision.c).  The log's line
 * has the same fields, and the work_mem that the sort would have needed.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

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
	bool		prefix = fms_explain_relations(es) > 1 || es->verbose;
	List	   *keys = NIL;
	List	   *presorted_keys = NIL;

	for (int i = 0; i < spec->ncolumns; i++)
	{
		TargetEntry *entry = get_tle_by_resno(planstate->plan->targetlist,
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

/* ---- counters ---- */

/* Do the lines from..to show the counter of such a sort? */
static bool
is_shown(const FmsCounters *counters, FmsCounter counter, FmsLine from,
		 FmsLine to)
{
	FmsLine		line = fms_counter_info[counter].line;

	return line >= from && line <= to &&
		(line < FMS_LINE_MERGE_TIMES || fms_counters_external(counters)) &&
		(line != FMS_LINE_LESS || fms_counter(counters, counter) != 0) &&
		fms_counter_known(counters, counter);
}

/* Appends the counter, behind a gap if there are others: "Label: value". */
static void
append_counter(StringInfo text, const FmsCounters *counters,
			   FmsCounter counter)
{
	FmsNumber	number = fms_counter_number(counters, counter);
	const char *name = fms_counter_name(counters, counter);

	appendStringInfo(text, "%s%s: ", text->len > 0 ? "  " : "",
					 fms_counter_info[counter].label);
	if (name)
		appendStringInfoString(text, name);
	else
		appendStringInfo(text, "%.*f%s%s", number.digits, number.value,
						 number.unit ? " " : "",
						 number.unit ? number.unit : "");
}

/* The counter as a property or, in the text format, at the end of the line. */
static void
explain_counter(StringInfo line, const FmsCounters *counters,
				FmsCounter counter, ExplainState *es)
{
	const char *label = fms_counter_info[counter].label;
	const char *name = fms_counter_name(counters, counter);
	FmsNumber	number = fms_counter_number(counters, counter);

	if (es->format == EXPLAIN_FORMAT_TEXT)
		append_counter(line, counters, counter);
	else if (fms_counter_info[counter].unit == FMS_UNIT_YES_NO)
		ExplainPropertyBool(label, number.value == FMS_YES, es);
	else if (name)
		ExplainPropertyText(label, name, es);
	else
		ExplainPropertyFloat(label, number.unit, number.value, number.digits,
							 es);
}

/* A line of text, unless it is empty; a worker's names the worker. */
static void
print_line(const char *line, int worker, ExplainState *es)
{
	if (line[0] == '\0')
		return;
	appendStringInfoSpaces(es->str, es->indent * 2);
	if (worker >= 0)
		appendStringInfo(es->str, "Worker %d:  ", worker);
	appendStringInfo(es->str, "%s\n", line);
}

static void
explain_lines(const FmsCounters *counters, int worker, FmsLine from,
			  FmsLine to, ExplainState *es)
{
	StringInfoData line;

	initStringInfo(&line);
	for (int i = 0; i < FMS_NCOUNTERS; i++)
	{
		if (is_shown(counters, i, from, to))
			explain_counter(&line, counters, i, es);
	}
	print_line(line.data, worker, es);
}

/* What kind of sort it was, and its space, in text: as PostgreSQL's Sort. */
static void
explain_method(const FmsCounters *counters, int worker, ExplainState *es)
{
	uint64		groups = fms_counter(counters, FMS_COUNT_GROUPS);
	StringInfoData line;

	initStringInfo(&line);
	appendStringInfo(&line, "Sort Method: %s  %s: %.0fkB",
					 fms_counter_name(counters, FMS_COUNT_METHOD),
					 fms_counter_name(counters, FMS_COUNT_SPACE_TYPE),
					 fms_counter_number(counters,
										FMS_COUNT_SPACE_BYTES).value);
	if (groups > 0)
		appendStringInfo(&line, "  Groups: " UINT64_FORMAT, groups);
	print_line(line.data, worker, es);
}

void
fms_explain_sort(const FmsCounters *counters, int worker, ExplainState *es)
{
	char	   *decision = es->verbose ? fms_decision(counters) : NULL;

	if (es->format == EXPLAIN_FORMAT_TEXT)
		explain_method(counters, worker, es);
	else
		explain_lines(counters, worker, FMS_LINE_METHOD, FMS_LINE_METHOD, es);
	explain_lines(counters, worker, FMS_LINE_LESS, FMS_LINE_LESS, es);
	explain_lines(counters, worker, FMS_LINE_MERGE, FMS_LINE_MERGE, es);
	explain_lines(counters, worker, FMS_LINE_IO, FMS_LINE_IO, es);
	if (es->timing)
		explain_lines(counters, worker, FMS_LINE_TIMES, FMS_LINE_MERGE_TIMES,
					  es);
	if (decision && es->format == EXPLAIN_FORMAT_TEXT)
		print_line(psprintf("Decision: %s", decision), worker, es);
	else if (decision)
		ExplainPropertyText("Decision", decision, es);
}

/* What one participant formed; worker: -1 is the leader. */
static void
explain_part(const FmsCounters *part, int worker, ExplainState *es)
{
	static const FmsCounter shown[] = {
		FMS_COUNT_TUPLES, FMS_COUNT_RUNS, FMS_COUNT_WRITTEN_BYTES,
		FMS_COUNT_FORMATION_NS, FMS_COUNT_INPUT_NS
	};
	StringInfoData line;

	initStringInfo(&line);
	if (worker < 0 && es->format == EXPLAIN_FORMAT_TEXT)
		appendStringInfoString(&line, "Leader:");
	for (int i = 0; i < (int) lengthof(shown); i++)
	{
		if (fms_counter_info[shown[i]].unit != FMS_UNIT_NS || es->timing)
			explain_counter(&line, part, shown[i], es);
	}
	print_line(line.data, worker, es);
}

void
fms_explain_processes(const FmsCounters *counters, int n, bool are_parts,
					  ExplainState *es)
{
	const char *group = are_parts ? "Participants" : "Sort Workers";
	const char *member = are_parts ? "Participant" : "Worker";

	ExplainOpenGroup(group, group, false, es);
	for (int i = 0; i < n; i++)
	{
		int			worker = are_parts ? i - 1 : i;

		if (!fms_counters_performed(&counters[i]) &&
			fms_counter(&counters[i], FMS_COUNT_TUPLES) == 0)
			continue;			/* took no part */
		ExplainOpenGroup(member, NULL, true, es);
		if (es->format != EXPLAIN_FORMAT_TEXT && worker >= 0)
			ExplainPropertyInteger("Worker Number", NULL, worker, es);
		if (are_parts)
			explain_part(&counters[i], worker, es);
		else
			fms_explain_sort(&counters[i], worker, es);
		ExplainCloseGroup(member, NULL, true, es);
	}
	ExplainCloseGroup(group, group, false, es);
}

/*
 * A sort is slow by its own time: without its input, which may be a slow
 * query, and without its parent, which may be a slow client.
 */
void
fms_slow_log(const FmsCounters *counters, int limit_ms)
{
	double		own_ms = (fms_counter(counters, FMS_COUNT_FORMATION_NS) -
						  fms_counter(counters, FMS_COUNT_INPUT_NS) +
						  fms_counter(counters, FMS_COUNT_ORDER_NS) +
						  fms_counter(counters, FMS_COUNT_MERGE_NS)) / 1e6;
	StringInfoData line;
	char	   *decision;

	if (limit_ms < 0 || own_ms < limit_ms)
		return;
	initStringInfo(&line);
	for (int i = 0; i < FMS_NCOUNTERS; i++)
	{
		if (is_shown(counters, i, FMS_LINE_METHOD, FMS_LINE_IO))
			append_counter(&line, counters, i);
	}
	decision = fms_decision(counters);
	if (decision)
		appendStringInfo(&line, "  Decision: %s", decision);
	ereport(LOG,
			(errmsg("sort: %.3f ms  %s", own_ms, line.data)));
	pfree(line.data);
}
