/*-------------------------------------------------------------------------
 *
 * cutoff.c
 *	  A key that the first n rows in runs do not exceed (Chronis, Do, Graefe,
 *	  Peters: External Merge Sort for Top-K Queries, SIGMOD 2020).
 *
 * The rows of a block do not exceed the first key of the run's next block.  So
 * the blocks of all runs are a histogram.  The buckets with the largest keys
 * are dropped while the others have n rows.  The largest key left is the
 * cutoff, which falls with each run:
 *
 *	  run 0	  |  100  |  100  |  100  |  100  |
 *	  run 1	| 100 | 100 |   100   |   100   |
 *	                              ^ cutoff of n = 600
 *
 * If memory for buckets is full, those with few rows join the next ones.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "formation/cutoff.h"

/*
 * Number of buckets, and bytes of a key, which makes no bucket if longer.
 * They take 7 kB with keys of numbers, and 36 kB at most.
 */
#define BUCKETS_MAX			128
#define KEY_MAX_BYTES		((Size) 256)

typedef struct Bucket
{
	FmsRecord  *key;			/* a first key, palloc'd */
	uint64		rows;			/* that do not exceed it */
} Bucket;

struct FmsCutoff
{
	MemoryContext context;
	FmsKeys    *keys;
	uint64		bound;			/* n */
	uint64		rows;			/* of all buckets */
	int			nbuckets;
	Bucket		buckets[BUCKETS_MAX];	/* by their keys */
};

FmsCutoff *
fms_cutoff_create(FmsKeys *keys, uint64 bound)
{
	FmsCutoff  *cutoff = palloc0(sizeof(FmsCutoff));

	cutoff->context = CurrentMemoryContext;
	cutoff->keys = keys;
	cutoff->bound = bound;
	return cutoff;
}

const FmsRecord *
fms_cutoff_record(const FmsCutoff *cutoff)
{
	return cutoff->rows < cutoff->bound ? NULL :
		cutoff->buckets[cutoff->nbuckets - 1].key;
}

/* Each bucket that has few_rows at most joins the next one. */
static void
join_buckets(FmsCutoff *cutoff, uint64 few_rows)
{
	Bucket	   *buckets = cutoff->buckets;
	int			n = 0;
	int			i;

	for (i = 1; i < cutoff->nbuckets; i++)
	{
		if (buckets[n].rows > few_rows)
			n++;
		else
		{
			buckets[i].rows += buckets[n].rows;
			pfree(buckets[n].key);
		}
		buckets[n] = buckets[i];
	}
	cutoff->nbuckets = n + 1;
}

bool
fms_cutoff_note(FmsCutoff *cutoff, const FmsRecord *next, uint64 rows)
{
	Bucket	   *buckets = cutoff->buckets;
	const FmsRecord *key = fms_keys_make_first_key(cutoff->keys, next);
	Size		bytes = fms_record_bytes(key);
	uint64		few_rows;
	int			at;

	if (bytes > KEY_MAX_BYTES)
		return true;
	for (few_rows = 1; cutoff->nbuckets == BUCKETS_MAX; few_rows *= 2)
		join_buckets(cutoff, few_rows);
	for (at = cutoff->nbuckets++; at > 0 &&
		 fms_keys_compare(cutoff->keys, buckets[at - 1].key, key) > 0; at--)
		buckets[at] = buckets[at - 1];
	buckets[at].key = memcpy(MemoryContextAlloc(cutoff->context, bytes), key,
							 bytes);
	buckets[at].rows = rows;
	cutoff->rows += rows;
	while (cutoff->rows - buckets[cutoff->nbuckets - 1].rows >= cutoff->bound)
	{
		cutoff->rows -= buckets[--cutoff->nbuckets].rows;
		pfree(buckets[cutoff->nbuckets].key);
	}
	return cutoff->rows < cutoff->bound || at < cutoff->nbuckets - 1;
}
