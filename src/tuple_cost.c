/*-------------------------------------------------------------------------
 *
 * tuple_cost.c
 *	  What a tuple costs the processor, by sorts that are timed.
 *
 * Sorts of (bigint, bytea), by the bigint, at random; the tuples of one are
 * short, those of another long.  They take turns, five times, since what they
 * differ by is what counts, and a slow moment then is one of all of them.  Of
 * each, the mean of the times in the middle is taken: what else the machine
 * does slows down the sorts, too, whose time is foreseen.
 *
 * A line through the two lengths gives what a tuple and what a byte costs:
 *
 *	  ns a tuple   |			  x
 *				   |	   -
 *				   |  x
 *				   +--------------------- bytes
 *					  40			400
 *
 * Of each key there are about eight in a run.  Where all differ, a merge
 * changes runs at every tuple and takes some quarter longer; where a run has a
 * hundred of each, as of dates, it stays with a run and takes as much less.
 * So this is half-way between the two.  A third sort has hundreds alike: by
 * how much less its merge takes is what changing runs costs.
 *
 * Two more sorts have the short tuples in small blocks, and ask for few
 * or for many at once.  By how much longer the one takes to get them, and
 * how many times more it asks, is what asking costs.  By how much longer the
 * other takes than with large blocks, and how many blocks more it reads, is
 * what a block costs.
 *
 * All of them spill, eight runs and more, so that run formation packs and
 * writes blocks and the merge reads them; what the merge waits is taken off.
 * Each does so through the page cache and past it, where a block is not
 * copied but asking for one costs ten times as much: a request goes down to
 * the driver, and an interrupt comes back.  A processor that is busy meanwhile
 * pays for all of that, so a read costs a merge up to twice what it costs
 * somebody who asks and sleeps (probe.c).
 *
 * A key of eight bytes is the cheap case: keys that need a comparator cost
 * more, and are not covered.
 *
 * Memory and files are the sorts' own (sort.c).
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "catalog/pg_operator.h"
#include "catalog/pg_type.h"
#include "common/pg_prng.h"
#include "executor/tuptable.h"
#include "miscadmin.h"

#include "clock.h"
#include "median.h"
#include "sort.h"
#include "tuple_cost.h"

/* Enough for memories of some MB; about as many bytes of either. */
#define SHORT_BYTES		40
#define SHORT_TUPLES	300000
#define LONG_BYTES		400
#define LONG_TUPLES		60000
#define MEMORY_BYTES	((Size) 4 * 1024 * 1024)
#define SOME_ALIKE		64		/* tuples a key, and some eight runs */
#define MANY_ALIKE		4096
#define LARGE_BLOCK		((uint32) 32 * 1024)
#define SMALL_BLOCK		((uint32) 4 * 1024)
#define FEW_ASSIST		8		/* one or two are asked for at once */
#define DIRECT_ASSIST	32		/* with the runs, in one huge page */
#define MANY_ASSIST		64
#define REPEAT			5

/* No turn begins after that: on a slow device, each takes long. */
#define SECONDS_MAX		1.5

/*
 * What is sorted, and in which blocks, of which so many are asked for; 0: as
 * the way has it.
 */
typedef struct Trial
{
	uint32		tuple_bytes;
	int			tuples;
	int			tuples_a_key;
	uint32		block_bytes;
	uint32		assist_blocks;
} Trial;

typedef enum TrialName
{
	SHORT_TUPLES_TRIAL,
	LONG_TUPLES_TRIAL,
	ALIKE_TUPLES_TRIAL,
	FEW_SMALL_TRIAL,
	MANY_SMALL_TRIAL,
	TRIALS
} TrialName;

static const Trial trials[TRIALS] = {
	{SHORT_BYTES, SHORT_TUPLES, SOME_ALIKE, LARGE_BLOCK, 0},
	{LONG_BYTES, LONG_TUPLES, SOME_ALIKE, LARGE_BLOCK, 0},
	{SHORT_BYTES, SHORT_TUPLES, MANY_ALIKE, LARGE_BLOCK, 0},
	{SHORT_BYTES, SHORT_TUPLES, SOME_ALIKE, SMALL_BLOCK, FEW_ASSIST},
	{SHORT_BYTES, SHORT_TUPLES, SOME_ALIKE, SMALL_BLOCK, MANY_ASSIST}
};

