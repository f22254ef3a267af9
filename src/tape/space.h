/*-------------------------------------------------------------------------
 *
 * space.h
 *	  The stretches of a tape that may be written again.
 *
 *-------------------------------------------------------------------------
 */
#ifndef FMS_SPACE_H
#define FMS_SPACE_H

#include "postgres.h"

typedef struct FmsStretch
{
	uint64		from_bytes;
	uint64		upto_bytes;		/* first byte behind it; > from_bytes */
} FmsStretch;

typedef struct FmsSpace
{
	FmsStretch *stretches;		/* by place, none touches the next; or NULL */
	int			count;
	int			size;			/* room for so many */
} FmsSpace;

/* Zeroed, it is empty.  Frees what it holds; it is empty then. */
extern void fms_space_clear(FmsSpace *space);

/* That stretch is free, and was not so far.  Current context; may ERROR. */
extern void fms_space_add(FmsSpace *space, FmsStretch stretch);

/*
 * The largest stretch, if its whole pages hold so many bytes: takes these out.
 * Else false.
 */
extern bool fms_space_take(FmsSpace *space, Size bytes, FmsStretch *stretch);

/* Would that take one? */
extern bool fms_space_has(const FmsSpace *space, Size bytes);

#endif							/* FMS_SPACE_H */
