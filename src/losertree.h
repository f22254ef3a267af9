/*-------------------------------------------------------------------------
 *
 * losertree.h
 *	  A tree of losers: the smallest of n moving heads with log2(n)
 *	  comparisons a step.
 *
 * Each inner node remembers the leaf that lost there; the overall winner
 * stands in node 0.  When the winner's key has changed, only the path from
 * its leaf to the root is played again, and each match needs one comparison
 * (a heap needs two a level, to find the smaller child first).
 *
 * Five leaves, keys 7 3 9 1 4.  Leaf i stands at position n + i, its parent
 * at half that, so no level has to be full:
 *
 *	                  [0] winner: leaf 3 (1)
 *	                  [1] loser:  leaf 1 (3)
 *	        [2] loser: leaf 0 (7)        [3] loser: leaf 2 (9)
 *	     leaf 0     [4] loser: leaf 4    leaf 1      leaf 2
 *	                leaf 3      leaf 4
 *
 * The tree knows nothing about keys: the caller passes a function that says
 * whether leaf a goes before leaf b.  It must be a strict total order (ties
 * broken by the leaf number), or the sequence is not defined; the tree stays
 * memory-safe whatever it answers.  The functions are inline and the order
 * function is a constant at each call, so the compiler folds it in.
 *
 * Memory: the caller's array of n ints.  Nothing here can fail.
 *
 *-------------------------------------------------------------------------
 */
#ifndef FMS_LOSERTREE_H
#define FMS_LOSERTREE_H

#include "c.h"

typedef bool (*FmsLeafBefore) (void *arg, int a, int b);

typedef struct FmsLoserTree
{
	int			nleaves;		/* >= 1 */
	int		   *nodes;			/* [nleaves]; [0] winner, others losers */
} FmsLoserTree;

/* The leaf that goes first now. */
static inline int
fms_losertree_winner(const FmsLoserTree *tree)
{
	return tree->nodes[0];
}

/*
 * Plays the path of a leaf whose key has changed.  The leaf must be the
 * winner: the losers on another leaf's path did not all play against it.
 */
static pg_attribute_always_inline void
fms_losertree_replay(FmsLoserTree *tree, FmsLeafBefore before, void *arg)
{
	int			winner = tree->nodes[0];
	int			node;

	for (node = (tree->nleaves + winner) / 2; node > 0; node /= 2)
	{
		int			other = tree->nodes[node];

		if (before(arg, other, winner))
		{
			tree->nodes[node] = winner;
			winner = other;
		}
	}
	tree->nodes[0] = winner;
}

/*
 * The leaf that would go first if the winner did not: the best of those that
 * have lost to it.  -1 if there is no other.  As long as the winner goes
 * before this one nothing has to be played.
 */
static pg_attribute_always_inline int
fms_losertree_runner_up(const FmsLoserTree *tree, FmsLeafBefore before,
						void *arg)
{
	int			best = -1;
	int			node;

	for (node = (tree->nleaves + tree->nodes[0]) / 2; node > 0; node /= 2)
	{
		if (best < 0 || before(arg, tree->nodes[node], best))
			best = tree->nodes[node];
	}
	return best;
}

/*
 * Builds the tree over leaves 0 .. nleaves-1 in the caller's array.  Each
 * leaf climbs until it meets an empty node and waits there for its opponent;
 * the last one to climb finds opponents all the way up.
 */
static pg_attribute_always_inline void
fms_losertree_build(FmsLoserTree *tree, int *nodes, int nleaves,
					FmsLeafBefore before, void *arg)
{
	int			leaf;

	tree->nodes = nodes;
	tree->nleaves = nleaves;
	for (leaf = 0; leaf < nleaves; leaf++)
		nodes[leaf] = -1;

	for (leaf = 0; leaf < nleaves; leaf++)
	{
		int			winner = leaf;
		int			node;

		for (node = (nleaves + leaf) / 2; node > 0; node /= 2)
		{
			int			other = nodes[node];

			if (other < 0)
			{
				nodes[node] = winner;
				winner = -1;
				break;
			}
			if (before(arg, other, winner))
			{
				nodes[node] = winner;
				winner = other;
			}
		}
		if (winner >= 0)
			nodes[0] = winner;
	}
}

#endif							/* FMS_LOSERTREE_H */
