/*-------------------------------------------------------------------------
 *
 * arena.h
 *	  Memory for items of any length and an index of them, which grows with
 *	  the items.
 *
 *-------------------------------------------------------------------------
 */
#ifndef FMS_ARENA_H
#define FMS_ARENA_H

#include "postgres.h"

#include "formation/piece.h"

typedef struct FmsArena
{
	FmsPiece	index;
	FmsPiece	data;
	bool		refused;		/* the system has refused more memory */
	MemoryContextCallback on_reset;
	double		make_room_us;	/* all time in fms_arena_make_room() */
} FmsArena;

/*
 * Makes an empty arena that goes with the current context, in which the struct
 * must lie, too.
 */
extern void fms_arena_init(FmsArena *arena);

/* Forgets what is in the arena, and frees its memory or not. */
extern void fms_arena_free(FmsArena *arena);
extern void fms_arena_clear(FmsArena *arena);

/*
 * The owner ends: memory that is not large is kept for the next arena of the
 * transaction.
 */
extern void fms_arena_end(FmsArena *arena);

/* Has the arena room for so many bytes more of index and data? */
static inline bool
fms_arena_has(const FmsArena *arena, Size index_bytes, Size data_bytes)
{
	return arena->index.used_bytes + index_bytes <=
		arena->index.reached_bytes &&
		arena->data.used_bytes + data_bytes <= arena->data.reached_bytes;
}

/* Slow path of fms_arena_extend(). */
extern bool fms_arena_make_room(FmsArena *arena, Size index_bytes,
								Size data_bytes, Size limit_bytes);

/*
 * Makes room for so many bytes more behind those used, with both pieces
 * together within limit_bytes.  The pieces may move.  Returns false if the
 * limit or the system does not allow it.
 */
static inline bool
fms_arena_extend(FmsArena *arena, Size index_bytes, Size data_bytes,
				 Size limit_bytes)
{
	return likely(fms_arena_has(arena, index_bytes, data_bytes)) ||
		fms_arena_make_room(arena, index_bytes, data_bytes, limit_bytes);
}

/* Raises an out-of-memory error for a request of `bytes`. */
extern void fms_arena_report_refused(Size bytes)
			__attribute__((noreturn));

/* Gives unused memory back to the system. */
extern void fms_arena_trim(FmsArena *arena);

/* Bytes used in both pieces, and their size. */
static inline Size
fms_arena_used(const FmsArena *arena)
{
	return arena->index.used_bytes + arena->data.used_bytes;
}

static inline Size
fms_arena_size(const FmsArena *arena)
{
	return arena->index.size_bytes + arena->data.size_bytes;
}

#endif							/* FMS_ARENA_H */
