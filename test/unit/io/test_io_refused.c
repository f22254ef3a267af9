/* links: io/ */
/*
 * A kernel that refuses a part of what asynchronous or direct I/O needs, at
 * the beginning or in the middle.  Each situation has a process of its own,
 * under a system call filter of its own.
 *
 * Seen to fail with: ring_try_out() of io_uring.c asking nothing;
 * fms_io_close() unmapping what it has not drained, or leaving its pages;
 * uring_open() giving out a lost ring; push() without cancel_entries();
 * uring_submit() pushing to a broken ring; is_to_explain() of io.c not asking
 * for workers, or whether another process has explained.
 */
#include "postgres.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "access/parallel.h"

#include "io/io.h"
#include "shim.h"

#define BUFFER_BYTES ((Size) 256 * 1024)

/* Which check of the child failed; its line. */
#define CHECK(condition) \
	do { \
		if (!(condition)) \
		{ \
			shim_note("%s:%d: %s", __FILE__, __LINE__, #condition); \
			_exit(1); \
		} \
	} while (0)

/* From now on, in this process. */
static void
refuse(int call, int error)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | error),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)
	};
	struct sock_fprog program = {.len = lengthof(filter), .filter = filter};

	CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
	CHECK(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0);
}

/* Runs it in a process of its own. */
static void
alone(void (*situation) (int call, int error), int call, int error,
	  const char *name)
{
	int			status;
	pid_t		child;

	fflush(stdout);
	child = fork();
	if (child == 0)
	{
		situation(call, error);
		fflush(stdout);
		_exit(0);
	}
	if (child < 0 || waitpid(child, &status, 0) != child)
		abort();
	shim_ok(WIFEXITED(status) && WEXITSTATUS(status) == 0, "%s", name);
}

/* ---- refused from the beginning ---- */

static void
without_ring(int call, int error)
{
	FmsIo		io;

	refuse(call, error);
	CHECK(SHIM_CATCH(fms_io_open(&io, FMS_IO_URING)));
	CHECK(shim_external_fds == 0);
	fms_io_open(&io, FMS_IO_AUTO);
	CHECK(io.method == &fms_io_sync_method);
	CHECK(shim_logged == 1);
	fms_io_close(&io);
	fms_io_open(&io, FMS_IO_AUTO);
	CHECK(shim_logged == 1);
	fms_io_close(&io);
}

/* Not to explain: that is up to the leader. */
static void
in_a_worker(int call, int error)
{
	FmsIo		io;

	refuse(call, error);
	ParallelWorkerNumber = 0;
	fms_io_open(&io, FMS_IO_AUTO);
	CHECK(io.method == &fms_io_sync_method);
	CHECK(shim_logged == 0);
	fms_io_close(&io);
}

static void
with_shared_memory(int call, int error)
{
	FmsIoShared *memory = mmap(NULL, sizeof(FmsIoShared),
							   PROT_READ | PROT_WRITE,
							   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int			logged = 0;
	int			i;

	CHECK(memory != MAP_FAILED);
	fms_io_share(memory, true);
	refuse(call, error);
	/* each of them is a worker, and the first one explains */
	for (i = 0; i < 3; i++)
	{
		int			status;
		pid_t		child = fork();

		if (child == 0)
		{
			FmsIo		io;

			ParallelWorkerNumber = i;
			fms_io_share(memory, false);
			fms_io_open(&io, FMS_IO_AUTO);
			_exit(shim_logged);
		}
		CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status));
		logged += WEXITSTATUS(status);
	}
	CHECK(logged == 1);
}

/* ---- refused while reads are in flight ---- */

/* Starts a read that nothing ends. */
static void
begin_read(FmsIo *io, FmsIoRequest *request, char *buffer, int fd)
{
	memset(request, 0, sizeof(*request));
	request->fd = fd;
	request->buffer = buffer;
	request->length_bytes = 6;
	request->offset_bytes = (uint64) -1;
	fms_io_submit(io, &request, 1);
	CHECK(request->state == FMS_IO_IN_FLIGHT);
}

/* Are there pages at that address? */
static bool
has_pages(char *address)
{
	unsigned char there;

	CHECK(mincore(address, 4096, &there) == 0);
	return there & 1;
}

static bool
is_reserved(char *address)
{
	unsigned char there;

	return mincore(address, 4096, &there) == 0;
}

static void
losing_ring(int call, int error)
{
	FmsIo		first;
	FmsIo		second;
	FmsIo		third;
	FmsIoRequest requests[3];
	char	   *buffers[2];
	int			ends[2];

	CHECK(pipe(ends) == 0);
	fms_io_open(&first, FMS_IO_URING);
	fms_io_open(&second, FMS_IO_URING);
	buffers[0] = fms_io_map(&first, BUFFER_BYTES, false);
	buffers[1] = fms_io_map(&second, BUFFER_BYTES, false);
	memset(buffers[0], 1, BUFFER_BYTES);
	begin_read(&first, &requests[0], buffers[0], ends[0]);
	begin_read(&second, &requests[1], buffers[1], ends[0]);
	refuse(call, error);

	CHECK(SHIM_CATCH(fms_io_wait(&first)));
	CHECK(requests[0].state == FMS_IO_IN_FLIGHT);

	/* the ring takes nothing more, and no channel */
	memset(&requests[2], 0, sizeof(requests[2]));
	requests[2].fd = ends[0];
	requests[2].buffer = buffers[1];
	requests[2].length_bytes = 1;
	fms_io_submit(&second, &(FmsIoRequest *) {&requests[2]}, 1);
	CHECK(requests[2].state == FMS_IO_DONE);
	CHECK(requests[2].result == -ECANCELED);
	fms_io_open(&third, FMS_IO_AUTO);
	CHECK(third.method == &fms_io_sync_method);
	fms_io_close(&third);

	/* addresses stay, memory does not */
	fms_io_close(&first);
	CHECK(first.in_flight == 0);
	CHECK(is_reserved(buffers[0]) && !has_pages(buffers[0]));
	memset(&requests[0], 0x7f, sizeof(requests[0]));
	CHECK(write(ends[1], "sorted", 6) == 6);
	fms_io_poll(&second);
	CHECK(requests[0].result == 0x7f7f7f7f);
	fms_io_close(&second);
	CHECK(is_reserved(buffers[1]));
	CHECK(shim_external_fds == 0);

	fms_io_open(&third, FMS_IO_AUTO);
	CHECK(third.method == &fms_io_sync_method);
	fms_io_close(&third);
}

