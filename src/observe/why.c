/*-------------------------------------------------------------------------
 *
 * why.c
 *	  What a sort chose, and why, in words.
 *
 * Every choice that a setting leaves open, and every setting that could not
 * be followed, has its reason here: one clause each, joined by semicolons.
 * The reasons are read off the counters, which hold the settings, what came of
 * them, and the few things that cannot be told from these two (why the page
 * cache was bypassed).  So the floors below decide and need no words for it.
 *
 *	  external merge: 213 MB of rows, work_mem 4096 kB; one pass merges all 65
 *	  runs; block size 32768: automatic, for 219 MB expected; ...
 *
 * Memory: one string in the caller's context.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "lib/stringinfo.h"

#include "observe/why.h"

/* As a person would say it. */
static void
append_size(StringInfo text, double bytes)
{
	if (bytes < 10 * 1024)
		appendStringInfo(text, "%.0f bytes", bytes);
	else if (bytes < 10 * 1024 * 1024)
		appendStringInfo(text, "%.0f kB", bytes / 1024);
	else if (bytes < 1e21)
		appendStringInfo(text, "%.0f MB", bytes / (1024 * 1024));
	else						/* the planner guesses up to 1e100 rows */
		appendStringInfo(text, "%.0e MB", bytes / (1024 * 1024));
}

static void
append_method(StringInfo text, const FmsCounters *counters)
{
	appendStringInfo(text, "%s: ", fms_counters_method_name(counters));
	if (counters->method == FMS_METHOD_TOP_N)
	{
		appendStringInfo(text,
						 "only " UINT64_FORMAT " rows are wanted, the others were dropped",
						 counters->options.bound);
		return;
	}
	append_size(text, (double) counters->input_bytes);
	appendStringInfo(text, " of rows, work_mem %zu kB",
					 counters->options.memory_bytes / 1024);
}

static void
append_passes(StringInfo text, const FmsCounters *counters)
{
	if (counters->sorts > 1)
		appendStringInfo(text, "; " UINT64_FORMAT
						 " groups of presorted input, up to %u passes each",
						 counters->sorts, counters->merge_passes);
	else if (counters->merge_passes > 1)
		appendStringInfo(text, "; %u passes: work_mem has room for merging %u of "
						 UINT64_FORMAT " runs at once",
						 counters->merge_passes, counters->runs_at_last,
						 counters->runs);
	else
		appendStringInfo(text, "; one pass merges all " UINT64_FORMAT " runs",
						 counters->runs);
}

static void
append_block_size(StringInfo text, const FmsCounters *counters)
{
	const FmsOptions *options = &counters->options;

	appendStringInfo(text, "; block size %u: ", counters->block_bytes);
	if (fms_counters_block_lowered(counters))
		appendStringInfo(text,
						 "work_mem has no room for two runs' blocks of %u, as set",
						 options->block_bytes);
	else if (options->block_bytes > 0)
		appendStringInfoString(text, "as set");
	else if (options->expected_bytes > 0)
	{
		appendStringInfoString(text, "automatic, for ");
		append_size(text, options->expected_bytes);
		appendStringInfoString(text, " expected");
	}
	else
		appendStringInfoString(text, "automatic, for an unknown input");
}

static void
append_assist_blocks(StringInfo text, const FmsCounters *counters)
{
	uint32		wanted = counters->options.assist_blocks;

	if (counters->assist_blocks == 0)
	{
		appendStringInfo(text, "; no assist blocks in mode %s",
						 fms_mode_name(counters->mode));
		return;
	}
	appendStringInfo(text, "; assist blocks %u: ", counters->assist_blocks);
	if (wanted == 0)
	{
		appendStringInfoString(text, "automatic, by the memory left");
		if (counters->assist_used > 0)
			appendStringInfo(text, ", up to %u in use at once",
							 counters->assist_used);
	}
	else if (counters->assist_blocks == wanted)
		appendStringInfoString(text, "as set");
	else
		appendStringInfo(text, "work_mem has no room for %u, as set", wanted);
}

static void
append_io(StringInfo text, const FmsCounters *counters)
{
	appendStringInfoString(text, counters->uses_uring ? "; io_uring: " :
						   "; synchronous I/O: ");
	if (counters->options.io_method != FMS_IO_AUTO)
		appendStringInfoString(text, "as set");
	else if (fms_counters_uring_refused(counters))
		appendStringInfoString(text, "the kernel refuses io_uring");
	else
		appendStringInfoString(text, "automatic");
}

/* How fast the device is, and who says so. */
static void
append_device(StringInfo text, const FmsCounters *counters)
{
	if (counters->device_mb > 0)
		appendStringInfo(text, " (%.0f MB/s there and back, %s)",
						 counters->device_mb,
						 counters->device_seen ? "as this sort has seen" :
						 "by its profile");
	else if (counters->device_seen)
		appendStringInfoString(text, " (its profile is wrong, as this sort has seen)");
}

static void
append_direct_reason(StringInfo text, const FmsCounters *counters)
{
	switch (counters->direct_reason)
	{
		case FMS_DIRECT_AS_SET:
			appendStringInfoString(text, "as set");
			return;
		case FMS_DIRECT_SMALL:
			appendStringInfoString(text, "it had room for what was spilled");
			break;
		case FMS_DIRECT_SLOW:
			appendStringInfoString(text, "the device is slow, and memory had room");
			break;
		case FMS_DIRECT_EXPECTED:
			appendStringInfoString(text, "far more was expected than the page cache has room for");
			break;
		case FMS_DIRECT_CROWDED:
			appendStringInfoString(text, "memory does not hold the expected spill and its input");
			break;
		case FMS_DIRECT_OUTGROWN:
			appendStringInfoString(text, "the page cache had no more room");
			break;
		case FMS_DIRECT_FAST:
			appendStringInfoString(text, "the device is faster than the page cache");
			break;
	}
	append_device(text, counters);
}

static void
append_direct(StringInfo text, const FmsCounters *counters)
{
	appendStringInfoString(text, counters->uses_direct_io ?
						   "; direct I/O" : "; page cache");
	if (counters->uses_direct_io && counters->cached_bytes > 0)
	{
		appendStringInfoString(text, " for all but ");
		append_size(text, (double) counters->cached_bytes);
		if (FMS_DIRECT_IS_CACHED(counters->direct_reason))
			appendStringInfoString(text, ", then the page cache");
	}
	appendStringInfoString(text, ": ");
	if (fms_counters_direct_refused(counters))
		appendStringInfoString(text,
							   "the file system refuses direct I/O with such blocks");
	else
		append_direct_reason(text, counters);
}

/* Only where something has been compressed. */
static void
append_compression(StringInfo text, const FmsCounters *counters)
{
	if (counters->compressible_bytes == 0)
		return;
	appendStringInfoString(text, "; ");
	append_size(text, (double) counters->compressible_bytes);
	appendStringInfoString(text, " compressed to ");
	append_size(text, (double) counters->compressed_bytes);
	switch (counters->compress_reason)
	{
		case FMS_COMPRESS_AS_SET:
			appendStringInfoString(text, ": as set");
			break;
		case FMS_COMPRESS_SLOW:
			appendStringInfoString(text, ": the device is slow, and memory had not enough room");
			break;
		case FMS_COMPRESS_GAINED_LITTLE:
			appendStringInfoString(text, ", then no more: that gained little");
			break;
		case FMS_COMPRESS_NO_NEED:
			appendStringInfoString(text, ", then no more: the device is not slow");
			break;
	}
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
