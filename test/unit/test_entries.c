/* links: entries */
/*
 * Sorting entries against qsort() with the arrival as the last key: any
 * distribution, any order of the input, with and without keys that the prefix
 * does not decide, taken in pieces.
 *
 * keys.c is replaced: what follows the prefix is one word of the record.
 *
 * Seen to fail with: descending() accepting equal prefixes; the buckets'
 * shift one too small; take_until() not remembering what was taken.
 */
#include "postgres.h"

#include <stdlib.h>

#include "miscadmin.h"

#include "entries.h"
#include "shim.h"

#define MAX_ENTRIES 20000

/* A record of which only the second word is compared. */
typedef struct Row
{
	FmsRecord	record;
	uint64		rest;
} Row;

static Row	rows[MAX_ENTRIES];
static FmsEntry entries[MAX_ENTRIES];
static FmsEntry expected[MAX_ENTRIES];
static Size taken;
static bool in_order;

int
fms_keys_compare_rest(FmsKeys *keys, const FmsRecord *a, const FmsRecord *b)
{
	uint64		x = ((const Row *) a)->rest;
	uint64		y = ((const Row *) b)->rest;

	return x < y ? -1 : x > y;
}

void
check_stack_depth(void)
{
}

static bool prefix_decides;

static const Row *
row_of(const FmsEntry *entry)
{
	return (const Row *) ((const char *) (rows + MAX_ENTRIES) -
						  fms_entry_back(entry));
}

static int
compare(const void *a, const void *b)
{
	const FmsEntry *x = a;
	const FmsEntry *y = b;

	if (x->prefix != y->prefix)
		return x->prefix < y->prefix ? -1 : 1;
	if (x->tail >> FMS_ENTRY_BACK_BITS != y->tail >> FMS_ENTRY_BACK_BITS)
		return x->tail < y->tail ? -1 : 1;
	if (!prefix_decides && row_of(x)->rest != row_of(y)->rest)
		return row_of(x)->rest < row_of(y)->rest ? -1 : 1;
	return x->tail < y->tail ? -1 : x->tail > y->tail;
}

static void
take(void *arg, const FmsEntry *piece, Size count)
{
	if (piece != entries + taken ||
		memcmp(piece, expected + taken, count * sizeof(FmsEntry)) != 0)
		in_order = false;
	taken += count;
}

typedef enum Shape
{
	RANDOM, FEW, EQUAL, TWO_CLUSTERS, ASCENDING, DESCENDING, NEARLY,
	DESCENDING_WITH_TIES, SHAPES
} Shape;

static const char *const shape_names[] = {
	"random", "few values", "all equal", "two clusters", "ascending",
	"descending", "ascending but for one", "descending with ties"
};

static uint64
prefix_at(Shape shape, Size i, Size n)
{
	switch (shape)
	{
		case FEW:
			return shim_below(7) * UINT64CONST(0x1000000000);
		case EQUAL:
			return PG_UINT64_MAX;
		case TWO_CLUSTERS:
			return (shim_below(2) ? PG_UINT64_MAX - 5000 : 0) +
				shim_below(5000);
		case ASCENDING:
			return i * 3;
		case DESCENDING:
			return (n - i) * 3;
		case NEARLY:
			return i == n / 2 ? 0 : i * 3;
		case DESCENDING_WITH_TIES:
			return (n - i) / 2;
		default:
			return shim_random();
	}
}

static bool
sorts(Shape shape, Size n)
{
	FmsEntriesSort sort = {
		.prefix_decides = prefix_decides,
		.records_end = (const char *) (rows + MAX_ENTRIES),
		.take = take
	};
	Size		i;

	for (i = 0; i < n; i++)
	{
		rows[MAX_ENTRIES - 1 - i].rest = shim_below(3);
		entries[i].prefix = prefix_at(shape, i, n);
		entries[i].tail = (i + 1) * sizeof(Row) |
			(uint64) shim_below(2) << FMS_ENTRY_BACK_BITS;
	}
	memcpy(expected, entries, n * sizeof(FmsEntry));
	qsort(expected, n, sizeof(FmsEntry), compare);

	taken = 0;
	in_order = true;
	fms_entries_sort(&sort, entries, n);
	if (!in_order || taken != n ||
		memcmp(entries, expected, n * sizeof(FmsEntry)) != 0)
		return false;

	fms_entries_sort_by_arrival(entries, n);
	for (i = 0; i < n; i++)
	{
		if (fms_entry_back(&entries[i]) != (i + 1) * sizeof(Row))
			return false;
	}
	return true;
}

int
main(void)
{
	static const Size sizes[] = {
		0, 1, 2, 3, 255, 256, 257, 1000, 5000, MAX_ENTRIES
	};
	int			shape;
	int			i;

	shim_seed();
	for (shape = 0; shape < SHAPES; shape++)
	{
		bool		passed = true;

		for (i = 0; i < 2 * (int) lengthof(sizes) && passed; i++)
		{
			prefix_decides = i % 2;
			passed = sorts(shape, sizes[i / 2]);
			if (!passed)
				shim_note("%zu entries, prefix decides: %d", sizes[i / 2],
						  prefix_decides);
		}
		shim_ok(passed, "%s", shape_names[shape]);
	}
	return shim_done();
}
