/*-------------------------------------------------------------------------
 *
 * calibrate.c
 *	  fmsort_calibrate(): measures the device under a tablespace.
 *
 * A measurement is a point of the grid pattern x block size x depth, some 450
 * in all, and there are 30 seconds: each gets an equal part of the time that
 * is left.  probe.c does one of them, here is the order and what comes of it.
 *
 *	  tuples  the file	merges'  points that  the others  holes   tuples
 *						reads	  matter
 *	  |-----|-----------|--------|------------|-----------|-------|-----|
 *	  a		 a third	 a fifth  4, 16, 64,   until time  a tenth once
 *	  second at most			  256 kB, 1 MB is up	   at most more
 *								  at 1, 8, 32
 *
 * Of two times for tuples, the mean counts; where a slow device made the first
 * one long, there is no second.
 *
 * Neighbouring patterns take turns at each point, so that a slow minute of the
 * machine spoils a bit of each and not all of one.  A point with so much
 * under way that a slow device would take many times its share is left out,
 * and when time is up, so are those that have not had their turn: the user is
 * told how many.
 *
 * Space: one temporary file, limited by temp_file_limit and by the device;
 * both raise the server's own errors.
 *
 * A full direct measurement is kept as the tablespace's profile (profile.c),
 * unless the user does not want that.
 *
 * Ownership: rows are in the caller's memory; probe and file clean up after
 * themselves on ERROR (probe.c).
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "commands/tablespace.h"
#include "fmgr.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/tuplestore.h"

#include "clock.h"
#include "place.h"
#include "probe.h"
#include "profile.h"
#include "settings.h"
#include "tape.h"
#include "tuple_cost.h"

#define RESULT_COLUMNS	9

#define SECONDS_MAX		3600.0
#define FILE_MAX_MB		(1024 * 1024)

/* The file may take this part of the time, and the rest is for measuring. */
#define FILL_FRACTION	0.33

/* Nor may giving it back, which some devices take their time for. */
#define GIVE_BACK_FRACTION	0.1

/* What is no point of the grid is measured with so much, each. */
#define LONGER_FRACTION	0.05

/* If pricing tuples took no more than this, it is done again at the end. */
#define TUPLES_FRACTION		0.3

/* No point gets less than that. */
#define POINT_MIN_SECONDS	0.002

/*
 * A point is left out if the requests under way would take so many times its
 * share: it waits for all of them, and for some more.
 */
#define PATIENCE		4.0

/* A NOTICE says how far it is after each such part of the time. */
#define NOTICES			5

/* What the user asked for. */
typedef struct Wish
{
	Oid			tablespace;
	double		seconds;
	uint64		file_bytes;
	bool		keep;
	bool		direct;
	bool		complete;		/* no pattern, size or depth is left out */
	bool		patterns[FMS_PROBE_PATTERNS];
	bool		blocks[FMS_DEVICE_BLOCKS];
	bool		depths[FMS_DEVICE_DEPTHS];
} Wish;

typedef struct Point
{
	FmsProbePattern pattern;
	int			block;			/* indexes, see device.h */
	int			depth;
	int			rank;			/* lower ones first */
	bool		measured;
	FmsProbeResult result;
} Point;

/*
 * What lasts: at the most requests and at the most bytes a second that a sort
 * might want.  And what a merge does with reads: the smallest blocks that are
 * likely to be joined, and enough at once of which the processor sees all.
 */
static const struct
{
	FmsProbePattern pattern;
	uint32		block_bytes;
	uint32		depth;
}			longer[] = {
	{FMS_PROBE_RR_LASTING, 4096, 64},
	{FMS_PROBE_RR_LASTING, 1048576, 8},
	{FMS_PROBE_RR_JOINED, FMS_DEVICE_JOINED_BLOCK_BYTES,
	FMS_DEVICE_JOINED_DEPTH},
	{FMS_PROBE_RR_USED, FMS_DEVICE_USED_BLOCK_BYTES, FMS_DEVICE_USED_DEPTH}
};

/* These, writing the file, and giving it back. */
#define SINGLES_MAX		((int) lengthof(longer) + 2)

typedef struct Calibration
{
	Wish		wish;
	FmsProbe   *probe;
	FmsProfileRow singles[SINGLES_MAX]; /* measurements that are no points */
	int			nsingles;
	Point	   *points;			/* in the order in which they are shown */
	Point	  **turns;			/* and in which they are measured */
	int			npoints;
	double		slowest_mb[FMS_PROBE_PATTERNS]; /* last rate; 0: none yet */
	instr_time	start;
	int			notices;		/* given so far */
} Calibration;

