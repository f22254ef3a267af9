/*-------------------------------------------------------------------------
 *
 * faulty_io.c
 *	  A device that fails when a test says so.
 *
 * Preloaded into a server (LD_PRELOAD), this library stands between fmsort
 * and the kernel and spoils chosen transfers of sort files:
 *
 *	  fmsort --> liburing, pread(), pwrite()		what it calls
 *	               |
 *	          [this library] <-- orders: a file that the test writes to
 *	               |
 *	             kernel --> the real file
 *
 * Why so, and not as one more I/O method inside fmsort: the library that is
 * tested is the one that is shipped, byte for byte, and both of its methods
 * are tested, with all that they do about errors.  A device mapper would be
 * as good but wants a kernel that has one, and root; tracing system calls
 * (strace's injection) cannot reach what comes back through a ring.
 *
 * Orders lie in a shared mapping, so they hold for all processes of the
 * server and change while it runs.  Transfers are counted from 1 since the
 * order was given; the order applies to `times` of them from the nth on.
 *
 * With io_uring, an order is applied where it is most real: a request that
 * shall be short is made short before the kernel sees it; one that shall not
 * be answered reads a FIFO that nobody writes to; what shall come back wrong
 * is changed in the completion queue.  The latter needs to be known again
 * when it is complete, so it is noted in a table.
 *
 * Only files below pgsql_tmp are touched; a ring is always a sort's.
 *
 *-------------------------------------------------------------------------
 */
#define _GNU_SOURCE

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <liburing.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

/* FmsFaults.pm knows these numbers. */
enum Fault
{
	FAULT_NONE,
	FAULT_READ_ERROR,			/* value: errno */
	FAULT_WRITE_ERROR,			/* value: errno */
	FAULT_SHORT_READ,			/* half of what was asked for, and the other
								 * half is not what it should be */
	FAULT_SHORT_WRITE,
	FAULT_TORN_WRITE,			/* the first half is written, all is claimed */
	FAULT_LOST_WRITE,			/* nothing is written, all is claimed */
	FAULT_FLIPPED_BIT,			/* value: of that byte, once read */
	FAULT_STALE_READ,			/* what the read before it found */
	FAULT_REORDER,				/* completions: newest first, one at a time;
								 * what was read comes with its own */
	FAULT_NO_ANSWER,			/* reads are in flight until the test closes
								 * the FIFO; io_uring only */
	FAULT_SLOW_WRITE,			/* direct ones take longer, value microseconds
								 * for each 4 kB; pwrite() only */
	NO_FAULT_BUT_KEPT,			/* no order: what it finds becomes stale */
	NO_FAULT_BUT_LATE			/* no order: its completion was put off */
};

typedef struct Orders
{
	_Atomic uint32_t fault;
	uint32_t	nth;
	uint32_t	times;
	uint32_t	value;
	_Atomic uint32_t seen;		/* transfers of the kind concerned */
	_Atomic uint32_t done;		/* faults made */
} Orders;

/* A request whose completion is to be changed. */
typedef struct Noted
{
	uint64_t	user_data;
	enum Fault	fault;			/* FAULT_NONE: the place is free */
	char	   *buffer;
	uint32_t	length;
} Noted;

#define NOTED_MAX	4096
#define STALE_MAX	(4 * 1024 * 1024)

static Orders *orders = NULL;
static char fifo[PATH_MAX];
static Noted noted[NOTED_MAX];
static int	noted_count = 0;
static char *stale = NULL;		/* what the last read found */
static uint32_t stale_length = 0;

static ssize_t (*real_pread) (int, void *, size_t, off_t);
static ssize_t (*real_preadv2) (int, const struct iovec *, int, off_t, int);
static ssize_t (*real_pwrite) (int, const void *, size_t, off_t);
static int	(*real_submit) (struct io_uring *);
static unsigned (*real_peek) (struct io_uring *, struct io_uring_cqe **,
							  unsigned);

static void __attribute__((constructor))
begin(void)
{
	const char *path = getenv("FMSORT_FAULTS");
	int			fd;

	real_pread = dlsym(RTLD_NEXT, "pread");
	real_preadv2 = dlsym(RTLD_NEXT, "preadv2");
	real_pwrite = dlsym(RTLD_NEXT, "pwrite");
	real_submit = dlsym(RTLD_NEXT, "io_uring_submit");
	real_peek = dlsym(RTLD_NEXT, "io_uring_peek_batch_cqe");
	if (path == NULL || (fd = open(path, O_RDWR)) < 0)
		return;
	orders = mmap(NULL, sizeof(Orders), PROT_READ | PROT_WRITE, MAP_SHARED,
				  fd, 0);
	close(fd);
	if (orders == MAP_FAILED)
		orders = NULL;
	snprintf(fifo, sizeof(fifo), "%s.fifo", path);
}

