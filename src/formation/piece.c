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
 * A huge page costs one page fault instead of 512 and fewer TLB entries.  But
 * on a virtual machine that has given free memory back to its host, getting a
 * huge page can take fifty times as long.  So the piece gets its pages in
 * steps and times the huge ones: if they take longer than small pages would,
 * the rest are small pages.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "utils/memutils.h"

#include "base/clock.h"
#include "device/free_memory.h"
#include "formation/arena.h"
#include "io/huge_page.h"

/* Linux 5.14: get pages now.  Older headers do not define it. */
#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

/* Largest palloc'd piece, in bytes: 10,000 short rows fit. */
#define PALLOC_MAX_BYTES	((Size) 1024 * 1024)

/*
 * A piece larger than UNCHECKED_BYTES grows only if the system has a margin
 * for buffers beyond: a quarter of its size, within these bounds.
 */
#define UNCHECKED_BYTES		((Size) 256 * 1024)
#define MARGIN_MIN_BYTES	((Size) 1024 * 1024)
#define MARGIN_MAX_BYTES	((Size) 8 * 1024 * 1024)

/*
 * A piece that is to have more bytes than this grows only if memory has room
 * for it, with a quarter to spare: at the limit of a control group, the kernel
 * ends a process of the group.
 */
#define CROWDED_FROM_BYTES	((Size) 64 * 1024 * 1024)

/*
 * Huge pages may take SMALL_PAGES_US each, measured for 512 small pages, and
 * PATIENCE_US in all.
 */
#define SMALL_PAGES_US		500.0
#define PATIENCE_US			10000.0

/* Bytes of small pages that one system call gets. */
#define STEP_BYTES			((Size) 256 * 1024)

void
fms_piece_init(FmsPiece *piece)
{
	*piece = (FmsPiece) {.patience_us = PATIENCE_US};
}

/* Do RLIMIT_AS and overcommit allow more_bytes and the piece's margin? */
static bool
is_available(Size more_bytes, Size size_bytes)
{
	Size		margin = Max(MARGIN_MIN_BYTES,
							 Min(MARGIN_MAX_BYTES, size_bytes / 4));
	Size		bytes = more_bytes + margin;
	char	   *mapped = fms_huge_page_map(bytes, PROT_READ | PROT_WRITE);

	if (mapped == MAP_FAILED)
		return false;
	munmap(mapped, bytes);
	return true;
}

/* Has memory room for the pages that a piece of size_bytes has yet to get? */
static bool
has_room(const FmsPiece *piece, Size size_bytes)
{
	FmsFreeMemory memory;

	if (size_bytes <= CROWDED_FROM_BYTES)
		return true;
	memory = fms_free_memory();
	/* nothing is known without /proc */
	return memory.machine_bytes == 0 ||
		size_bytes - piece->reached_bytes <=
		memory.available_bytes - memory.available_bytes / 4;
}

/*
 * Maps new_bytes, or resizes a mapping of `bytes` > 0.  A large mapping that
 * grows moves to where a huge page can begin.
 */
static char *
remap(char *base, Size bytes, Size new_bytes)
{
	char	   *place = MAP_FAILED;
	char	   *moved;

	if (bytes == 0)
		return fms_huge_page_map(new_bytes, PROT_READ | PROT_WRITE);
	if (new_bytes > bytes && new_bytes >= FMS_HUGE_PAGE_BYTES)
		place = fms_huge_page_map(new_bytes, PROT_NONE);
	if (place == MAP_FAILED)
		return mremap(base, bytes, new_bytes, MREMAP_MAYMOVE);
	moved = mremap(base, bytes, new_bytes, MREMAP_MAYMOVE | MREMAP_FIXED,
				   place);
	if (moved == MAP_FAILED)
		munmap(place, new_bytes);
	return moved;
}

