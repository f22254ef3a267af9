/* links: io/ */
/*
 * Channels on a temporary file, by both methods: what is written comes back,
 * whatever the order of waiting; errors are results; closing drains.
 *
 * Seen to fail with: fms_io_complete() without the group; drain() returning at
 * once; uring_submit() giving up when the submission ring is full; buffers for
 * direct transfers not rounded up.
 */
#include "postgres.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "io/huge_page.h"
#include "io/io.h"
#include "shim.h"

#define PIECES		700			/* more than a submission ring takes */
#define PIECE_BYTES ((Size) 4096)

static const FmsIoMethod *method;
static FmsIoChoice choice;
static int	fd;

static int
open_descriptors(void)
{
	DIR		   *dir = opendir("/proc/self/fd");
	int			n = 0;

	if (dir == NULL)
		return -1;
	while (readdir(dir))
		n++;
	closedir(dir);
	return n;
}

static void
fill(char *piece, int number, int generation)
{
	Size		i;

	for (i = 0; i < PIECE_BYTES; i++)
		piece[i] = (char) (number * 31 + generation * 7 + i);
}

static bool
holds(const char *piece, int number, int generation)
{
	Size		i;

	for (i = 0; i < PIECE_BYTES; i++)
	{
		if (piece[i] != (char) (number * 31 + generation * 7 + i))
			return false;
	}
	return true;
}

static void
prepare(FmsIoRequest *request, char *buffer, int number, bool is_write)
{
	memset(request, 0, sizeof(*request));
	request->fd = fd;
	request->is_write = is_write;
	request->buffer = buffer;
	request->length_bytes = PIECE_BYTES;
	request->offset_bytes = number * PIECE_BYTES;
}

static void
wait_for(FmsIo *io, const FmsIoRequest *request)
{
	while (request->state == FMS_IO_IN_FLIGHT)
		(void) fms_io_wait(io);
}

/* Starts writing all pieces of that generation, in one batch. */
static void
write_all(FmsIo *io, char *memory, FmsIoRequest *requests,
		  FmsIoRequest **batch, int generation, uint32 *group)
{
	int			i;

	for (i = 0; i < PIECES; i++)
	{
		fill(memory + i * PIECE_BYTES, i, generation);
		prepare(&requests[i], memory + i * PIECE_BYTES, i, true);
		requests[i].group = group;
		batch[i] = &requests[i];
	}
	fms_io_submit(io, batch, PIECES);
}

/* Writes all pieces, reads them in another order, waits in a third. */
static void
test_round_trip(void)
{
	static FmsIoRequest requests[PIECES];
	FmsIoRequest *batch[PIECES];
	FmsIo		io;
	char	   *memory;
	uint32		group = 0;
	bool		good = true;
	int			i;

	fms_io_open(&io, choice);
	memory = fms_io_map(&io, PIECES * PIECE_BYTES, false);
	shim_ok((uintptr_t) memory % FMS_IO_ALIGN_BYTES == 0,
			"%s: buffers are aligned", method->name);
	for (i = 0; i < (int) (PIECES * PIECE_BYTES); i += 511)
		good = good && memory[i] == 0;
	shim_ok(good, "%s: buffers are zeroed", method->name);

	write_all(&io, memory, requests, batch, 1, &group);
	shim_ok(group == io.in_flight, "%s: the group counts requests in flight",
			method->name);
	while (io.in_flight > 0)
		(void) fms_io_wait(&io);
	for (i = 0, good = true; i < PIECES; i++)
		good = good && requests[i].state == FMS_IO_DONE &&
			requests[i].result == (int) PIECE_BYTES;
	shim_ok(good, "%s: %d writes in one batch", method->name, PIECES);
	shim_ok(group == 0, "%s: the group is empty again", method->name);

	/* each piece into another one's buffer, in batches of uneven sizes */
	memset(memory, 0, PIECES * PIECE_BYTES);
	for (i = 0; i < PIECES; i++)
	{
		int			number = (i * 437) % PIECES;

		prepare(&requests[i], memory + i * PIECE_BYTES, number, false);
		requests[i].group = &group;
	}
	for (i = 0; i < PIECES;)
	{
		int			some = 1 + (int) shim_below(60);
		int			n = Min(PIECES - i, some);

		fms_io_submit(&io, batch + i, n);
		fms_io_poll(&io);
		i += n;
	}
	for (i = PIECES - 1, good = true; i >= 0; i--)
	{
		wait_for(&io, &requests[i]);
		good = good && requests[i].result == (int) PIECE_BYTES &&
			holds(requests[i].buffer, (i * 437) % PIECES, 1);
	}
	shim_ok(good, "%s: reads, the last one waited for first", method->name);
	shim_ok(io.in_flight == 0 && group == 0, "%s: nothing is in flight",
			method->name);

	fms_io_unmap(&io, memory);
	fms_io_close(&io);
}

