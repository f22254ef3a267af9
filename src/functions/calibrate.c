/*-------------------------------------------------------------------------
 *
 * calibrate.c
 *	  fmsort_calibrate(): measures the device under a tablespace.
 *
 * A measurement is a point of the grid block size x depth x pattern, some 390
 * in all.  If the time has a bound, a third of it is for writing the file, and
 * each point gets at most an equal share of what is left.  Patterns take
 * turns, so that a slow moment affects each of them a little.
 *
 * The profile keeps all points.  On ERROR the probe cleans up.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <math.h>

#include "commands/tablespace.h"
#include "fmgr.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/tuplestore.h"

#include "base/clock.h"
#include "device/probe.h"
#include "device/profile.h"
#include "device/spill_policy.h"
#include "executor/sort_node.h"
#include "observe/reports.h"

#define RESULT_COLUMNS	5

/* Less leaves no time for most points. */
#define SECONDS_MIN		1.0

/* Bytes of the file, and of its default. */
#define FILE_MIN_BYTES	(16LL << 20)
#define FILE_MAX_BYTES	(1LL << 40)
#define FILE_BYTES		(512LL << 20)

/* The fraction of the time for the file. */
#define FILL_FRACTION	0.33
/* The least and the longest time of a point. */
#define POINT_MIN_SECONDS	0.002
#define POINT_MAX_SECONDS	0.06

/* A point is omitted if it would take this multiple of its share. */
#define PATIENCE		4.0

/* Bytes of a write that appends to the file; runs are written similarly. */
#define APPEND_BYTES	262144
#define APPEND_DEPTH	4

/* Points of the result: 8 and 256 kB, and this depth if it is possible. */
#define SHOWN_BLOCKS	0x42000
#define SHOWN_DEPTH		32

/* Patterns of the grid: SR, RR, SW, RW. */
#define GRID_PATTERNS	FMS_PATTERN_APPEND
#define GRID_POINTS		(FMS_DEVICE_BLOCKS * FMS_DEVICE_DEPTHS * GRID_PATTERNS)

typedef struct Calibration
{
	/* arguments; seconds may be infinite */
	double		seconds;
	uint64		file_bytes;
	bool		keep;
	bool		direct;

	FmsProbe   *probe;
	instr_time	start;
	bool		is_async;		/* depths above 1 are possible */
	double		last_mb[FMS_PATTERNS];	/* MB/s of a pattern's last point */
	FmsProfileFacts facts;
	int			npossible;		/* points, measured or not */
	int			npoints;
	FmsProbePoint points[GRID_POINTS + 1];	/* that were measured */
} Calibration;

PG_FUNCTION_INFO_V1(fmsort_calibrate);
PG_FUNCTION_INFO_V1(fmsort_calibrate_reset);

/* ---- arguments ---- */

/* The arguments in the order of the SQL definition. */
static void
read_arguments(FunctionCallInfo fcinfo, Calibration *calibration)
{
	double		seconds = PG_ARGISNULL(1) ? INFINITY : PG_GETARG_FLOAT8(1);
	int64		bytes = PG_ARGISNULL(2) ? FILE_BYTES : PG_GETARG_INT64(2);

	if (PG_ARGISNULL(3) || PG_ARGISNULL(4))
		ereport(ERROR,
				(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
				 errmsg("\"keep\" and \"direct_io\" must not be null")));
	/* false for NaN, too */
	if (!(seconds >= SECONDS_MIN))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("\"seconds\" must be at least %g", SECONDS_MIN)));
	if (bytes < FILE_MIN_BYTES || bytes > FILE_MAX_BYTES)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("\"file_bytes\" must be between %lld and %lld",
						FILE_MIN_BYTES, FILE_MAX_BYTES)));
	calibration->seconds = seconds;
	calibration->file_bytes = bytes;
	calibration->facts.tablespace =
		fms_profile_tablespace(PG_ARGISNULL(0) ? NULL :
							   NameStr(*PG_GETARG_NAME(0)));
	calibration->direct = PG_GETARG_BOOL(4);
	calibration->keep = PG_GETARG_BOOL(3) && calibration->direct;
	if (calibration->keep)
		PreventCommandIfReadOnly("fmsort_calibrate() with keep => true");
}

/* ---- measuring ---- */

/* Measures a point if there is time for it; `left` wait for their turn. */
static void
measure_point(Calibration *calibration, FmsProbePoint *point, int left)
{
	double		left_seconds = calibration->seconds -
		fms_clock_since_us(calibration->start) / 1e6;
	double		share = Max(left_seconds / left, POINT_MIN_SECONDS);
	double	   *last_mb = &calibration->last_mb[point->pattern];

	if (left_seconds <= 0 ||
		(*last_mb > 0 && (double) point->block_bytes * point->depth >
		 PATIENCE * share * *last_mb * 1e6))
		return;
	fms_probe_measure(calibration->probe, Min(share, POINT_MAX_SECONDS), 0,
					  point);
	*last_mb = point->mb_per_s;
}