static bool
concerns(enum Fault fault, bool is_write)
{
	switch (fault)
	{
		case FAULT_WRITE_ERROR:
		case FAULT_SHORT_WRITE:
		case FAULT_TORN_WRITE:
		case FAULT_LOST_WRITE:
		case FAULT_SLOW_WRITE:
			return is_write;
		case FAULT_NONE:
		case FAULT_REORDER:
			return false;
		default:
			return !is_write;
	}
}

/* The fault that this transfer is to suffer. */
static enum Fault
order_for(bool is_write)
{
	enum Fault	fault = orders ? orders->fault : FAULT_NONE;
	uint32_t	number;

	if (!concerns(fault, is_write))
		return FAULT_NONE;
	number = ++orders->seen;
	if (number < orders->nth || number - orders->nth >= orders->times)
		return FAULT_NONE;
	orders->done++;
	return fault;
}

/* Keeps what a read found, or puts in its place what an earlier one found. */
static void
keep_for_stale(const char *buffer, uint32_t length)
{
	if (stale == NULL)
		stale = malloc(STALE_MAX);
	if (stale == NULL || length > STALE_MAX)
		return;
	memcpy(stale, buffer, length);
	stale_length = length;
}

static void
spoil_data(enum Fault fault, char *buffer, uint32_t length)
{
	if (fault == FAULT_FLIPPED_BIT && length > 0)
		buffer[orders->value % length] ^= 0x10;
	if (fault == FAULT_STALE_READ && stale)
		memcpy(buffer, stale, length < stale_length ? length : stale_length);
}

/*
 * So much was read, some of it into this buffer, and half shall have been.
 * Direct reads are of whole sectors, so it has to be made so afterwards.
 */
static ssize_t
cut_short(char *buffer, uint32_t length, ssize_t moved)
{
	if (length > moved / 2)
		memset(buffer + moved / 2, 0xA5, length - moved / 2);
	return moved / 2;
}

/* ---- pread() and pwrite() ---- */

static bool
is_sort_file(int fd)
{
	char		link[64];
	char		target[PATH_MAX];
	ssize_t		n;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	n = readlink(link, target, sizeof(target) - 1);
	if (n < 0)
		return false;
	target[n] = '\0';
	return strstr(target, "/pgsql_tmp/") != NULL;
}

ssize_t
pread(int fd, void *buffer, size_t length, off_t offset)
{
	enum Fault	fault = FAULT_NONE;
	ssize_t		result;

	if (orders && orders->fault != FAULT_NONE && is_sort_file(fd))
		fault = order_for(false);
	if (fault == FAULT_READ_ERROR)
	{
		errno = (int) orders->value;
		return -1;
	}
	result = real_pread(fd, buffer, length, offset);
	if (fault == FAULT_SHORT_READ && result > 0)
		return cut_short(buffer, result, result);
	if (result > 0)
	{
		spoil_data(fault, buffer, result);
		if (orders && orders->fault == FAULT_STALE_READ &&
			fault == FAULT_NONE)
			keep_for_stale(buffer, result);
	}
	return result;
}

/* Asked what the page cache has: nothing, so that fmsort calls pread(). */
ssize_t
preadv2(int fd, const struct iovec *vector, int n, off_t offset,
		int flags)
{
	if ((flags & RWF_NOWAIT) == 0)
		return real_preadv2(fd, vector, n, offset, flags);
	errno = EAGAIN;
	return -1;
}

/* Room is reserved by writing a page of zeroes, which is then written over. */
static bool
nobody_reads(const char *buffer, size_t length)
{
	return buffer[0] == 0 && memcmp(buffer, buffer + 1, length - 1) == 0;
}

/* What the fault leaves out of this write would not be missed. */
static bool
harmless(enum Fault fault, const char *buffer, size_t length)
{
	if (fault < FAULT_TORN_WRITE)
		return false;
	return nobody_reads(buffer, length) ||
		(fault == FAULT_TORN_WRITE &&
		 nobody_reads(buffer + length / 2, length - length / 2));
}