PG_FUNCTION_INFO_V1(fmsort_calibrate);

/* ---- what the user asked for ---- */

/* Marks the chosen of n; true: all, because none was named. */
static bool
choose_numbers(FunctionCallInfo fcinfo, int argument, const char *name,
			   int (*index_of) (int64), bool *chosen, int n)
{
	ArrayType  *array;
	Datum	   *values;
	bool	   *nulls;
	int			nvalues;
	int			i;

	if (PG_ARGISNULL(argument))
	{
		memset(chosen, true, n * sizeof(bool));
		return true;
	}
	array = PG_GETARG_ARRAYTYPE_P(argument);
	deconstruct_array(array, INT4OID, sizeof(int32), true, TYPALIGN_INT,
					  &values, &nulls, &nvalues);
	for (i = 0; i < nvalues; i++)
	{
		int			index = nulls[i] ? -1 : index_of(DatumGetInt32(values[i]));

		if (index < 0)
			ereport(ERROR,
					(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
					 errmsg("invalid value in argument \"%s\"", name),
					 errhint("Block sizes are powers of two from 512 to 4194304, queue depths from 1 to 64.")));
		chosen[index] = true;
	}
	return false;
}

static int
pattern_index(const char *name)
{
	int			i;

	for (i = 0; i < FMS_PROBE_PATTERNS; i++)
	{
		if (pg_strcasecmp(name, fms_probe_name(i)) == 0)
			return i;
	}
	return -1;
}

static bool
choose_patterns(FunctionCallInfo fcinfo, int argument, bool *chosen)
{
	Datum	   *values;
	bool	   *nulls;
	int			nvalues;
	int			i;

	if (PG_ARGISNULL(argument))
	{
		memset(chosen, true, FMS_PROBE_PATTERNS * sizeof(bool));
		return true;
	}
	deconstruct_array(PG_GETARG_ARRAYTYPE_P(argument), TEXTOID, -1, false,
					  TYPALIGN_INT, &values, &nulls, &nvalues);
	for (i = 0; i < nvalues; i++)
	{
		char	   *name = nulls[i] ? "" : TextDatumGetCString(values[i]);
		int			index = pattern_index(name);

		if (index < 0)
			ereport(ERROR,
					(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
					 errmsg("invalid pattern \"%s\"", name),
					 errhint("Patterns are SR, RR, SW, RW, \"RR misaligned\", \"RW misaligned\", \"SW after RW\", \"RR with SW\", \"RR lasting\", \"RR joined\", \"RR used\", append and \"give back\".")));
		chosen[index] = true;
	}
	return false;
}

static void
check_limits(double seconds, int64 file_mb)
{
	int			least_mb = FMS_PROBE_FILE_MIN_BYTES / (1024 * 1024);

	if (!(seconds > 0 && seconds <= SECONDS_MAX))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("\"seconds\" must be above 0 and not above %g",
						SECONDS_MAX)));
	if (file_mb < least_mb || file_mb > FILE_MAX_MB)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("\"size_mb\" must be between %d and %d", least_mb,
						FILE_MAX_MB)));
}

/* The arguments in order; see the SQL definition. */
static void
read_wish(FunctionCallInfo fcinfo, Wish *wish)
{
	int			i;

	for (i = 1; i <= 4; i++)
	{
		if (PG_ARGISNULL(i))
			ereport(ERROR,
					(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
					 errmsg("\"seconds\", \"size_mb\", \"keep\" and \"direct_io\" must not be null")));
	}
	memset(wish, 0, sizeof(*wish));
	check_limits(PG_GETARG_FLOAT8(1), PG_GETARG_INT32(2));
	wish->tablespace = fms_profile_tablespace(PG_ARGISNULL(0) ? NULL :
											  NameStr(*PG_GETARG_NAME(0)));
	wish->seconds = PG_GETARG_FLOAT8(1);
	wish->file_bytes = (uint64) PG_GETARG_INT32(2) * 1024 * 1024;
	wish->keep = PG_GETARG_BOOL(3);
	wish->direct = PG_GETARG_BOOL(4);
	/* all three, whatever the first one says */
	wish->complete = choose_patterns(fcinfo, 5, wish->patterns);
	wish->complete &= choose_numbers(fcinfo, 6, "block_sizes",
									 fms_device_block_index, wish->blocks,
									 FMS_DEVICE_BLOCKS);
	wish->complete &= choose_numbers(fcinfo, 7, "queue_depths",
									 fms_device_depth_index, wish->depths,
									 FMS_DEVICE_DEPTHS);
	wish->keep = wish->keep && wish->complete && wish->direct;
	if (wish->keep)
		PreventCommandIfReadOnly("fmsort_calibrate() with keep => true");
}

