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
 *	  up to SMALL_BYTES		palloc'd, doubled and copied: most sorts are
 *							small, and the allocator has such memory at hand
 *	  beyond				mapped, with all of the budget; untouched pages
 *							are address space, not memory
 *
 * Ownership: the mapping goes when the arena is freed or its context is
 * reset, whichever comes first; so nothing has to be done on ERROR.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <sys/mman.h>
#include <unistd.h>

#include "utils/memutils.h"

#include "arena.h"

#define FIRST_BYTES		((Size) 8 * 1024)
#define SMALL_BYTES		((Size) 128 * 1024)
#define HUGE_BYTES		((Size) 16 * 1024 * 1024)

static void
unmap(void *arg)
{
	FmsArena   *arena = arg;

	if (arena->mapped)
		munmap(arena->base, arena->size_bytes);
	arena->mapped = false;
	arena->base = NULL;
	arena->size_bytes = 0;
}

void
fms_arena_init(FmsArena *arena)
{
	memset(arena, 0, sizeof(*arena));
	arena->context = CurrentMemoryContext;
	arena->on_reset.func = unmap;
	arena->on_reset.arg = arena;
	MemoryContextRegisterResetCallback(arena->context, &arena->on_reset);
}

void
fms_arena_free(FmsArena *arena)
{
	if (arena->base && !arena->mapped)
		pfree(arena->base);
	unmap(arena);
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
	/* large memory is touched everywhere: spare it most of the page faults */
	if (bytes >= HUGE_BYTES)
		(void) madvise(base, bytes, MADV_HUGEPAGE);
	return base;
}

void
fms_arena_grow(FmsArena *arena, Size low_bytes, Size high_bytes,
			   Size needed_bytes, Size limit_bytes)
{
	Size		size = Max(FIRST_BYTES, arena->size_bytes * 2);
	bool		mapped;
	char	   *base;

	Assert(low_bytes + high_bytes <= arena->size_bytes);

	size = Max(Min(size, limit_bytes), needed_bytes);
	mapped = size > SMALL_BYTES;
	if (mapped)
		size = Max(limit_bytes, needed_bytes);
	size = MAXALIGN(size);
	base = mapped ? map(size) : MemoryContextAlloc(arena->context, size);

	if (arena->base)
	{
		memcpy(base, arena->base, low_bytes);
		memcpy(base + size - high_bytes,
			   fms_arena_end(arena) - high_bytes, high_bytes);
	}
	fms_arena_free(arena);
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
