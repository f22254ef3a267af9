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

#include "fences.h"
#include "order.h"
#include "tape.h"

typedef struct FmsRun
{
	uint32		id;				/* unique in its sort; stands in its blocks */
	uint32		nblocks;
	uint32		level;			/* 0: from run formation; else passes that its
								 * tuples have been through */
	uint64		offset_bytes;	/* of block 0; the others follow at once */
	uint32		largest_bytes;	/* of any record; sizes assembly buffers */
	FmsFences	fences;			/* one per chain of blocks */
} FmsRun;

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

/* Waits for what is still being written, and frees the writer. */
extern void fms_run_writer_destroy(FmsRunWriter *writer);

/*
 * Begins an empty run at the end of the tape.  Compressed, its blocks hold
 * bundles as long as no record is too large for them.  May ERROR.
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
