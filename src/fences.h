/*-------------------------------------------------------------------------
 *
 * fences.h
 *	  The first keys of a run's blocks: noted while the run is written, read
 *	  back in the same order while it is merged.
 *
 *-------------------------------------------------------------------------
 */
#ifndef FMS_FENCES_H
#define FMS_FENCES_H

#include "postgres.h"

#include "counters.h"
#include "io.h"
#include "keys.h"
#include "tape.h"

/*
 * A fence as it is read.  The record of a block's first key is in parts, which
 * need not be aligned; fms_fence_record() makes one of them.
 */
typedef struct FmsFence
{
	uint32		nblocks;		/* that the block's first record extends over;
								 * > 1: a chain of blocks */
	uint32		key_bytes;
	uint32		tuple_bytes;	/* as in FmsRecord */
	uint32		packed_bytes;	/* what it takes in its chunk */
	const char *key;
	const char *tuple;			/* its data; anything if there is none: then
								 * the key is all there is to compare */
} FmsFence;

static inline Size
fms_fence_record_bytes(const FmsFence *fence)
{
	return fms_record_size(fence->key_bytes, fence->tuple_bytes);
}

/* Writes its record where there is room for it. */
static inline void
fms_fence_record(const FmsFence *fence, FmsRecord *record)
{
	bool		exact = fence->tuple_bytes == 0;

	fms_record_write(record, fence->key, fence->key_bytes,
					 FMS_RECORD_FENCE | (exact ? FMS_RECORD_EXACT : 0),
					 fence->tuple - FMS_TUPLE_SKIPPED_BYTES,
					 fence->tuple_bytes);
}

/* Where one run's fences are: some in memory, the ones after them on tape. */
typedef struct FmsFences
{
	struct FmsFenceChunk *first;	/* in memory */
	struct FmsFenceChunk *last;
	uint64		tape_offset_bytes;	/* of the chunks on tape */
	uint64		tape_bytes;		/* of them; 0: all are in memory */
} FmsFences;

/* What the fences of all runs of a sort share. */
typedef struct FmsFenceStore FmsFenceStore;

/*
 * An empty store in the current context, which must be the one whose owner
 * drains the channel.  Fences of all runs together take at most share_bytes
 * of memory (and a buffer's worth); then a tape of their own is opened.
 */
extern FmsFenceStore *fms_fences_create(FmsKeys *keys, FmsIo *io,
										Size share_bytes);

/*
 * Closes its tape and frees it, but not the fences in memory, which go with
 * the context.  The channel has been closed, or will be without further use.
 */
extern void fms_fences_destroy(FmsFenceStore *store);

/* What a run takes in a merge if fences are on tape, and what that takes. */
extern Size fms_fences_run_bytes(Size share_bytes);
extern Size fms_fences_tape_bytes(void);

/* Memory taken now. */
extern Size fms_fences_memory_bytes(const FmsFenceStore *store);

/* Adds what the store's own tape did, and how long that took. */
extern void fms_fences_count(const FmsFenceStore *store,
							 FmsCounters *counters);

/*
 * Algorithm 1, lines 7 and 8: notes that the run's next block starts with
 * this record, and that the record extends over so many blocks (usually 1).
 * Only one run at a time can be noting; its list starts zeroed.
 */
extern void fms_fences_note(FmsFenceStore *store, FmsFences *fences,
							const FmsRecord *record, uint32 nblocks);

/* The key that would be noted of this record; valid until the next note. */
extern const FmsRecord *fms_fences_key(const FmsFenceStore *store,
									   const FmsRecord *record);

/* The run is complete. */
extern void fms_fences_finish(FmsFenceStore *store, FmsFences *fences);

/* Everything noted is where it can be read. */
extern void fms_fences_flush(FmsFenceStore *store);

/* Frees a run's fences: the run has been merged into another one. */
extern void fms_fences_forget(FmsFenceStore *store, FmsFences *fences);

typedef struct FmsFenceReader FmsFenceReader;

/* What a reader of one run's fences may take, its buffer included. */
extern Size fms_fence_reader_bytes(const FmsFenceStore *store);

/* Size of that buffer; 0 while all fences are in memory. */
extern Size fms_fence_reader_buffer_bytes(const FmsFenceStore *store);
extern FmsIo *fms_fences_io(const FmsFenceStore *store);

/*
 * Starts reading at the first fence.  Current context.  The buffer is the
 * caller's, mapped through the store's channel.
 */
extern FmsFenceReader *fms_fence_reader_open(FmsFenceStore *store,
											 const FmsFences *fences,
											 char *buffer);

/* Nothing may be in flight: unmap the buffer first, which sees to that. */
extern void fms_fence_reader_close(FmsFenceReader *reader);

/*
 * The fence it stands at, whose parts are valid until the next step; false
 * after the last one.
 */
extern bool fms_fence_reader_peek(FmsFenceReader *reader, FmsFence *fence);

/* Passes that fence, which has just been looked at. */
extern void fms_fence_reader_step(FmsFenceReader *reader,
								  const FmsFence *fence);

/*
 * Somebody is about to look at that fence.  To fetch the reader itself is up
 * to him.
 */
extern void fms_fence_reader_prefetch(const FmsFenceReader *reader);

#endif							/* FMS_FENCES_H */
