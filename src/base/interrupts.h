/*-------------------------------------------------------------------------
 *
 * interrupts.h
 *	  How much work there may be between two checks for interrupts.
 *
 * A loop whose length comes from a user or from the data is cut into
 * stretches.  Each begins with a check and touches at most
 * FMS_INTERRUPT_BYTES of memory, in a few milliseconds at worst.
 *
 * A check may raise an error and leave the loop's data in any state, but the
 * owner of the memory must be able to free it.
 *
 *-------------------------------------------------------------------------
 */
#ifndef FMS_INTERRUPTS_H
#define FMS_INTERRUPTS_H

#include "miscadmin.h"

#define FMS_INTERRUPT_BYTES	((Size) 64 * 1024)

/* What a record counts for, which may miss the caches or run a comparator. */
#define FMS_INTERRUPT_RECORD_BYTES	((Size) 256)

/* The kernel frees pages faster than they are touched: 32 MB at once. */
#define FMS_INTERRUPT_FREED_BYTES	(512 * FMS_INTERRUPT_BYTES)

/* Bytes of transfers that are submitted together: 8 MB. */
#define FMS_INTERRUPT_IO_BYTES	(128 * FMS_INTERRUPT_BYTES)

/* Checks.  The end of the stretch that begins with step `at` of a loop. */
static inline Size
fms_interrupts_stretch(Size at, Size count, Size step_bytes)
{
	CHECK_FOR_INTERRUPTS();
	return at + Min(count - at, FMS_INTERRUPT_BYTES / step_bytes);
}

/* Runs the next statement for i = 0 .. count - 1; it must not break out. */
#define fms_for_interruptible(i, count, step_bytes) \
	for (Size i = 0, fms_stop; i < (count) && \
		 (fms_stop = fms_interrupts_stretch(i, count, step_bytes), true);) \
		for (; i < fms_stop; i++)

/* Adds bytes to those touched since the last check; checks if it is time. */
static inline void
fms_interrupts_after(Size *touched_bytes, Size bytes)
{
	*touched_bytes += bytes;
	if (unlikely(*touched_bytes >= FMS_INTERRUPT_BYTES))
	{
		*touched_bytes = 0;
		CHECK_FOR_INTERRUPTS();
	}
}

/* memmove() that checks between pieces. */
static inline void
fms_interrupts_memmove(void *to, const void *from, Size bytes)
{
	Size		done = 0;

	while (done < bytes)
	{
		Size		stop = fms_interrupts_stretch(done, bytes, 1);
		Size		piece = stop - done;
		/* moving upwards begins at the end, so it overwrites nothing unread */
		Size		at = (char *) to > (const char *) from ?
			bytes - stop : done;

		memmove((char *) to + at, (const char *) from + at, piece);
		done = stop;
	}
}

#endif							/* FMS_INTERRUPTS_H */
