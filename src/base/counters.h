/*-------------------------------------------------------------------------
 *
 * counters.h
 *	  What a sort reports about itself: one table of numbers.
 *
 * The floors below observe/ write counters and cannot read them: FmsCounters
 * is an incomplete type there.  observe/reports.h completes it.  The reports
 * loop over the table.  A SQL function shows a counter if it has a column of
 * the counter's name.  src/README.md lists what a new counter needs.
 *
 * The counters of a running sort may lie in shared memory, where other
 * processes read them without a lock (observe/progress.c).
 *
 * Times are in nanoseconds.  They fulfil, whatever the machine does:
 *
 *	  INPUT <= FORMATION;  BLOCKED <= MERGE
 *	  FORMATION + ORDER + MERGE <= time in the node
 *
 *-------------------------------------------------------------------------
 */
#ifndef FMS_COUNTERS_H
#define FMS_COUNTERS_H

#include "port/atomics.h"

#include "base/options.h"

typedef enum FmsSortMethod
{
	FMS_METHOD_STILL_LOADING,
	FMS_METHOD_IN_MEMORY,
	FMS_METHOD_TOP_N,			/* in memory; a bound was exceeded */
	FMS_METHOD_EXTERNAL_MERGE
} FmsSortMethod;

typedef enum FmsPhase
{
	FMS_PHASE_LOADING,			/* run formation */
	FMS_PHASE_PASSES,			/* merging runs into runs */
	FMS_PHASE_MERGING,			/* the last merge, which feeds the parent */
	FMS_PHASE_IN_MEMORY			/* handing out tuples from memory */
} FmsPhase;

/* Why the latest run bypasses the page cache, or does not. */
typedef enum FmsDirectReason
{
	FMS_DIRECT_AS_SET,			/* the setting says so */
	FMS_DIRECT_SMALL,			/* cached: the spill is small so far */
	FMS_DIRECT_SYNC,			/* cached: there, the kernel reads ahead */
	FMS_DIRECT_ROOM,			/* cached: memory has room for the spill */
	FMS_DIRECT_NO_ROOM,			/* direct: it has not */
	FMS_DIRECT_HALF,			/* direct: half, since memory is short */
	FMS_DIRECT_FAST				/* direct: the device is as fast */
} FmsDirectReason;

/* Does the reason choose the page cache?  AS_SET chooses nothing. */
#define FMS_DIRECT_REASON_CACHES(reason) \
	((reason) >= FMS_DIRECT_SMALL && (reason) <= FMS_DIRECT_ROOM)

/* Why the latest run is compressed, or is not. */
typedef enum FmsCompressReason
{
	FMS_COMPRESS_AS_SET,		/* the setting says so */
	FMS_COMPRESS_NO_NEED,		/* not: a fast device, or room in memory */
	FMS_COMPRESS_SLOW,			/* the device is slow, and memory is short */
	FMS_COMPRESS_GAINED_LITTLE	/* not any more: it saved little */
} FmsCompressReason;

/* Does the reason choose compression?  AS_SET chooses nothing. */
#define FMS_COMPRESS_REASON_COMPRESSES(reason) \
	((reason) == FMS_COMPRESS_SLOW)

/*
 * COUNTER(name, unit, combination, line, label, column)
 *
 * unit: FMS_UNIT_..., how a report prints the value (observe/reports.h).
 * combination: the value of several groups or sorts: SUM, MAX, the LAST one
 * that is not 0, or DERIVED by fms_counters_complete().  line, label: the line
 * of EXPLAIN's text format, and the field's name in all formats and in the
 * log.  column: the name in the SQL functions.
 */
