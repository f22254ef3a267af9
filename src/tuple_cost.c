/*-------------------------------------------------------------------------
 *
 * tuple_cost.c
 *	  What a tuple costs the processor, by sorts that are timed.
 *
 * Sorts of (bigint, bytea), by the bigint, at random; the tuples of one are
 * short, those of another long.  Each runs five times, and the time in the
 * middle counts: what else the machine does slows down the sorts, too, whose
 * time is foreseen.
 *
 * Of each key there are about eight in a run.  Where all differ, a merge
 * changes runs at every tuple and takes some quarter longer; where a run has a
 * hundred of each, as of dates, it stays with a run and takes as much less.
 * So this is half-way between the two, and off by less than what either would
 * be by the other.
 *
 * A line through the two lengths gives what a tuple and what a byte costs:
 *
 *	  ns a tuple   |			  x
 *				   |	   -
 *				   |  x
 *				   +--------------------- bytes
 *					  40			400
 *
 * Two more sorts have the short tuples in small blocks, and ask for them one
 * by one or some at once.  By how much the merge of the one takes longer, and
 * how many times more it asks, is what asking costs.  By how much the other
 * takes longer than that of the large blocks, and how many blocks more it
 * reads, is what a block costs.  Both are taken off the line.
 *
 * All of them spill, eight runs and more, through the page cache, so that run
 * formation packs and writes blocks and the merge reads them; what the merge
 * waits is taken off.  A key of eight bytes is the cheap case: keys that need
 * a comparator cost more, and are not covered.
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
#define SHORT_TUPLES	200000
#define LONG_BYTES		400
#define LONG_TUPLES		40000
#define MEMORY_BYTES	((Size) 2 * 1024 * 1024)
#define TUPLES_A_KEY	64		/* and some eight runs */
#define LARGE_BLOCK		((uint32) 32 * 1024)
#define SMALL_BLOCK		((uint32) 4 * 1024)
#define FEW_ASSIST		4		/* each is asked for by itself */
#define MANY_ASSIST		64
#define REPEAT			5

/* What is sorted, and in which blocks, of which so many are asked for. */
typedef struct Trial
{
	uint32		tuple_bytes;
	int			tuples;
	uint32		block_bytes;
	uint32		assist_blocks;
} Trial;

typedef struct Timing
{
	double		formation_ns;	/* a tuple */
	double		merge_ns;
	double		blocks;			/* a tuple */
	double		batches;		/* in which they were asked for */
} Timing;

static void
put_tuples(FmsSort *sort, TupleDesc desc, uint32 tuple_bytes, int tuples)
{
	TupleTableSlot *slot = MakeSingleTupleTableSlot(desc, &TTSOpsVirtual);
	Size		bytes = tuple_bytes - sizeof(int64);
	bytea	   *load = palloc0(bytes);
	pg_prng_state random;
	int			i;

	SET_VARSIZE(load, bytes);
	pg_prng_seed(&random, tuples);
	for (i = 0; i < tuples; i++)
	{
		CHECK_FOR_INTERRUPTS();
		ExecClearTuple(slot);
		slot->tts_values[0] =
			Int64GetDatum(pg_prng_uint64_range(&random, 1,
											   tuples / TUPLES_A_KEY));
		slot->tts_isnull[0] = false;
		slot->tts_values[1] = PointerGetDatum(load);
		slot->tts_isnull[1] = false;
		ExecStoreVirtualTuple(slot);
		fms_sort_put(sort, slot);
	}
	ExecDropSingleTupleTableSlot(slot);
	pfree(load);
}

