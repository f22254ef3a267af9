/*-------------------------------------------------------------------------
 *
 * sizing.h
 *	  How a sort divides its memory: block size, fan-in, assist blocks.
 *
 *-------------------------------------------------------------------------
 */
#ifndef FMS_SIZING_H
#define FMS_SIZING_H

#include "merge/merge.h"

/* A sort's division of its memory; does not change while it spills. */
typedef struct FmsSizing
{
	const FmsMode *mode;
	Size		memory_bytes;	/* work_mem */
	Size		output_bytes;	/* of it, for output buffers, at most */
	Size		writer_bytes;	/* of it, taken by a run writer */
	Size		first_keys_bytes;	/* of it, for first keys */
	Size		history_bytes;	/* of it, for going back in the last merge */
	uint32		block_bytes;
	bool		block_was_set;	/* else automatic */
	int			workers;		/* that form runs, too */
	uint32		assist_wanted;	/* l as set, or 0: automatic */
	uint32		device_depth;	/* reads at once that the device can use, or
								 * 0: unknown */
} FmsSizing;

/* What the merges of a sort have to deal with. */
typedef struct FmsMergeInput
{
	FmsFirstKeyMemory first_keys;
	Size		in_memory_run_bytes;	/* tuples merged from memory */
	int			runs;			/* of the sort, on disk */
	uint32		largest_bytes;	/* of any record */
	bool		compressed;		/* some blocks hold compressed chunks */
} FmsMergeInput;

/* How one merge uses the memory. */
typedef struct FmsMergeSize
{
	uint32		assist_blocks;	/* at least 1; 0 if the mode has none */
	uint32		assist_first;	/* of them, used until the merge has to wait */
} FmsMergeSize;

/* The runs that an input becomes. */
typedef struct FmsForecast
{
	int64		runs;			/* on disk */
	Size		in_memory_run_bytes;	/* not written, at the end */
} FmsForecast;

/* The least work_mem for an input, in steps of 64 kB. */
typedef struct FmsAdvice
{
	Size		one_pass_bytes;
	Size		in_memory_bytes;
} FmsAdvice;

/* Divides the memory of a sort that starts. */
extern FmsSizing fms_sizing_choose(const FmsMode *mode,
								   const FmsOptions *options);

/* Bytes for tuples and entries while runs are formed; `runs` are on disk. */
static inline Size
fms_sizing_formation_bytes(const FmsSizing *sizing, int runs)
{
	Size		memory = sizing->memory_bytes;
	Size		taken = sizing->writer_bytes + sizing->first_keys_bytes +
		runs * FMS_RUN_BYTES;

	return Max(memory / 4, memory > taken ? memory - taken : 0);
}

/* Descriptions of runs take at most this part of work_mem. */
#define FMS_DESCRIPTIONS_FRACTION	8
/* The most runs are not fewer, however many participants there are. */
#define FMS_MOST_RUNS_MIN			4

/*
 * The most runs during run formation, divided among the participants of a
 * parallel sort.  If there are more, they are merged to half of that.
 */
static inline int
fms_sizing_most_runs(const FmsSizing *sizing)
{
	return Max(sizing->memory_bytes / FMS_DESCRIPTIONS_FRACTION /
			   FMS_RUN_BYTES / (1 + sizing->workers), FMS_MOST_RUNS_MIN);
}

/* Memory is full with used_bytes.  Bytes of the run after `runs` others. */
extern Size fms_sizing_run_bytes(const FmsSizing *sizing, uint64 runs,
								 Size used_bytes);

/*
 * Of used_bytes in memory at the end, those to keep for the last merge, beside
 * `nruns` runs.  0 if it needs all memory, or the block size was set.
 */
extern Size fms_sizing_keep_bytes(const FmsSizing *sizing,
								  const FmsMergeInput *input, int nruns,
								  Size used_bytes);

/* Number of runs, at least 2, that a merge can take; writes: into a run. */
extern int	fms_sizing_fan_in(const FmsSizing *sizing,
							  const FmsMergeInput *input, bool writes);

/* Divides the memory for a merge of `nruns` runs. */
extern FmsMergeSize fms_sizing_merge(const FmsSizing *sizing,
									 const FmsMergeInput *input, int nruns,
									 bool writes);

/* The runs of input_bytes, tuples and entries. */
extern FmsForecast fms_sizing_forecast(const FmsSizing *sizing,
									   const FmsMergeInput *input,
									   double input_bytes);

/* The work_mem for input_bytes, tuples and entries; else under the options. */
extern FmsAdvice fms_sizing_advise(const FmsMode *mode,
								   const FmsOptions *options,
								   const FmsMergeInput *input,
								   uint64 input_bytes);

#endif							/* FMS_SIZING_H */
