/*-------------------------------------------------------------------------
 *
 * cache.h
 *	  How much a sort may leave in the page cache.
 *
 *-------------------------------------------------------------------------
 */
#ifndef FMS_CACHE_H
#define FMS_CACHE_H

#include "postgres.h"

/*
 * Bytes that a sort which has taken so many already may still leave in the
 * page cache without harm; 0 where that cannot be told.  Never fails.
 */
extern uint64 fms_cache_room_bytes(uint64 taken_bytes);

/*
 * The same where the device is so slow that its own time is all that counts:
 * harm to others' pages does not.
 */
extern uint64 fms_cache_memory_bytes(uint64 taken_bytes);

/*
 * What that memory has no room for of a spill of that size, of which so much
 * is there already, and of the pages of what is sorted, which may be as many.
 */
extern double fms_cache_overflow_bytes(double spill_bytes,
									   uint64 taken_bytes);

/* Does it hold all of both? */
extern bool fms_cache_memory_holds(double spill_bytes, uint64 taken_bytes);

/* How many of them to use before asking again. */
extern uint64 fms_cache_part_bytes(uint64 room_bytes);

#endif							/* FMS_CACHE_H */
