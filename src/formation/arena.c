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
 * When the arena grows, or when one piece is full at the limit, it divides its
 * memory in the proportion in which the pieces use it.
 *
 * Memory: the pieces are freed with the arena or when its context is reset.
 * Those of a sort that has ended are kept for the next sort of the
 * transaction, which gets no new pages then and copies nothing.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#ifdef __GLIBC__
#include <malloc.h>
#endif

#include "access/xact.h"
#include "miscadmin.h"

#include "base/clock.h"
#include "formation/arena.h"

/* Initial size of both pieces together. */
#define START_BYTES		((Size) 8 * 1024)

/* Bytes that are kept, at most; after the transaction, too */
#define KEPT_MAX_BYTES	((Size) 4 * 1024 * 1024)
#define KEPT_LONG_BYTES	((Size) 64 * 1024)

/* Freed bytes that malloc() may keep for the next transaction. */
#define UNTRIMMED_BYTES	((Size) 256 * 1024)

/* Resizing fewer bytes takes less time than reading the clock. */
#define TIMED_MIN_BYTES	((Size) 64 * 1024)

/* Empty, or what is kept. */
static FmsArena kept;

/* The most bytes that an arena has freed in this transaction. */
static Size freed_bytes = 0;

static void
shrink_kept(XactEvent event, void *arg)
{
	if (fms_arena_size(&kept) > KEPT_LONG_BYTES)
		fms_arena_free(&kept);
#ifdef __GLIBC__
	if (freed_bytes > UNTRIMMED_BYTES)
		(void) malloc_trim(0);
#endif
	freed_bytes = 0;
}

/* An error in a reset callback would lose the memory. */
static void
give_back(void *arg)
{
	HOLD_INTERRUPTS();
	fms_arena_free(arg);
	RESUME_INTERRUPTS();
}

void
fms_arena_init(FmsArena *arena)
{
	memset(arena, 0, sizeof(*arena));
	fms_piece_init(&arena->index);
	fms_piece_init(&arena->data);
	arena->on_reset.func = give_back;
	arena->on_reset.arg = arena;
	MemoryContextRegisterResetCallback(CurrentMemoryContext,
									   &arena->on_reset);
}

void
fms_arena_free(FmsArena *arena)
{
	freed_bytes = Max(freed_bytes, fms_arena_size(arena));
	fms_piece_free(&arena->index);
	fms_piece_free(&arena->data);
	arena->refused = false;
}

void
fms_arena_clear(FmsArena *arena)
{
	arena->index.used_bytes = arena->data.used_bytes = 0;
	arena->refused = false;
}

/* Frees the arena's pieces and gives it those of another one. */
static void
take_pieces(FmsArena *arena, FmsArena *from)
{
	fms_arena_free(arena);
	fms_arena_clear(from);
	arena->index = from->index;
	arena->data = from->data;
	fms_piece_init(&from->index);
	fms_piece_init(&from->data);
}

void
fms_arena_end(FmsArena *arena)
{
	static bool is_registered = false;

	if (!is_registered)
		RegisterXactCallback(shrink_kept, NULL);
	is_registered = true;
	if (fms_arena_size(arena) > KEPT_MAX_BYTES ||
		fms_arena_size(arena) <= fms_arena_size(&kept))
		fms_arena_free(arena);
	else
		take_pieces(&kept, arena);
}

/* The next size of both pieces: doubled, or the limit from 2/3 of it on. */
static Size
next_size(Size size_bytes, Size limit_bytes)
{
	Size		doubled = Max(2 * size_bytes, START_BYTES);

	return doubled > limit_bytes - limit_bytes / 3 ? limit_bytes : doubled;
}

/*
 * Divides size_bytes between the pieces: what they do not need is divided as
 * what they need.  One piece shrinks before the other one grows.
 */
static bool
divide(FmsArena *arena, Size index_needed, Size data_needed, Size size_bytes)
{
	Size		needed = index_needed + data_needed;
	Size		left = size_bytes - needed;
	double		index_part = (double) index_needed / needed;
	Size		index_left = MAXALIGN_DOWN((Size) (left * index_part));
	Size		index_bytes = index_needed + index_left;
	Size		data_bytes = data_needed + MAXALIGN_DOWN(left - index_left);

	if (index_bytes < arena->index.size_bytes)
		return fms_piece_resize(&arena->index, index_bytes) &&
			fms_piece_resize(&arena->data, data_bytes);
	return fms_piece_resize(&arena->data, data_bytes) &&
		fms_piece_resize(&arena->index, index_bytes);
}

static bool
make_room(FmsArena *arena, Size index_needed, Size data_needed,
		  Size limit_bytes)
{
	Size		needed = index_needed + data_needed;
	Size		size;

	if (fms_arena_size(arena) == 0)
	{
		if (fms_arena_size(&kept) > limit_bytes)
			fms_arena_free(&kept);
		if (fms_arena_size(&kept) > 0)
			take_pieces(arena, &kept);
	}
	if (index_needed <= arena->index.size_bytes &&
		data_needed <= arena->data.size_bytes)
		return true;
	if (needed > limit_bytes)
		return false;
	size = next_size(fms_arena_size(arena), limit_bytes);
	if (!arena->refused &&
		divide(arena, index_needed, data_needed, Max(size, needed)))
		return true;
	arena->refused = true;
	size = Min(fms_arena_size(arena), limit_bytes);
	return needed <= size && divide(arena, index_needed, data_needed, size);
}

bool
fms_arena_make_room(FmsArena *arena, Size index_bytes, Size data_bytes,
					Size limit_bytes)
{
	bool		is_timed = fms_arena_size(arena) >= TIMED_MIN_BYTES;
	instr_time	start = is_timed ? fms_clock_now() : (instr_time) {0};
	Size		index_needed = arena->index.used_bytes + index_bytes;
	Size		data_needed = arena->data.used_bytes + data_bytes;
	bool		made = make_room(arena, index_needed, data_needed,
								 limit_bytes);

	if (made)
	{
		fms_piece_reach(&arena->index, index_needed);
		fms_piece_reach(&arena->data, data_needed);
	}
	if (is_timed)
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

/* A palloc'd piece is copied: only if that saves a quarter of it. */
static void
trim(FmsPiece *piece)
{
	if (piece->mapped ||
		piece->used_bytes < piece->size_bytes - piece->size_bytes / 4)
		(void) fms_piece_resize(piece, MAXALIGN(piece->used_bytes));
}

void
fms_arena_trim(FmsArena *arena)
{
	trim(&arena->index);
	trim(&arena->data);
}
