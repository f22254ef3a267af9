/*-------------------------------------------------------------------------
 *
 * calibrate.c
 *	  fmsort_calibrate(): measures the device under a tablespace.
 *
 * A measurement is a point of the grid pattern x block size x depth, some 390
 * in all.  Each point gets an equal share of the time that is left.  Patterns
 * take turns, so that a slow moment affects each of them a little.
 *
 *	  the file	what lasts	important points		other points
 *	  |---------|-----------|-----------------------|--------------|
 *	  a third	a tenth		4, 16, 64, 256 kB, 1 MB at depths 1, 8, 32
 *
 * On ERROR the probe cleans up.
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

#include "base/clock.h"
#include "base/sql_version.h"
#include "device/probe.h"
#include "device/profile.h"
#include "executor/settings.h"

#define RESULT_COLUMNS	5

/* Seconds; less is not enough for the important points. */
#define SECONDS_MIN		1.0
#define SECONDS_MAX		3600.0
/* MB of 2^20 bytes. */
#define FILE_MIN_MB		16
#define FILE_MAX_MB		(1024 * 1024)

/* Fractions of the time: for the file, for each of two lasting rates. */
#define FILL_FRACTION		0.33
#define LASTING_FRACTION	0.05
/* The least time of a point. */
#define POINT_MIN_SECONDS	0.002

/* A point is omitted if it would take this multiple of its share. */
#define PATIENCE		4.0

/* NOTICEs of progress in all. */
#define NOTICES			5

/* Bytes of a write that appends to the file; runs are written similarly. */
#define APPEND_BYTES	262144
#define APPEND_DEPTH	4

/* Patterns of the grid: SR, RR, SW, RW. */
#define GRID_PATTERNS	FMS_PATTERN_RR_LASTING
/* The grid, two lasting rates and the file. */
#define POINTS_MAX \
	(GRID_PATTERNS * FMS_DEVICE_BLOCKS * FMS_DEVICE_DEPTHS + 3)

typedef struct Calibration
{
	/* arguments */
	Oid			tablespace;
	double		seconds;
	uint64		file_bytes;
	bool		keep;
	bool		direct;
	bool		patterns[FMS_PATTERNS];
	bool		blocks[FMS_DEVICE_BLOCKS];
	bool		depths[FMS_DEVICE_DEPTHS];

	FmsProbe   *probe;
	instr_time	start;
	int			notices;		/* given so far */
	int			npoints;
	FmsProbePoint points[POINTS_MAX];	/* rate 0: not measured */
} Calibration;

PG_FUNCTION_INFO_V1(fmsort_calibrate);

/* ---- arguments ---- */

/*
 * Marks the elements of an array argument, by their indexes.  True: null, and
 * all n are chosen.  index_of is for integers; patterns have none.
 */
static bool
choose(FunctionCallInfo fcinfo, int argument, const char *name,
	   int (*index_of) (int64), bool *chosen, int n)
{
	Datum	   *values;
	bool	   *nulls;
	int			nvalues;

	memset(chosen, PG_ARGISNULL(argument), n * sizeof(bool));
	if (PG_ARGISNULL(argument))
		return true;
	if (index_of == NULL)
		deconstruct_array(PG_GETARG_ARRAYTYPE_P(argument), TEXTOID, -1, false,
						  TYPALIGN_INT, &values, &nulls, &nvalues);
	else
		deconstruct_array(PG_GETARG_ARRAYTYPE_P(argument), INT4OID,
						  sizeof(int32), true, TYPALIGN_INT, &values, &nulls,
						  &nvalues);
	for (int i = 0; i < nvalues; i++)
	{
		int			index = nulls[i] ? -1 :
			index_of ? index_of(DatumGetInt32(values[i])) :
			fms_device_pattern_index(TextDatumGetCString(values[i]));

		if (index < 0)
			ereport(ERROR,
					(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
					 errmsg("invalid value in argument \"%s\"", name),
					 errhint("Patterns are SR, RR, SW, RW, \"RR lasting\" and append, block sizes powers of two from 512 to 4194304, queue depths from 1 to 64.")));
		chosen[index] = true;
	}
	return false;
}

