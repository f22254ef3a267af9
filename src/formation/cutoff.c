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
 * If there are too many, the two neighbours with the fewest rows are joined.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "formation/run.h"

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

/* Joins two neighbours, those with the fewest rows. */
static void
join_fewest(FmsCutoff *cutoff)
{
	Bucket	   *fewest = cutoff->buckets;
	Bucket	   *last = &cutoff->buckets[--cutoff->nbuckets];
	Bucket	   *bucket;

	for (bucket = fewest + 1; bucket < last; bucket++)
		if (bucket[0].rows + bucket[1].rows < fewest[0].rows + fewest[1].rows)
			fewest = bucket;
	fewest[1].rows += fewest[0].rows;
	pfree(fewest[0].key);
	memmove(fewest, fewest + 1, (last - fewest) * sizeof(Bucket));
}

bool
fms_cutoff_note(FmsCutoff *cutoff, const FmsRecord *next, uint64 rows)
{
	Bucket	   *buckets = cutoff->buckets;
	const FmsRecord *key = fms_keys_make_first_key(cutoff->keys, next);
	Size		bytes = fms_record_bytes(key);
	int			at;

	if (bytes > KEY_MAX_BYTES)
		return true;
	if (cutoff->nbuckets == BUCKETS_MAX)
		join_fewest(cutoff);
	for (at = cutoff->nbuckets++; at > 0 &&
		 fms_keys_compare(cutoff->keys, buckets[at - 1].key, key) > 0; at--)
		buckets[at] = buckets[at - 1];
	buckets[at] = (Bucket) {memcpy(palloc(bytes), key, bytes), rows};
	cutoff->rows += rows;
	while (cutoff->rows - buckets[cutoff->nbuckets - 1].rows >= cutoff->bound)
	{
		cutoff->rows -= buckets[--cutoff->nbuckets].rows;
		pfree(buckets[cutoff->nbuckets].key);
	}
	return cutoff->rows < cutoff->bound || at < cutoff->nbuckets - 1;
}
