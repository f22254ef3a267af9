/*-------------------------------------------------------------------------
 *
 * compare.c
 *	  One query under several ways of sorting: fmsort_compare().
 *
 * All merge modes get the same input buffer (Table 5 of Lee, Roh, Park): the n
 * blocks of s bytes that the traditional merge of n runs has, l assist blocks
 * included.
 *
 *	  traditional		n	  blocks of s
 *	  double buffering	2n	  blocks of s / 2
 *	  fmsort, flash		n + l blocks of n s / (n + l), multi_block likewise
 *
 *	  first run --> n --> round 1: A B C --> round 2: B C A --> .. medians
 *
 * "stock" is PostgreSQL's sort, "automatic" a session that sets nothing but
 * work_mem.  Both use work_mem as they like.
 *
 * The query runs with the caller's rights in a read-only subtransaction that
 * is rolled back, which also takes back the settings.  leftovers.c refuses
 * what a rollback does not undo.
 *
 * Times are those of the run with the median total.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <math.h>

#include "access/xact.h"
#include "catalog/pg_type.h"
#include "executor/instrument.h"
#include "executor/spi.h"
#include "fmgr.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/guc.h"
#include "utils/plancache.h"
#include "utils/resowner.h"

#include "base/clock.h"
#include "observe/reports.h"
#include "functions/leftovers.h"
#include "merge/mode.h"
#include "executor/settings.h"

/* The traditional merge's blocks, if fmsort.block_size does not say. */
#define BASE_BLOCK_MIN_BYTES	1024
#define BASE_BLOCK_MAX_BYTES	(256 * 1024)
#define FIRST_RUN_BLOCK_BYTES	8192

/* l, if fmsort.assist_blocks does not say. */
#define ASSIST_BLOCKS			32

/*
 * Each contender runs the query `repeat` times.  Nobody needs more contenders
 * than each known one twice, nor more runs for a median; beyond that it is a
 * mistake, and one that keeps a session busy for days.
 */
#define CONTENDERS_MAX			16
#define REPEAT_MAX				1000

typedef struct Contender
{
	const char *name;
	FmsModeChoice mode;
	const FmsMode *merge;		/* gets the common input buffer; NULL: not */
} Contender;

static const Contender known[] = {
	{"stock", FMS_MODE_OFF, NULL},
	{"automatic", FMS_MODE_FMSORT, NULL},
	{"traditional", FMS_MODE_TRADITIONAL, &fms_mode_traditional},
	{"double_buffering", FMS_MODE_DOUBLE_BUFFERING,
	&fms_mode_double_buffering},
	{"fmsort", FMS_MODE_FMSORT, &fms_mode_fmsort},
	{"single_block", FMS_MODE_TRADITIONAL, &fms_mode_traditional},
	{"multi_block", FMS_MODE_MULTI_BLOCK, &fms_mode_multi_block},
	{"flash", FMS_MODE_FLASH, &fms_mode_flash}
};

/* What all contenders have in common. */
typedef struct Terms
{
	const char *query;
	int			nruns;			/* n; 0: nothing was merged */
	uint64		buffer_bytes;	/* n s */
	uint32		assist_blocks;	/* l */
} Terms;

/* Of one run: formation (without input) and merge are parts of the total. */
typedef struct Times
{
	double		total_us;
	double		formation_us;
	double		merge_us;
	double		blocked_us;		/* of merge_us */
} Times;

typedef struct Measurement
{
	Times		times;
	bool		sorted;			/* by fmsort: the counters say something */
	FmsCounters counters;		/* of all sorts of the query */
	int64		read_blocks;	/* temporary blocks of BLCKSZ, by anything in
								 * the query */
	int64		written_blocks;
} Measurement;

PG_FUNCTION_INFO_V1(fmsort_compare);

/* ---- one run ---- */

static void
set_local(const char *name, const char *value)
{
	(void) set_config_option(name, value,
							 superuser() ? PGC_SUSET : PGC_USERSET,
							 PGC_S_SESSION, GUC_ACTION_LOCAL, true, 0, false);
}

static void
set_local_number(const char *name, uint64 value)
{
	set_local(name, psprintf(UINT64_FORMAT, value));
}

