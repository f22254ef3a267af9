/*-------------------------------------------------------------------------
 *
 * io.c
 *	  Reads and writes that go on while we do something else.
 *
 * What all methods share: which one a channel gets, the buffers, and the
 * promise that a buffer never goes away while the kernel may touch it.
 *
 * That promise is why buffers are mapped here and not palloc'd.  On an
 * error, PostgreSQL frees memory contexts at a moment of its own choosing,
 * often before the resource owner closes the files; a read still in flight
 * would then land in memory that belongs to somebody else.  A mapping stays
 * until fms_io_close() has seen every completion.
 *
 * If completions cannot be had any more, which takes a kernel that refuses to
 * wait, nobody knows how long it goes on.  Then a buffer's pages are given
 * back, but its addresses stay taken for the rest of the process's life, so
 * that no other memory can be where a late read goes.
 *
 * Large buffers are made of huge pages.  What the drive is given is a list of
 * pieces of physical memory, and small pages next to each other are pieces of
 * their own: of a 128 kB read, 32.  On a virtual drive that served 3 GB/s into
 * huge pages, the same reads into small ones came at 1.3 GB/s; and blocks
 * smaller than a page that lie across two of them at three quarters of the
 * rate.  So buffers begin where a huge page does, what describes them stands
 * behind them, and smaller ones are rounded up to a huge page if memory is
 * left over.  (The page cache copies, so there it makes no difference.)
 *
 *	  huge page     huge page     small pages
 *	  |[block][block][block][block][block]...|[FmsMapping]|
 *
 * A sort with little memory cannot give each of its buffers a huge page.  Then
 * two share one: behind the input buffer there is room for the output's, and
 * while runs are formed, in front of the tuples (piece.c), whose mapping the
 * channel adopts so much of.  Its pages have been used by then, as small ones,
 * and become a huge one once transfers go past the page cache.
 *
 *	  huge page     huge page			  huge page   small pages
 *	  |[block][block][block][ output ]|	  |[ output ]| tuples ...
 *
 * Who calls fms_io_close(): the sort when it ends, or, after an error, the
 * reset callback of the sort's memory context, whichever comes first.  So it
 * must not raise, must not palloc, and must do nothing the second time.
 * Closing the descriptor under a submitted request is harmless (the kernel
 * holds the file), so it does not matter whether files or memory go first.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/parallel.h"
#include "miscadmin.h"

#include "io/huge_page.h"
#include "base/interrupts.h"
#include "io/io.h"

/* Smaller buffers are not worth one. */
#define HUGE_FROM_BYTES		((Size) 64 * 1024)

/* Since Linux 6.1; older headers do not know it, older kernels refuse it. */
#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25
#endif

/* Stands in the mapping's own last page, behind the buffers. */
typedef struct FmsMapping
{
	dlist_node	link;
	char	   *buffers;		/* where the mapping begins */
	Size		buffer_bytes;	/* up to the mapping's own page */
	Size		room_at;		/* from there on, room for one more buffer */
	bool		room_taken;
	bool		adopted;		/* it is part of somebody else's pages */
} FmsMapping;

StaticAssertDecl(sizeof(FmsMapping) <= FMS_IO_ALIGN_BYTES,
				 "what describes a mapping must fit into its last page");

/*
 * Small pages that hold something become a huge one.  It need not be possible,
 * nor does the kernel have to know how: then transfers are slower.
 */
static void
collapse(const FmsMapping *mapping)
{
	char	   *page = (char *) TYPEALIGN_DOWN(FMS_HUGE_PAGE_BYTES,
											   mapping->buffers);

	(void) madvise(page, FMS_HUGE_PAGE_BYTES, MADV_COLLAPSE);
}

static void
pin_mapping(FmsIo *io, FmsMapping *mapping)
{
	/* pages that are held cannot be moved, so first */
	if (io->pins && mapping->adopted)
		collapse(mapping);
	if (io->pins && io->method->pin)
		io->method->pin(mapping->buffers, mapping->buffer_bytes);
}

