/* links:  */
/*
 * Offset-value codes in a tree of losers, as a merge uses them, against a
 * sorted reference: order, stability, and what it costs.
 *
 * keys.c is replaced: what follows the key is one word of the record.
 *
 * Seen to fail with: the loser of a tie keeping its code; a new code one word
 * too early; words compared from one too far on; codes of equal keys that are
 * not exact taken for the same; ties between equal records to the later leaf;
 * the base one record behind; every code taken for a lasting one.
 */
#include "postgres.h"

#include <stdlib.h>

#include "keys/offset_value.h"
#include "shim.h"

#define MAX_LEAVES	70
#define MAX_ROWS	6000

typedef struct Row
{
	FmsRecord	record;
	uint64		key[FMS_KEY_MAX_WORDS];
	uint64		rest;			/* compared if the key is not exact */
	int			leaf;
} Row;

/* A run: rows of the sorted array, from first to before end. */
typedef struct Leaf
{
	int			at;
	int			end;
} Leaf;

static Row	rows[MAX_ROWS];
static Row *expected[MAX_ROWS];
static Leaf leaves[MAX_LEAVES];
static FmsCodeBase left;
static uint64 fetches;			/* ties, each of which looks at records */
static uint64 columns;			/* of those, that compared columns */

int
fms_keys_compare_columns(FmsKeys *keys, const FmsRecord *a,
						 const FmsRecord *b, int equal)
{
	const Row  *x = (const Row *) a;
	const Row  *y = (const Row *) b;

	columns++;
	return x->rest < y->rest ? -1 : x->rest > y->rest;
}

static int
compare_keys(const Row *x, const Row *y)
{
	int			order = memcmp(x->key, y->key,
							   Min(x->record.key_bytes, y->record.key_bytes));

	if (order != 0 || (x->record.flags & FMS_RECORD_EXACT))
		return order;
	return x->rest < y->rest ? -1 : x->rest > y->rest;
}

/* By leaf, then as a run is sorted: equal ones as they are in the array. */
static int
compare_in_runs(const void *a, const void *b)
{
	const Row  *x = a;
	const Row  *y = b;

	return x->leaf != y->leaf ? x->leaf - y->leaf : compare_keys(x, y);
}

static int
compare_expected(const void *a, const void *b)
{
	const Row  *x = *(Row *const *) a;
	const Row  *y = *(Row *const *) b;
	int			order = compare_keys(x, y);

	/* runs lie in the array by leaf */
	return order != 0 ? order : (x > y) - (x < y);
}

/* What keys are made of. */
typedef struct Shape
{
	int			words;			/* different ones in each place */
	int			spread;			/* of which the last place has so many more */
	bool		shorter;		/* some keys end earlier */
	bool		exact;			/* or there is more to compare */
	int			rests;
	const char *name;
} Shape;

static const Shape shapes[] = {
	{1, 1, false, true, 1, "all the same"},
	{1, 1, false, false, 1, "the same, columns too"},
	{1, 1, false, false, 50, "the same, columns differ"},
	{2, 1, false, true, 1, "few"},
	{2, 1, true, true, 1, "few, of any length"},
	{2, 1, true, false, 3, "few, of any length, with columns"},
	{1, 100000, false, true, 1, "all but the last word alike"},
	{9, 1, true, false, 9, "many"},
	{1000000, 1, false, true, 1, "hardly two alike"},
};

/*
 * Bytes that begin like the others.  A word whose last bit is set is a key's
 * last whole one, so that no key begins with another.  Then come the last two
 * bytes, and something that does not belong to the key.
 */
static void
make_row(Row *row, const Shape *shape, int leaf)
{
	int			n = 0;
	bool		last;

	memset(row, 0, sizeof(*row));
	do
	{
		uint64		word;

		last = n == FMS_KEY_MAX_WORDS - 2 ||
			(shape->shorter && shim_below(4) == 0);
		word = shim_below(last ? shape->words * shape->spread : shape->words);
		row->key[n++] = pg_hton64((UINT64CONST(0x7465) << 48) + 2 * word +
								  (last ? 1 : 0));
	} while (!last);
	row->key[n] = shim_random();
	memset(&row->key[n], shim_below(Min(shape->words, 3)), FMS_KEY_LAST_BYTES);
	row->record.key_bytes = n * sizeof(uint64) + FMS_KEY_LAST_BYTES;
	row->record.flags = shape->exact ? FMS_RECORD_EXACT : 0;
	row->rest = shim_below(shape->rests);
	row->leaf = leaf;
}

static int
make_runs(int nleaves, int nrows, const Shape *shape)
{
	int			n = 0;
	int			leaf;

	for (leaf = 0; leaf < nleaves; leaf++)
	{
		int			count = shim_below(5) == 0 ? 0 :
			1 + shim_below(nrows / nleaves);

		leaves[leaf].at = n;
		for (; count > 0; count--)
			make_row(&rows[n++], shape, leaf);
		leaves[leaf].end = n;
	}
	/* the order of equal ones within a run is that of the array: no matter */
	qsort(rows, n, sizeof(Row), compare_in_runs);
	for (leaf = 0; leaf < n; leaf++)
		expected[leaf] = &rows[leaf];
	qsort(expected, n, sizeof(Row *), compare_expected);
	return n;
}

