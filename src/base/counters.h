/*-------------------------------------------------------------------------
 *
 * counters.h
 *	  What a sort did, in numbers.
 *
 * One struct without a pointer in it, so that it can lie in shared memory, be
 * kept after its sort is gone, and be handed to EXPLAIN, to fmsort_last_sort()
 * and to a test alike.  Each layer counts what it alone knows; nobody adds the
 * same thing twice.
 *
 * Whoever begins a sort says where it counts.  If that is shared memory, other
 * processes read along while it runs (progress.c).  Most fields are counts
 * that mean something by themselves; they are stored as they grow, which costs
 * what counting costs.  Fields that are read together change together, between
 * fms_counters_begin_change() and _end_change(): a reader who finds `changes`
 * odd, or another one after copying than before, copies again.
 *
 * Times.  Stopwatches measure the phases at their ends, and samples only
 * divide what has been measured (clock.h), so these hold whatever the
 * machine is busy with:
 *
 *	  input <= formation
 *	  blocked <= merge
 *	  formation + order + merge <= time in the node
 *
 *	  |<------ formation ------>|<-------------- merge --------------->|
 *	  input  put  input  put ...  pass, order, pass, order, step  parent  step
 *									    -----        -----         ------
 *									  order: not merge			 not the node's
 *
 *-------------------------------------------------------------------------
 */
#ifndef FMS_COUNTERS_H
#define FMS_COUNTERS_H

#include "c.h"

#include "port/atomics.h"
#include "portability/instr_time.h"

#include "base/options.h"

typedef enum FmsSortMethod
{
	FMS_METHOD_STILL_LOADING,
	FMS_METHOD_IN_MEMORY,
	FMS_METHOD_TOP_N,			/* in memory, tuples past a bound dropped */
	FMS_METHOD_EXTERNAL_MERGE
} FmsSortMethod;

/* What a sort is doing. */
typedef enum FmsPhase
{
	FMS_PHASE_LOADING,			/* run formation */
	FMS_PHASE_PASSES,			/* merging runs into runs */
	FMS_PHASE_MERGING,			/* the last merge, which feeds the parent */
	FMS_PHASE_IN_MEMORY			/* handing out tuples from memory */
} FmsPhase;

/* Why what was written last has bypassed the page cache, or not. */
typedef enum FmsDirectReason
{
	FMS_DIRECT_AS_SET,			/* the setting says so */
	FMS_DIRECT_SMALL,			/* not: the page cache has room for it */
	FMS_DIRECT_SLOW,			/* not: the device is slow, and there is
								 * memory */
	FMS_DIRECT_EXPECTED,		/* it has none for what the planner expects */
	FMS_DIRECT_CROWDED,			/* nor has memory, beside the input */
	FMS_DIRECT_OUTGROWN,		/* it had room at first */
	FMS_DIRECT_FAST				/* the device is as fast */
} FmsDirectReason;

/* Why what was written last was compressed, or not. */
typedef enum FmsCompressReason
{
	FMS_COMPRESS_AS_SET,		/* the setting says so */
	FMS_COMPRESS_NO_NEED,		/* not: the device is not slow, or memory has
								 * room for the spill */
	FMS_COMPRESS_SLOW,			/* the device is slow, and memory has not */
	FMS_COMPRESS_GAINED_LITTLE	/* not any more: it made little difference */
} FmsCompressReason;

/* Such a reason speaks for the page cache. */
#define FMS_DIRECT_IS_CACHED(reason) \
	((reason) == FMS_DIRECT_SMALL || (reason) == FMS_DIRECT_SLOW)

