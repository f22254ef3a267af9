/*-------------------------------------------------------------------------
 *
 * formation.h
 *	  Run formation: memory full of tuples to a sorted run.
 *
 *-------------------------------------------------------------------------
 */
#ifndef FMS_FORMATION_H
#define FMS_FORMATION_H

#include "postgres.h"

#include "executor/tuptable.h"

#include "keys.h"
#include "run.h"

typedef struct FmsFormation FmsFormation;

/*
 * An empty memory, in the current context.  Allocates little until tuples
 * come.  Destroying it gives its memory back at once, all but its own struct,
 * which goes with the context.
 */
extern FmsFormation *fms_formation_create(FmsKeys *keys);
extern void fms_formation_destroy(FmsFormation *formation);

/*
 * Adds a tuple, if all tuples together then stay within the budget; a first
 * tuple always fits.  Returns false, with nothing changed, if it does not
 * fit: write a run, then put it again.
 */
extern bool fms_formation_put(FmsFormation *formation, TupleTableSlot *slot,
							  Size budget_bytes);

extern uint64 fms_formation_count(const FmsFormation *formation);
extern Size fms_formation_memory_bytes(const FmsFormation *formation);

/* Sorts what is there, stably; fms_formation_get() gives the result. */
extern void fms_formation_sort(FmsFormation *formation);
extern const FmsRecord *fms_formation_get(const FmsFormation *formation,
										  uint64 position);

/*
 * Sorts what is there into the writer's open run, in pieces, so that the
 * first are being written while later ones are sorted; then empties the
 * memory.
 */
extern void fms_formation_spill(FmsFormation *formation,
								FmsRunWriter *writer);

#endif							/* FMS_FORMATION_H */
