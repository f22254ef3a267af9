/*-------------------------------------------------------------------------
 *
 * sort_alone.c
 *	  What the paper's way to the block read order takes at least: sorting the
 *	  first keys of all blocks when run formation ends.
 *
 *	  sort_alone KEYS RUNS SEED		prints nanoseconds a key
 *
 * The keys are in memory as numbers, each with its run and block, in the order
 * in which run formation notes them: run by run, ascending in each.  They are
 * a day of 2,406 each, as those of TPC-H's orders are.  Nothing else is done:
 * no key is noted, encoded, written or read, and no block is merged meanwhile.
 * It is the least of 5 times, sorted by PostgreSQL's sort_template.h, which
 * compares inline.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres_fe.h"

#include <time.h>

/* of the C library: those of PostgreSQL would have to be linked */
#undef printf
#undef fprintf

#define DAYS	2406
#define TIMES	5

typedef struct Fence
{
	uint64		key;
	uint32		run;
	uint32		block;
} Fence;

static inline int
compare(const Fence *a, const Fence *b)
{
	if (a->key != b->key)
		return a->key < b->key ? -1 : 1;
	if (a->run != b->run)
		return a->run < b->run ? -1 : 1;
	return a->block < b->block ? -1 : a->block > b->block;
}

#define ST_SORT sort_fences
#define ST_ELEMENT_TYPE Fence
#define ST_COMPARE(a, b) compare(a, b)
#define ST_SCOPE static
#define ST_DEFINE
#include "lib/sort_template.h"

static double
now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1e9 + now.tv_nsec;
}

/* Blocks of a run begin at days that are as far apart, but for chance. */
static void
note(Fence *fences, size_t nkeys, uint32 nruns, uint32 seed)
{
	size_t		n = 0;
	uint32		run;

	for (run = 0; run < nruns; run++)
	{
		size_t		end = nkeys * (run + 1) / nruns;
		size_t		begin = n;

		for (; n < end; n++)
		{
			seed = seed * 1664525 + 1013904223;
			fences[n].key = ((n - begin) + (seed >> 16) / 65536.0) * DAYS /
				(end - begin);
			fences[n].run = run;
			fences[n].block = n - begin;
		}
	}
}

int
main(int argc, char **argv)
{
	size_t		nkeys = argc == 4 ? strtoul(argv[1], NULL, 10) : 0;
	uint32		nruns = nkeys > 0 ? strtoul(argv[2], NULL, 10) : 0;
	Fence	   *fences = malloc(nkeys * sizeof(Fence));
	double		least_ns = 0;
	int			i;

	if (nruns == 0 || fences == NULL)
	{
		fprintf(stderr, "usage: sort_alone KEYS RUNS SEED\n");
		return 1;
	}
	for (i = 0; i < TIMES; i++)
	{
		double		took_ns;

		note(fences, nkeys, nruns, strtoul(argv[3], NULL, 10));
		took_ns = now_ns();
		sort_fences(fences, nkeys);
		took_ns = now_ns() - took_ns;
		if (i == 0 || took_ns < least_ns)
			least_ns = took_ns;
	}
	printf("%.1f\n", least_ns / nkeys);
	free(fences);
	return 0;
}
