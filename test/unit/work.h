/*
 * work.h
 *	  Counts the work between two checks for interrupts.
 *
 * The program is compiled with -fsanitize-coverage=trace-pc: the compiler
 * calls a function at the beginning of each basic block, so each round of any
 * loop counts at least one.  Functions of the C library are wrapped by the
 * linker, and count for their bytes.  Nothing in the sources under test takes
 * part in it: a loop that forgets to check cannot forget to be counted.
 *
 * Include it once, in a program with the line "flags:" that test_interrupts.c
 * has.  It replaces ProcessInterrupts(), and interrupts are always pending.
 */
#ifndef FMS_WORK_H
#define FMS_WORK_H

#include <sys/mman.h>

#include "base/interrupts.h"
#include "shim.h"

/*
 * Between two checks a loop over entries has a stretch of so many rounds.  A
 * round may have this number of basic blocks; one without a check has as many
 * blocks as there are entries, at least.
 */
#define WORK_ENTRIES	(FMS_INTERRUPT_BYTES / 16)
#define WORK_MAX		(32 * WORK_ENTRIES)

#define WORK_BYTES		16		/* copied, are one */
#define WORK_FREED_BYTES 1024	/* given back, are one */

#ifdef __clang__
#define WORK_UNCOUNTED __attribute__((no_sanitize("coverage")))
#else
#define WORK_UNCOUNTED __attribute__((no_sanitize_coverage))
#endif

static uint64 work = 0;			/* since the last check */
static uint64 work_most = 0;	/* between two checks */
static size_t work_freed_bytes = 0; /* of what is going to be unmapped */

extern void __sanitizer_cov_trace_pc(void);
extern void *__real_memmove(void *to, const void *from, size_t bytes);
extern void *__wrap_memmove(void *to, const void *from, size_t bytes);
extern void *__real_memcpy(void *to, const void *from, size_t bytes);
extern void *__wrap_memcpy(void *to, const void *from, size_t bytes);
extern int	__real_munmap(void *memory, size_t bytes);
extern int	__wrap_munmap(void *memory, size_t bytes);
extern int	__real_madvise(void *memory, size_t bytes, int advice);
extern int	__wrap_madvise(void *memory, size_t bytes, int advice);

WORK_UNCOUNTED void
__sanitizer_cov_trace_pc(void)
{
	work++;
}

static WORK_UNCOUNTED void
work_note(void)
{
	if (work > work_most)
		work_most = work;
	work = 0;
}

WORK_UNCOUNTED void
ProcessInterrupts(void)
{
	work_note();
}

void *
__wrap_memmove(void *to, const void *from, size_t bytes)
{
	work += bytes / WORK_BYTES;
	return __real_memmove(to, from, bytes);
}

void *
__wrap_memcpy(void *to, const void *from, size_t bytes)
{
	work += bytes / WORK_BYTES;
	return __real_memcpy(to, from, bytes);
}

int
__wrap_munmap(void *memory, size_t bytes)
{
	work += (bytes - Min(bytes, work_freed_bytes)) / WORK_FREED_BYTES;
	work_freed_bytes = 0;
	return __real_munmap(memory, bytes);
}

int
__wrap_madvise(void *memory, size_t bytes, int advice)
{
	if (advice == MADV_DONTNEED)
	{
		work += bytes / WORK_FREED_BYTES;
		work_freed_bytes += bytes;
	}
	return __real_madvise(memory, bytes, advice);
}

static WORK_UNCOUNTED void
work_begin(void)
{
	InterruptPending = true;
	work = work_most = 0;
}

/* Was there never more than the bound since work_begin()? */
static WORK_UNCOUNTED bool
work_was_bounded(void)
{
	work_note();
	InterruptPending = false;
	if (work_most > WORK_MAX)
		shim_note("%llu between two checks, at most %llu",
				  (unsigned long long) work_most,
				  (unsigned long long) WORK_MAX);
	return work_most <= WORK_MAX;
}

#endif							/* FMS_WORK_H */