typedef struct FmsCounters
{
	uint32		changes;		/* see above */
	FmsOptions	options;		/* the settings it runs under */
	instr_time	began;

	/* what happened (sort.c) */
	FmsPhase	phase;
	FmsSortMethod method;
	FmsModeChoice mode;
	uint64		sorts;			/* 1, or groups of presorted input */
	uint64		tuples;			/* put into the sort */
	uint64		memory_bytes;	/* tuples and entries at the end of input */
	uint64		input_bytes;	/* tuples and entries, if memory had held them
								 * all; estimated where a bound dropped some */
	uint64		kept_bytes;		/* of them, merged from memory, not written */

	/* run formation and passes (formation.c, sort.c) */
	uint64		runs;			/* written by run formation */
	uint64		runs_tuples;	/* in them */
	uint64		full_tuples;	/* in memory when it was first full, or 0 */
	uint32		merge_passes;	/* 1 = every tuple was written once */

	/* the merge going on (spill.c, merge.c) */
	uint32		runs_at_first;	/* before any merge */
	uint32		runs_at_last;	/* what the last merge can take */
	uint32		runs_left;		/* when this merge began */
	uint32		merge_runs;		/* of them, in this merge */
	uint64		merge_blocks;	/* of these; that is what it will read */
	uint64		merge_blocks_done;	/* of these, asked for */

	/* advice for external sorts: the memory that would have done */
	uint64		one_pass_bytes;
	uint64		in_memory_bytes;

	/* the tape and its blocks (tape.c, run.c, merge.c) */
	uint64		blocks;			/* written by run formation */
	uint32		block_bytes;
	uint32		assist_blocks;	/* of the last merge; 0: it has none */
	uint32		assist_used;	/* of them, at once: grows as it has to wait;
								 * 0: the mode uses them otherwise */
	bool		uses_uring;
	bool		uses_direct_io;
	FmsDirectReason direct_reason;
	uint64		compressible_bytes;	/* of records that were compressed */
	uint64		compressed_bytes;	/* what was written for them */
	FmsCompressReason compress_reason;
	uint64		cached_bytes;	/* of those written, into the page cache */
	double		device_mb;		/* its round trip (device.h); 0: not known */
	bool		device_seen;	/* by this sort, which overruled a profile */
	uint64		spilled_bytes;	/* size of the temporary files */
	uint64		read_bytes;
	uint64		written_bytes;
	uint64		reads;			/* requests */
	uint64		read_batches;	/* submissions that carried reads */
	uint64		writes;

	/* run formation as it goes on, in microseconds (sort.c) */
	double		first_us;		/* of input_us, until the first tuple */
	double		full_us;		/* began .. memory was first full */
	double		runs_us;		/* sorting and writing runs */
	double		run_began_us;	/* began .. the run being written, or 0 */

	/* time, in microseconds */
	double		formation_us;	/* first tuple asked for .. last run written,
								 * the input's own time included */
	double		input_us;		/* of that, between the tuples put */
	double		order_us;		/* putting first keys in order */
	double		merge_us;		/* all passes, without that and the parent's
								 * time */
	double		load_us;		/* the last pass getting its blocks, with
								 * their order */
	double		blocked_us;		/* of merge_us, waiting for blocks */
	double		write_blocked_us;	/* waiting for writes, whenever */
	double		cached_us;		/* writes to the page cache: copying, and
								 * waiting for those who copy */
} FmsCounters;

/* As the setting calls it. */
static inline const char *
fms_counters_io_method(const FmsCounters *counters)
{
	return fms_io_method_name(counters->uses_uring ? FMS_IO_URING :
							  FMS_IO_SYNC);
}

/* Around a change of several fields; nothing in between may fail. */
static inline void
fms_counters_begin_change(FmsCounters *counters)
{
	(*(volatile uint32 *) &counters->changes)++;
	pg_write_barrier();
}

static inline void
fms_counters_end_change(FmsCounters *counters)
{
	pg_write_barrier();
	(*(volatile uint32 *) &counters->changes)++;
}

/* All zero again, as one change. */
static inline void
fms_counters_clear(FmsCounters *counters)
{
	fms_counters_begin_change(counters);
	memset((char *) counters + sizeof(counters->changes), 0,
		   sizeof(FmsCounters) - sizeof(counters->changes));
	fms_counters_end_change(counters);
}

/*
 * Adds one sort's numbers to those of the sorts before it: the groups of a
 * presorted input, which count as one.  What a sum makes no sense of is the
 * last one's, or the largest.
 */
