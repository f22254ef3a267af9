/* links: formation/arena formation/piece */

/*
 * test_arena.c
 *	  Items and their index keep their values while an arena grows, within the
 *	  limit, to nearly all of it, whatever their sizes; little memory for few;
 *	  an arena that the system refuses memory keeps what it has; memory that is
 *	  not large is kept for the next arena of the transaction.
 *
 * Seen to fail with: the whole limit mapped at the first item; pieces that
 * are never divided again; a piece that grows although nothing would be left.
 */
#include "postgres.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "utils/memutils.h"

#include "formation/arena.h"
#include "io/huge_page.h"
#include "shim.h"

typedef struct Item
{
	uint64		at;
	uint64		bytes;
} Item;

/* The arenas here are freed, not reset. */
void
MemoryContextRegisterResetCallback(MemoryContext context,
								   MemoryContextCallback *callback)
{
}

static Size
count_of(const FmsArena *arena)
{
	return arena->index.used_bytes / sizeof(Item);
}

static bool
add(FmsArena *arena, Size bytes, Size limit)
{
	Size		count = count_of(arena);
	Item	   *index;

	if (!fms_arena_extend(arena, sizeof(Item), bytes, limit))
		return false;
	index = (Item *) arena->index.base + count;
	index->at = arena->data.used_bytes;
	index->bytes = bytes;
	memset(arena->data.base + arena->data.used_bytes, (int) (count % 251),
		   bytes);
	arena->index.used_bytes += sizeof(Item);
	arena->data.used_bytes += bytes;
	return true;
}

static bool
is_as_added(const FmsArena *arena)
{
	const Item *index = (const Item *) arena->index.base;
	Size		i;

	for (i = 0; i < count_of(arena); i++)
	{
		const char *item = arena->data.base + index[i].at;

		if (item[0] != (char) (i % 251) ||
			memcmp(item, item + 1, index[i].bytes - 1) != 0)
			return false;
	}
	return true;
}

/* The sanitizer gives freed memory back at once. */
const char *
__asan_default_options(void)
{
	return "quarantine_size_mb=0:allocator_release_to_os_interval_ms=0";
}

static Size
resident_bytes(void)
{
	FILE	   *file = fopen("/proc/self/statm", "r");
	unsigned long size;
	unsigned long resident;

	if (file == NULL || fscanf(file, "%lu %lu", &size, &resident) != 2)
		abort();
	fclose(file);
	return resident * sysconf(_SC_PAGESIZE);
}

static Size
address_bytes(void)
{
	FILE	   *file = fopen("/proc/self/statm", "r");
	unsigned long size;

	if (file == NULL || fscanf(file, "%lu", &size) != 1)
		abort();
	fclose(file);
	return size * sysconf(_SC_PAGESIZE);
}

typedef Size (*ItemBytes) (Size number);

static Size
small_items(Size number)
{
	return 24;
}

static Size
any_items(Size number)
{
	return 8 * (1 + shim_below(64));
}

static Size
small_then_large(Size number)
{
	return number < 20000 ? 24 : 4000;
}

static Size
large_then_small(Size number)
{
	return number < 200 ? 8000 : 24;
}

/* Fills it twice, the second time beginning in the middle. */
static void
test_fills(const char *what, ItemBytes bytes_of, Size limit)
{
	FmsArena	arena;
	Size		before = resident_bytes();
	Size		most = 0;
	bool		within = true;
	int			round;

	fms_arena_init(&arena, 0);
	for (round = 0; round < 2; round++)
	{
		Size		last = 0;

		while (add(&arena, last = bytes_of(count_of(&arena)), limit))
			within = within && fms_arena_size(&arena) <= limit;
		most = Max(most, resident_bytes());
		shim_ok(is_as_added(&arena), "%s, %zu: items stay as they are", what,
				limit);
		shim_ok(fms_arena_used(&arena) + last + sizeof(Item) >
				limit - limit / 64,
				"%s, %zu: the limit is filled", what, limit);
		arena.index.used_bytes = count_of(&arena) / 2 * sizeof(Item);
		arena.data.used_bytes =
			((Item *) arena.index.base)[count_of(&arena)].at;
	}
	shim_ok(within, "%s, %zu: within the limit", what, limit);
	/* the sanitizer keeps some of what is freed */
	shim_ok(most <= before + limit + 2 * 1024 * 1024,
			"%s, %zu: resident memory is within the limit (%zu - %zu)", what,
			limit, most, before);
	fms_arena_free(&arena);
}

static void
test_few(void)
{
	FmsArena	arena;
	Size		before = address_bytes();
	Size		used;
	int			i;

	fms_arena_init(&arena, 0);
	for (i = 0; i < 40; i++)
		(void) add(&arena, 64, (Size) 1 << 40);
	shim_ok(fms_arena_size(&arena) <= 8192,
			"40 items take no more than 8 kB");
	for (; i < 100000; i++)
		(void) add(&arena, 64, (Size) 1 << 40);
	shim_ok(address_bytes() - before <= 3 * fms_arena_used(&arena) &&
			is_as_added(&arena),
			"100,000 take address space of their size");
	fms_arena_trim(&arena);
	shim_ok(fms_arena_size(&arena) <= fms_arena_used(&arena) + 16 &&
			is_as_added(&arena), "what is not used is given back");
	used = fms_arena_used(&arena);
	fms_arena_free(&arena);
	/* address space of small pieces stays with the sanitizer */
	shim_ok(address_bytes() <= before + used / 2,
			"... and then all of it");
}

