/*-------------------------------------------------------------------------
 *
 * arena.h
 *	  Memory for items of any length and an index of them, which grows with
 *	  the items, in two pieces.
 *
 *-------------------------------------------------------------------------
 */
#ifndef FMS_ARENA_H
#define FMS_ARENA_H

/* ---- pieces: piece.c ---- */

/*
 *	base									 base + size_bytes
 *	 |  used  |  reached, not used  |  not reached  |
 */
typedef struct FmsPiece
{
	char	   *base;			/* NULL: nothing allocated */
	Size		used_bytes;		/* the owner's */
	Size		size_bytes;
	Size		reached_bytes;	/* from base on, known to have pages */
	bool		mapped;			/* else palloc'd */
	bool		huge;			/* asks for huge pages */
	double		patience_us;	/* how much longer than small pages the huge
								 * ones may take; < 0: they took longer */
} FmsPiece;

/* Makes an empty piece.  Small sizes are palloc'd in TopMemoryContext. */
extern void fms_piece_init(FmsPiece *piece);

/*
 * Changes the size; the bytes used keep their values.  0 frees the piece.
 * Returns false, and the size stays, if the system refuses the memory or would
 * have little left.
 */
extern bool fms_piece_resize(FmsPiece *piece, Size size_bytes);

/* Gets pages up to there.  Bytes behind reached_bytes lose their values. */
extern void fms_piece_reach(FmsPiece *piece, Size upto_bytes);

/* Frees the memory; the piece is empty then. */
extern void fms_piece_free(FmsPiece *piece);

/* ---- arenas: arena.c ---- */

typedef struct FmsArena
{
	FmsPiece	index;
	FmsPiece	data;
	double		expected_bytes; /* an estimate of those used, or 0 */
	bool		refused;		/* the system has refused more memory */
	MemoryContextCallback on_reset;
	double		make_room_us;	/* all time in fms_arena_make_room() */
} FmsArena;

/* Makes an empty arena that goes with the current context, as the struct. */
extern void fms_arena_init(FmsArena *arena, double expected_bytes);

/* Forgets what is in the arena, and frees its memory or not. */
extern void fms_arena_free(FmsArena *arena);
extern void fms_arena_clear(FmsArena *arena);

/* Keeps memory that is not large for the transaction's next arena. */
extern void fms_arena_end(FmsArena *arena);

/* Has the arena room to add these bytes of index and data? */
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
 * Makes room to add index_bytes and data_bytes.  Both pieces together stay
 * within limit_bytes, and may move.  Returns false if the limit or the system
 * does not allow it.
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
