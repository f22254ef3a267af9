/*-------------------------------------------------------------------------
 *
 * interrupts.h
 *	  How much work there may be between two checks for interrupts.
 *
 * A loop whose length comes from a user or from the data is cut into
 * stretches.  Each begins with a check and touches at most
 * FMS_INTERRUPT_BYTES of memory, which takes a few milliseconds at worst:
 *
 *	  for (i = 0; i < count;)
 *	  {
 *		  Size	stop = fms_interrupts_stretch(i, count, sizeof(FmsEntry));
 *
 *		  for (; i < stop; i++)
 *			  ...
 *	  }
 *
 * So the inner loop, the hot one, is as it would be without checks.  A loop
 * of uneven steps adds them up with fms_interrupts_after().
 *
 * A check may raise an error, like a type's comparator.  What the loop works
 * on may be in any state by then, as long as the owner of the memory can free
 * it: a sort in which an error was raised is never used again.  test/unit's
 * test_interrupts.c counts the work between two checks.
 *
 *-------------------------------------------------------------------------
 */
#ifndef FMS_INTERRUPTS_H
#define FMS_INTERRUPTS_H

#include "postgres.h"

#include "miscadmin.h"

/* Memory that is touched between two checks, at most; the one bound. */
#define FMS_INTERRUPT_BYTES	((Size) 64 * 1024)

/*
 * Some steps take longer than touching their own bytes, and some less; what
 * they count for.  A record is somewhere in memory, and comparing it may run
 * a type's comparator: 256 records between two checks.
 */
#define FMS_INTERRUPT_RECORD_BYTES	((Size) 256)

/* The kernel frees pages faster than we touch them: in pieces of 32 MB. */
#define FMS_INTERRUPT_FREED_BYTES	(512 * FMS_INTERRUPT_BYTES)

/* Transfers are submitted together in pieces of 8 MB. */
#define FMS_INTERRUPT_IO_BYTES	(128 * FMS_INTERRUPT_BYTES)

/*
 * Checks, then says where the stretch ends that begins with step `at` of a
 * loop of `count` steps, each of which counts for so many bytes.
 */
static inline Size
fms_interrupts_stretch(Size at, Size count, Size step_bytes)
{
	CHECK_FOR_INTERRUPTS();
	return at + Min(count - at, FMS_INTERRUPT_BYTES / step_bytes);
}

/*
 * Runs the next statement for i, i + 1, ... count - 1, as the loop above does.
 * The statement must not break out of the loop.
 */
#define fms_for_interruptible(i, count, step_bytes) \
	for (Size fms_stop; (i) < (count) && \
		 (fms_stop = fms_interrupts_stretch(i, count, step_bytes), true);) \
		for (; (i) < fms_stop; (i)++)

/* Adds so many bytes to those touched since the last check; then it checks. */
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

/* memmove() that checks before each piece of the bound. */
static inline void
fms_interrupts_memmove(void *to, const void *from, Size bytes)
{
	Size		done = 0;

	while (done < bytes)
	{
		Size		stop = fms_interrupts_stretch(done, bytes, 1);
		Size		piece = stop - done;
		/* upwards begins at the end: nothing is overwritten unread */
		Size		at = (char *) to > (const char *) from ?
			bytes - stop : done;

		memmove((char *) to + at, (const char *) from + at, piece);
		done = stop;
	}
}

#endif							/* FMS_INTERRUPTS_H */