/* Nothing of it may be in flight. */
static void
give_back_mapping(FmsIo *io, FmsMapping *mapping)
{
	if (io->pins && io->method->unpin)
		io->method->unpin(mapping->buffers);
	munmap(mapping->buffers, mapping->buffer_bytes + FMS_IO_ALIGN_BYTES);
}

/*
 * The kernel may still write there: what that finds are pages of their own.
 * Those that transfers past the page cache go to are held by the kernel.
 */
static void
abandon_mapping(FmsMapping *mapping)
{
	(void) madvise(mapping->buffers,
				   mapping->buffer_bytes + FMS_IO_ALIGN_BYTES,
				   MADV_DONTNEED);
}

static FmsIoShared *shared = NULL;

void
fms_io_share(FmsIoShared *memory, bool is_new)
{
	shared = memory;
	if (is_new)
		pg_atomic_init_flag(&shared->explained);
}

/*
 * Once for the server, if its processes have memory in common; else once for
 * each session, whose parallel workers say nothing.
 */
static bool
is_to_explain(void)
{
	static bool explained_here = false;

	if (shared)
		return pg_atomic_test_set_flag(&shared->explained);
	if (explained_here || IsParallelWorker())
		return false;
	explained_here = true;
	return true;
}

static void
explain_fallback(int error)
{
	if (!is_to_explain())
		return;
	errno = error;
	ereport(LOG,
			(errmsg("fmsort uses synchronous I/O because io_uring is not available: %m"),
			 errhint("Sorts work, but cannot read ahead. Set fmsort.io_method to \"sync\" to silence this message.")));
}

void
fms_io_open(FmsIo *io, FmsIoChoice choice)
{
	int			error;

	memset(io, 0, sizeof(*io));
	dlist_init(&io->mappings);

	if (choice != FMS_IO_SYNC)
	{
		error = -fms_io_uring_method.open();
		if (error == 0)
		{
			io->method = &fms_io_uring_method;
			return;
		}
		if (choice == FMS_IO_URING)
		{
			errno = error;
			ereport(ERROR,
					(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
					 errmsg("could not set up io_uring: %m"),
					 errhint("Set fmsort.io_method to \"auto\" to fall back to synchronous I/O.")));
		}
		explain_fallback(error);
	}

	if (fms_io_sync_method.open() != 0)
		elog(ERROR, "synchronous I/O could not be set up");
	io->method = &fms_io_sync_method;
}

/*
 * Waits until nothing is in flight.  Returns false if the method is broken
 * and completions will not come any more.
 */
static bool
drain(FmsIo *io)
{
	while (io->in_flight > 0)
	{
		int			error = io->method->wait();

		if (error != 0 && error != -EINTR)
			return false;
	}
	return true;
}

void
fms_io_close(FmsIo *io)
{
	bool		drained;
	dlist_mutable_iter iter;

	if (io->method == NULL)
		return;

	HOLD_INTERRUPTS();
	drained = drain(io);

	dlist_foreach_modify(iter, &io->mappings)
	{
		FmsMapping *mapping = dlist_container(FmsMapping, link, iter.cur);

		dlist_delete(&mapping->link);
		if (drained)
			give_back_mapping(io, mapping);
		else
			abandon_mapping(mapping);
	}
	/* what was not drained is nobody's request any more */
	io->in_flight = 0;
	io->method->close();
	io->method = NULL;
	RESUME_INTERRUPTS();
}

/* If it is as large as a huge page, it begins where one can. */
static char *
map_aligned(Size bytes)
{
	bool		is_large = bytes >= FMS_HUGE_PAGE_BYTES;
	char	   *mapped = fms_huge_page_map(bytes, is_large,
										   PROT_READ | PROT_WRITE);

	if (mapped == MAP_FAILED)
		ereport(ERROR,
				(errcode(ERRCODE_OUT_OF_MEMORY),
				 errmsg("out of memory"),
				 errdetail("Failed on request of size %zu for the buffers of a sort.",
						   bytes)));
	if (is_large)
		(void) madvise(mapped, bytes, MADV_HUGEPAGE);
	return mapped;
}

/*
 * Whole huge pages where the memory is there to be had, and transfers go past
 * the page cache.
 */
