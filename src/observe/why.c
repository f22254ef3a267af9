/*-------------------------------------------------------------------------
 *
 * why.c
 *	  What a sort chose, and why, in words.
 *
 * One clause for each choice that a setting leaves open and for each setting
 * that the sort could not follow.  The counters have the settings, the
 * outcome, and the reasons as numbers.
 *
 *	  external merge: 213 MB of rows, work_mem 4096 kB; one pass merges all 65
 *	  runs; block size 32768: automatic, for 219 MB expected; ...
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "lib/stringinfo.h"

#include "observe/reports.h"

static const char *const direct_reasons[] = {
	[FMS_DIRECT_AS_SET] = "as set",
	[FMS_DIRECT_ROOM] = "memory had room for the spill",
	[FMS_DIRECT_NO_ROOM] = "memory has no room for the spill",
	[FMS_DIRECT_FAST] = "the device is faster than the page cache"
};

/* Of what has been compressed. */
static const char *const compress_reasons[] = {
	[FMS_COMPRESS_AS_SET] = ": as set",
	[FMS_COMPRESS_NO_NEED] = ", then no more: the device is not slow",
	[FMS_COMPRESS_SLOW] = ": the device is slow, and memory had not enough room",
	[FMS_COMPRESS_GAINED_LITTLE] = ", then no more: that gained little"
};

static void
append_size(StringInfo text, uint64 bytes)
{
	if (bytes < 10 * 1024)
		appendStringInfo(text, UINT64_FORMAT " bytes", bytes);
	else if (bytes < 10 * 1024 * 1024)
		appendStringInfo(text, "%.0f kB", bytes / 1024.0);
	else if (bytes < PG_INT64_MAX)
		appendStringInfo(text, "%.0f MB", bytes / (1024.0 * 1024));
	else						/* the planner guesses up to 1e100 rows */
		appendStringInfo(text, "more than %.0e MB",
						 bytes / (1024.0 * 1024));
}

static void
append_method(StringInfo text, const FmsCounters *counters)
{
	appendStringInfo(text, "%s: ",
					 fms_counter_name(counters, FMS_COUNT_METHOD));
	if (fms_counter(counters, FMS_COUNT_METHOD) == FMS_METHOD_TOP_N)
	{
		appendStringInfo(text,
						 "only " UINT64_FORMAT " rows are wanted, the others were dropped",
						 fms_counter(counters, FMS_COUNT_BOUND));
		return;
	}
	append_size(text, fms_counter(counters, FMS_COUNT_INPUT_BYTES));
	appendStringInfo(text, " of rows, work_mem " UINT64_FORMAT " kB",
					 fms_counter_kb(counters, FMS_COUNT_WORK_MEM_BYTES));
}

static void
append_passes(StringInfo text, const FmsCounters *counters)
{
	uint64		groups = fms_counter(counters, FMS_COUNT_GROUPS);
	uint64		passes = fms_counter(counters, FMS_COUNT_MERGE_PASSES);
	uint64		runs = fms_counter(counters, FMS_COUNT_RUNS);

	if (groups > 1)
		appendStringInfo(text, "; " UINT64_FORMAT
						 " groups of presorted input, up to " UINT64_FORMAT
						 " passes each", groups, passes);
	else if (passes > 1)
		appendStringInfo(text, "; " UINT64_FORMAT
						 " passes: work_mem has room for merging "
						 UINT64_FORMAT " of " UINT64_FORMAT " runs at once",
						 passes, fms_counter(counters, FMS_COUNT_FAN_IN),
						 runs);
	else
		appendStringInfo(text, "; one pass merges all " UINT64_FORMAT
						 " runs", runs);
}

static void
append_block_size(StringInfo text, const FmsCounters *counters)
{
	uint64		set = fms_counter(counters, FMS_COUNT_SET_BLOCK_BYTES);
	uint64		expected = fms_counter(counters, FMS_COUNT_EXPECTED_BYTES);

	appendStringInfo(text, "; block size " UINT64_FORMAT ": ",
					 fms_counter(counters, FMS_COUNT_BLOCK_BYTES));
	if (fms_counter(counters, FMS_COUNT_BLOCK_LOWERED))
		appendStringInfo(text, "work_mem has no room for two runs' blocks of "
						 UINT64_FORMAT ", as set", set);
	else if (set > 0)
		appendStringInfoString(text, "as set");
	else if (expected > 0)
	{
		appendStringInfoString(text, "automatic, for ");
		append_size(text, expected);
		appendStringInfoString(text, " expected");
	}
	else
		appendStringInfoString(text, "automatic, for an unknown input");
}

