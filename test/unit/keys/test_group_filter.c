/* links: keys/group_filter */
/*
 * The filter of rows that a parent wants of each group: against numbers of
 * rows and ranks that are counted in the rows' values.
 *
 * keys.c is replaced: rows have an integer or null, a text and an integer,
 * and two or three of them are in the key.
 *
 * Seen to fail with: the end of a text in the key one byte too early; nulls as
 * long as values; a key that is cut off taken for whole; the first column
 * compared only; the first row of a rank not renewed; rank counted like
 * dense_rank; k one off; records not copied.
 */
#include "postgres.h"

#include <stdlib.h>

#include "keys/encode.h"
#include "keys/key_columns.h"
#include "keys/keys.h"
#include "shim.h"

#define NCOLUMNS	3
#define MAX_ROWS	5000
#define NULL_VALUE	3			/* of the first column */

static const char *const texts[] = {
	"", "a", "ab", "b", "of a length at which a key is cut off, 1",
	"of a length at which a key is cut off, 2", "of a length at"
};

/* The values are in the tuple behind what a record does not store. */
typedef struct Values
{
	char		skipped[12];
	int32		of[NCOLUMNS];
} Values;

typedef struct Row
{
	FmsRecord	record;
	uint64		rest[FMS_KEY_MAX_WORDS + 4];
	int32		of[NCOLUMNS];
	bool		wanted;
} Row;

static Row	rows[MAX_ROWS];
static int	nrows;
static FmsKeys *keys;
static int	compared;			/* columns */

static int32
value_of(const FmsRecord *record, int i)
{
	return ((const Values *) fms_record_tuple(record))->of[i];
}

int
fms_keys_compare_column(FmsKeys *in, const FmsRecord *a, const FmsRecord *b,
						int i)
{
	compared++;
	return value_of(a, i) - value_of(b, i);
}

static int
compare_values(const FmsRecord *a, const FmsRecord *b)
{
	int			order = 0;
	int			i;

	for (i = 0; i < NCOLUMNS && order == 0; i++)
		order = value_of(a, i) - value_of(b, i);
	return order;
}

int
fms_keys_compare_rest(FmsKeys *in, const FmsRecord *a, const FmsRecord *b)
{
	return compare_values(a, b);
}

static void
make_keys(int nencoded)
{
	keys = calloc(1, offsetof(FmsKeys, columns) +
				  NCOLUMNS * sizeof(FmsColumn));
	keys->ncolumns = NCOLUMNS;
	keys->nencoded = nencoded;
	keys->undecided = 1;
	keys->columns[0].length = 4;
	keys->columns[1].length = -1;
	keys->columns[2].length = 4;
	keys->columns[0].invert = shim_below(2) ? 0xFF : 0;
	keys->columns[1].invert = shim_below(2) ? 0xFF : 0;
}

static void
make_record(Row *row)
{
	uint8		key[FMS_KEY_MAX_WORDS * sizeof(uint64)] = {0};
	FmsKeyWriter writer = {.at = key,.end = key + FMS_KEY_MAX_BYTES};
	Values		values = {0};
	const char *text = texts[row->of[1]];

	memcpy(values.of, row->of, sizeof(values.of));
	fms_encode_byte(&writer, row->of[0] == NULL_VALUE ? 2 : FMS_VALUE_BYTE);
	writer.invert = keys->columns[0].invert;
	if (row->of[0] != NULL_VALUE)
		fms_encode_int(&writer, row->of[0], 4);
	writer.invert = 0;
	fms_encode_byte(&writer, FMS_VALUE_BYTE);
	writer.invert = keys->columns[1].invert;
	fms_encode_string(&writer, text, strlen(text));
	writer.invert = 0;
	if (keys->nencoded == NCOLUMNS && !writer.truncated)
	{
		fms_encode_byte(&writer, FMS_VALUE_BYTE);
		fms_encode_int(&writer, row->of[2], 4);
	}
	fms_record_write(&row->record, key, fms_key_room(writer.at - key),
					 keys->nencoded == NCOLUMNS && !writer.truncated ?
					 FMS_RECORD_EXACT : 0, (char *) &values, sizeof(values));
}

static int
compare_rows(const void *a, const void *b)
{
	const Row  *x = a;
	const Row  *y = b;
	int			i;

	for (i = 0; i < NCOLUMNS - 1 && x->of[i] == y->of[i];)
		i++;
	return x->of[i] - y->of[i];
}

static void
make_rows(int n)
{
	int			i;

	nrows = n;
	for (i = 0; i < n; i++)
	{
		rows[i].of[0] = shim_below(NULL_VALUE + 1);
		rows[i].of[1] = shim_below(lengthof(texts));
		rows[i].of[2] = shim_below(4);
	}
	qsort(rows, n, sizeof(Row), compare_rows);
	for (i = 0; i < n; i++)
		make_record(&rows[i]);
}

static bool
same(int a, int b, int columns)
{
	return memcmp(rows[a].of, rows[b].of, columns * sizeof(int32)) == 0;
}