/* ---- which points, and in which order ---- */

/*
 * 1 for the points that matter most, and 0 for one that is measured however
 * long the file took: no other says whether both ways go at once.
 */
static int
rank_of(FmsProbePattern pattern, uint32 block_bytes, uint32 depth)
{
	bool		usual_block = block_bytes == 4096 || block_bytes == 16384 ||
		block_bytes == 65536 || block_bytes == 262144;
	bool		usual_depth = depth == 1 || depth == 8 || depth == 32;

	if (pattern == FMS_PROBE_RR_WITH_SW && block_bytes == 262144 && depth == 8)
		return 0;
	if (usual_block && usual_depth)
		return 1;
	/* the special patterns are there for comparison: no need for all points */
	if (pattern > FMS_PROBE_RW)
		return -1;
	return block_bytes == 1048576 && usual_depth ? 1 : 2;
}

static int
compare_turns(const void *a, const void *b)
{
	const Point *x = *(Point *const *) a;
	const Point *y = *(Point *const *) b;

	if (x->rank != y->rank)
		return x->rank - y->rank;
	if (x->block != y->block)
		return x->block - y->block;
	if (x->depth != y->depth)
		return x->depth - y->depth;
	return (int) x->pattern - (int) y->pattern;
}

static void
add_point(Calibration *calibration, FmsProbePattern pattern, int block,
		  int depth)
{
	uint32		block_bytes = FMS_DEVICE_BLOCK_BYTES(block);
	int			rank = rank_of(pattern, block_bytes, FMS_DEVICE_DEPTH(depth));
	Point	   *point;

	/* what is asked for by name is wanted */
	if (rank < 0 && calibration->wish.complete)
		return;
	if (!fms_probe_can(calibration->probe, pattern, block_bytes,
					   FMS_DEVICE_DEPTH(depth)))
		return;
	point = &calibration->points[calibration->npoints++];
	point->pattern = pattern;
	point->block = block;
	point->depth = depth;
	point->rank = rank;
	point->measured = false;
}

static void
make_points(Calibration *calibration)
{
	const Wish *wish = &calibration->wish;
	int			pattern;
	int			block;
	int			depth;
	int			i;

	calibration->points = palloc(FMS_PROBE_RR_LASTING * FMS_DEVICE_BLOCKS *
								 FMS_DEVICE_DEPTHS * sizeof(Point));
	for (pattern = 0; pattern < FMS_PROBE_RR_LASTING; pattern++)
	{
		for (block = 0; block < FMS_DEVICE_BLOCKS; block++)
		{
			for (depth = 0; depth < FMS_DEVICE_DEPTHS; depth++)
			{
				if (wish->patterns[pattern] && wish->blocks[block] &&
					wish->depths[depth])
					add_point(calibration, pattern, block, depth);
			}
		}
	}
	calibration->turns = palloc((calibration->npoints + 1) * sizeof(Point *));
	for (i = 0; i < calibration->npoints; i++)
		calibration->turns[i] = &calibration->points[i];
	qsort(calibration->turns, calibration->npoints, sizeof(Point *),
		  compare_turns);
}

/* ---- measuring ---- */

static void
tell_progress(Calibration *calibration, int turn)
{
	double		spent = fms_clock_since_us(calibration->start) / 1e6;
	double		interval = calibration->wish.seconds / NOTICES;

	if (spent < (calibration->notices + 1) * interval)
		return;
	calibration->notices = spent / interval;
	ereport(NOTICE,
			(errmsg("fmsort_calibrate: %d of %d measurements, %.0f of %.0f s",
					turn, calibration->npoints, spent,
					calibration->wish.seconds)));
}

/* Would that take much longer than its share, at so many MB/s (0: unknown)? */
static bool
is_too_slow(const FmsProbeSpec *spec, double mb)
{
	return mb > 0 && (double) spec->block_bytes * spec->depth / (mb * 1e6) >
		PATIENCE * spec->seconds;
}

