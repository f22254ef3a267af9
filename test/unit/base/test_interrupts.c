/* links: keys/entries keys/packed keys/presorted keys/radix */
/* links: keys/key_tail formation/formation formation/tuples formation/words */
/* links: formation/arena formation/piece order/ io/ */
/* flags: -fsanitize-coverage=trace-pc */
/* flags: -Wl,--wrap=memmove,--wrap=memcpy,--wrap=munmap,--wrap=madvise */
/*
 * The work between two checks for interrupts, while millions of entries are
 * sorted, moved, selected, and put into block read order, and memory is given
 * back: never more than the bound, however many they are.
 *
 * keys.c and run.c are replaced, and what of the executor tuples.c uses.
 *
 * Seen to fail without the check of each of these loops, one at a time:
 * fms_entries_sort_presorted() and put_back() of presorted.c; packing_of(),
 * packing and unpacking of packed.c; deal_words(), both, range_of() and the
 * copy of radix.c; choose_buckets(), deal_entries(), all three,
 * load_prefixes(), sort_equal_keys(), both, sort_by_columns(), sort_ties() and
 * the comparison of entries.c; count_shared() of key_tail.c;
 * pack_records(), write_entries() and forget_first(), both, of tuples.c;
 * spill_words(), both, of words.c; all of read_order.c;
 * fms_first_keys_forget(); fms_losertree_build(); fms_io_unmap().
 */
#include "postgres.h"

#include <stdlib.h>

#include "executor/tuptable.h"

#include "keys/entry.h"
#include "keys/key_columns.h"
#include "formation/formation.h"
#include "order/read_order.h"
#include "no_filter.h"
#include "shim.h"
#include "work.h"

#define ENTRIES		((Size) 1 << 19)
#define LONG_KEY	26			/* bytes */

/* ---- a small keys.c ---- */

static bool prefix_decides;

bool
fms_keys_prefix_decides(const FmsKeys *keys)
{
	return prefix_decides;
}

/* What comes behind the keys is all alike. */
int
fms_keys_compare_rest(FmsKeys *keys, const FmsRecord *a, const FmsRecord *b)
{
	return memcmp(fms_record_key(a), fms_record_key(b),
				  Min(a->key_bytes, b->key_bytes));
}

int
fms_keys_compare_columns(FmsKeys *keys, const FmsRecord *a,
						 const FmsRecord *b, int equal)
{
	return 0;
}

static FmsKeys *columns;		/* one text */

Datum
fms_keys_column(const FmsKeys *keys, const FmsRecord *record, int i,
				bool *isnull)
{
	static union
	{
		struct varlena header;
		char		bytes[100];
	}			text;

	SET_VARSIZE(&text, sizeof(text));
	*isnull = false;
	return PointerGetDatum(&text);
}

const FmsRecord *
fms_keys_make_first_key(FmsKeys *keys, const FmsRecord *record)
{
	return record;
}

uint16
fms_keys_column_flags(FmsKeys *keys, TupleTableSlot *slot, const char *tuple,
			   Size tuple_bytes)
{
	return 0;
}

static const FmsWordType *word_type = NULL; /* of the formation created next */

const FmsWordType *
fms_keys_word_type(const FmsKeys *keys)
{
	return word_type;
}

static uint64 next_key;			/* of the tuple that is put */

void
fms_keys_encode(FmsKeys *keys, TupleTableSlot *slot, FmsKeyImage *image)
{
	uint64		word = pg_hton64(next_key);

	memset(image, 0, sizeof(*image));
	image->record.key_bytes = FMS_PREFIX_BYTES;
	image->record.flags = FMS_RECORD_EXACT;
	memcpy(image->bytes, &word, sizeof(word));
}

void
check_stack_depth(void)
{
}

/* ---- a small run.c ---- */

static Size appended;

void
fms_run_append(FmsRunWriter *writer, const FmsRecord *record)
{
	appended++;
}

/* ---- what tuples.c has of the server ---- */

const TupleTableSlotOps TTSOpsHeapTuple = {0};
const TupleTableSlotOps TTSOpsBufferHeapTuple = {0};
const TupleTableSlotOps TTSOpsMinimalTuple = {0};
const TupleTableSlotOps TTSOpsVirtual = {0};

/* The slots here have their values. */
void
slot_getsomeattrs_int(TupleTableSlot *slot, int attnum)
{
	abort();
}

static MemoryContextData a_context = {.type = T_AllocSetContext,
.isReset = true};

