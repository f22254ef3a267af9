/*-------------------------------------------------------------------------
 *
 * io_pinned.h
 *	  Buffers whose pages the kernel holds for as long as the ring has them.
 *
 *-------------------------------------------------------------------------
 */
#ifndef FMS_IO_PINNED_H
#define FMS_IO_PINNED_H

#include "postgres.h"

struct io_uring;

/* A new ring: nothing is pinned, and whether anything can be is found out. */
extern void fms_io_pinned_begin(struct io_uring *ring);

/*
 * Pins a buffer, if the ring, its table and the memory that this process may
 * lock have room for it.  If not, transfers go on without.
 */
extern void fms_io_pinned_add(struct io_uring *ring, char *buffer, Size bytes);

/* Lets go of it, if it is pinned.  Must have nothing in flight. */
extern void fms_io_pinned_remove(struct io_uring *ring, const char *buffer);

/* Which of the ring's buffers has all of that?  -1: none. */
extern int	fms_io_pinned_find(const char *buffer, Size bytes);

#endif							/* FMS_IO_PINNED_H */
