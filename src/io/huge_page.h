/*-------------------------------------------------------------------------
 *
 * huge_page.h
 *	  Mappings that begin where a huge page can.
 *
 * A huge page begins at a multiple of its size.  mmap() aligns to pages only,
 * so more is mapped than needed, and the ends are unmapped.
 *
 *-------------------------------------------------------------------------
 */
#ifndef FMS_HUGE_PAGE_H
#define FMS_HUGE_PAGE_H

#include <sys/mman.h>
#include <unistd.h>

#include "base/interrupts.h"

/* Size of a huge page on x86-64, and on arm64 with pages of 4 kB. */
#define FMS_HUGE_PAGE_BYTES ((Size) 2 * 1024 * 1024)

static inline Size
fms_whole_pages(Size bytes)
{
	Size		page = sysconf(_SC_PAGESIZE);

	return TYPEALIGN(page, bytes);
}

/* Maps zeroed whole pages; 2 MB or more where a huge page can; MAP_FAILED. */
static inline char *
fms_huge_page_map(Size bytes, int protection)
{
	Size		whole = fms_whole_pages(bytes);
	Size		slack = whole < FMS_HUGE_PAGE_BYTES ? 0 : FMS_HUGE_PAGE_BYTES;
	char	   *mapped = mmap(NULL, whole + slack, protection,
							  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char	   *begin;

	if (mapped == MAP_FAILED || slack == 0)
		return mapped;
	begin = (char *) TYPEALIGN(FMS_HUGE_PAGE_BYTES, mapped);
	if (begin > mapped)
		munmap(mapped, begin - mapped);
	munmap(begin + whole, mapped + slack - begin);
	return begin;
}

/* Frees pages, whose addresses stay mapped, with checks for interrupts. */
static inline void
fms_huge_page_empty(char *part, Size bytes)
{
	Size		at;

	for (at = 0; at < bytes; at += FMS_INTERRUPT_FREED_BYTES)
	{
		CHECK_FOR_INTERRUPTS();
		(void) madvise(part + at, Min(bytes - at, FMS_INTERRUPT_FREED_BYTES),
					   MADV_DONTNEED);
	}
}

#endif							/* FMS_HUGE_PAGE_H */
