/*-------------------------------------------------------------------------
 *
 * arena.c
 *	  Memory that is filled from both ends and grows without being copied.
 *
 * A sort fills its memory with two things whose proportion is known only
 * when it is full: records and entries.  Two arrays that double as they fill
 * would have to be copied, which takes more than work_mem for a while; and
 * what the allocator keeps of the old ones adds to it.  So both share one
 * piece of address space, one growing from each end until they meet, and
 * that piece has its final size as soon as it is more than a small one:
 *
 *	  up to SPARE_BYTES		a piece that the process keeps: most sorts are
 *							small, and need neither allocate nor fault it in
 *	  beyond, or taken		mapped, with all of the budget; untouched pages
 *							are address space, not memory
 *
 * Huge pages are left to the system's own setting: they spare page faults, but
 * are made of memory that has been free for long, which a virtual machine may
 * have handed back to its host.
 *
 * Ownership: an arena's memory goes when the arena is freed or its context is
 * reset, whichever comes first; so nothing has to be done on ERROR.  The
 * process keeps one spare piece, which one arena at a time may have.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <sys/mman.h>
#include <unistd.h>

#include "utils/memutils.h"

#include "arena.h"

#define SPARE_BYTES		((Size) 256 * 1024)

static char *spare = NULL;		/* SPARE_BYTES, once one was needed */
static bool spare_taken = false;

static void
give_back(void *arg)
{
	FmsArena   *arena = arg;

	if (arena->mapped)
		munmap(arena->base, arena->size_bytes);
	else if (arena->base)
		spare_taken = false;
	arena->mapped = false;
	arena->base = NULL;
	arena->size_bytes = 0;
}

void
fms_arena_init(FmsArena *arena)
{
	memset(arena, 0, sizeof(*arena));
	arena->on_reset.func = give_back;
	arena->on_reset.arg = arena;
	MemoryContextRegisterResetCallback(CurrentMemoryContext,
									   &arena->on_reset);
}

void
fms_arena_free(FmsArena *arena)
{
	give_back(arena);
}

static char *
map(Size bytes)
{
	char	   *base = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
							MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
							-1, 0);

	if (base == MAP_FAILED)
		ereport(ERROR,
				(errcode(ERRCODE_OUT_OF_MEMORY),
				 errmsg("out of memory"),
				 errdetail("Failed to map %zu bytes of sort memory.",
						   bytes)));
	return base;
}

/* The piece that the process keeps, if it will do and is to be had. */
static char *
take_spare(Size bytes)
{
	if (spare_taken || bytes > SPARE_BYTES)
		return NULL;
	if (spare == NULL)
		spare = MemoryContextAlloc(TopMemoryContext, SPARE_BYTES);
	spare_taken = true;
	return spare;
}

void
fms_arena_grow(FmsArena *arena, Size low_bytes, Size high_bytes,
			   Size needed_bytes, Size limit_bytes)
{
	Size		size = MAXALIGN(Max(limit_bytes, needed_bytes));
	char	   *base = NULL;
	bool		mapped = false;

	Assert(low_bytes + high_bytes <= arena->size_bytes);

	if (needed_bytes <= SPARE_BYTES)
		base = take_spare(Min(size, SPARE_BYTES));
	if (base)
		size = Min(size, SPARE_BYTES);
	else
	{
		base = map(size);
		mapped = true;
	}

	if (arena->base)
	{
		memcpy(base, arena->base, low_bytes);
		memcpy(base + size - high_bytes,
			   fms_arena_end(arena) - high_bytes, high_bytes);
	}
	give_back(arena);
	arena->base = base;
	arena->size_bytes = size;
	arena->mapped = mapped;
}

void
fms_arena_trim(FmsArena *arena, Size low_bytes, Size high_bytes)
{
	Size		page = sysconf(_SC_PAGESIZE);
	Size		first = TYPEALIGN(page, low_bytes);
	Size		last = TYPEALIGN_DOWN(page, arena->size_bytes - high_bytes);

	/* the mapping begins on a page */
	if (arena->mapped && first < last)
		(void) madvise(arena->base + first, last - first, MADV_DONTNEED);
}
