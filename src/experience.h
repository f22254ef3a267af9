/*-------------------------------------------------------------------------
 *
 * experience.h
 *	  How long merges took, of queries that came before.
 *
 *-------------------------------------------------------------------------
 */
#ifndef FMS_EXPERIENCE_H
#define FMS_EXPERIENCE_H

#include "postgres.h"

/* What it needs of shared memory, and making it there. */
extern Size fms_experience_shared_bytes(void);
extern void fms_experience_share(void);

/*
 * A sort of a query: its text, which may be NULL, and its place in the plan.
 * The same one in another database is another one.
 */
extern uint32 fms_experience_key(const char *query, int plan_node_id);

/*
 * A factor: of this sort, else of all; 1 if there is neither, or no shared
 * memory.
 */
extern double fms_experience_recall(uint32 key);

/* The sort with that key had this factor; one that is not above 0 is none. */
extern void fms_experience_learn(uint32 key, double factor);

#endif							/* FMS_EXPERIENCE_H */
