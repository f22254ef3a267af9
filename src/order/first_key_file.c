/*-------------------------------------------------------------------------
 *
 * first_key_file.c
 *	  The temporary file of first keys: chunks, written in sequence and read
 *	  back run by run.
 *
 *	  |<- run 4 ->|<------- run 5 ------->|		all chunks of a run in a row
 *	  [chunk|chunk|chunk|large chunk|chunk| ..
 *
 * Runs are written one at a time, so a run is an extent of the file.  The file
 * is a BufFile of the server's, which limits, counts, logs and deletes it.  It
 * always has checksums: it is small beside the blocks.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <fcntl.h>

#include "miscadmin.h"

#include "order/first_key_store.h"

#define CHUNK_MAGIC			0x464D5346	/* "FMSF" */

/* Kind of a file in a set (base/options.h). */
#define KEYS_NAME			"keys"

FmsFirstKeyFile *
fms_first_key_file_open(const FmsSharedFiles *shared, FmsCounters *counters)
{
	FmsFirstKeyFile *file = palloc0(sizeof(FmsFirstKeyFile));
	char		name[FMS_SHARED_NAME_BYTES];

	file->file = shared == NULL ? BufFileCreateTemp(false) :
		BufFileCreateFileSet(shared->set,
							 fms_shared_file_name(shared, KEYS_NAME, name));
	file->counters = counters;
	file->salt = shared ? shared->salt : fms_checksum_new_salt();
	return file;
}

FmsFirstKeyFile *
fms_first_key_file_adopt(const FmsSharedFiles *shared, Size largest_bytes,
						 FmsCounters *counters)
{
	FmsFirstKeyFile *file = palloc0(sizeof(FmsFirstKeyFile));
	char		name[FMS_SHARED_NAME_BYTES];

	(void) fms_shared_file_name(shared, KEYS_NAME, name);
	file->file = BufFileOpenFileSet(shared->set, name, O_RDONLY, false);
	file->counters = counters;
	file->salt = shared->salt;
	file->largest_bytes = largest_bytes;
	return file;
}

void
fms_first_key_file_close(FmsFirstKeyFile *file)
{
	BufFileClose(file->file);
	pfree(file);
}

static void
seek(FmsFirstKeyFile *file, uint64 offset_bytes)
{
	if (BufFileSeek(file->file, 0, offset_bytes, SEEK_SET) != 0)
		ereport(ERROR,
				(errcode_for_file_access(),
				 errmsg("could not seek in sort temporary file of the block read order")));
}

void
fms_first_key_file_append(FmsFirstKeyFile *file, FmsFirstKeyExtent *extent,
						  FmsFirstKeyChunk *chunk)
{
	Size		bytes = chunk->used_bytes;

	CHECK_FOR_INTERRUPTS();
	if (extent->nchunks == 0)
	{
		extent->offset_bytes = file->end_bytes;
		extent->number = file->nchunks;
	}
	Assert(extent->number + extent->nchunks == file->nchunks);
	chunk->magic = CHUNK_MAGIC;
	chunk->number = file->nchunks;
	chunk->next = NULL;
	fms_checksum_set(&chunk->checksum, bytes, file->salt, true);
	seek(file, file->end_bytes);
	BufFileWrite(file->file, chunk, bytes);
	extent->nchunks++;
	file->nchunks++;
	file->end_bytes += bytes;
	file->largest_bytes = Max(file->largest_bytes, chunk->size_bytes);
	fms_count(file->counters, FMS_COUNT_WRITTEN_BYTES, bytes);
	fms_count(file->counters, FMS_COUNT_SPILLED_BYTES, bytes);
}

pg_noinline static void
report_bad_chunk(uint32 expected, const FmsFirstKeyChunk *chunk)
{
	ereport(ERROR,
			(errcode(ERRCODE_DATA_CORRUPTED),
			 errmsg("block read order in sort temporary file is corrupted"),
			 errdetail("The block read order's chunk %u is wrong: number %u, magic %08X.",
					   expected, chunk->number, chunk->magic),
			 errhint("The storage did not return what was written. Check the device before you run the query again.")));
}

/* Reads the next bytes of the file; false at its end. */
static bool
read_next(FmsFirstKeyFile *file, void *buffer, Size bytes)
{
	return BufFileRead(file->file, buffer, bytes) == bytes;
}

void
fms_first_key_file_read(FmsFirstKeyFile *file, FmsFirstKeyExtent *extent,
						FmsFirstKeyChunk *buffer, Size buffer_bytes)
{
	Assert(extent->nchunks > 0);

	CHECK_FOR_INTERRUPTS();
	/* if the file has been cut off, the error shows zeros */
	memset(buffer, 0, sizeof(FmsFirstKeyChunk));
	seek(file, extent->offset_bytes);
	/* the size is needed before the checksum can be: it must be plausible */
	if (!read_next(file, buffer, sizeof(FmsFirstKeyChunk)) ||
		buffer->used_bytes <= sizeof(FmsFirstKeyChunk) ||
		buffer->used_bytes > buffer_bytes ||
		!read_next(file, buffer + 1,
				   buffer->used_bytes - sizeof(FmsFirstKeyChunk)) ||
		!fms_checksum_holds(&buffer->checksum, buffer->used_bytes,
							file->salt, true) ||
		buffer->magic != CHUNK_MAGIC || buffer->number != extent->number)
		report_bad_chunk(extent->number, buffer);
	extent->offset_bytes += buffer->used_bytes;
	extent->number++;
	extent->nchunks--;
	fms_count(file->counters, FMS_COUNT_READ_BYTES, buffer->used_bytes);
}
