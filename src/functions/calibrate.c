/*-------------------------------------------------------------------------
 *
 * calibrate.c
 *	  fmsort_calibrate(): measures the device under a tablespace.
 *
 * A measurement is a point of the grid block size x depth x pattern, some 390
 * in all.  A third of the time is for writing the file; then each point gets
 * an equal share of what is left.  Important points come first, and patterns
 * take turns, so that a slow moment affects each of them a little.
 *
 * On ERROR the probe cleans up.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "commands/tablespace.h"
#include "fmgr.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "utils/builtins.h"
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

/* The fraction of the time for the file. */
#define FILL_FRACTION	0.33
/* The least time of a point. */
#define POINT_MIN_SECONDS	0.002

/* A point is omitted if it would take this multiple of its share. */
#define PATIENCE		4.0

/* Bytes of a write that appends to the file; runs are written similarly. */
#define APPEND_BYTES	262144
#define APPEND_DEPTH	4

/* Important points: 4, 16, 64, 256 kB, 1 MB at depths 1, 8, 32. */
#define IMPORTANT_BLOCKS	0x155000
#define IMPORTANT_DEPTHS	(1 | 8 | 32)

/* Patterns of the grid: SR, RR, SW, RW. */
#define GRID_PATTERNS	FMS_PATTERN_APPEND
#define GRID_POINTS		(FMS_DEVICE_BLOCKS * FMS_DEVICE_DEPTHS * GRID_PATTERNS)

typedef struct Calibration
{
	/* arguments */
	double		seconds;
	uint64		file_bytes;
	bool		keep;
	bool		direct;

	FmsProbe   *probe;
	instr_time	start;
	double		last_mb[FMS_PATTERNS];	/* MB/s of a pattern's last point */
	FmsProfileFacts facts;
	int			npoints;
	FmsProbePoint points[GRID_POINTS + 1];	/* rate 0: not measured */
} Calibration;

PG_FUNCTION_INFO_V1(fmsort_calibrate);

/* ---- arguments ---- */

/* The arguments in the order of the SQL definition. */
static void
read_arguments(FunctionCallInfo fcinfo, Calibration *calibration)
{
	int			file_mb = PG_GETARG_INT32(2);

	if (PG_ARGISNULL(1) || PG_ARGISNULL(2) || PG_ARGISNULL(3) ||
		PG_ARGISNULL(4))
		ereport(ERROR,
				(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
				 errmsg("\"seconds\", \"size_mb\", \"keep\" and \"direct_io\" must not be null")));
	calibration->seconds = PG_GETARG_FLOAT8(1);
	/* false for NaN, too */
	if (!(calibration->seconds >= SECONDS_MIN &&
		  calibration->seconds <= SECONDS_MAX) ||
		file_mb < FILE_MIN_MB || file_mb > FILE_MAX_MB)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("\"seconds\" must be between %g and %g, \"size_mb\" between %d and %d",
						SECONDS_MIN, SECONDS_MAX, FILE_MIN_MB, FILE_MAX_MB)));
	calibration->file_bytes = (uint64) file_mb * 1024 * 1024;
	calibration->facts.tablespace =
		fms_profile_tablespace(PG_ARGISNULL(0) ? NULL :
							   NameStr(*PG_GETARG_NAME(0)));
	calibration->direct = PG_GETARG_BOOL(4);
	calibration->keep = PG_GETARG_BOOL(3) && calibration->direct;
	if (calibration->keep)
		PreventCommandIfReadOnly("fmsort_calibrate() with keep => true");
}

/* ---- measuring ---- */

/* The points of the grid that are possible here. */
static void
add_points(Calibration *calibration)
{
	for (int i = 0; i < GRID_POINTS; i++)
	{
		FmsProbePoint *point = &calibration->points[calibration->npoints];
		int			block = i / GRID_PATTERNS / FMS_DEVICE_DEPTHS;
		int			depth = i / GRID_PATTERNS % FMS_DEVICE_DEPTHS;

		*point = (FmsProbePoint) {
			i % GRID_PATTERNS, FMS_DEVICE_BLOCK_BYTES(block),
			FMS_DEVICE_DEPTH(depth), 0
		};
		if (fms_probe_can(calibration->probe, point))
			calibration->npoints++;
	}
}

