/*-------------------------------------------------------------------------
 *
 * merge.c
 *	  The FMSort Merge node at run time.
 *
 *	  first call		asks all asynchronous children, gets the others' first
 *						rows, then waits for those of the asynchronous ones
 *	  every call		the smallest of the children's first rows
 *
 * The merge is stable: of equal rows, the first child's goes first.  Like a
 * Merge Append, the node returns its children's slots, and can go neither
 * backward nor back to a mark.
 *
 * Begin does nothing expensive: EvalPlanQual and EXPLAIN begin nodes that
 * never run.  An error ends the transaction or a subtransaction; then the
 * wrapper cancels what its servers are doing.  At the end of the query it
 * waits for batches that are under way.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "executor/executor.h"
#include "foreign/foreign.h"
#include "miscadmin.h"
#include "utils/sortsupport.h"

#include "base/compat.h"
#include "base/losertree.h"
#include "observe/reports.h"
#include "shards/shard.h"
#include "shards/shards.h"

typedef struct FmsMergeState
{
	CustomScanState css;		/* must be first */
	FmsKeySpec	spec;
	SortSupport keys;			/* [spec.ncolumns] */
	PlanState **children;		/* [all->count] */
	FmsShards  *all;
	FmsLoserTree tree;			/* of the shards' first rows */
	FmsLoserNode *nodes;		/* its nodes */
	bool		started;		/* the tree is built */
	bool		has_started;	/* now, or before a rescan */
} FmsMergeState;

static void
begin_node(CustomScanState *css, EState *estate, int eflags)
{
	FmsMergeState *state = (FmsMergeState *) css;
	CustomScan *plan = (CustomScan *) css->ss.ps.plan;
	const MergeAppend *merge = fms_shards_merge_append(plan);
	int			count = list_length(plan->custom_plans) + 1;
	int			i;

	/* the planner asks neither of a Merge Append */
	Assert(!(eflags & (EXEC_FLAG_BACKWARD | EXEC_FLAG_MARK)));
	/* the slots returned are those of the children */
	css->ss.ps.ps_ProjInfo = NULL;
	css->ss.ps.resultopsset = true;
	css->ss.ps.resultopsfixed = false;

	state->children = palloc(count * sizeof(PlanState *));
	state->children[0] = ExecInitNode(outerPlan(plan), estate, eflags);
	outerPlanState(css) = state->children[0];
	for (i = 1; i < count; i++)
	{
		state->children[i] = ExecInitNode(list_nth(plan->custom_plans, i - 1),
										  estate, eflags);
		css->custom_ps = lappend(css->custom_ps, state->children[i]);
	}
	state->all = fms_shards_create(&css->ss.ps, state->children, count);
	state->nodes = palloc(count * sizeof(FmsLoserNode));

	state->spec = (FmsKeySpec)
	{
		.ncolumns = merge->numCols,
		.attnos = merge->sortColIdx,
		.operators = merge->sortOperators,
		.collations = merge->collations,
		.nulls_first = merge->nullsFirst
	};
	state->keys = palloc0(merge->numCols * sizeof(SortSupportData));
	for (i = 0; i < merge->numCols; i++)
	{
		SortSupport key = &state->keys[i];

		key->ssup_cxt = CurrentMemoryContext;
		key->ssup_collation = merge->collations[i];
		key->ssup_nulls_first = merge->nullsFirst[i];
		key->ssup_attno = merge->sortColIdx[i];
		PrepareSortSupportFromOrderingOp(merge->sortOperators[i], key);
	}
}

/* ---- the merge ---- */

/* As a comparator: of two shards' first rows. */
static int
compare_heads(const FmsMergeState *state, int a, int b)
{
	TupleTableSlot *row_a = state->all->shards[a].head;
	TupleTableSlot *row_b = state->all->shards[b].head;
	int			i;

	for (i = 0; i < state->spec.ncolumns; i++)
	{
		SortSupport key = &state->keys[i];
		bool		null_a;
		bool		null_b;
		Datum		value_a = slot_getattr(row_a, key->ssup_attno, &null_a);
		Datum		value_b = slot_getattr(row_b, key->ssup_attno, &null_b);
		int			order = ApplySortComparator(value_a, null_a, value_b,
												null_b, key);

		if (order != 0)
			return order;
	}
	return 0;
}

/* Nodes have no key bits, only the leaf: shards' rows are compared. */
static FmsLoserNode
node_of(void *arg, int leaf)
{
	const FmsMergeState *state = arg;

	return state->all->shards[leaf].head ? fms_losertree_node(0, 0, leaf) :
		fms_losertree_end(leaf);
}

static FmsLoserNode
tie_loser(void *arg, FmsLoserNode a, FmsLoserNode b)
{
	const FmsMergeState *state = arg;
	int			leaf_a = fms_losertree_leaf(a);
	int			leaf_b = fms_losertree_leaf(b);
	int			order = 0;

	if (a != fms_losertree_end(leaf_a))
		order = compare_heads(state, leaf_a, leaf_b);
	if (order == 0)
		order = leaf_a - leaf_b;
	return order < 0 ? b : a;
}

