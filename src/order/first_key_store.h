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
#include "order/first_key_file.h"

/* One run's first keys: chunks in memory, followed by chunks in the file. */
typedef struct FmsFirstKeys
{
	FmsFirstKeyChunk *first;	/* in memory, or NULL */
	FmsFirstKeyExtent extent;	/* in the file */
	uint32		nblocks;		/* keys behind those of them do not count */
} FmsFirstKeys;

/* The fields are for order/ to read. */
typedef struct FmsFirstKeyStore
{
	MemoryContext context;
	FmsKeys    *keys;
	FmsCounters *counters;
	const FmsSharedFiles *shared;	/* where the file is, or NULL */
	Size		share_bytes;
	Size		memory_bytes;	/* of chunks in memory */
	FmsFirstKeyFile *file;		/* NULL until a chunk goes there */
	FmsFirstKeyChunk *open;		/* being filled; NULL: the run has none */
	bool		to_file;		/* it and the run's further ones go there */
	FmsKeyWords noted[2];		/* the open chunk's last key, and room for the
								 * next */
	int			last_noted;		/* index of the last key */
} FmsFirstKeyStore;

/*
 * Creates an empty store in the current context.  Chunks of all runs take at
 * most share_bytes of memory; further ones go to a temporary file, and their
 * bytes to the counters.  A worker of a parallel sort, which `shared` names,
 * has all in its file.
 */
extern FmsFirstKeyStore *fms_first_keys_create(FmsKeys *keys,
											   FmsCounters *counters,
											   Size share_bytes,
											   const FmsSharedFiles *shared);

/* Closes the file and frees the store.  Chunks go with the context. */
extern void fms_first_keys_destroy(FmsFirstKeyStore *store);

/* A worker's file is complete. */
extern void fms_first_keys_hand_over(FmsFirstKeyStore *store);

/* The numbers of a store that decide how much memory a merge needs. */
typedef struct FmsFirstKeyMemory
{
	Size		share_bytes;	/* as created; 0: there is no store yet */
	Size		memory_bytes;	/* taken now */
	Size		largest_bytes;	/* of any chunk in the file; 0: none is */
} FmsFirstKeyMemory;

extern FmsFirstKeyMemory fms_first_keys_memory(const FmsFirstKeyStore *store);

/*
 * Algorithm 1, lines 7 and 8: notes that the run's next block starts with the
 * record, which extends over nblocks blocks (usually 1).  rows_before: number
 * of records that begin in the run's blocks between the last note and this
 * one.  first_keys starts zeroed; one run at a time can be noting.
 */
extern void fms_first_keys_note(FmsFirstKeyStore *store,
								FmsFirstKeys *first_keys,
								const FmsRecord *record, uint32 nblocks,
								uint32 rows_before);

/* Completes the run. */
extern void fms_first_keys_finish(FmsFirstKeyStore *store,
								  FmsFirstKeys *first_keys);

/* Frees the chunks of a run that has been merged into another one. */
extern void fms_first_keys_forget(FmsFirstKeyStore *store,
								  FmsFirstKeys *first_keys);

#endif							/* FMS_FIRST_KEY_STORE_H */