typedef struct Timing
{
	double		formation_ns;	/* a tuple */
	double		merge_ns;		/* but for getting its blocks */
	double		load_ns;		/* getting them, waiting excluded */
	double		blocks;			/* a tuple */
	double		batches;		/* in which they were asked for */
} Timing;

/* Of one trial, at each turn. */
typedef struct Times
{
	double		formation_ns[REPEAT];
	double		merge_ns[REPEAT];
	double		load_ns[REPEAT];
} Times;

static void
put_tuples(FmsSort *sort, TupleDesc desc, const Trial *trial)
{
	TupleTableSlot *slot = MakeSingleTupleTableSlot(desc, &TTSOpsVirtual);
	Size		bytes = trial->tuple_bytes - sizeof(int64);
	bytea	   *load = palloc0(bytes);
	pg_prng_state random;
	int			i;

	SET_VARSIZE(load, bytes);
	pg_prng_seed(&random, trial->tuples);
	for (i = 0; i < trial->tuples; i++)
	{
		CHECK_FOR_INTERRUPTS();
		ExecClearTuple(slot);
		slot->tts_values[0] =
			Int64GetDatum(pg_prng_uint64_range(&random, 1,
											   trial->tuples /
											   trial->tuples_a_key));
		slot->tts_isnull[0] = false;
		slot->tts_values[1] = PointerGetDatum(load);
		slot->tts_isnull[1] = false;
		ExecStoreVirtualTuple(slot);
		fms_sort_put(sort, slot);
	}
	ExecDropSingleTupleTableSlot(slot);
	pfree(load);
}

/* The way that its blocks go. */
typedef struct Way
{
	FmsIoChoice io_method;
	FmsDirectChoice direct;
	uint32		assist_blocks;	/* 0: automatic */
} Way;

static void
time_sort(const Trial *trial, const Way *way, Timing *timing)
{
	AttrNumber	attno = 1;
	Oid			operator = Int8LessOperator;
	Oid			collation = InvalidOid;
	bool		nulls_first = false;
	FmsKeySpec	spec = {1, &attno, &operator, &collation, &nulls_first};
	FmsOptions	options = {0};
	FmsCounters counters = {0};
	TupleDesc	desc = CreateTemplateTupleDesc(2);
	FmsSort    *sort;
	instr_time	start;
	double		formation_us;

	TupleDescInitEntry(desc, 1, "key", INT8OID, -1, 0);
	TupleDescInitEntry(desc, 2, "load", BYTEAOID, -1, 0);
	options.mode = FMS_MODE_FMSORT;
	options.io_method = way->io_method;
	options.direct_io = way->direct;
	options.memory_bytes = MEMORY_BYTES;
	options.block_bytes = trial->block_bytes;
	options.assist_blocks = trial->assist_blocks > 0 ?
		trial->assist_blocks : way->assist_blocks;
	options.expected_bytes = (double) trial->tuples * trial->tuple_bytes;

	sort = fms_sort_begin(desc, &spec, &options, &counters, NULL);
	start = fms_clock_now();
	put_tuples(sort, desc, trial);
	fms_sort_perform(sort);
	formation_us = fms_clock_since_us(start);
	while (fms_sort_get(sort, true))
		CHECK_FOR_INTERRUPTS();
	/* by the clock that times all sorts: it is their time that is predicted */
	fms_sort_count(sort, &counters);
	timing->merge_ns = (counters.merge_us + counters.order_us -
						counters.load_us) * 1000 / trial->tuples;
	timing->load_ns = (counters.load_us - counters.blocked_us) *
		1000 / trial->tuples;
	timing->formation_ns = formation_us * 1000 / trial->tuples;
	timing->blocks = (double) counters.blocks / trial->tuples;
	timing->batches = (double) counters.read_batches / trial->tuples;
	fms_sort_end(sort);
	FreeTupleDesc(desc);
}

/* What each of the trials takes that way. */
static void
time_trials(const Way *way, Timing *timings)
{
	instr_time	start = fms_clock_now();
	Times		times[TRIALS];
	int			n = 0;
	int			i;

	do
	{
		for (i = 0; i < TRIALS; i++)
		{
			time_sort(&trials[i], way, &timings[i]);
			times[i].formation_ns[n] = timings[i].formation_ns;
			times[i].merge_ns[n] = timings[i].merge_ns;
			times[i].load_ns[n] = timings[i].load_ns;
		}
		n++;
	} while (n < REPEAT && fms_clock_since_us(start) < SECONDS_MAX * 1e6);
	for (i = 0; i < TRIALS; i++)
	{
		timings[i].formation_ns = fms_middle_mean(times[i].formation_ns, n);
		timings[i].merge_ns = fms_middle_mean(times[i].merge_ns, n);
		timings[i].load_ns = fms_middle_mean(times[i].load_ns, n);
	}
}