#define FMS_COUNTERS(COUNTER) \
	/* the settings in force */ \
	COUNTER(STARTED, TIMESTAMP, LAST, NONE, NULL, "start_time") \
	COUNTER(WORK_MEM_BYTES, KB, LAST, NONE, NULL, "work_mem_bytes") \
	COUNTER(BOUND, IF_KNOWN, LAST, NONE, NULL, "bound") \
	COUNTER(PRESORTED, YES_NO, LAST, NONE, NULL, "presorted") \
	COUNTER(TUPLES_EXPECTED, NUMBER, LAST, NONE, NULL, "tuples_total") \
	COUNTER(EXPECTED_BYTES, NUMBER, LAST, NONE, NULL, NULL) \
	COUNTER(SET_BLOCK_BYTES, NUMBER, LAST, NONE, NULL, NULL) \
	COUNTER(SET_ASSIST_BLOCKS, NUMBER, LAST, NONE, NULL, NULL) \
	COUNTER(SET_IO_METHOD, NUMBER, LAST, NONE, NULL, NULL) \
	COUNTER(SET_DIRECT_IO, NUMBER, LAST, NONE, NULL, NULL) \
	/* the sort; SPACE: on disk or, if nothing is there, in memory */ \
	COUNTER(PHASE, PHASE, LAST, NONE, NULL, "phase") \
	COUNTER(METHOD, METHOD, MAX, METHOD, "Sort Method", "sort_method") \
	COUNTER(SPACE_BYTES, KB, DERIVED, METHOD, "Sort Space Used", \
			"sort_space_bytes") \
	COUNTER(SPACE_TYPE, SPACE_TYPE, DERIVED, METHOD, "Sort Space Type", \
			"sort_space_type") \
	/* of presorted input, else 0 */ \
	COUNTER(GROUPS, IF_KNOWN, SUM, METHOD, "Groups", NULL) \
	COUNTER(EARLIER_TUPLES, NUMBER, LAST, NONE, NULL, NULL) \
	/* of a parallel sort: put into workers, while they form runs */ \
	COUNTER(WORKERS_TUPLES, NUMBER, LAST, NONE, NULL, NULL) \
	COUNTER(LAST_GROUP, NUMBER, LAST, NONE, NULL, NULL) \
	COUNTER(TUPLES, NUMBER, SUM, LOG, "Rows", "tuples") \
	/* what was not done: rows beyond a bound; rows, and blocks of the */ \
	/* last merge, before the first row wanted; rows of a group */ \
	COUNTER(ROWS_REFUSED, NUMBER, SUM, LESS, "Rows Refused", \
			"rows_refused") \
	COUNTER(ROWS_SKIPPED, NUMBER, SUM, LESS, "Rows Skipped", \
			"rows_skipped") \
	COUNTER(BLOCKS_SKIPPED, NUMBER, SUM, LESS, "Blocks Skipped", \
			"blocks_skipped") \
	COUNTER(DUPLICATES_DROPPED, NUMBER, SUM, LESS, "Duplicates Dropped", \
			"duplicates_dropped") \
	/* bytes of tuples and entries: in memory when the input ended; if */ \
	/* memory had held them all; merged from memory, not written */ \
	COUNTER(MEMORY_BYTES, NUMBER, MAX, NONE, NULL, NULL) \
	COUNTER(INPUT_BYTES, NUMBER, SUM, NONE, NULL, NULL) \
	COUNTER(KEPT_BYTES, NUMBER, SUM, NONE, NULL, "bytes_kept") \
	COUNTER(MODE, MODE, LAST, MERGE, "Merge Mode", "merge_mode") \
	/* runs written by run formation; passes: 1 = written once */ \
	COUNTER(RUNS, NUMBER, SUM, MERGE, "Runs", "runs") \
	COUNTER(MERGE_PASSES, NUMBER, MAX, MERGE, "Merge Passes", \
			"merge_passes") \
	/* before any merge; to be merged away before the last one; left when */ \
	/* this merge began; in this merge */ \
	COUNTER(RUNS_AT_FIRST, NUMBER, LAST, NONE, NULL, NULL) \
	COUNTER(RUNS_TOO_MANY, NUMBER, LAST, NONE, NULL, NULL) \
	COUNTER(RUNS_LEFT, IF_KNOWN, LAST, NONE, NULL, "runs_left") \
	COUNTER(MERGE_RUNS, NUMBER, LAST, NONE, NULL, NULL) \
	/* of this merge: all blocks, and those asked for */ \
	COUNTER(MERGE_BLOCKS, IF_KNOWN, LAST, NONE, NULL, "blocks_total") \
	COUNTER(MERGE_BLOCKS_DONE, NUMBER, LAST, NONE, NULL, NULL) \
	/* the least work_mem for one pass, and for a sort in memory */ \
	COUNTER(ONE_PASS_BYTES, KB_IF_KNOWN, MAX, LOG, "work_mem for One Pass", \
			"one_pass_work_mem_bytes") \
	COUNTER(IN_MEMORY_BYTES, KB_IF_KNOWN, MAX, LOG, "work_mem in Memory", \
			"in_memory_work_mem_bytes") \
	/* blocks of runs that run formation wrote */ \
	COUNTER(BLOCKS, NUMBER, SUM, MERGE, "Blocks", "blocks") \
	COUNTER(BLOCK_BYTES, NUMBER, MAX, MERGE, "Block Size", "block_size") \
	COUNTER(ASSIST_BLOCKS, NUMBER, MAX, MERGE, "Assist Blocks", \
			"assist_blocks") \
	COUNTER(IO_METHOD, IO_METHOD, LAST, IO, "I/O Method", "io_method") \
	COUNTER(DIRECT_IO, YES_NO, MAX, IO, "Direct I/O", "direct_io") \
	COUNTER(COMPRESSION, RATIO, DERIVED, IO, "Compression", "compression") \
	/* choices: FmsDirectReason, FmsCompressReason; the device's round */ \
	/* trip in kB/s, and whether this sort saw it itself */ \
	COUNTER(DIRECT_REASON, NUMBER, LAST, NONE, NULL, NULL) \
	COUNTER(COMPRESS_REASON, NUMBER, LAST, NONE, NULL, NULL) \
	COUNTER(DEVICE_KB, NUMBER, LAST, NONE, NULL, NULL) \
	COUNTER(DEVICE_SEEN, NUMBER, MAX, NONE, NULL, NULL) \
	/* I/O: bytes and requests; compressible: before compression */ \
	COUNTER(COMPRESSIBLE_BYTES, NUMBER, SUM, NONE, NULL, NULL) \
	COUNTER(COMPRESSED_BYTES, NUMBER, SUM, NONE, NULL, NULL) \
	COUNTER(CACHED_BYTES, NUMBER, SUM, NONE, NULL, NULL) \
	COUNTER(SPILLED_BYTES, NUMBER, SUM, NONE, NULL, "bytes_spilled") \
	COUNTER(READ_BYTES, NUMBER, SUM, NONE, NULL, "bytes_read") \
	COUNTER(WRITTEN_BYTES, NUMBER, SUM, NONE, "Bytes Written", \
			"bytes_written") \
	COUNTER(READS, NUMBER, SUM, NONE, NULL, "reads") \
	COUNTER(READ_BATCHES, NUMBER, SUM, NONE, NULL, "read_batches") \
	COUNTER(WRITES, NUMBER, SUM, NONE, NULL, "writes") \
	/* times; MERGING: all merges, their block orders included */ \
	COUNTER(FORMATION_NS, NS, SUM, TIMES, "Run Formation Time", \
			"run_formation_time") \
	COUNTER(INPUT_NS, NS, SUM, TIMES, "Input Time", "input_time") \
	COUNTER(ORDER_NS, NS, SUM, MERGE_TIMES, "Block Order Time", \
			"block_order_time") \
	COUNTER(MERGING_NS, NS, SUM, NONE, NULL, NULL) \
	COUNTER(MERGE_NS, NS, DERIVED, MERGE_TIMES, "Merge Time", "merge_time") \
	COUNTER(BLOCKED_NS, NS, SUM, MERGE_TIMES, "Blocked Time", \
			"blocked_time") \
	/* what fmsort_stat adds up; the last three include sorts not ours */ \
	COUNTER(SORTS, NUMBER, DERIVED, NONE, NULL, "sorts") \
	COUNTER(SORTS_IN_MEMORY, NUMBER, DERIVED, NONE, NULL, \
			"sorts_in_memory") \
	COUNTER(SORTS_TOP_N, NUMBER, DERIVED, NONE, NULL, "sorts_top_n") \
	COUNTER(SORTS_EXTERNAL, NUMBER, DERIVED, NONE, NULL, "sorts_external") \
	COUNTER(SORTS_MULTI_PASS, NUMBER, DERIVED, NONE, NULL, \
			"sorts_multi_pass") \
	COUNTER(SPILLS_AVOIDED, NUMBER, DERIVED, NONE, NULL, "spills_avoided") \
	COUNTER(URING_REFUSED, NUMBER, DERIVED, NONE, NULL, \
			"io_uring_refused") \
	COUNTER(DIRECT_REFUSED, NUMBER, DERIVED, NONE, NULL, \
			"direct_io_refused") \
	COUNTER(BLOCK_LOWERED, NUMBER, DERIVED, NONE, NULL, \
			"block_size_lowered") \
	COUNTER(LEFT_TO_SERVER, NUMBER, DERIVED, NONE, NULL, "left_to_server") \
	COUNTER(LEFT_TO_EXTENSIONS, NUMBER, DERIVED, NONE, NULL, \
			"left_to_extensions") \
	COUNTER(FALLBACKS, NUMBER, DERIVED, NONE, NULL, "fallbacks")

