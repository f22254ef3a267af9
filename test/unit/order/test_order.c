/* links: order/ */
/*
 * The block read order against all first keys sorted by (key, run, position).
 *
 * keys.c is replaced: a key is three words here, of which the third stands
 * where a record has its tuple, so that all stages of a comparison are used.
 * The server's BufFile is replaced by memory (shim.c).  First keys are all in
 * memory, some, or none.
 *
 * Seen to fail with: tie_loser() of read_order.c giving ties to the later run;
 * a chain counted as one block; enter_chunk() of first_key_reader.c not
 * looking for the next chunk in memory; skip_first_keys() taking a chain for
 * one block, or not counting a block that was entered;
 * fms_first_key_file_read() not asking for the checksum; fms_first_key_pack()
 * taking a chain for a plain key, or the key of the chunk before for the one
 * before; fms_key_words_before_zeros() not seeing the last word;
 * fms_read_order_skip() going on by one row too many, or not counting rows
 * behind the last first key; rows_before cut off at 16 bits;
 * keys read of blocks that have been given back.
 */
#include "postgres.h"

#include <stdlib.h>

#include "order/first_key_store.h"
#include "order/read_order.h"
#include "shim.h"

#define MAX_RUNS	60
#define MAX_BLOCKS	400
#define ROUNDS		40

/* ---- a small keys.c ---- */

static bool prefix_decides;		/* then the third word is always the same */

bool
fms_keys_prefix_decides(const FmsKeys *keys)
{
	return prefix_decides;
}

static uint64
tuple_word(const FmsRecord *record)
{
	uint64		word;

	memcpy(&word, (const char *) fms_record_tuple(record) +
		   FMS_TUPLE_SKIPPED_BYTES, sizeof(word));
	return word;
}

int
fms_keys_compare_rest(FmsKeys *keys, const FmsRecord *a, const FmsRecord *b)
{
	uint64		a_word = fms_record_key_word(a, 1);
	uint64		b_word = fms_record_key_word(b, 1);

	if (prefix_decides)
		abort();
	if (a_word == b_word && a->tuple_bytes > 0)
	{
		a_word = tuple_word(a);
		b_word = tuple_word(b);
	}
	return a_word < b_word ? -1 : a_word > b_word;
}

/* Valid until the next call, as the real one. */
const FmsRecord *
fms_keys_make_first_key(FmsKeys *keys, const FmsRecord *record)
{
	static FmsRecord *first_key = NULL;

	free(first_key);
	first_key = malloc(fms_record_bytes(record));
	if (first_key == NULL)
		abort();
	memcpy(first_key, record, fms_record_bytes(record));
	first_key->flags |= FMS_RECORD_FIRST_KEY;
	return first_key;
}

/* ---- runs and what to expect of them ---- */

typedef struct Block
{
	uint64		words[3];
	int			run;
	int			position;		/* in its run, chains counted once */
	uint32		nblocks;
	uint32		tuple_bytes;
	bool		exact;			/* the key decides: no tuple in first keys */
	uint32		rows;			/* that begin in it */
} Block;

static uint64 counts[1 + FMS_NCOUNTERS];
static FmsCounters *counters = (FmsCounters *) counts;
static FmsFirstKeyStore *store;
static FmsFirstKeys first_keys[MAX_RUNS];
static uint32 last_rows[MAX_RUNS];
static Block blocks[MAX_RUNS * MAX_BLOCKS];
static int	nruns;
static int	nblocks;			/* chains counted once */
static FmsOrderBy by;
static bool gives_back = false; /* some runs' last blocks */

static FmsReadOrder *
begin_order(int n, const FmsFirstKeys *const *chosen, const FmsPosition *from)
{
	return fms_read_order_begin(store, by, n, chosen, from);
}

