/* links: keys/entries keys/packed keys/presorted keys/radix keys/key_tail */
/*
 * Sorting entries against qsort() with the arrival as the last key: any
 * distribution, any order of the input, keys of any length that are or are
 * not all there is to compare, taken in pieces.
 *
 * keys.c is replaced: what follows the key is a text, which may have a long
 * beginning in common with others, and one word of the record.
 *
 * Seen to fail with: the buckets' shift one too small; take_until() not
 * remembering what was taken; dealing words that are not in order of arrival;
 * digits one bit too narrow; parts of keys lost; ties not sorted after
 * packing; a part of the key one byte further on than it is; prefixes not
 * restored after a sort by the next ones; an outlier lost; outliers merged by
 * their keys where the order was lost; order that was lost taken for sorted.
 */
#include "postgres.h"

#include <stdlib.h>

#include "miscadmin.h"

#include "keys/entry.h"
#include "keys/key_columns.h"
#include "shim.h"

#define MAX_ENTRIES 20000
#define MAX_TEXT 120

/* A record whose key may be followed by a text and a word. */
typedef struct Row
{
	FmsRecord	record;
	uint8		key[FMS_KEY_MAX_BYTES];
	uint64		rest;
	union
	{
		struct varlena header;
		char		bytes[VARHDRSZ + MAX_TEXT];
	}			text;
	bool		null;			/* instead of the text */
} Row;

static FmsKeys *columns;		/* the text, and perhaps the word */

static Row	rows[MAX_ENTRIES];
static FmsEntry entries[MAX_ENTRIES];
static FmsEntry expected[MAX_ENTRIES];
static Size taken;
static bool in_order;

static int
compare_words(const Row *a, const Row *b)
{
	return (a->rest > b->rest) - (a->rest < b->rest);
}

static int
compare_columns(const Row *a, const Row *b)
{
	Size		a_bytes = VARSIZE(&a->text) - VARHDRSZ;
	Size		b_bytes = VARSIZE(&b->text) - VARHDRSZ;
	int			order = (int) a->null - (int) b->null;

	if (order == 0 && !a->null)
	{
		order = memcmp(VARDATA(&a->text), VARDATA(&b->text),
					   Min(a_bytes, b_bytes));
		if (order == 0)
			order = (a_bytes > b_bytes) - (a_bytes < b_bytes);
		if (columns->columns[0].invert)
			order = -order;
	}
	return order != 0 ? order : compare_words(a, b);
}

static int
compare_rows(const Row *a, const Row *b)
{
	int			order = memcmp(a->key, b->key, a->record.key_bytes);

	if (order != 0 || (a->record.flags & FMS_RECORD_EXACT))
		return order;
	return compare_columns(a, b);
}

int
fms_keys_compare_rest(FmsKeys *keys, const FmsRecord *a, const FmsRecord *b)
{
	return compare_rows((const Row *) a, (const Row *) b);
}

int
fms_keys_compare_columns(FmsKeys *keys, const FmsRecord *a,
						 const FmsRecord *b, int equal)
{
	const Row  *x = (const Row *) a;
	const Row  *y = (const Row *) b;

	return equal ? compare_words(x, y) : compare_columns(x, y);
}

Datum
fms_keys_column(const FmsKeys *keys, const FmsRecord *record, int i,
				bool *isnull)
{
	const Row  *row = (const Row *) record;

	*isnull = row->null;
	return PointerGetDatum(&row->text);
}

void
check_stack_depth(void)
{
}

static int
compare(const void *a, const void *b)
{
	const char *first = (const char *) rows;
	const Row  *x = (const Row *) fms_entry_record(first, a);
	const Row  *y = (const Row *) fms_entry_record(first, b);
	int			order = compare_rows(x, y);

	/* they arrive from the beginning of the memory to its end */
	return order != 0 ? order : (x > y) - (x < y);
}

static void
take(const FmsEntriesSort *sort, const FmsEntry *piece, Size count)
{
	if (piece != entries + taken ||
		memcmp(piece, expected + taken, count * sizeof(FmsEntry)) != 0)
		in_order = false;
	taken += count;
}

typedef enum Shape
{
	RANDOM, FEW, EQUAL, TWO_CLUSTERS, ASCENDING, DESCENDING, NEARLY,
	STRAYS, MANY_STRAYS, STRAYS_TOGETHER, ORDER_LOST,
	DESCENDING_WITH_TIES, DATES, LONG_RANGE, ALIKE, SCATTERED, SHAPES
} Shape;

static const char *const shape_names[] = {
	"random", "few values", "all equal", "two clusters", "ascending",
	"descending", "ascending but for one", "ascending but for a few",
	"ascending but for too many", "ascending but for some together",
	"ascending, then random", "descending with ties",
	"few bits around a power of two", "almost all of the bits",
	"keys that begin alike", "bits here and there"
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
		case STRAYS:
			return shim_below(300) == 0 ? shim_below(n) : i / 2;
		case MANY_STRAYS:
			return shim_below(40) == 0 ? shim_below(n) : i / 2;
		case STRAYS_TOGETHER:
			return i % 1000 > 995 ? shim_below(n) : i;
		case ORDER_LOST:
			return i < n * 3 / 4 && shim_below(500) > 0 ? i / 2 :
				shim_below(n);
		case DESCENDING_WITH_TIES:
			return (n - i) / 2;
		case DATES:
			return (UINT64CONST(1) << 40) + shim_below(3000) * 256 -
				1000 * 256;
		case LONG_RANGE:
			return shim_random() >> 6;
		case ALIKE:
			return UINT64CONST(0x436C65726B233030);
		case SCATTERED:
			return UINT64CONST(0x436C65726B233030) ^
				(shim_random() & (n % 2 ? UINT64CONST(0x00FF0000F0010F0) :
								  UINT64CONST(0x1010101010101010)));
		default:
			return shim_random();
	}
}