ssize_t
pwrite(int fd, const void *buffer, size_t length, off_t offset)
{
	enum Fault	fault = FAULT_NONE;

	if (orders && orders->fault != FAULT_NONE && is_sort_file(fd) &&
		!harmless(orders->fault, buffer, length))
		fault = order_for(true);
	switch (fault)
	{
		case FAULT_WRITE_ERROR:
			errno = (int) orders->value;
			return -1;
		case FAULT_SHORT_WRITE:
			return real_pwrite(fd, buffer, length / 2, offset);
		case FAULT_TORN_WRITE:
			if (real_pwrite(fd, buffer, length / 2, offset) < 0)
				return -1;
			return length;
		case FAULT_LOST_WRITE:
			return length;
		case FAULT_SLOW_WRITE:
			if (fcntl(fd, F_GETFL) & O_DIRECT)
				usleep(length / 4096 * orders->value);
			return real_pwrite(fd, buffer, length, offset);
		default:
			return real_pwrite(fd, buffer, length, offset);
	}
}

/* Several reads in one: each of them may suffer. */
ssize_t
preadv(int fd, const struct iovec *vector, int n, off_t offset)
{
	ssize_t		total = 0;
	int			i;

	for (i = 0; i < n; i++)
	{
		ssize_t		result = pread(fd, vector[i].iov_base, vector[i].iov_len,
								   offset + total);

		if (result < 0)
			return total > 0 ? total : -1;
		total += result;
		if ((size_t) result < vector[i].iov_len)
			break;
	}
	return total;
}

/* ---- io_uring ---- */

/*
 * Where a request's data goes to; of several reads in one, those of the first,
 * which are all that is spoilt of them.
 */
static struct iovec
data_of(const struct io_uring_sqe *sqe, uint32_t length)
{
	void	   *address = (void *) (uintptr_t) sqe->addr;

	if (sqe->opcode == IORING_OP_READV)
		return *(const struct iovec *) address;
	return (struct iovec) {.iov_base = address, .iov_len = length};
}

static void
note(const struct io_uring_sqe *sqe, enum Fault fault, uint32_t length)
{
	struct iovec data = data_of(sqe, length);
	int			i;

	for (i = 0; i < NOTED_MAX; i++)
	{
		if (noted[i].fault == FAULT_NONE)
		{
			noted[i] = (Noted) {
				.user_data = sqe->user_data,
				.fault = fault,
				.buffer = data.iov_base,
				.length = data.iov_len
			};
			noted_count++;
			return;
		}
	}
	abort();
}

