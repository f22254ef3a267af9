/*-------------------------------------------------------------------------
 *
 * clock.h
 *	  Reading the clock without paying for it per tuple.
 *
 * A stopwatch times what happens once a block or more rarely.  A sampler
 * divides a measured time, the whole, between two sides that take turns once a
 * tuple: the owner, whose calls it samples, and the other side, which has the
 * rest.
 *
 * About one call in 64 is timed, at irregular distances, since the input may
 * be periodic.  A sample represents all calls since the last sample.  A sample
 * that was interrupted represents itself only; the next sample represents the
 * other calls.  The owner's estimated time never exceeds the measured time.
 * The first calls are not timed, so a small sort never reads the clock.
 *
 *-------------------------------------------------------------------------
 */
#ifndef FMS_CLOCK_H
#define FMS_CLOCK_H

#include "port/atomics.h"
#include "portability/instr_time.h"

/* Number of calls before the first sample, and mean distance of samples. */
#define FMS_SAMPLER_FIRST		127
#define FMS_SAMPLER_REACH		64

/* An interrupted call takes this multiple of a typical one, and of 1 us. */
#define FMS_SAMPLER_INTERRUPTED 16

/* Number of samples that the typical call is a mean of, about. */
#define FMS_SAMPLER_MEMORY		16

typedef struct FmsSampler
{
	uint32		calls_left;		/* until the next sampled call */
	uint32		waiting;		/* calls that the next sample stands for */
	uint32		samples;
	uint32		seed;			/* of the distances; any value is valid */
	double		typical_us;		/* of a call, without known parts */
	double		own_us;			/* the owner's, without waiting calls */
	instr_time	begun;			/* the whole */
	instr_time	start;			/* the present sample */
	double		clock_us;		/* of reading the clock once */
} FmsSampler;

static inline instr_time
fms_clock_now(void)
{
	instr_time	now;

	INSTR_TIME_SET_CURRENT(now);
	return now;
}

static inline double
fms_clock_between_us(instr_time start, instr_time end)
{
	INSTR_TIME_SUBTRACT(end, start);
	return INSTR_TIME_GET_DOUBLE(end) * 1e6;
}

static inline double
fms_clock_since_us(instr_time start)
{
	return fms_clock_between_us(start, fms_clock_now());
}

/* Begins a whole.  known_us: by stopwatches in the owner's calls so far. */
static inline void
fms_sampler_begin(FmsSampler *sampler, double known_us)
{
	if (INSTR_TIME_IS_ZERO(sampler->begun))
		sampler->calls_left = FMS_SAMPLER_FIRST;
	sampler->waiting = sampler->calls_left;
	sampler->own_us = -known_us;
	sampler->begun = fms_clock_now();
}

/* Is this call sampled, that is between fms_sampler_start() and _add()? */
static inline bool
fms_sampler_due(FmsSampler *sampler)
{
	if (sampler->calls_left == 0)
		return true;
	sampler->calls_left--;
	return false;
}

/*
 * A sampled call begins.  fms_sampler_add() subtracts what reading the clock
 * takes.  The barrier waits for earlier stores, which would delay the call's.
 */
static inline void
fms_sampler_start(FmsSampler *sampler)
{
	instr_time	before;

	pg_memory_barrier();
	before = fms_clock_now();
	sampler->start = fms_clock_now();
	sampler->clock_us = fms_clock_between_us(before, sampler->start);
}

/* The call has ended.  known_us: what stopwatches have measured within it. */
static inline void
fms_sampler_add(FmsSampler *sampler, double known_us)
{
	double		call_us = fms_clock_since_us(sampler->start) -
		sampler->clock_us - known_us;
	double		limit_us = FMS_SAMPLER_INTERRUPTED *
		Max(1, sampler->typical_us);

	call_us = Max(0, call_us);
	sampler->own_us += call_us;
	if (call_us <= limit_us)
	{
		sampler->own_us += call_us * sampler->waiting;
		sampler->waiting = 0;
	}
	sampler->samples = Min(sampler->samples + 1, FMS_SAMPLER_MEMORY);
	sampler->typical_us += (Min(call_us, limit_us) - sampler->typical_us) /
		sampler->samples;

	sampler->seed = sampler->seed * 1664525 + 1013904223;
	sampler->calls_left = FMS_SAMPLER_REACH / 2 +
		(sampler->seed >> 16) % FMS_SAMPLER_REACH;
	sampler->waiting += sampler->calls_left;
}

/* The owner's part of whole_us, the time since fms_sampler_begin(). */
static inline double
fms_sampler_own_us(const FmsSampler *sampler, double whole_us, double known_us)
{
	double		own_us = sampler->own_us + known_us +
		(sampler->waiting - sampler->calls_left) * sampler->typical_us;

	return Min(Max(0, own_us), whole_us);
}

#endif							/* FMS_CLOCK_H */