/* Gets the first row of each shard, and builds the tree. */
static void
start(FmsMergeState *state)
{
	FmsShards  *all = state->all;
	int			i;

	for (i = 0; i < all->count; i++)
		fms_shard_ask(all, &all->shards[i]);
	/* sorts of this server run while the others sort */
	for (i = 0; i < all->count; i++)
	{
		if (all->shards[i].request == NULL)
			fms_shard_next(all, &all->shards[i]);
	}
	for (i = 0; i < all->count; i++)
	{
		if (all->shards[i].request)
			fms_shard_next(all, &all->shards[i]);
	}
	fms_losertree_build(&state->tree, state->nodes, all->count, node_of,
						tie_loser, state);
	state->started = true;
	state->has_started = true;
}

static TupleTableSlot *
exec_node(CustomScanState *css)
{
	FmsMergeState *state = (FmsMergeState *) css;
	FmsShards  *all = state->all;
	int			winner;

	CHECK_FOR_INTERRUPTS();
	if (!state->started)
		start(state);
	else
	{
		winner = fms_losertree_winner(&state->tree);
		if (all->shards[winner].head)
		{
			fms_shard_next(all, &all->shards[winner]);
			fms_losertree_replay(&state->tree, node_of(state, winner),
								 tie_loser, state);
		}
	}
	winner = fms_losertree_winner(&state->tree);
	if (all->shards[winner].head)
		return all->shards[winner].head;
	return ExecClearTuple(css->ss.ps.ps_ResultTupleSlot);
}

static void
rescan_node(CustomScanState *css)
{
	FmsMergeState *state = (FmsMergeState *) css;
	int			i;

	fms_shards_reset(state->all);
	for (i = 0; i < state->all->count; i++)
	{
		PlanState  *child = state->children[i];

		if (css->ss.ps.chgParam)
			UpdateChangedParamSet(child, css->ss.ps.chgParam);
		/* a child whose parameters changed is rescanned by its first call */
		if (child->chgParam == NULL)
			ExecReScan(child);
	}
	state->started = false;
}

/*
 * A LIMIT has been reached, or a FETCH from a cursor.  If a subtransaction is
 * rolled back before the next FETCH, the wrapper drops a batch under way.
 */
static void
shutdown_node(CustomScanState *css)
{
	fms_shards_settle(((FmsMergeState *) css)->all);
}

static void
end_node(CustomScanState *css)
{
	FmsMergeState *state = (FmsMergeState *) css;
	int			i;

	for (i = 0; i < state->all->count; i++)
		ExecEndNode(state->children[i]);
}

PlanState **
fms_shards_children(PlanState *planstate, int *count)
{
	FmsMergeState *state = (FmsMergeState *) planstate;

	Assert(fms_shards_is_ours(planstate->plan));
	*count = state->all->count;
	return state->children;
}

/* ---- EXPLAIN ---- */

/* How long the merge waited for the shard, which is number `number`. */
static void
explain_shard(const FmsShard *shard, int number, ExplainState *es)
{
	const ForeignScan *scan = (const ForeignScan *) shard->scan->plan;
	char	   *server = GetForeignServer(scan->fs_server)->servername;
	double		wait_ms = shard->wait_us / 1000;
	uint64		buffer_kb = (shard->buffer_bytes + 1023) / 1024;

	if (es->format == EXPLAIN_FORMAT_TEXT)
	{
		appendStringInfoSpaces(es->str, es->indent * 2);
		appendStringInfo(es->str, "Shard %d on %s:  Waits: " UINT64_FORMAT,
						 number, server, shard->waits);
		if (es->timing)
			appendStringInfo(es->str, "  Wait Time: %.3f ms", wait_ms);
		appendStringInfo(es->str, "  Buffer: " UINT64_FORMAT "kB\n",
						 buffer_kb);
		return;
	}
	ExplainOpenGroup("Shard", NULL, true, es);
	ExplainPropertyInteger("Shard Number", NULL, number, es);
	ExplainPropertyText("Server", server, es);
	ExplainPropertyUInteger("Waits", NULL, shard->waits, es);
	if (es->timing)
		ExplainPropertyFloat("Wait Time", "ms", wait_ms, 3, es);
	ExplainPropertyUInteger("Buffer", "kB", buffer_kb, es);
	ExplainCloseGroup("Shard", NULL, true, es);
}

static void
explain_node(CustomScanState *css, List *ancestors, ExplainState *es)
{
	FmsMergeState *state = (FmsMergeState *) css;
	int			i;

	fms_explain_keys(&css->ss.ps, &state->spec, 0, ancestors, es);
	if (!es->analyze || !state->has_started)
		return;
	ExplainOpenGroup("Shards", "Shards", false, es);
	for (i = 0; i < state->all->count; i++)
	{
		if (state->all->shards[i].request)
			explain_shard(&state->all->shards[i], i + 1, es);
	}
	ExplainCloseGroup("Shards", "Shards", false, es);
}

static const CustomExecMethods exec_methods = {
	.CustomName = FMS_SHARDS_NAME,
	.BeginCustomScan = begin_node,
	.ExecCustomScan = exec_node,
	.EndCustomScan = end_node,
	.ReScanCustomScan = rescan_node,
	.ShutdownCustomScan = shutdown_node,
	.ExplainCustomScan = explain_node
};

Node *
fms_shards_create_state(CustomScan *plan)
{
	FmsMergeState *state = (FmsMergeState *) newNode(sizeof(FmsMergeState),
													 T_CustomScanState);

	state->css.methods = &exec_methods;
	return (Node *) state;
}