static int
compare_blocks(const void *a, const void *b)
{
	const Block *x = a;
	const Block *y = b;
	int			i;

	/* by last keys a run's first block comes first, whatever was noted */
	if (by == FMS_ORDER_BY_LAST_KEYS &&
		(x->position == 0) != (y->position == 0))
		return x->position == 0 ? -1 : 1;
	if (by == FMS_ORDER_BY_LAST_KEYS && x->position == 0)
		return x->run - y->run;
	for (i = 0; i < 3; i++)
	{
		if (x->words[i] != y->words[i])
			return x->words[i] < y->words[i] ? -1 : 1;
	}
	if (x->run != y->run)
		return x->run - y->run;
	return x->position - y->position;
}

static void
note(const Block *block)
{
	uint16		key_bytes = prefix_decides ? FMS_PREFIX_BYTES :
		fms_key_room(2 * sizeof(uint64));
	Size		size = fms_record_size(key_bytes, block->tuple_bytes);
	FmsRecord  *record = palloc0(size);
	uint64		ordered;
	int			i;

	record->tuple_bytes = block->tuple_bytes;
	record->key_bytes = key_bytes;
	record->flags = block->exact ? FMS_RECORD_EXACT : 0;
	for (i = 0; i < 2; i++)
	{
		ordered = pg_hton64(block->words[i]);
		memcpy(fms_record_key(record) + i * sizeof(ordered), &ordered,
			   Min(sizeof(ordered), key_bytes - i * sizeof(ordered)));
	}
	memcpy((char *) fms_record_tuple(record) + FMS_TUPLE_SKIPPED_BYTES,
		   &block->words[2], sizeof(uint64));
	fms_first_keys_note(store, &first_keys[block->run], record,
						block->nblocks, last_rows[block->run]);
	last_rows[block->run] = block->rows;
	/* the store keeps nothing of the record */
	memset(record, 0x55, size);
	pfree(record);
}

/* Words of which many are equal, and some are the largest there is. */
static uint64
some_word(uint32 range)
{
	uint32		word = shim_below(range);

	return word == range - 1 ? PG_UINT64_MAX : word;
}

/* The second word of a key of which no more than the prefix is there. */
static uint64
last_of_prefix(void)
{
	return some_word(2) & ~(PG_UINT64_MAX >> 16);
}

/* Few keys make ties; long first keys make large chunks. */
static void
make_runs(uint32 range, bool chains, bool long_keys, Size share_bytes)
{
	bool		exact;
	int			run;
	int			i;

	nruns = 1 + shim_below(MAX_RUNS);
	nblocks = 0;
	prefix_decides = shim_below(3) == 0;
	exact = !long_keys && shim_below(2) == 0;
	memset(first_keys, 0, sizeof(first_keys));
	memset(last_rows, 0, sizeof(last_rows));
	store = fms_first_keys_create(NULL, counters, share_bytes, NULL);
	for (run = 0; run < nruns; run++)
	{
		int			n = shim_below(5) == 0 ? (int) shim_below(3) :
			(int) shim_below(shim_below(8) ? 30 : MAX_BLOCKS);
		Block	   *first = &blocks[nblocks];

		for (i = 0; i < n; i++)
		{
			first[i].words[0] = some_word(range);
			first[i].words[1] = prefix_decides ? last_of_prefix() :
				some_word(2);
			first[i].exact = exact;
			first[i].words[2] = prefix_decides || exact ? 0 :
				some_word(range);
			first[i].run = run;
			first[i].position = 1;
			first[i].nblocks = chains && shim_below(4) == 0 ?
				2 + shim_below(6) : 1;
			first[i].tuple_bytes = FMS_TUPLE_SKIPPED_BYTES +
				sizeof(uint64) +
				(long_keys && shim_below(6) == 0 ? shim_below(20000) : 0);
			first[i].rows = shim_below(50) ? 1 + shim_below(5) :
				70000 + shim_below(70000);
		}
		qsort(first, n, sizeof(Block), compare_blocks);
		for (i = 0; i < n; i++)
		{
			first[i].position = i;
			note(&first[i]);
		}
		fms_first_keys_finish(store, &first_keys[run]);
		/* the run's last blocks are given back */
		if (gives_back && n > 0 && shim_below(4) == 0)
		{
			for (i = shim_below(n); n > i;)
				first_keys[run].nblocks -= first[--n].nblocks;
			last_rows[run] = n > 0 ? first[n - 1].rows : 0;
		}
		nblocks += n;
	}
	qsort(blocks, nblocks, sizeof(Block), compare_blocks);
}