static void
test_errors(void)
{
	FmsIoRequest request;
	FmsIoRequest *batch[] = {&request};
	FmsIo		io;
	char	   *buffer;
	int			closed = dup(fd);
	int			read_only = open("/proc/self/exe", O_RDONLY);

	fms_io_open(&io, choice);
	buffer = fms_io_map(&io, 2 * PIECE_BYTES, false);

	close(closed);
	prepare(&request, buffer, 0, false);
	request.fd = closed;
	fms_io_submit(&io, batch, 1);
	wait_for(&io, &request);
	shim_ok(request.result == -EBADF, "%s: a closed descriptor: -EBADF",
			method->name);

	prepare(&request, buffer, 0, true);
	request.fd = read_only;
	fms_io_submit(&io, batch, 1);
	wait_for(&io, &request);
	shim_ok(request.result == -EBADF, "%s: writing what is read-only: -EBADF",
			method->name);
	close(read_only);

	prepare(&request, buffer, PIECES - 1, false);
	request.length_bytes = 2 * PIECE_BYTES;
	fms_io_submit(&io, batch, 1);
	wait_for(&io, &request);
	shim_ok(request.result == (int) PIECE_BYTES,
			"%s: reading over the end is short", method->name);

	prepare(&request, buffer, PIECES + 5, false);
	fms_io_submit(&io, batch, 1);
	wait_for(&io, &request);
	shim_ok(request.result == 0, "%s: reading behind the end gives nothing",
			method->name);

	/* after all that the channel still works */
	prepare(&request, buffer, 3, false);
	fms_io_submit(&io, batch, 1);
	wait_for(&io, &request);
	shim_ok(holds(buffer, 3, 1), "%s: an error breaks nothing", method->name);
	fms_io_close(&io);
}

/*
 * A pipe that nobody has written to holds its reads in flight for as long as
 * the test likes; the descriptor may be closed meanwhile.
 */
static void
test_in_flight(void)
{
	FmsIoRequest request;
	FmsIoRequest *batch[] = {&request};
	FmsIo		io;
	char	   *buffer;
	int			ends[2];

	if (method->submit_blocks)
		return;
	if (pipe(ends) != 0)
		abort();

	fms_io_open(&io, choice);
	buffer = fms_io_map(&io, PIECE_BYTES, false);
	prepare(&request, buffer, 0, false);
	request.length_bytes = 6;
	request.offset_bytes = (uint64) -1;
	request.fd = ends[0];
	fms_io_submit(&io, batch, 1);
	fms_io_poll(&io);
	shim_ok(request.state == FMS_IO_IN_FLIGHT && io.in_flight == 1,
			"%s: a read is in flight until there is something to read",
			method->name);
	close(ends[0]);
	if (write(ends[1], "sorted", 6) != 6)
		shim_note("could not write to the pipe: %s", strerror(errno));
	wait_for(&io, &request);
	shim_ok(request.result == 6 && memcmp(buffer, "sorted", 6) == 0,
			"%s: its descriptor may be closed meanwhile", method->name);
	close(ends[1]);
	fms_io_close(&io);
}