/* The arguments in the order of the SQL definition. */
static void
read_arguments(FunctionCallInfo fcinfo, Calibration *calibration)
{
	int			file_mb = PG_GETARG_INT32(2);
	bool		complete;

	if (PG_ARGISNULL(1) || PG_ARGISNULL(2) || PG_ARGISNULL(3) ||
		PG_ARGISNULL(4))
		ereport(ERROR,
				(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
				 errmsg("\"seconds\", \"size_mb\", \"keep\" and \"direct_io\" must not be null")));
	calibration->seconds = PG_GETARG_FLOAT8(1);
	if (!(calibration->seconds >= SECONDS_MIN &&
		  calibration->seconds <= SECONDS_MAX))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("\"seconds\" is out of range"),
				 errhint("The least is %g, the most %g.", SECONDS_MIN,
						 SECONDS_MAX)));
	if (file_mb < FILE_MIN_MB || file_mb > FILE_MAX_MB)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("\"size_mb\" must be between %d and %d", FILE_MIN_MB,
						FILE_MAX_MB)));
	calibration->file_bytes = (uint64) file_mb * 1024 * 1024;
	calibration->tablespace =
		fms_profile_tablespace(PG_ARGISNULL(0) ? NULL :
							   NameStr(*PG_GETARG_NAME(0)));
	calibration->direct = PG_GETARG_BOOL(4);
	complete = choose(fcinfo, 5, "patterns", NULL, calibration->patterns,
					  FMS_PATTERNS);
	complete &= choose(fcinfo, 6, "block_sizes", fms_device_block_index,
					   calibration->blocks, FMS_DEVICE_BLOCKS);
	complete &= choose(fcinfo, 7, "queue_depths", fms_device_depth_index,
					   calibration->depths, FMS_DEVICE_DEPTHS);
	calibration->keep = PG_GETARG_BOOL(3) && complete && calibration->direct;
	if (calibration->keep)
	{
		PreventCommandIfReadOnly("fmsort_calibrate() with keep => true");
		fms_profile_require_tables();
	}
}

/* ---- measuring ---- */

static void
add_point(Calibration *calibration, FmsPattern pattern, uint32 block_bytes,
		  uint32 depth)
{
	FmsProbePoint *point = &calibration->points[calibration->npoints];

	*point = (FmsProbePoint) {pattern, block_bytes, depth, 0};
	/* the I/O method may allow one request at a time only */
	if (pattern == FMS_PATTERN_RR_LASTING &&
		!fms_probe_can(calibration->probe, point))
		point->depth = 1;
	if (calibration->patterns[pattern] &&
		fms_probe_can(calibration->probe, point))
		calibration->npoints++;
}

/* Adds points in the order of measuring, important ones first. */
static void
add_points(Calibration *calibration)
{
	add_point(calibration, FMS_PATTERN_RR_LASTING, 4096, 64);
	add_point(calibration, FMS_PATTERN_RR_LASTING, 1048576, 8);
	for (int i = 0; i < 2 * FMS_DEVICE_BLOCKS * FMS_DEVICE_DEPTHS; i++)
	{
		bool		first_turn = i < FMS_DEVICE_BLOCKS * FMS_DEVICE_DEPTHS;
		int			block = i / FMS_DEVICE_DEPTHS % FMS_DEVICE_BLOCKS;
		int			depth = i % FMS_DEVICE_DEPTHS;
		uint32		block_bytes = FMS_DEVICE_BLOCK_BYTES(block);
		bool		important = block_bytes >= 4096 &&
			block_bytes <= 1048576 && block % 2 == 1 &&
			(depth == 0 || depth == 3 || depth == 5);

		if (important != first_turn || !calibration->blocks[block] ||
			!calibration->depths[depth])
			continue;
		for (int pattern = 0; pattern < GRID_PATTERNS; pattern++)
			add_point(calibration, pattern, block_bytes,
					  FMS_DEVICE_DEPTH(depth));
	}
}

static void
notify_progress(Calibration *calibration, int turn, double spent)
{
	double		interval = calibration->seconds / NOTICES;

	if (spent < (calibration->notices + 1) * interval)
		return;
	calibration->notices = spent / interval;
	ereport(NOTICE,
			(errmsg("fmsort_calibrate: %d of %d measurements, %.1f of %.0f s",
					turn, calibration->npoints, spent,
					calibration->seconds)));
}

/* Measures the points from `first` on, at least one, while time is left. */
static void
measure_points(Calibration *calibration, int first, double written_mb)
{
	double		last_mb[FMS_PATTERNS] = {0};	/* rate of the last point */

	last_mb[FMS_PATTERN_RR_LASTING] = written_mb;
	for (int i = first; i < calibration->npoints; i++)
	{
		FmsProbePoint *point = &calibration->points[i];
		double		spent = fms_clock_since_us(calibration->start) / 1e6;
		double		left = calibration->seconds - spent;
		double		seconds = Max(left / (calibration->npoints - i),
								  POINT_MIN_SECONDS);

		if (point->pattern == FMS_PATTERN_RR_LASTING)
			seconds = calibration->seconds * LASTING_FRACTION;
		if (left <= 0 && i > first)
			break;
		notify_progress(calibration, i, spent);
		if (last_mb[point->pattern] > 0 &&
			(double) point->block_bytes * point->depth >
			PATIENCE * seconds * last_mb[point->pattern] * 1e6)
			continue;
		fms_probe_measure(calibration->probe, seconds, 0, point);
		last_mb[point->pattern] = point->mb_per_s;
	}
}

