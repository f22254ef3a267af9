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
 * for a huge page, but 32 for 128 kB of small pages.  Virtual drives serve
 * huge pages two to three times as fast.  So a mapping begins where a huge
 * page can, and its description lies in its last page:
 *
 *	  huge page     huge page     small pages
 *	  |[block][block][block][block][block]...|[FmsMapping]|
 *
 * With little work_mem not every buffer can have a huge page, so two share
 * one.  In an intermediate pass the write buffers have room behind the input
 * buffer.  While runs are formed they lie in front of the tuples (piece.c):
 * the channel adopts the front of that mapping, whose small pages become a
 * huge one when the channel begins direct I/O.
 *
 *	  huge page     huge page			  huge page   small pages
 *	  |[block][block][block][ output ]|	  |[ output ]| tuples ...
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "base/interrupts.h"
#include "io/huge_page.h"
#include "io/io.h"

/* Smallest buffer, in bytes, that is rounded up to a huge page. */
#define HUGE_FROM_BYTES		((Size) 64 * 1024)

typedef struct FmsMapping
{
	dlist_node	link;
	char	   *buffers;		/* where the mapping begins */
	Size		buffer_bytes;	/* size without the FmsMapping's page */
	Size		room_at;		/* offset of the room for one more buffer */
	bool		room_taken;
	bool		adopted;		/* the mapping is room only */
} FmsMapping;

StaticAssertDecl(sizeof(FmsMapping) <= FMS_IO_ALIGN_BYTES,
				 "what describes a mapping must fit into its last page");

/*
 * Makes the small pages of adopted memory a huge page, if the channel does
 * direct I/O.  If the kernel cannot, transfers are slower.
 */
static void
collapse(const FmsIo *io, const FmsMapping *mapping)
{
	char	   *page = (char *) TYPEALIGN_DOWN(FMS_HUGE_PAGE_BYTES,
											   mapping->buffers);

	if (io->direct && mapping->adopted)
		(void) madvise(page, FMS_HUGE_PAGE_BYTES, MADV_COLLAPSE);
}

void
fms_io_expect_direct(FmsIo *io)
{
	dlist_iter	iter;

	io->direct = true;
	dlist_foreach(iter, &io->mappings)
	{
		collapse(io, dlist_container(FmsMapping, link, iter.cur));
	}
}

/* Adds a mapping of buffer_bytes and a page to the channel. */
static void
add_mapping(FmsIo *io, char *buffers, Size buffer_bytes, Size room_at,
			bool adopted)
{
	FmsMapping *mapping = (FmsMapping *) (buffers + buffer_bytes);

	Assert((uintptr_t) buffers % FMS_IO_ALIGN_BYTES == 0);
	Assert(room_at <= buffer_bytes);
	mapping->buffers = buffers;
	mapping->buffer_bytes = buffer_bytes;
	mapping->room_at = room_at;
	mapping->room_taken = false;
	mapping->adopted = adopted;
	dlist_push_head(&io->mappings, &mapping->link);
	collapse(io, mapping);
}

/*
 * Rounds bytes up so that mapping and last page fill huge pages, if the
 * channel does direct I/O and has spare_bytes for that.
 */
static Size
round_up(FmsIo *io, Size bytes)
{
	Size		rounded = TYPEALIGN(FMS_HUGE_PAGE_BYTES,
									bytes + FMS_IO_ALIGN_BYTES) -
		FMS_IO_ALIGN_BYTES;

	if (!io->direct || bytes < HUGE_FROM_BYTES ||
		rounded - bytes > io->spare_bytes)
		return bytes;
	io->spare_bytes -= rounded - bytes;
	return rounded;
}

char *
fms_io_map_with_room(FmsIo *io, Size bytes, Size room_bytes)
{
	Size		room_at = FMS_IO_ALIGN(bytes);
	Size		buffer_bytes = round_up(io, room_at +
										FMS_IO_ALIGN(room_bytes));
	Size		mapped_bytes = buffer_bytes + FMS_IO_ALIGN_BYTES;
	bool		is_large = mapped_bytes >= FMS_HUGE_PAGE_BYTES;
	char	   *buffers = fms_huge_page_map(mapped_bytes, is_large,
											PROT_READ | PROT_WRITE);

	if (buffers == MAP_FAILED)
		ereport(ERROR,
				(errcode(ERRCODE_OUT_OF_MEMORY),
				 errmsg("out of memory"),
				 errdetail("Failed on request of size %zu for the buffers of a sort.",
						   mapped_bytes)));
	if (is_large)
		(void) madvise(buffers, mapped_bytes, MADV_HUGEPAGE);
	add_mapping(io, buffers, buffer_bytes, room_at, false);
	return buffers;
}

char *
fms_io_map(FmsIo *io, Size bytes)
{
	return fms_io_map_with_room(io, bytes, 0);
}

void
fms_io_adopt(FmsIo *io, char *memory, Size bytes)
{
	Assert(bytes > FMS_IO_ALIGN_BYTES && bytes % FMS_IO_ALIGN_BYTES == 0);
	add_mapping(io, memory, bytes - FMS_IO_ALIGN_BYTES, 0, true);
}

char *
fms_io_map_in_room(FmsIo *io, Size bytes)
{
	dlist_iter	iter;

	dlist_foreach(iter, &io->mappings)
	{
		FmsMapping *mapping = dlist_container(FmsMapping, link, iter.cur);

		if (!mapping->room_taken &&
			mapping->buffer_bytes - mapping->room_at >= bytes)
		{
			mapping->room_taken = true;
			return mapping->buffers + mapping->room_at;
		}
	}
	return fms_io_map(io, bytes);
}

/* Finds the mapping that begins with the buffer, or has it as room. */
static FmsMapping *
find_mapping(FmsIo *io, const char *buffer)
{
	dlist_iter	iter;

	dlist_foreach(iter, &io->mappings)
	{
		FmsMapping *mapping = dlist_container(FmsMapping, link, iter.cur);

		if (buffer == mapping->buffers ||
			(mapping->room_taken &&
			 buffer == mapping->buffers + mapping->room_at))
			return mapping;
	}
	elog(ERROR, "sort buffers at %p were not mapped", buffer);
	return NULL;				/* keep compiler quiet */
}

/*
 * Unmaps a mapping of which nothing is in flight.  The kernel frees the pages
 * of a large one piece by piece, with checks for interrupts; on an interrupt
 * the mapping stays for fms_io_close().
 */
static void
unmap_by_pieces(FmsMapping *mapping)
{
	Size		bytes = mapping->buffer_bytes;
	Size		done = 0;

	while (bytes - done > FMS_INTERRUPT_FREED_BYTES)
	{
		CHECK_FOR_INTERRUPTS();
		(void) madvise(mapping->buffers + done, FMS_INTERRUPT_FREED_BYTES,
					   MADV_DONTNEED);
		done += FMS_INTERRUPT_FREED_BYTES;
	}
	dlist_delete(&mapping->link);
	munmap(mapping->buffers, bytes + FMS_IO_ALIGN_BYTES);
}

void
fms_io_unmap(FmsIo *io, char *buffer)
{
	FmsMapping *mapping = find_mapping(io, buffer);

	while (io->in_flight > 0)
		(void) fms_io_wait(io);
	if (buffer != mapping->buffers)
	{
		mapping->room_taken = false;
		return;
	}
	Assert(mapping->adopted || !mapping->room_taken);
	unmap_by_pieces(mapping);
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
			munmap(mapping->buffers, bytes);
		else
			/* a late read writes to fresh pages, or to those it holds */
			(void) madvise(mapping->buffers, bytes, MADV_DONTNEED);
	}
}