static FmsLoserNode
node_of(void *arg, int leaf)
{
	if (leaves[leaf].at == leaves[leaf].end)
		return fms_losertree_end(leaf);
	return fms_code_of(&rows[leaves[leaf].at].record, &left, leaf);
}

static FmsLoserNode
tie_loser(void *arg, FmsLoserNode a, FmsLoserNode b)
{
	const Leaf *x = &leaves[fms_losertree_leaf(a)];
	const Leaf *y = &leaves[fms_losertree_leaf(b)];

	if (x->at == x->end || y->at == y->end)
		return fms_losertree_later(a, b);
	fetches += fms_code_rank(a) != FMS_CODE_SAME;
	return fms_code_tie_loser(NULL, a, &rows[x->at].record,
							  b, &rows[y->at].record);
}

/* As a merge does it: is the runner-up still behind? */
static bool
stays_first(FmsLoserNode node, FmsLoserNode runner_up)
{
	if (!fms_losertree_tied(node, runner_up))
		return fms_losertree_before(node, runner_up);
	return fms_code_is_lasting(node) &&
		fms_losertree_leaf(tie_loser(NULL, node, runner_up)) !=
		fms_losertree_leaf(node);
}

static bool
merges_well(int nleaves, int nrows, const Shape *shape)
{
	FmsLoserNode nodes[MAX_LEAVES];
	FmsLoserNode runner_up = 0;
	bool		runner_up_known = false;
	FmsLoserTree tree;
	int			n = make_runs(nleaves, nrows, shape);
	int			i;

	memset(&left, 0, sizeof(left));
	fms_losertree_build(&tree, nodes, nleaves, node_of, tie_loser, NULL);
	for (i = 0; i < n; i++)
	{
		int			winner = fms_losertree_winner(&tree);
		FmsLoserNode node;

		if (&rows[leaves[winner].at] != expected[i])
		{
			shim_note("%s, %d leaves: row %d comes from leaf %d, not %d",
					  shape->name, nleaves, i, winner, expected[i]->leaf);
			return false;
		}
		fms_code_set_base(&left, &rows[leaves[winner].at].record);
		leaves[winner].at++;
		node = node_of(NULL, winner);
		if (runner_up_known && stays_first(node, runner_up))
			continue;
		fms_losertree_replay(&tree, node, tie_loser, NULL);
		runner_up_known = nleaves > 1 && i % 3 == 0;
		if (runner_up_known)
			runner_up = fms_losertree_runner_up(&tree, tie_loser, NULL);
	}
	return true;
}

static void
check_order(const Shape *shape)
{
	bool		passed = true;
	int			nleaves;

	for (nleaves = 1; nleaves <= MAX_LEAVES && passed; nleaves++)
		passed = merges_well(nleaves, 100 + shim_below(MAX_ROWS - 100), shape);
	shim_ok(passed, "1 to %d leaves, keys %s: order and ties", MAX_LEAVES,
			shape->name);
}

/*
 * What codes are for: with every match compared, 64 leaves would look at 12
 * records a step.
 */
static void
check_cost(void)
{
	static const Shape alike = {1, 1000000, false, true, 1, "alike"};
	FmsLoserNode nodes[MAX_LEAVES];
	FmsLoserTree tree;
	int			n = make_runs(64, MAX_ROWS, &alike);
	int			i;

	memset(&left, 0, sizeof(left));
	fetches = 0;
	fms_losertree_build(&tree, nodes, 64, node_of, tie_loser, NULL);
	for (i = 0; i < n; i++)
	{
		int			winner = fms_losertree_winner(&tree);

		fms_code_set_base(&left, &rows[leaves[winner].at].record);
		leaves[winner].at++;
		fms_losertree_replay(&tree, node_of(NULL, winner), tie_loser, NULL);
	}
	shim_ok(fetches < 64 + (uint64) n / 100,
			"keys that differ in their last words: %llu ties in %d rows",
			(unsigned long long) fetches, n);
}

/* Keys of no bytes but those that fill a word: columns are all there is. */
static void
check_no_key(void)
{
	Row			a = {.record = {.key_bytes = fms_key_room(0)}};
	Row			b = {.record = {.key_bytes = fms_key_room(0)}};
	FmsLoserNode x;
	FmsLoserNode y;

	a.key[0] = shim_random() << 16;
	a.rest = 2;
	b.rest = 1;
	memset(&left, 0, sizeof(left));
	x = fms_code_of(&a.record, &left, 0);
	y = fms_code_of(&b.record, &left, 1);
	shim_ok(fms_losertree_tied(x, y) &&
			fms_code_tie_loser(NULL, x, &a.record, y, &b.record) ==
			fms_code_same(&a.record, 0),
			"keys of no bytes: decided by columns");
}

int
main(void)
{
	int			i;

	shim_seed();
	for (i = 0; i < (int) lengthof(shapes); i++)
		check_order(&shapes[i]);
	check_cost();
	check_no_key();
	return shim_done();
}