static void
append_assist_blocks(StringInfo text, const FmsCounters *counters)
{
	uint64		set = fms_counter(counters, FMS_COUNT_SET_ASSIST_BLOCKS);
	uint64		blocks = fms_counter(counters, FMS_COUNT_ASSIST_BLOCKS);
	uint64		used = fms_counter(counters, FMS_COUNT_ASSIST_USED);

	if (blocks == 0)
	{
		appendStringInfo(text, "; no assist blocks in mode %s",
						 fms_counter_name(counters, FMS_COUNT_MODE));
		return;
	}
	appendStringInfo(text, "; assist blocks " UINT64_FORMAT ": ", blocks);
	if (set == 0)
	{
		appendStringInfoString(text, "automatic, by the memory left");
		if (used > 0)
			appendStringInfo(text, ", up to " UINT64_FORMAT
							 " in use at once", used);
	}
	else if (set == blocks)
		appendStringInfoString(text, "as set");
	else
		appendStringInfo(text, "work_mem has no room for " UINT64_FORMAT
						 ", as set", set);
}

static void
append_io(StringInfo text, const FmsCounters *counters)
{
	appendStringInfoString(text, fms_counter(counters, FMS_COUNT_IO_METHOD) ==
						   FMS_IO_URING ? "; io_uring: " :
						   "; synchronous I/O: ");
	if (fms_counter(counters, FMS_COUNT_SET_IO_METHOD) != FMS_IO_AUTO)
		appendStringInfoString(text, "as set");
	else if (fms_counter(counters, FMS_COUNT_URING_REFUSED))
		appendStringInfoString(text, "the kernel refuses io_uring");
	else
		appendStringInfoString(text, "automatic");
}

/* How fast the device is, and by which evidence. */
static void
append_device(StringInfo text, const FmsCounters *counters)
{
	uint64		kb = fms_counter(counters, FMS_COUNT_DEVICE_KB);
	bool		seen = fms_counter(counters, FMS_COUNT_DEVICE_SEEN) != 0;

	if (kb > 0)
		appendStringInfo(text, " (%.0f MB/s there and back, %s)", kb / 1000.0,
						 seen ? "as this sort has seen" : "by its profile");
	else if (seen)
		appendStringInfoString(text, " (its profile is wrong, as this sort has seen)");
}

static void
append_direct(StringInfo text, const FmsCounters *counters)
{
	bool		direct = fms_counter(counters, FMS_COUNT_DIRECT_IO) == FMS_YES;
	uint64		cached = fms_counter(counters, FMS_COUNT_CACHED_BYTES);
	uint64		reason = fms_counter(counters, FMS_COUNT_DIRECT_REASON);

	appendStringInfoString(text, direct ? "; direct I/O" : "; page cache");
	if (direct && cached > 0)
	{
		appendStringInfoString(text, " for all but ");
		append_size(text, cached);
		if (reason == FMS_DIRECT_ROOM)
			appendStringInfoString(text, ", then the page cache");
	}
	appendStringInfo(text, ": %s",
					 fms_counter(counters, FMS_COUNT_DIRECT_REFUSED) ?
					 "the file system refuses direct I/O with such blocks" :
					 direct_reasons[reason]);
	if (!fms_counter(counters, FMS_COUNT_DIRECT_REFUSED) &&
		reason != FMS_DIRECT_AS_SET)
		append_device(text, counters);
}

/* Only if the sort compressed anything. */
static void
append_compression(StringInfo text, const FmsCounters *counters)
{
	uint64		bytes = fms_counter(counters, FMS_COUNT_COMPRESSIBLE_BYTES);

	if (bytes == 0)
		return;
	appendStringInfoString(text, "; ");
	append_size(text, bytes);
	appendStringInfoString(text, " compressed to ");
	append_size(text, fms_counter(counters, FMS_COUNT_COMPRESSED_BYTES));
	appendStringInfoString(text, compress_reasons[
						   fms_counter(counters, FMS_COUNT_COMPRESS_REASON)]);
}

char *
fms_why(const FmsCounters *counters)
{
	StringInfoData text;

	initStringInfo(&text);
	append_method(&text, counters);
	if (fms_counters_external(counters))
	{
		append_passes(&text, counters);
		append_block_size(&text, counters);
		append_assist_blocks(&text, counters);
		append_io(&text, counters);
		append_direct(&text, counters);
		append_compression(&text, counters);
	}
	return text.data;
}
