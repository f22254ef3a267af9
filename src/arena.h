/*-------------------------------------------------------------------------
 *
 * arena.h
 *	  Memory that is filled from both ends and grows without being copied.
 *
 *-------------------------------------------------------------------------
 */
#ifndef FMS_ARENA_H
#define FMS_ARENA_H

#include "postgres.h"

/*
 *	          base                                      base + size_bytes
 *	  | head  |  low: grows upwards -->  |  free  |  <-- high: downwards  |
 */
typedef struct FmsArena
{
	char	   *base;			/* NULL: nothing allocated yet */
	Size		size_bytes;
	Size		head_bytes;		/* mapped with it, in front of base; 0: none,
								 * or it has been taken */
	Size		wanted_bytes;	/* of head, in the next mapping */
	bool		mapped;			/* else the process's spare piece */
	MemoryContextCallback on_reset;

	/* what is known to have memory behind it; all, if nobody has to look */
	char	   *low_reached;	/* up to there */
	char	   *high_reached;	/* from there on */
	bool		small_pages;	/* huge ones have taken too long */
	uint32		touches;		/* of huge pages */
	double		touch_us;		/* time they took */
	double		reach_us;		/* all time in fms_arena_touch() */
} FmsArena;

/*
 * An empty arena that goes with the current context, in which it must also
 * lie itself.
 */
extern void fms_arena_init(FmsArena *arena);

/* Frees the memory; the arena is empty then. */
extern void fms_arena_free(FmsArena *arena);

/*
 * Makes room for so many bytes at both ends together, keeping what is at
 * either end at that end.  Once it is beyond a small size it has limit_bytes
 * at once, or what is needed if that is more; pages not touched cost nothing.
 * May raise out of memory, with nothing changed.
 */
extern void fms_arena_grow(FmsArena *arena, Size low_bytes, Size high_bytes,
						   Size needed_bytes, Size limit_bytes);

/*
 * So many bytes, made up to whole pages, will be wanted in front of the arena,
 * by somebody who takes them once it is full, to share a huge page with it.
 * To be said before it grows.
 */
extern void fms_arena_want_head(FmsArena *arena, Size bytes);

/*
 * Takes them: unmapping them is the caller's from then on.  NULL: there are
 * none, as the arena is small.
 */
extern char *fms_arena_take_head(FmsArena *arena, Size *bytes);

/*
 * What lies at either end has become less: gives the memory between them
 * back, if it is worth it.  The address space stays.
 */
extern void fms_arena_trim(FmsArena *arena, Size low_bytes, Size high_bytes);

/* For fms_arena_reach(). */
extern void fms_arena_touch(FmsArena *arena, char *low_end, char *high_start);

/*
 * To be called before what lies at either end grows up to there, the byte
 * before low_end and the one at high_start going to be written: their values
 * are lost.
 */
static inline void
fms_arena_reach(FmsArena *arena, char *low_end, char *high_start)
{
	if (unlikely(low_end > arena->low_reached ||
				 high_start < arena->high_reached))
		fms_arena_touch(arena, low_end, high_start);
}

static inline char *
fms_arena_end(const FmsArena *arena)
{
	return arena->base + arena->size_bytes;
}

#endif							/* FMS_ARENA_H */
