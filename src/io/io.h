/*-------------------------------------------------------------------------
 *
 * io.h
 *	  Asynchronous reads and writes, and the buffers for them.
 *
 * A channel (FmsIo) belongs to one sort.  A method (FmsIoMethod) carries its
 * requests out: io_uring.c, or io_sync.c, the reference implementation.
 *
 *	  IDLE --submit--> IN_FLIGHT --kernel--> DONE --(caller)--> IDLE
 *				  +--> ANNOUNCED --finish--> DONE
 *
 * A method without asynchronous reads only announces a read through the page
 * cache: the kernel begins to read, and the caller finishes the request.
 *
 * This folder knows file descriptors, but no files and no block format.
 *
 *-------------------------------------------------------------------------
 */
#ifndef FMS_IO_H
#define FMS_IO_H

#include "port/atomics.h"

#include "base/options.h"

/* Alignment of buffers, and of direct transfers of whole pages, in bytes. */
#define FMS_IO_ALIGN_BYTES	4096
#define FMS_IO_ALIGN(n)		TYPEALIGN64(FMS_IO_ALIGN_BYTES, n)
#define FMS_IO_ALIGN_DOWN(n)	TYPEALIGN_DOWN(FMS_IO_ALIGN_BYTES, n)

typedef enum FmsIoState
{
	FMS_IO_IDLE,				/* the caller's, buffer included */
	FMS_IO_ANNOUNCED,			/* the caller's; the kernel reads ahead */
	FMS_IO_IN_FLIGHT,			/* the kernel's: do not touch the buffer */
	FMS_IO_DONE					/* the caller's, who looks at the result */
} FmsIoState;

typedef struct FmsIo FmsIo;
typedef struct FmsIoRequest FmsIoRequest;

/* One transfer.  Its owner keeps it at least while it is in flight. */
struct FmsIoRequest
{
	/* what to do: set before submitting */
	int			fd;				/* may be closed once submitted */
	bool		is_write;
	bool		cached;			/* read through the page cache */
	uint16		file;			/* number of the tape's file, for the tape */
	uint32		length_bytes;
	uint32		operation_bytes;	/* of each operation; 0: there is one */
	char	   *buffer;
	uint64		offset_bytes;

	/* what became of it */
	FmsIoState	state;
	int			result;			/* when DONE: bytes moved, or -errno */

	/* kept by the channel and its method */
	FmsIo	   *io;
	uint32		operations_left;	/* in flight */
	uint32	   *group;			/* NULL, or counts those in flight */
};

/* Number of a request's operations: system calls, or entries of a ring. */
static inline uint32
fms_io_operations(const FmsIoRequest *request)
{
	return request->operation_bytes == 0 ? 1 :
		(request->length_bytes - 1) / request->operation_bytes + 1;
}

/* Length of the operation at that offset in the request, in bytes. */
static inline uint32
fms_io_operation_bytes(const FmsIoRequest *request, uint32 at_bytes)
{
	uint32		left = request->length_bytes - at_bytes;

	return request->operation_bytes == 0 ? left :
		Min(left, request->operation_bytes);
}

/* Number of transfers to submit in one call if `depth` are in flight. */
static inline uint32
fms_io_batch(uint32 depth)
{
	return Max(1, depth / (depth < 64 ? 8 : 4));
}

/*
 * A way to carry out requests.  No function raises an error or checks for
 * interrupts.  A method that completes every request in submit() needs no
 * other function.
 */
typedef struct FmsIoMethod
{
	const char *name;			/* as the device profile has it */
	bool		submit_blocks;	/* submit() completes or announces all */

	/* Prepares the method for another channel.  0, or -errno. */
	int			(*open) (void);

	/* Starts n requests.  Announces each, or completes it, now or later. */
	void		(*submit) (FmsIoRequest **requests, int n);

	/* Completes the requests that have finished.  Does not block. */
	void		(*poll) (void);

	/*
	 * Waits until a request of this process has finished, and completes it: 0,
	 * or -EINTR if a signal came first; else no request will be completed.
	 */
	int			(*wait) (void);

	/* Undoes open().  The channel has nothing in flight. */
	void		(*close) (void);
} FmsIoMethod;

extern const FmsIoMethod fms_io_uring_method;
extern const FmsIoMethod fms_io_sync_method;

/* A buffer of whole pages, which is mapped; base NULL: none. */
typedef struct FmsIoBuffer
{
	char	   *base;
	Size		bytes;
} FmsIoBuffer;

struct FmsIo
{
	const FmsIoMethod *method;	/* NULL once closed */
	uint32		in_flight;		/* requests that the kernel has */
	FmsIoBuffer buffers[2];		/* for writes and for reads */
};

/* Memory shared by a server's processes, if it preloads the library. */
typedef struct FmsIoShared
{
	pg_atomic_flag explained;	/* the log says why there is no io_uring */
} FmsIoShared;

extern void fms_io_share(FmsIoShared *memory, bool is_new);

/* ---- channels: io.c ---- */

/*
 * Opens a channel.  If io_uring is not available, FMS_IO_AUTO falls back to
 * synchronous I/O and logs that once a server, or once a session without
 * shared memory; FMS_IO_URING raises an error.
 */
extern void fms_io_open(FmsIo *io, FmsIoChoice choice);

/* Drains the channel and frees its buffers; in any state, without an error. */
extern void fms_io_close(FmsIo *io);

/* Starts n requests.  Their descriptors may be closed afterwards. */
extern void fms_io_submit(FmsIo *io, FmsIoRequest **requests, int n);

/* Carries the request out now, without the method: it is DONE then. */
extern void fms_io_carry_out(FmsIo *io, FmsIoRequest *request);

/* Finishes an announced request, with an open file, if the cache has it. */
extern void fms_io_finish_cached(FmsIo *io, FmsIoRequest *request);

/* Completes the requests that have finished, without blocking. */
extern void fms_io_poll(FmsIo *io);

/* Waits until some request has finished; false: a signal came first. */
extern bool fms_io_wait(FmsIo *io);

/* ---- buffers: buffers.c ---- */

/*
 * Maps a zeroed buffer, aligned to pages.  direct: a buffer of 256 kB or more
 * is rounded up to whole huge pages; a sort has at most two of these.
 */
extern char *fms_io_map(FmsIo *io, Size bytes, bool direct);

/* Waits until the channel has nothing in flight, and unmaps the buffer. */
extern void fms_io_unmap(FmsIo *io, char *buffer);

/* Frees all buffers; if the channel was not drained, keeps the addresses. */
extern void fms_io_unmap_all(FmsIo *io, bool drained);

/* ---- requests: request.c ---- */

/* Carries the request out, whose state stays: bytes moved, or -errno. */
extern int	fms_io_transfer(const FmsIoRequest *request);

/* For methods: completes the request, or announces it to the kernel. */
extern void fms_io_complete(FmsIoRequest *request, int result);
extern void fms_io_announce(FmsIoRequest *request);

/* Can the request be read without waiting?  Then it has been. */
extern bool fms_io_transfer_cached(const FmsIoRequest *request);

/*
 * Returns the alignment in bytes that direct transfers of the file need; 0: it
 * is none we have; errno says why.  fd is open with O_DIRECT; the page exists.
 */
extern uint32 fms_io_direct_alignment(int fd, uint64 page_offset_bytes);

#endif							/* FMS_IO_H */
