/* links: formation/cutoff */
/*
 * The cutoff of rows in runs: as many rows as are wanted never exceed it, it
 * never rises, it is about as low as it can be, and its memory is bounded,
 * however many runs there are and however long keys are.
 *
 * keys.c is replaced: a key is a number, behind which a tuple may follow.
 *
 * Seen to fail with: the last bucket dropped although its rows are needed, or
 * kept although they are not; neighbours joined under the lower key; rows that
 * are lost or counted twice as buckets are joined; no end of a run; keys of
 * any length kept.
 */
#include "postgres.h"

#include <stdlib.h>

#include "formation/run.h"
#include "shim.h"

#define MAX_ROWS	200000
#define LONG_TUPLE	40000		/* bytes */

static union
{
	FmsRecord	record;
	uint64		aligned;
	char		bytes[LONG_TUPLE + 64];
}			room;

/* The server frees a cutoff with its memory context. */
static FmsCutoff *cutoffs[20];
static int	ncutoffs;

static uint64 noted[MAX_ROWS];	/* keys of rows in runs */
static Size nnoted;

int
fms_keys_compare_rest(FmsKeys *keys, const FmsRecord *a, const FmsRecord *b)
{
	return 0;
}

const FmsRecord *
fms_keys_make_first_key(FmsKeys *keys, const FmsRecord *record)
{
	return record;
}

static const FmsRecord *
record_of(uint64 key, Size tuple_bytes)
{
	uint64		ordered = pg_hton64(key);

	room.record.tuple_bytes = tuple_bytes;
	room.record.key_bytes = FMS_PREFIX_BYTES;
	room.record.flags = FMS_RECORD_EXACT;
	memcpy(fms_record_key(&room.record), &ordered, sizeof(ordered));
	return &room.record;
}

static int
compare(const void *a, const void *b)
{
	uint64		x = *(const uint64 *) a;
	uint64		y = *(const uint64 *) b;

	return x < y ? -1 : x > y;
}

typedef struct Shape
{
	const char *name;
	uint64		bound;
	Size		rows;			/* of a run that does not end early */
	int			runs;
	Size		block;			/* rows of a block */
	uint32		distinct;		/* keys */
	int			fall;			/* keys of each run are lower by that */
	Size		long_every;		/* a row with a long tuple; 0: none */
	double		slack;			/* rows within the cutoff, by the bound */
} Shape;

/* Is the cutoff right, and at most as high as `slack` says? */
static bool
is_right(const FmsCutoff *cutoff, const Shape *shape)
{
	const FmsRecord *record = fms_cutoff_record(cutoff);
	Size		within = 0;
	Size		i;

	if (record == NULL)
		return shape->slack == 0 || nnoted < shape->bound * shape->slack;
	for (i = 0; i < nnoted; i++)
		within += noted[i] <= fms_record_prefix(record);
	return within >= shape->bound &&
		(shape->slack == 0 || within <= shape->bound * shape->slack);
}

/*
 * A run: a memory full of keys below the cutoff, sorted, until the cutoff says
 * that the others do not count.
 */
static void
note_run(FmsCutoff *cutoff, const Shape *shape, int run)
{
	uint64	   *keys = malloc(shape->rows * sizeof(uint64));
	const FmsRecord *before = fms_cutoff_record(cutoff);
	uint64		below = before ? fms_record_prefix(before) : PG_UINT64_MAX;
	Size		n = 0;
	Size		i;

	if (keys == NULL)
		abort();
	for (i = 0; i < 10 * shape->rows && n < shape->rows; i++)
	{
		keys[n] = shim_below(shape->distinct) +
			(uint64) (shape->runs - run) * shape->fall;
		n += keys[n] < below;
	}
	qsort(keys, n, sizeof(uint64), compare);
	for (i = 0; i < n; i++)
	{
		Size		tuple_bytes = shape->long_every > 0 &&
			i / shape->block % shape->long_every == 0 ? LONG_TUPLE : 0;

		if (i > 0 && i % shape->block == 0 &&
			!fms_cutoff_note(cutoff, record_of(keys[i], tuple_bytes),
							 shape->block))
			break;
		noted[nnoted++] = keys[i];
	}
	free(keys);
}

static void
test_shape(const Shape *shape)
{
	FmsCutoff  *cutoff = fms_cutoff_create(NULL, shape->bound);
	int64		chunks = shim_live_chunks;
	bool		right = true;
	bool		falls = true;
	bool		little = true;
	uint64		lowest = PG_UINT64_MAX;
	int			run;

	cutoffs[ncutoffs++] = cutoff;
	nnoted = 0;
	for (run = 0; run < shape->runs; run++)
	{
		const FmsRecord *record;

		note_run(cutoff, shape, run);
		right = right && is_right(cutoff, shape);
		little = little && shim_live_chunks - chunks <= 128;
		record = fms_cutoff_record(cutoff);
		if (record == NULL)
			continue;
		little = little && fms_record_bytes(record) <= 256;
		falls = falls && fms_record_prefix(record) <= lowest;
		lowest = fms_record_prefix(record);
	}
	shim_ok(right, "%s: the cutoff is right", shape->name);
	shim_ok(falls, "%s: it never rises", shape->name);
	shim_ok(little, "%s: its memory is bounded", shape->name);
}

int
main(void)
{
	static const Shape shapes[] = {
		{"random", 5000, 1000, 100, 20, 1 << 30, 0, 0, 1.3},
		{"small blocks", 5000, 1000, 100, 1, 1 << 30, 0, 0, 1.5},
		{"large blocks", 5000, 1000, 50, 200, 1 << 30, 0, 0, 4},
		{"one row", 1, 100, 100, 10, 1 << 30, 0, 0, 1000},
		{"more than all", MAX_ROWS, 1000, 50, 20, 1 << 30, 0, 0, 1},
		{"few keys", 5000, 1000, 100, 20, 7, 0, 0, 0},
		{"all equal", 5000, 1000, 100, 20, 1, 0, 0, 0},
		{"each row better", 5000, 1000, 100, 20, 1000, 1000, 0, 1.3},
		{"each run worse", 5000, 1000, 100, 20, 1000, -1000, 0, 1.3},
		{"many small runs", 5000, 10, 5000, 2, 1 << 30, 0, 0, 4},
		{"long keys", 5000, 1000, 100, 20, 1 << 30, 0, 1, 0},
		{"some long keys", 5000, 1000, 100, 20, 1 << 30, 0, 3, 3}
	};
	int			i;

	shim_seed();
	for (i = 0; i < (int) lengthof(shapes); i++)
		test_shape(&shapes[i]);
	return shim_done();
}
