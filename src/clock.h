/*-------------------------------------------------------------------------
 *
 * clock.h
 *	  Reading the clock without paying for it per tuple.
 *
 * Two tools.  A stopwatch (start, elapsed) for things that happen once a
 * block or more rarely.  A sampler for things that happen once a tuple: two
 * clock reads around every tuple would cost more than the merge of it, so
 * the sampler times about one call in 64, at irregular distances (a regular
 * distance would beat against the rows of a page), and scales up.
 *
 *	  calls   x x x [x] x x x x x x [x] x x [x] x x x x ...
 *	  weight         4               7        3
 *
 * A sampled call stands for itself and the calls skipped before it.  The
 * first call is always sampled, and stands for itself only: it is the one
 * that may take as long as all others together (an input that sorts).
 *
 * What is timed may take no longer than reading the clock does (some 20 ns),
 * and the calls that are not timed do not read it.  So the clock is read twice
 * before a sampled call; what lies between the two readings is what reading it
 * costs there and then, and is taken off.
 *
 *	  read, read, call, read
 *	      |<->|			off
 *			  |<------->|	of this
 *
 * Each time what that one costs: off the least that was seen, a call that does
 * nothing would take 27 ns.  And between the readings nothing is computed.
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

typedef struct FmsSampler
{
	uint32		calls_left;		/* until the next sampled call */
	uint32		weight;			/* calls the next sample stands for */
	uint32		seed;			/* of the distances; any value will do */
	instr_time	clock;			/* what the present sample takes too long */
	double		total_us;		/* estimate over all calls so far */
} FmsSampler;

static inline instr_time
fms_clock_now(void)
{
	instr_time	now;

	INSTR_TIME_SET_CURRENT(now);
	return now;
}

static inline double
fms_clock_since_us(instr_time start)
{
	instr_time	now;

	INSTR_TIME_SET_CURRENT(now);
	INSTR_TIME_SUBTRACT(now, start);
	return INSTR_TIME_GET_DOUBLE(now) * 1e6;
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

/* The time at which a timed call begins. */
static inline instr_time
fms_sampler_start(FmsSampler *sampler)
{
	instr_time	before;
	instr_time	start;

	pg_memory_barrier();
	before = fms_clock_now();
	start = fms_clock_now();
	sampler->clock = start;
	INSTR_TIME_SUBTRACT(sampler->clock, before);
	return start;
}

/*
 * Adds a timed call and chooses the next one.  Returns what the total grew by:
 * the call, and those it stands for.
 */
static inline double
fms_sampler_add(FmsSampler *sampler, double elapsed_us)
{
	double		clock_us = INSTR_TIME_GET_DOUBLE(sampler->clock) * 1e6;
	double		added_us = Max(0, elapsed_us - clock_us) *
		Max(sampler->weight, 1);

	sampler->total_us += added_us;
	sampler->seed = sampler->seed * 1664525 + 1013904223;
	sampler->calls_left = 32 + ((sampler->seed >> 16) & 63);
	sampler->weight = sampler->calls_left + 1;
	return added_us;
}

#endif							/* FMS_CLOCK_H */
