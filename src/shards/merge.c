/*-------------------------------------------------------------------------
 *
 * merge.c
 *	  The FMSort Merge node at run time.
 *
 * The first call asks all asynchronous children, gets the others' first rows,
 * then waits for those of the asynchronous ones.  Every call returns the
 * smallest of the children's first rows, in its child's slot; of equal rows,
 * the first child's goes first.
 *
 * After an error, the wrapper cancels what its servers are doing.  At the end
 * of the query it waits for batches that are under way.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "executor/executor.h"
#include "foreign/foreign.h"
#include "miscadmin.h"
#include "nodes/extensible.h"
#include "utils/sortsupport.h"

#include "base/compat.h"
#include "base/losertree.h"
#include "observe/reports.h"
#include "shards/shards.h"

typedef struct FmsMergeState
{
	CustomScanState css;		/* must be first */
	FmsKeySpec	spec;
	SortSupport keys;			/* [spec.ncolumns] */
	FmsShards  *all;
	FmsLoserTree tree;			/* of the shards' first rows */
	FmsLoserNode *nodes;		/* the tree's */
	bool		started;		/* the tree is built */
} FmsMergeState;

static void
begin_node(CustomScanState *css, EState *estate, int eflags)
{
	FmsMergeState *state = (FmsMergeState *) css;
	CustomScan *plan = (CustomScan *) css->ss.ps.plan;
	const MergeAppend *merge = linitial(plan->custom_private);
	int			count = list_length(plan->custom_plans) + 1;
	PlanState **scans = palloc(count * sizeof(PlanState *));

	/* the planner asks neither of a Merge Append */
	Assert(!(eflags & (EXEC_FLAG_BACKWARD | EXEC_FLAG_MARK)));
	/* the slots returned are those of the children */
	plan->scan.plan.targetlist = merge->plan.targetlist;
	ExecInitResultTupleSlotTL(&css->ss.ps, &TTSOpsVirtual);
	css->ss.ps.resultopsset = true;
	css->ss.ps.resultopsfixed = false;

	scans[0] = ExecInitNode(outerPlan(plan), estate, eflags);
	outerPlanState(css) = scans[0];
	for (int i = 1; i < count; i++)
	{
		scans[i] = ExecInitNode(list_nth(plan->custom_plans, i - 1), estate,
								eflags);
		css->custom_ps = lappend(css->custom_ps, scans[i]);
	}
	state->all = fms_shards_create(&css->ss.ps, scans, count);
	state->nodes = palloc(count * sizeof(FmsLoserNode));

	state->spec.ncolumns = merge->numCols;
	state->spec.attnos = merge->sortColIdx;
	state->spec.operators = merge->sortOperators;
	state->spec.collations = merge->collations;
	state->spec.nulls_first = merge->nullsFirst;
	state->keys = palloc0(merge->numCols * sizeof(SortSupportData));
	for (int i = 0; i < merge->numCols; i++)
	{
		state->keys[i].ssup_cxt = CurrentMemoryContext;
		state->keys[i].ssup_collation = merge->collations[i];
		state->keys[i].ssup_nulls_first = merge->nullsFirst[i];
		state->keys[i].ssup_attno = merge->sortColIdx[i];
		PrepareSortSupportFromOrderingOp(merge->sortOperators[i],
										 &state->keys[i]);
	}
}

/* Nodes of the tree have no key bits: shards' rows are compared. */
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
	TupleTableSlot *row_a = state->all->shards[leaf_a].head;
	TupleTableSlot *row_b = state->all->shards[leaf_b].head;
	int			order = 0;

	/* two shards that have ended tie, too */
	for (int i = 0; row_a && i < state->spec.ncolumns && order == 0; i++)
	{
		SortSupport key = &state->keys[i];
		bool		null_a;
		bool		null_b;
		Datum		value_a = slot_getattr(row_a, key->ssup_attno, &null_a);
		Datum		value_b = slot_getattr(row_b, key->ssup_attno, &null_b);

		order = ApplySortComparator(value_a, null_a, value_b, null_b, key);
	}
	if (order == 0)
		order = leaf_a - leaf_b;
	return order < 0 ? b : a;
}

