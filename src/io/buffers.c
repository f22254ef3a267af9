/*-------------------------------------------------------------------------
 *
 * buffers.c
 *	  A channel's buffers: mappings and huge pages.
 *
 * Buffers are mapped and not palloc'd, since PostgreSQL may free memory
 * contexts on an error before the channel is drained, and a late read must not
 * write to memory of another owner.
 *
 * A direct transfer passes a list of physical memory ranges to the device: one
 * for a huge page, but 32 for 128 kB of small pages.  So a buffer for direct
 * transfers is whole huge pages.  Behind each buffer a page describes it:
 *
 *	  huge page     huge page     page
 *	  |[block][block][block][ - ]|[FmsMapping]|
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "io/huge_page.h"
#include "io/io.h"

/* Smallest buffer, in bytes, that is rounded up: to at most eight times. */
#define HUGE_FROM_BYTES		(FMS_HUGE_PAGE_BYTES / 8)

typedef struct FmsMapping
{
	dlist_node	link;
	char	   *buffer;			/* where the mapping begins */
	Size		buffer_bytes;	/* size without the FmsMapping's page */
} FmsMapping;

StaticAssertDecl(sizeof(FmsMapping) <= FMS_IO_ALIGN_BYTES,
				 "what describes a buffer must fit into a page");

char *
fms_io_map(FmsIo *io, Size bytes, bool direct)
{
	Size		buffer_bytes = direct && bytes >= HUGE_FROM_BYTES ?
		TYPEALIGN(FMS_HUGE_PAGE_BYTES, bytes) : fms_whole_pages(bytes);
	Size		mapped_bytes = buffer_bytes + FMS_IO_ALIGN_BYTES;
	char	   *buffer = fms_huge_page_map(mapped_bytes,
										   PROT_READ | PROT_WRITE);
	FmsMapping *mapping;

	if (buffer == MAP_FAILED)
		ereport(ERROR,
				(errcode(ERRCODE_OUT_OF_MEMORY),
				 errmsg("out of memory"),
				 errdetail("Failed on request of size %zu for the buffers of a sort.",
						   mapped_bytes)));
	if (buffer_bytes >= FMS_HUGE_PAGE_BYTES)
		(void) madvise(buffer, buffer_bytes, MADV_HUGEPAGE);
	mapping = (FmsMapping *) (buffer + buffer_bytes);
	mapping->buffer = buffer;
	mapping->buffer_bytes = buffer_bytes;
	dlist_push_head(&io->mappings, &mapping->link);
	return buffer;
}

static FmsMapping *
find_mapping(FmsIo *io, const char *buffer)
{
	dlist_iter	iter;

	dlist_foreach(iter, &io->mappings)
	{
		FmsMapping *mapping = dlist_container(FmsMapping, link, iter.cur);

		if (mapping->buffer == buffer)
			return mapping;
	}
	elog(ERROR, "sort buffer at %p was not mapped", buffer);
	return NULL;				/* keep compiler quiet */
}

void
fms_io_unmap(FmsIo *io, char *buffer)
{
	FmsMapping *mapping = find_mapping(io, buffer);

	while (io->in_flight > 0)
		(void) fms_io_wait(io);
	/* on an interrupt the mapping stays for fms_io_close() */
	fms_huge_page_empty(buffer, mapping->buffer_bytes);
	dlist_delete(&mapping->link);
	munmap(buffer, mapping->buffer_bytes + FMS_IO_ALIGN_BYTES);
}

void
fms_io_unmap_all(FmsIo *io, bool drained)
{
	dlist_mutable_iter iter;

	dlist_foreach_modify(iter, &io->mappings)
	{
		FmsMapping *mapping = dlist_container(FmsMapping, link, iter.cur);
		Size		bytes = mapping->buffer_bytes + FMS_IO_ALIGN_BYTES;

		dlist_delete(&mapping->link);
		if (drained)
			munmap(mapping->buffer, bytes);
		else
			/* a late read writes to fresh pages, or to those it holds */
			(void) madvise(mapping->buffer, bytes, MADV_DONTNEED);
	}
}
