/*-------------------------------------------------------------------------
 *
 * piece.h
 *	  One piece of memory that grows in place of being copied.
 *
 *-------------------------------------------------------------------------
 */
#ifndef FMS_PIECE_H
#define FMS_PIECE_H

#include "postgres.h"

/*
 *			base									 base + size_bytes
 *	 | head |  used  |  reached, not used  |  not reached  |
 *
 * The owner knows how much is used.
 */
typedef struct FmsPiece
{
	MemoryContext context;		/* of a small piece */
	char	   *base;			/* NULL: nothing allocated */
	Size		size_bytes;
	Size		reached_bytes;	/* from base on, known to have pages */
	Size		head_bytes;		/* mapped in front of base */
	Size		wanted_head_bytes;	/* of head, once the piece is mapped */
	bool		mapped;			/* else palloc'd */
	bool		huge;			/* asks for huge pages */
	uint32		touches;		/* of huge pages */
	double		touch_us;		/* time that these took */
} FmsPiece;

/* An empty piece.  Small sizes are palloc'd in the context. */
extern void fms_piece_init(FmsPiece *piece, MemoryContext context);

/*
 * Makes the piece larger or smaller; the first used_bytes keep their values.
 * Returns false, with nothing changed, if the system refuses the memory or
 * has little more than that.
 */
extern bool fms_piece_resize(FmsPiece *piece, Size used_bytes,
							 Size size_bytes);

/*
 * Gets pages for the first upto_bytes.  The values of bytes behind
 * reached_bytes are lost.
 */
extern void fms_piece_reach(FmsPiece *piece, Size upto_bytes);

/*
 * Hands the head over: the caller unmaps it.  NULL: the piece has none, or is
 * smaller than a huge page.
 */
extern char *fms_piece_take_head(FmsPiece *piece, Size *bytes);

/* Frees the memory.  The piece is empty then. */
extern void fms_piece_free(FmsPiece *piece);

/* The same where the context is being reset, which frees small pieces. */
extern void fms_piece_unmap(FmsPiece *piece);

#endif							/* FMS_PIECE_H */
