/* links: formation/formation formation/words formation/arena */
/* links: formation/piece keys/radix */
/*
 * Run formation of words: values of all lengths, in any order and number,
 * come back in order, from memory, as runs written in parts, and as the first
 * ones of a bound; nulls are counted.
 *
 * keys.c, tuples.c and run.c are replaced.
 *
 * Seen to fail with: digits dealt by too few bits, by bits of words and not of
 * their distance from the smallest one, or from one bit too far on; a result
 * that stays in the room; words taken for ascending that are nearly so; the
 * last words written first; a cutoff one word too early; nulls not counted,
 * forgotten as memory is given back, or kept for the next sort.
 */
#include "postgres.h"

#include <stdlib.h>

#include "formation/formation.h"
#include "no_filter.h"
#include "shim.h"

#define MAX_WORDS	50000
#define BUDGET		((Size) 1 << 30)

static FmsWordType type;
static int	bytes;
static bool is_signed;
static bool descending;

static Datum values[MAX_WORDS];
static Datum expected[MAX_WORDS];
static Datum written[MAX_WORDS];
static Size nwritten;

const FmsWordType *
fms_keys_word_type(const FmsKeys *keys)
{
	return &type;
}

const FmsFormationKind fms_tuples_kind = {NULL};

/* The slots here have their values. */
void
slot_getsomeattrs_int(TupleTableSlot *slot, int attnum)
{
	abort();
}

/* The formations here are given back, not reset. */
void
MemoryContextRegisterResetCallback(MemoryContext context,
								   MemoryContextCallback *callback)
{
}

/* The value in the record's tuple. */
static Datum
value_of(const FmsRecord *record)
{
	return fetch_att((char *) fms_record_tuple(record) +
					 FMS_WORD_VALUE_OFFSET, true, bytes);
}

void
fms_run_append(FmsRunWriter *writer, const FmsRecord *record)
{
	written[nwritten++] = value_of(record);
}

static int
compare(const void *a, const void *b)
{
	Datum		x = *(const Datum *) a;
	Datum		y = *(const Datum *) b;
	int			order;

	if (is_signed)
		order = (int64) x < (int64) y ? -1 : (int64) x > (int64) y;
	else
		order = (uint64) x << type.shift < (uint64) y << type.shift ? -1 :
			(uint64) x << type.shift > (uint64) y << type.shift;
	return descending ? -order : order;
}

static void
choose_type(int number)
{
	bytes = 1 << number % 4;
	is_signed = (number & 4) != 0;
	descending = (number & 8) != 0;
	fms_word_type_init(&type, bytes, is_signed, descending);
}

typedef enum Shape
{
	RANDOM, FEW, EQUAL, ASCENDING, DESCENDING, NEARLY, NEARLY_DESCENDING,
	ABOUT_ZERO, MULTIPLES, LONG_RANGE, SHAPES
} Shape;

static const char *const shape_names[] = {
	"random", "few values", "all equal", "ascending", "descending",
	"ascending but for one", "descending but for one", "about zero",
	"multiples", "two far apart"
};

static Datum
make_value(Shape shape, Size i, Size n)
{
	int64		value;

	switch (shape)
	{
		case FEW:
			value = shim_below(7);
			break;
		case EQUAL:
			value = 42;
			break;
		case ASCENDING:
			value = i / 2;
			break;
		case DESCENDING:
			value = (n - i) / 2;
			break;
		case NEARLY:
			value = i == n - 1 ? 0 : i;
			break;
		case NEARLY_DESCENDING:
			value = i == n - 1 ? n : n - i;
			break;
		case ABOUT_ZERO:
			value = (int64) shim_below(3000) - 1500;
			break;
		case MULTIPLES:
			value = (int64) shim_below(500) * 640 + 3;
			break;
		case LONG_RANGE:
			value = shim_below(2) ? PG_INT64_MAX - (int64) shim_below(9) :
				PG_INT64_MIN + (int64) shim_below(9);
			break;
		default:
			value = (int64) shim_random();
	}
	/* as it would come from a tuple */
	return (Datum) ((int64) ((uint64) value << type.shift) >> type.shift);
}

static void
make_values(Shape shape, Size n)
{
	Size		i;

	for (i = 0; i < n; i++)
		values[i] = expected[i] = make_value(shape, i, n);
	qsort(expected, n, sizeof(Datum), compare);
}

static bool
put(FmsFormation *formation, Datum value, bool isnull, Size budget)
{
	TupleTableSlot slot = {
		.tts_nvalid = 1,.tts_values = &value,.tts_isnull = &isnull
	};

	return fms_formation_put(formation, &slot, budget);
}

