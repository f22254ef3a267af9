/*-------------------------------------------------------------------------
 *
 * calibrate.c
 *	  fmsort_calibrate(): measures the device under a tablespace.
 *
 * A measurement is a point of the grid pattern x block size x depth, some 390
 * in all.  Each point gets an equal part of the time that is left:
 *
 *	  the file	what lasts	points that matter most	 the others	 holes
 *	  |---------|-----------|-----------------------|-----------|-------|
 *	  a third	a tenth		4, 16, 64, 256 kB, 1 MB at 1, 8, 32	 a tenth
 *
 * Patterns take turns, so that a slow moment spoils a bit of each.  A point is
 * left out if its requests would take many times its share, and if time is up.
 *
 * A complete direct measurement is kept as the tablespace's profile
 * (profile.c), unless the user does not want that.
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

#include "base/clock.h"
#include "device/probe.h"
#include "device/profile.h"
#include "executor/settings.h"
#include "base/sql_version.h"

#define RESULT_COLUMNS	5

/* Less leaves no time for the points that matter. */
#define SECONDS_MIN		1.0
#define SECONDS_MAX		3600.0
#define FILE_MIN_MB		16
#define FILE_MAX_MB		(1024 * 1024)

/* Parts of the time: for the file, for giving it back, for what lasts. */
#define FILL_FRACTION	0.33
#define GIVE_BACK_FRACTION	0.1
#define LASTING_FRACTION	0.05

/* No point gets less than that. */
#define POINT_MIN_SECONDS	0.002

/* A point is left out if its requests would take so many times its share. */
#define PATIENCE		4.0

/* A NOTICE says how far it is after each such part of the time. */
#define NOTICES			5

/* The grid; what lasts, of small and of large blocks; file, holes. */
#define POINTS_MAX		(4 * FMS_DEVICE_BLOCKS * FMS_DEVICE_DEPTHS + 4)

typedef struct Calibration
{
	/* what the user asked for */
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
	int			npoints;		/* rates of 0: not measured */
	FmsProbePoint points[POINTS_MAX];
} Calibration;

PG_FUNCTION_INFO_V1(fmsort_calibrate);

/* ---- what the user asked for ---- */

static int
index_of_name(Datum value)
{
	char	   *name = TextDatumGetCString(value);

	for (int i = 0; i < FMS_PATTERNS; i++)
	{
		if (pg_strcasecmp(name, fms_pattern_names[i]) == 0)
			return i;
	}
	return -1;
}

static int
index_of_block(Datum value)
{
	return fms_device_block_index(DatumGetInt32(value));
}

static int
index_of_depth(Datum value)
{
	return fms_device_depth_index(DatumGetInt32(value));
}

/* Marks the chosen of n; true: all, because none was named. */
static bool
choose(FunctionCallInfo fcinfo, int argument, const char *name,
	   int (*index_of) (Datum), bool *chosen, int n)
{
	ArrayType  *array;
	Datum	   *values;
	bool	   *nulls;
	int			nvalues;

	memset(chosen, PG_ARGISNULL(argument), n * sizeof(bool));
	if (PG_ARGISNULL(argument))
		return true;
	array = PG_GETARG_ARRAYTYPE_P(argument);
	if (ARR_ELEMTYPE(array) == TEXTOID)
		deconstruct_array(array, TEXTOID, -1, false, TYPALIGN_INT,
						  &values, &nulls, &nvalues);
	else
		deconstruct_array(array, INT4OID, sizeof(int32), true, TYPALIGN_INT,
						  &values, &nulls, &nvalues);
	for (int i = 0; i < nvalues; i++)
	{
		int			index = nulls[i] ? -1 : index_of(values[i]);

		if (index < 0)
			ereport(ERROR,
					(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
					 errmsg("invalid value in argument \"%s\"", name),
					 errhint("Patterns are SR, RR, SW, RW, \"RR lasting\", append and \"give back\", block sizes powers of two from 512 to 4194304, queue depths from 1 to 64.")));
		chosen[index] = true;
	}
	return false;
}

