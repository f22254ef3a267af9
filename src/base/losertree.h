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
 * A match compares numbers of 96 bits that the caller makes of its keys; they
 * stand in the nodes, together with the leaf, so that a match touches nothing
 * else.  Who wins is as good as random, so nothing branches on it: winner and
 * loser change places under a mask.  (With branches, half of the matches on a
 * path are predicted wrongly, which takes longer than the matches.)
 *
 *	  node      | key_high, 64 bits | key_low, 32 | leaf, 32 |
 *
 * Only what the numbers leave open is asked of the caller: a function that
 * says which of two leaves of the same number loses.  It must be a strict
 * total order among those (ties broken by the leaf), or the sequence is not
 * defined; the tree stays memory-safe whatever it answers.  It may give the
 * loser another number, that of how it differs from the winner
 * (offset_value.h).  NULL: the leaf decides, which the node's own number does.
 * The functions are inline and that one is a constant at each call, so the
 * compiler folds it in.
 *
 * Memory: the caller's array of n nodes.  Nothing here fails but what the
 * caller's functions raise, and a check for interrupts while building.
 *
 *-------------------------------------------------------------------------
 */
#ifndef FMS_LOSERTREE_H
#define FMS_LOSERTREE_H

#include "base/interrupts.h"

/*
 * One number, not two words in a struct: compilers would move those to vector
 * registers, and back for each comparison.
 */
typedef uint128 FmsLoserNode;

typedef struct FmsLoserTree
{
	int			nleaves;		/* >= 1 */
	FmsLoserNode *nodes;		/* [nleaves]; [0] winner, others losers */
} FmsLoserTree;

/* What that leaf plays with at first. */
typedef FmsLoserNode (*FmsLeafNode) (void *arg, int leaf);

/*
 * The loser of two whose numbers are the same: a or b, but for its number,
 * which may be another one from now on.
 */
typedef FmsLoserNode (*FmsTieLoser) (void *arg, FmsLoserNode a,
									 FmsLoserNode b);

#define FMS_LOSERTREE_LEAF_BITS 32

/* What a leaf plays with. */
static inline FmsLoserNode
fms_losertree_node(uint64 key_high, uint32 key_low, int leaf)
{
	return (FmsLoserNode) key_high << 64 |
		(uint64) key_low << FMS_LOSERTREE_LEAF_BITS | (uint32) leaf;
}

/* Nothing is left of the leaf: it goes after all others. */
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

/* The leaf that goes first now. */
static inline int
fms_losertree_winner(const FmsLoserTree *tree)
{
	return fms_losertree_leaf(tree->nodes[0]);
}

/* Are their numbers the same? */
static inline bool
fms_losertree_tied(FmsLoserNode a, FmsLoserNode b)
{
	return (a ^ b) >> FMS_LOSERTREE_LEAF_BITS == 0;
}

/*
 * Does a go before b, by number, then leaf?  Without a branch, which
 * compilers make of a < b: the borrow of a - b.
 */
static pg_attribute_always_inline bool
fms_losertree_before(FmsLoserNode a, FmsLoserNode b)
{
	FmsLoserNode difference;

	return __builtin_sub_overflow(a, b, &difference);
}

/* The one of them that goes later. */
static inline FmsLoserNode
fms_losertree_later(FmsLoserNode a, FmsLoserNode b)
{
	return fms_losertree_before(a, b) ? b : a;
}

/* If other goes first: they change places. */
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

/*
 * Plays the path of a leaf whose key has changed.  The leaf must be the
 * winner: the losers on another leaf's path did not all play against it.
 */
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

/*
 * What would go first if the winner did not: the best of those that have lost
 * to it.  There must be one.  As long as the winner goes before it nothing
 * has to be played.
 */
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
 * Builds the tree over leaves 0 .. nleaves-1 in the caller's array.  Each
 * leaf climbs until it meets an empty node and waits there for its opponent;
 * the last one to climb finds opponents all the way up.  Checks for interrupts
 * before each: a match may run a type's comparator.
 */
static pg_attribute_always_inline void
fms_losertree_build(FmsLoserTree *tree, FmsLoserNode *nodes, int nleaves,
					FmsLeafNode node_of, FmsTieLoser tie_loser, void *arg)
{
	const FmsLoserNode empty = ~(FmsLoserNode) 0;
	int			leaf;

	tree->nodes = nodes;
	tree->nleaves = nleaves;
	for (leaf = 0; leaf < nleaves; leaf++)
		nodes[leaf] = empty;

	for (leaf = 0; leaf < nleaves; leaf++)
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
		/* an empty one on the way, or the root */
		nodes[node] = winner;
	}
}

#endif							/* FMS_LOSERTREE_H */