static void
measure(Calibration *calibration, FmsProfileFacts *facts)
{
	FmsOptions	options;
	FmsProbePoint written = {FMS_PATTERN_APPEND, APPEND_BYTES, APPEND_DEPTH,
	0};
	int			first;

	fms_settings_snapshot(&options, 0);
	calibration->start = fms_clock_now();
	calibration->probe = fms_probe_open(calibration->tablespace,
										options.io_method,
										calibration->direct);
	fms_probe_measure(calibration->probe,
					  calibration->seconds * FILL_FRACTION,
					  calibration->file_bytes, &written);
	if (calibration->patterns[FMS_PATTERN_APPEND])
		calibration->points[calibration->npoints++] = written;
	first = calibration->npoints;
	add_points(calibration);
	measure_points(calibration, first, written.mb_per_s);
	facts->tablespace = calibration->tablespace;
	facts->file_bytes = fms_probe_file_bytes(calibration->probe);
	facts->uses_uring = fms_probe_uses_uring(calibration->probe);
	facts->seconds = fms_clock_since_us(calibration->start) / 1e6;
	fms_probe_close(calibration->probe);
}

/* ---- results ---- */

static int
compare_points(const void *a, const void *b)
{
	const FmsProbePoint *x = a;
	const FmsProbePoint *y = b;

	return x->pattern != y->pattern ? (int) x->pattern - (int) y->pattern :
		x->block_bytes != y->block_bytes ?
		(int) x->block_bytes - (int) y->block_bytes :
		(int) x->depth - (int) y->depth;
}

/* Moves the points that were measured to the front, sorted; their number. */
static int
sort_points(Calibration *calibration)
{
	int			n = 0;

	for (int i = 0; i < calibration->npoints; i++)
	{
		if (calibration->points[i].mb_per_s > 0)
			calibration->points[n++] = calibration->points[i];
	}
	qsort(calibration->points, n, sizeof(FmsProbePoint), compare_points);
	return n;
}

static void
return_row(ReturnSetInfo *result, const FmsProbePoint *point)
{
	Datum		values[RESULT_COLUMNS] = {
		CStringGetTextDatum(fms_pattern_names[point->pattern]),
		Int32GetDatum(point->block_bytes),
		Int32GetDatum(point->depth),
		Float8GetDatum(point->mb_per_s),
		Float8GetDatum(point->mb_per_s * 1e6 / point->block_bytes)
	};
	bool		nulls[RESULT_COLUMNS] = {false};

	tuplestore_putvalues(result->setResult, result->setDesc, values, nulls);
}

static void
notify_end(const Calibration *calibration, int nmeasured, uint64 file_bytes,
		   bool kept)
{
	const char *name = get_tablespace_name(calibration->tablespace);
	int			missing = calibration->npoints - nmeasured;

	if (file_bytes < calibration->file_bytes)
		ereport(NOTICE,
				(errmsg("fmsort_calibrate: the file has %llu MB and not %llu, because writing it took %.1f s",
						(unsigned long long) (file_bytes >> 20),
						(unsigned long long) (calibration->file_bytes >> 20),
						calibration->seconds * FILL_FRACTION)));
	if (missing > 0)
		ereport(NOTICE,
				(errmsg("fmsort_calibrate: %d of %d measurements were left out, as there was no time for them",
						missing, calibration->npoints),
				 errhint("Give it more \"seconds\".")));
	if (calibration->keep && !kept)
		ereport(WARNING,
				(errmsg("fmsort_calibrate: the profile of tablespace \"%s\" stays as it was",
						name),
				 errdetail("There was time for %d measurements, and the profile has more of them.",
						   nmeasured),
				 errhint("Give it more \"seconds\".")));
	else if (!kept)
		ereport(NOTICE,
				(errmsg("fmsort_calibrate: this measurement is not kept as the profile of tablespace \"%s\"",
						name),
				 errdetail("Kept is a complete one with direct I/O, where \"keep\" is true.")));
}

Datum
fmsort_calibrate(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *result = (ReturnSetInfo *) fcinfo->resultinfo;
	Calibration *calibration = palloc0(sizeof(Calibration));
	FmsProfileFacts facts = {0};
	bool		kept;
	int			n;

	InitMaterializedSRF(fcinfo, 0);
	fms_require_columns(result->setDesc, RESULT_COLUMNS);
	read_arguments(fcinfo, calibration);
	measure(calibration, &facts);
	n = sort_points(calibration);
	facts.complete = n == calibration->npoints;
	kept = calibration->keep &&
		fms_profile_store(&facts, calibration->points, n);
	for (int i = 0; i < n; i++)
		return_row(result, &calibration->points[i]);
	notify_end(calibration, n, facts.file_bytes, kept);
	return (Datum) 0;
}