/* Resizes a piece that is mapped, or will be. */
static bool
resize_mapped(FmsPiece *piece, Size size_bytes)
{
	Size		bytes = fms_whole_pages(piece->size_bytes);
	Size		new_bytes = fms_whole_pages(size_bytes);
	char	   *base = piece->base;

	if (piece->reached_bytes > new_bytes)
		fms_huge_page_empty(base + new_bytes,
							piece->reached_bytes - new_bytes);
	if (new_bytes != bytes)
		base = remap(base, bytes, new_bytes);
	if (base == MAP_FAILED)
		return false;
	piece->mapped = true;
	piece->base = base;
	piece->size_bytes = size_bytes;
	piece->reached_bytes = Min(piece->reached_bytes, size_bytes);
	if (new_bytes >= FMS_HUGE_PAGE_BYTES && piece->patience_us >= 0)
		piece->huge = madvise(base, new_bytes, MADV_HUGEPAGE) == 0;
	return true;
}

/* Moves a palloc'd or empty piece to new memory, which is mapped if large. */
static bool
replace(FmsPiece *piece, Size size_bytes)
{
	FmsPiece	moved;

	fms_piece_init(&moved);
	if (size_bytes > PALLOC_MAX_BYTES)
	{
		if (!resize_mapped(&moved, size_bytes))
			return false;
		fms_piece_reach(&moved, piece->used_bytes);
	}
	else
	{
		moved.base = MemoryContextAllocExtended(TopMemoryContext, size_bytes,
												 MCXT_ALLOC_NO_OOM);
		if (moved.base == NULL)
			return false;
		moved.size_bytes = moved.reached_bytes = size_bytes;
	}
	if (piece->base)
	{
		memcpy(moved.base, piece->base, piece->used_bytes);
		pfree(piece->base);
	}
	moved.used_bytes = piece->used_bytes;
	*piece = moved;
	return true;
}

bool
fms_piece_resize(FmsPiece *piece, Size size_bytes)
{
	Assert(piece->used_bytes <= Min(piece->size_bytes, size_bytes));

	if (size_bytes == piece->size_bytes)
		return true;
	if (size_bytes == 0)
	{
		fms_piece_free(piece);
		return true;
	}
	if (size_bytes > Max(piece->size_bytes, UNCHECKED_BYTES) &&
		!(is_available(size_bytes - (piece->mapped ? piece->size_bytes : 0),
					   size_bytes) &&
		  has_room(piece, size_bytes)))
		return false;
	return piece->mapped ? resize_mapped(piece, size_bytes) :
		replace(piece, size_bytes);
}

/* Gives up huge pages for the pages to come, if they take too long. */
static void
judge_huge_pages(FmsPiece *piece, double took_us)
{
	piece->patience_us += SMALL_PAGES_US - took_us;
	if (piece->patience_us >= 0)
		return;
	(void) madvise(piece->base, fms_whole_pages(piece->size_bytes),
				   MADV_NOHUGEPAGE);
	piece->huge = false;
}

void
fms_piece_reach(FmsPiece *piece, Size upto_bytes)
{
	Size		step = piece->huge ? FMS_HUGE_PAGE_BYTES : STEP_BYTES;
	Size		from = fms_whole_pages(piece->reached_bytes);
	Size		upto = Min(TYPEALIGN(step, upto_bytes), piece->size_bytes);
	instr_time	start;

	Assert(upto_bytes <= piece->size_bytes);
	if (upto_bytes <= piece->reached_bytes)
		return;
	start = fms_clock_now();
	/* before Linux 5.14, the first write gets a page */
	if (from < upto &&
		madvise(piece->base + from, upto - from, MADV_POPULATE_WRITE) != 0)
		*(volatile char *) (piece->base + from) = 0;
	piece->reached_bytes = upto;
	if (piece->huge)
		judge_huge_pages(piece, fms_clock_since_us(start));
}

void
fms_piece_free(FmsPiece *piece)
{
	if (piece->mapped)
	{
		fms_huge_page_empty(piece->base, piece->reached_bytes);
		munmap(piece->base, fms_whole_pages(piece->size_bytes));
	}
	else if (piece->base)
		pfree(piece->base);
	fms_piece_init(piece);
}
