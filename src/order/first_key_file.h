/*-------------------------------------------------------------------------
 *
 * first_key_file.h
 *	  The temporary file of first keys: chunks, written in sequence and read
 *	  back run by run.
 *
 *-------------------------------------------------------------------------
 */
#ifndef FMS_FIRST_KEY_FILE_H
#define FMS_FIRST_KEY_FILE_H

#include "postgres.h"

#include "storage/buffile.h"

#include "base/checksum.h"
#include "base/counters.h"
#include "base/shared_files.h"

/*
 * Usual size of a chunk in bytes.  Each run of a merge has two chunks in
 * memory, beside a block of 4 kB or more.  A read costs the 8 kB that a
 * BufFile loads, for about 100 keys of a number or a date.
 */
#define FMS_FIRST_KEY_CHUNK_BYTES	((Size) 1024)

/*
 * The header of a chunk, in memory and in the file; packed keys follow, one at
 * least.
 */
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

typedef struct FmsFirstKeyFile FmsFirstKeyFile;

/*
 * Opens a temporary file under the current resource owner, with memory of the
 * current context.  counters receive the bytes written and read.  shared:
 * where the leader of a parallel sort will find it, or NULL.
 */
extern FmsFirstKeyFile *fms_first_key_file_open(const FmsSharedFiles *shared,
												FmsCounters *counters);

/*
 * Opens a file that another process has written and finished.  largest_bytes:
 * what fms_first_key_file_largest() said there.
 */
extern FmsFirstKeyFile *fms_first_key_file_adopt(const FmsSharedFiles *shared,
												 Size largest_bytes,
												 FmsCounters *counters);

/* A shared file is complete. */
extern void fms_first_key_file_finish(FmsFirstKeyFile *file);

/* Closes the file.  It is deleted, or if it is shared, its set does that. */
extern void fms_first_key_file_close(FmsFirstKeyFile *file);

/* Memory of the largest chunk in the file, in bytes. */
extern Size fms_first_key_file_largest(const FmsFirstKeyFile *file);

/*
 * Writes the chunk, which becomes the last one of the extent.  No other extent
 * may have grown since this one began.
 */
extern void fms_first_key_file_append(FmsFirstKeyFile *file,
									  FmsFirstKeyExtent *extent,
									  FmsFirstKeyChunk *chunk);

/*
 * Reads the first chunk of the extent into a buffer of buffer_bytes, and
 * removes it from the extent.  A chunk that is not the one written there
 * raises ERRCODE_DATA_CORRUPTED.
 */
extern void fms_first_key_file_read(FmsFirstKeyFile *file,
									FmsFirstKeyExtent *extent,
									FmsFirstKeyChunk *buffer,
									Size buffer_bytes);

#endif							/* FMS_FIRST_KEY_FILE_H */
