/*-------------------------------------------------------------------------
 *
 * pool.h
 *	  The input buffer of a merge: its blocks in memory and what each of them
 *	  is doing.
 *
 *-------------------------------------------------------------------------
 */
#ifndef FMS_POOL_H
#define FMS_POOL_H

#include "postgres.h"

#include "formation/run.h"
#include "tape/tape.h"

/*
 * A block of the input buffer is exactly one of these (invariant 4):
 *
 *	  FREE --read--> READING --arrived--> ASSIST --wanted--> SORT --+
 *	    ^                                                           |
 *	    +---------------------- exhausted --------------------------+
 */
typedef enum FmsFrameState
{
	FMS_FRAME_FREE,
	FMS_FRAME_READING,			/* an assist block that has not arrived, or
								 * has and nobody has looked */
	FMS_FRAME_SORT				/* the merge takes tuples from it */
} FmsFrameState;

typedef struct FmsFrame
{
	FmsFrameState state;
	int			run;			/* number in this merge, not the run's id */
	uint32		number;			/* of the block in its run */
	char	   *block;			/* block_bytes, in the pool's memory */
	FmsIoRequest request;		/* of one block, or of several into frames
								 * next to each other: then the first's */
} FmsFrame;

typedef struct FmsPool
{
	FmsIo	   *io;
	FmsTape    *tape;
	uint32		block_bytes;
	uint32		nframes;
	uint32		nfree;
	uint32		reading;		/* frames whose read the kernel has now */
	FmsFrame   *frames;			/* [nframes] */
	FmsFrame  **free;			/* [nframes], the first nfree are free */
	FmsFrame  **batch;			/* [nframes] scratch of fms_pool_read() */
	FmsIoRequest **requests;	/* [nframes], likewise */
	char	   *memory;			/* mapped */
} FmsPool;

/* Memory a pool of so many blocks takes. */
extern Size fms_pool_bytes(uint32 nframes, uint32 block_bytes);

/* With room for another buffer behind the blocks, see io.h. */
extern FmsPool *fms_pool_create(FmsIo *io, FmsTape *tape,
								uint32 block_bytes, uint32 nframes,
								Size room_bytes);

/* Drains what is being read, and frees the pool. */
extern void fms_pool_destroy(FmsPool *pool);

/* Takes a free frame; there must be one. */
extern FmsFrame *fms_pool_take(FmsPool *pool);

/* Gives an exhausted sort block back. */
extern void fms_pool_release(FmsPool *pool, FmsFrame *frame);

/*
 * Likewise, but the frame stays the caller's: it is free for him, and nobody
 * else takes it.
 */
extern void fms_pool_vacate(FmsPool *pool, FmsFrame *frame);

/* Gives an assist block back that nobody has looked at; waits for its read. */
extern void fms_pool_give_up(FmsPool *pool, FmsFrame *frame);

/*
 * Names the block that a frame is to read; fms_pool_submit() starts the
 * reads of n such frames in one batch.
 */
extern void fms_pool_assign(FmsPool *pool, FmsFrame *frame, int run_number,
							const FmsRun *run, uint32 number);
extern void fms_pool_submit(FmsPool *pool, FmsFrame **frames, int n);

/*
 * Names n blocks of a run that follow each other, for n frames that do so,
 * too.  Submitting the first frame reads all of them in one operation; it has
 * to be waited for before the others.
 */
extern void fms_pool_assign_neighbours(FmsPool *pool, FmsFrame *frames,
									   uint32 n, int run_number,
									   const FmsRun *run, uint32 number);

/*
 * Waits until the reads of all these frames are done.  They remain what they
 * are until fms_pool_wait(), which then does not wait.
 */
extern void fms_pool_wait_for_all(FmsPool *pool, FmsFrame **frames, int n);

/*
 * Waits until the frame's block is there and makes it a sort block.  Raises
 * an error if it could not be read or is not the block it should be.
 */
extern void fms_pool_wait(FmsPool *pool, FmsFrame *frame, const FmsRun *run);

#endif							/* FMS_POOL_H */
