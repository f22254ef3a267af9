/*
 * shim.c
 *	  See shim.h.
 */
#include "shim.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "miscadmin.h"
#include "storage/fd.h"
#include "utils/memutils.h"

/* The server's printf() is not wanted here: libc's needs no libpgport. */
#undef printf
#undef vprintf
#undef fprintf
#undef vsnprintf

/* ---- TAP ---- */

static int	tests = 0;
static int	failures = 0;

bool
shim_ok(bool passed, const char *format,...)
{
	va_list		args;

	tests++;
	if (!passed)
		failures++;
	printf("%sok %d - ", passed ? "" : "not ", tests);
	va_start(args, format);
	vprintf(format, args);
	va_end(args);
	printf("\n");
	fflush(stdout);
	return passed;
}

void
shim_skip(const char *why, const char *what)
{
	tests++;
	printf("ok %d - %s # SKIP %s\n", tests, what, why);
}

void
shim_note(const char *format,...)
{
	va_list		args;

	printf("# ");
	va_start(args, format);
	vprintf(format, args);
	va_end(args);
	printf("\n");
}

int
shim_done(void)
{
	printf("1..%d\n", tests);
	return failures > 0;
}

/* ---- random numbers: splitmix64 ---- */

static uint64 random_state;

void
shim_seed(void)
{
	const char *wish = getenv("FMSORT_TEST_SEED");

	random_state = wish ? strtoull(wish, NULL, 10) :
		(uint64) time(NULL) ^ ((uint64) getpid() << 20);
	shim_note("FMSORT_TEST_SEED=%llu", (unsigned long long) random_state);
}

uint64
shim_random(void)
{
	uint64		z = (random_state += UINT64_C(0x9E3779B97F4A7C15));

	z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
	return z ^ (z >> 31);
}

uint32
shim_below(uint32 below)
{
	return shim_random() % below;
}

/* ---- memory ---- */

MemoryContext CurrentMemoryContext = NULL;
MemoryContext TopMemoryContext = NULL;
int64		shim_live_chunks = 0;

void *
palloc(Size size)
{
	void	   *chunk = malloc(size ? size : 1);

	if (chunk == NULL)
		abort();
	shim_live_chunks++;
	/* nobody may count on zeroes */
	memset(chunk, 0x7E, size);
	return chunk;
}

void *
palloc0(Size size)
{
	return memset(palloc(size), 0, size);
}

void *
palloc_extended(Size size, int flags)
{
	return flags & MCXT_ALLOC_ZERO ? palloc0(size) : palloc(size);
}

void *
MemoryContextAlloc(MemoryContext context, Size size)
{
	return palloc(size);
}

void *
MemoryContextAllocZero(MemoryContext context, Size size)
{
	return palloc0(size);
}

void *
MemoryContextAllocHuge(MemoryContext context, Size size)
{
	return palloc(size);
}

void *
MemoryContextAllocExtended(MemoryContext context, Size size, int flags)
{
	return palloc_extended(size, flags);
}

void *
repalloc(void *chunk, Size size)
{
	chunk = realloc(chunk, size);
	if (chunk == NULL)
		abort();
	return chunk;
}

void *
repalloc_huge(void *chunk, Size size)
{
	return repalloc(chunk, size);
}

void
pfree(void *chunk)
{
	shim_live_chunks--;
	free(chunk);
}

/* ---- errors ---- */

jmp_buf    *shim_catcher = NULL;
char		shim_message[1024];
int			shim_logged = 0;
static int	level;

bool
errstart(int elevel, const char *domain)
{
	level = elevel;
	return true;
}

bool
errstart_cold(int elevel, const char *domain)
{
	return errstart(elevel, domain);
}

void
errfinish(const char *file, int line, const char *function)
{
	if (level < ERROR)
	{
		shim_logged++;
		return;
	}
	if (shim_catcher)
		longjmp(*shim_catcher, 1);
	printf("Bail out! %s (%s:%d)\n", shim_message, file, line);
	exit(2);
}

int
errcode(int code)
{
	return 0;
}

int
errcode_for_file_access(void)
{
	return 0;
}

#define KEEP_MESSAGE(format) \
	do { \
		va_list		args; \
		va_start(args, format); \
		vsnprintf(shim_message, sizeof(shim_message), format, args); \
		va_end(args); \
	} while (0)

int
errmsg(const char *format,...)
{
	KEEP_MESSAGE(format);
	return 0;
}

int
errmsg_internal(const char *format,...)
{
	KEEP_MESSAGE(format);
	return 0;
}

int
errdetail(const char *format,...)
{
	return 0;
}

int
errhint(const char *format,...)
{
	return 0;
}

void
ExceptionalCondition(const char *condition, const char *type,
					 const char *file, int line)
{
	printf("Bail out! %s(\"%s\") %s:%d\n", type, condition, file, line);
	fflush(stdout);
	abort();
}

/* ---- the rest ---- */

volatile uint32 InterruptHoldoffCount = 0;
volatile sig_atomic_t InterruptPending = false;
int			shim_external_fds = 0;

void
ProcessInterrupts(void)
{
}

bool
AcquireExternalFD(void)
{
	shim_external_fds++;
	return true;
}

void
ReleaseExternalFD(void)
{
	shim_external_fds--;
}
