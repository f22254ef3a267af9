/*-------------------------------------------------------------------------
 *
 * io_uring.c
 *	  The I/O method that does everything at once: Linux io_uring.
 *
 * One ring a process, made when the first sort spills and gone when the last
 * spilling sort ends: an idle session holds none, and a plan with a hundred
 * sorts still has one.  Sorts share the ring by request: waiting for one's
 * own completion also completes other sorts' requests, which find it out
 * when they look.
 *
 *	  sort A --+                               +--> request->state
 *	  sort B --+--> submission queue --> kernel --> completion queue
 *
 * The ring is asked for with SINGLE_ISSUER and DEFER_TASKRUN where the
 * kernel has them (6.1): completions are then worked on when we ask and not
 * by interrupting the merge.  No SQPOLL (it would occupy a core), no IOPOLL
 * (needs polled queues that few devices offer).
 *
 * Reads of one stretch of the file that are submitted together become one
 * entry, with a vector of their buffers.  Other transfers use the ring's
 * registered buffers, where there are any (io_pinned.c).
 *
 * A request may be cut into pieces (see tape.c), an entry each; it is complete
 * when all of them are.
 *
 * A ring may be made and not be used: a system call filter refuses each of
 * io_uring's calls by itself.  So a new ring has to carry out a request first.
 *
 * A batch costs one system call.  If the kernel refuses to take a request
 * (it does so only for want of memory or by a fault of ours), the request is
 * completed with ECANCELED and the ring is not used for new ones: entries
 * already in the submission queue must never be submitted later, when their
 * buffers may be gone.
 *
 * If the kernel refuses to wait, the ring is lost: nobody knows when its
 * requests are over.  Channels that have some give them up (io.c), so the
 * completion queue is not read any more: it may name requests that are gone.
 *
 * Owned here: the ring's descriptor and mappings, counted with
 * AcquireExternalFD() so that fd.c leaves room for it.  When the process
 * exits with requests in flight, the kernel cancels or finishes them before
 * it lets go of the memory.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <liburing.h>

#include "storage/fd.h"

#include "io/io.h"
#include "io/io_pinned.h"

#define RING_SUBMISSION_ENTRIES 128
#define RING_COMPLETION_ENTRIES 4096
#define RING_COMPLETION_BATCH	64

static struct io_uring ring;
static int	ring_users = 0;		/* channels open on it */
static int	ring_error = 0;		/* why it must not be used any more */
static int	ring_lost = 0;		/* why no completion can be had from it */
static uint32 ring_in_flight = 0;	/* requests the kernel has, all sorts */

static bool can_join = false;	/* vectors need not outlive the submission */

/* Of the entries in the submission queue. */
static struct iovec vectors[RING_SUBMISSION_ENTRIES][FMS_IO_PARTS_MAX];

static int
ring_init(void)
{
	static const unsigned int wishes[] = {
		IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN |
		IORING_SETUP_TASKRUN_FLAG,
		0
	};
	int			error = -ENOSYS;
	int			i;

	for (i = 0; i < (int) lengthof(wishes); i++)
	{
		struct io_uring_params params;

		memset(&params, 0, sizeof(params));
		params.flags = wishes[i] | IORING_SETUP_CQSIZE;
		params.cq_entries = RING_COMPLETION_ENTRIES;
		error = io_uring_queue_init_params(RING_SUBMISSION_ENTRIES, &ring,
										   &params);
		if (error != -EINVAL)
			break;
	}
	return error;
}

/*
 * Carries out a request: a read of no file, which ends with EBADF if the
 * kernel lets rings read at all.  0, or -errno.
 */
static int
ring_try_out(void)
{
	static char nowhere;
	struct io_uring_cqe *cqe;
	int			error;

	/* came with the operations that read and write without a vector */
	if ((ring.features & IORING_FEAT_RW_CUR_POS) == 0)
		return -ENOSYS;
	io_uring_prep_read(io_uring_get_sqe(&ring), -1, &nowhere, 1, 0);
	do
	{
		error = io_uring_submit_and_wait(&ring, 1);
	} while (error == -EINTR);
	if (error < 0)
		return error;
	do
	{
		error = io_uring_wait_cqe(&ring, &cqe);
	} while (error == -EINTR);
	if (error != 0)
		return error;
	error = cqe->res;
	io_uring_cqe_seen(&ring, cqe);
	return error == -EBADF ? 0 : error < 0 ? error : -EIO;
}