#define READS	(2 * 300)

/*
 * Every request of a batch ends, whether its entries were queued or found no
 * room in the queue; once, and not again with the next batch.
 */
static void
refused_batch(int call, int error)
{
	static FmsIoRequest requests[READS];
	FmsIoRequest *batch[READS];
	FmsIo		io;
	char	   *buffer;
	int			fd = open("/proc/self/exe", O_RDONLY);
	int			i;

	CHECK(fd >= 0);
	fms_io_open(&io, FMS_IO_URING);
	buffer = fms_io_map(&io, READS * 512, false);
	for (i = 0; i < READS; i++)
	{
		batch[i] = &requests[i];
		requests[i].fd = fd;
		requests[i].buffer = buffer + i * 512;
		requests[i].length_bytes = 512;
		requests[i].offset_bytes = i * 512;
		requests[i].operation_bytes = i % 2 ? 128 : 0;
	}
	refuse(call, error);
	fms_io_submit(&io, batch, READS / 2);
	fms_io_submit(&io, batch + READS / 2, READS / 2);
	CHECK(io.in_flight == 0);
	for (i = 0; i < READS; i++)
	{
		CHECK(requests[i].state == FMS_IO_DONE);
		CHECK(requests[i].result == -ECANCELED);
		CHECK(requests[i].operations_left == 0);
	}
	fms_io_close(&io);
	CHECK(shim_external_fds == 0);
}

/* ---- direct I/O ---- */

static int
open_direct_file(void)
{
	const char *dir = getenv("TMPDIR");
	char		path[1024];
	char	   *page = aligned_alloc(4096, 4096);
	int			fd;
	int			direct;

	snprintf(path, sizeof(path), "%s/fmsort_io.XXXXXX", dir ? dir : "/tmp");
	fd = mkstemp(path);
	CHECK(fd >= 0 && page != NULL);
	memset(page, 0, 4096);
	/* a hole, then a page */
	CHECK(pwrite(fd, page, 4096, 61440) == 4096);
	direct = open(path, O_RDWR | O_DIRECT);
	unlink(path);
	close(fd);
	free(page);
	return direct;
}

/* What the alignment promises, that it keeps. */
static void
direct_alignment(int call, int error)
{
	int			fd = open_direct_file();
	char	   *page = aligned_alloc(4096, 8192);
	uint32		alignment;

	CHECK(page != NULL);
	if (fd < 0)
	{
		shim_note("no direct I/O for temporary files here: %s",
				  strerror(errno));
		return;
	}
	alignment = fms_io_direct_alignment(fd, 61440);
	CHECK(alignment <= 4096 && (alignment & (alignment - 1)) == 0);
	if (alignment > 0)
		CHECK(pread(fd, page + alignment % 4096, alignment,
					61440 + alignment % 4096) == (ssize_t) alignment);
}

/* A file that cannot be read at all has none. */
static void
no_alignment(int call, int error)
{
	int			ends[2];

	CHECK(pipe(ends) == 0);
	CHECK(fms_io_direct_alignment(ends[0], 0) == 0);
	CHECK(errno == ESPIPE);
}

int
main(void)
{
	FmsIo		io;

	fms_io_open(&io, FMS_IO_AUTO);
	if (io.method == &fms_io_uring_method)
	{
		fms_io_close(&io);
		alone(without_ring, SYS_io_uring_setup, EPERM, "setup: EPERM");
		alone(without_ring, SYS_io_uring_setup, ENOSYS, "setup: ENOSYS");
		alone(without_ring, SYS_io_uring_setup, ENOMEM, "setup: ENOMEM");
		alone(without_ring, SYS_io_uring_enter, EPERM, "enter: EPERM");
		alone(without_ring, SYS_io_uring_enter, ENOSYS, "enter: ENOSYS");
		alone(without_ring, SYS_io_uring_enter, EACCES, "enter: EACCES");
		alone(without_ring, SYS_io_uring_enter, ENOMEM, "enter: ENOMEM");
		alone(losing_ring, SYS_io_uring_enter, EPERM,
			  "enter: EPERM, while reads are in flight");
		alone(refused_batch, SYS_io_uring_enter, EPERM,
			  "enter: EPERM, for a batch of reads");
	}
	else
	{
		fms_io_close(&io);
		shim_logged = 0;
		alone(without_ring, SYS_io_uring_setup, EPERM, "setup: EPERM");
	}
	alone(in_a_worker, SYS_io_uring_setup, EPERM, "workers do not explain");
	alone(with_shared_memory, SYS_io_uring_setup, EPERM,
		  "with shared memory one process explains");
	alone(direct_alignment, 0, 0, "alignment: as the device demands");
	alone(no_alignment, 0, 0, "alignment: no file");
	return shim_done();
}
