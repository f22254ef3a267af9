/*-------------------------------------------------------------------------
 *
 * piece.c
 *	  A piece of memory that grows.
 *
 *	  up to PALLOC_MAX_BYTES	palloc'd; growing copies it
 *	  beyond					mapped; growing moves its pages (mremap)
 *	  from a huge page on		begins where a huge page can, and asks for
 *								huge pages
 *
 * Growing a mapping copies nothing and never needs the memory twice.
 *
 * A huge page costs one page fault instead of 512 and fewer TLB entries.  But
 * on a virtual machine that has given free memory back to its host, getting a
 * huge page can take fifty times as long.  So the piece gets its pages in
 * steps and times the huge ones: if they take longer than small pages would,
 * the rest are small pages.
 *
 * In front of a mapped piece there may be a head, which shares the first huge
 * page: address space for the write buffers (io/buffers.c).
 *
 * Memory: the owner frees the piece.  On an error the reset callback of the
 * owner's context calls fms_piece_unmap().
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "utils/memutils.h"

#include "base/clock.h"
#include "base/interrupts.h"
#include "formation/piece.h"
#include "io/huge_page.h"

/* Largest palloc'd piece; malloc() maps from twice this size on. */
#define PALLOC_MAX_BYTES	((Size) 64 * 1024)

/*
 * A piece grows only if the system has a margin beyond: this part of its size,
 * within these bounds.  A sort that cannot grow spills, and needs buffers.
 */
#define MARGIN_FRACTION		4
#define MARGIN_MIN_BYTES	((Size) 1024 * 1024)
#define MARGIN_MAX_BYTES	((Size) 8 * 1024 * 1024)

/*
 * Huge pages may take SMALL_PAGES_US each, measured for 512 small pages, and
 * PATIENCE_US in all.
 */
#define SMALL_PAGES_US		500.0
#define PATIENCE_US			10000.0

/* Step in which a piece gets small pages: a part of its size, up to this. */
#define STEP_FRACTION		4
#define STEP_MAX_BYTES		((Size) 256 * 1024)

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

/* Would the system map more_bytes and the margin of a piece of size_bytes? */
static bool
is_available(Size more_bytes, Size size_bytes)
{
	Size		margin = Min(MARGIN_MAX_BYTES, size_bytes / MARGIN_FRACTION);

	return fms_huge_page_could_map(more_bytes +
								   Max(MARGIN_MIN_BYTES, margin));
}

/* Notes the mapping of a piece of size_bytes; asks for huge pages. */
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

/* Resizes a palloc'd or empty piece. */
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

/* Makes a small or empty piece a mapped one. */
static bool
map(FmsPiece *piece, Size used_bytes, Size size_bytes)
{
	Size		bytes = whole_pages(piece->wanted_head_bytes + size_bytes);
	char	   *small = piece->base;
	char	   *mapping;

	if (!is_available(bytes, size_bytes))
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
 * Moves a mapping to where a huge page can begin.  MAP_FAILED: the mapping
 * stays where it is.
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

/* Resizes a mapped piece. */
static bool
remap(FmsPiece *piece, Size size_bytes)
{
	char	   *mapping = mapping_of(piece);
	Size		bytes = mapping_bytes(piece, piece->size_bytes);
	Size		new_bytes = mapping_bytes(piece, size_bytes);
	char	   *moved = MAP_FAILED;

	if (new_bytes == bytes)
		moved = mapping;
	if (new_bytes > bytes && !is_available(new_bytes - bytes, size_bytes))
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
 * Frees the pages behind from_bytes, in steps with checks for interrupts.  The
 * piece keeps the mapping.
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

/* Gives up huge pages for the pages to come, if they take too long. */
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
	/* before Linux 5.14, the first write gets a page */
	if (madvise(from, whole_pages(upto - from), MADV_POPULATE_WRITE) != 0)
		*(volatile char *) (piece->base + piece->reached_bytes) = 0;
	piece->reached_bytes = upto - piece->base;
	if (huge)
		judge_huge_pages(piece, fms_clock_since_us(start));
}

void
fms_piece_want_head(FmsPiece *piece, Size bytes)
{
	Size		whole = whole_pages(bytes);

	piece->wanted_head_bytes = whole < FMS_HUGE_PAGE_BYTES ? whole : 0;
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
