/*-------------------------------------------------------------------------
 *
 * parallel_paths.c
 *	  Parallel sorts for the planner, at the cost that they have here.
 *
 * An FMSort takes rows from the workers' files (sort/share.c), not from the
 * queues for which the planner charges parallel_tuple_cost.  After each step
 * of planning that sorts, this file offers a second path for each one that
 * sorts in one process:
 *
 *	  WindowAgg					WindowAgg'
 *	    Sort					  Gather Merge, without parallel_tuple_cost
 *	      Seq Scan		  ==>	    Sort
 *								      Parallel Seq Scan
 *
 * The nodes above the Sort are copied, and differ in costs only: by the same
 * amount as the Gather Merge from the Sort.
 *
 * The plan is one that the server could have made, and right without fmsort.
 * Not offered: Sorts below a merge join, as joins call no hook once their
 * paths are there, and steps for which the planner has preferred hashing.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "optimizer/pathnode.h"

#include "base/compat.h"
#include "executor/sort_node.h"

/* cost_gather_merge() charges this times parallel_tuple_cost for a row. */
#define QUEUE_FACTOR	1.05

/* The size of a node that keeps the order, and its link to the input; or 0. */
static Size
ordered_node(Path *path, Path ***input)
{
#define FMS_NODE(type) \
	case T_##type: \
		*input = &((type *) path)->subpath; \
		return sizeof(type)
	*input = NULL;
	if (IsA(path, AggPath) && ((AggPath *) path)->aggstrategy != AGG_SORTED)
		return 0;
	switch (nodeTag(path))
	{
			FMS_NODE(ProjectionPath);
			FMS_NODE(GroupPath);
			FMS_NODE(AggPath);
			FMS_NODE(WindowAggPath);
			FMS_NODE(FmsUniquePath);
		default:
			return 0;
	}
#undef FMS_NODE
}

/* What the Sort returns, from a parallel one; NULL if there can be none. */
static Path *
parallel_sort(PlannerInfo *root, const SortPath *sort, double limit_tuples)
{
	RelOptInfo *rel = sort->path.parent;
	const Path *input = sort->subpath;
	double		rows = sort->path.rows;
	Path	   *partial;
	GatherMergePath *gather;

	if (input->parent->partial_pathlist == NIL || input->param_info)
		return NULL;
	partial = linitial(input->parent->partial_pathlist);
	if (!partial->parallel_safe || partial->param_info ||
		!equal(partial->pathtarget->exprs, input->pathtarget->exprs))
		return NULL;
	/* what is computed above the Sort need not be parallel safe */
	partial = (Path *) create_sort_path(root, input->parent, partial,
										sort->path.pathkeys, limit_tuples);
	gather = create_gather_merge_path(root, rel, partial,
									  sort->path.pathtarget,
									  sort->path.pathkeys, NULL, &rows);
	gather->path.total_cost -= QUEUE_FACTOR * parallel_tuple_cost * rows;
	return &gather->path;
}

/* The path with its Sort made parallel; NULL: it has none that could be. */
static Path *
with_parallel_sort(PlannerInfo *root, Path *path, double limit_tuples)
{
	Path	  **input;
	Size		size = ordered_node(path, &input);
	Path	   *parallel;
	Path	   *result;

	if (IsA(path, SortPath))
		return parallel_sort(root, (SortPath *) path, limit_tuples);
	if (size == 0)
		return NULL;
	parallel = with_parallel_sort(root, *input, limit_tuples);
	if (parallel == NULL)
		return NULL;

	result = palloc(size);
	memcpy(result, path, size);
	result->startup_cost += parallel->startup_cost - (*input)->startup_cost;
	result->total_cost += parallel->total_cost - (*input)->total_cost;
	FMS_ADD_DISABLED_NODES(result, parallel, *input);
	result->parallel_safe = false;
	(void) ordered_node(result, &input);
	*input = parallel;
	return result;
}

void
fms_add_parallel_paths(PlannerInfo *root, UpperRelationKind stage,
					   RelOptInfo *output)
{
	double		limit_tuples = -1.0;
	List	   *paths = NIL;
	ListCell   *cell;

	if (stage == UPPERREL_ORDERED)
		limit_tuples = root->limit_tuples;
	else if (stage != UPPERREL_GROUP_AGG && stage != UPPERREL_WINDOW &&
			 stage != UPPERREL_DISTINCT)
		return;
	if (!enable_gathermerge || fms_settings.mode == FMS_MODE_OFF ||
		!fms_settings_parallel)
		return;
	foreach(cell, output->pathlist)
	{
		Path	   *path = with_parallel_sort(root, lfirst(cell),
											  limit_tuples);

		if (path)
			paths = lappend(paths, path);
	}
	/* changes the list, and frees paths that it finds too expensive */
	foreach(cell, paths)
		add_path(output, lfirst(cell));
}