MemoryContext
AllocSetContextCreateInternal(MemoryContext parent, const char *name,
							  Size min_size, Size first_size, Size max_size)
{
	return &a_context;
}

void
MemoryContextReset(MemoryContext context)
{
}

void
MemoryContextRegisterResetCallback(MemoryContext context,
								   MemoryContextCallback *callback)
{
}

static union
{
	MinimalTupleData tuple;
	char		bytes[40];
}			a_tuple = {.tuple.t_len = 40};

MinimalTuple
ExecFetchSlotMinimalTuple(TupleTableSlot *slot, bool *made)
{
	*made = false;
	return &a_tuple.tuple;
}

HeapTuple
ExecFetchSlotHeapTuple(TupleTableSlot *slot, bool materialize, bool *made)
{
	abort();
}

/*
 * No slot here is virtual: these are never called.  Their parameters depend on
 * the server's version.
 */
Size		compute_data_size(void) __asm__("heap_compute_data_size");
void		fill_tuple(void) __asm__("heap_fill_tuple");

Size
compute_data_size(void)
{
	abort();
}

void
fill_tuple(void)
{
	abort();
}

/* ---- entries ---- */

/* A record whose key is of LONG_KEY bytes; it lies like those in memory. */
typedef struct Row
{
	FmsRecord	record;
	uint8		key[40];
} Row;

typedef enum Shape
{
	RANDOM, FEW_VALUES, ALL_BITS, IN_GROUPS, ASCENDING, DESCENDING, STRAYS,
	STRAYS_LAST, ORDER_LOST, EQUAL, SHAPES
} Shape;

static const char *const shape_names[] = {
	"random", "few values", "of all bits", "ascending by groups",
	"ascending", "descending", "ascending but for a few", "ascending but for those at the end",
	"ascending, then random", "all equal"
};

static uint64
word_of(Shape shape, Size i)
{
	switch (shape)
	{
		case RANDOM:
			return shim_below(1 << 24);
		case FEW_VALUES:
			return shim_below(7);
		case ALL_BITS:
			return shim_random();
		case IN_GROUPS:			/* each is in its bucket already */
			return i == 0 ? 0 :
				(uint64) (i / 256) << 53 | shim_random() >> 11;
		case ASCENDING:
			return i;
		case DESCENDING:
			return ENTRIES - i;
		case STRAYS:
			return shim_below(200) == 0 ? shim_below(ENTRIES) : i;
		case STRAYS_LAST:
			return i > ENTRIES - ENTRIES / 200 ? shim_below(8) : i;
		case ORDER_LOST:
			return i < ENTRIES * 3 / 4 ? i : shim_below(ENTRIES);
		default:
			return 7;
	}
}

static void
take(const FmsEntriesSort *sort, const FmsEntry *entries, Size count)
{
	*(Size *) sort->arg += count;
}

/*
 * Keys of which the first bytes are that word; or of ten bytes that are alike
 * before it, so that others have to be looked at.
 */
static bool
sort_is_bounded(Shape shape, bool decides, bool begin_alike)
{
	Row		   *rows = malloc(ENTRIES * sizeof(Row));
	FmsEntry   *entries = malloc(ENTRIES * sizeof(FmsEntry));
	Size		taken = 0;
	FmsEntriesSort sort = {
		.keys = columns,
		.prefix_decides = decides,
		.records = (const char *) rows,
		.take = take,
		.arg = &taken
	};
	bool		bounded;
	Size		i;

	if (rows == NULL || entries == NULL)
		abort();
	for (i = 0; i < ENTRIES; i++)
	{
		Row		   *row = &rows[i];
		uint64		word = pg_hton64(word_of(shape, i));

		memset(row, 0, sizeof(Row));
		row->record.key_bytes = decides ? FMS_PREFIX_BYTES : LONG_KEY;
		memcpy(row->key + (begin_alike ? FMS_PREFIX_BYTES : 0), &word,
			   sizeof(word));
		entries[i] = fms_entry_make(&row->record, i * sizeof(Row));
	}

	work_begin();
	fms_entries_sort(&sort, entries, ENTRIES);
	bounded = work_was_bounded();

	for (i = 1; i < ENTRIES && taken == ENTRIES; i++)
	{
		if (fms_entries_compare(&entries[i - 1], &entries[i], &sort) >= 0)
			taken = 0;
	}

	work_begin();
	fms_entries_sort_by_comparing(entries, ENTRIES, NULL);
	bounded = work_was_bounded() && bounded;
	free(rows);
	free(entries);
	return bounded && taken == ENTRIES;
}