static void
add_single(Calibration *calibration, FmsProbePattern pattern,
		   uint32 block_bytes, uint32 depth, const FmsProbeResult *result)
{
	FmsProfileRow *row = &calibration->singles[calibration->nsingles++];

	Assert(calibration->nsingles <= SINGLES_MAX);
	row->pattern = pattern;
	row->block_bytes = block_bytes;
	row->depth = depth;
	row->result = *result;
}

/* Writes the file.  Returns how fast that was, MB/s. */
static double
fill(Calibration *calibration)
{
	const Wish *wish = &calibration->wish;
	FmsProbeResult result;

	fms_probe_fill(calibration->probe, wish->file_bytes,
				   wish->seconds * FILL_FRACTION, &result);
	if (wish->patterns[FMS_PROBE_APPEND])
		add_single(calibration, FMS_PROBE_APPEND,
				   FMS_DEVICE_APPEND_BLOCK_BYTES, FMS_DEVICE_APPEND_DEPTH,
				   &result);
	return result.mb_per_s;
}

static void
give_back(Calibration *calibration)
{
	const Wish *wish = &calibration->wish;
	FmsProbeResult result;

	if (wish->patterns[FMS_PROBE_GIVE_BACK] &&
		fms_probe_give_back(calibration->probe,
							wish->seconds * GIVE_BACK_FRACTION, &result))
		add_single(calibration, FMS_PROBE_GIVE_BACK, FMS_PROBE_HOLE_BYTES,
				   1, &result);
}

static void
measure_longer(Calibration *calibration, double mb)
{
	const Wish *wish = &calibration->wish;
	int			i;

	for (i = 0; i < (int) lengthof(longer); i++)
	{
		FmsProbeSpec spec = {
			.pattern = longer[i].pattern,
			.block_bytes = longer[i].block_bytes,
			.depth = longer[i].depth,
			.seconds = wish->seconds * LONGER_FRACTION
		};
		FmsProbeResult result;

		if (!wish->patterns[spec.pattern] || is_too_slow(&spec, mb))
			continue;
		/* one at a time may be all that it can do */
		if (!fms_probe_can(calibration->probe, spec.pattern, spec.block_bytes,
						   spec.depth))
			spec.depth = 1;
		fms_probe_measure(calibration->probe, &spec, &result);
		add_single(calibration, spec.pattern, spec.block_bytes, spec.depth,
				   &result);
	}
}

static void
measure_points(Calibration *calibration)
{
	int			i;

	for (i = 0; i < calibration->npoints; i++)
	{
		Point	   *point = calibration->turns[i];
		double		left = calibration->wish.seconds -
			fms_clock_since_us(calibration->start) / 1e6;
		double		share = left / (calibration->npoints - i);
		FmsProbeSpec spec;

		/* one at least, however long the file took */
		if (left <= 0 && i > 0)
			break;
		tell_progress(calibration, i);
		spec.pattern = point->pattern;
		spec.block_bytes = FMS_DEVICE_BLOCK_BYTES(point->block);
		spec.depth = FMS_DEVICE_DEPTH(point->depth);
		spec.seconds = Max(share, POINT_MIN_SECONDS);
		/* going by the one before it */
		if (is_too_slow(&spec, calibration->slowest_mb[point->pattern]))
			continue;
		fms_probe_measure(calibration->probe, &spec, &point->result);
		calibration->slowest_mb[point->pattern] = point->result.mb_per_s;
		point->measured = true;
	}
}

/* ---- what comes of it ---- */

/* Of the points, so many rows; of the others, nsingles behind them. */
static int
collect_rows(const Calibration *calibration, FmsProfileRow *rows)
{
	int			n = 0;
	int			i;

	for (i = 0; i < calibration->npoints; i++)
	{
		const Point *point = &calibration->points[i];

		if (!point->measured)
			continue;
		rows[n].pattern = point->pattern;
		rows[n].block_bytes = FMS_DEVICE_BLOCK_BYTES(point->block);
		rows[n].depth = FMS_DEVICE_DEPTH(point->depth);
		rows[n].result = point->result;
		n++;
	}
	memcpy(&rows[n], calibration->singles,
		   calibration->nsingles * sizeof(FmsProfileRow));
	return n;
}