/* The line through both: neither part can be negative. */
static void
fit(double of_short, double of_long, double *tuple_ns, double *byte_ns)
{
	*byte_ns = Max(0, (of_long - of_short) / (LONG_BYTES - SHORT_BYTES));
	*tuple_ns = Max(0, of_short - *byte_ns * SHORT_BYTES);
}

/* What asking once for blocks costs, by two merges of the same blocks. */
static double
submit_cost_ns(const Timing *few, const Timing *many)
{
	/* without a ring none is asked for with others */
	if (few->batches <= many->batches)
		return 0;
	return Max(0, (few->load_ns - many->load_ns) /
			   (few->batches - many->batches));
}

/*
 * What a block costs beside that: by how much more it takes to get the same
 * bytes in more blocks, since they are copied either way.
 */
static double
block_cost_ns(const Timing *small, const Timing *large, double submit_ns)
{
	Assert(small->blocks > large->blocks);
	return Max(0, (small->load_ns - large->load_ns -
				   (small->batches - large->batches) * submit_ns) /
			   (small->blocks - large->blocks));
}

/* What copying costs, a tuple. */
static double
copy_cost_ns(const Timing *timing, const FmsMergeCost *cost)
{
	return Max(0, timing->load_ns - timing->blocks * cost->block_ns -
			   timing->batches * cost->submit_ns);
}

/*
 * What the merge costs that way.  Through the page cache all is copied, which
 * is by the byte.  Past it, what the merge does with a tuple is the time
 * between getting blocks, and getting large ones says nothing: so small a sort
 * spends most of that on memory that it has not used before.
 */
static void
price_merge(const Timing *timings, bool copies, FmsMergeCost *cost)
{
	static const Timing nothing = {0};
	const Timing *of_short = &timings[SHORT_TUPLES_TRIAL];
	const Timing *of_long = &timings[LONG_TUPLES_TRIAL];
	const Timing *many = &timings[MANY_SMALL_TRIAL];

	cost->submit_ns = submit_cost_ns(&timings[FEW_SMALL_TRIAL], many);
	cost->block_ns = block_cost_ns(many, copies ? of_short : &nothing,
								   cost->submit_ns);
	fit(of_short->merge_ns + (copies ? copy_cost_ns(of_short, cost) : 0),
		of_long->merge_ns + (copies ? copy_cost_ns(of_long, cost) : 0),
		&cost->tuple_ns, &cost->byte_ns);
	cost->change_ns = Max(0, of_short->merge_ns -
						  timings[ALIKE_TUPLES_TRIAL].merge_ns);
}

void
fms_tuple_cost_measure(FmsIoChoice io_method, FmsTupleCost *cost)
{
	Way			cached = {io_method, FMS_DIRECT_OFF, 0};
	Way			direct = {io_method, FMS_DIRECT_ON, DIRECT_ASSIST};
	Timing		timings[TRIALS];

	time_trials(&cached, timings);
	fit(timings[SHORT_TUPLES_TRIAL].formation_ns,
		timings[LONG_TUPLES_TRIAL].formation_ns, &cost->formation_ns,
		&cost->formation_byte_ns);
	price_merge(timings, true, &cost->cached);

	time_trials(&direct, timings);
	price_merge(timings, false, &cost->direct);
}

static void
take_mean(double *value, double other)
{
	*value = (*value + other) / 2;
}

static void
take_mean_of_merge(FmsMergeCost *cost, const FmsMergeCost *other)
{
	take_mean(&cost->tuple_ns, other->tuple_ns);
	take_mean(&cost->byte_ns, other->byte_ns);
	take_mean(&cost->change_ns, other->change_ns);
	take_mean(&cost->block_ns, other->block_ns);
	take_mean(&cost->submit_ns, other->submit_ns);
}

void
fms_tuple_cost_mean(FmsTupleCost *cost, const FmsTupleCost *other)
{
	take_mean(&cost->formation_ns, other->formation_ns);
	take_mean(&cost->formation_byte_ns, other->formation_byte_ns);
	take_mean_of_merge(&cost->cached, &other->cached);
	take_mean_of_merge(&cost->direct, &other->direct);
}