/* What the limit wants, by counting in the values. */
static void
find_wanted(const FmsGroupLimit *limit)
{
	int			number = 0;
	int			rank = 0;
	int			dense = 0;
	int			i;

	for (i = 0; i < nrows; i++)
	{
		bool		goes_on = i > 0 && same(i - 1, i, limit->columns);

		if (!goes_on)
			number = rank = dense = 0;
		number++;
		if (!goes_on || !same(i - 1, i, NCOLUMNS))
		{
			rank = number;
			dense++;
		}
		rows[i].wanted = limit->wanted >=
			(limit->counts == FMS_GROUP_ROWS ? number :
			 limit->counts == FMS_GROUP_RANKS ? rank : dense);
	}
}

/* Are exactly the wanted rows let through? */
static bool
filters_exactly(const FmsGroupLimit *limit)
{
	FmsGroupFilter *filter = fms_group_filter_create(keys, limit);
	uint64		dropped = 0;
	bool		exact = true;
	int			i;

	fms_group_filter_begin(filter);
	for (i = 0; i < nrows; i++)
	{
		Row			copy = rows[i];
		bool		wants = fms_group_filter_wants(filter, &copy.record);

		memset(&copy, 0x7F, sizeof(copy));
		exact = exact && wants == rows[i].wanted;
		dropped += !rows[i].wanted;
	}
	return exact && fms_group_filter_dropped(filter) == dropped;
}

static void
test_limits(void)
{
	static const FmsGroupCount counts[] = {
		FMS_GROUP_ROWS, FMS_GROUP_RANKS, FMS_GROUP_DENSE_RANKS
	};
	static const char *const names[] = {"rows", "ranks", "dense ranks"};
	int			i;
	int			round;

	for (i = 0; i < (int) lengthof(counts); i++)
	{
		bool		exact = true;

		for (round = 0; round < 300; round++)
		{
			FmsGroupLimit limit = {
				.counts = counts[i],
				.columns = shim_below(NCOLUMNS + 1),
				.wanted = 1 + shim_below(4)
			};

			make_keys(2 + shim_below(2));
			make_rows(shim_below(1000));
			find_wanted(&limit);
			exact = exact && filters_exactly(&limit);
			free(keys);
		}
		shim_ok(exact, "%s: those that are wanted", names[i]);
	}
}

/* Groups of one row: the filter looks at few of them, and drops none. */
static void
test_rest(void)
{
	FmsGroupLimit limit = {FMS_GROUP_ROWS, 3, 1};
	FmsGroupFilter *filter;
	bool		wants = true;
	int			i;

	make_keys(2);
	filter = fms_group_filter_create(keys, &limit);
	compared = 0;
	nrows = MAX_ROWS;
	fms_group_filter_begin(filter);
	for (i = 0; i < nrows; i++)
	{
		rows[i].of[0] = 1;
		rows[i].of[1] = 1;
		rows[i].of[2] = i;
		make_record(&rows[i]);
		wants = wants && fms_group_filter_wants(filter, &rows[i].record);
	}
	shim_ok(wants, "no group loses its only row");
	shim_ok(compared < 3100, "few groups: few columns are compared");
	free(keys);
}

/* Is the row whose key that is dropped behind the earlier one? */
static bool
is_unwanted(const FmsGroupLimit *limit, int key, int earlier)
{
	return limit->counts == FMS_GROUP_ROWS && limit->wanted == 1 &&
		limit->columns > 0 && same(earlier, key, limit->columns) &&
		rows[key].record.flags & FMS_RECORD_EXACT &&
		compare_values(&rows[earlier].record, &rows[key].record) <= 0;
}

/* Rows are refused behind one of their group, which has the same hash. */
static void
test_refuses(void)
{
	bool		exact = true;
	uint64		refused = 0;
	int			round;

	for (round = 0; round < 300; round++)
	{
		FmsGroupLimit limit = {
			.counts = FMS_GROUP_ROWS + shim_below(3),
			.columns = shim_below(NCOLUMNS + 1),
			.wanted = 1 + shim_below(2)
		};
		FmsGroupFilter *filter = NULL;
		uint64		expected = 0;
		int			i;

		make_keys(2 + shim_below(2));
		keys->columns[0].invert = keys->columns[1].invert = 0;
		filter = fms_group_filter_create(keys, &limit);
		make_rows(200);
		for (i = 0; i < nrows; i++)
		{
			int			earlier = shim_below(nrows);
			const FmsRecord *known = &rows[earlier].record;
			bool		unwanted = is_unwanted(&limit, i, earlier);

			exact = exact && unwanted ==
				fms_group_filter_refuses(filter, &rows[i].record, known);
			if (unwanted)
				exact = exact &&
					fms_group_filter_hash(filter, &rows[i].record) ==
					fms_group_filter_hash(filter, known);
			expected += unwanted;
		}
		exact = exact && fms_group_filter_dropped(filter) == expected;
		refused += expected;
		free(keys);
	}
	shim_ok(exact && refused > 0, "refused behind one of their group");
}

/* What the filters allocate goes with the context, as after an error. */
int
main(void)
{
	jmp_buf		catcher;

	shim_seed();
	shim_begin_catch(&catcher);
	test_limits();
	test_rest();
	test_refuses();
	shim_catcher = NULL;
	shim_forget_raised();
	return shim_done();
}