static void
check_query(SPIPlanPtr plan)
{
	List	   *sources = SPI_plan_get_plan_sources(plan);
	List	   *queries = NIL;
	const Query *query;

	if (list_length(sources) == 1)
		queries = ((CachedPlanSource *) linitial(sources))->query_list;
	if (list_length(queries) != 1)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("fmsort_compare() takes exactly one query")));
	query = linitial_node(Query, queries);
	if (query->commandType != CMD_SELECT || query->hasModifyingCTE ||
		query->rowMarks != NIL)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("fmsort_compare() runs SELECT only"),
				 errdetail("The query is run several times, so it may neither change nor lock anything."),
				 errhint("Compare the SELECT that the statement contains.")));
}

static double
counter_us(const FmsCounters *counters, FmsCounter counter)
{
	return fms_counter(counters, counter) / 1000.0;
}

/*
 * The sorts of a query that took so long.  Each has been measured by itself,
 * so where samples are too high in all of them the sum could be more than
 * that.
 */
static void
set_times(Times *times, double total_us, const FmsCounters *counters)
{
	times->total_us = total_us;
	times->formation_us =
		Min(total_us, counter_us(counters, FMS_COUNT_FORMATION_NS) -
			counter_us(counters, FMS_COUNT_INPUT_NS));
	times->merge_us = Min(total_us - times->formation_us,
						  counter_us(counters, FMS_COUNT_MERGE_NS));
	times->blocked_us = Min(times->merge_us,
							counter_us(counters, FMS_COUNT_BLOCKED_NS));
}

/* Runs the query under the settings in force, dropping its rows. */
static void
run_query(const char *text, Measurement *result)
{
	SPIExecuteOptions options = {.read_only = true, .dest = None_Receiver};
	SPIPlanPtr	plan;
	BufferUsage before;
	instr_time	start;
	double		total_us;
	int			status;
	int			i;

	SPI_connect();
	plan = SPI_prepare(text, 0, NULL);
	if (plan == NULL)
		elog(ERROR, "SPI_prepare failed: %s",
			 SPI_result_code_string(SPI_result));
	check_query(plan);

	fms_last_sort_new_statement();
	before = pgBufferUsage;
	start = fms_clock_now();
	status = SPI_execute_plan_extended(plan, &options);
	total_us = fms_clock_since_us(start);
	if (status < 0)
		elog(ERROR, "SPI_execute_plan_extended failed: %s",
			 SPI_result_code_string(status));
	result->read_blocks = pgBufferUsage.temp_blks_read -
		before.temp_blks_read;
	result->written_blocks = pgBufferUsage.temp_blks_written -
		before.temp_blks_written;

	memset(&result->counters, 0, sizeof(result->counters));
	result->sorted = fms_last_sort_kept() > 0;
	for (i = 0; i < fms_last_sort_kept(); i++)
		fms_counters_add(&result->counters, fms_last_sort_get(i));
	fms_counters_complete(&result->counters);
	set_times(&result->times, total_us, &result->counters);
	SPI_finish();
}

/* The settings that make the contender what it is. */
static void
set_contender(const Contender *contender, const Terms *terms)
{
	set_local("transaction_read_only", "on");
	set_local("max_parallel_workers_per_gather", "0");
	set_local("fmsort.mode", fms_mode_name(contender->mode));
	if (contender->merge && terms->nruns > 0)
	{
		uint64		blocks = contender->merge->blocks(terms->nruns,
													  terms->assist_blocks);
		uint64		bytes = terms->buffer_bytes / blocks;

		bytes -= bytes % FMS_BLOCK_QUANTUM_BYTES;
		set_local_number("fmsort.block_size",
						 Max(bytes, FMS_BLOCK_MIN_BYTES));
		set_local_number("fmsort.assist_blocks", terms->assist_blocks);
	}
	else
	{
		set_local("fmsort.block_size", "0");
		set_local("fmsort.assist_blocks", "0");
	}
}