static uint64
put_all(FmsFormation *formation, Size n)
{
	uint64		nulls = 0;
	Size		i;

	for (i = 0; i < n; i++)
	{
		if (shim_below(5) == 0)
		{
			nulls++;
			put(formation, 0, true, BUDGET);
		}
		if (!put(formation, values[i], false, BUDGET))
			abort();
	}
	return nulls;
}

static void
end(FmsFormation *formation)
{
	fms_arena_free(&formation->arena);
	fms_formation_reset(formation, 0);
	pfree(formation);
}

static bool
returns(const FmsFormation *formation, Size n)
{
	Size		i;

	if (fms_formation_count(formation) != n)
		return false;
	for (i = 0; i < n; i++)
	{
		if (value_of(fms_formation_get(formation, i)) != expected[i])
			return false;
	}
	return true;
}

static bool
sorts(Shape shape, Size n)
{
	FmsFormation *formation = fms_formation_create(NULL, 0, NULL);
	bool		passed = true;
	int			i;

	/* twice: a sort of other rows begins anew */
	for (i = 0; i < 2 && passed; i++)
	{
		uint64		nulls;

		make_values(shape, n);
		nulls = put_all(formation, n);
		passed = formation->nulls == nulls &&
			fms_formation_memory_bytes(formation) == n * FMS_ROW_INDEX_BYTES;
		fms_formation_sort(formation);
		passed = passed && returns(formation, n);
		fms_formation_reset(formation, 0);
		passed = passed && formation->nulls == 0;
	}
	end(formation);
	return passed;
}

/* In memory for a part of the values: runs, and the rest. */
static bool
spills(Shape shape, Size n)
{
	FmsFormation *formation = fms_formation_create(NULL, 0, NULL);
	Size		budget = Max(n / 3, 1) * FMS_ROW_INDEX_BYTES;
	bool		passed = true;
	Size		i;

	make_values(shape, n);
	nwritten = 0;
	for (i = 0; i < n && passed; i++)
	{
		put(formation, 0, true, budget);
		while (!put(formation, values[i], false, budget))
		{
			Size		first = nwritten;
			Size		j;

			/* the first ones that came are written, in order */
			fms_formation_spill(formation, NULL, budget / 2);
			memcpy(expected, values + first,
				   (nwritten - first) * sizeof(Datum));
			qsort(expected, nwritten - first, sizeof(Datum), compare);
			for (j = first; j < nwritten; j++)
				passed = passed && written[j] == expected[j - first];
			passed = passed && nwritten - first >= Max(n / 3, 1) / 2 &&
				fms_formation_count(formation) == i - nwritten;
		}
	}
	memcpy(expected, values + nwritten, (n - nwritten) * sizeof(Datum));
	qsort(expected, n - nwritten, sizeof(Datum), compare);
	fms_formation_sort(formation);
	passed = passed && returns(formation, n - nwritten);
	fms_arena_free(&formation->arena);
	passed = passed && formation->nulls == n;
	end(formation);
	return passed;
}

/* Of many values only the first ones are wanted. */
static bool
selects(Shape shape, Size n, uint64 bound)
{
	FmsFormation *formation = fms_formation_create(NULL, 0, NULL);
	bool		passed;

	fms_formation_reset(formation, bound);
	make_values(shape, n);
	put_all(formation, n);
	passed = fms_formation_count(formation) <= Max(2 * bound, bound + 1024);
	fms_formation_sort(formation);
	passed = passed && returns(formation, Min(n, bound));
	end(formation);
	return passed;
}

int
main(void)
{
	static const Size sizes[] = {
		0, 1, 2, 3, 31, 32, 33, 64, 255, 1000, 5001, MAX_WORDS
	};
	int			shape;
	int			i;
	int			j;

	shim_seed();
	for (shape = 0; shape < SHAPES; shape++)
	{
		bool		sorted = true;
		bool		spilled = true;
		bool		selected = true;

		for (i = 0; i < 16; i++)
		{
			choose_type(i);
			for (j = 0; j < (int) lengthof(sizes); j++)
			{
				sorted = sorted && sorts(shape, sizes[j]);
				spilled = spilled && spills(shape, sizes[j]);
				selected = selected && selects(shape, sizes[j], 1) &&
					selects(shape, sizes[j], 1000);
			}
		}
		shim_ok(sorted, "%s: sorted in memory", shape_names[shape]);
		shim_ok(spilled, "%s: written in parts", shape_names[shape]);
		shim_ok(selected, "%s: the first ones", shape_names[shape]);
	}
	shim_ok(shim_live_chunks == 0, "nothing was left in memory");
	return shim_done();
}