static Size
round_up(FmsIo *io, Size bytes)
{
	Size		rounded = TYPEALIGN(FMS_HUGE_PAGE_BYTES,
									bytes + FMS_IO_ALIGN_BYTES) -
		FMS_IO_ALIGN_BYTES;

	if (!io->pins || bytes < HUGE_FROM_BYTES ||
		rounded - bytes > io->spare_bytes)
		return bytes;
	io->spare_bytes -= rounded - bytes;
	return rounded;
}

/* What begins there and has so many bytes for buffers is the channel's. */
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
	pin_mapping(io, mapping);
}

char *
fms_io_map_with_room(FmsIo *io, Size bytes, Size room_bytes)
{
	Size		room_at = FMS_IO_ALIGN(bytes);
	Size		buffer_bytes = round_up(io, room_at +
										FMS_IO_ALIGN(room_bytes));
	char	   *buffers = map_aligned(buffer_bytes + FMS_IO_ALIGN_BYTES);

	Assert(buffer_bytes < FMS_HUGE_PAGE_BYTES ||
		   (uintptr_t) buffers % FMS_HUGE_PAGE_BYTES == 0);
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

void
fms_io_pin(FmsIo *io)
{
	dlist_iter	iter;

	if (io->pins)
		return;
	io->pins = true;
	dlist_foreach(iter, &io->mappings)
	{
		pin_mapping(io, dlist_container(FmsMapping, link, iter.cur));
	}
}

/* The one whose room is that buffer's, or NULL. */
static FmsMapping *
find_room(FmsIo *io, const char *buffer)
{
	dlist_iter	iter;

	dlist_foreach(iter, &io->mappings)
	{
		FmsMapping *mapping = dlist_container(FmsMapping, link, iter.cur);

		if (mapping->room_taken &&
			mapping->buffers + mapping->room_at == buffer)
			return mapping;
	}
	return NULL;
}

/* There are a few of them at a time. */
static FmsMapping *
find_mapping(FmsIo *io, const char *buffer)
{
	dlist_iter	iter;

	dlist_foreach(iter, &io->mappings)
	{
		FmsMapping *mapping = dlist_container(FmsMapping, link, iter.cur);

		if (mapping->buffers == buffer)
			return mapping;
	}
	elog(ERROR, "sort buffers at %p were not mapped", buffer);
	return NULL;				/* keep compiler quiet */
}

/*
 * Gives the pages of a large mapping back piece by piece, so that unmapping
 * what is left does not take long.  An error leaves the mapping to
 * fms_io_close().
 */
static void
release_pages(FmsIo *io, const FmsMapping *mapping)
{
	Size		bytes = mapping->buffer_bytes;
	Size		done = 0;

	if (bytes <= FMS_INTERRUPT_FREED_BYTES)
		return;
	/* pages that are held would not be freed */
	if (io->pins && io->method->unpin)
		io->method->unpin(mapping->buffers);
	while (done < bytes)
	{
		Size		piece = Min(FMS_INTERRUPT_FREED_BYTES, bytes - done);

		CHECK_FOR_INTERRUPTS();
		(void) madvise(mapping->buffers + done, piece, MADV_DONTNEED);
		done += piece;
	}
}

void
fms_io_unmap(FmsIo *io, char *buffer)
{
	FmsMapping *mapping = find_room(io, buffer);

	while (io->in_flight > 0)
		(void) fms_io_wait(io);
	if (mapping)
		mapping->room_taken = false;
	if (mapping && !mapping->adopted)
		return;
	if (mapping == NULL)
		mapping = find_mapping(io, buffer);
	Assert(!mapping->room_taken);
	release_pages(io, mapping);
	dlist_delete(&mapping->link);
	give_back_mapping(io, mapping);
}

/* From now on it is in flight. */
static void
begin(FmsIo *io, FmsIoRequest *request)
{
	Assert(request->state != FMS_IO_IN_FLIGHT);
	Assert(request->length_bytes > 0);
	request->io = io;
	request->next_part = NULL;
	request->state = FMS_IO_IN_FLIGHT;
	io->in_flight++;
	if (request->group)
		(*request->group)++;
}

void
fms_io_submit(FmsIo *io, FmsIoRequest **requests, int n)
{
	int			i;

	for (i = 0; i < n; i++)
		begin(io, requests[i]);
	io->method->submit(requests, n);
}

void
fms_io_carry_out(FmsIo *io, FmsIoRequest *request)
{
	begin(io, request);
	fms_io_complete(request, fms_io_transfer(request));
}

/* Does a read begin where another one ends? */
static bool
goes_on(const FmsIoRequest *request, const FmsIoRequest *next)
{
	return request->fd == next->fd &&
		!request->is_write && !next->is_write &&
		request->piece_bytes == 0 && next->piece_bytes == 0 &&
		request->offset_bytes + request->length_bytes == next->offset_bytes;
}

int
fms_io_join(FmsIoRequest **requests, int n, struct iovec *vector)
{
	Size		bytes = 0;
	int			i;

	Assert(n > 0);
	n = Min(n, FMS_IO_PARTS_MAX);
	for (i = 0; i < n; i++)
	{
		FmsIoRequest *request = requests[i];

		if (i > 0)
		{
			if (!goes_on(requests[i - 1], request) ||
				bytes + request->length_bytes > FMS_IO_JOINED_MAX_BYTES)
				break;
			requests[i - 1]->next_part = request;
		}
		vector[i].iov_base = request->buffer;
		vector[i].iov_len = request->length_bytes;
		bytes += request->length_bytes;
	}
	return i;
}

static void
complete_one(FmsIoRequest *request, int result)
{
	Assert(request->state == FMS_IO_IN_FLIGHT);
	Assert(request->io->in_flight > 0);

	request->result = result;
	request->state = FMS_IO_DONE;
	request->io->in_flight--;
	if (request->group)
		(*request->group)--;
}

void
fms_io_complete(FmsIoRequest *request, int result)
{
	int			left = result;

	while (request)
	{
		FmsIoRequest *next = request->next_part;
		int			part = Min(left, (int) request->length_bytes);

		complete_one(request, part);
		if (left >= 0)
		{
			/* what a short operation did not come to is to be tried again */
			left -= part;
			if (left == 0)
				left = -EAGAIN;
		}
		request = next;
	}
}

/* Has the device write that stretch of the page cache.  0, or -errno. */
static int
write_out(const FmsIoRequest *request)
{
	return sync_file_range(request->fd, (off_t) request->offset_bytes,
						   (off_t) request->length_bytes,
						   FMS_IO_WRITE_OUT_FLAGS) < 0 ? -errno : 0;
}

/* One piece of it; bytes moved, or -errno. */
static int
transfer_piece(const FmsIoRequest *request, uint32 at_bytes)
{
	char	   *buffer = request->buffer + at_bytes;
	uint32		bytes = fms_io_piece_bytes(request, at_bytes);
	off_t		offset = (off_t) (request->offset_bytes + at_bytes);
	ssize_t		moved;

	do
	{
		if (request->is_write)
			moved = pwrite(request->fd, buffer, bytes, offset);
		else
			moved = pread(request->fd, buffer, bytes, offset);
	} while (moved < 0 && errno == EINTR);
	return moved < 0 ? -errno : (int) moved;
}

int
fms_io_transfer(const FmsIoRequest *request)
{
	uint32		moved = 0;

	if (request->buffer == NULL)
		return write_out(request);
	while (moved < request->length_bytes)
	{
		int			result = transfer_piece(request, moved);

		if (result < 0)
			return result;
		if ((uint32) result < fms_io_piece_bytes(request, moved))
			return moved + result;
		moved += result;
	}
	return moved;
}

void
fms_io_poll(FmsIo *io)
{
	if (io->in_flight > 0)
		io->method->poll();
}

bool
fms_io_wait(FmsIo *io)
{
	int			error;

	Assert(io->in_flight > 0);
	error = io->method->wait();
	if (error == -EINTR)
		return false;
	if (error != 0)
	{
		errno = -error;
		ereport(ERROR,
				(errcode(ERRCODE_IO_ERROR),
				 errmsg("could not wait for sort I/O: %m")));
	}
	return true;
}
