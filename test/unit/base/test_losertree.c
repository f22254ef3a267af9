/* links:  */
/*
 * The tree of losers against a sorted reference: order, stability, number of
 * comparisons, who comes next after the winner.
 *
 * Seen to fail with: replay() leaving out the first match; a second
 * comparison in each match; runner_up() leaving out the last match; numbers
 * compared by their higher word only; the function not asked about numbers
 * that are the same.
 */
#include "postgres.h"

#include <stdlib.h>

#include "base/losertree.h"
#include "shim.h"

#define MAX_LEAVES	300
#define MAX_ITEMS	40

/* One leaf: a run of sorted keys. */
typedef struct Leaf
{
	int			keys[MAX_ITEMS];
	int			n;
	int			at;
} Leaf;

typedef struct Item
{
	int			key;
	int			leaf;
	int			position;
} Item;

/* What of the keys the tree is told as numbers. */
typedef enum Numbers
{
	ALL_ALIKE,					/* nothing: every match asks */
	COARSE,						/* something: matches ask now and then */
	EXACT						/* all: none asks */
} Numbers;

static Leaf leaves[MAX_LEAVES];
static uint64 comparisons;

static bool
before(void *arg, int a, int b)
{
	bool		a_end = leaves[a].at >= leaves[a].n;
	bool		b_end = leaves[b].at >= leaves[b].n;
	int			a_key;
	int			b_key;

	comparisons++;
	if (a_end || b_end)
		return b_end && (!a_end || a < b);
	a_key = leaves[a].keys[leaves[a].at];
	b_key = leaves[b].keys[leaves[b].at];
	return a_key != b_key ? a_key < b_key : a < b;
}

static FmsLoserNode
tie_loser(void *arg, FmsLoserNode a, FmsLoserNode b)
{
	return before(arg, fms_losertree_leaf(a), fms_losertree_leaf(b)) ? b : a;
}

/* Both halves of the number are needed to know the key. */
static FmsLoserNode
node_of(int leaf, Numbers numbers)
{
	int			key;

	if (numbers == ALL_ALIKE)
		return fms_losertree_node(0, 0, leaf);
	if (leaves[leaf].at >= leaves[leaf].n)
		return fms_losertree_end(leaf);
	key = leaves[leaf].keys[leaves[leaf].at];
	if (numbers == COARSE)
		key = key / 3 * 3;
	return fms_losertree_node(key / 16, key % 16, leaf);
}

/* The same, as a tree asks for it. */
static FmsLoserNode
first_node(void *arg, int leaf)
{
	return node_of(leaf, *(Numbers *) arg);
}

static int
compare_ints(const void *a, const void *b)
{
	return *(const int *) a - *(const int *) b;
}

/* The leaf that goes first of all but one. */
static int
first_but(int n, int one)
{
	int			best = -1;
	int			i;

	for (i = 0; i < n; i++)
	{
		if (i != one && (best < 0 || before(NULL, i, best)))
			best = i;
	}
	return best;
}

static int
compare_items(const void *a, const void *b)
{
	const Item *x = a;
	const Item *y = b;

	if (x->key != y->key)
		return x->key < y->key ? -1 : 1;
	if (x->leaf != y->leaf)
		return x->leaf - y->leaf;
	return x->position - y->position;
}

static int
ceil_log2(int n)
{
	int			log = 0;

	while ((1 << log) < n)
		log++;
	return log;
}

/* Merges n leaves with keys 0 .. range - 1, and compares. */
static bool
merges_well(int n, int range, Numbers numbers)
{
	static Item expected[MAX_LEAVES * MAX_ITEMS];
	FmsLoserNode nodes[MAX_LEAVES];
	FmsTieLoser ask = numbers == EXACT ? NULL : tie_loser;
	FmsLoserTree tree;
	int			items = 0;
	int			i;
	uint64		allowed;

	for (i = 0; i < n; i++)
	{
		int			j;

		leaves[i].n = shim_below(4) == 0 ? 0 : shim_below(MAX_ITEMS + 1);
		leaves[i].at = 0;
		for (j = 0; j < leaves[i].n; j++)
			leaves[i].keys[j] = shim_below(range);
		qsort(leaves[i].keys, leaves[i].n, sizeof(int), compare_ints);
		for (j = 0; j < leaves[i].n; j++)
			expected[items++] = (Item) {leaves[i].keys[j], i, j};
	}
	qsort(expected, items, sizeof(Item), compare_items);

	comparisons = 0;
	fms_losertree_build(&tree, nodes, n, first_node, ask, &numbers);
	if (numbers == ALL_ALIKE && comparisons != (uint64) (n - 1))
	{
		shim_note("n=%d: %llu comparisons to build", n,
				  (unsigned long long) comparisons);
		return false;
	}

	for (i = 0; i < items; i++)
	{
		int			winner = fms_losertree_winner(&tree);

		if (winner != expected[i].leaf ||
			leaves[winner].at != expected[i].position)
		{
			shim_note("n=%d range=%d: item %d from leaf %d, not %d", n, range,
					  i, winner, expected[i].leaf);
			return false;
		}
		if (i % 7 == 0 && n > 1)
		{
			uint64		before_that = comparisons;
			int			next =
				fms_losertree_leaf(fms_losertree_runner_up(&tree, ask, NULL));

			if (next != first_but(n, winner))
			{
				shim_note("n=%d range=%d: item %d is followed by leaf %d", n,
						  range, i, next);
				return false;
			}
			comparisons = before_that;
		}
		leaves[winner].at++;
		fms_losertree_replay(&tree, node_of(winner, numbers), ask, NULL);
	}
	if (leaves[fms_losertree_winner(&tree)].at <
		leaves[fms_losertree_winner(&tree)].n)
		return false;

	allowed = n + (uint64) items * ceil_log2(n);
	if (comparisons > allowed)
	{
		shim_note("n=%d: %llu comparisons, %llu allowed", n,
				  (unsigned long long) comparisons,
				  (unsigned long long) allowed);
		return false;
	}
	return true;
}

static void
check(int range, Numbers numbers, const char *what)
{
	bool		passed = true;
	int			n;

	for (n = 1; n <= MAX_LEAVES && passed; n++)
		passed = merges_well(n, range, numbers);
	shim_ok(passed,
			"1 to %d leaves, %d different keys, %s: order, ties, comparisons",
			MAX_LEAVES, range, what);
}

int
main(void)
{
	static const int ranges[] = {1, 2, 10, 1000000};
	int			r;

	shim_seed();
	for (r = 0; r < (int) lengthof(ranges); r++)
	{
		check(ranges[r], ALL_ALIKE, "every match asked");
		check(ranges[r], COARSE, "some asked");
		check(ranges[r], EXACT, "none asked");
	}
	return shim_done();
}
