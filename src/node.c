/*-------------------------------------------------------------------------
 *
 * node.c
 *	  The FMSort plan node: how it is built and run.
 *
 *	  plan time					run time
 *	  Sort						CustomScanState
 *	    |  fms_node_from_sort     |  first call: child's tuples -> FmsSort
 *	    v                         |  every call: next tuple of FmsSort
 *	  CustomScan "FMSort"         v
 *	    lefttree: Sort's child  child's PlanState
 *
 * The node keeps the Sort's whole Plan part (costs, parameters, node id) and
 * its child as lefttree, so that everything that walks plans treats it as it
 * treated the Sort.  The tuples are those of the child, so nothing is
 * projected.  What the keys are stands in custom_private as plain lists,
 * which can be copied, and sent to parallel workers.
 *
 * Tuples are handed out in place: the slot points into the sort's memory,
 * which stays as it is until the next call.
 *
 * Standing in for oneself.  Some callers want what this node cannot do yet:
 * scan backwards (SCROLL cursors) or restore a mark; and a cached plan can
 * be run after fmsort.mode was set to off.  Then the node builds the Sort it
 * was made from, puts it between itself and its child, and passes everything
 * on.  This is decided when execution starts and not changed afterwards.
 *
 * Begin does nothing expensive: EvalPlanQual initialises nodes that never
 * run.  Errors: the sort's memory is a child of the query's context, and
 * cleans up after itself when that goes (sort.c).
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "executor/executor.h"
#include "miscadmin.h"
#include "nodes/extensible.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "utils/memutils.h"

#include "clock.h"
#include "explain.h"
#include "last_sort.h"
#include "node.h"
#include "settings.h"
#include "sort.h"

/* custom_private: one list each, all of the same length. */
enum
{
	PRIVATE_ATTNOS,				/* ints */
	PRIVATE_OPERATORS,			/* oids */
	PRIVATE_COLLATIONS,			/* oids */
	PRIVATE_NULLS_FIRST			/* ints, 0 or 1 */
};

typedef struct FmsSortState
{
	CustomScanState css;		/* must be first */
	FmsKeySpec	spec;
	bool		rewindable;		/* may be asked to start again */
	FmsSort    *sort;			/* NULL: nothing sorted yet */
	FmsSampler	input;			/* time in the child */
	PlanState  *stock;			/* not NULL: everything goes there */
} FmsSortState;

static Node *create_state(CustomScan *plan);

static const CustomScanMethods plan_methods = {
	.CustomName = FMS_NODE_NAME,
	.CreateCustomScanState = create_state
};

void
fms_node_register(void)
{
	RegisterCustomScanMethods(&plan_methods);
}

/* The node's own target list: the child's columns, one by one. */
static List *
pass_through_tlist(List *tlist)
{
	List	   *result = NIL;
	ListCell   *cell;

	foreach(cell, tlist)
	{
		TargetEntry *entry = flatCopyTargetEntry(lfirst(cell));
		Node	   *expr = (Node *) entry->expr;

		entry->expr = (Expr *) makeVar(INDEX_VAR, entry->resno,
									   exprType(expr), exprTypmod(expr),
									   exprCollation(expr), 0);
		result = lappend(result, entry);
	}
	return result;
}

Plan *
fms_node_from_sort(Sort *sort)
{
	CustomScan *node = makeNode(CustomScan);
	List	   *attnos = NIL;
	List	   *operators = NIL;
	List	   *collations = NIL;
	List	   *nulls_first = NIL;
	int			i;

	for (i = 0; i < sort->numCols; i++)
	{
		attnos = lappend_int(attnos, sort->sortColIdx[i]);
		operators = lappend_oid(operators, sort->sortOperators[i]);
		collations = lappend_oid(collations, sort->collations[i]);
		nulls_first = lappend_int(nulls_first, sort->nullsFirst[i]);
	}

	node->scan.plan = sort->plan;
	node->scan.plan.type = T_CustomScan;
	node->scan.plan.targetlist = pass_through_tlist(sort->plan.targetlist);
	node->scan.scanrelid = 0;
	node->flags = CUSTOMPATH_SUPPORT_BACKWARD_SCAN |
		CUSTOMPATH_SUPPORT_MARK_RESTORE;
	node->custom_scan_tlist = sort->plan.targetlist;
	node->custom_private = list_make4(attnos, operators, collations,
									  nulls_first);
	node->methods = &plan_methods;
	return &node->scan.plan;
}