/* So much address space and no more. */
static void
test_refused(Size bytes)
{
	struct rlimit unlimited;
	struct rlimit limit;
	FmsArena	arena;
	void	   *other;
	Size		full;

	fms_arena_init(&arena, 0);
	getrlimit(RLIMIT_AS, &unlimited);
	limit = unlimited;
	limit.rlim_cur = address_bytes() + bytes;
	setrlimit(RLIMIT_AS, &limit);
	while (add(&arena, 100, (Size) 1 << 36))
		;
	full = fms_arena_used(&arena);
	shim_ok(full > bytes / 8 && full < bytes && is_as_added(&arena),
			"%zu to be had: %zu used, then refused", bytes, full);
	shim_ok(arena.refused, "... which the arena knows");
	other = mmap(NULL, full / 8, PROT_READ | PROT_WRITE,
				 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	shim_ok(other != MAP_FAILED, "... and buffers are to be had");
	setrlimit(RLIMIT_AS, &unlimited);
	if (other != MAP_FAILED)
		munmap(other, full / 8);
	shim_ok(!add(&arena, 100, (Size) 1 << 36), "... it does not ask again");
	fms_arena_free(&arena);
	shim_ok(add(&arena, 100, (Size) 1 << 36), "... until it is empty");
	fms_arena_free(&arena);
}

/* An arena that starts with one item, which has ended with `count` before. */
static Size
size_after(Size count, Size limit, bool ends_transaction)
{
	FmsArena	arena;
	Size		size_bytes;

	fms_arena_init(&arena, 0);
	while (count_of(&arena) < count)
		(void) add(&arena, 64, (Size) 1 << 40);
	fms_arena_end(&arena);
	if (ends_transaction)
		shim_end_transaction(XACT_EVENT_COMMIT, NULL);

	fms_arena_init(&arena, 0);
	(void) add(&arena, 64, limit);
	size_bytes = fms_arena_size(&arena);
	while (count_of(&arena) < count && add(&arena, 64, limit))
		;
	shim_ok(is_as_added(&arena), "%zu items are in kept memory", count);
	fms_arena_free(&arena);
	return size_bytes;
}

/* A sort of words has no data: the kept piece may be mapped. */
static void
test_emptied(void)
{
	Size		sizes[] = {64 * 1024, 8 * 1024 * 1024};
	int			i;

	for (i = 0; i < (int) lengthof(sizes); i++)
	{
		FmsPiece	piece;

		fms_piece_init(&piece);
		shim_ok(fms_piece_resize(&piece, sizes[i]) &&
				fms_piece_resize(&piece, 0) && piece.size_bytes == 0,
				"a piece of %zu bytes becomes empty", sizes[i]);
		fms_piece_free(&piece);
	}
}

static void
test_kept(void)
{
	Size		limit = 16 * 1024 * 1024;

	shim_ok(size_after(5000, limit, false) >= 5000 * 80,
			"the next arena begins with the memory of the last one");
	shim_ok(size_after(5000, 100 * 1024, false) <= 8192,
			"... within its limit");
	shim_ok(size_after(500, limit, true) <= 8192,
			"... until the transaction ends");
	shim_ok(size_after(5000, limit, true) <= 8192, "... a larger one, too");
	shim_ok(size_after(100000, limit, false) <= 8192,
			"a large one is not kept at all");
}

/* How often does an arena get memory until it holds `count` items? */
static int
times_grown(double expected_bytes, Size count, Size limit)
{
	FmsArena	arena;
	Size		last = 0;
	int			times = 0;

	fms_arena_init(&arena, expected_bytes);
	while (count_of(&arena) < count && add(&arena, 64, limit))
	{
		times += fms_arena_size(&arena) != last;
		last = fms_arena_size(&arena);
	}
	shim_ok(last <= limit, "... within the limit");
	shim_ok(is_as_added(&arena), "%zu items are in expected memory", count);
	fms_arena_free(&arena);
	return times;
}

static void
test_expected(void)
{
	Size		limit = 64 * 1024 * 1024;

	shim_ok(times_grown(2000 * 80, 2000, limit) == 1,
			"the memory expected for 2,000 items is taken at once");
	shim_ok(times_grown(20000 * 80, 20000, limit) <= 3,
			"that for 20,000 when there are 3,000");
	shim_ok(times_grown(1e300, 2000, limit) == 1,
			"an estimate that is too large");
	shim_ok(times_grown(1, 2000, limit) > 3, "one that is too small");
	(void) times_grown(1e300, 2000, 100 * 1024);
}

int
main(void)
{
	static const Size limits[] = {20000, 100 * 1024, 700 * 1024,
	6 * 1024 * 1024, 70 * 1024 * 1024};
	int			i;

	shim_seed();
	for (i = 0; i < (int) lengthof(limits); i++)
	{
		test_fills("small items", small_items, limits[i]);
		test_fills("any items", any_items, limits[i]);
		test_fills("small then large", small_then_large, limits[i]);
		test_fills("large then small", large_then_small, limits[i]);
	}
	test_few();
	test_kept();
	test_expected();
	test_emptied();
	test_refused((Size) 3 * 1024 * 1024);
	test_refused((Size) 50 * 1024 * 1024);
	test_refused((Size) 700 * 1024 * 1024);
	return shim_done();
}
