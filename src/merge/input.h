/*-------------------------------------------------------------------------
 *
 * input.h
 *	  The input of a merge: its runs, the buffer into which their blocks are
 *	  read, and the mode that decides which block to read when.
 *
 *-------------------------------------------------------------------------
 */
#ifndef FMS_INPUT_H
#define FMS_INPUT_H

#include "formation/formation.h"
#include "formation/run.h"
#include "order/read_order.h"
#include "tape/tape.h"

typedef struct FmsInput FmsInput;
typedef struct FmsFrame FmsFrame;

/*
 * A merge mode: which block to read, when, and into which frame.  It knows
 * nothing about tuples: a comparison of two modes compares only their reading.
 * src/README.md lists what a new mode needs.
 */
typedef struct FmsMode
{
	/*
	 * With FMS_ORDER_BY_FIRST_KEYS, the first key of a run's next block stands
	 * in the tree, and the merge calls next() when it wins; otherwise as soon
	 * as the run's block is exhausted.  If comparisons contradict each other,
	 * next() must return a block that the mode may not have read yet.
	 */
	FmsOrderBy	order;

	/* The mode uses l assist blocks; otherwise l is 0. */
	bool		assists;

	/* An automatic l fills the memory; otherwise the device decides. */
	bool		fills_memory;

	/* Number of frames for n runs and l assist blocks. */
	uint32		(*blocks) (int nruns, uint32 assist_blocks);

	/* Starts the reads that precede the merge.  NULL: there are none. */
	void		(*begin) (FmsInput *input);

	/* Waits for the run's next block, which exists: now a sort block. */
	FmsFrame   *(*next) (FmsInput *input, int run);

	/* Takes back a sort block whose records have all left. */
	void		(*exhausted) (FmsInput *input, FmsFrame *frame);
} FmsMode;

extern const FmsMode fms_mode_fmsort;
extern const FmsMode fms_mode_double_buffering;
extern const FmsMode fms_mode_traditional;
extern const FmsMode fms_mode_multi_block;
extern const FmsMode fms_mode_flash;

/* FmsMode.blocks of modes with a sort block a run and l assist blocks. */
static inline uint32
fms_mode_blocks_with_assist(int nruns, uint32 assist_blocks)
{
	return nruns + assist_blocks;
}

/*
 * A frame that is FMS_FRAME_READING is an assist block: its read is in flight,
 * or has arrived and nobody has waited for it yet.
 *
 *	  FREE --request--> READING --wait--> SORT --+
 *	    ^                                        |
 *	    +--------------- release ----------------+
 */
typedef enum FmsFrameState
{
	FMS_FRAME_FREE,
	FMS_FRAME_READING,
	FMS_FRAME_SORT				/* the merge takes records from it */
} FmsFrameState;

struct FmsFrame
{
	FmsFrameState state;
	int			run;			/* number in this merge, not the run's id */
	uint32		number;			/* of the block in its run */
	char	   *block;			/* block_bytes, in the input's memory */
	FmsIoRequest request;		/* reads it, and perhaps adjacent ones */
};

/* Largest read or batch that the merge waits for, and so does a cancel. */
#define FMS_READ_MAX_BYTES	((uint32) 64 * 1024 * 1024)

/* Parameters of a merge; must outlive it. */
typedef struct FmsMergePlan
{
	const FmsMode *mode;
	FmsKeys    *keys;
	FmsIo	   *io;
	FmsTape    *tape;
	FmsFirstKeyStore *first_keys;
	FmsCounters *counters;
	uint32		block_bytes;
	uint32		assist_blocks;	/* l; 0 if the mode has no assist blocks */
	uint32		assist_first;	/* 1 .. l: used until the merge waits */
	bool		frees;			/* intermediate pass: free blocks once read */
	const FmsFormation *in_memory_run;	/* sorted, arrived last; or NULL */
} FmsMergePlan;

struct FmsInput
{
	const FmsMergePlan *plan;
	int			nruns;			/* n */
	FmsRun	  **runs;			/* [nruns], earlier arrivals first */
	uint32	   *next_block;		/* [nruns] first block not yet requested */
	FmsReadOrder *order;		/* NULL if the mode reads in no order */
	int			upcoming;		/* run of the order's next block, or -1 */
	FmsFrame  **queue;			/* ring [nframes]: assist blocks in order */
	uint32		oldest;			/* index of the queue's oldest frame */
	uint32		queued;			/* number of frames in the queue */

	/* set by the mode */
	FmsFrame  **frame_of;		/* [nruns], NULL at first */
	uint32		assist_used;	/* assist blocks used now */
	uint64		unwaited;		/* blocks since the merge last waited */

	uint32		nframes;
	uint32		nfree;
	uint32		reading;		/* reads in flight */
	uint32		pending;		/* requests that wait to be submitted */
	FmsFrame   *frames;			/* [nframes] */
	FmsFrame  **free;			/* [nframes], the first nfree are free */
	FmsIoRequest **requests;	/* [nframes], the first `pending` in use */
	char	   *memory;			/* of the blocks, mapped */
};

/* Memory of an input of nframes frames, in bytes. */
extern Size fms_input_bytes(int nruns, uint32 nframes, uint32 block_bytes);

/* Allocates the input, in the current context.  See fms_merge_begin(). */
extern void fms_input_init(FmsInput *input, const FmsMergePlan *plan,
						   int nruns, FmsRun **runs, const FmsPosition *from);

/* Drains the reads and frees what fms_input_init() has allocated. */
extern void fms_input_end(FmsInput *input);

/* Requests the run's next block, into one of the free frames. */
extern FmsFrame *fms_input_request(FmsInput *input, int run);

/* Requests n adjacent blocks in one read; wait for the first one first. */
extern void fms_input_request_many(FmsInput *input, FmsFrame *frames, int run,
								   uint32 n);

/* Starts all reads that have been requested. */
extern void fms_input_submit(FmsInput *input);

/* Waits for the frame's block, checks it, and makes it a sort block. */
extern FmsFrame *fms_input_wait(FmsInput *input, FmsFrame *frame);

/* Frees the frame of a sort block. */
extern void fms_input_release(FmsInput *input, FmsFrame *frame);

/* Requests the upcoming block, which must exist.  It joins the queue. */
extern void fms_input_enqueue(FmsInput *input);

/* Takes the run's next block out of the queue: usually the oldest one. */
extern FmsFrame *fms_input_dequeue(FmsInput *input, int run);

/* The queue's frame i; 0 is the oldest one. */
static inline FmsFrame **
fms_input_queued(FmsInput *input, uint32 i)
{
	return &input->queue[(input->oldest + i) % input->nframes];
}

static inline bool
fms_input_has_block(const FmsInput *input, int run)
{
	return input->next_block[run] < input->runs[run]->nblocks;
}

#endif							/* FMS_INPUT_H */