static void
check_limits(double seconds, int file_mb)
{
	if (!(seconds >= SECONDS_MIN && seconds <= SECONDS_MAX))
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
}

/* The arguments in order; see the SQL definition. */
static void
read_arguments(FunctionCallInfo fcinfo, Calibration *calibration)
{
	bool		complete;

	if (PG_ARGISNULL(1) || PG_ARGISNULL(2) || PG_ARGISNULL(3) ||
		PG_ARGISNULL(4))
		ereport(ERROR,
				(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
				 errmsg("\"seconds\", \"size_mb\", \"keep\" and \"direct_io\" must not be null")));
	check_limits(PG_GETARG_FLOAT8(1), PG_GETARG_INT32(2));
	calibration->tablespace =
		fms_profile_tablespace(PG_ARGISNULL(0) ? NULL :
							   NameStr(*PG_GETARG_NAME(0)));
	calibration->seconds = PG_GETARG_FLOAT8(1);
	calibration->file_bytes = (uint64) PG_GETARG_INT32(2) * 1024 * 1024;
	calibration->direct = PG_GETARG_BOOL(4);
	/* all three, whatever the first one says */
	complete = choose(fcinfo, 5, "patterns", index_of_name,
					  calibration->patterns, FMS_PATTERNS);
	complete &= choose(fcinfo, 6, "block_sizes", index_of_block,
					   calibration->blocks, FMS_DEVICE_BLOCKS);
	complete &= choose(fcinfo, 7, "queue_depths", index_of_depth,
					   calibration->depths, FMS_DEVICE_DEPTHS);
	calibration->keep = PG_GETARG_BOOL(3) && complete && calibration->direct;
	if (calibration->keep)
	{
		PreventCommandIfReadOnly("fmsort_calibrate() with keep => true");
		fms_profile_require_tables();
	}
}

/* ---- measuring ---- */

static double
seconds_since_start(const Calibration *calibration)
{
	return fms_clock_since_us(calibration->start) / 1e6;
}

static void
add_point(Calibration *calibration, FmsPattern pattern, uint32 block_bytes,
		  uint32 depth)
{
	FmsProbePoint *point = &calibration->points[calibration->npoints];

	*point = (FmsProbePoint) {pattern, block_bytes, depth, 0};
	/* one at a time may be all that it can do */
	if (pattern == FMS_PATTERN_RR_LASTING &&
		!fms_probe_can(calibration->probe, point))
		point->depth = 1;
	if (calibration->patterns[pattern] &&
		fms_probe_can(calibration->probe, point))
		calibration->npoints++;
}

/* In the order in which they are measured. */
static void
add_points(Calibration *calibration)
{
	add_point(calibration, FMS_PATTERN_RR_LASTING, 4096, 64);
	add_point(calibration, FMS_PATTERN_RR_LASTING, 1048576, 8);
	for (int rank = 0; rank < 2; rank++)
	{
		for (int i = 0; i < FMS_DEVICE_BLOCKS * FMS_DEVICE_DEPTHS * 4; i++)
		{
			int			block = i / 4 / FMS_DEVICE_DEPTHS;
			int			depth = i / 4 % FMS_DEVICE_DEPTHS;
			uint32		block_bytes = FMS_DEVICE_BLOCK_BYTES(block);
			bool		matters = block_bytes >= 4096 &&
				block_bytes <= 1048576 && block % 2 == 1 &&
				(depth == 0 || depth == 3 || depth == 5);

			if (matters == (rank == 0) && calibration->blocks[block] &&
				calibration->depths[depth])
				add_point(calibration, i % 4, block_bytes,
						  FMS_DEVICE_DEPTH(depth));
		}
	}
}

