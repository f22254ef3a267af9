/*-------------------------------------------------------------------------
 *
 * piece.h
 *	  A piece of memory that grows.
 *
 *-------------------------------------------------------------------------
 */
#ifndef FMS_PIECE_H
#define FMS_PIECE_H

#include "postgres.h"

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

/*
 * Gets pages for the first upto_bytes.  Bytes behind reached_bytes lose their
 * values.
 */
extern void fms_piece_reach(FmsPiece *piece, Size upto_bytes);

/* Frees the memory; the piece is empty then. */
extern void fms_piece_free(FmsPiece *piece);

#endif							/* FMS_PIECE_H */