static void
test_entries(void)
{
	int			shape;

	columns = calloc(1, offsetof(FmsKeys, columns) + sizeof(FmsColumn));
	columns->ncolumns = 1;
	for (shape = 0; shape < SHAPES; shape++)
	{
		columns->columns[0].is_bytes = shape % 2 == 0;
		shim_ok(sort_is_bounded(shape, true, false),
				"sorting by keys of ten bytes, %s", shape_names[shape]);
		shim_ok(sort_is_bounded(shape, false, false),
				"sorting by long keys, %s", shape_names[shape]);
		shim_ok(sort_is_bounded(shape, false, true),
				"sorting by long keys that begin alike, %s",
				shape_names[shape]);
	}
}

/* ---- words ---- */

static void
test_words(void)
{
	uint64	   *words = malloc(2 * ENTRIES * sizeof(uint64));
	int			shape;

	if (words == NULL)
		abort();
	for (shape = 0; shape < SHAPES; shape++)
	{
		bool		bounded;
		Size		i;

		for (i = 0; i < ENTRIES; i++)
			words[i] = word_of(shape, i);
		work_begin();
		fms_radix_sort(words, words + ENTRIES, ENTRIES);
		bounded = work_was_bounded();
		for (i = 1; i < ENTRIES && words[i - 1] <= words[i]; i++)
			;
		shim_ok(bounded && i == ENTRIES, "sorting words, %s",
				shape_names[shape]);
	}
	free(words);
}

/* ---- run formation ---- */

static FmsFormation *
fill(uint64 bound, Size count, Size budget)
{
	FmsFormation *formation = fms_formation_create(NULL, 0, &a_context);
	Datum		value;
	bool		isnull = false;
	TupleTableSlot slot = {
		.tts_nvalid = 1,.tts_values = &value,.tts_isnull = &isnull
	};
	Size		i;

	prefix_decides = true;
	fms_formation_reset(formation, bound);
	for (i = 0; i < count; i++)
	{
		next_key = value = shim_below(1 << 24);
		if (!fms_formation_put(formation, &slot, budget))
			abort();
	}
	return formation;
}

static void
empty(FmsFormation *formation)
{
	fms_arena_free(&formation->arena);
	fms_formation_reset(formation, 0);
	pfree(formation);
}

/* A part of memory is written, the rest moves to its place. */
static void
test_spilling(const char *what)
{
	Size		budget = (Size) 256 * 1024 * 1024;
	FmsFormation *formation = fill(0, ENTRIES, budget);
	bool		bounded;

	appended = 0;
	work_begin();
	fms_formation_spill(formation, (FmsRunWriter *) formation,
						fms_formation_memory_bytes(formation) / 8);
	bounded = work_was_bounded();
	shim_ok(bounded && appended > 0 &&
			appended + fms_formation_count(formation) == ENTRIES,
			"writing a part of memory, and moving the rest: %s", what);

	work_begin();
	fms_formation_spill(formation, (FmsRunWriter *) formation,
						fms_formation_memory_bytes(formation));
	bounded = work_was_bounded();
	shim_ok(bounded && appended == ENTRIES, "writing all of memory: %s", what);
	empty(formation);
}

static void
test_spilling_words(void)
{
	FmsWordType type;

	fms_word_type_init(&type, sizeof(int64), true, false);
	word_type = &type;
	test_spilling("words");
	word_type = NULL;
}

/* More tuples than twice the bound come: the first ones are selected. */
static void
test_selecting(void)
{
	Size		budget = (Size) 512 * 1024 * 1024;
	uint64		bound = ENTRIES / 2;
	FmsFormation *formation;
	bool		bounded;

	formation = fill(bound, 2 * bound, budget);
	next_key = 0;
	work_begin();
	fms_formation_put(formation, &(TupleTableSlot) {.tts_ops = NULL}, budget);
	bounded = work_was_bounded();
	shim_ok(bounded && fms_formation_count(formation) == bound + 1,
			"selecting the first %llu tuples", (unsigned long long) bound);
	work_begin();
	fms_formation_sort(formation);
	shim_ok(work_was_bounded(), "finishing that");
	empty(formation);
}

/* ---- the block read order ---- */

static FmsIo io;
static uint64 counts[1 + FMS_NCOUNTERS];
static FmsCounters *counters = (FmsCounters *) counts;