static bool
is_first_key_of(const FmsRecord *first_key, const Block *block)
{
	return first_key != NULL &&
		fms_record_prefix(first_key) == block->words[0] &&
		fms_record_key_word(first_key, 1) == block->words[1] &&
		(first_key->tuple_bytes > 0) == !block->exact &&
		(block->exact || tuple_word(first_key) == block->words[2]);
}

/*
 * Reads ahead by up to `distance` entries, as the reads do, and follows with
 * the demands, as the merge does.
 */
static bool
follow(FmsReadOrder *order, int distance)
{
	int			ahead = 0;
	int			behind;
	int			run;

	for (behind = 0; behind < nblocks; behind++)
	{
		const Block *wanted = &blocks[behind];
		int			reach = behind + 1 + (int) shim_below(distance + 1);
		int			limit = Min(nblocks, reach);

		for (; ahead < limit; ahead++)
		{
			uint32		i;

			for (i = 0; i < blocks[ahead].nblocks; i++)
			{
				run = fms_read_order_next(order);
				if (run != blocks[ahead].run)
				{
					shim_note("entry %d of %d: run %d, not %d", ahead, nblocks,
							  run, blocks[ahead].run);
					return false;
				}
			}
		}
		if (by == FMS_ORDER_BY_LAST_KEYS)
			continue;
		if (!is_first_key_of(fms_read_order_first_key(order, wanted->run),
							 wanted))
		{
			shim_note("demand %d of %d: another first key", behind, nblocks);
			return false;
		}
	}

	for (run = 0; run < nruns && by == FMS_ORDER_BY_FIRST_KEYS; run++)
	{
		if (fms_read_order_first_key(order, run) != NULL)
			return false;
	}
	return fms_read_order_next(order) == -1 &&
		fms_read_order_next(order) == -1;
}

static void
forget_runs(void)
{
	int			run;

	for (run = 0; run < nruns; run++)
		fms_first_keys_forget(store, &first_keys[run]);
	fms_first_keys_destroy(store);
}

/*
 * Begins as a merge does that stood behind the first n blocks of the order,
 * in the middle of a block in some runs: those blocks come again, in the order
 * of the runs, then the rest of the order.
 */
static bool
goes_on_from(const FmsFirstKeys *const *all, int n)
{
	FmsPosition from[MAX_RUNS];
	bool		entered[MAX_RUNS] = {false};
	bool		passed = true;
	FmsReadOrder *order;
	int			run;
	int			i;

	for (run = 0; run < nruns; run++)
		from[run] = (FmsPosition) {.block = 0, .record = -1};
	for (i = 0; i < n; i++)
		from[blocks[i].run].block += blocks[i].nblocks;
	for (run = 0; run < nruns; run++)
	{
		if (from[run].block > 0 && shim_below(2))
		{
			from[run].block--;
			from[run].record = shim_below(3);
			entered[run] = true;
		}
	}

	order = begin_order(nruns, all, from);
	for (run = 0; run < nruns; run++)
	{
		if (entered[run] && fms_read_order_next(order) != run)
			passed = false;
	}
	for (i = n; i < nblocks && passed; i++)
	{
		uint32		k;

		for (k = 0; k < blocks[i].nblocks; k++)
			passed = passed && fms_read_order_next(order) == blocks[i].run;
		passed = passed &&
			is_first_key_of(fms_read_order_first_key(order, blocks[i].run),
							&blocks[i]);
	}
	passed = passed && fms_read_order_next(order) == -1;
	fms_read_order_end(order);
	if (!passed)
		shim_note("going on from entry %d of %d", n, nblocks);
	return passed;
}