/* One run in a subtransaction that leaves nothing behind. */
static void
measure(const Contender *contender, const Terms *terms, Measurement *result)
{
	MemoryContext context = CurrentMemoryContext;
	ResourceOwner owner = CurrentResourceOwner;

	CHECK_FOR_INTERRUPTS();
	BeginInternalSubTransaction(NULL);
	MemoryContextSwitchTo(context);
	fms_leftovers_refuse_begin();
	PG_TRY();
	{
		set_contender(contender, terms);
		run_query(terms->query, result);
	}
	PG_CATCH();
	{
		ErrorData  *error;

		fms_leftovers_refuse_end();
		MemoryContextSwitchTo(context);
		error = CopyErrorData();
		FlushErrorState();
		RollbackAndReleaseCurrentSubTransaction();
		MemoryContextSwitchTo(context);
		CurrentResourceOwner = owner;
		ReThrowError(error);
	}
	PG_END_TRY();
	fms_leftovers_refuse_end();
	RollbackAndReleaseCurrentSubTransaction();
	MemoryContextSwitchTo(context);
	CurrentResourceOwner = owner;
}

/* ---- the terms ---- */

/*
 * The first run: how many runs are there to be merged?  Of several sorts, the
 * one with the most decides.
 */
static void
agree_on_terms(Terms *terms)
{
	static const Contender first = {"first", FMS_MODE_TRADITIONAL,
	&fms_mode_traditional};
	FmsOptions	session;
	Measurement result;
	uint64		base;
	int			i;

	fms_settings_snapshot(&session, 0);
	base = session.block_bytes > 0 ? session.block_bytes :
		FIRST_RUN_BLOCK_BYTES;
	terms->assist_blocks = session.assist_blocks > 0 ?
		session.assist_blocks : ASSIST_BLOCKS;
	terms->nruns = 1;
	terms->buffer_bytes = base;
	measure(&first, terms, &result);

	terms->nruns = 0;
	for (i = 0; i < fms_last_sort_kept(); i++)
	{
		uint64		runs = fms_counter(fms_last_sort_get(i), FMS_COUNT_RUNS);

		terms->nruns = Max(terms->nruns, (int) runs);
	}
	if (terms->nruns == 0)
	{
		ereport(NOTICE,
				(errmsg(result.sorted ?
						"the query's sorts fit into work_mem: the ways of merging make no difference" :
						"the query does not sort: the ways of merging make no difference")));
		return;
	}
	if (session.block_bytes == 0)
	{
		/* a quarter is for what a merge needs beside its input buffer */
		Size		share = session.memory_bytes / 4 * 3 / terms->nruns;

		base = BASE_BLOCK_MAX_BYTES;
		while (base > BASE_BLOCK_MIN_BYTES && base > share)
			base /= 2;
	}
	terms->buffer_bytes = terms->nruns * base;
}

static const Contender *
contender_named(const char *name)
{
	size_t		i;

	for (i = 0; i < lengthof(known); i++)
	{
		if (pg_strcasecmp(known[i].name, name) == 0)
			return &known[i];
	}
	ereport(ERROR,
			(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
			 errmsg("fmsort_compare() knows no mode \"%s\"", name),
			 errhint("Modes are \"stock\", \"automatic\", \"traditional\", \"double_buffering\", \"fmsort\", \"single_block\", \"multi_block\" and \"flash\".")));
	return NULL;				/* keep compiler quiet */
}

static const Contender **
read_modes(ArrayType *modes, int *count)
{
	const Contender **contenders;
	Datum	   *names;
	bool	   *nulls;
	int			given = ArrayGetNItems(ARR_NDIM(modes), ARR_DIMS(modes));
	int			i;

	if (given > CONTENDERS_MAX)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("fmsort_compare() takes at most %d modes, not %d",
						CONTENDERS_MAX, given),
				 errdetail("The query is run for each of them, and there are %d.",
						   (int) lengthof(known))));
	deconstruct_array(modes, TEXTOID, -1, false, TYPALIGN_INT, &names, &nulls,
					  count);
	if (*count == 0)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("fmsort_compare() needs at least one mode")));
	contenders = palloc(*count * sizeof(Contender *));
	for (i = 0; i < *count; i++)
	{
		if (nulls[i])
			ereport(ERROR,
					(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
					 errmsg("a mode must not be null")));
		contenders[i] = contender_named(TextDatumGetCString(names[i]));
	}
	return contenders;
}

/* ---- the table ---- */

static int
compare_totals(const void *a, const void *b)
{
	double		a_us = ((const Times *) a)->total_us;
	double		b_us = ((const Times *) b)->total_us;

	return a_us < b_us ? -1 : a_us > b_us;
}

/*
 * The times of the run with the median total; where two are in the middle, the
 * mean of both.  Sorts the times.
 */