/* The read end of a FIFO whose other end only the test has. */
static int
open_fifo(void)
{
	static int	fd = -1;

	if (fd < 0)
	{
		fd = open(fifo, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
		if (fd < 0)
			abort();
		fcntl(fd, F_SETFL, 0);
	}
	return fd;
}

/* Buffers may be registered with the ring, which has opcodes of its own. */
static bool
writes(const struct io_uring_sqe *sqe)
{
	return sqe->opcode == IORING_OP_WRITE ||
		sqe->opcode == IORING_OP_WRITE_FIXED;
}

/* A request on its way to the kernel. */
static void
spoil_request(struct io_uring_sqe *sqe)
{
	uint32_t	length = sqe->len;
	enum Fault	fault;

	/* moves nothing that anybody looks at */
	if (sqe->opcode == IORING_OP_SYNC_FILE_RANGE)
		return;
	if (writes(sqe) && orders &&
		harmless(orders->fault, (const char *) (uintptr_t) sqe->addr, length))
		return;
	fault = order_for(writes(sqe));
	switch (fault)
	{
		case FAULT_NONE:
			if (orders && orders->fault == FAULT_STALE_READ && !writes(sqe))
				note(sqe, NO_FAULT_BUT_KEPT, length);
			if (orders && orders->fault == FAULT_REORDER && !writes(sqe))
				note(sqe, FAULT_REORDER, length);
			break;
		case FAULT_SHORT_WRITE:
			sqe->len /= 2;
			break;
		case FAULT_TORN_WRITE:
			sqe->len /= 2;
			note(sqe, fault, length);
			break;
		case FAULT_LOST_WRITE:
			sqe->opcode = IORING_OP_NOP;
			sqe->buf_index = 0;
			sqe->len = 0;
			sqe->off = 0;
			note(sqe, fault, length);
			break;
		case FAULT_SLOW_WRITE:
			if (fcntl(sqe->fd, F_GETFL) & O_DIRECT)
				note(sqe, fault, length);
			break;
		case FAULT_NO_ANSWER:
			sqe->fd = open_fifo();
			sqe->off = (uint64_t) -1;
			break;
		default:
			note(sqe, fault, length);
			break;
	}
}

int
io_uring_submit(struct io_uring *ring)
{
	unsigned	mask = *ring->sq.kring_mask;
	unsigned	i;

	if (orders && orders->fault != FAULT_NONE)
	{
		for (i = ring->sq.sqe_head; i != ring->sq.sqe_tail; i++)
			spoil_request(&ring->sq.sqes[i & mask]);
	}
	return real_submit(ring);
}

static uint32_t
least(int32_t moved, uint32_t length)
{
	return (uint32_t) moved < length ? (uint32_t) moved : length;
}

static void
invert(char *buffer, uint32_t length)
{
	while (length-- > 0)
		buffer[length] = (char) ~buffer[length];
}

/*
 * This completion comes later than it could.  By now the kernel has filled the
 * buffer; with a slower device it would not have.
 */
static void
put_off(const struct io_uring_cqe *cqe)
{
	int			i;

	for (i = 0; i < NOTED_MAX; i++)
	{
		Noted	   *it = &noted[i];

		if (it->fault != FAULT_REORDER || it->user_data != cqe->user_data)
			continue;
		if (cqe->res > 0)
			invert(it->buffer, least(cqe->res, it->length));
		it->fault = NO_FAULT_BUT_LATE;
		return;
	}
}

/* A completion on its way to fmsort. */
static void
spoil_completion(struct io_uring_cqe *cqe)
{
	int			i;

	for (i = 0; noted_count > 0 && i < NOTED_MAX; i++)
	{
		Noted	   *it = &noted[i];

		if (it->fault == FAULT_NONE || it->user_data != cqe->user_data)
			continue;
		switch (it->fault)
		{
			case FAULT_READ_ERROR:
			case FAULT_WRITE_ERROR:
				cqe->res = -(int) orders->value;
				break;
			case FAULT_SHORT_READ:
				if (cqe->res > 0)
					cqe->res = cut_short(it->buffer,
										 least(cqe->res, it->length),
										 cqe->res);
				break;
			case FAULT_TORN_WRITE:
			case FAULT_LOST_WRITE:
				cqe->res = it->length;
				break;
			case NO_FAULT_BUT_KEPT:
				if (cqe->res > 0)
					keep_for_stale(it->buffer, least(cqe->res, it->length));
				break;
			case NO_FAULT_BUT_LATE:
				if (cqe->res > 0)
					invert(it->buffer, least(cqe->res, it->length));
				break;
			case FAULT_REORDER:
				break;
			case FAULT_SLOW_WRITE:
				usleep(it->length / 4096 * orders->value);
				break;
			default:
				if (cqe->res > 0)
					spoil_data(it->fault, it->buffer,
							   least(cqe->res, it->length));
				break;
		}
		it->fault = FAULT_NONE;
		noted_count--;
		return;
	}
}

/*
 * Swaps the newest completion to the front, having waited for a few to come
 * together: those that are as old as the oldest do not come last by luck.
 */
static void
reorder(struct io_uring *ring)
{
	unsigned	head = *ring->cq.khead;
	unsigned	mask = *ring->cq.kring_mask;
	unsigned	last;
	struct io_uring_cqe first;

	if (io_uring_cq_ready(ring) < 2)
		(void) io_uring_get_events(ring);
	if (io_uring_cq_ready(ring) < 2)
		return;
	last = head + io_uring_cq_ready(ring) - 1;
	first = ring->cq.cqes[head & mask];
	put_off(&first);
	ring->cq.cqes[head & mask] = ring->cq.cqes[last & mask];
	ring->cq.cqes[last & mask] = first;
	orders->done++;
}

unsigned
io_uring_peek_batch_cqe(struct io_uring *ring, struct io_uring_cqe **cqes,
						unsigned count)
{
	unsigned	n;
	unsigned	i;

	if (orders && orders->fault == FAULT_REORDER)
	{
		reorder(ring);
		count = 1;
	}
	n = real_peek(ring, cqes, count);
	for (i = 0; i < n; i++)
		spoil_completion(cqes[i]);
	return n;
}