static void
read_spec(const CustomScan *plan, FmsKeySpec *spec)
{
	List	   *attnos = list_nth(plan->custom_private, PRIVATE_ATTNOS);
	List	   *operators = list_nth(plan->custom_private,
									 PRIVATE_OPERATORS);
	List	   *collations = list_nth(plan->custom_private,
									  PRIVATE_COLLATIONS);
	List	   *nulls_first = list_nth(plan->custom_private,
									   PRIVATE_NULLS_FIRST);
	int			n = list_length(attnos);
	int			i;

	spec->ncolumns = n;
	spec->attnos = palloc(n * sizeof(AttrNumber));
	spec->operators = palloc(n * sizeof(Oid));
	spec->collations = palloc(n * sizeof(Oid));
	spec->nulls_first = palloc(n * sizeof(bool));
	for (i = 0; i < n; i++)
	{
		spec->attnos[i] = list_nth_int(attnos, i);
		spec->operators[i] = list_nth_oid(operators, i);
		spec->collations[i] = list_nth_oid(collations, i);
		spec->nulls_first[i] = list_nth_int(nulls_first, i) != 0;
	}
}

/* The Sort that the plan was made from, above the same child. */
static Plan *
stock_sort_plan(const CustomScan *plan, const FmsKeySpec *spec)
{
	Sort	   *sort = makeNode(Sort);

	sort->plan = plan->scan.plan;
	sort->plan.type = T_Sort;
	sort->plan.targetlist = plan->custom_scan_tlist;
	sort->plan.initPlan = NIL;	/* they are the FMSort node's */
	sort->numCols = spec->ncolumns;
	sort->sortColIdx = spec->attnos;
	sort->sortOperators = spec->operators;
	sort->collations = spec->collations;
	sort->nullsFirst = spec->nulls_first;
	return &sort->plan;
}

/* Why the stock sort has to be used in this execution, or NULL. */
static const char *
reason_for_stock_sort(int eflags)
{
	if (fms_settings_mode() == FMS_MODE_OFF)
		return "fmsort.mode is off";
	if (eflags & EXEC_FLAG_BACKWARD)
		return "the scan may run backwards";
	if (eflags & EXEC_FLAG_MARK)
		return "the scan may be marked and restored";
	return NULL;
}

static void
begin_stock_sort(FmsSortState *state, EState *estate, int eflags)
{
	PlanState  *planstate = &state->css.ss.ps;
	const CustomScan *plan = (const CustomScan *) planstate->plan;

	state->stock = ExecInitNode(stock_sort_plan(plan, &state->spec), estate,
								eflags);
	outerPlanState(planstate) = state->stock;

	/* parents compile their expressions for the slots they will get */
	planstate->resultops = state->stock->resultops;
	planstate->resultopsfixed = state->stock->resultopsfixed;
	planstate->resultopsset = state->stock->resultopsset;
}

static void
begin_node(CustomScanState *css, EState *estate, int eflags)
{
	FmsSortState *state = (FmsSortState *) css;
	CustomScan *plan = (CustomScan *) css->ss.ps.plan;
	const char *reason = reason_for_stock_sort(eflags);

	read_spec(plan, &state->spec);
	if (reason)
	{
		ereport(DEBUG1,
				(errmsg_internal("fmsort: using PostgreSQL's Sort: %s",
								 reason)));
		begin_stock_sort(state, estate, eflags);
		return;
	}

	state->rewindable = (eflags & EXEC_FLAG_REWIND) != 0;
	outerPlanState(css) = ExecInitNode(outerPlan(plan), estate,
									   eflags & ~(EXEC_FLAG_REWIND |
												  EXEC_FLAG_BACKWARD |
												  EXEC_FLAG_MARK));

	/*
	 * The executor has made a virtual scan slot; ours holds minimal tuples,
	 * and nothing is projected, so parents see that slot.
	 */
	ExecInitScanTupleSlot(estate, &css->ss,
						  ExecGetResultType(outerPlanState(css)),
						  &TTSOpsMinimalTuple);
	ExecAssignScanProjectionInfoWithVarno(&css->ss, INDEX_VAR);
	Assert(css->ss.ps.ps_ProjInfo == NULL);
}

/* One tuple from the child, timed now and then. */
static inline TupleTableSlot *
next_input(FmsSortState *state)
{
	PlanState  *child = outerPlanState(state);
	TupleTableSlot *slot;
	instr_time	start;

	if (likely(!fms_sampler_due(&state->input)))
		return ExecProcNode(child);

	start = fms_clock_now();
	slot = ExecProcNode(child);
	fms_sampler_add(&state->input, fms_clock_since_us(start));
	return slot;
}

