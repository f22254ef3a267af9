/*-------------------------------------------------------------------------
 *
 * tuple_cost.c
 *	  What a tuple costs the processor, by sorts that are timed.
 *
 * Two sorts of (bigint, bytea), by the bigint, at random; the tuples of one
 * are short, those of the other long.  Each runs three times, and the best
 * time counts.  A line through the two gives what a tuple costs and what a
 * byte of it costs:
 *
 *	  ns a tuple   |			  x
 *				   |	   -
 *				   |  x
 *				   +--------------------- bytes
 *					  40			400
 *
 * Both sorts spill, eight runs and more, through the page cache, so that run
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
#include "sort.h"
#include "tuple_cost.h"

/* Enough for memories of some MB; about as many bytes of either. */
#define SHORT_BYTES		40
#define SHORT_TUPLES	200000
#define LONG_BYTES		400
#define LONG_TUPLES		40000
#define RUNS			8
#define REPEAT			3

typedef struct Timing
{
	double		formation_ns;	/* a tuple */
	double		merge_ns;
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
		slot->tts_values[0] = Int64GetDatum(pg_prng_int64(&random));
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
time_sort(uint32 tuple_bytes, int tuples, Timing *timing)
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
	options.memory_bytes = (Size) tuples * tuple_bytes / RUNS;
	options.expected_bytes = (double) tuples * tuple_bytes;

	sort = fms_sort_begin(desc, &spec, &options, &counters, NULL);
	start = fms_clock_now();
	put_tuples(sort, desc, tuple_bytes, tuples);
	fms_sort_perform(sort);
	formation_us = fms_clock_since_us(start);
	start = fms_clock_now();
	while (fms_sort_get(sort, true))
		CHECK_FOR_INTERRUPTS();
	fms_sort_count(sort, &counters);
	timing->merge_ns = (fms_clock_since_us(start) - counters.blocked_us) *
		1000 / tuples;
	timing->formation_ns = formation_us * 1000 / tuples;
	fms_sort_end(sort);
	FreeTupleDesc(desc);
}

/* The best of some: whatever else the machine does only slows a sort down. */
static Timing
best_time(uint32 tuple_bytes, int tuples)
{
	Timing		best = {0};
	int			i;

	for (i = 0; i < REPEAT; i++)
	{
		Timing		timing;

		time_sort(tuple_bytes, tuples, &timing);
		if (i == 0 || timing.formation_ns < best.formation_ns)
			best.formation_ns = timing.formation_ns;
		if (i == 0 || timing.merge_ns < best.merge_ns)
			best.merge_ns = timing.merge_ns;
	}
	return best;
}

/* The line through both: neither part can be negative. */
static void
fit(double of_short, double of_long, double *tuple_ns, double *byte_ns)
{
	*byte_ns = Max(0, (of_long - of_short) / (LONG_BYTES - SHORT_BYTES));
	*tuple_ns = Max(0, of_short - *byte_ns * SHORT_BYTES);
}

void
fms_tuple_cost_measure(FmsTupleCost *cost)
{
	Timing		of_short = best_time(SHORT_BYTES, SHORT_TUPLES);
	Timing		of_long = best_time(LONG_BYTES, LONG_TUPLES);

	fit(of_short.formation_ns, of_long.formation_ns, &cost->formation_ns,
		&cost->formation_byte_ns);
	fit(of_short.merge_ns, of_long.merge_ns, &cost->merge_ns,
		&cost->merge_byte_ns);
}
