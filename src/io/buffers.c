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
 * transfers is whole huge pages.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "io/huge_page.h"
#include "io/io.h"

/* Smallest buffer, in bytes, that is rounded up: to at most eight times. */
#define HUGE_FROM_BYTES		(FMS_HUGE_PAGE_BYTES / 8)

/* The channel's buffer at that address, or with NULL, a place for one. */
static FmsIoBuffer *
find_buffer(FmsIo *io, const char *base)
{
	for (int i = 0; i < (int) lengthof(io->buffers); i++)
	{
		if (io->buffers[i].base == base)
			return &io->buffers[i];
	}
	elog(ERROR, "channel has no sort buffer at %p", base);
	return NULL;				/* keep compiler quiet */
}

char *
fms_io_map(FmsIo *io, Size bytes, bool direct)
{
	FmsIoBuffer *buffer = find_buffer(io, NULL);
	Size		whole = direct && bytes >= HUGE_FROM_BYTES ?
		TYPEALIGN(FMS_HUGE_PAGE_BYTES, bytes) : fms_whole_pages(bytes);
	char	   *base = fms_huge_page_map(whole, PROT_READ | PROT_WRITE);

	if (base == MAP_FAILED)
		ereport(ERROR,
				(errcode(ERRCODE_OUT_OF_MEMORY),
				 errmsg("out of memory"),
				 errdetail("Failed on request of size %zu for the buffers of a sort.",
						   whole)));
	if (whole >= FMS_HUGE_PAGE_BYTES)
		(void) madvise(base, whole, MADV_HUGEPAGE);
	*buffer = (FmsIoBuffer) {base, whole};
	return base;
}

void
fms_io_unmap(FmsIo *io, char *base)
{
	FmsIoBuffer *buffer = find_buffer(io, base);

	while (io->in_flight > 0)
		(void) fms_io_wait(io);
	/* on an interrupt the mapping stays for fms_io_close() */
	fms_huge_page_empty(base, buffer->bytes);
	munmap(base, buffer->bytes);
	buffer->base = NULL;
}

void
fms_io_unmap_all(FmsIo *io, bool drained)
{
	for (int i = 0; i < (int) lengthof(io->buffers); i++)
	{
		FmsIoBuffer *buffer = &io->buffers[i];

		if (buffer->base && drained)
			munmap(buffer->base, buffer->bytes);
		else if (buffer->base)
			/* a late read writes to fresh pages, or to those it holds */
			(void) madvise(buffer->base, buffer->bytes, MADV_DONTNEED);
		buffer->base = NULL;
	}
}
