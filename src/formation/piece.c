/*-------------------------------------------------------------------------
 *
 * piece.c
 *	  One piece of memory that grows in place of being copied.
 *
 *	  up to PALLOC_MAX_BYTES	palloc'd; growing copies it
 *	  beyond					mapped; growing moves its pages (mremap)
 *	  from a huge page on		begins where a huge page does, and asks for
 *								huge pages
 *
 * A mapping that moves keeps its pages, so growing copies nothing and never
 * takes the memory twice.  Huge pages stay whole, since a mapping of that size
 * moves from one multiple of their size to another.
 *
 * Huge pages cost one page fault instead of 512, and few TLB entries.  But the
 * kernel makes them of memory that has been free for long, and a virtual
 * machine may have handed that back to its host: getting it again can take
 * fifty times as long.  So pages are asked for in steps, a huge page or some
 * small ones at a time, and the steps are timed.  If the huge pages of a piece
 * take longer than small pages would, the rest becomes small pages.
 *
 * The system may refuse memory: RLIMIT_AS, or strict overcommit.  A piece
 * grows only if some more than that is to be had, since whoever stops growing
 * has to write what he has, and needs buffers for that.
 *
 * In front of a mapped piece there may be a head: address space that somebody
 * else takes for his buffers (io.c), to share the first huge page.
 *
 * Ownership: the piece's owner frees it.  On ERROR his context's reset
 * callback calls fms_piece_unmap().
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "utils/memutils.h"

#include "base/clock.h"
#include "io/huge_page.h"
#include "base/interrupts.h"
#include "formation/piece.h"

/* Below malloc()'s own threshold for mapping. */
#define PALLOC_MAX_BYTES	((Size) 64 * 1024)

/* Left for others when a piece grows: this part of its size, between these. */
#define MARGIN_FRACTION		4
#define MARGIN_MIN_BYTES	((Size) 1024 * 1024)
#define MARGIN_MAX_BYTES	((Size) 8 * 1024 * 1024)

/* Time for as many small pages as a huge one, and what is borne beyond. */
#define SMALL_PAGES_US		500.0
#define PATIENCE_US			10000.0

/* Small pages are asked for in steps of a part of the piece, up to this. */
#define STEP_FRACTION		4
#define STEP_MAX_BYTES		((Size) 256 * 1024)

/* Since Linux 5.14; older headers do not know it, older kernels refuse it. */
#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

void
fms_piece_init(FmsPiece *piece, MemoryContext context)
{
	memset(piece, 0, sizeof(*piece));
	piece->context = context;
}

static inline Size
whole_pages(Size bytes)
{
	Size		page = sysconf(_SC_PAGESIZE);

	return TYPEALIGN(page, bytes);
}

/* Where the mapping begins, and its size. */
static inline char *
mapping_of(const FmsPiece *piece)
{
	return piece->base - piece->head_bytes;
}

static inline Size
mapping_bytes(const FmsPiece *piece, Size size_bytes)
{
	return whole_pages(piece->head_bytes + size_bytes);
}

/* Would the system map more_bytes, for a piece of size_bytes, and a margin? */
static bool
is_to_be_had(Size more_bytes, Size size_bytes)
{
	Size		margin = Min(MARGIN_MAX_BYTES, size_bytes / MARGIN_FRACTION);

	return fms_huge_page_could_map(more_bytes +
								   Max(MARGIN_MIN_BYTES, margin));
}

/* The mapping has become that large. */
static void
set_mapping(FmsPiece *piece, char *mapping, Size size_bytes)
{
	Size		bytes = mapping_bytes(piece, size_bytes);

	piece->base = mapping + piece->head_bytes;
	piece->size_bytes = size_bytes;
	piece->reached_bytes = Min(piece->reached_bytes, size_bytes);
	if (bytes >= FMS_HUGE_PAGE_BYTES && piece->touches == 0)
		piece->huge = madvise(mapping, bytes, MADV_HUGEPAGE) == 0;
}

static bool
resize_small(FmsPiece *piece, Size used_bytes, Size size_bytes)
{
	char	   *base = MemoryContextAllocExtended(piece->context, size_bytes,
												  MCXT_ALLOC_NO_OOM);

	if (base == NULL)
		return false;
	if (piece->base)
	{
		memcpy(base, piece->base, used_bytes);
		pfree(piece->base);
	}
	piece->base = base;
	piece->size_bytes = piece->reached_bytes = size_bytes;
	return true;
}

/* A small piece, or none, becomes a mapped one. */
static bool
map(FmsPiece *piece, Size used_bytes, Size size_bytes)
{
	Size		bytes = whole_pages(piece->wanted_head_bytes + size_bytes);
	char	   *small = piece->base;
	char	   *mapping;

	if (!is_to_be_had(bytes, size_bytes))
		return false;
	mapping = fms_huge_page_map(bytes, bytes >= FMS_HUGE_PAGE_BYTES,
								PROT_READ | PROT_WRITE);
	if (mapping == MAP_FAILED)
		return false;
	piece->mapped = true;
	piece->head_bytes = piece->wanted_head_bytes;
	piece->reached_bytes = 0;
	set_mapping(piece, mapping, size_bytes);
	if (small)
	{
		fms_piece_reach(piece, used_bytes);
		memcpy(piece->base, small, used_bytes);
		pfree(small);
	}
	return true;
}

