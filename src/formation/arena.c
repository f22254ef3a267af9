/*-------------------------------------------------------------------------
 *
 * arena.c
 *	  Memory for items of any length and an index of them, which grows with
 *	  the items.
 *
 * A sort fills its memory with records and entries, whose proportion is known
 * only when it is full.  Each has a piece of memory (piece.c), and both share
 * one limit.  The pieces start small and double:
 *
 *	  index  |e e e e e ....|			data  |r r r r r r r r r .......|
 *	  index  |e e e e e e e e e ......|		data  |r r r r r r r r r r ..
 *
 * New room is divided between the pieces as the room before was used.  If the
 * limit is reached and one piece is full, the room left is divided again.
 *
 * Memory: the pieces go when the arena is freed or its context is reset.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "base/clock.h"
#include "formation/arena.h"

/* Initial size of both pieces together. */
#define START_BYTES		((Size) 4 * 1024)

static void
give_back(void *arg)
{
	FmsArena   *arena = arg;

	fms_piece_unmap(&arena->index);
	fms_piece_unmap(&arena->data);
}

void
fms_arena_init(FmsArena *arena)
{
	memset(arena, 0, sizeof(*arena));
	fms_piece_init(&arena->index, CurrentMemoryContext);
	fms_piece_init(&arena->data, CurrentMemoryContext);
	arena->on_reset.func = give_back;
	arena->on_reset.arg = arena;
	MemoryContextRegisterResetCallback(CurrentMemoryContext,
									   &arena->on_reset);
}

void
fms_arena_free(FmsArena *arena)
{
	fms_piece_free(&arena->index);
	fms_piece_free(&arena->data);
	arena->index_divided = arena->data_divided = 0;
	arena->refused = false;
}

/*
 * Returns the next size of both pieces, at least needed_bytes: the doubled
 * size, or the limit if the doubled size would reach two thirds of it.
 */
static Size
next_size(const FmsArena *arena, Size needed_bytes, Size limit_bytes)
{
	Size		size = fms_arena_size(arena);

	if (!arena->refused)
		size = Max(2 * size, START_BYTES);
	if (!arena->refused && size > limit_bytes - limit_bytes / 3)
		size = limit_bytes;
	return Max(Min(size, limit_bytes), needed_bytes);
}

/* Resizes both pieces; one shrinks before the other one grows. */
static bool
resize(FmsArena *arena, FmsArenaBytes used, Size index_bytes, Size data_bytes)
{
	if (index_bytes < arena->index.size_bytes)
		return fms_piece_resize(&arena->index, used.index, index_bytes) &&
			fms_piece_resize(&arena->data, used.data, data_bytes);
	return fms_piece_resize(&arena->data, used.data, data_bytes) &&
		fms_piece_resize(&arena->index, used.index, index_bytes);
}

/* Bytes used since the room was divided; all, if less is used than then. */
static inline Size
used_since(Size now_bytes, Size divided_bytes)
{
	return now_bytes > divided_bytes ? now_bytes - divided_bytes : now_bytes;
}

/* Divides size_bytes between the pieces, which need at least `needed`. */
static bool
divide(FmsArena *arena, FmsArenaBytes used, FmsArenaBytes needed,
	   Size size_bytes)
{
	Size		left = size_bytes - needed.index - needed.data;
	double		index = used_since(needed.index, arena->index_divided);
	double		data = used_since(needed.data, arena->data_divided);
	Size		index_left = MAXALIGN_DOWN((Size) (left * (index /
													   (index + data))));

	if (!resize(arena, used, needed.index + index_left,
				needed.data + MAXALIGN_DOWN(left - index_left)))
		return false;
	arena->index_divided = needed.index;
	arena->data_divided = needed.data;
	return true;
}

static bool
make_room(FmsArena *arena, FmsArenaBytes used, FmsArenaBytes more,
		  Size limit_bytes)
{
	FmsArenaBytes needed = {used.index + more.index, used.data + more.data};
	Size		needed_bytes = needed.index + needed.data;

	while (needed.index > arena->index.size_bytes ||
		   needed.data > arena->data.size_bytes)
	{
		Size		size = next_size(arena, needed_bytes, limit_bytes);

		if (needed_bytes > limit_bytes ||
			(arena->refused && needed_bytes > fms_arena_size(arena)))
			return false;
		if (divide(arena, used, needed, size))
			break;
		if (arena->refused)
			return false;
		arena->refused = true;
	}
	fms_piece_reach(&arena->index, needed.index);
	fms_piece_reach(&arena->data, needed.data);
	return true;
}

bool
fms_arena_make_room(FmsArena *arena, FmsArenaBytes used, FmsArenaBytes more,
					Size limit_bytes)
{
	instr_time	start = fms_clock_now();
	bool		made = make_room(arena, used, more, limit_bytes);

	arena->make_room_us += fms_clock_since_us(start);
	return made;
}

void
fms_arena_report_refused(Size bytes)
{
	ereport(ERROR,
			(errcode(ERRCODE_OUT_OF_MEMORY),
			 errmsg("out of memory"),
			 errdetail("Failed on request of size %zu for the rows of a sort.",
					   bytes)));
}

void
fms_arena_trim(FmsArena *arena, FmsArenaBytes used)
{
	if (arena->index.mapped)
		(void) fms_piece_resize(&arena->index, used.index,
								MAXALIGN(used.index));
	if (arena->data.mapped)
		(void) fms_piece_resize(&arena->data, used.data, MAXALIGN(used.data));
}