static void
measure(Calibration *calibration)
{
	FmsOptions	options;
	FmsProbePoint append = {
		FMS_PATTERN_APPEND, APPEND_BYTES, APPEND_DEPTH, 0
	};

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
	for (int i = 0; i < GRID_POINTS; i++)
	{
		FmsProbePoint *point = &calibration->points[calibration->npoints];

		*point = (FmsProbePoint) {
			i % GRID_PATTERNS,
			FMS_DEVICE_BLOCK_BYTES(i / GRID_PATTERNS / FMS_DEVICE_DEPTHS),
			FMS_DEVICE_DEPTH(i / GRID_PATTERNS % FMS_DEVICE_DEPTHS), 0
		};
		if (!fms_probe_can(calibration->probe, point))
			continue;
		calibration->npossible++;
		calibration->is_async |= point->depth > 1;
		measure_point(calibration, point, GRID_POINTS - i);
		calibration->npoints += point->mb_per_s > 0;
	}
	calibration->points[calibration->npoints] = append;
	calibration->npoints += append.mb_per_s > 0;
	calibration->npossible++;
	calibration->facts.file_bytes = fms_probe_file_bytes(calibration->probe);
	calibration->facts.io_method = fms_probe_io_method(calibration->probe);
	calibration->facts.seconds = fms_clock_since_us(calibration->start) / 1e6;
	fms_probe_close(calibration->probe);
}

/* ---- results ---- */

/* depth 0 and verdict NULL are null. */
static void
add_row(ReturnSetInfo *result, const char *measurement, uint32 block_bytes,
		uint32 depth, double mb_per_s, const char *verdict)
{
	bool		nulls[RESULT_COLUMNS] = {[2] = depth == 0,[4] = !verdict};
	Datum		values[RESULT_COLUMNS] = {
		CStringGetTextDatum(measurement),
		Int32GetDatum(block_bytes),
		Int32GetDatum(depth),
		Int64GetDatum((int64) rint(mb_per_s * 1e6)),
		verdict ? CStringGetTextDatum(verdict) : (Datum) 0
	};

	tuplestore_putvalues(result->setResult, result->setDesc, values, nulls);
}

/* Some points, and the round trip by which sorts choose. */
static void
report(const Calibration *calibration, ReturnSetInfo *result)
{
	FmsDevice	device = {0};
	double		mb_per_s;

	for (int i = 0; i < calibration->npoints; i++)
	{
		const FmsProbePoint *point = &calibration->points[i];
		const char *name = fms_pattern_names[point->pattern];

		fms_device_note(&device, name, point->block_bytes, point->depth,
						point->mb_per_s);
		if (point->pattern == FMS_PATTERN_APPEND ||
			((point->block_bytes & SHOWN_BLOCKS) &&
			 point->depth == (calibration->is_async ? SHOWN_DEPTH : 1)))
			add_row(result, name, point->block_bytes, point->depth,
					point->mb_per_s, NULL);
	}
	mb_per_s = fms_device_round_trip_mb(&device, APPEND_BYTES);
	if (calibration->direct && mb_per_s > 0)
		add_row(result, "round_trip", APPEND_BYTES, 0, mb_per_s,
				fms_spill_policy_verdict(mb_per_s, calibration->is_async));
}

Datum
fmsort_calibrate(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *result = (ReturnSetInfo *) fcinfo->resultinfo;
	Calibration *calibration = palloc0(sizeof(Calibration));
	FmsProfileFacts *facts = &calibration->facts;
	bool		kept;

	InitMaterializedSRF(fcinfo, 0);
	if (result->setDesc->natts != RESULT_COLUMNS)
		fms_refuse_version();
	read_arguments(fcinfo, calibration);
	measure(calibration);
	report(calibration, result);
	if (!calibration->keep)
		return (Datum) 0;
	facts->complete = calibration->npoints == calibration->npossible &&
		facts->file_bytes == calibration->file_bytes;
	kept = fms_profile_store(facts, calibration->points,
							 calibration->npoints);
	if (kept && facts->complete)
		return (Datum) 0;
	ereport(kept ? NOTICE : WARNING,
			(kept ?
			 errmsg("device profile of tablespace \"%s\" is incomplete",
					get_tablespace_name(facts->tablespace)) :
			 errmsg("device profile of tablespace \"%s\" was not replaced",
					get_tablespace_name(facts->tablespace)),
			 errdetail("There was time for %d of %d measurements, and for %llu of %llu bytes of the file.",
					   calibration->npoints, calibration->npossible,
					   (unsigned long long) facts->file_bytes,
					   (unsigned long long) calibration->file_bytes),
			 errhint("Increase \"seconds\", or omit it.")));
	return (Datum) 0;
}

Datum
fmsort_calibrate_reset(PG_FUNCTION_ARGS)
{
	PreventCommandIfReadOnly("fmsort_calibrate_reset()");
	fms_profile_delete(PG_ARGISNULL(0) ? InvalidOid :
					   fms_profile_tablespace(NameStr(*PG_GETARG_NAME(0))));
	PG_RETURN_VOID();
}
