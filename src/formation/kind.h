/*-------------------------------------------------------------------------
 *
 * kind.h
 *	  The two kinds of run formation, and what they share: private to the
 *	  folder.
 *
 *	  tuples.c	entries and records		index: entries, data: records
 *	  words.c	words of 8 bytes		index: words, room to sort them
 *
 *-------------------------------------------------------------------------
 */
#ifndef FMS_KIND_H
#define FMS_KIND_H

#include "postgres.h"

#include "executor/tuptable.h"

#include "formation/arena.h"
#include "formation/run.h"
#include "keys/keys.h"

/* Bytes of the index for a row: an entry, or a word and as much room. */
#define FMS_ROW_INDEX_BYTES	((Size) 16)

typedef struct FmsFormation FmsFormation;

/* See the functions of formation.h. */
typedef struct FmsFormationKind
{
	bool		(*put) (FmsFormation *formation, TupleTableSlot *slot,
						Size budget_bytes);
	void		(*sort) (FmsFormation *formation);
	Size		index_bytes;	/* of a row, once sorted */
	const FmsRecord *(*get) (const FmsFormation *formation, uint64 position);
	void		(*spill) (FmsFormation *formation, FmsRunWriter *writer,
						  Size bytes);

	/*
	 * Reclaims the memory of rows dropped from the end of sorted ones.  NULL:
	 * nothing to do.
	 */
	void		(*pack) (FmsFormation *formation);
} FmsFormationKind;

struct FmsFormation
{
	const FmsFormationKind *kind;
	MemoryContext context;		/* current at creation */
	FmsKeys    *keys;
	FmsArena	arena;
	Size		count;			/* rows in the arena */
	Size		records_bytes;	/* of the arena's data */
	uint64		nulls;			/* rows that are counted only */
	uint64		bound;			/* rows wanted; 0: all */
	FmsRecordBuffer cutoff;		/* the rows wanted do not exceed it; no
								 * record: not known yet */
	FmsGroupFilter *filter;		/* or NULL */
	double		shrink_us;		/* total time in shrink() */
};

/* Each allocates a formation of its kind, zeroed but for its own fields. */
extern FmsFormation *fms_tuples_create(MemoryContext scratch);
extern FmsFormation *fms_words_create(const FmsKeys *keys);

static inline FmsArenaBytes
fms_formation_used(const FmsFormation *formation)
{
	return (FmsArenaBytes) {
		.index = formation->count * FMS_ROW_INDEX_BYTES,
		.data = formation->records_bytes
	};
}

/* Slow path of fms_formation_make_room(). */
extern bool fms_formation_extend(FmsFormation *formation, Size record_bytes,
								 Size budget_bytes);

/*
 * Makes room for one more row with a record of record_bytes, perhaps by
 * dropping rows beyond the bound.  Returns false if the budget or the system
 * does not allow it; ERRORs if the system refuses memory for an only row.
 */
static inline bool
fms_formation_make_room(FmsFormation *formation, Size record_bytes,
						Size budget_bytes)
{
	Size		index_bytes = (formation->count + 1) * FMS_ROW_INDEX_BYTES;
	Size		data_bytes = formation->records_bytes + record_bytes;

	if (likely(formation->bound == 0 &&
			   index_bytes <= formation->arena.index.reached_bytes &&
			   data_bytes <= formation->arena.data.reached_bytes &&
			   index_bytes + data_bytes <= budget_bytes))
		return true;
	return fms_formation_extend(formation, record_bytes, budget_bytes);
}

#endif							/* FMS_KIND_H */
