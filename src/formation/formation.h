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

#include "keys/keys.h"
#include "formation/run.h"

typedef struct FmsFormation FmsFormation;

/*
 * An empty memory, in the current context.  Allocates little until tuples
 * come, and goes with the context.
 */
extern FmsFormation *fms_formation_create(FmsKeys *keys);

/*
 * While they are being written, so many bytes will be wanted in front of them,
 * and that is where they are, the caller's to unmap.  NULL: nowhere.  See
 * arena.h.
 */
extern void fms_formation_want_head(FmsFormation *formation, Size bytes);
extern char *fms_formation_take_head(FmsFormation *formation, Size *bytes);

/*
 * Adds a tuple, if all tuples together then stay within the budget and the
 * system gives the memory; a first tuple may exceed the budget.  Returns
 * false, with nothing changed, if it does not fit: write a run, then put it
 * again.  Raises an error if there is no memory for a first tuple.
 */
extern bool fms_formation_put(FmsFormation *formation, TupleTableSlot *slot,
							  Size budget_bytes);

/*
 * Time that putting tuples has spent, since creation, on what comes once in
 * many of them: getting memory, and dropping tuples behind the bound.
 */
extern double fms_formation_rare_us(const FmsFormation *formation);

extern uint64 fms_formation_count(const FmsFormation *formation);
extern Size fms_formation_memory_bytes(const FmsFormation *formation);

/* The size at which the system refused to give more memory, or 0. */
extern Size fms_formation_refused_at(const FmsFormation *formation);

/*
 * Only the first `bound` tuples in order are wanted, 0: all.  Comes before
 * the first tuple, and holds until it is called again.
 */
extern void fms_formation_set_bound(FmsFormation *formation, uint64 bound);

/* Is it refusing tuples because of the bound? */
extern bool fms_formation_has_cutoff(const FmsFormation *formation);

/* Sorts what is there, stably; fms_formation_get() gives the result. */
extern void fms_formation_sort(FmsFormation *formation);
extern const FmsRecord *fms_formation_get(const FmsFormation *formation,
										  uint64 position);

/* Sorts, and keeps only the tuples wanted. */
extern void fms_formation_finish(FmsFormation *formation);

/*
 * Sorts the tuples that came first into the writer's open run, in pieces, so
 * that the first are being written while later ones are sorted; then forgets
 * them.  So many of them that at least so many bytes become free.
 */
extern void fms_formation_spill(FmsFormation *formation,
								FmsRunWriter *writer, Size bytes);

/* Gives back memory that the tuples do not fill. */
extern void fms_formation_trim(FmsFormation *formation);

/* Forgets all tuples, not the bound; keeps the memory, or gives it back. */
extern void fms_formation_clear(FmsFormation *formation);
extern void fms_formation_give_back(FmsFormation *formation);

#endif							/* FMS_FORMATION_H */