/* Makes a ring that works.  0, or -errno, and there is none. */
static int
ring_begin(void)
{
	int			error = ring_init();

	if (error != 0)
		return error;
	error = ring_try_out();
	if (error != 0)
		io_uring_queue_exit(&ring);
	return error;
}

static int
uring_open(void)
{
	if (ring_users == 0)
	{
		int			error;

		/* the only call here that can fail for want of descriptors */
		if (!AcquireExternalFD())
			return -EMFILE;
		error = ring_begin();
		if (error != 0)
		{
			ReleaseExternalFD();
			return error;
		}
		ring_error = 0;
		ring_lost = 0;
		ring_in_flight = 0;
		can_join = (ring.features & IORING_FEAT_SUBMIT_STABLE) != 0;
		fms_io_pinned_begin(&ring);
	}
	else if (ring_error != 0)
		return ring_error;
	ring_users++;
	return 0;
}

static void
uring_close(void)
{
	Assert(ring_users > 0);
	if (--ring_users == 0)
	{
		io_uring_queue_exit(&ring);
		ReleaseExternalFD();
	}
}

static void
uring_pin(char *buffer, Size bytes)
{
	fms_io_pinned_add(&ring, buffer, bytes);
}

static void
uring_unpin(const char *buffer)
{
	fms_io_pinned_remove(&ring, buffer);
}

/* Another piece of the request has moved so many bytes, or failed. */
static void
complete_piece(FmsIoRequest *request, int result)
{
	Assert(request->pieces_left > 0);

	/* the first error stays, as do the bytes if a piece is short */
	if (result < 0 && request->result >= 0)
		request->result = result;
	else if (result > 0 && request->result >= 0)
		request->result += result;
	if (--request->pieces_left == 0)
		fms_io_complete(request, request->result);
}

/* Takes the completions that are there. */
static void
reap(void)
{
	struct io_uring_cqe *cqes[RING_COMPLETION_BATCH];
	unsigned int n;

	while ((n = io_uring_peek_batch_cqe(&ring, cqes, lengthof(cqes))) > 0)
	{
		unsigned int i;

		for (i = 0; i < n; i++)
			complete_piece(io_uring_cqe_get_data(cqes[i]), cqes[i]->res);
		io_uring_cq_advance(&ring, n);
		ring_in_flight -= n;
	}
}

/* Waits for a completion and takes those that are there.  0, or -errno. */
static int
wait_and_reap(void)
{
	struct io_uring_cqe *cqe;
	int			error = ring_lost;

	if (error == 0)
		error = io_uring_wait_cqe(&ring, &cqe);
	if (error == 0)
		reap();
	else if (error != -EINTR)
		ring_error = ring_lost = error;
	return error;
}

/*
 * Hands the queued entries to the kernel.  0, or -errno, after which the
 * last io_uring_sq_ready() of them have not been taken.
 */
static int
push(void)
{
	while (io_uring_sq_ready(&ring) > 0)
	{
		int			taken = io_uring_submit(&ring);

		if (taken > 0)
			ring_in_flight += taken;
		if (taken > 0 || taken == -EINTR)
			continue;
		if ((taken == -EAGAIN || taken == -EBUSY) && ring_in_flight > 0)
		{
			/* short of memory for requests: let some finish first */
			int			error = wait_and_reap();

			if (error != 0 && error != -EINTR)
				return error;
			continue;
		}
		return taken < 0 ? taken : -EIO;
	}
	return 0;
}

/* An entry of the submission queue; NULL, with the error, if there is none. */
static struct io_uring_sqe *
get_entry(int *error)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(&ring);

	if (sqe == NULL)
	{
		*error = push();
		if (*error == 0)
			sqe = io_uring_get_sqe(&ring);
	}
	return sqe;
}

