/*-------------------------------------------------------------------------
 *
 * formation.h
 *	  Run formation: rows in memory, in order, or written as a run.
 *
 *	  tuples.c	entries and records		index: entries, data: records
 *	  words.c	words of 8 bytes		index: words, room to sort them
 *
 *-------------------------------------------------------------------------
 */
#ifndef FMS_FORMATION_H
#define FMS_FORMATION_H

#include "executor/tuptable.h"

#include "formation/arena.h"
#include "formation/run.h"
#include "keys/keys.h"

/* Bytes of the index for a row: an entry, or a word and as much room. */
#define FMS_ROW_INDEX_BYTES	((Size) 16)

typedef struct FmsFormation FmsFormation;

/* What the two kinds do differently; see the functions of the same names. */
typedef struct FmsFormationKind
{
	bool		(*put) (FmsFormation *formation, TupleTableSlot *slot,
						Size budget_bytes);
	void		(*sort) (FmsFormation *formation);
	Size		index_bytes;	/* of a row, once sorted */
	const FmsRecord *(*get) (const FmsFormation *formation, uint64 position);
	void		(*spill) (FmsFormation *formation, FmsRunWriter *writer,
						  Size bytes);

	/* Reclaims memory of dropped rows, learns groups; NULL: does neither. */
	void		(*pack) (FmsFormation *formation);
} FmsFormationKind;

extern const FmsFormationKind fms_tuples_kind;
extern const FmsFormationKind fms_words_kind;

/* Others read these fields, only this folder changes them. */
struct FmsFormation
{
	const FmsFormationKind *kind;
	MemoryContext context;		/* current at creation */
	FmsKeys    *keys;
	FmsArena	arena;			/* all rows but nulls of words */
	uint64		nulls;			/* of words: counted, and nothing else */
	uint64		bound;			/* rows wanted; 0: all */
	FmsRecordBuffer cutoff;		/* the rows wanted do not exceed it; no
								 * record: not known yet */
	FmsGroupFilter *filter;		/* or NULL */
	double		shrink_us;		/* total time in shrink() */

	MemoryContext scratch;		/* of tuples: values in progress */
	uint32	   *groups;			/* of tuples: the table, see tuples.c */
	Size		groups_bytes;	/* of the table; 0: there is none */
	int64		groups_gain;	/* from it; < 0: a loss */
	const FmsWordType *words;	/* or NULL */
	FmsWordRecord word;			/* the one returned or written last */
};

/*
 * Goes with the current context.  expected_bytes: of the input, or 0.
 * scratch: a context that put() resets.
 */
extern FmsFormation *fms_formation_create(FmsKeys *keys,
										  double expected_bytes,
										  MemoryContext scratch);

/* Forgets all rows.  From now on, keeps the first `bound` ones; 0: all. */
extern void fms_formation_reset(FmsFormation *formation, uint64 bound);

/* Number of rows in memory, and their bytes with all that sorts them. */
static inline Size
fms_formation_count(const FmsFormation *formation)
{
	return formation->arena.index.used_bytes / FMS_ROW_INDEX_BYTES;
}

static inline Size
fms_formation_memory_bytes(const FmsFormation *formation)
{
	return fms_arena_used(&formation->arena) + formation->groups_bytes;
}

/*
 * Adds the slot's tuple.  Returns false, with nothing changed, if the tuples
 * would exceed budget_bytes or the system refuses memory: spill, and put it
 * again.  A first tuple may exceed the budget; ERRORs if memory lacks for it.
 */
static inline bool
fms_formation_put(FmsFormation *formation, TupleTableSlot *slot,
				  Size budget_bytes)
{
	return formation->kind->put(formation, slot, budget_bytes);
}

/* Has rows of groups dropped again: there is more memory than there was. */
extern void fms_formation_filter_again(FmsFormation *formation);

/* From now on, drops tuples not less than the record or first key. */
extern void fms_formation_set_cutoff(FmsFormation *formation,
									 const FmsRecord *record);

/* Sorts the tuples, stably, and keeps those within the bound. */
extern void fms_formation_sort(FmsFormation *formation);

/* The tuple at that position, once sorted; valid until the next call. */
static inline const FmsRecord *
fms_formation_get(const FmsFormation *formation, uint64 position)
{
	Assert(position < fms_formation_count(formation));
	return formation->kind->get(formation, position);
}

/* Writes the oldest tuples to the open run, in order: `bytes` or more. */
static inline void
fms_formation_spill(FmsFormation *formation, FmsRunWriter *writer, Size bytes)
{
	if (fms_formation_count(formation) > 0)
		formation->kind->spill(formation, writer, bytes);
}

/* Slow path of fms_formation_make_room(). */
extern bool fms_formation_extend(FmsFormation *formation, Size record_bytes,
								 Size budget_bytes);

/*
 * For put(): makes room for one more row with a record of record_bytes,
 * perhaps by dropping rows beyond the bound.  Result and errors are put()'s.
 */
static inline bool
fms_formation_make_room(FmsFormation *formation, Size record_bytes,
						Size budget_bytes)
{
	if (likely(formation->bound == 0 &&
			   fms_arena_has(&formation->arena, FMS_ROW_INDEX_BYTES,
							 record_bytes) &&
			   fms_formation_memory_bytes(formation) + FMS_ROW_INDEX_BYTES +
			   record_bytes <= budget_bytes))
		return true;
	return fms_formation_extend(formation, record_bytes, budget_bytes);
}

#endif							/* FMS_FORMATION_H */
