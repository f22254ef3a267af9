/*-------------------------------------------------------------------------
 *
 * jumping_clock.c
 *	  A clock as a process sees it that loses its processor again and again.
 *
 * Preloaded into a server (LD_PRELOAD), this library makes up the monotonic
 * clock of each process.  Nothing is left to chance: each reading takes 20 ns,
 * and every nth one comes much later than the one before.
 *
 *	  FMSORT_JUMPS="n microseconds"
 *
 * A server that reads the processor's own counter does not see it.
 *
 *-------------------------------------------------------------------------
 */
#define _GNU_SOURCE

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define READING_NS	20
#define NS_PER_S	1000000000

int
clock_gettime(clockid_t clock, struct timespec *time)
{
	static int64_t now_ns = (int64_t) 1000 * NS_PER_S;
	static unsigned readings = 0;
	static unsigned every = 0;
	static unsigned jump_us = 0;
	const char *jumps;

	if (clock != CLOCK_MONOTONIC)
		return (int) syscall(SYS_clock_gettime, clock, time);
	if (every == 0)
	{
		jumps = getenv("FMSORT_JUMPS");
		if (jumps == NULL || sscanf(jumps, "%u %u", &every, &jump_us) != 2 ||
			every == 0)
			every = 1000;
	}
	now_ns += READING_NS;
	if (++readings % every == 0)
		now_ns += (int64_t) jump_us * 1000;
	time->tv_sec = now_ns / NS_PER_S;
	time->tv_nsec = now_ns % NS_PER_S;
	return 0;
}
