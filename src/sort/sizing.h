/*-------------------------------------------------------------------------
 *
 * sizing.h
 *	  How large the blocks, how many runs at once, how many assist blocks.
 *
 *-------------------------------------------------------------------------
 */
#ifndef FMS_SIZING_H
#define FMS_SIZING_H

#include "postgres.h"

#include "merge/merge.h"

typedef struct FmsSizing
{
	const FmsMode *mode;
	Size		memory_bytes;	/* for everything */
	Size		output_bytes;	/* of it, what a run writer should have */
	Size		writer_bytes;	/* of it, what a run writer takes */
	Size		first_keys_bytes;	/* of it, what first keys may take */
	Size		rest_bytes;		/* of it, tuples merged from memory */
	Size		history_bytes;	/* of it, for going back in the last merge */
	uint32		block_bytes;
	bool		block_was_set;	/* else automatic */
	bool		compressed;		/* some blocks hold chunks: a merge needs room
								 * to unpack them */
	uint32		assist_wanted;	/* l as set, or 0 = automatic */
	uint32		assist_enough;	/* what the device can use, 0: not known */
	const FmsFirstKeyStore *first_keys;	/* NULL until something is spilled */
} FmsSizing;

/* Decides on the block size, when a sort starts; fills in all of it. */
extern void fms_sizing_init(FmsSizing *sizing, const FmsMode *mode,
							const FmsOptions *options);

/* Of it, for tuples and entries while runs are being formed. */
static inline Size
fms_sizing_formation_bytes(const FmsSizing *sizing)
{
	Size		memory = sizing->memory_bytes;
	Size		taken = sizing->writer_bytes + sizing->first_keys_bytes;

	return Max(memory / 4, memory > taken ? memory - taken : 0);
}

/*
 * How much memory may tuples keep that are merged with that many runs and not
 * written?  0: the merge needs all of it.  Assist blocks are not cut down for
 * it, nor is anything kept where the block size was set: that asks for a
 * merge of blocks only.
 */
extern Size fms_sizing_rest(const FmsSizing *sizing, int nruns,
							uint32 largest_bytes);

/* What a merge's buffers may take beyond the memory to be huge pages. */
extern Size fms_sizing_rounding_bytes(const FmsSizing *sizing);

/*
 * How many runs can be merged at once, given the largest record; with a
 * writer beside the merge if the result is to be written.  At least 2, even
 * where that is more than the memory allows: two records and their blocks are
 * what no merge can do without.
 */
extern int	fms_sizing_fan_in(const FmsSizing *sizing, uint32 largest_bytes,
							  bool writes);

/* Assist blocks for merging that many runs: at least 1. */
extern uint32 fms_sizing_assist(const FmsSizing *sizing, int nruns,
								uint32 largest_bytes, bool writes);

/* What of the memory such a merge, with so many assist blocks, leaves. */
extern Size fms_sizing_spare(const FmsSizing *sizing, int nruns,
							 uint32 assist, uint32 largest_bytes,
							 bool writes);

/*
 * The least memory, in steps of 64 kB, with which a sort that had that much
 * input (tuples and entries) would have held it in memory, or have merged it
 * in one pass; under these options, but for the memory and what was expected.
 */
extern Size fms_sizing_for_memory(const FmsSizing *done,
								  const FmsOptions *options,
								  uint64 input_bytes);
extern Size fms_sizing_for_one_pass(const FmsSizing *done,
									const FmsOptions *options,
									uint64 input_bytes, uint32 largest_bytes);

/* Of so many assist blocks, how many to use before a merge had to wait. */
extern uint32 fms_sizing_assist_first(const FmsSizing *sizing, uint32 assist);

#endif							/* FMS_SIZING_H */
