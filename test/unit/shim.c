/*
 * shim.c
 *	  See shim.h.
 */
#include "shim.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "base/compat.h"
#include "device/free_memory.h"
#include "miscadmin.h"
#include "portability/instr_time.h"
#include "storage/buffile.h"
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

/* Since 19 a clock has to be chosen before it is read. */
#if PG_VERSION_NUM >= 190000
static void __attribute__((constructor))
choose_clock(void)
{
	pg_initialize_timing();
}
#endif

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

static const uint8 *food = NULL;
static Size food_left = 0;

void
shim_feed(const uint8 *bytes, Size length)
{
	food = bytes;
	food_left = length;
}

static uint64
take_food(int nbytes)
{
	uint64		word = 0;

	for (; nbytes > 0 && food_left > 0; nbytes--, food_left--)
		word = word << 8 | *food++;
	return word;
}

uint64
shim_random(void)
{
	uint64		z = (random_state += UINT64_C(0x9E3779B97F4A7C15));

	if (food)
		return take_food(sizeof(uint64));
	z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
	return z ^ (z >> 31);
}

uint32
shim_below(uint32 below)
{
	if (food)
		return take_food(below <= 256 ? 1 : below <= 65536 ? 2 : 4) % below;
	return shim_random() % below;
}

/* ---- transactions ---- */

XactCallback shim_end_transaction = NULL;

void
RegisterXactCallback(XactCallback callback, void *arg)
{
	shim_end_transaction = callback;
}

/* ---- memory ---- */

/* As without /proc; a test may have its own. */
FmsFreeMemory __attribute__((weak))
fms_free_memory(void)
{
	return (FmsFreeMemory) {0};
}

MemoryContext CurrentMemoryContext = NULL;
MemoryContext TopMemoryContext = NULL;
int64		shim_live_chunks = 0;
jmp_buf    *shim_catcher = NULL;

/* Allocated since the last SHIM_CATCH() began, and live. */
static void **caught = NULL;
static int	ncaught = 0;

static void
catch_chunk(void *chunk)
{
	caught = realloc(caught, (ncaught + 1) * sizeof(void *));
	if (caught == NULL)
		abort();
	caught[ncaught++] = chunk;
}

static bool
uncatch_chunk(void *chunk)
{
	int			i;

	for (i = ncaught - 1; i >= 0 && caught[i] != chunk; i--)
		;
	if (i < 0)
		return false;
	caught[i] = caught[--ncaught];
	return true;
}

void
shim_begin_catch(jmp_buf *catcher)
{
	shim_catcher = catcher;
	ncaught = 0;
}

void
shim_forget_raised(void)
{
	while (ncaught > 0)
		pfree(caught[ncaught - 1]);
	free(caught);
	caught = NULL;
}

void *
palloc(Size size)
{
	void	   *chunk = malloc(size ? size : 1);

	if (chunk == NULL)
		abort();
	shim_live_chunks++;
	if (shim_catcher)
		catch_chunk(chunk);
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
	bool		was_caught = uncatch_chunk(chunk);

	chunk = realloc(chunk, size);
	if (chunk == NULL)
		abort();
	if (was_caught)
		catch_chunk(chunk);
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
	(void) uncatch_chunk(chunk);
	free(chunk);
}

/* ---- errors ---- */

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
errdetail_internal(const char *format,...)
{
	return 0;
}

int
errhint(const char *format,...)
{
	return 0;
}

void
ExceptionalCondition(FMS_ASSERT_FAILED_PARAMS)
{
	printf("Bail out! failed Assert(\"%s\") %s:%d\n", conditionName, fileName,
		   lineNumber);
	fflush(stdout);
	abort();
}

/* ---- buffile.c: a file in memory ---- */

#if PG_VERSION_NUM >= 160000
#define WRITTEN const void
#else
#define WRITTEN void
#endif

struct BufFile
{
	char	   *bytes;
	size_t		size;
	size_t		end;
	size_t		position;
};

int			shim_files_open = 0;
static BufFile *newest_file;

BufFile *
BufFileCreateTemp(bool interXact)
{
	shim_files_open++;
	return newest_file = palloc0(sizeof(BufFile));
}

/* Files in a set, which the programs link only. */
BufFile *
BufFileCreateFileSet(FileSet *fileset, const char *name)
{
	abort();
}

BufFile *
BufFileOpenFileSet(FileSet *fileset, const char *name, int mode,
				   bool missing_ok)
{
	abort();
}

void
BufFileExportFileSet(BufFile *file)
{
	abort();
}

char *
shim_file_bytes(Size *count)
{
	*count = shim_files_open > 0 ? newest_file->end : 0;
	return *count > 0 ? newest_file->bytes : NULL;
}

void
BufFileClose(BufFile *file)
{
	shim_files_open--;
	if (file->bytes)
		pfree(file->bytes);
	pfree(file);
}

int
BufFileSeek(BufFile *file, int fileno, off_t offset, int whence)
{
	if (fileno != 0 || whence != SEEK_SET)
		abort();
	if (offset < 0 || (size_t) offset > file->end)
		return EOF;
	file->position = offset;
	return 0;
}

void
BufFileWrite(BufFile *file, WRITTEN *bytes, size_t size)
{
	if (file->size < file->position + size)
	{
		file->size = 2 * (file->position + size);
		file->bytes = file->bytes ? repalloc(file->bytes, file->size) :
			palloc(file->size);
	}
	memcpy(file->bytes + file->position, bytes, size);
	file->position += size;
	file->end = Max(file->end, file->position);
}

size_t
BufFileRead(BufFile *file, void *bytes, size_t size)
{
	size_t		left = Min(size, file->end - file->position);

	memcpy(bytes, file->bytes + file->position, left);
	file->position += left;
	return left;
}

/* ---- the rest ---- */

volatile uint32 InterruptHoldoffCount = 0;
volatile sig_atomic_t InterruptPending = false;
int			shim_external_fds = 0;
int			MaxBackends = 1;
int			ParallelWorkerNumber = -1;

/* Who wants to know of checks for interrupts has one of his own (work.h). */
__attribute__((weak)) void
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
