/*-------------------------------------------------------------------------
 *
 * decision.c
 *	  What a sort chose, and why, as far as no other field shows it.
 *
 * One clause for each setting that the sort could not follow, and for each
 * choice of the spill policy: a keyword, and a sentence.
 *
 *	  io_uring: refused by the kernel; page cache: memory had room for it
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "lib/stringinfo.h"

#include "observe/reports.h"

static const char *const direct_reasons[] = {
	[FMS_DIRECT_SMALL] = "the spill is small",
	[FMS_DIRECT_SYNC] = "without io_uring the kernel has to read ahead",
	[FMS_DIRECT_ROOM] = "memory had room for the spill",
	[FMS_DIRECT_NO_ROOM] = "memory has no room for the spill",
	[FMS_DIRECT_HALF] = "memory does not hold the spill and its input",
	[FMS_DIRECT_FAST] = "the device is faster than the page cache"
};

/* Of a sort that has compressed something. */
static const char *const compress_reasons[] = {
	[FMS_COMPRESS_NO_NEED] = "compression ended: the device is not slow",
	[FMS_COMPRESS_SLOW] = "compression: the device is slow, and memory had not enough room",
	[FMS_COMPRESS_GAINED_LITTLE] = "compression ended: it gained little"
};

/* Begins a clause. */
static StringInfo
clause(StringInfo text)
{
	if (text->len > 0)
		appendStringInfoString(text, "; ");
	return text;
}

/* The settings that the sort could not follow. */
static void
append_refused(StringInfo text, const FmsCounters *counters)
{
	uint64		assist = fms_counter(counters, FMS_COUNT_ASSIST_BLOCKS);
	uint64		wanted = fms_counter(counters, FMS_COUNT_SET_ASSIST_BLOCKS);

	if (fms_counter(counters, FMS_COUNT_BLOCK_LOWERED))
		appendStringInfo(clause(text),
						 "block size: work_mem has no room for two runs' blocks of "
						 UINT64_FORMAT ", as set",
						 fms_counter(counters, FMS_COUNT_SET_BLOCK_BYTES));
	/* 0: a mode without assist blocks */
	if (assist > 0 && assist < wanted)
		appendStringInfo(clause(text),
						 "assist blocks: work_mem has no room for "
						 UINT64_FORMAT ", as set", wanted);
	if (fms_counter(counters, FMS_COUNT_URING_REFUSED))
		appendStringInfoString(clause(text), "io_uring: refused by the kernel");
	if (fms_counter(counters, FMS_COUNT_DIRECT_REFUSED))
		appendStringInfoString(clause(text),
							   "page cache: the file system refuses direct I/O with such blocks");
}

/* Direct I/O or the page cache; the device's speed, and its evidence. */
static void
append_direct(StringInfo text, const FmsCounters *counters)
{
	uint64		reason = fms_counter(counters, FMS_COUNT_DIRECT_REASON);
	uint64		kb = fms_counter(counters, FMS_COUNT_DEVICE_KB);
	bool		seen = fms_counter(counters, FMS_COUNT_DEVICE_SEEN) != 0;
	bool		direct = fms_counter(counters, FMS_COUNT_DIRECT_IO) == FMS_YES;

	clause(text);
	if (!FMS_DIRECT_REASON_CACHES(reason))
		appendStringInfo(text, "%sdirect I/O",
						 fms_counter(counters, FMS_COUNT_CACHED_BYTES) > 0 ?
						 "page cache, then " : "");
	else
		appendStringInfo(text, "%spage cache",
						 direct ? "direct I/O, then " : "");
	appendStringInfo(text, ": %s", direct_reasons[reason]);
	if (kb > 0)
		appendStringInfo(text, " (%.0f MB/s there and back, %s)", kb / 1000.0,
						 seen ? "as this sort has seen" : "by its profile");
	else if (seen)
		appendStringInfoString(text, " (its profile is wrong, as this sort has seen)");
}

char *
fms_decision(const FmsCounters *counters)
{
	uint64		direct = fms_counter(counters, FMS_COUNT_DIRECT_REASON);
	uint64		compress = fms_counter(counters, FMS_COUNT_COMPRESS_REASON);
	StringInfoData text;

	initStringInfo(&text);
	if (fms_counter(counters, FMS_COUNT_METHOD) == FMS_METHOD_TOP_N)
		appendStringInfo(&text,
						 "top-N: only " UINT64_FORMAT " rows are wanted, the others were dropped",
						 fms_counter(counters, FMS_COUNT_BOUND));
	else if (fms_counters_external(counters))
	{
		append_refused(&text, counters);
		if (direct != FMS_DIRECT_AS_SET &&
			!fms_counter(counters, FMS_COUNT_DIRECT_REFUSED))
			append_direct(&text, counters);
		if (fms_counter(counters, FMS_COUNT_COMPRESSIBLE_BYTES) > 0 &&
			compress != FMS_COMPRESS_AS_SET)
			appendStringInfoString(clause(&text), compress_reasons[compress]);
	}
	return text.len > 0 ? text.data : NULL;
}
