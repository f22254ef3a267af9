/*-------------------------------------------------------------------------
 *
 * run.h
 *	  A sorted run on the tape, and the writer that makes one.
 *
 *-------------------------------------------------------------------------
 */
#ifndef FMS_RUN_H
#define FMS_RUN_H

#include "postgres.h"

#include "order/fences.h"
#include "order/order.h"
#include "tape/tape.h"

/* Blocks of a run that lie one behind the other. */
typedef struct FmsExtent
{
	uint64		offset_bytes;	/* of the first of them */
	uint32		first;			/* its number in the run */
} FmsExtent;

typedef struct FmsRun
{
	uint32		id;				/* unique in its sort; stands in its blocks */
	uint32		nblocks;
	uint32		level;			/* 0: from run formation; else passes that its
								 * tuples have been through */
	FmsExtent  *extents;		/* in order; NULL: no blocks yet */
	uint32		nextents;
	uint32		extents_size;	/* room for so many */
	uint32		largest_bytes;	/* of any record; sizes assembly buffers */
	uint64		compressible_bytes;	/* of records in compressed chunks */
	uint64		compressed_bytes;	/* of these chunks */
	FmsFences	fences;			/* one per chain of blocks */
} FmsRun;

/* Where a block of the run begins. */
extern uint64 fms_run_place(const FmsRun *run, uint32 number,
							uint32 block_bytes);

/* How many lie there in a row, it and those behind it? */
extern uint32 fms_run_in_a_row(const FmsRun *run, uint32 number);

/* Frees what the run holds, but not itself. */
extern void fms_run_forget(FmsRun *run);

typedef struct FmsRunWriter FmsRunWriter;

/*
 * Memory that a writer takes which may have so much: its output buffers.  More
 * if it must be, as they are large enough for blocks of that size, and two at
 * least, so that one can be filled while another is written.
 */
extern Size fms_run_writer_bytes(Size output_bytes, uint32 block_bytes);

/*
 * The same memory is used for run after run.  Notes fences for a merge that
 * reads in that order; for none, first keys.  Current context; may ERROR.
 */
extern FmsRunWriter *fms_run_writer_create(FmsIo *io, FmsTape *tape,
										   FmsFenceStore *fences,
										   FmsOrderBy order,
										   FmsCounters *counters,
										   uint32 block_bytes,
										   Size output_bytes);

/*
 * Waits for what is still being written, and gives the buffers back until
 * another run is written.
 */
extern void fms_run_writer_rest(FmsRunWriter *writer);

/* Waits for what is still being written, and frees the writer. */
extern void fms_run_writer_destroy(FmsRunWriter *writer);

/*
 * Begins an empty run.  Compressed, its blocks hold chunks as long as no
 * record is too large for them.  Current context; may ERROR.
 */
extern void fms_run_begin(FmsRunWriter *writer, FmsRun *run, uint32 id,
						  uint32 level, bool compressed);

/* Appends a record, which must not sort before the last one. */
extern void fms_run_append(FmsRunWriter *writer, const FmsRecord *record);

/*
 * Ends the run.  Its last writes may still be in flight; fms_run_flush()
 * must come before it is read.
 */
extern void fms_run_finish(FmsRunWriter *writer);

/* Waits until everything is on the tape; reports failed writes. */
extern void fms_run_flush(FmsRunWriter *writer);

#endif							/* FMS_RUN_H */