/*
 * Likewise by last keys, where a merge that has demanded the first n entries
 * stands in the last one of each run: at its beginning, in the middle, or, if
 * there is no further one, at the run's end.  All of that comes first.
 */
static bool
goes_on_from_last_keys(const FmsFirstKeys *const *all, int n)
{
	FmsPosition from[MAX_RUNS];
	uint32		first[MAX_RUNS] = {0};	/* blocks that come first */
	const Block *in[MAX_RUNS] = {NULL}; /* entry that a run is in */
	bool		more[MAX_RUNS] = {false};	/* entries after that */
	bool		passed = true;
	FmsReadOrder *order;
	int			run;
	int			i;

	for (run = 0; run < nruns; run++)
		from[run] = (FmsPosition) {.block = 0, .record = -1};
	for (i = 0; i < nblocks; i++)
	{
		run = blocks[i].run;
		if (i >= n && blocks[i].position > 0)
			more[run] = true;
		else if (i >= n)
			first[run] = blocks[i].nblocks;
		else
		{
			in[run] = &blocks[i];
			from[run].block += blocks[i].nblocks;
		}
	}
	for (run = 0; run < nruns; run++)
	{
		if (in[run] == NULL || (!more[run] && shim_below(3) == 0))
			continue;
		if (shim_below(2))
		{
			from[run].block -= first[run] = in[run]->nblocks;
			continue;
		}
		from[run].block--;
		from[run].record = shim_below(3);
		first[run] = 1;
	}

	order = begin_order(nruns, all, from);
	for (run = 0; run < nruns; run++)
	{
		for (; first[run] > 0 && passed; first[run]--)
			passed = fms_read_order_next(order) == run;
	}
	for (i = n; i < nblocks; i++)
	{
		uint32		k;

		for (k = 0; k < blocks[i].nblocks && blocks[i].position > 0; k++)
			passed = passed && fms_read_order_next(order) == blocks[i].run;
	}
	passed = passed && fms_read_order_next(order) == -1;
	fms_read_order_end(order);
	if (!passed)
		shim_note("going on from entry %d of %d, by last keys", n, nblocks);
	return passed;
}

/*
 * Where a merge begins that does not want the first `rows` rows.  By the
 * sorted list: all blocks before block `last` have that many rows at most, and
 * each run begins at its last block up to `last`.
 */
static bool
skips(const FmsFirstKeys *const *all, uint64 rows)
{
	FmsPosition from[MAX_RUNS];
	uint32		expected[MAX_RUNS] = {0};
	uint32		chain[MAX_RUNS] = {0};	/* the run's last one */
	uint32		chain_rows[MAX_RUNS] = {0};
	uint64		before = 0;
	uint64		skipped = 0;
	bool		passed;
	uint64		result;
	int			last = -1;
	int			i;

	for (i = 0; i < nblocks; before += blocks[i++].rows)
	{
		if (before <= rows &&
			(by == FMS_ORDER_BY_FIRST_KEYS || blocks[i].position > 0))
			last = i;
	}
	for (i = 0; i <= last; i++)
	{
		const Block *block = &blocks[i];

		expected[block->run] += chain[block->run];
		skipped += chain_rows[block->run];
		chain[block->run] = block->nblocks;
		chain_rows[block->run] = block->rows;
	}
	result = fms_read_order_skip(store, by, nruns, all, last_rows, rows, from);
	passed = result == skipped;
	for (i = 0; i < nruns; i++)
		passed = passed && from[i].record == -1 &&
			from[i].block == expected[i];
	if (!passed)
		shim_note("skipping %llu rows: %llu, not %llu, at entry %d of %d",
				  (unsigned long long) rows, (unsigned long long) result,
				  (unsigned long long) skipped, last, nblocks);
	return passed;
}

