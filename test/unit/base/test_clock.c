/*
 * Times that add up, by a made-up clock: a process that loses its processor,
 * an input that waits now and then, owners whose calls are all alike.  What
 * the sampler says of them is never impossible, and about right.
 *
 * Seen to fail with: samples scaled up without a bound (one call of 200 ms
 * stood for 64); the bound alone, so that such a call takes all of a slow
 * parent's stretch; typical calls learned from interrupted ones; what is known
 * counted twice; the last calls, which no sample follows, left out.
 */
#include "postgres.h"

#include <math.h>
#include <time.h>

#include "portability/instr_time.h"

/* ---- the clock ---- */

static double now_us;
static const double read_us = 0.02;

/* An instr_time holds nanoseconds, or seconds and nanoseconds. */
static instr_time
made_up_time(void)
{
	union
	{
		instr_time	time;
		int64		ns;
		struct timespec parts;
	}			result;
	int64		ns;

	now_us += read_us;
	ns = (int64) rint(now_us * 1000);
	memset(&result, 0, sizeof(result));
	if (sizeof(instr_time) == sizeof(int64))
		result.ns = ns;
	else
	{
		result.parts.tv_sec = ns / 1000000000;
		result.parts.tv_nsec = ns % 1000000000;
	}
	return result.time;
}

#undef INSTR_TIME_SET_CURRENT
#define INSTR_TIME_SET_CURRENT(t) ((t) = made_up_time())

#include "base/clock.h"
#include "shim.h"

/* ---- who takes turns ---- */

typedef struct Turns
{
	double		other_us;		/* between two calls */
	double		call_us;
	double		known_us;		/* of a call, what a stopwatch sees */
	uint32		known_every;	/* in every such call; 0: in none */
} Turns;

static FmsSampler sampler;
static double known_us;			/* all of it */
static double said_us;			/* of the owner, by the sampler */
static double whole_us;
static double own_us;			/* the truth */
static uint64 calls;
static uint64 sampled;
static bool possible;			/* nothing impossible has been seen */

static void
begin(void)
{
	memset(&sampler, 0, sizeof(sampler));
	now_us = 1e6;
	known_us = own_us = 0;
	calls = sampled = 0;
	possible = true;
	fms_sampler_begin(&sampler, known_us);
}

static void
look(void)
{
	whole_us = fms_clock_since_us(sampler.begun);
	said_us = fms_sampler_own_us(&sampler, whole_us, known_us);
	possible &= said_us >= 0 && said_us <= whole_us;
}

static void
pass(double us)
{
	now_us += us;
	own_us += us;
}

/* One turn of either; the call is interrupted for so long. */
static void
turn(const Turns *turns, double interrupted_us, bool only_if_sampled)
{
	double		before_us = known_us;
	bool		due;

	now_us += turns->other_us;
	due = fms_sampler_due(&sampler);
	if (due)
		fms_sampler_start(&sampler);
	pass(turns->call_us);
	calls++;
	if (turns->known_every > 0 && calls % turns->known_every == 0)
	{
		pass(turns->known_us);
		known_us += turns->known_us;
	}
	if (due || !only_if_sampled)
		pass(interrupted_us);
	if (due)
	{
		sampled++;
		fms_sampler_add(&sampler, known_us - before_us);
		look();
	}
}

static void
take_turns(const Turns *turns, int n)
{
	int			i;

	for (i = 0; i < n; i++)
		turn(turns, 0, false);
}

static bool
near(double a, double b, double part)
{
	return fabs(a - b) <= part * b;
}

/* Until a call is sampled; that one is interrupted. */
static void
interrupt_sampled(const Turns *turns, double us)
{
	uint64		before = sampled;

	while (sampled == before)
		turn(turns, us, true);
}

/* ---- */

static void
check_even(void)
{
	static const Turns even = {0.3, 1, 0, 0};
	static const Turns known = {0.3, 0.2, 5000, 1000};

	begin();
	take_turns(&even, 10000);
	look();
	shim_ok(possible && near(said_us, own_us, 0.01),
			"calls that are alike: %.0f of %.0f us", said_us, own_us);
	shim_ok(sampled > 10000 / 96 && sampled < 10000 / 32,
			"one of 64 is timed: " UINT64_FORMAT, sampled);

	begin();
	take_turns(&known, 10500);
	look();
	shim_ok(possible && near(said_us, own_us, 0.01),
			"what stopwatches have seen counts once: %.0f of %.0f us",
			said_us, own_us);
}

