/*-------------------------------------------------------------------------
 *
 * run.h
 *	  A sorted run in a temporary file, and the writer of runs.
 *
 *-------------------------------------------------------------------------
 */
#ifndef FMS_RUN_H
#define FMS_RUN_H

#include "order/first_key_store.h"
#include "order/read_order.h"
#include "tape/tape.h"

/* Contiguous blocks of a run. */
typedef struct FmsExtent
{
	uint64		address;		/* of the first block, on the tape */
	uint32		first;			/* number of the first block in the run */
} FmsExtent;

/* The description of a run: as small as possible, there may be thousands. */
typedef struct FmsRun
{
	FmsFirstKeys first_keys;	/* one per chain of blocks */
	union
	{
		FmsExtent	extent;		/* if nextents is 1 */
		FmsExtent  *extents;	/* if nextents > 1: palloc'd, in order */
	};
	uint32		nextents;
	uint32		id;				/* unique in the sort; stored in its blocks */
	uint32		nblocks;
	uint32		level;			/* passes that its tuples have been through */
	uint32		largest_bytes;	/* of any record; sizes assembly buffers */
	uint32		last_rows;		/* records from its last first key on */
} FmsRun;

/* Memory of an FmsRun as palloc() takes it, and of its pointer in a list. */
#define FMS_RUN_BYTES	((sizeof(FmsRun) <= 64 ? 64 : 128) + 16 + \
						 2 * sizeof(FmsRun *))

StaticAssertDecl(sizeof(FmsRun) <= 128, "FMS_RUN_BYTES covers an FmsRun");

/* Where block `number` of the run is on the tape. */
extern uint64 fms_run_block_address(const FmsRun *run, uint32 number,
								   uint32 block_bytes);

/* Number of contiguous blocks from block `number` on. */
extern uint32 fms_run_contiguous_blocks(const FmsRun *run, uint32 number);

/* Adds `distance` to the addresses of the run's blocks. */
extern void fms_run_move(FmsRun *run, uint64 distance);

/* Frees the blocks that begin beyond the cutoff, perhaps all of them. */
extern void fms_run_cut(FmsRun *run, const FmsFirstKeyStore *first_keys,
						FmsTape *tape, const FmsRecord *cutoff);

/* Frees the list of extents, but neither the FmsRun nor its first keys. */
extern void fms_run_forget(FmsRun *run);

/* ---- a key that the first n rows in runs do not exceed: cutoff.c ---- */

typedef struct FmsCutoff FmsCutoff;

/* Creates it for the first `bound` rows, in the current context, as notes. */
extern FmsCutoff *fms_cutoff_create(FmsKeys *keys, uint64 bound);

/*
 * Notes that the last `rows` rows of a run do not exceed `next`, the run's
 * next one.  Returns false if the run can end before `next`, since the first n
 * rows are known and precede it.  May run a type's comparator.
 */
extern bool fms_cutoff_note(FmsCutoff *cutoff, const FmsRecord *next,
							uint64 rows);

/* NULL while less than n rows are noted.  Valid until the next note. */
extern const FmsRecord *fms_cutoff_record(const FmsCutoff *cutoff);

/* ---- the writer ---- */

typedef struct FmsRunWriter FmsRunWriter;

/* Memory of a writer's buffers, which should take output_bytes. */
extern Size fms_run_writer_bytes(Size output_bytes, uint32 block_bytes);

/*
 * Creates a writer, in the current context, which writes one run after
 * another.  `order`: which key of a block the merge's read order needs.
 * `packs`: runs may have packed records; not by last keys.  May ERROR.
 */
extern FmsRunWriter *fms_run_writer_create(FmsTape *tape,
										   FmsFirstKeyStore *first_keys,
										   FmsOrderBy order, bool packs,
										   Size output_bytes);

/* Flushes, and frees the writer. */
extern void fms_run_writer_destroy(FmsRunWriter *writer);

/*
 * Begins an empty run in *run.  compressed: until a record is too large for a
 * chunk.  cutoff, or NULL: may end the run.  Current context; may ERROR.
 */
extern void fms_run_begin(FmsRunWriter *writer, FmsRun *run, uint32 id,
						  bool compressed, FmsCutoff *cutoff);

/* Appends a record not less than the last one, if cutoff and filter let it. */
extern void fms_run_append(FmsRunWriter *writer, const FmsRecord *record);

/* Ends the run, which fms_run_flush() makes readable.  Returns its records. */
extern uint64 fms_run_finish(FmsRunWriter *writer);

/* Bytes of records that the writer has compressed, and of their chunks. */
extern void fms_run_compressed(const FmsRunWriter *writer,
							   uint64 *record_bytes, uint64 *chunk_bytes);

/*
 * Between two runs: waits for writes in flight, and frees the buffers until
 * the next run is written.  ERRORs if a write failed.
 */
extern void fms_run_flush(FmsRunWriter *writer);

#endif							/* FMS_RUN_H */