static inline void
fms_counters_add(FmsCounters *total, const FmsCounters *one)
{
	FmsCounters sum = *one;

	sum.method = Max(total->method, one->method);
	sum.sorts += total->sorts;
	sum.tuples += total->tuples;
	sum.memory_bytes = Max(total->memory_bytes, one->memory_bytes);
	sum.input_bytes += total->input_bytes;
	sum.kept_bytes += total->kept_bytes;
	sum.one_pass_bytes = Max(total->one_pass_bytes, one->one_pass_bytes);
	sum.in_memory_bytes = Max(total->in_memory_bytes, one->in_memory_bytes);
	sum.runs += total->runs;
	sum.merge_passes = Max(total->merge_passes, one->merge_passes);
	sum.blocks += total->blocks;
	sum.block_bytes = Max(total->block_bytes, one->block_bytes);
	sum.assist_blocks = Max(total->assist_blocks, one->assist_blocks);
	sum.assist_used = Max(total->assist_used, one->assist_used);
	sum.uses_uring |= total->uses_uring;
	sum.uses_direct_io |= total->uses_direct_io;
	sum.compressible_bytes += total->compressible_bytes;
	sum.compressed_bytes += total->compressed_bytes;
	sum.cached_bytes += total->cached_bytes;
	sum.device_seen |= total->device_seen;
	sum.spilled_bytes += total->spilled_bytes;
	sum.read_bytes += total->read_bytes;
	sum.written_bytes += total->written_bytes;
	sum.reads += total->reads;
	sum.read_batches += total->read_batches;
	sum.writes += total->writes;
	sum.formation_us += total->formation_us;
	sum.input_us += total->input_us;
	sum.order_us += total->order_us;
	sum.merge_us += total->merge_us;
	sum.load_us += total->load_us;
	sum.blocked_us += total->blocked_us;
	sum.write_blocked_us += total->write_blocked_us;
	*total = sum;
}

/* The sort's own time: without its input's, and without its parent's. */
static inline double
fms_counters_own_us(const FmsCounters *counters)
{
	return counters->formation_us - counters->input_us +
		counters->order_us + counters->merge_us;
}

/*
 * The executor has measured elapsed_us in the node.  Where that is less than
 * the phases together, the samples of the last merge were too high.
 */
static inline void
fms_counters_limit(FmsCounters *counters, double elapsed_us)
{
	double		left_us = elapsed_us - counters->formation_us -
		counters->order_us;

	counters->merge_us = Max(0, Min(counters->merge_us, left_us));
	counters->blocked_us = Min(counters->blocked_us, counters->merge_us);
}

/* io_uring was to be used if possible, and was not. */
static inline bool
fms_counters_uring_refused(const FmsCounters *counters)
{
	return counters->method == FMS_METHOD_EXTERNAL_MERGE &&
		counters->options.io_method == FMS_IO_AUTO && !counters->uses_uring;
}

/* Direct I/O was to be used if possible, and was not. */
static inline bool
fms_counters_direct_refused(const FmsCounters *counters)
{
	return counters->method == FMS_METHOD_EXTERNAL_MERGE &&
		counters->options.direct_io == FMS_DIRECT_AUTO &&
		!counters->uses_direct_io &&
		!FMS_DIRECT_IS_CACHED(counters->direct_reason);
}

/* work_mem holds no two runs' blocks of the size that was set. */
static inline bool
fms_counters_block_lowered(const FmsCounters *counters)
{
	return counters->method == FMS_METHOD_EXTERNAL_MERGE &&
		counters->options.block_bytes > counters->block_bytes;
}

/* Is it the kind of sort that writes to disk? */
static inline bool
fms_counters_external(const FmsCounters *counters)
{
	return counters->method == FMS_METHOD_EXTERNAL_MERGE;
}

/* How many times smaller compression has made what was written; 1: not. */
static inline double
fms_counters_compression(const FmsCounters *counters)
{
	double		written = (double) counters->written_bytes;

	return counters->compressible_bytes == 0 || written == 0 ? 1 :
		(written + counters->compressible_bytes - counters->compressed_bytes) /
		written;
}

/* kB on disk or, where nothing is there, in memory. */
static inline uint64
fms_counters_space_kb(const FmsCounters *counters)
{
	uint64		bytes = fms_counters_external(counters) ?
		counters->spilled_bytes : counters->memory_bytes;

	return (bytes + 1023) / 1024;
}

/* The contract's name of the method. */
static inline const char *
fms_counters_method_name(const FmsCounters *counters)
{
	switch (counters->method)
	{
		case FMS_METHOD_STILL_LOADING:
			return "still in progress";
		case FMS_METHOD_IN_MEMORY:
			return "in-memory";
		case FMS_METHOD_TOP_N:
			return "top-N";
		case FMS_METHOD_EXTERNAL_MERGE:
			return "external merge";
	}
	return "unknown";
}

#endif							/* FMS_COUNTERS_H */