static void
return_row(ReturnSetInfo *result, const FmsProfileRow *row)
{
	Datum		values[RESULT_COLUMNS];
	bool		nulls[RESULT_COLUMNS] = {false};
	int			i = 0;

	values[i++] = CStringGetTextDatum(fms_probe_name(row->pattern));
	values[i++] = Int32GetDatum(row->block_bytes);
	values[i++] = Int32GetDatum(row->depth);
	values[i++] = Float8GetDatum(row->result.mb_per_s);
	values[i++] = Float8GetDatum(row->result.iops);
	values[i++] = Float8GetDatum(row->result.p50_us);
	values[i++] = Float8GetDatum(row->result.p95_us);
	values[i++] = Float8GetDatum(row->result.p99_us);
	values[i++] = Float8GetDatum(row->result.cpu_us);
	Assert(i == RESULT_COLUMNS);
	tuplestore_putvalues(result->setResult, result->setDesc, values, nulls);
}

static void
tell_end(const Calibration *calibration, int nmeasured, uint64 file_bytes)
{
	const Wish *wish = &calibration->wish;
	int			missing = calibration->npoints - nmeasured;

	if (file_bytes < wish->file_bytes)
		ereport(NOTICE,
				(errmsg("fmsort_calibrate: the file has %llu MB and not %llu, because writing it took %.0f s",
						(unsigned long long) (file_bytes >> 20),
						(unsigned long long) (wish->file_bytes >> 20),
						wish->seconds * FILL_FRACTION)));
	if (missing > 0)
		ereport(NOTICE,
				(errmsg("fmsort_calibrate: %d of %d measurements were left out, as there was no time for them",
						missing, calibration->npoints),
				 errhint("Give it more \"seconds\".")));
	if (!wish->keep)
		ereport(NOTICE,
				(errmsg("fmsort_calibrate: this measurement is not kept as the profile of tablespace \"%s\"",
						get_tablespace_name(wish->tablespace)),
				 errdetail("Kept is a complete one with direct I/O, where \"keep\" is true.")));
}

/* Only the library's own I/O setting applies here: what a sort would use. */
static FmsIoChoice
io_method(void)
{
	FmsOptions	options;

	fms_settings_snapshot(&options, 0);
	return options.io_method;
}

/* Prices tuples, in the tablespace that is measured. */
static void
measure_tuples(void *arg)
{
	fms_tuple_cost_measure(io_method(), (FmsTupleCost *) arg);
}

Datum
fmsort_calibrate(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *result = (ReturnSetInfo *) fcinfo->resultinfo;
	Calibration calibration = {0};
	FmsProfileFacts facts = {0};
	FmsProfileRow *rows;
	double		tuples_us = 0;
	double		written_mb;
	int			nmeasured;
	int			nrows;
	int			i;

	InitMaterializedSRF(fcinfo, 0);
	read_wish(fcinfo, &calibration.wish);
	calibration.start = fms_clock_now();
	calibration.probe = fms_probe_open(calibration.wish.tablespace,
									   io_method(), calibration.wish.direct);
	if (calibration.wish.keep)
	{
		fms_place_call(calibration.wish.tablespace, measure_tuples,
					   &facts.cost);
		tuples_us = fms_clock_since_us(calibration.start);
	}
	written_mb = fill(&calibration);
	measure_longer(&calibration, written_mb);
	make_points(&calibration);
	measure_points(&calibration);
	facts.file_bytes = fms_probe_file_bytes(calibration.probe);
	give_back(&calibration);
	facts.tablespace = calibration.wish.tablespace;
	facts.uses_uring = fms_probe_uses_uring(calibration.probe);
	fms_probe_close(calibration.probe);
	if (calibration.wish.keep &&
		tuples_us < calibration.wish.seconds * 1e6 * TUPLES_FRACTION)
	{
		FmsTupleCost later = {0};

		fms_place_call(calibration.wish.tablespace, measure_tuples, &later);
		fms_tuple_cost_mean(&facts.cost, &later);
	}
	facts.seconds = fms_clock_since_us(calibration.start) / 1e6;

	rows = palloc((calibration.npoints + SINGLES_MAX) * sizeof(FmsProfileRow));
	nmeasured = collect_rows(&calibration, rows);
	nrows = nmeasured + calibration.nsingles;
	if (calibration.wish.keep)
		fms_profile_store(get_func_namespace(fcinfo->flinfo->fn_oid), &facts,
						  rows, nrows);
	for (i = 0; i < nrows; i++)
		return_row(result, &rows[i]);
	tell_end(&calibration, nmeasured, facts.file_bytes);
	return (Datum) 0;
}
