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

/* Bytes of an arena's pieces: in use, or needed in addition. */
typedef struct FmsArenaBytes
{
	Size		index;
	Size		data;
} FmsArenaBytes;

/*
 * Makes an empty arena that goes with the current context, in which the struct
 * must lie, too.
 */
extern void fms_arena_init(FmsArena *arena);

/* Frees the memory; the arena is empty then. */
extern void fms_arena_free(FmsArena *arena);

/*
 * The owner ends: memory that is not large is kept for the next arena of the
 * transaction.
 */
extern void fms_arena_end(FmsArena *arena);

/* Slow path of fms_arena_extend(). */
extern bool fms_arena_make_room(FmsArena *arena, FmsArenaBytes used,
								FmsArenaBytes more, Size limit_bytes);

/*
 * Makes room for `more` behind the bytes used, with both pieces together
 * within limit_bytes.  The pieces may move.  Returns false if the limit or the
 * system does not allow it; the bytes used stay as they are.
 */
static inline bool
fms_arena_extend(FmsArena *arena, FmsArenaBytes used, FmsArenaBytes more,
				 Size limit_bytes)
{
	if (likely(used.index + more.index <= arena->index.reached_bytes &&
			   used.data + more.data <= arena->data.reached_bytes))
		return true;
	return fms_arena_make_room(arena, used, more, limit_bytes);
}

/* Raises an out-of-memory error for a request of `bytes`. */
extern void fms_arena_report_refused(Size bytes)
			__attribute__((noreturn));

/* Gives unused memory back to the system. */
extern void fms_arena_trim(FmsArena *arena, FmsArenaBytes used);

/* Size of both pieces, in bytes. */
static inline Size
fms_arena_size(const FmsArena *arena)
{
	return arena->index.size_bytes + arena->data.size_bytes;
}

#endif							/* FMS_ARENA_H */