/* Any number of rows, those of some blocks exactly, all, and more. */
static bool
skips_any_rows(const FmsFirstKeys *const *all)
{
	uint64		total = 0;
	int			i;

	for (i = 0; i < nblocks; total += blocks[i++].rows)
	{
		if (shim_below(nblocks / 4 + 1) == 0 &&
			!(skips(all, total) && skips(all, total + shim_below(3)) &&
			  (total == 0 || skips(all, total - 1))))
			return false;
	}
	return skips(all, total) && skips(all, total + 1) &&
		(total == 0 || skips(all, total - 1));
}

static bool
goes_well(uint32 range, bool chains, bool long_keys, Size share_bytes)
{
	static const int distances[] = {0, 1, 7, 1000};
	const FmsFirstKeys *all[MAX_RUNS];
	bool		passed = true;
	Size		taken_bytes;
	int			i;

	gives_back = shim_below(2) == 0;
	make_runs(range, chains, long_keys, share_bytes);
	gives_back = false;
	taken_bytes = fms_first_keys_memory(store).memory_bytes;
	if (taken_bytes > share_bytes && shim_files_open == 0)
	{
		shim_note("%zu bytes are more than the share of %zu", taken_bytes,
				  share_bytes);
		passed = false;
	}
	for (i = 0; i < nruns; i++)
		all[i] = &first_keys[i];

	/* again and again from the start, as rewinding does */
	for (i = 0; i < (int) lengthof(distances) && passed; i++)
	{
		FmsReadOrder *order = begin_order(nruns, all, NULL);

		passed = follow(order, distances[i]);
		fms_read_order_end(order);
	}

	/* one that is given up half-way */
	if (passed)
	{
		FmsReadOrder *order = begin_order(nruns, all, NULL);
		int			n = nblocks ? (int) shim_below(nblocks) : 0;

		for (i = 0; i < n; i++)
			(void) fms_read_order_next(order);
		fms_read_order_end(order);
	}
	for (i = 0; i < 4 && passed; i++)
	{
		int			n = nblocks ? (int) shim_below(nblocks) : 0;

		passed = by == FMS_ORDER_BY_LAST_KEYS ?
			goes_on_from_last_keys(all, n) : goes_on_from(all, n);
	}
	passed = passed && skips_any_rows(all);
	forget_runs();
	return passed;
}

/* A run may be merged alone. */
static bool
each_run_alone(Size share_bytes)
{
	bool		passed = true;
	int			run;
	int			i;

	make_runs(5, false, false, share_bytes);
	for (run = 0; run < nruns; run++)
	{
		const FmsFirstKeys *chosen[1] = {&first_keys[run]};
		FmsReadOrder *order = begin_order(1, chosen, NULL);
		int			count = 0;

		for (i = 0; i < nblocks; i++)
			count += blocks[i].run == run;
		while (fms_read_order_next(order) == 0)
			count--;
		fms_read_order_end(order);
		passed = passed && count == 0;
	}
	forget_runs();
	return passed;
}

static void
read_order(const FmsFirstKeys *const *all)
{
	FmsReadOrder *order = begin_order(nruns, all, NULL);
	int			i;

	for (i = 0; i < nblocks; i++)
	{
		(void) fms_read_order_next(order);
		if (by == FMS_ORDER_BY_FIRST_KEYS)
			(void) fms_read_order_first_key(order, blocks[i].run);
	}
	fms_read_order_end(order);
}