/* Gets the first row of each shard, and builds the tree. */
static void
start(FmsMergeState *state)
{
	FmsShards  *all = state->all;

	for (int i = 0; i < all->count; i++)
		fms_shard_ask(all, &all->shards[i]);
	/* sorts of this server run while the others sort */
	for (int i = 0; i < all->count; i++)
	{
		if (all->shards[i].request == NULL)
			fms_shard_next(all, &all->shards[i]);
	}
	for (int i = 0; i < all->count; i++)
	{
		if (all->shards[i].request)
			fms_shard_next(all, &all->shards[i]);
	}
	fms_losertree_build(&state->tree, state->nodes, all->count, node_of,
						tie_loser, state);
	state->started = true;
}

static FmsShard *
winner_of(const FmsMergeState *state)
{
	return &state->all->shards[fms_losertree_winner(&state->tree)];
}

static TupleTableSlot *
exec_node(CustomScanState *css)
{
	FmsMergeState *state = (FmsMergeState *) css;
	TupleTableSlot *row;

	CHECK_FOR_INTERRUPTS();
	if (!state->started)
		start(state);
	else if (winner_of(state)->head)
	{
		int			leaf = fms_losertree_winner(&state->tree);

		fms_shard_next(state->all, winner_of(state));
		fms_losertree_replay(&state->tree, node_of(state, leaf), tie_loser,
							 state);
	}
	row = winner_of(state)->head;
	return row ? row : ExecClearTuple(css->ss.ps.ps_ResultTupleSlot);
}

static void
rescan_node(CustomScanState *css)
{
	FmsMergeState *state = (FmsMergeState *) css;

	fms_shards_reset(state->all);
	for (int i = 0; i < state->all->count; i++)
	{
		PlanState  *scan = state->all->scans[i];

		if (css->ss.ps.chgParam)
			UpdateChangedParamSet(scan, css->ss.ps.chgParam);
		/* a scan whose parameters changed is rescanned by its first call */
		if (scan->chgParam == NULL)
			ExecReScan(scan);
	}
	state->started = false;
}

/* The wrapper drops batches if a subtransaction ends before the next FETCH. */
static void
shutdown_node(CustomScanState *css)
{
	fms_shards_settle(((FmsMergeState *) css)->all);
}

static void
end_node(CustomScanState *css)
{
	FmsShards  *all = ((FmsMergeState *) css)->all;

	for (int i = 0; i < all->count; i++)
		ExecEndNode(all->scans[i]);
}

static void
explain_node(CustomScanState *css, List *ancestors, ExplainState *es)
{
	FmsMergeState *state = (FmsMergeState *) css;
	List	   *times = NIL;
	Size		peak_bytes = 0;

	fms_explain_keys(&css->ss.ps, &state->spec, 0, ancestors, es);
	if (!es->analyze)
		return;
	for (int i = 0; i < state->all->count; i++)
	{
		const FmsShard *shard = &state->all->shards[i];
		const ForeignScan *scan = (const ForeignScan *) shard->scan->plan;
		char	   *server;

		if (shard->request == NULL)
			continue;
		server = GetForeignServer(scan->fs_server)->servername;
		times = lappend(times, psprintf("%s %.3f ms", server,
										shard->wait_us / 1000));
		peak_bytes += shard->peak_bytes;
	}
	if (es->timing)
		ExplainPropertyList("Shard Wait Times", times, es);
	ExplainPropertyUInteger("Read-Ahead Memory", "kB",
							(peak_bytes + 1023) / 1024, es);
}

static const CustomExecMethods exec_methods = {
	.CustomName = FMS_MERGE_NAME,
	.BeginCustomScan = begin_node,
	.ExecCustomScan = exec_node,
	.EndCustomScan = end_node,
	.ReScanCustomScan = rescan_node,
	.ShutdownCustomScan = shutdown_node,
	.ExplainCustomScan = explain_node
};

Node *
fms_merge_create_state(CustomScan *plan)
{
	FmsMergeState *state = (FmsMergeState *) newNode(sizeof(FmsMergeState),
													 T_CustomScanState);

	state->css.methods = &exec_methods;
	/* the executor would make a projection of it; begin_node() puts it back */
	plan->scan.plan.targetlist = NIL;
	return (Node *) state;
}

PlanState **
fms_merge_children(PlanState *planstate, int *count)
{
	FmsMergeState *state = (FmsMergeState *) planstate;

	if (state->css.methods != &exec_methods)
		return NULL;
	*count = state->all->count;
	return state->all->scans;
}