/* A run's first keys, ascending from the first number on. */
static void
note_first_keys(FmsFirstKeyStore *store, FmsFirstKeys *first_keys, Size count,
				uint64 first, uint64 step, Size tuple_bytes)
{
	Size		size = fms_record_size(FMS_PREFIX_BYTES, tuple_bytes);
	FmsRecord  *record = palloc0(size);
	Size		i;

	record->key_bytes = FMS_PREFIX_BYTES;
	record->tuple_bytes = tuple_bytes;
	record->flags = tuple_bytes > SizeofMinimalTupleHeader ? 0 :
		FMS_RECORD_EXACT;
	for (i = 0; i < count; i++)
	{
		uint64		word = pg_hton64(first + i * step);

		memcpy(fms_record_key(record), &word, sizeof(word));
		fms_first_keys_note(store, first_keys, record, 1, 0);
	}
	pfree(record);
	fms_first_keys_finish(store, first_keys);
}

/* Returns how many blocks were named. */
static Size
follow(FmsFirstKeyStore *store, int nruns,
	   const FmsFirstKeys *const *first_keys, const FmsPosition *from)
{
	FmsReadOrder *order = fms_read_order_begin(store,
											   FMS_ORDER_BY_FIRST_KEYS, nruns,
											   first_keys, from);
	Size		named = 0;

	while (fms_read_order_next(order) >= 0)
	{
		named++;
		/* as whoever merges by it */
		CHECK_FOR_INTERRUPTS();
	}
	fms_read_order_end(order);
	return named;
}

static void
test_order(int nruns, Size blocks, uint64 step, bool decides,
		   Size tuple_bytes, const char *what)
{
	FmsFirstKeys *runs = palloc0(nruns * sizeof(FmsFirstKeys));
	const FmsFirstKeys **first_keys = palloc(nruns * sizeof(FmsFirstKeys *));
	FmsPosition *from = palloc0(nruns * sizeof(FmsPosition));
	FmsFirstKeyStore *store;
	bool		bounded;
	Size		named;
	int			i;

	prefix_decides = decides;
	store = fms_first_keys_create(NULL, counters, (Size) 1 << 30, NULL);
	for (i = 0; i < nruns; i++)
	{
		note_first_keys(store, &runs[i], blocks, i, step, tuple_bytes);
		first_keys[i] = &runs[i];
		from[i].block = blocks - 1;
		from[i].record = -1;
	}

	work_begin();
	named = follow(store, nruns, first_keys, NULL);
	bounded = work_was_bounded();
	shim_ok(bounded && named == nruns * blocks, "the order of %s", what);

	work_begin();
	named = follow(store, nruns, first_keys, from);
	bounded = work_was_bounded();
	shim_ok(bounded && named == (Size) nruns,
			"the order of %s from their last blocks on", what);

	work_begin();
	for (i = 0; i < nruns; i++)
	{
		fms_first_keys_forget(store, &runs[i]);
		CHECK_FOR_INTERRUPTS();
	}
	bounded = work_was_bounded();
	shim_ok(bounded, "forgetting first keys of %s", what);
	fms_first_keys_destroy(store);
	pfree(runs);
	pfree(first_keys);
	pfree(from);
}

/* ---- buffers ---- */

/* Address space only: what counts is what is asked of the kernel. */
static void
test_unmapping(void)
{
	char	   *buffer = fms_io_map(&io, (Size) 1 << 30, false);

	work_begin();
	fms_io_unmap(&io, buffer);
	shim_ok(work_was_bounded(), "giving a gigabyte back");
}

int
main(void)
{
	shim_seed();
	CurrentMemoryContext = &a_context;
	test_entries();
	test_words();
	test_spilling("tuples");
	test_selecting();
	test_spilling_words();
	fms_io_open(&io, FMS_IO_SYNC);
	test_order(2, ENTRIES, 3, true, SizeofMinimalTupleHeader,
			   "two long runs");
	test_order(2, ENTRIES, 3, false, SizeofMinimalTupleHeader,
			   "two long runs by long keys");
	test_order(50000, 4, 3, true, SizeofMinimalTupleHeader, "many runs");
	test_order(50000, 4, 3, false, SizeofMinimalTupleHeader,
			   "many runs by long keys");
	/* each in a chunk of its own */
	test_order(1, 60000, 3, false, 2100, "a run with long first keys");
	test_unmapping();
	fms_io_close(&io);
	shim_ok(shim_live_chunks == 0, "nothing was left in memory");
	return shim_done();
}
