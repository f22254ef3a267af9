/*-------------------------------------------------------------------------
 *
 * cutoff.h
 *	  A key that the first n rows in runs do not exceed.
 *
 *-------------------------------------------------------------------------
 */
#ifndef FMS_CUTOFF_H
#define FMS_CUTOFF_H

#include "postgres.h"

#include "keys/keys.h"

typedef struct FmsCutoff FmsCutoff;

/* Creates it for the first `bound` rows, in the current context, as notes. */
extern FmsCutoff *fms_cutoff_create(FmsKeys *keys, uint64 bound);

/*
 * Notes that the last `rows` rows of a run do not exceed `next`, the run's
 * next one.  Returns false if the run can end before `next`, since the first n
 * rows are known and precede it.  May run a type's comparator.
 */
extern bool fms_cutoff_note(FmsCutoff *cutoff, const FmsRecord *next,
							uint64 rows);

/* NULL while less than n rows are noted.  Valid until the next note. */
extern const FmsRecord *fms_cutoff_record(const FmsCutoff *cutoff);

#endif							/* FMS_CUTOFF_H */
