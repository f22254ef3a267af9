/*-------------------------------------------------------------------------
 *
 * arena.h
 *	  Memory for items of any length and an index of them, which grows with
 *	  them.
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
	Size		index_divided;	/* used when the room was divided last */
	Size		data_divided;
	bool		refused;		/* the system has no more memory for it */
	MemoryContextCallback on_reset;
	double		make_room_us;	/* all time in fms_arena_make_room() */
} FmsArena;

/* Bytes of an arena's pieces: in use, or wanted in addition. */
typedef struct FmsArenaBytes
{
	Size		index;
	Size		data;
} FmsArenaBytes;

/*
 * An empty arena that goes with the current context, in which it must also
 * lie itself.
 */
extern void fms_arena_init(FmsArena *arena);

/* Frees the memory; the arena is empty then. */
extern void fms_arena_free(FmsArena *arena);

/* For fms_arena_extend(). */
extern bool fms_arena_make_room(FmsArena *arena, FmsArenaBytes used,
								FmsArenaBytes more, Size limit_bytes);

/*
 * Sees to it that both pieces have room behind the bytes used, while both
 * together keep within limit_bytes.  The pieces may move.  Returns false if
 * the limit or the system does not allow it; what is used stays as it is.
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

/* Raises out of memory, for so many bytes. */
extern void fms_arena_report_refused(Size bytes)
			__attribute__((noreturn));

/*
 * Somebody wants so many bytes, made up to whole pages, in front of the data,
 * to share a huge page with them.  To be said before the arena grows.
 */
extern void fms_arena_want_head(FmsArena *arena, Size bytes);

/* Gives what is not used back to the system, if it is worth it. */
extern void fms_arena_trim(FmsArena *arena, FmsArenaBytes used);

/* Both pieces together. */
static inline Size
fms_arena_size(const FmsArena *arena)
{
	return arena->index.size_bytes + arena->data.size_bytes;
}

#endif							/* FMS_ARENA_H */