static void
test_close(void)
{
	static FmsIoRequest requests[PIECES];
	FmsIoRequest *batch[PIECES];
	FmsIo		first;
	FmsIo		second;
	char	   *memory;
	char	   *other;
	bool		good = true;
	int			before = open_descriptors();
	int			i;

	fms_io_open(&first, choice);
	fms_io_open(&second, choice);
	memory = fms_io_map(&first, PIECES * PIECE_BYTES, false);
	other = fms_io_map(&second, PIECE_BYTES, false);
	write_all(&first, memory, requests, batch, 2, NULL);
	fms_io_close(&first);
	for (i = 0; i < PIECES; i++)
		good = good && requests[i].state == FMS_IO_DONE &&
			requests[i].result == (int) PIECE_BYTES;
	shim_ok(good, "%s: closing waits for what is in flight", method->name);
	fms_io_close(&first);
	shim_ok(first.method == NULL, "%s: closing twice", method->name);

	prepare(&requests[0], other, PIECES - 1, false);
	fms_io_submit(&second, batch, 1);
	wait_for(&second, &requests[0]);
	shim_ok(holds(other, PIECES - 1, 2),
			"%s: the other channel of the process goes on", method->name);
	fms_io_close(&second);
	shim_ok(open_descriptors() == before && shim_external_fds == 0,
			"%s: the last one to close leaves no descriptor", method->name);
}

/* Two files in turn, in one batch. */
static void
test_files(void)
{
	FmsIoRequest requests[8];
	FmsIoRequest *batch[8];
	FmsIo		io;
	char	   *memory;
	FILE	   *other = tmpfile();
	bool		good = true;
	int			i;

	if (other == NULL)
		abort();
	fms_io_open(&io, choice);
	memory = fms_io_map(&io, 8 * PIECE_BYTES, false);
	for (i = 0; i < 8; i++)
	{
		fill(memory + i * PIECE_BYTES, i, 10 + i % 2);
		prepare(&requests[i], memory + i * PIECE_BYTES, i, true);
		requests[i].fd = i % 2 ? fileno(other) : fd;
		batch[i] = &requests[i];
	}
	fms_io_submit(&io, batch, 8);
	while (io.in_flight > 0)
		(void) fms_io_wait(&io);

	memset(memory, 0, 8 * PIECE_BYTES);
	for (i = 0; i < 8; i++)
		requests[i].is_write = false;
	fms_io_submit(&io, batch, 8);
	for (i = 0; i < 8; i++)
	{
		wait_for(&io, &requests[i]);
		good = good && requests[i].result == (int) PIECE_BYTES &&
			holds(requests[i].buffer, i, 10 + i % 2);
	}
	shim_ok(good, "%s: one batch, two files", method->name);
	fms_io_close(&io);
	fclose(other);
}

static bool
is_mapped(char *page)
{
	return msync(page, PIECE_BYTES, MS_ASYNC) == 0;
}

/* Bytes mapped from the buffer on, with the page that describes it. */
static Size
mapped_bytes(char *buffer)
{
	Size		bytes = 0;

	while (is_mapped(buffer + bytes))
		bytes += PIECE_BYTES;
	return bytes;
}

/* Buffers for direct transfers become whole huge pages, from a size on. */
static void
test_huge_pages(void)
{
	Size		some = 300 * 1024;
	Size		few = 200 * 1024;
	FmsIo		io;
	char	   *buffer;
	char	   *other;

	fms_io_open(&io, choice);
	buffer = fms_io_map(&io, some, true);
	shim_ok((uintptr_t) buffer % FMS_HUGE_PAGE_BYTES == 0 &&
			mapped_bytes(buffer) >= FMS_HUGE_PAGE_BYTES,
			"%s: a buffer for direct transfers is a huge page", method->name);
	memset(buffer, 1, FMS_HUGE_PAGE_BYTES);
	fms_io_unmap(&io, buffer);
	shim_ok(!is_mapped(buffer), "%s: ... and is given back", method->name);
	buffer = fms_io_map(&io, 2 * FMS_HUGE_PAGE_BYTES, true);
	shim_ok((uintptr_t) buffer % FMS_HUGE_PAGE_BYTES == 0,
			"%s: whole huge pages stay as many", method->name);
	other = fms_io_map(&io, few, true);
	memset(other, 1, few);
	fms_io_close(&io);
	shim_ok(!is_mapped(buffer) && !is_mapped(other),
			"%s: closing leaves no buffer", method->name);
}

