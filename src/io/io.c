/*-------------------------------------------------------------------------
 *
 * io.c
 *	  Channels: choosing a method, submitting, waiting, closing.
 *
 * A buffer exists as long as the kernel may write to it: fms_io_close() drains
 * the channel before it frees the buffers.  The sort calls it when it ends or,
 * after an error, the reset callback of the sort's memory context does.  Files
 * may be closed before, since the kernel holds those of submitted requests.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/parallel.h"
#include "miscadmin.h"

#include "io/io.h"

static FmsIoShared *shared = NULL;

void
fms_io_share(FmsIoShared *memory, bool is_new)
{
	shared = memory;
	if (is_new)
		pg_atomic_init_flag(&shared->explained);
}

/* The fallback is logged once a server or, if nothing is shared, a session. */
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

void
fms_io_open(FmsIo *io, FmsIoChoice choice)
{
	memset(io, 0, sizeof(*io));
	io->method = &fms_io_sync_method;
	if (choice == FMS_IO_SYNC)
		return;

	errno = -fms_io_uring_method.open();
	if (errno == 0)
		io->method = &fms_io_uring_method;
	else if (choice == FMS_IO_URING)
	{
		io->method = NULL;
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("could not set up io_uring: %m"),
				 errhint("Set fmsort.io_method to \"auto\" to fall back to synchronous I/O.")));
	}
	else if (is_to_explain())
		ereport(LOG,
				(errmsg("fmsort uses synchronous I/O because io_uring is not available: %m"),
				 errhint("Sorts use the page cache instead. Set fmsort.io_method to \"sync\" to silence this message.")));
}

void
fms_io_close(FmsIo *io)
{
	bool		works = true;

	if (io->method == NULL)
		return;

	HOLD_INTERRUPTS();
	while (works && io->in_flight > 0)
	{
		int			error = io->method->wait();

		works = error == 0 || error == -EINTR;
	}
	fms_io_unmap_all(io, works);
	/* requests that were not drained are given up */
	io->in_flight = 0;
	if (io->method->close)
		io->method->close();
	io->method = NULL;
	RESUME_INTERRUPTS();
}

static void
begin(FmsIo *io, FmsIoRequest *request)
{
	bool		announced = request->state == FMS_IO_ANNOUNCED;

	Assert(request->state != FMS_IO_IN_FLIGHT);
	Assert(request->length_bytes > 0);
	request->io = io;
	request->state = FMS_IO_IN_FLIGHT;
	io->in_flight++;
	/* the group counts an announced request already */
	if (request->group && !announced)
		(*request->group)++;
}

void
fms_io_submit(FmsIo *io, FmsIoRequest **requests, int n)
{
	for (int i = 0; i < n; i++)
		begin(io, requests[i]);
	io->method->submit(requests, n);
}

void
fms_io_carry_out(FmsIo *io, FmsIoRequest *request)
{
	begin(io, request);
	fms_io_complete(request, fms_io_transfer(request));
}

void
fms_io_finish_cached(FmsIo *io, FmsIoRequest *request)
{
	Assert(request->state == FMS_IO_ANNOUNCED);
	if (fms_io_transfer_cached(request))
	{
		begin(io, request);
		fms_io_complete(request, request->length_bytes);
	}
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