static Times
middle_run(Times *times, int n)
{
	const Times *low = &times[(n - 1) / 2];
	const Times *high = &times[n / 2];
	Times		middle;

	qsort(times, n, sizeof(Times), compare_totals);
	middle.total_us = (low->total_us + high->total_us) / 2;
	middle.formation_us = (low->formation_us + high->formation_us) / 2;
	middle.merge_us = (low->merge_us + high->merge_us) / 2;
	middle.blocked_us = (low->blocked_us + high->blocked_us) / 2;
	return middle;
}

static Datum
rounded(double value, double unit, double precision)
{
	return Float8GetDatum(rint(value / unit * precision) / precision);
}

/*
 * Adds a row: the contender's times and what its last run did.  A column that
 * is named like a counter shows that counter.
 */
static void
add_row(ReturnSetInfo *result, const Contender *contender,
		const Times *times, const Measurement *last, double first_us)
{
	static const char *const of_merges[] = {
		"merge_ms", "blocked_ms", "runs", "merge_passes", "blocks",
		"block_size", "assist_blocks"
	};
	const FmsCounters *counters = &last->counters;
	bool		merged = last->sorted && fms_counters_external(counters);
	uint64		block_bytes = fms_counter(counters, FMS_COUNT_BLOCK_BYTES);
	FmsRow		row = fms_row_begin(result, counters);
	size_t		i;

	fms_row_set(&row, "mode", CStringGetTextDatum(contender->name));
	fms_row_set(&row, "total_ms", rounded(times->total_us, 1000, 10));
	fms_row_set(&row, "run_formation_ms",
				rounded(times->formation_us, 1000, 10));
	if (!last->sorted)
		fms_row_set_null(&row, "run_formation_ms");
	fms_row_set(&row, "merge_ms", rounded(times->merge_us, 1000, 10));
	fms_row_set(&row, "blocked_ms", rounded(times->blocked_us, 1000, 10));
	for (i = 0; !merged && i < lengthof(of_merges); i++)
		fms_row_set_null(&row, of_merges[i]);
	/* the modes' common one; the others use work_mem as they like */
	if (merged && contender->merge)
		fms_row_set(&row, "input_buffer_kb",
					Int64GetDatum(block_bytes * contender->merge->blocks(
						fms_counter(counters, FMS_COUNT_RUNS),
						fms_counter(counters, FMS_COUNT_ASSIST_BLOCKS)) /
								  1024));
	fms_row_set(&row, "mb_read",
				rounded((double) last->read_blocks * BLCKSZ, 1048576, 10));
	fms_row_set(&row, "mb_written",
				rounded((double) last->written_blocks * BLCKSZ, 1048576,
						10));
	fms_row_set(&row, "speedup", rounded(first_us, times->total_us, 100));
	fms_row_end(&row);
}

Datum
fmsort_compare(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *result = (ReturnSetInfo *) fcinfo->resultinfo;
	Terms		terms = {.query = text_to_cstring(PG_GETARG_TEXT_PP(0))};
	int			ncontenders;
	const Contender **contenders = read_modes(PG_GETARG_ARRAYTYPE_P(1),
											  &ncontenders);
	int			repeat = PG_GETARG_INT32(2);
	Measurement *last;			/* [ncontenders] */
	Times	   *times;			/* [ncontenders][repeat] */
	double		first_us = 0;
	int			round;
	int			i;

	if (repeat < 1 || repeat > REPEAT_MAX)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("repeat must be from 1 to %d, not %d", REPEAT_MAX,
						repeat)));
	InitMaterializedSRF(fcinfo, 0);
	last = palloc0(ncontenders * sizeof(Measurement));
	times = palloc((Size) ncontenders * repeat * sizeof(Times));
	agree_on_terms(&terms);
	for (round = 0; round < repeat; round++)
	{
		/* each round begins with another one: none always follows the same */
		for (i = 0; i < ncontenders; i++)
		{
			int			which = (round + i) % ncontenders;

			measure(contenders[which], &terms, &last[which]);
			times[which * repeat + round] = last[which].times;
		}
	}
	for (i = 0; i < ncontenders; i++)
	{
		Times		middle = middle_run(&times[i * repeat], repeat);

		if (i == 0)
			first_us = middle.total_us;
		add_row(result, contenders[i], &middle, &last[i], first_us);
	}
	return (Datum) 0;
}
