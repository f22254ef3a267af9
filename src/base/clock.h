/*-------------------------------------------------------------------------
 *
 * clock.h
 *	  Reading the clock without paying for it per tuple.
 *
 * A stopwatch times what happens once a block or more rarely.  A sampler
 * divides a measured time between two sides that take turns once a tuple: the
 * owner, whose calls it samples, and the other side, which has the rest.
 *
 *	  other  call  other [call] other  call  other [call] other
 *	                          ^                         ^
 *	                          |<---- whole: measured -->|
 *
 * About one call in 64 is timed, at irregular distances.  Each sampled call
 * ends a stretch.  The owner has of it the time that stopwatches have measured
 * within its calls (known), the sampled call, and as much for each call not
 * sampled, but at most the stretch.  So neither part is negative, and the sum
 * is the measured time.
 *
 * A call takes about as long as reading the clock (20 ns).  So the clock is
 * read twice before the call, and the difference taken off; and stores made
 * before are waited for, since they would delay the call's own.
 *
 *-------------------------------------------------------------------------
 */
#ifndef FMS_CLOCK_H
#define FMS_CLOCK_H

#include "postgres.h"

#include "port/atomics.h"
#include "portability/instr_time.h"

/* Mean distance of sampled calls, after the first ones. */
#define FMS_SAMPLER_REACH		64

/*
 * A call that takes this multiple of a typical one was interrupted.  It counts
 * once, and not for the calls that were not sampled.
 */
#define FMS_SAMPLER_INTERRUPTED 16

/* Number of samples that the typical call is a mean of, about. */
#define FMS_SAMPLER_MEMORY		16

typedef struct FmsSampler
{
	uint32		calls_left;		/* until the next sampled call */
	uint32		stretch_calls;	/* calls from the mark to that, inclusive */
	uint32		reach;			/* mean distance of samples by now */
	uint32		seed;			/* of the distances; any value is valid */

	uint32		samples;		/* up to FMS_SAMPLER_MEMORY */
	double		typical_us;		/* of a call, without known parts */

	instr_time	mark;			/* time until then has been divided */
	double		mark_known_us;	/* known then */
	instr_time	start;			/* of the present sample */
	double		start_known_us;
	double		clock_us;		/* of reading the clock once */

	double		whole_us;		/* time divided since the beginning */
	double		own_us;			/* of that, the owner's; never more */
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

/*
 * Begins to divide the time from now on.  known_us: what stopwatches have
 * measured so far.  The typical call stays as learned.  Returns the time.
 */
static inline instr_time
fms_sampler_begin(FmsSampler *sampler, double known_us)
{
	sampler->whole_us = 0;
	sampler->own_us = 0;
	sampler->stretch_calls = sampler->calls_left + 1;
	sampler->mark_known_us = known_us;
	sampler->mark = fms_clock_now();
	return sampler->mark;
}

/*
 * Is this call sampled?  If so, fms_sampler_start() must come before it and
 * fms_sampler_add() after it.
 */
static inline bool
fms_sampler_due(FmsSampler *sampler)
{
	if (sampler->calls_left > 0)
	{
		sampler->calls_left--;
		return false;
	}
	return true;
}

/* Divides a stretch: own_us is the estimate of the owner's part. */
static inline void
fms_sampler_divide(FmsSampler *sampler, instr_time now, double known_us,
				   double own_us)
{
	double		whole_us = Max(0, fms_clock_between_us(sampler->mark, now));

	own_us += known_us - sampler->mark_known_us;
	sampler->whole_us += whole_us;
	sampler->own_us += Min(Max(0, own_us), whole_us);
	sampler->mark = now;
	sampler->mark_known_us = known_us;
}

/*
 * Learns from a sampled call that took call_us.  Returns the estimate for a
 * call that was not sampled.
 */
static inline double
fms_sampler_learn(FmsSampler *sampler, double call_us)
{
	double		limit_us = FMS_SAMPLER_INTERRUPTED *
		Max(sampler->typical_us, sampler->clock_us);
	double		other_us = call_us;

	if (sampler->samples > 0 && call_us > limit_us)
	{
		other_us = sampler->typical_us;
		call_us = limit_us;
	}
	sampler->samples = Min(sampler->samples + 1, FMS_SAMPLER_MEMORY);
	/* the first one may have been interrupted: the smaller of two */
	if (sampler->samples == 1)
		sampler->typical_us = call_us;
	else if (sampler->samples == 2)
		sampler->typical_us = Min(sampler->typical_us, call_us);
	else
		sampler->typical_us += (call_us - sampler->typical_us) /
			sampler->samples;
	return other_us;
}

/* A sampled call begins. */
static inline void
fms_sampler_start(FmsSampler *sampler, double known_us)
{
	instr_time	before;

	sampler->start_known_us = known_us;
	pg_memory_barrier();
	before = fms_clock_now();
	sampler->start = fms_clock_now();
	sampler->clock_us = fms_clock_between_us(before, sampler->start);
}

/* It has ended: divides the stretch, and chooses the next call to sample. */
static inline void
fms_sampler_add(FmsSampler *sampler, double known_us)
{
	instr_time	now = fms_clock_now();
	double		call_us = Max(0, fms_clock_between_us(sampler->start, now) -
							  (known_us - sampler->start_known_us) -
							  sampler->clock_us);
	double		other_us = fms_sampler_learn(sampler, call_us);

	fms_sampler_divide(sampler, now, known_us,
					   call_us + other_us * (sampler->stretch_calls - 1));
	sampler->seed = sampler->seed * 1664525 + 1013904223;
	/* the first calls are sampled more often, for a sort of a few tuples */
	sampler->reach = Max(1, Min(2 * sampler->reach, FMS_SAMPLER_REACH));
	sampler->calls_left = sampler->reach / 2 +
		((sampler->seed >> 16) & (sampler->reach - 1));
	sampler->stretch_calls = sampler->calls_left + 1;
}

/* Divides the time since the last sample, by the typical call. */
static inline void
fms_sampler_pause(FmsSampler *sampler, double known_us)
{
	uint32		calls = sampler->stretch_calls - 1 - sampler->calls_left;

	fms_sampler_divide(sampler, fms_clock_now(), known_us,
					   calls * sampler->typical_us);
	sampler->stretch_calls = sampler->calls_left + 1;
}

/* The other's part of the time divided so far. */
static inline double
fms_sampler_other_us(const FmsSampler *sampler)
{
	return sampler->whole_us - sampler->own_us;
}

#endif							/* FMS_CLOCK_H */
