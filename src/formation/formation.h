/*-------------------------------------------------------------------------
 *
 * formation.h
 *	  Run formation: tuples in memory, in order, or written as a run.
 *
 *-------------------------------------------------------------------------
 */
#ifndef FMS_FORMATION_H
#define FMS_FORMATION_H

#include "postgres.h"

#include "executor/tuptable.h"

#include "formation/run.h"
#include "keys/keys.h"

typedef struct FmsFormation FmsFormation;

/*
 * An empty formation, which is freed with the current memory context.
 * scratch: a context for values in progress, which the formation resets.
 */
extern FmsFormation *fms_formation_create(FmsKeys *keys,
										  MemoryContext scratch);

/*
 * Adds the slot's tuple.  Returns false, with nothing changed, if the tuples
 * would exceed budget_bytes or the system refuses memory: spill, and put the
 * tuple again.  A first tuple may exceed the budget.  ERRORs if there is no
 * memory for a first tuple.
 */
extern bool fms_formation_put(FmsFormation *formation, TupleTableSlot *slot,
							  Size budget_bytes);

/*
 * Microseconds since creation that fms_formation_put() has spent on getting
 * memory and dropping tuples: work that a sample of calls misses.
 */
extern double fms_formation_rare_us(const FmsFormation *formation);

/* Number of tuples in memory, and their bytes with all that sorts them. */
extern uint64 fms_formation_count(const FmsFormation *formation);
extern Size fms_formation_memory_bytes(const FmsFormation *formation);

/*
 * Number of nulls among words, which are counted only, so far: neither count()
 * nor get(), a bound or a run includes them.
 */
extern uint64 fms_formation_nulls(const FmsFormation *formation);

/* Size in bytes at which the system refused more memory, or 0. */
extern Size fms_formation_refused_at(const FmsFormation *formation);

/*
 * Keeps only the first `bound` tuples in order; 0: all.  The formation must be
 * empty.  Holds until the next call.
 */
extern void fms_formation_set_bound(FmsFormation *formation, uint64 bound);

/* Has rows of groups dropped again: there is more memory than there was. */
extern void fms_formation_filter_again(FmsFormation *formation);

/* From now on, drops tuples not less than the record or first key. */
extern void fms_formation_set_cutoff(FmsFormation *formation,
									 const FmsRecord *record);

/*
 * Sorts the tuples, stably; get() returns them by their positions, valid until
 * the next call.
 */
extern void fms_formation_sort(FmsFormation *formation);
extern const FmsRecord *fms_formation_get(const FmsFormation *formation,
										  uint64 position);

/* Sorts the tuples and keeps those within the bound. */
extern void fms_formation_finish(FmsFormation *formation);

/*
 * Sorts the tuples that arrived first into the writer's open run, until at
 * least `bytes` are free, and forgets them.
 */
extern void fms_formation_spill(FmsFormation *formation,
								FmsRunWriter *writer, Size bytes);

/* Returns unused memory to the system. */
extern void fms_formation_trim(FmsFormation *formation);

/* Forgets all tuples, not the bound. */
extern void fms_formation_clear(FmsFormation *formation);

/* Frees the memory, with the tuples in it; nulls stay counted. */
extern void fms_formation_give_back(FmsFormation *formation);

/* The sort ends: keeps memory that is not large for the transaction's next. */
extern void fms_formation_end(FmsFormation *formation);

#endif							/* FMS_FORMATION_H */