/* Reads through the page cache, of which sync finishes what it announced. */
static void
test_cached(void)
{
	FmsIoRequest requests[8];
	FmsIoRequest *batch[8];
	FmsIo		io;
	char	   *memory;
	uint32		group = 0;
	bool		good = true;
	int			pipe_ends[2];

	fms_io_open(&io, choice);
	memory = fms_io_map(&io, 8 * PIECE_BYTES, false);
	for (int i = 0; i < 8; i++)
	{
		prepare(&requests[i], memory + i * PIECE_BYTES, i, false);
		requests[i].cached = true;
		requests[i].group = &group;
		batch[i] = &requests[i];
	}
	fms_io_submit(&io, batch, 8);
	if (method->submit_blocks)
	{
		for (int i = 0; i < 8; i++)
			good = good && requests[i].state == FMS_IO_ANNOUNCED;
		shim_ok(good && group == 8 && io.in_flight == 0,
				"%s: reads are announced, none is in flight", method->name);
		for (int i = 7; i >= 1; i--)
			fms_io_finish_cached(&io, &requests[i]);
		shim_ok(requests[1].state == FMS_IO_DONE && group == 1,
				"%s: ... and finished from the page cache", method->name);
		/* nothing of a pipe is in the page cache */
		if (pipe(pipe_ends) != 0)
			abort();
		requests[0].fd = pipe_ends[0];
		fms_io_finish_cached(&io, &requests[0]);
		shim_ok(requests[0].state == FMS_IO_ANNOUNCED,
				"%s: ... or stay announced", method->name);
		close(pipe_ends[0]);
		close(pipe_ends[1]);
		requests[0].fd = fd;
		fms_io_carry_out(&io, &requests[0]);
	}
	for (int i = 0; i < 8; i++)
	{
		wait_for(&io, &requests[i]);
		good = good && requests[i].result == (int) PIECE_BYTES;
	}
	shim_ok(good && group == 0 && io.in_flight == 0,
			"%s: all of them are done", method->name);
	fms_io_submit(&io, batch, 8);
	fms_io_close(&io);
	shim_ok(io.in_flight == 0, "%s: closing waits for no announced read",
			method->name);
}

static void
test_method(const FmsIoMethod *which, FmsIoChoice how)
{
	method = which;
	choice = how;
	test_round_trip();
	test_errors();
	test_in_flight();
	test_close();
	test_files();
	test_cached();
	test_huge_pages();
}

int
main(void)
{
	const char *dir = getenv("TMPDIR");
	char		path[1024];
	int			error;

	shim_seed();
	snprintf(path, sizeof(path), "%s/fmsort_io.XXXXXX", dir ? dir : "/tmp");
	fd = mkstemp(path);
	if (fd < 0)
	{
		shim_ok(false, "a temporary file: %s", strerror(errno));
		return shim_done();
	}
	unlink(path);

	test_method(&fms_io_sync_method, FMS_IO_SYNC);

	error = -fms_io_uring_method.open();
	if (error == 0)
	{
		FmsIo		io;

		fms_io_uring_method.close();
		test_method(&fms_io_uring_method, FMS_IO_URING);
		fms_io_open(&io, FMS_IO_AUTO);
		shim_ok(io.method == &fms_io_uring_method && shim_logged == 0,
				"auto: io_uring, without a word");
		fms_io_close(&io);
	}
	else
	{
		FmsIo		io;

		shim_skip(strerror(error), "io_uring: everything above");
		shim_ok(SHIM_CATCH(fms_io_open(&io, FMS_IO_URING)),
				"io_uring, where there is none: an error");
		fms_io_open(&io, FMS_IO_AUTO);
		shim_ok(io.method == &fms_io_sync_method && shim_logged == 1,
				"auto: falls back, and says so");
		fms_io_close(&io);
		fms_io_open(&io, FMS_IO_AUTO);
		shim_ok(shim_logged == 1, "auto: says so once");
		fms_io_close(&io);
	}
	shim_ok(shim_live_chunks == 0, "nothing was left in memory");
	return shim_done();
}