static void
tell_progress(Calibration *calibration, int turn)
{
	double		spent = seconds_since_start(calibration);
	double		interval = calibration->seconds / NOTICES;

	if (spent < (calibration->notices + 1) * interval)
		return;
	calibration->notices = spent / interval;
	ereport(NOTICE,
			(errmsg("fmsort_calibrate: %d of %d measurements, %.1f of %.0f s",
					turn, calibration->npoints, spent,
					calibration->seconds)));
}

/* Measures the points from that one on, as far as time allows. */
static void
measure_points(Calibration *calibration, int first, double written_mb)
{
	double		end = calibration->seconds *
		(calibration->patterns[FMS_PATTERN_GIVE_BACK] ?
		 1 - GIVE_BACK_FRACTION : 1);
	double		last_mb[FMS_PATTERNS] = {0};	/* of that pattern; 0: none */

	last_mb[FMS_PATTERN_RR_LASTING] = written_mb;
	for (int i = first; i < calibration->npoints; i++)
	{
		FmsProbePoint *point = &calibration->points[i];
		double		left = end - seconds_since_start(calibration);
		double		seconds = Max(left / (calibration->npoints - i),
								  POINT_MIN_SECONDS);

		if (point->pattern == FMS_PATTERN_RR_LASTING)
			seconds = calibration->seconds * LASTING_FRACTION;
		/* one at least, however long the file took */
		if (left <= 0 && i > first)
			break;
		tell_progress(calibration, i);
		if ((double) point->block_bytes * point->depth >
			PATIENCE * seconds * last_mb[point->pattern] * 1e6 &&
			last_mb[point->pattern] > 0)
			continue;
		fms_probe_measure(calibration->probe, seconds, point);
		last_mb[point->pattern] = point->mb_per_s;
	}
}

/* Only the library's own I/O setting applies here: what a sort would use. */
static FmsIoChoice
io_method(void)
{
	FmsOptions	options;

	fms_settings_snapshot(&options, 0);
	return options.io_method;
}

/* Fills in facts. */
static void
measure(Calibration *calibration, FmsProfileFacts *facts)
{
	FmsProbePoint written;
	int			first;

	calibration->start = fms_clock_now();
	calibration->probe = fms_probe_open(calibration->tablespace, io_method(),
										calibration->direct);
	fms_probe_fill(calibration->probe, calibration->file_bytes,
				   calibration->seconds * FILL_FRACTION, &written);
	if (calibration->patterns[FMS_PATTERN_APPEND])
		calibration->points[calibration->npoints++] = written;
	first = calibration->npoints;
	add_points(calibration);
	measure_points(calibration, first, written.mb_per_s);
	facts->file_bytes = fms_probe_file_bytes(calibration->probe);
	if (calibration->patterns[FMS_PATTERN_GIVE_BACK] &&
		fms_probe_give_back(calibration->probe,
							calibration->seconds * GIVE_BACK_FRACTION,
							&calibration->points[calibration->npoints]))
		calibration->npoints++;
	facts->tablespace = calibration->tablespace;
	facts->uses_uring = fms_probe_uses_uring(calibration->probe);
	facts->seconds = seconds_since_start(calibration);
	fms_probe_close(calibration->probe);
}

/* ---- what comes of it ---- */

static int
compare_points(const void *a, const void *b)
{
	const FmsProbePoint *x = a;
	const FmsProbePoint *y = b;

	if (x->pattern != y->pattern)
		return (int) x->pattern - (int) y->pattern;
	if (x->block_bytes != y->block_bytes)
		return (int) x->block_bytes - (int) y->block_bytes;
	return (int) x->depth - (int) y->depth;
}

/* Leaves those that were measured, in the order in which they are shown. */
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
tell_end(const Calibration *calibration, int nmeasured, uint64 file_bytes,
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
	tell_end(calibration, n, facts.file_bytes, kept);
	return (Datum) 0;
}
