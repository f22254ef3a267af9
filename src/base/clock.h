/*-------------------------------------------------------------------------
 *
 * clock.h
 *	  Reading the clock without paying for it per tuple.
 *
 * A stopwatch (fms_clock_now(), fms_clock_since_us()) times what happens
 * once a block or more rarely.  A sampler divides a time that a stopwatch
 * has measured between two who take turns once a tuple: the owner, whose
 * calls it samples, and the other, who has the rest.  Two clock reads around
 * every tuple would cost more than the merge of it, so about one call in 64
 * is timed, at irregular distances (a regular distance would beat against
 * the rows of a page).
 *
 *	  other  call  other [call] other  call  other [call] other
 *	                          ^                         ^
 *	                          |<---- whole: measured -->|
 *
 * Each sampled call ends a stretch, which is divided at once.  The owner
 * has: what stopwatches have measured of its calls (known: blocks loaded,
 * runs written), the sampled call, and for each call not sampled the same
 * again, but never more than the stretch.  So whatever the clock shows,
 * neither part is negative, and both together are the time measured.
 *
 * The owner must be the one whose calls are alike, known parts aside.  The
 * other may wait for anything at any time; that is in the measured time.
 *
 * A process may lose its processor within a sampled call.  A call that took
 * many times what is typical counts once, and does not speak for calls not
 * sampled.
 *
 * What is timed may take no longer than reading the clock does (some 20 ns).
 * So the clock is read twice before a sampled call; what lies between the
 * two readings is what reading it costs there and then, and is taken off.
 *
 *	  read, read, call, read
 *	      |<->|			off
 *			  |<------->|	of this
 *
 * What was stored before the call is waited for first.  The processor writes
 * to memory behind our back, a block's worth of tuples at times, and a call
 * that stores anything stands in that queue; with other users of the same
 * memory it stood there for 100 ns to be timed for what takes 15.
 *
 *-------------------------------------------------------------------------
 */
#ifndef FMS_CLOCK_H
#define FMS_CLOCK_H

#include "postgres.h"

#include "port/atomics.h"
#include "portability/instr_time.h"

/* Mean distance of sampled calls, once there have been some. */
#define FMS_SAMPLER_REACH		64

/* A call that takes so many times what is typical was interrupted. */
#define FMS_SAMPLER_INTERRUPTED 16

/* Samples that the typical call is a mean of, about. */
#define FMS_SAMPLER_MEMORY		16

typedef struct FmsSampler
{
	uint32		calls_left;		/* until the next sampled call */
	uint32		stretch_calls;	/* calls from the mark to that, inclusive */
	uint32		reach;			/* mean distance of samples by now */
	uint32		seed;			/* of the distances; any value will do */

	uint32		samples;		/* up to FMS_SAMPLER_MEMORY */
	double		typical_us;		/* a call, known parts aside */

	instr_time	mark;			/* time before it has been divided */
	double		mark_known_us;	/* what was known at the mark */
	instr_time	start;			/* of the present sample */
	double		start_known_us;
	double		clock_us;		/* what reading the clock costs it */

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
 * Begins dividing: time from now on, of which the stopwatches have seen
 * known_us.  What earlier calls have taught stays.  Returns the time.
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
 * Is this call one to time?  If so, fms_sampler_start() must come before it
 * and fms_sampler_add() after it.
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

/* Divides a stretch: own_us is what the owner seems to have had of it. */
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
 * A sampled call took so long.  Returns what a call not sampled took, and
 * learns what is typical.
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
	/* the first one may have been interrupted, so the smaller of two */
	if (sampler->samples == 1)
		sampler->typical_us = call_us;
	else if (sampler->samples == 2)
		sampler->typical_us = Min(sampler->typical_us, call_us);
	else
		sampler->typical_us += (call_us - sampler->typical_us) /
			sampler->samples;
	return other_us;
}

/* A timed call begins; the stopwatches have seen known_us so far. */
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

/* It has ended: divides the stretch, and chooses the next one to time. */
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
	/* the first calls are timed more often, for a sort of a few tuples */
	sampler->reach = Max(1, Min(2 * sampler->reach, FMS_SAMPLER_REACH));
	sampler->calls_left = sampler->reach / 2 +
		((sampler->seed >> 16) & (sampler->reach - 1));
	sampler->stretch_calls = sampler->calls_left + 1;
}

/* Divides what is left, by what is typical of a call. */
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
