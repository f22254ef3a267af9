/*-------------------------------------------------------------------------
 *
 * space.h
 *	  The free extents of a tape, which may be written again.
 *
 *-------------------------------------------------------------------------
 */
#ifndef FMS_SPACE_H
#define FMS_SPACE_H

#include "postgres.h"

typedef struct FmsFreeExtent
{
	uint64		from_bytes;
	uint64		upto_bytes;		/* first byte behind it; > from_bytes */
} FmsFreeExtent;

typedef struct FmsSpace
{
	FmsFreeExtent *extents;		/* by offset, none touches the next; or NULL */
	int			count;
	int			size;			/* allocated */
} FmsSpace;

/* Empties the space and frees its memory.  A zeroed space is empty. */
extern void fms_space_clear(FmsSpace *space);

/* Adds an extent, which was not free.  Current context. */
extern void fms_space_add(FmsSpace *space, FmsFreeExtent extent);

/*
 * Takes the whole pages of the largest extent, if these hold that many bytes;
 * else returns false.  If extent is NULL, it only asks.
 */
extern bool fms_space_take(FmsSpace *space, Size bytes,
						   FmsFreeExtent *extent);

#endif							/* FMS_SPACE_H */