/* Any bit of the first keys in the file, flipped, is an error. */
static bool
corruption_is_noticed(bool long_keys)
{
	const FmsFirstKeys *all[MAX_RUNS];
	char	   *bytes;
	Size		count;
	bool		raised;
	int			i;

	do
	{
		make_runs(50, false, long_keys, 0);
		bytes = shim_file_bytes(&count);
		if (bytes == NULL)
			forget_runs();
	} while (bytes == NULL);
	for (i = 0; i < nruns; i++)
		all[i] = &first_keys[i];

	bytes[shim_below(count)] ^= 1 << shim_below(8);
	raised = SHIM_CATCH(read_order(all));
	shim_forget_raised();
	forget_runs();
	return raised;
}

/* What is written, and read once, is counted. */
static bool
bytes_are_counted(void)
{
	FmsCounter	spilled = 1 + FMS_COUNT_SPILLED_BYTES;
	FmsCounter	written = 1 + FMS_COUNT_WRITTEN_BYTES;
	FmsCounter	read = 1 + FMS_COUNT_READ_BYTES;
	uint64		before[1 + FMS_NCOUNTERS];
	const FmsFirstKeys *all[MAX_RUNS];
	Size		count;
	Size		readers = by == FMS_ORDER_BY_FIRST_KEYS ? 2 : 1;
	int			i;

	memcpy(before, counts, sizeof(counts));
	make_runs(50, false, true, 0);
	for (i = 0; i < nruns; i++)
		all[i] = &first_keys[i];
	read_order(all);
	(void) shim_file_bytes(&count);
	forget_runs();
	return counts[spilled] - before[spilled] == count &&
		counts[written] - before[written] == count &&
		counts[read] - before[read] == readers * count;
}

/* Its key often begins like the one before, or ends with zeros. */
static FmsRecord *
next_record(const FmsRecord *before)
{
	bool		alike = before != NULL && shim_below(8) > 0;
	uint16		key_bytes = alike ? before->key_bytes :
		fms_key_room(shim_below(FMS_KEY_MAX_BYTES + 1));
	bool		exact = shim_below(4) > 0;
	/* a record in memory always has one */
	Size		tuple_bytes = SizeofMinimalTupleHeader + shim_below(40);
	FmsRecord  *record = palloc0(fms_record_size(key_bytes, tuple_bytes));
	uint32		from = alike ? shim_below(key_bytes + 1) : 0;
	uint32		to = from + shim_below(key_bytes - from + 1);
	uint32		i;

	record->key_bytes = key_bytes;
	record->tuple_bytes = tuple_bytes;
	record->flags = exact ? FMS_RECORD_EXACT : 0;
	if (from > 0)
		memcpy(fms_record_key(record), fms_record_key(before), from);
	for (i = from; i < to; i++)
		fms_record_key(record)[i] = shim_below(3) ? shim_below(256) : 0;
	/* what lies behind the key is no part of it */
	for (i = FMS_TUPLE_SKIPPED_BYTES; i < tuple_bytes; i++)
		((char *) fms_record_tuple(record))[i] = 1 + shim_below(255);
	return record;
}

/* What is read stands for the record that was noted. */
static bool
stands_for(const FmsRecord *first_key, const FmsRecord *record)
{
	bool		exact = (record->flags & FMS_RECORD_EXACT) != 0;

	if (first_key->flags != (FMS_RECORD_FIRST_KEY |
							 (record->flags & FMS_RECORD_EXACT)) ||
		first_key->key_bytes != record->key_bytes ||
		memcmp(fms_record_key(first_key), fms_record_key(record),
			   record->key_bytes) != 0 ||
		first_key->tuple_bytes != (exact ? 0 : record->tuple_bytes))
		return false;
	return exact ||
		memcmp((char *) fms_record_tuple(first_key) + FMS_TUPLE_SKIPPED_BYTES,
			   (char *) fms_record_tuple(record) + FMS_TUPLE_SKIPPED_BYTES,
			   record->tuple_bytes - FMS_TUPLE_SKIPPED_BYTES) == 0;
}

