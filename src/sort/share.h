/*-------------------------------------------------------------------------
 *
 * share.h
 *	  What the participants of a parallel sort share.
 *
 *-------------------------------------------------------------------------
 */
#ifndef FMS_SHARE_H
#define FMS_SHARE_H

#include "storage/dsm.h"
#include "storage/sharedfileset.h"

#include "base/counters.h"
#include "formation/run.h"
#include "tape/tape.h"

/* What a worker hands over when its input has ended.  Starts zeroed. */
typedef struct FmsPart
{
	uint64		tuples;			/* put into the worker's sort */
	uint64		input_bytes;	/* of them */
	uint64		count;			/* tuples in its runs */
	uint64		nulls;			/* of words, which are in no run */
	int			nruns;			/* 0: the worker has no file */
	bool		compressed;		/* some runs have compressed chunks */
	FmsTempFile tape;			/* as the worker had it open */
	Size		first_keys_largest_bytes;	/* of any chunk in their file */
	/* FmsCounters */
	uint64		counters[FMS_COUNTERS_BYTES / sizeof(uint64)];
} FmsPart;

/* In a segment of dynamic shared memory of the sort's own. */
typedef struct FmsShared
{
	SharedFileSet set;
	uint32		salt;			/* of all checksums */
	FmsOptions	options;		/* the leader's, without its pointers */
	FmsCounters *leader;		/* its counters in shared memory, or NULL */
	FmsPart		parts[FLEXIBLE_ARRAY_MEMBER];	/* by worker number */
} FmsShared;

typedef struct FmsShare
{
	dsm_segment *segment;
	FmsShared  *shared;			/* in the segment */
	FmsSharedFiles files;		/* this process's */
} FmsShare;

/*
 * The leader creates what it shares with the options' workers.  palloc'd; the
 * current resource owner has the segment.  NULL if the server has none left.
 */
extern FmsShare *fms_share_create(const FmsOptions *options);

/* A worker of that number joins, likewise. */
extern FmsShare *fms_share_join(dsm_handle handle, int worker);

/* Leaves and frees the share, whose files this process has closed. */
extern void fms_share_leave(FmsShare *share);

/* Where a worker's files are. */
extern FmsSharedFiles fms_share_files(const FmsShare *share, int worker);

/* A worker writes the descriptions of its runs. */
extern void fms_share_put_runs(const FmsSharedFiles *files,
							   FmsRun *const *runs, int nruns);

/* The leader reads them.  A palloc'd list of palloc'd runs. */
extern FmsRun **fms_share_get_runs(const FmsSharedFiles *files, int nruns);

#endif							/* FMS_SHARE_H */