/*
 * Moves a mapping to where a huge page begins.  Needs address space for both
 * places.  MAP_FAILED: it stays where it is.
 */
static char *
move_aligned(char *mapping, Size bytes, Size new_bytes)
{
	char	   *place = fms_huge_page_map(new_bytes, true, PROT_NONE);
	char	   *moved;

	if (place == MAP_FAILED)
		return MAP_FAILED;
	moved = mremap(mapping, bytes, new_bytes,
				   MREMAP_MAYMOVE | MREMAP_FIXED, place);
	if (moved == MAP_FAILED)
		munmap(place, new_bytes);
	return moved;
}

static bool
remap(FmsPiece *piece, Size size_bytes)
{
	char	   *mapping = mapping_of(piece);
	Size		bytes = mapping_bytes(piece, piece->size_bytes);
	Size		new_bytes = mapping_bytes(piece, size_bytes);
	char	   *moved = MAP_FAILED;

	if (new_bytes == bytes)
		moved = mapping;
	if (new_bytes > bytes && !is_to_be_had(new_bytes - bytes, size_bytes))
		return false;
	if (new_bytes > bytes && new_bytes >= FMS_HUGE_PAGE_BYTES)
		moved = move_aligned(mapping, bytes, new_bytes);
	if (moved == MAP_FAILED)
		moved = mremap(mapping, bytes, new_bytes, MREMAP_MAYMOVE);
	if (moved == MAP_FAILED)
		return false;
	set_mapping(piece, moved, size_bytes);
	return true;
}

/*
 * Gives the pages behind from_bytes back.  Gigabytes take long: in parts, with
 * a check for interrupts before each.  After an error the mapping is still the
 * piece's.
 */
static void
give_back_pages(FmsPiece *piece, Size from_bytes)
{
	Size		bytes = whole_pages(piece->reached_bytes);
	Size		at;

	for (at = whole_pages(from_bytes); at < bytes;
		 at += FMS_INTERRUPT_FREED_BYTES)
	{
		CHECK_FOR_INTERRUPTS();
		(void) madvise(piece->base + at,
					   Min(bytes - at, FMS_INTERRUPT_FREED_BYTES),
					   MADV_DONTNEED);
	}
}

bool
fms_piece_resize(FmsPiece *piece, Size used_bytes, Size size_bytes)
{
	Assert(used_bytes <= Min(piece->size_bytes, size_bytes));

	if (piece->mapped)
	{
		give_back_pages(piece, size_bytes);
		return remap(piece, size_bytes);
	}
	if (size_bytes > PALLOC_MAX_BYTES)
		return map(piece, used_bytes, size_bytes);
	return resize_small(piece, used_bytes, size_bytes);
}

/* If huge pages take too long, what is still to come is small pages. */
static void
judge_huge_pages(FmsPiece *piece, double took_us)
{
	piece->touch_us += took_us;
	piece->touches++;
	if (piece->touch_us <= piece->touches * SMALL_PAGES_US + PATIENCE_US)
		return;
	(void) madvise(mapping_of(piece), mapping_bytes(piece, piece->size_bytes),
				   MADV_NOHUGEPAGE);
	piece->huge = false;
}

void
fms_piece_reach(FmsPiece *piece, Size upto_bytes)
{
	bool		huge = piece->huge;
	Size		step = huge ? FMS_HUGE_PAGE_BYTES :
		Min(STEP_MAX_BYTES, whole_pages(piece->size_bytes / STEP_FRACTION));
	char	   *end = piece->base + piece->size_bytes;
	char	   *from = piece->base + piece->reached_bytes;
	char	   *upto = piece->base + upto_bytes;
	instr_time	start;

	Assert(upto_bytes <= piece->size_bytes);
	if (upto <= from)
		return;
	from = (char *) TYPEALIGN_DOWN(sysconf(_SC_PAGESIZE), from);
	upto = huge ? (char *) TYPEALIGN(step, upto) : Max(upto, from + step);
	upto = Min(upto, end);
	start = fms_clock_now();
	/* a kernel that cannot do that gets the pages at the first write */
	if (madvise(from, whole_pages(upto - from), MADV_POPULATE_WRITE) != 0)
		*(volatile char *) (piece->base + piece->reached_bytes) = 0;
	piece->reached_bytes = upto - piece->base;
	if (huge)
		judge_huge_pages(piece, fms_clock_since_us(start));
}

char *
fms_piece_take_head(FmsPiece *piece, Size *bytes)
{
	char	   *head = mapping_of(piece);

	if (piece->head_bytes == 0 ||
		mapping_bytes(piece, piece->size_bytes) < FMS_HUGE_PAGE_BYTES)
		return NULL;
	*bytes = piece->head_bytes;
	piece->head_bytes = 0;
	return head;
}

void
fms_piece_unmap(FmsPiece *piece)
{
	if (piece->mapped)
		munmap(mapping_of(piece), mapping_bytes(piece, piece->size_bytes));
	piece->base = NULL;
	piece->size_bytes = piece->reached_bytes = piece->head_bytes = 0;
	piece->mapped = piece->huge = false;
	piece->touches = 0;
	piece->touch_us = 0;
}

void
fms_piece_free(FmsPiece *piece)
{
	if (piece->mapped)
		give_back_pages(piece, 0);
	else if (piece->base)
		pfree(piece->base);
	fms_piece_unmap(piece);
}
