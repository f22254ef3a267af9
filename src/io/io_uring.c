/*-------------------------------------------------------------------------
 *
 * io_uring.c
 *	  The asynchronous I/O method: Linux io_uring.
 *
 * A process has one ring, from its first spilling sort to the end of its last
 * one.  Its sorts share it: a sort that waits completes the others' requests.
 *
 * The ring has SINGLE_ISSUER and DEFER_TASKRUN where the kernel knows them
 * (6.1), so completions do not interrupt the merge.
 *
 * If the kernel refuses a submission, its requests fail with ECANCELED and the
 * ring takes no others: an entry left in the submission queue must not be
 * submitted later, when its buffer may be gone.  If the kernel refuses to
 * wait, the ring is lost, and channels give up their requests.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <liburing.h>

#include "storage/fd.h"

#include "io/io.h"

/* Entries of the queues; a batch larger than the first takes more calls. */
#define RING_SUBMISSION_ENTRIES 128
#define RING_COMPLETION_ENTRIES 4096

/* Completions taken from the queue at a time. */
#define RING_COMPLETION_BATCH	64

/*
 * From this size on, in bytes, a worker of the kernel copies a block from the
 * page cache while the merge goes on: 3 % less time, 5 % more processor time.
 */
#define WORKER_READ_BYTES		65536

static struct io_uring ring;
static int	ring_users = 0;		/* open channels */
static int	ring_error = 0;		/* -errno: takes no more requests */
static int	ring_lost = 0;		/* -errno: delivers no more completions */
static uint32 ring_in_flight = 0;	/* entries that the kernel has */

/* Creates the ring.  0, or -errno. */
static int
ring_init(unsigned int flags)
{
	struct io_uring_params params = {
		.flags = flags | IORING_SETUP_CQSIZE,
		.cq_entries = RING_COMPLETION_ENTRIES
	};

	return io_uring_queue_init_params(RING_SUBMISSION_ENTRIES, &ring,
									  &params);
}

/* Reads no file (EBADF): a filter may allow a ring and refuse other calls. */
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
	error = io_uring_submit(&ring);
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

/* Creates a ring that works.  0, or -errno, and there is none. */
static int
ring_begin(void)
{
	int			error;

	/* the only call here that can fail for want of descriptors */
	if (!AcquireExternalFD())
		return -EMFILE;
	error = ring_init(IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN |
					  IORING_SETUP_TASKRUN_FLAG);
	if (error == -EINVAL)
		error = ring_init(0);
	if (error == 0)
	{
		error = ring_try_out();
		if (error != 0)
			io_uring_queue_exit(&ring);
	}
	if (error != 0)
	{
		ReleaseExternalFD();
		return error;
	}
	ring_error = ring_lost = 0;
	ring_in_flight = 0;
	return 0;
}

static int
uring_open(void)
{
	int			error = ring_users == 0 ? ring_begin() : ring_error;

	if (error == 0)
		ring_users++;
	return error;
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

/* An operation of the request has moved `result` bytes, or failed. */
static void
complete_operation(FmsIoRequest *request, int result)
{
	Assert(request->operations_left > 0);

	/* the first error stays; short operations add up */
	if (result < 0 && request->result >= 0)
		request->result = result;
	else if (result > 0 && request->result >= 0)
		request->result += result;
	if (--request->operations_left == 0)
		fms_io_complete(request, request->result);
}

static void
reap(void)
{
	struct io_uring_cqe *cqes[RING_COMPLETION_BATCH];
	unsigned int n;

	while ((n = io_uring_peek_batch_cqe(&ring, cqes, lengthof(cqes))) > 0)
	{
		for (unsigned int i = 0; i < n; i++)
			complete_operation(io_uring_cqe_get_data(cqes[i]), cqes[i]->res);
		io_uring_cq_advance(&ring, n);
		ring_in_flight -= n;
	}
}

/* Waits for a completion and takes those that have arrived.  0, or -errno. */
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

/* Ends the operations whose entries the kernel has not taken. */
static void
cancel_entries(void)
{
	for (unsigned int left = io_uring_sq_ready(&ring); left > 0; left--)
	{
		unsigned int at = (ring.sq.sqe_tail - left) % RING_SUBMISSION_ENTRIES;
		uint64		data = ring.sq.sqes[at].user_data;

		complete_operation((FmsIoRequest *) (uintptr_t) data, -ECANCELED);
	}
}

/* Submits the queued entries, or cancels them and sets ring_error. */
static void
push(void)
{
	while (ring_error == 0 && io_uring_sq_ready(&ring) > 0)
	{
		int			taken = io_uring_submit(&ring);

		if (taken > 0)
			ring_in_flight += taken;
		else if ((taken == -EAGAIN || taken == -EBUSY) && ring_in_flight > 0)
			/* no memory for requests: let some finish first */
			(void) wait_and_reap();
		else if (taken != -EINTR)
			ring_error = taken < 0 ? taken : -EIO;
	}
	if (ring_error != 0)
		cancel_entries();
}

static void
queue_operation(FmsIoRequest *request, uint32 at)
{
	char	   *buffer = request->buffer + at;
	uint32		bytes = fms_io_operation_bytes(request, at);
	uint64		offset = request->offset_bytes + at;
	struct io_uring_sqe *sqe;

	if (ring_error == 0 && io_uring_sq_space_left(&ring) == 0)
		push();
	if (ring_error != 0)
	{
		complete_operation(request, -ECANCELED);
		return;
	}
	sqe = io_uring_get_sqe(&ring);
	if (request->is_write)
		io_uring_prep_write(sqe, request->fd, buffer, bytes, offset);
	else
		io_uring_prep_read(sqe, request->fd, buffer, bytes, offset);
	if (!request->is_write && request->cached && bytes >= WORKER_READ_BYTES)
		sqe->flags |= IOSQE_ASYNC;
	io_uring_sqe_set_data(sqe, request);
}

static void
uring_submit(FmsIoRequest **requests, int n)
{
	for (int i = 0; i < n; i++)
	{
		FmsIoRequest *request = requests[i];
		uint32		bytes = request->length_bytes;

		request->result = 0;
		request->operations_left = fms_io_operations(request);
		for (uint32 at = 0; at < bytes;
			 at += fms_io_operation_bytes(request, at))
			queue_operation(request, at);
	}
	if (ring_error == 0)
		push();
}

static void
uring_poll(void)
{
	if (ring_lost == 0)
		reap();
}

const FmsIoMethod fms_io_uring_method = {
	.name = "io_uring",
	.open = uring_open,
	.submit = uring_submit,
	.poll = uring_poll,
	.wait = wait_and_reap,
	.close = uring_close
};