#define FMS_COUNTER_MEMBER(name, unit, combination, line, label, column) \
	FMS_COUNT_##name,

typedef enum FmsCounter
{
	FMS_COUNTERS(FMS_COUNTER_MEMBER)
	FMS_NCOUNTERS
} FmsCounter;

/* In memory: the change counter, then a value for each counter. */
typedef struct FmsCounters FmsCounters;

#define FMS_COUNTERS_BYTES	((1 + FMS_NCOUNTERS) * sizeof(uint64))

/* YES_NO: 0 is not known. */
#define FMS_NO		1
#define FMS_YES		2

static inline void
fms_count(FmsCounters *counters, FmsCounter counter, uint64 n)
{
	((uint64 *) counters)[1 + counter] += n;
}

/* Several processes may do that at once. */
static inline void
fms_count_atomically(FmsCounters *counters, FmsCounter counter, uint64 n)
{
	pg_atomic_fetch_add_u64((pg_atomic_uint64 *) counters + 1 + counter, n);
}

static inline void
fms_count_set(FmsCounters *counters, FmsCounter counter, uint64 value)
{
	((uint64 *) counters)[1 + counter] = value;
}

static inline void
fms_count_us(FmsCounters *counters, FmsCounter counter, double us)
{
	fms_count(counters, counter, (uint64) (Max(us, 0) * 1000));
}

static inline void
fms_count_set_us(FmsCounters *counters, FmsCounter counter, double us)
{
	fms_count_set(counters, counter, (uint64) (Max(us, 0) * 1000));
}

/* Sets an estimate, which may exceed a bigint. */
static inline void
fms_count_set_guess(FmsCounters *counters, FmsCounter counter, double guess)
{
	fms_count_set(counters, counter, guess < (double) PG_INT64_MAX ?
				  (uint64) guess : PG_INT64_MAX);
}

/* Around a change of counters that are read together; it must not fail. */
static inline void
fms_counters_begin_change(FmsCounters *counters)
{
	(*(volatile uint64 *) counters)++;
	pg_write_barrier();
}

static inline void
fms_counters_end_change(FmsCounters *counters)
{
	pg_write_barrier();
	(*(volatile uint64 *) counters)++;
}

/* Zeroes all counters, within a change. */
static inline void
fms_counters_clear(FmsCounters *counters)
{
	memset((uint64 *) counters + 1, 0, FMS_COUNTERS_BYTES - sizeof(uint64));
}

#endif							/* FMS_COUNTERS_H */
