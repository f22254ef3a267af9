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
 * memory in the proportion in which the pieces use it.  With an estimate of
 * the input it grows to that at once: unused pages cost little.
 *
 * Memory: the pieces are freed with the arena or when its context is reset.
 * Those of a sort that has ended are kept for the transaction's next sort.
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

/*
 * Initial size of both pieces together; also the most that an estimate makes
 * of it, which malloc() may keep for the next transaction once it is freed.
 */
#define START_BYTES		((Size) 8 * 1024)
#define START_MAX_BYTES	((Size) 256 * 1024)

/* Bytes that are kept, at most */
#define KEPT_MAX_BYTES	((Size) 4 * 1024 * 1024)

/* A sort that has spilled had more memory than this, whatever work_mem is. */
#define TRIMMED_MIN_BYTES	((Size) 16 * 1024)

/* Resizing fewer bytes takes less time than reading the clock. */
#define TIMED_MIN_BYTES	((Size) 64 * 1024)

/* Empty, or what is kept. */
static FmsArena kept;

/* Has this transaction freed so much that malloc() shall not keep it? */
static bool trims = false;

static void
free_pieces(FmsArena *arena)
{
	fms_piece_free(&arena->index);
	fms_piece_free(&arena->data);
	arena->refused = false;
}

void
fms_arena_free(FmsArena *arena)
{
	trims = trims || fms_arena_size(arena) >= TRIMMED_MIN_BYTES;
	free_pieces(arena);
}

/* Of small sorts in memory, malloc() keeps what it keeps of PostgreSQL's. */
static void
free_kept(XactEvent event, void *arg)
{
	trims = trims || fms_arena_size(&kept) > START_MAX_BYTES;
	free_pieces(&kept);
#ifdef __GLIBC__
	if (trims)
		(void) malloc_trim(0);
#endif
	trims = false;
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
fms_arena_init(FmsArena *arena, double expected_bytes)
{
	static bool is_registered = false;

	if (!is_registered)
		RegisterXactCallback(free_kept, NULL);
	is_registered = true;
	memset(arena, 0, sizeof(*arena));
	arena->expected_bytes = expected_bytes;
	fms_piece_init(&arena->index);
	fms_piece_init(&arena->data);
	arena->on_reset.func = give_back;
	arena->on_reset.arg = arena;
	MemoryContextRegisterResetCallback(CurrentMemoryContext,
									   &arena->on_reset);
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
	free_pieces(arena);
	fms_arena_clear(from);
	arena->index = from->index;
	arena->data = from->data;
	fms_piece_init(&from->index);
	fms_piece_init(&from->data);
}

void
fms_arena_end(FmsArena *arena)
{
	if (fms_arena_size(arena) > KEPT_MAX_BYTES)
		fms_arena_free(arena);
	else if (fms_arena_size(arena) <= fms_arena_size(&kept))
		free_pieces(arena);
	else
		take_pieces(&kept, arena);
}

/* The next size: doubled or expected, with entries; from 2/3 on, the limit */
static Size
next_size(const FmsArena *arena, Size limit_bytes)
{
	Size		size = fms_arena_size(arena);
	Size		trusted = size < START_MAX_BYTES ? START_MAX_BYTES :
		KEPT_MAX_BYTES;
	Size		expected = (Size) Min(1.25 * arena->expected_bytes, trusted);
	Size		next = Max(Max(2 * size, START_BYTES), expected);

	return next > limit_bytes - limit_bytes / 3 ? limit_bytes : next;
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
			free_pieces(&kept);
		if (fms_arena_size(&kept) > 0)
			take_pieces(arena, &kept);
	}
	if (index_needed <= arena->index.size_bytes &&
		data_needed <= arena->data.size_bytes)
		return true;
	if (needed > limit_bytes)
		return false;
	size = next_size(arena, limit_bytes);
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