/* What the kernel is to do for a piece of a request. */
static void
prepare(struct io_uring_sqe *sqe, FmsIoRequest *request, uint32 at,
		int slot)
{
	int			fd = request->fd;
	char	   *buffer = request->buffer + at;
	uint32		bytes = fms_io_piece_bytes(request, at);
	uint64		offset = request->offset_bytes + at;

	if (request->buffer == NULL)
		io_uring_prep_sync_file_range(sqe, fd, bytes, offset,
									  FMS_IO_WRITE_OUT_FLAGS);
	else if (request->is_write && slot >= 0)
		io_uring_prep_write_fixed(sqe, fd, buffer, bytes, offset, slot);
	else if (request->is_write)
		io_uring_prep_write(sqe, fd, buffer, bytes, offset);
	else if (slot >= 0)
		io_uring_prep_read_fixed(sqe, fd, buffer, bytes, offset, slot);
	else
		io_uring_prep_read(sqe, fd, buffer, bytes, offset);
	io_uring_sqe_set_data(sqe, request);
}

/* Queues the pieces of a request; counts them as they are queued. */
static int
queue_pieces(FmsIoRequest *request, int *queued)
{
	int			slot = fms_io_pinned_find(request->buffer,
										  request->length_bytes);
	int			error = 0;
	uint32		at = 0;

	while (at < request->length_bytes)
	{
		struct io_uring_sqe *sqe = get_entry(&error);

		if (sqe == NULL)
			break;
		prepare(sqe, request, at, slot);
		(*queued)++;
		at += fms_io_piece_bytes(request, at);
	}
	return error;
}

/* Queues reads joined to one operation; the vector lasts as the entry does. */
static int
queue_joined(FmsIoRequest *first, const struct iovec *vector, int n,
			 int *queued)
{
	int			error = 0;
	struct io_uring_sqe *sqe = get_entry(&error);
	struct iovec *lasting;

	if (sqe == NULL)
		return error;
	lasting = vectors[sqe - ring.sq.sqes];
	memcpy(lasting, vector, n * sizeof(struct iovec));
	io_uring_prep_readv(sqe, first->fd, lasting, n, first->offset_bytes);
	io_uring_sqe_set_data(sqe, first);
	(*queued)++;
	return 0;
}

/*
 * Queues all of the requests, joined where they can be, until there is an
 * error.
 */
static int
queue_all(FmsIoRequest **requests, int n, int *queued)
{
	struct iovec vector[FMS_IO_PARTS_MAX];
	int			error = 0;

	while (n > 0 && error == 0)
	{
		int			joined = can_join ? fms_io_join(requests, n, vector) : 1;

		if (joined == 1)
			error = queue_pieces(requests[0], queued);
		else
			error = queue_joined(requests[0], vector, joined, queued);
		requests += joined;
		n -= joined;
	}
	return error;
}

/* How many requests, from this one on, were joined to one operation? */
static int
parts_of(const FmsIoRequest *request)
{
	int			n = 1;

	while ((request = request->next_part) != NULL)
		n++;
	return n;
}

/*
 * The kernel has not taken more than the first pieces of the requests.  The
 * others have not been carried out.
 */
static void
give_up(FmsIoRequest **requests, int n, int taken)
{
	while (n > 0)
	{
		FmsIoRequest *request = requests[0];
		int			pieces = fms_io_pieces(request);
		int			lost = pieces - Min(taken, pieces);
		int			parts = parts_of(request);

		taken -= pieces - lost;
		for (; lost > 0; lost--)
			complete_piece(request, -ECANCELED);
		requests += parts;
		n -= parts;
	}
}

static void
uring_submit(FmsIoRequest **requests, int n)
{
	bool		usable = ring_error == 0;
	int			queued = 0;
	int			error = ring_error;
	int			i;

	for (i = 0; i < n; i++)
	{
		requests[i]->result = 0;
		requests[i]->pieces_left = fms_io_pieces(requests[i]);
	}
	if (usable)
		error = queue_all(requests, n, &queued);
	if (error == 0)
		error = push();

	if (error != 0)
	{
		/* entries are taken in order: the last ones are still ours */
		int			taken = usable ?
			queued - (int) io_uring_sq_ready(&ring) : 0;

		ring_error = error;
		give_up(requests, n, taken);
	}
}

static void
uring_poll(void)
{
	if (ring_lost == 0)
		reap();
}

static int
uring_wait(void)
{
	return wait_and_reap();
}

const FmsIoMethod fms_io_uring_method = {
	.name = "io_uring",
	.open = uring_open,
	.submit = uring_submit,
	.poll = uring_poll,
	.wait = uring_wait,
	.pin = uring_pin,
	.unpin = uring_unpin,
	.close = uring_close
};
