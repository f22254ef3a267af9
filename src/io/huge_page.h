/*-------------------------------------------------------------------------
 *
 * huge_page.h
 *	  Mappings that begin where a huge page can.
 *
 * A huge page begins at a multiple of its size.  mmap() aligns to pages only,
 * so more is mapped than needed, and the ends are unmapped:
 *
 *	  |.......|<-------- bytes -------->|......|
 *	          ^ a multiple of FMS_HUGE_PAGE_BYTES
 *
 * On systems with huge pages of another size the alignment has no effect.
 *
 *-------------------------------------------------------------------------
 */
#ifndef FMS_HUGE_PAGE_H
#define FMS_HUGE_PAGE_H

#include "postgres.h"

#include <sys/mman.h>
#include <unistd.h>

/* Size of a huge page on x86-64, and on arm64 with pages of 4 kB. */
#define FMS_HUGE_PAGE_BYTES ((Size) 2 * 1024 * 1024)

/*
 * Linux 5.14: get pages now; Linux 6.1: make small pages a huge one.  Older
 * headers do not define them, older kernels return EINVAL.
 */
#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif
#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25
#endif

/*
 * Maps bytes, rounded up to whole pages, private and zeroed, with that
 * protection; where a huge page can begin if aligned.  Returns MAP_FAILED if
 * there is no memory.
 */
static inline char *
fms_huge_page_map(Size bytes, bool aligned, int protection)
{
	Size		page = sysconf(_SC_PAGESIZE);
	Size		whole = TYPEALIGN(page, bytes);
	Size		slack = aligned ? FMS_HUGE_PAGE_BYTES - page : 0;
	char	   *mapped = mmap(NULL, whole + slack, protection,
							  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char	   *begin;

	if (mapped == MAP_FAILED || !aligned)
		return mapped;
	begin = (char *) TYPEALIGN(FMS_HUGE_PAGE_BYTES, mapped);
	if (begin > mapped)
		munmap(mapped, begin - mapped);
	if (begin < mapped + slack)
		munmap(begin + whole, mapped + slack - begin);
	return begin;
}

/*
 * Would the system map that much now?  RLIMIT_AS or strict overcommit may
 * forbid it.
 */
static inline bool
fms_huge_page_could_map(Size bytes)
{
	char	   *mapped = fms_huge_page_map(bytes, false,
										   PROT_READ | PROT_WRITE);

	if (mapped == MAP_FAILED)
		return false;
	munmap(mapped, bytes);
	return true;
}

#endif							/* FMS_HUGE_PAGE_H */
