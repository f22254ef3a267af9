/*-------------------------------------------------------------------------
 *
 * first_key_store.h
 *	  The first keys of all runs' blocks: noted while a run is written.
 *
 *-------------------------------------------------------------------------
 */
#ifndef FMS_FIRST_KEY_STORE_H
#define FMS_FIRST_KEY_STORE_H

#include "postgres.h"

#include "base/counters.h"
#include "keys/keys.h"
#include "order/first_key_codec.h"
#include "order/first_key_tape.h"

/* One run's first keys: chunks in memory, followed by chunks on tape. */
typedef struct FmsFirstKeys
{
	FmsFirstKeyChunk *first;	/* in memory, or NULL */
	uint64		tape_offset_bytes;
	uint64		tape_bytes;		/* 0: all chunks are in memory */
} FmsFirstKeys;

/* The fields are for order/ to read. */
typedef struct FmsFirstKeyStore
{
	MemoryContext context;
	FmsKeys    *keys;
	Size		share_bytes;
	Size		memory_bytes;	/* of chunks in memory */
	FmsFirstKeyTape tape;
	FmsFirstKeyChunk *open;		/* being filled, in memory or on tape; NULL:
								 * the run has none */
	FmsKeyWords noted[2];		/* the open chunk's last key, and room for the
								 * next */
	int			last_noted;		/* index of the last key */
} FmsFirstKeyStore;

/*
 * Creates an empty store in the current context, whose owner drains the
 * channel.  Chunks of all runs take at most share_bytes of memory; then the
 * tape is opened, with its write buffer.
 */
extern FmsFirstKeyStore *fms_first_keys_create(FmsKeys *keys, FmsIo *io,
											   Size share_bytes);

/*
 * Closes the tape and frees the store.  Chunks in memory go with the context.
 * The channel is closed already, or will be without further use.
 */
extern void fms_first_keys_destroy(FmsFirstKeyStore *store);

/* The numbers of a store that decide how much memory a merge needs. */
typedef struct FmsFirstKeyMemory
{
	Size		share_bytes;	/* as created; 0: there is no store yet */
	Size		memory_bytes;	/* taken now */
	Size		largest_bytes;	/* of any chunk on tape */
	bool		on_tape;		/* some first keys are on tape */
	bool		prefix_decides; /* see fms_keys_prefix_decides() */
} FmsFirstKeyMemory;

extern FmsFirstKeyMemory fms_first_keys_memory(const FmsFirstKeyStore *store);

/* Counts the tape's transfers and growth since the last call. */
extern void fms_first_keys_count(FmsFirstKeyStore *store,
								 FmsCounters *counters);

/*
 * Algorithm 1, lines 7 and 8: notes that the run's next block starts with the
 * record, which extends over nblocks blocks (usually 1).  first_keys starts
 * zeroed; one run at a time can be noting.
 */
extern void fms_first_keys_note(FmsFirstKeyStore *store,
								FmsFirstKeys *first_keys,
								const FmsRecord *record, uint32 nblocks);

/* Completes the run. */
extern void fms_first_keys_finish(FmsFirstKeyStore *store,
								  FmsFirstKeys *first_keys);

/* Waits until all complete runs can be read. */
extern void fms_first_keys_flush(FmsFirstKeyStore *store);

/* Frees the chunks of a run that has been merged into another one. */
extern void fms_first_keys_forget(FmsFirstKeyStore *store,
								  FmsFirstKeys *first_keys);

#endif							/* FMS_FIRST_KEY_STORE_H */
