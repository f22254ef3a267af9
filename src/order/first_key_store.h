/*-------------------------------------------------------------------------
 *
 * first_key_store.h
 *	  The first keys of all runs' blocks: noted while a run is written, kept
 *	  in memory or in a temporary file, and read in sequence.
 *
 *-------------------------------------------------------------------------
 */
#ifndef FMS_FIRST_KEY_STORE_H
#define FMS_FIRST_KEY_STORE_H

#include "storage/buffile.h"

#include "base/checksum.h"
#include "base/counters.h"
#include "base/options.h"
#include "keys/keys.h"
#include "order/first_key_codec.h"

/* Usual size of a chunk in bytes: about 100 keys of a number or a date. */
#define FMS_FIRST_KEY_CHUNK_BYTES	((Size) 1024)

/* The header of a chunk; packed keys follow, one at least. */
typedef struct FmsFirstKeyChunk
{
	FmsChecksum checksum;		/* in the file only, as the next two */
	uint32		magic;
	uint32		number;			/* in the file */
	uint32		size_bytes;		/* of its memory */
	uint32		used_bytes;		/* header included */
	struct FmsFirstKeyChunk *next;	/* in memory only */
} FmsFirstKeyChunk;

StaticAssertDecl(sizeof(FmsFirstKeyChunk) == 32 &&
				 offsetof(FmsFirstKeyChunk, checksum) == 0,
				 "chunks go to disk: their header must not be padded");

/* Successive chunks in the file; starts zeroed. */
typedef struct FmsFirstKeyExtent
{
	uint64		offset_bytes;
	uint32		number;			/* of the first chunk */
	uint32		nchunks;
} FmsFirstKeyExtent;

/* One run's first keys: chunks in memory, followed by chunks in the file. */
typedef struct FmsFirstKeys
{
	FmsFirstKeyChunk *first;	/* in memory, or NULL */
	FmsFirstKeyExtent extent;	/* in the file */
	uint32		nblocks;		/* keys behind those of them do not count */
} FmsFirstKeys;

typedef struct FmsFirstKeyFile
{
	BufFile    *file;
	FmsCounters *counters;
	uint32		salt;			/* of all checksums */
	uint32		nchunks;
	uint64		end_bytes;
	Size		largest_bytes;	/* memory of the largest chunk */
} FmsFirstKeyFile;

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
	FmsKeyWords noted[2];		/* the open chunk's last key, and the next */
	int			last_noted;		/* index of the last key */
} FmsFirstKeyStore;

/* What decides how much memory a merge needs. */
typedef struct FmsFirstKeyMemory
{
	Size		share_bytes;	/* as created; 0: there is no store yet */
	Size		memory_bytes;	/* taken now */
	Size		largest_bytes;	/* of any chunk in the file; 0: none is */
} FmsFirstKeyMemory;

/* ---- first_key_store.c ---- */

/*
 * Creates an empty store in the current context.  Chunks beyond share_bytes of
 * memory, or all of a parallel worker (`shared`), go to a temporary file.
 */
extern FmsFirstKeyStore *fms_first_keys_create(FmsKeys *keys,
											   FmsCounters *counters,
											   Size share_bytes,
											   const FmsSharedFiles *shared);

/* Closes the file and frees the store.  Chunks go with the context. */
extern void fms_first_keys_destroy(FmsFirstKeyStore *store);

/* A worker's file is complete. */
extern void fms_first_keys_hand_over(FmsFirstKeyStore *store);

extern FmsFirstKeyMemory fms_first_keys_memory(const FmsFirstKeyStore *store);

/*
 * Algorithm 1, lines 7 and 8: notes that the run's next block starts with the
 * record, which extends over nblocks blocks.  rows_before: number of records
 * that begin in the run's blocks since the last note.  first_keys starts
 * zeroed; one run at a time can be noting.
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

/* ---- first_key_file.c ---- */

/* Opens a temporary file.  shared: where the leader will find it, or NULL. */
extern FmsFirstKeyFile *fms_first_key_file_open(const FmsSharedFiles *shared,
												FmsCounters *counters);

/* Opens a file that another process has finished, with its largest_bytes. */
extern FmsFirstKeyFile *fms_first_key_file_adopt(const FmsSharedFiles *shared,
												 Size largest_bytes,
												 FmsCounters *counters);

/* Closes the file.  It is deleted, or if it is shared, its set does that. */
extern void fms_first_key_file_close(FmsFirstKeyFile *file);

/* Writes the chunk.  No other extent may have grown since this one began. */
extern void fms_first_key_file_append(FmsFirstKeyFile *file,
									  FmsFirstKeyExtent *extent,
									  FmsFirstKeyChunk *chunk);

/* Moves the extent's first chunk to a buffer, and checks that it is it. */
extern void fms_first_key_file_read(FmsFirstKeyFile *file,
									FmsFirstKeyExtent *extent,
									FmsFirstKeyChunk *buffer,
									Size buffer_bytes);

/* ---- first_key_reader.c: one run's first keys in sequence ---- */

typedef struct FmsFirstKeyReader FmsFirstKeyReader;

/* Memory in bytes, at most: of a reader; of a run's two usual readers. */
extern Size fms_first_key_reader_bytes(const FmsFirstKeyMemory *memory);
extern Size fms_first_keys_run_bytes(void);

/* Opens a reader at a complete run's first key.  file: the store's or NULL. */
extern FmsFirstKeyReader *
fms_first_key_reader_open(FmsFirstKeyFile *file,
						  const FmsFirstKeys *first_keys);

extern void fms_first_key_reader_close(FmsFirstKeyReader *reader);

/*
 * Returns a record of the next first key, valid until the next call, with the
 * values that it was noted with; or NULL after the last one.
 */
extern const FmsRecord *fms_first_key_reader_next(FmsFirstKeyReader *reader,
												  uint32 *nblocks,
												  uint32 *rows_before);

/* Prefetches the next key.  The caller has prefetched the reader itself. */
extern void fms_first_key_reader_prefetch(const FmsFirstKeyReader *reader);

/* Copies a run's first keys from the file of another store into this one. */
extern void fms_first_keys_adopt(FmsFirstKeyStore *store,
								 FmsFirstKeyFile *file,
								 FmsFirstKeys *first_keys);

#endif							/* FMS_FIRST_KEY_STORE_H */
