/*-------------------------------------------------------------------------
 *
 * naming.h
 *	  The next blocks of all runs in block read order, many at a time.
 *
 *-------------------------------------------------------------------------
 */
#ifndef FMS_NAMING_H
#define FMS_NAMING_H

#include "postgres.h"

#include "order/fences.h"

/* For keys whose prefixes decide.  See naming.c. */
typedef struct FmsNaming FmsNaming;

/*
 * Bytes that it takes.  Of the share it makes what it can, and takes more if
 * that is too little for so many runs.
 */
extern Size fms_naming_bytes(int nruns, Size share_bytes);

/* Memory comes from the current context. */
extern FmsNaming *fms_naming_create(int nruns, Size share_bytes);
extern void fms_naming_destroy(FmsNaming *naming);

/* The run's blocks are named from the reader's next fence on. */
extern void fms_naming_add(FmsNaming *naming, int run, FmsFenceReader *ahead);

/*
 * Names the next ones: for each the run whose next block it is.  Returns how
 * many those are, 0 after the last block.  Valid until the next call.
 */
extern int	fms_naming_next(FmsNaming *naming, const int **runs);

#endif							/* FMS_NAMING_H */
