/*
 * cache_made_up.h
 *	  What cache.c would say, of amounts that the test sets: no memory of this
 *	  machine decides.
 */
#ifndef FMS_CACHE_MADE_UP_H
#define FMS_CACHE_MADE_UP_H

#include "postgres.h"

#include "device/cache.h"

#define MB		((uint64) 1000 * 1000)

static uint64 room = 1000 * MB; /* before the kernel writes */
static uint64 memory = 10000 * MB;	/* at all */

uint64
fms_cache_room_bytes(uint64 taken_bytes)
{
	return room > taken_bytes ? room - taken_bytes : 0;
}

uint64
fms_cache_memory_bytes(uint64 taken_bytes)
{
	return memory > taken_bytes ? memory - taken_bytes : 0;
}

double
fms_cache_overflow_bytes(double spill_bytes, uint64 taken_bytes)
{
	return Max(0, 2 * spill_bytes - memory);
}

bool
fms_cache_memory_holds(double spill_bytes, uint64 taken_bytes)
{
	return fms_cache_overflow_bytes(spill_bytes, taken_bytes) <= 0;
}

uint64
fms_cache_part_bytes(uint64 room_bytes)
{
	return room_bytes / 8;
}

#endif							/* FMS_CACHE_MADE_UP_H */
