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
 * Large memory asks for huge pages: one page fault instead of 512, and
 * records, which leave in any order, are found without a walk through page
 * tables.  But they are made of memory that has been free for long, and a
 * virtual machine may have handed that back to its host: to get it again can
 * take fifty times as long (for 2 MB, 86 us and 4.7 ms were measured on one).
 * So the first touch of each is timed, and when they have taken longer
 * together than small pages would have, the rest is made of these, some in a
 * call instead of one in a fault:
 *
 *	  base                                                            end
 *	  | entries ->|touch>                     <touch|   <- records     |
 *	              ^ low_reached                     ^ high_reached
 *
 * In front of a mapped arena there may be a head, which somebody who writes
 * what is in the arena takes for his buffers (io.c): address space, till then.
 *
 * Ownership: an arena's memory goes when the arena is freed or its context is
 * reset, whichever comes first; so nothing has to be done on ERROR.  The
 * process keeps one spare piece, which one arena at a time may have.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "utils/memutils.h"

#include "arena.h"
#include "clock.h"
#include "huge_page.h"

#define SPARE_BYTES		((Size) 256 * 1024)

/* Memory from that size on asks for huge pages. */
#define HUGE_FROM_BYTES	((Size) 4 * 1024 * 1024)
/* What the faults for as many small pages as a huge one take. */
#define SMALL_PAGES_US	500.0
/* So much longer they may have taken. */
#define PATIENCE_US		10000.0
/* Of small pages so many are asked for at once. */
#define SMALL_PAGES_BYTES ((Size) 256 * 1024)

/* Since Linux 5.14; older headers do not know it, older kernels refuse it. */
#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

static char *spare = NULL;		/* SPARE_BYTES, once one was needed */
static bool spare_taken = false;

static void
give_back(void *arg)
{
	FmsArena   *arena = arg;

	if (arena->mapped)
		munmap(arena->base - arena->head_bytes,
			   arena->head_bytes + arena->size_bytes);
	else if (arena->base)
		spare_taken = false;
	arena->mapped = false;
	arena->base = NULL;
	arena->size_bytes = 0;
	arena->head_bytes = 0;
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

/*
 * Maps so many bytes and returns where those behind the head begin.  A head
 * begins where a huge page does.
 */
static char *
map(Size head_bytes, Size size_bytes)
{
	Size		bytes = head_bytes + size_bytes;
	char	   *mapped = fms_huge_page_map(bytes, head_bytes > 0,
										   MAP_NORESERVE);

	if (mapped == MAP_FAILED)
		ereport(ERROR,
				(errcode(ERRCODE_OUT_OF_MEMORY),
				 errmsg("out of memory"),
				 errdetail("Failed to map %zu bytes of sort memory.",
						   bytes)));
	return mapped + head_bytes;
}

/* From now on nobody has to look. */
static void
reach_all(FmsArena *arena)
{
	arena->low_reached = fms_arena_end(arena);
	arena->high_reached = arena->base;
}

/* Asks for huge pages, of which the ends hold so much already. */
static void
ask_for_huge_pages(FmsArena *arena, Size low_bytes, Size high_bytes)
{
	arena->small_pages = false;
	arena->touches = 0;
	arena->touch_us = 0;
	reach_all(arena);
	if (!arena->mapped || arena->size_bytes < HUGE_FROM_BYTES ||
		madvise(arena->base - arena->head_bytes,
				arena->head_bytes + arena->size_bytes, MADV_HUGEPAGE) != 0)
		return;
	arena->low_reached = arena->base + low_bytes;
	arena->high_reached = fms_arena_end(arena) - high_bytes;
}

/* The first write to a page: the kernel finds memory for it. */
static void
touch(FmsArena *arena, char *byte)
{
	instr_time	start = fms_clock_now();

	*(volatile char *) byte = 0;
	arena->touch_us += fms_clock_since_us(start);
	arena->touches++;
}

/* One huge page at each end that is not reached yet. */
static void
reach_huge_page(FmsArena *arena, char *low_end, char *high_start)
{
	if (low_end > arena->low_reached)
	{
		touch(arena, low_end - 1);
		arena->low_reached =
			(char *) TYPEALIGN(FMS_HUGE_PAGE_BYTES, low_end);
	}
	if (high_start < arena->high_reached)
	{
		touch(arena, high_start);
		arena->high_reached =
			(char *) TYPEALIGN_DOWN(FMS_HUGE_PAGE_BYTES, high_start);
	}
	if (arena->touch_us > arena->touches * SMALL_PAGES_US + PATIENCE_US)
	{
		(void) madvise(arena->base, arena->size_bytes, MADV_NOHUGEPAGE);
		arena->small_pages = true;
	}
}

/*
 * Gets the pages between two places, and those around them.  If the kernel
 * does not do that, faults will.  Returns whether it did.
 */
static bool
populate(const FmsArena *arena, char **from, char **upto)
{
	*from = Max((char *) TYPEALIGN_DOWN(SMALL_PAGES_BYTES, *from),
				arena->base);
	*upto = Min((char *) TYPEALIGN(SMALL_PAGES_BYTES, *upto),
				fms_arena_end(arena));
	return madvise(*from, *upto - *from, MADV_POPULATE_WRITE) == 0;
}

static void
reach_small_pages(FmsArena *arena, char *low_end, char *high_start)
{
	char	   *low = arena->low_reached;
	char	   *high = arena->high_reached;
	bool		done = true;

	if (low_end > low)
	{
		arena->low_reached = low_end;
		done = populate(arena, &low, &arena->low_reached);
	}
	if (done && high_start < high)
	{
		arena->high_reached = high_start;
		done = populate(arena, &arena->high_reached, &high);
	}
	if (!done)
		reach_all(arena);
}

void
fms_arena_touch(FmsArena *arena, char *low_end, char *high_start)
{
	instr_time	start = fms_clock_now();

	Assert(arena->base < low_end && low_end <= high_start &&
		   high_start < fms_arena_end(arena));

	if (arena->small_pages)
		reach_small_pages(arena, low_end, high_start);
	else
		reach_huge_page(arena, low_end, high_start);
	arena->reach_us += fms_clock_since_us(start);
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
	Size		head = 0;
	bool		mapped = false;

	Assert(low_bytes + high_bytes <= arena->size_bytes);

	if (needed_bytes <= SPARE_BYTES)
		base = take_spare(Min(size, SPARE_BYTES));
	if (base)
		size = Min(size, SPARE_BYTES);
	else
	{
		if (arena->wanted_bytes + size >= FMS_HUGE_PAGE_BYTES)
			head = arena->wanted_bytes;
		base = map(head, size);
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
	arena->head_bytes = head;
	arena->mapped = mapped;
	ask_for_huge_pages(arena, low_bytes, high_bytes);
}

void
fms_arena_want_head(FmsArena *arena, Size bytes)
{
	Size		page = sysconf(_SC_PAGESIZE);
	Size		whole = TYPEALIGN(page, bytes);

	/* larger ones have huge pages of their own */
	arena->wanted_bytes = whole < FMS_HUGE_PAGE_BYTES ? whole : 0;
}

char *
fms_arena_take_head(FmsArena *arena, Size *bytes)
{
	char	   *head = arena->base - arena->head_bytes;

	if (arena->head_bytes == 0)
		return NULL;
	*bytes = arena->head_bytes;
	arena->head_bytes = 0;
	return head;
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
