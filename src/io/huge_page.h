/*-------------------------------------------------------------------------
 *
 * huge_page.h
 *	  Memory that begins where a huge page does.
 *
 * The kernel makes a huge page only of memory that begins at a multiple of its
 * size and reaches to the next one.  mmap() promises pages, so more is mapped
 * than is wanted, and what is in front and behind is given back:
 *
 *	  |.......|<-------- bytes -------->|......|
 *	          ^ a multiple of FMS_HUGE_PAGE_BYTES
 *
 * Where huge pages have another size, this begins somewhere, and that is all.
 *
 *-------------------------------------------------------------------------
 */
#ifndef FMS_HUGE_PAGE_H
#define FMS_HUGE_PAGE_H

#include "postgres.h"

#include <sys/mman.h>
#include <unistd.h>

#define FMS_HUGE_PAGE_BYTES ((Size) 2 * 1024 * 1024)

/*
 * Maps so many bytes, made up to whole pages, private and zeroed, with that
 * protection; begins as above if aligned.  MAP_FAILED: there is no memory.
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
