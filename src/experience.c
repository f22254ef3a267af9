/*-------------------------------------------------------------------------
 *
 * experience.c
 *	  How long merges took, of queries that came before.
 *
 * What is above a sort decides how long its merge takes, and the sort cannot
 * see that: rows may be counted, or sent to a client that prints them.  But
 * most queries come again.  So for a sort of a query shared memory keeps one
 * number, by what factor its merge took longer than is assumed of any
 * (estimate.c); and one for all sorts together, which stands in for those not
 * seen before.
 *
 *	  slots		[key|factor][key|factor][ -- ]...	 key modulo their number
 *	  general	[  0|factor]						 all sorts
 *
 * A slot is one word of 64 bits, read and written at once, so there is no
 * lock; if two sorts end at the same moment, one factor is lost, and if two
 * keys meet in a slot the later one has it.  Nothing but an estimate depends
 * on it.
 *
 * Factors are averaged as logarithms: half as long and twice as long is
 * neither.  Of one sort the last time counts half; of all, an eighth, the
 * first of which is averaged with 1.
 *
 * Why not the server's query identifier: it is off unless something asks for
 * it, and computing it costs more than a hash of the text.  Queries that
 * differ in a constant are then different ones, and go by the general factor.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <math.h>

#include "common/hashfn.h"
#include "miscadmin.h"
#include "port/atomics.h"
#include "storage/lwlock.h"
#include "storage/shmem.h"

#include "experience.h"

#define SLOTS			1024

/* In the word of all sorts; a sort that has it by chance loses nothing. */
#define GENERAL_KEY		0

/* No factor is below, or above: beyond that something else was measured. */
#define FACTOR_MIN		(1.0 / 64)
#define FACTOR_MAX		64.0

/* What the last time weighs. */
#define WEIGHT_SAME		0.5
#define WEIGHT_GENERAL	0.125

typedef struct FmsExperience
{
	pg_atomic_uint64 general;
	pg_atomic_uint64 slots[SLOTS];	/* 0: nothing */
} FmsExperience;

static FmsExperience *shared = NULL;

Size
fms_experience_shared_bytes(void)
{
	return sizeof(FmsExperience);
}

void
fms_experience_share(void)
{
	bool		found;
	int			i;

	LWLockAcquire(AddinShmemInitLock, LW_EXCLUSIVE);
	shared = ShmemInitStruct("fmsort experience", sizeof(FmsExperience),
							 &found);
	if (!found)
	{
		pg_atomic_init_u64(&shared->general, 0);
		for (i = 0; i < SLOTS; i++)
			pg_atomic_init_u64(&shared->slots[i], 0);
	}
	LWLockRelease(AddinShmemInitLock);
}

uint32
fms_experience_key(const char *query, int plan_node_id)
{
	uint32		key = hash_combine(murmurhash32(MyDatabaseId),
								   murmurhash32(plan_node_id));

	if (query)
		key = hash_combine(key, hash_bytes((const unsigned char *) query,
										   strlen(query)));
	return key;
}

/* A slot's word; its factor is above 0, so the word is not 0. */
static uint64
word_of(uint32 key, double factor)
{
	float		narrow = (float) factor;
	uint32		bits;

	memcpy(&bits, &narrow, sizeof(bits));
	return (uint64) key << 32 | bits;
}

/* The factor in it, or 0 if it has none of that key. */
static double
factor_in(uint64 word, uint32 key)
{
	uint32		bits = (uint32) word;
	float		factor;

	if (word >> 32 != key)
		return 0;
	memcpy(&factor, &bits, sizeof(factor));
	return factor;
}

double
fms_experience_recall(uint32 key)
{
	double		factor;

	if (shared == NULL)
		return 1;
	factor = factor_in(pg_atomic_read_u64(&shared->slots[key % SLOTS]), key);
	if (factor == 0)
		factor = factor_in(pg_atomic_read_u64(&shared->general),
						   GENERAL_KEY);
	return factor > 0 ? factor : 1;
}

static void
learn_in(pg_atomic_uint64 *slot, uint32 key, double factor, double weight)
{
	double		old = factor_in(pg_atomic_read_u64(slot), key);

	if (old == 0)
		old = key == GENERAL_KEY ? 1 : factor;
	factor = exp((1 - weight) * log(old) + weight * log(factor));
	pg_atomic_write_u64(slot, word_of(key, factor));
}

void
fms_experience_learn(uint32 key, double factor)
{
	if (shared == NULL || !(factor > 0))
		return;
	factor = Min(Max(factor, FACTOR_MIN), FACTOR_MAX);
	learn_in(&shared->slots[key % SLOTS], key, factor, WEIGHT_SAME);
	learn_in(&shared->general, GENERAL_KEY, factor, WEIGHT_GENERAL);
}
