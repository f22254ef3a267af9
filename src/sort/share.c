/*-------------------------------------------------------------------------
 *
 * share.c
 *	  What the participants of a parallel sort share.
 *
 *	  leader	create .. own runs .......... adopts all runs, merges .. leave
 *	  worker 0	  join ..... runs, hand over .. leave
 *	  worker 1	  join ........ runs, hand over .. leave
 *
 *	  segment	| set of files, options | part of worker 0 | part of worker 1 |
 *	  files		tape.1 keys.1 runs.1, tape.2 keys.2 runs.2, ..
 *
 * The segment is not the server's parallel context, since that ends when a
 * LIMIT is satisfied and is used again for a rescan.  Each time that the node
 * loads, it has a share of its own, and the files go when the last process has
 * left.  The server detaches from the segment on an error.
 *
 * A part is written by its worker.  The leader reads it when the worker has
 * ended, so there is no lock.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <fcntl.h>

#include "miscadmin.h"
#include "storage/buffile.h"

#include "base/checksum.h"
#include "sort/share.h"

/* Kind of a file in the set (base/options.h). */
#define RUNS_NAME			"runs"

static FmsShare *
open_share(dsm_segment *segment, int participant)
{
	FmsShare   *share = palloc(sizeof(FmsShare));

	share->segment = segment;
	share->shared = dsm_segment_address(segment);
	share->files = fms_share_files(share, participant - 1);
	return share;
}

FmsShare *
fms_share_create(const FmsOptions *options)
{
	Size		size = offsetof(FmsShared, parts) +
		options->workers * sizeof(FmsPart);
	dsm_segment *segment = dsm_create(size, DSM_CREATE_NULL_IF_MAXSEGMENTS);
	FmsShared  *shared;

	if (segment == NULL)
		return NULL;
	shared = dsm_segment_address(segment);
	memset(shared, 0, size);
	SharedFileSetInit(&shared->set, segment);
	shared->salt = fms_checksum_new_salt();
	shared->options = *options;
	shared->options.device = NULL;
	shared->options.files = NULL;
	return open_share(segment, FMS_LEADER);
}

FmsShare *
fms_share_join(dsm_handle handle, int worker)
{
	dsm_segment *segment = dsm_attach(handle);
	FmsShare   *share;

	if (segment == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("could not map the shared memory of a parallel sort")));
	share = open_share(segment, 1 + worker);
	Assert(worker < share->shared->options.workers);
	SharedFileSetAttach(&share->shared->set, segment);
	return share;
}

void
fms_share_leave(FmsShare *share)
{
	dsm_detach(share->segment);
	pfree(share);
}

FmsSharedFiles
fms_share_files(const FmsShare *share, int worker)
{
	return (FmsSharedFiles) {
		.set = &share->shared->set.fs,
		.salt = share->shared->salt,
		.participant = 1 + worker
	};
}

void
fms_share_put_runs(const FmsSharedFiles *files, FmsRun *const *runs,
				   int nruns)
{
	char		name[FMS_SHARED_NAME_BYTES];
	BufFile    *file =
		BufFileCreateFileSet(files->set,
							 fms_shared_file_name(files, RUNS_NAME, name));

	for (int i = 0; i < nruns; i++)
	{
		CHECK_FOR_INTERRUPTS();
		BufFileWrite(file, runs[i], sizeof(FmsRun));
		if (runs[i]->nextents > 1)
			BufFileWrite(file, runs[i]->extents,
						 runs[i]->nextents * sizeof(FmsExtent));
	}
	BufFileExportFileSet(file);
	BufFileClose(file);
}

static void
read_exactly(BufFile *file, void *buffer, Size bytes)
{
	if (BufFileRead(file, buffer, bytes) != bytes)
		ereport(ERROR,
				(errcode(ERRCODE_DATA_CORRUPTED),
				 errmsg("could not read the runs of a parallel worker")));
}

FmsRun **
fms_share_get_runs(const FmsSharedFiles *files, int nruns)
{
	char		name[FMS_SHARED_NAME_BYTES];
	FmsRun	  **runs = palloc(nruns * sizeof(FmsRun *));
	BufFile    *file;

	(void) fms_shared_file_name(files, RUNS_NAME, name);
	file = BufFileOpenFileSet(files->set, name, O_RDONLY, false);
	for (int i = 0; i < nruns; i++)
	{
		FmsRun	   *run = palloc(sizeof(FmsRun));

		CHECK_FOR_INTERRUPTS();
		read_exactly(file, run, sizeof(FmsRun));
		if (run->nextents > 1)
		{
			Size		bytes = run->nextents * sizeof(FmsExtent);

			run->extents = palloc(bytes);
			read_exactly(file, run->extents, bytes);
		}
		runs[i] = run;
	}
	BufFileClose(file);
	return runs;
}
