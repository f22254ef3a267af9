/*-------------------------------------------------------------------------
 *
 * radix.h
 *	  Sorting words of 8 bytes by radix.
 *
 *-------------------------------------------------------------------------
 */
#ifndef FMS_RADIX_H
#define FMS_RADIX_H

#include "postgres.h"

/*
 * Sorts words by nbits bits of (word - low) from first_bit on, keeping the
 * order of those with equal bits.  room: for as many words again.  Returns
 * `words` or `room`, whichever has the result; the other is undefined, and so
 * are both after an ERROR (interrupt).
 */
extern uint64 *fms_radix_deal(uint64 *words, uint64 *room, Size count,
							  uint64 low, int first_bit, int nbits);

/* Sorts words in place.  room: for as many words again. */
extern void fms_radix_sort(uint64 *words, uint64 *room, Size count);

#endif							/* FMS_RADIX_H */