/* What the test's tables differ in, besides the shape. */
typedef struct Keys
{
	const char *name;
	uint16		key_bytes;
	bool		exact;
	bool		prefix_decides;
} Keys;

static const Keys keys_of[] = {
	{"ten bytes decide", 10, true, true},
	{"18 bytes decide", 18, true, false},
	{"26 bytes decide", 26, true, false},
	{"34 bytes decide", 34, true, false},
	{"2 bytes and more", 2, false, false},
	{"10 bytes and more", 10, false, false},
	{"26 bytes and more", 26, false, false},
	{"34 bytes and more", 34, false, false},
};

/*
 * Texts that are all the same, share a beginning, are beginnings of each
 * other, or end anywhere.
 */
static void
make_text(Row *row, Size i, Size n)
{
	Size		shared = n % 100;
	Size		length = shared;

	memset(VARDATA(&row->text), 'a', MAX_TEXT);
	if (n % 4 == 1)
		length += shim_below(MAX_TEXT - shared);
	else if (n % 4 > 1)
	{
		length += 10 + shim_below(10);
		VARDATA(&row->text)[shared + shim_below(10)] += shim_below(20);
	}
	SET_VARSIZE(&row->text, VARHDRSZ + length);
	/* sometimes the last one cannot be read */
	row->null = i + 1 == n && shim_below(4) == 0;
}

static void
make_row(Row *row, const Keys *keys, Shape shape, Size i, Size n)
{
	uint64		word = pg_hton64(prefix_at(shape, i, n));
	int			at;

	memset(row, 0, sizeof(Row));
	row->record.key_bytes = keys->key_bytes;
	row->record.flags = keys->exact ? FMS_RECORD_EXACT : 0;
	memcpy(row->key, &word, sizeof(word));
	for (at = sizeof(word); at < keys->key_bytes; at++)
		row->key[at] = at < FMS_PREFIX_BYTES || !keys->prefix_decides ?
			shim_below(2) * 77 : 0;
	/* now and then a whole part is the same, or wide */
	if (shape == ALIKE && n % 2 == 0 && keys->key_bytes > 8)
		memset(row->key + 8, 7, Min(keys->key_bytes - 8, 12));
	else if (shape == ALIKE && keys->key_bytes > 20)
	{
		memset(row->key + 8, 7, 2);
		word = shim_random();
		memcpy(row->key + 10, &word, sizeof(word));
	}
	row->rest = columns->ncolumns == 1 ? 0 :
		shim_below(n % 2 ? 3 : 100000);
	make_text(row, i, n);
}

static bool
sorts(const Keys *keys, Shape shape, Size n)
{
	FmsEntriesSort sort = {
		.keys = columns,
		.prefix_decides = keys->prefix_decides,
		.records = (const char *) rows,
		.take = take
	};
	Size		i;

	columns->ncolumns = 1 + shim_below(2);
	columns->columns[0].is_bytes = shim_below(4) > 0;
	columns->columns[0].invert = shim_below(2) ? 0xFF : 0;
	for (i = 0; i < n; i++)
	{
		Row		   *row = &rows[i];

		make_row(row, keys, shape, i, n);
		entries[i] = fms_entry_make(&row->record, i * sizeof(Row));
	}
	memcpy(expected, entries, n * sizeof(FmsEntry));
	qsort(expected, n, sizeof(FmsEntry), compare);

	taken = 0;
	in_order = true;
	fms_entries_sort(&sort, entries, n);
	if (!in_order || taken != n ||
		memcmp(entries, expected, n * sizeof(FmsEntry)) != 0)
		return false;

	fms_entries_sort_by_comparing(entries, n, NULL);
	for (i = 0; i < n; i++)
	{
		if (fms_entry_offset(&entries[i]) != i * sizeof(Row))
			return false;
	}
	return true;
}

int
main(void)
{
	static const Size sizes[] = {
		0, 1, 2, 3, 17, 64, 255, 256, 257, 511, 1000, 5001, MAX_ENTRIES
	};
	int			shape;
	int			i;
	int			j;

	shim_seed();
	columns = calloc(1, offsetof(FmsKeys, columns) + sizeof(FmsColumn));
	for (shape = 0; shape < SHAPES; shape++)
	{
		for (j = 0; j < (int) lengthof(keys_of); j++)
		{
			bool		passed = true;

			for (i = 0; i < (int) lengthof(sizes) && passed; i++)
			{
				passed = sorts(&keys_of[j], shape, sizes[i]);
				if (!passed)
					shim_note("%zu entries", sizes[i]);
			}
			shim_ok(passed, "%s, %s", shape_names[shape],
					keys_of[j].name);
		}
	}
	return shim_done();
}