/* Few in most blocks, and more than 16 bits hold. */
static uint32
rows_of_block(int i)
{
	return i % 9 ? i % 9 : 65535 + i % 4 * 100000;
}

/* Keys of all lengths come back as they were noted. */
static bool
keys_come_back(Size share_bytes)
{
	FmsFirstKeys run = {0};
	FmsRecord  *records[1000];
	int			n = lengthof(records);
	FmsFirstKeyReader *reader;
	const FmsRecord *first_key;
	uint32		covered;
	uint32		rows;
	int			same = 0;
	int			i;

	store = fms_first_keys_create(NULL, counters, share_bytes, NULL);
	for (i = 0; i < n; i++)
	{
		records[i] = next_record(i > 0 ? records[i - 1] : NULL);
		fms_first_keys_note(store, &run, records[i], 1 + i % 7 / 6,
							rows_of_block(i));
	}
	fms_first_keys_finish(store, &run);

	reader = fms_first_key_reader_open(store->file, &run);
	for (i = 0; i < n; i++)
	{
		first_key = fms_first_key_reader_next(reader, &covered, &rows);
		if (first_key && covered == (uint32) (1 + i % 7 / 6) &&
			rows == rows_of_block(i))
			same += stands_for(first_key, records[i]);
	}
	if (fms_first_key_reader_next(reader, &covered, &rows))
		same = -1;
	fms_first_key_reader_close(reader);
	for (i = 0; i < n; i++)
		pfree(records[i]);
	fms_first_keys_forget(store, &run);
	fms_first_keys_destroy(store);
	return same == n;
}

static const char *
name_of_order(void)
{
	return by == FMS_ORDER_BY_LAST_KEYS ? "last" : "first";
}

static void
test_corruption(void)
{
	int			noticed = 0;
	int			round;

	for (round = 0; round < 200; round++)
		noticed += corruption_is_noticed(round % 2);
	shim_ok(noticed == 200,
			"a flipped bit of the first keys by %s keys is an error: %d of 200",
			name_of_order(), noticed);
}

static void
test_order(FmsOrderBy order)
{
	static const uint32 ranges[] = {1, 2, 50, 1000000000};
	/* all in memory, some of them, none */
	static const Size shares[] = {(Size) 1 << 30, 20000, 0};
	int			i;
	int			j;
	int			round;

	by = order;
	for (i = 0; i < (int) lengthof(ranges); i++)
	{
		for (j = 0; j < (int) lengthof(shares); j++)
		{
			bool		passed = true;

			for (round = 0; round < ROUNDS && passed; round++)
				passed = goes_well(ranges[i], round % 2, round % 10 == 9,
								   shares[j]);
			shim_ok(passed,
					"the order of all blocks by %s keys, %u different words, %zu bytes of memory",
					name_of_order(), ranges[i], shares[j]);
		}
	}
	for (j = 0; j < (int) lengthof(shares); j++)
		shim_ok(each_run_alone(shares[j]),
				"each run alone by %s keys, %zu bytes of memory",
				name_of_order(), shares[j]);
	shim_ok(bytes_are_counted(), "what is written and read by %s keys is counted",
			name_of_order());
	test_corruption();
}

static void
test_keys(Size share_bytes)
{
	bool		passed = true;
	int			round;

	for (round = 0; round < ROUNDS && passed; round++)
		passed = keys_come_back(share_bytes);
	shim_ok(passed, "keys of all lengths come back, %zu bytes of memory",
			share_bytes);
}

int
main(void)
{
	shim_seed();
	test_keys((Size) 1 << 30);
	test_keys(20000);
	test_keys(0);
	test_order(FMS_ORDER_BY_FIRST_KEYS);
	test_order(FMS_ORDER_BY_LAST_KEYS);
	shim_ok(shim_files_open == 0 && shim_live_chunks == 0,
			"nothing was left in memory or open");
	return shim_done();
}
