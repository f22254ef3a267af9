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
 * When the arena grows, it divides its memory in the proportion in which the
 * pieces use it.  If one piece is full at the limit, the arena divides the
 * memory again.
 *
 * Memory: the pieces are freed with the arena or when its context is reset.
 * The pieces of a sort that has ended are kept for the next sort of the
 * transaction, which gets no new pages then and copies nothing:
 *
 *	  sort 1  (8 kB, 16 kB, 32 kB, 64 kB) --end--> kept --> sort 2
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

/*
 * Kept bytes up to this number may stay with malloc() after the transaction:
 * the next transaction's sort gets no new pages then.
 */
#define UNTRIMMED_BYTES	((Size) 256 * 1024)

/* Resizing fewer bytes takes less time than reading the clock. */
#define TIMED_MIN_BYTES	((Size) 64 * 1024)

/* Empty, or what is kept. */
static FmsPiece kept_index;
static FmsPiece kept_data;

static Size
kept_bytes(void)
{
	return kept_index.size_bytes + kept_data.size_bytes;
}

static void
free_kept(void)
{
	fms_piece_free(&kept_index);
	fms_piece_free(&kept_data);
}

static void
shrink_kept(XactEvent event, void *arg)
{
	Size		bytes = kept_bytes();

	if (bytes <= KEPT_LONG_BYTES)
		return;
	free_kept();
#ifdef __GLIBC__
	if (bytes > UNTRIMMED_BYTES)
		(void) malloc_trim(0);
#endif
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
	fms_piece_free(&arena->index);
	fms_piece_free(&arena->data);
	arena->refused = false;
}

void
fms_arena_end(FmsArena *arena)
{
	static bool is_registered = false;

	if (!is_registered)
		RegisterXactCallback(shrink_kept, NULL);
	is_registered = true;
	if (fms_arena_size(arena) > KEPT_MAX_BYTES ||
		fms_arena_size(arena) <= kept_bytes())
	{
		fms_arena_free(arena);
		return;
	}
	free_kept();
	kept_index = arena->index;
	kept_data = arena->data;
	fms_piece_init(&arena->index);
	fms_piece_init(&arena->data);
}

/* Gives an empty arena the kept pieces, or frees those that are too large. */
static void
take_kept(FmsArena *arena, Size limit_bytes)
{
	if (kept_bytes() > limit_bytes)
		free_kept();
	if (kept_bytes() == 0)
		return;
	arena->index = kept_index;
	arena->data = kept_data;
	fms_piece_init(&kept_index);
	fms_piece_init(&kept_data);
}

/*
 * Returns the next size of both pieces: the doubled size, or the limit if the
 * doubled size would reach two thirds of it.
 */
static Size
next_size(Size size_bytes, Size limit_bytes)
{
	Size		doubled = Max(2 * size_bytes, START_BYTES);

	return doubled > limit_bytes - limit_bytes / 3 ? limit_bytes : doubled;
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

/*
 * Divides size_bytes between the pieces: what they do not need is divided as
 * what they need.
 */
static bool
divide(FmsArena *arena, FmsArenaBytes used, FmsArenaBytes needed,
	   Size size_bytes)
{
	Size		needed_bytes = needed.index + needed.data;
	Size		left = size_bytes - needed_bytes;
	double		index_part = (double) needed.index / needed_bytes;
	Size		index_left = MAXALIGN_DOWN((Size) (left * index_part));

	return resize(arena, used, needed.index + index_left,
				  needed.data + MAXALIGN_DOWN(left - index_left));
}

static bool
make_room(FmsArena *arena, FmsArenaBytes used, FmsArenaBytes needed,
		  Size limit_bytes)
{
	Size		needed_bytes = needed.index + needed.data;
	Size		size;

	if (fms_arena_size(arena) == 0)
		take_kept(arena, limit_bytes);
	if (needed.index <= arena->index.size_bytes &&
		needed.data <= arena->data.size_bytes)
		return true;
	if (needed_bytes > limit_bytes)
		return false;
	size = next_size(fms_arena_size(arena), limit_bytes);
	if (!arena->refused &&
		divide(arena, used, needed, Max(size, needed_bytes)))
		return true;
	arena->refused = true;
	size = Min(fms_arena_size(arena), limit_bytes);
	return needed_bytes <= size && divide(arena, used, needed, size);
}

bool
fms_arena_make_room(FmsArena *arena, FmsArenaBytes used, FmsArenaBytes more,
					Size limit_bytes)
{
	bool		is_timed = fms_arena_size(arena) >= TIMED_MIN_BYTES;
	instr_time	start = is_timed ? fms_clock_now() : (instr_time) {0};
	FmsArenaBytes needed = {used.index + more.index, used.data + more.data};
	bool		made = make_room(arena, used, needed, limit_bytes);

	if (made)
	{
		fms_piece_reach(&arena->index, needed.index);
		fms_piece_reach(&arena->data, needed.data);
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
trim(FmsPiece *piece, Size used_bytes)
{
	if (piece->mapped ||
		used_bytes < piece->size_bytes - piece->size_bytes / 4)
		(void) fms_piece_resize(piece, used_bytes, MAXALIGN(used_bytes));
}

void
fms_arena_trim(FmsArena *arena, FmsArenaBytes used)
{
	trim(&arena->index, used.index);
	trim(&arena->data, used.data);
}