/* Measures a point if there is time for it; `left` have not had their turn. */
static void
measure_point(Calibration *calibration, FmsProbePoint *point, int left)
{
	double		left_seconds = calibration->seconds -
		fms_clock_since_us(calibration->start) / 1e6;
	double		seconds = Max(left_seconds / left, POINT_MIN_SECONDS);
	double	   *last_mb = &calibration->last_mb[point->pattern];

	if (left_seconds <= 0 ||
		(*last_mb > 0 && (double) point->block_bytes * point->depth >
		 PATIENCE * seconds * *last_mb * 1e6))
		return;
	fms_probe_measure(calibration->probe, seconds, 0, point);
	*last_mb = point->mb_per_s;
}

static void
measure(Calibration *calibration)
{
	FmsOptions	options;
	FmsProbePoint append = {
		FMS_PATTERN_APPEND, APPEND_BYTES, APPEND_DEPTH, 0
	};
	int			left;

	fms_settings_snapshot(&options, 0);
	calibration->start = fms_clock_now();
	calibration->probe = fms_probe_open(calibration->facts.tablespace,
										options.io_method,
										calibration->direct);
	/* the second half counts: caches take the first bytes faster */
	for (int half = 1; half <= 2; half++)
		fms_probe_measure(calibration->probe,
						  calibration->seconds * FILL_FRACTION / 2,
						  calibration->file_bytes / 2 * half, &append);
	add_points(calibration);
	left = calibration->npoints;
	for (int turn = 0; turn < 2; turn++)
	{
		for (int i = 0; i < calibration->npoints; i++)
		{
			FmsProbePoint *point = &calibration->points[i];
			bool		important = (point->block_bytes & IMPORTANT_BLOCKS) &&
				(point->depth & IMPORTANT_DEPTHS);

			if (important == (turn == 0))
				measure_point(calibration, point, left--);
		}
	}
	calibration->points[calibration->npoints++] = append;
	calibration->facts.file_bytes = fms_probe_file_bytes(calibration->probe);
	calibration->facts.io_method = fms_probe_io_method(calibration->probe);
	calibration->facts.seconds = fms_clock_since_us(calibration->start) / 1e6;
	fms_probe_close(calibration->probe);
}

/* ---- results ---- */

/* Returns the points that were measured and moves them to the front. */
static int
return_points(Calibration *calibration, ReturnSetInfo *result)
{
	int			n = 0;

	for (int i = 0; i < calibration->npoints; i++)
	{
		const FmsProbePoint *point = &calibration->points[i];
		bool		nulls[RESULT_COLUMNS] = {false};
		Datum		values[RESULT_COLUMNS] = {
			CStringGetTextDatum(fms_pattern_names[point->pattern]),
			Int32GetDatum(point->block_bytes),
			Int32GetDatum(point->depth),
			Float8GetDatum(point->mb_per_s),
			Float8GetDatum(point->mb_per_s * 1e6 / point->block_bytes)
		};

		if (point->mb_per_s <= 0)
			continue;
		tuplestore_putvalues(result->setResult, result->setDesc, values,
							 nulls);
		calibration->points[n++] = *point;
	}
	return n;
}

Datum
fmsort_calibrate(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *result = (ReturnSetInfo *) fcinfo->resultinfo;
	Calibration *calibration = palloc0(sizeof(Calibration));
	FmsProfileFacts *facts = &calibration->facts;
	bool		kept;
	int			n;

	InitMaterializedSRF(fcinfo, 0);
	fms_require_columns(result->setDesc, RESULT_COLUMNS);
	read_arguments(fcinfo, calibration);
	measure(calibration);
	n = return_points(calibration, result);
	facts->complete = n == calibration->npoints;
	kept = calibration->keep &&
		fms_profile_store(facts, calibration->points, n);
	if (kept && facts->complete &&
		facts->file_bytes == calibration->file_bytes)
		return (Datum) 0;
	ereport(calibration->keep && !kept ? WARNING : NOTICE,
			(errmsg(kept ? "fmsort_calibrate: the profile of tablespace \"%s\" is incomplete" :
					"fmsort_calibrate: the profile of tablespace \"%s\" stays as it was",
					get_tablespace_name(facts->tablespace)),
			 errdetail("There was time for %d of %d measurements, and for %llu of the file's %llu MB.",
					   n, calibration->npoints,
					   (unsigned long long) (facts->file_bytes >> 20),
					   (unsigned long long) (calibration->file_bytes >> 20)),
			 calibration->keep ? errhint("Give it more \"seconds\".") : 0));
	return (Datum) 0;
}