/* Takes all of the child's tuples and sorts them. */
static void
load(FmsSortState *state)
{
	EState	   *estate = state->css.ss.ps.state;
	Plan	   *plan = state->css.ss.ps.plan;
	ScanDirection direction = estate->es_direction;
	MemoryContext caller;
	FmsOptions	options;
	TupleTableSlot *slot;

	/* what a record takes beside the plain width: headers and the key */
	fms_settings_snapshot(&options, plan->plan_rows *
						  (plan->plan_width + 2 * sizeof(FmsRecord) +
						   SizeofMinimalTupleHeader + sizeof(Datum)));
	/* a plan begun before fmsort.mode was set to off goes on as it was */
	if (options.mode == FMS_MODE_OFF)
		options.mode = FMS_MODE_FMSORT;

	caller = MemoryContextSwitchTo(estate->es_query_cxt);
	state->sort = fms_sort_begin(ExecGetResultType(outerPlanState(state)),
								 &state->spec, &options);
	MemoryContextSwitchTo(caller);
	memset(&state->input, 0, sizeof(state->input));

	estate->es_direction = ForwardScanDirection;
	for (;;)
	{
		slot = next_input(state);
		if (TupIsNull(slot))
			break;
		fms_sort_put(state->sort, slot);
	}
	fms_sort_perform(state->sort);
	estate->es_direction = direction;
}

static TupleTableSlot *
exec_node(CustomScanState *css)
{
	FmsSortState *state = (FmsSortState *) css;
	TupleTableSlot *slot = css->ss.ss_ScanTupleSlot;
	MinimalTuple tuple;

	if (state->stock)
		return ExecProcNode(state->stock);
	if (state->sort == NULL)
		load(state);

	Assert(ScanDirectionIsForward(css->ss.ps.state->es_direction));
	tuple = fms_sort_get(state->sort);
	if (tuple == NULL)
		return ExecClearTuple(slot);
	return ExecStoreMinimalTuple(tuple, slot, false);
}

static void
count_node(FmsSortState *state, FmsCounters *counters)
{
	fms_sort_count(state->sort, counters);
	counters->input_us = state->input.total_us;
}

/* Forgets the sort, but not what it did. */
static void
drop_sort(FmsSortState *state)
{
	FmsCounters counters;

	ExecClearTuple(state->css.ss.ss_ScanTupleSlot);
	count_node(state, &counters);
	fms_last_sort_remember(&counters);
	fms_sort_end(state->sort);
	state->sort = NULL;
}

static void
end_node(CustomScanState *css)
{
	FmsSortState *state = (FmsSortState *) css;

	if (state->sort)
		drop_sort(state);
	ExecEndNode(outerPlanState(css));
}

static void
rescan_node(CustomScanState *css)
{
	FmsSortState *state = (FmsSortState *) css;
	PlanState  *child = outerPlanState(css);

	if (state->stock)
	{
		if (child->chgParam == NULL)
			ExecReScan(child);
		return;
	}

	/*
	 * If nothing has been sorted yet, a child that needs it is rescanned when
	 * it is first asked for a tuple.
	 */
	if (state->sort == NULL)
		return;
	if (child->chgParam != NULL || !state->rewindable)
	{
		drop_sort(state);
		if (child->chgParam == NULL)
			ExecReScan(child);
		return;
	}
	ExecClearTuple(css->ss.ss_ScanTupleSlot);
	fms_sort_rewind(state->sort);
}

/* Only a caller that said so in eflags may mark; then we are the stock. */
static void
mark_node(CustomScanState *css)
{
	FmsSortState *state = (FmsSortState *) css;

	Assert(state->stock != NULL);
	ExecMarkPos(state->stock);
}

static void
restore_node(CustomScanState *css)
{
	FmsSortState *state = (FmsSortState *) css;

	Assert(state->stock != NULL);
	ExecRestrPos(state->stock);
}

static void
explain_node(CustomScanState *css, List *ancestors, ExplainState *es)
{
	FmsSortState *state = (FmsSortState *) css;
	FmsCounters counters;

	fms_explain_keys(&css->ss.ps, &state->spec, ancestors, es);
	if (es->analyze && state->sort)
	{
		count_node(state, &counters);
		if (counters.method != FMS_METHOD_STILL_LOADING)
			fms_explain_counters(&counters, es);
	}
}

static const CustomExecMethods exec_methods = {
	.CustomName = FMS_NODE_NAME,
	.BeginCustomScan = begin_node,
	.ExecCustomScan = exec_node,
	.EndCustomScan = end_node,
	.ReScanCustomScan = rescan_node,
	.MarkPosCustomScan = mark_node,
	.RestrPosCustomScan = restore_node,
	.ExplainCustomScan = explain_node
};

static Node *
create_state(CustomScan *plan)
{
	FmsSortState *state = (FmsSortState *) newNode(sizeof(FmsSortState),
												   T_CustomScanState);

	state->css.methods = &exec_methods;
	return (Node *) state;
}
