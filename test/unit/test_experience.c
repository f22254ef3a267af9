/* links: experience */
/*
 * What is remembered of sorts: their own factors, those of all for sorts not
 * seen before, and nothing that is no number.
 *
 * Seen to fail with: the key not compared; arithmetic means; the last factor
 * alone; no bounds; the database left out of the key; what is no factor
 * learned.
 */
#include "postgres.h"

#include <math.h>

#include "miscadmin.h"
#include "storage/lwlock.h"
#include "storage/shmem.h"

#include "experience.h"
#include "shim.h"

/* ---- of the server ---- */

LWLockPadded *MainLWLockArray = NULL;
Oid			MyDatabaseId = 5;

static void *memory = NULL;

bool
LWLockAcquire(LWLock *lock, LWLockMode mode)
{
	return true;
}

void
LWLockRelease(LWLock *lock)
{
}

void *
ShmemInitStruct(const char *name, Size size, bool *found)
{
	*found = memory != NULL;
	if (memory == NULL)
		memory = palloc(size);
	return memory;
}

/* ---- */

static bool
near(double a, double b)
{
	return fabs(a - b) < 1e-3 * b;
}

int
main(void)
{
	uint32		key = fms_experience_key("SELECT 1", 3);
	uint32		other = fms_experience_key("SELECT 2", 3);
	uint32		meets = key + 1024;
	double		before;

	fms_experience_learn(key, 2);
	shim_ok(fms_experience_recall(key) == 1,
			"without shared memory nothing is known");
	fms_experience_share();
	shim_ok(fms_experience_recall(key) == 1, "nothing is known at first");

	fms_experience_learn(key, 4);
	shim_ok(near(fms_experience_recall(key), 4), "a sort seen once");
	shim_ok(near(fms_experience_recall(other), pow(4, 0.125)),
			"of others, what all are like");
	fms_experience_learn(key, 16);
	shim_ok(near(fms_experience_recall(key), 8), "twice: in the middle");
	fms_experience_share();
	shim_ok(near(fms_experience_recall(key), 8),
			"another process finds it as it is");

	before = fms_experience_recall(other);
	fms_experience_learn(key, 0);
	fms_experience_learn(key, -1);
	fms_experience_learn(key, NAN);
	shim_ok(near(fms_experience_recall(key), 8) &&
			fms_experience_recall(other) == before,
			"what is no factor is not learned");

	fms_experience_learn(meets, 2);
	shim_ok(near(fms_experience_recall(meets), 2), "who comes to a slot has it");
	shim_ok(!near(fms_experience_recall(key), 2) &&
			!near(fms_experience_recall(key), 8),
			"... and who was there is forgotten, not mistaken");

	fms_experience_learn(other, 1e30);
	shim_ok(fms_experience_recall(other) <= 64, "no factor is too large");
	fms_experience_learn(key, 1e-30);
	shim_ok(fms_experience_recall(key) >= 1.0 / 64, "nor too small");

	shim_ok(fms_experience_key("SELECT 1", 3) == key &&
			fms_experience_key("SELECT 1", 4) != key && other != key,
			"a key is of a text and a place in its plan");
	shim_ok(fms_experience_key(NULL, 3) == fms_experience_key(NULL, 3),
			"there may be no text");
	MyDatabaseId = 6;
	shim_ok(fms_experience_key("SELECT 1", 3) != key, "... in a database");
	pfree(memory);
	return shim_done();
}
