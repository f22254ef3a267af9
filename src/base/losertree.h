/*-------------------------------------------------------------------------
 *
 * losertree.h
 *	  A tree of losers: the smallest of n heads with log2(n) matches a step.
 *
 * Node 0 holds the winner, every other node the loser of its match.  When the
 * winner's key changes, the path from its leaf to the root is replayed, one
 * comparison a match.  Leaf i is at position n + i; the parent of position p
 * is at p / 2.  Five leaves with keys 7 3 9 1 4:
 *
 *	                  [0] winner: leaf 3 (1)
 *	                  [1] loser:  leaf 1 (3)
 *	        [2] loser: leaf 0 (7)        [3] loser: leaf 2 (9)
 *	     leaf 0     [4] loser: leaf 4    leaf 1      leaf 2
 *	                leaf 3      leaf 4
 *
 * A node is a 128-bit number that contains the key and the leaf's number, so a
 * match reads two nodes and, unless the keys are equal, no record:
 *
 *	  node      | key_high, 64 bits | key_low, 32 | leaf, 32 |
 *
 * The result of a match is unpredictable, so the nodes change places under a
 * mask and not by a branch.
 *
 *-------------------------------------------------------------------------
 */
#ifndef FMS_LOSERTREE_H
#define FMS_LOSERTREE_H

#include "base/interrupts.h"

/* Not a struct: compilers move one of two words to vector registers. */
typedef uint128 FmsLoserNode;

typedef struct FmsLoserTree
{
	int			nleaves;		/* >= 1 */
	FmsLoserNode *nodes;		/* [nleaves], the caller's */
} FmsLoserTree;

typedef FmsLoserNode (*FmsLeafNode) (void *arg, int leaf);

/*
 * Returns the loser of two nodes with the same key bits, possibly with other
 * key bits from now on (offset_value.h).  NULL: the smaller leaf wins.
 */
typedef FmsLoserNode (*FmsTieLoser) (void *arg, FmsLoserNode a,
									 FmsLoserNode b);

#define FMS_LOSERTREE_LEAF_BITS 32

static inline FmsLoserNode
fms_losertree_node(uint64 key_high, uint32 key_low, int leaf)
{
	return (FmsLoserNode) key_high << 64 |
		(uint64) key_low << FMS_LOSERTREE_LEAF_BITS | (uint32) leaf;
}

/* The node of a leaf that has ended: goes after all others. */
static inline FmsLoserNode
fms_losertree_end(int leaf)
{
	return fms_losertree_node(PG_UINT64_MAX, PG_UINT32_MAX, leaf);
}

static inline int
fms_losertree_leaf(FmsLoserNode node)
{
	return (int) (uint32) node;
}

static inline int
fms_losertree_winner(const FmsLoserTree *tree)
{
	return fms_losertree_leaf(tree->nodes[0]);
}

/* Do the nodes have the same key bits? */
static inline bool
fms_losertree_tied(FmsLoserNode a, FmsLoserNode b)
{
	return (a ^ b) >> FMS_LOSERTREE_LEAF_BITS == 0;
}

/* Does a go before b?  Compilers make a branch of a < b, none of a borrow. */
static pg_attribute_always_inline bool
fms_losertree_before(FmsLoserNode a, FmsLoserNode b)
{
	FmsLoserNode difference;

	return __builtin_sub_overflow(a, b, &difference);
}

static inline FmsLoserNode
fms_losertree_later(FmsLoserNode a, FmsLoserNode b)
{
	return fms_losertree_before(a, b) ? b : a;
}

/* Swaps the nodes if *other goes before *winner. */
static pg_attribute_always_inline void
fms_losertree_play(FmsLoserNode *other, FmsLoserNode *winner,
				   FmsTieLoser tie_loser, void *arg)
{
	uint64		mask;
	FmsLoserNode difference;
	FmsLoserNode change;

	if (tie_loser && fms_losertree_tied(*other, *winner))
	{
		FmsLoserNode loser = tie_loser(arg, *other, *winner);

		if (fms_losertree_leaf(loser) != fms_losertree_leaf(*other))
			*winner = *other;
		*other = loser;
		return;
	}
	mask = -(uint64) fms_losertree_before(*other, *winner);
	difference = *other ^ *winner;
	change = (FmsLoserNode) ((uint64) (difference >> 64) & mask) << 64 |
		((uint64) difference & mask);
	*other ^= change;
	*winner ^= change;
}

/* Replays the path of the winner's leaf, whose node is `changed` now. */
static pg_attribute_always_inline void
fms_losertree_replay(FmsLoserTree *tree, FmsLoserNode changed,
					 FmsTieLoser tie_loser, void *arg)
{
	FmsLoserNode winner = changed;
	unsigned	node = (tree->nleaves + fms_losertree_leaf(changed)) / 2;

	Assert(fms_losertree_leaf(changed) == fms_losertree_winner(tree));
	for (; node > 0; node /= 2)
		fms_losertree_play(&tree->nodes[node], &winner, tie_loser, arg);
	tree->nodes[0] = winner;
}

/* Returns the node that goes next: the best that has lost to the winner. */
static pg_attribute_always_inline FmsLoserNode
fms_losertree_runner_up(const FmsLoserTree *tree, FmsTieLoser tie_loser,
						void *arg)
{
	unsigned	node = (tree->nleaves + fms_losertree_winner(tree)) / 2;
	FmsLoserNode best = tree->nodes[node];

	Assert(tree->nleaves > 1);
	for (node /= 2; node > 0; node /= 2)
	{
		FmsLoserNode other = tree->nodes[node];

		fms_losertree_play(&other, &best, tie_loser, arg);
	}
	return best;
}

/*
 * Builds the tree in nodes[nleaves].  Each leaf climbs until it meets an empty
 * node and waits there for its opponent.  A match may run a comparator.
 */
static pg_attribute_always_inline void
fms_losertree_build(FmsLoserTree *tree, FmsLoserNode *nodes, int nleaves,
					FmsLeafNode node_of, FmsTieLoser tie_loser, void *arg)
{
	const FmsLoserNode empty = ~(FmsLoserNode) 0;

	tree->nodes = nodes;
	tree->nleaves = nleaves;
	for (int leaf = 0; leaf < nleaves; leaf++)
		nodes[leaf] = empty;

	for (int leaf = 0; leaf < nleaves; leaf++)
	{
		FmsLoserNode winner;
		unsigned	node;

		CHECK_FOR_INTERRUPTS();
		winner = node_of(arg, leaf);
		Assert(fms_losertree_leaf(winner) == leaf);
		for (node = (nleaves + leaf) / 2; node > 0; node /= 2)
		{
			if (nodes[node] == empty)
				break;
			fms_losertree_play(&nodes[node], &winner, tie_loser, arg);
		}
		nodes[node] = winner;
	}
}

#endif							/* FMS_LOSERTREE_H */
