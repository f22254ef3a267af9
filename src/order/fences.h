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

#include "base/counters.h"
#include "keys/entry.h"
#include "io/io.h"
#include "keys/keys.h"
#include "tape/tape.h"

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

/*
 * What a run takes in a merge if fences are on tape, with a reader ahead and
 * one behind, and what that tape takes.
 */
extern Size fms_fences_run_bytes(Size share_bytes);
extern Size fms_fences_tape_bytes(void);

/* Memory taken now. */
extern Size fms_fences_memory_bytes(const FmsFenceStore *store);

/* Counts the bytes that the store's own tape has moved since the last call. */
extern void fms_fences_count(FmsFenceStore *store,
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

/*
 * A reader of one run's fences: how many chunks of those on tape has it room
 * for?
 */
typedef enum FmsFenceReading
{
	FMS_FENCES_BEHIND = 1,		/* follows another one, whose chunks are in the
								 * page cache: reads each when it needs it */
	FMS_FENCES_AHEAD = 2		/* reads the next one meanwhile */
} FmsFenceReading;

/* What it may take, its buffer included. */
extern Size fms_fence_reader_bytes(const FmsFenceStore *store,
								   FmsFenceReading reading);

/* Size of that buffer; 0 while all fences are in memory. */
extern Size fms_fence_reader_buffer_bytes(const FmsFenceStore *store,
										  FmsFenceReading reading);
extern FmsIo *fms_fences_io(const FmsFenceStore *store);
extern const FmsKeys *fms_fences_keys(const FmsFenceStore *store);

/* What it was created with. */
extern Size fms_fences_share_bytes(const FmsFenceStore *store);

/*
 * Current context.  The buffer is the caller's, mapped through the store's
 * channel.  If the first fence has to be read from tape, that is asked for
 * together with what further readers need, which may be opened before any is
 * started.
 */
extern FmsFenceReader *fms_fence_reader_open(FmsFenceStore *store,
											 const FmsFences *fences,
											 FmsFenceReading reading,
											 char *buffer);

/* Stands at the first fence now. */
extern void fms_fence_reader_start(FmsFenceReader *reader);

/* Nothing may be in flight: unmap the buffer first, which sees to that. */
extern void fms_fence_reader_close(FmsFenceReader *reader);

/*
 * The record of the next fence's key, and over how many blocks the record
 * extends that it is of; valid until the next one.  NULL after the last one.
 */
extern const FmsRecord *fms_fence_reader_next(FmsFenceReader *reader,
											  uint32 *nblocks);

/*
 * Likewise up to n of them at once, for keys whose prefixes decide: of each
 * the prefix, with `back` behind it.  Returns how many; 0 after the last one.
 * All but the last of them are of one block each.
 */
extern int	fms_fence_reader_take(FmsFenceReader *reader, FmsEntry *entries,
								  int n, uint64 back, uint32 *nblocks);

/*
 * Somebody is about to ask for a fence.  To fetch the reader itself, a line of
 * the processor's caches, is up to him.
 */
extern void fms_fence_reader_prefetch(const FmsFenceReader *reader);

#endif							/* FMS_FENCES_H */