static void
time_sort(const Trial *trial, Timing *timing)
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
	options.io_method = FMS_IO_AUTO;
	options.direct_io = FMS_DIRECT_OFF;
	options.memory_bytes = MEMORY_BYTES;
	options.block_bytes = trial->block_bytes;
	options.assist_blocks = trial->assist_blocks;
	options.expected_bytes = (double) trial->tuples * trial->tuple_bytes;

	sort = fms_sort_begin(desc, &spec, &options, &counters, NULL);
	start = fms_clock_now();
	put_tuples(sort, desc, trial->tuple_bytes, trial->tuples);
	fms_sort_perform(sort);
	formation_us = fms_clock_since_us(start);
	while (fms_sort_get(sort, true))
		CHECK_FOR_INTERRUPTS();
	/* by the clock that times all sorts: it is their time that is predicted */
	fms_sort_count(sort, &counters);
	timing->merge_ns = (counters.merge_us - counters.blocked_us) *
		1000 / trial->tuples;
	timing->formation_ns = formation_us * 1000 / trial->tuples;
	timing->blocks = (double) counters.blocks / trial->tuples;
	timing->batches = (double) counters.read_batches / trial->tuples;
	fms_sort_end(sort);
	FreeTupleDesc(desc);
}

static Timing
usual_time(uint32 tuple_bytes, int tuples, uint32 block_bytes,
		   uint32 assist_blocks)
{
	Trial		trial = {tuple_bytes, tuples, block_bytes, assist_blocks};
	Timing		timing;
	double		formation_ns[REPEAT];
	double		merge_ns[REPEAT];
	int			i;

	for (i = 0; i < REPEAT; i++)
	{
		time_sort(&trial, &timing);
		formation_ns[i] = timing.formation_ns;
		merge_ns[i] = timing.merge_ns;
	}
	timing.formation_ns = fms_median(formation_ns, REPEAT);
	timing.merge_ns = fms_median(merge_ns, REPEAT);
	return timing;
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
	return Max(0, (few->merge_ns - many->merge_ns) /
			   (few->batches - many->batches));
}

/* What a block costs beside that, by two merges of the same tuples. */
static double
block_cost_ns(const Timing *small, const Timing *large, double submit_ns)
{
	Assert(small->blocks > large->blocks);
	return Max(0, (small->merge_ns - large->merge_ns -
				   (small->batches - large->batches) * submit_ns) /
			   (small->blocks - large->blocks));
}

/* Without what its blocks cost. */
static double
merge_cost_ns(const Timing *timing, const FmsTupleCost *cost)
{
	return timing->merge_ns - timing->blocks * cost->merge_block_ns -
		timing->batches * cost->merge_submit_ns;
}

void
fms_tuple_cost_measure(FmsTupleCost *cost)
{
	Timing		few = usual_time(SHORT_BYTES, SHORT_TUPLES, SMALL_BLOCK,
								 FEW_ASSIST);
	Timing		many = usual_time(SHORT_BYTES, SHORT_TUPLES, SMALL_BLOCK,
								  MANY_ASSIST);
	Timing		of_short = usual_time(SHORT_BYTES, SHORT_TUPLES, LARGE_BLOCK,
									  0);
	Timing		of_long = usual_time(LONG_BYTES, LONG_TUPLES, LARGE_BLOCK, 0);

	cost->merge_submit_ns = submit_cost_ns(&few, &many);
	cost->merge_block_ns = block_cost_ns(&many, &of_short,
										 cost->merge_submit_ns);
	fit(of_short.formation_ns, of_long.formation_ns, &cost->formation_ns,
		&cost->formation_byte_ns);
	fit(merge_cost_ns(&of_short, cost), merge_cost_ns(&of_long, cost),
		&cost->merge_ns, &cost->merge_byte_ns);
}

/* What such a tuple of middling length takes, but for its blocks. */
static double
middling_ns(const FmsTupleCost *cost)
{
	return cost->formation_ns + cost->merge_ns +
		(cost->formation_byte_ns + cost->merge_byte_ns) *
		(SHORT_BYTES + LONG_BYTES) / 2;
}

void
fms_tuple_cost_lower(FmsTupleCost *cost, const FmsTupleCost *other)
{
	if (middling_ns(other) < middling_ns(cost))
		*cost = *other;
}