/* 200 ms in one of the samples of 1 us. */
static void
check_interrupted(void)
{
	static const Turns quick = {0.1, 1, 0, 0};
	static const Turns slow_parent = {3000, 1, 0, 0};
	int			i;

	begin();
	take_turns(&quick, 5000);
	interrupt_sampled(&quick, 200000);
	take_turns(&quick, 5000);
	look();
	shim_ok(possible && near(said_us, own_us, 0.01),
			"a sample of 200 ms among those of 1 us: %.0f of %.0f us",
			said_us, own_us);

	begin();
	take_turns(&slow_parent, 1000);
	interrupt_sampled(&slow_parent, 200000);
	take_turns(&slow_parent, 1000);
	look();
	shim_ok(possible && near(said_us, own_us, 0.01),
			"... and a parent that takes 3 ms a tuple: %.0f of %.0f us",
			said_us, own_us);

	begin();
	interrupt_sampled(&slow_parent, 200000);
	take_turns(&slow_parent, 1000);
	look();
	shim_ok(possible && near(said_us, own_us, 0.01),
			"... the very first one: %.0f of %.0f us", said_us, own_us);

	begin();
	take_turns(&quick, 1000);
	for (i = 0; i < 20; i++)
		interrupt_sampled(&quick, 200000);
	look();
	shim_ok(possible && near(said_us, own_us, 0.01),
			"every sample is interrupted: %.0f of %.0f us", said_us,
			own_us);
}

/* The owner's calls become other ones: it learns that. */
static void
check_change(void)
{
	static const Turns before = {1, 0.05, 0, 0};
	static const Turns after = {1, 5, 0, 0};
	double		own_before;

	begin();
	take_turns(&before, 10000);
	look();
	own_before = said_us;
	own_us = 0;
	take_turns(&after, 20000);
	look();
	shim_ok(possible && near(said_us - own_before, own_us, 0.1),
			"calls take a hundred times as long as before: %.0f of %.0f us",
			said_us - own_before, own_us);
}

/* The other one waits for something, in a turn that no sample is near to. */
static void
check_waiting(void)
{
	static const Turns turns = {0.2, 1, 0, 0};
	static const Turns waits = {500000, 1, 0, 0};

	begin();
	take_turns(&turns, 5000);
	turn(&waits, 0, false);
	take_turns(&turns, 5000);
	look();
	shim_ok(possible && near(whole_us - said_us, 500000 + 0.2 * 10000, 0.01),
			"an input that waits 500 ms once: %.0f us", whole_us - said_us);

	begin();
	take_turns(&turns, 150);
	now_us += 500000;			/* and says then that it is over */
	look();
	shim_ok(possible && near(whole_us - said_us, 500000 + 0.2 * 150, 0.01),
			"... at its end: %.0f us", whole_us - said_us);
	shim_ok(near(said_us, own_us, 0.05),
			"the last calls, without a sample behind them: %.0f of %.0f us",
			said_us, own_us);
}

/* Begun again for every group; few calls each. */
static void
check_groups(void)
{
	static const Turns turns = {0.5, 1, 0, 0};
	double		sum_us = 0;
	int			i;

	begin();
	for (i = 0; i < 500; i++)
	{
		fms_sampler_begin(&sampler, known_us);
		take_turns(&turns, 20);
		look();
		sum_us += said_us;
		now_us += 1000;			/* nobody's */
	}
	shim_ok(possible && near(sum_us, own_us, 0.02),
			"groups of 20: %.0f of %.0f us", sum_us, own_us);
}

/* A sort of three rows reads no clock; an input with a period of 64 rows. */
static void
check_distances(void)
{
	static const Turns turns = {0.5, 1, 0, 0};
	static const Turns longer = {0.5, 9, 0, 0};
	int			i;

	begin();
	take_turns(&turns, 3);
	shim_ok(sampled == 0, "three rows: no sample");
	begin();
	for (i = 0; i < 100000; i++)
		turn(i % 64 == 0 ? &longer : &turns, 0, false);
	look();
	shim_ok(possible && near(said_us, own_us, 0.1),
			"every 64th call is longer: %.0f of %.0f us", said_us, own_us);
}

/* Anything, at any time. */
static void
check_random(void)
{
	int			round;

	shim_seed();
	begin();
	for (round = 0; round < 20000; round++)
	{
		Turns		turns;

		turns.other_us = shim_below(10) == 0 ? shim_below(1000000) :
			shim_below(100) / 100.0;
		turns.call_us = shim_below(1000) / 1000.0;
		turns.known_us = shim_below(1000);
		turns.known_every = shim_below(4);
		turn(&turns, shim_below(50) == 0 ? shim_below(1000000) : 0, false);
		if (shim_below(200) == 0)
		{
			look();
			if (shim_below(2) == 0)
				fms_sampler_begin(&sampler, known_us);
		}
	}
	look();
	shim_ok(possible, "whatever happens, no part is more than the whole");
}

int
main(void)
{
	check_even();
	check_interrupted();
	check_change();
	check_waiting();
	check_groups();
	check_distances();
	check_random();
	return shim_done();
}
