/*-------------------------------------------------------------------------
 *
 * io.h
 *	  Reads and writes that go on while we do something else.
 *
 * A channel (FmsIo) belongs to one sort.  It hands out aligned buffers,
 * submits requests on them in batches and waits for them.  How that is done
 * is a method (FmsIoMethod): io_uring.c, or io_sync.c, which is also the
 * simplest correct implementation of the contract below.
 *
 *	  IDLE --submit--> IN_FLIGHT --kernel--> DONE --(caller)--> IDLE
 *
 * This layer knows file descriptors, not files, and no block format: it can
 * be tested alone.
 *
 *-------------------------------------------------------------------------
 */
#ifndef FMS_IO_H
#define FMS_IO_H

#include "postgres.h"

#include <fcntl.h>
#include <sys/uio.h>

#include "lib/ilist.h"
#include "port/atomics.h"

#include "base/options.h"

/* Buffers and, under direct I/O, lengths and offsets of whole transfers. */
#define FMS_IO_ALIGN_BYTES	4096
#define FMS_IO_ALIGN(n)		TYPEALIGN64(FMS_IO_ALIGN_BYTES, n)
#define FMS_IO_ALIGN_DOWN(n) \
	((n) & ~((uint64) FMS_IO_ALIGN_BYTES - 1))

typedef enum FmsIoState
{
	FMS_IO_IDLE,				/* the caller's, buffer included */
	FMS_IO_IN_FLIGHT,			/* the kernel's: buffer not to be touched */
	FMS_IO_DONE					/* the caller's, result to be looked at */
} FmsIoState;

typedef struct FmsIo FmsIo;
typedef struct FmsIoRequest FmsIoRequest;

/*
 * Of so many transfers at once, how many to submit together?  Submitting is a
 * system call, so not each by itself; but what waits to be submitted, the
 * device does not work on.  A deep queue has enough left for it to do.
 */
static inline uint32
fms_io_batch(uint32 depth)
{
	return Max(1, depth / (depth < 64 ? 8 : 4));
}

/* And as long as the device is ahead of whoever needs them? */
static inline uint32
fms_io_batch_at_leisure(uint32 depth)
{
	return Max(1, depth / 4);
}

/* What sync_file_range() is to do for a request without a buffer. */
#define FMS_IO_WRITE_OUT_FLAGS \
	(SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE | \
	 SYNC_FILE_RANGE_WAIT_AFTER)

/* Reads that are joined to one operation, and their bytes together. */
#define FMS_IO_PARTS_MAX		16
#define FMS_IO_JOINED_MAX_BYTES ((Size) 128 * 1024)

/*
 * One transfer.  Lives where its owner likes, but not shorter than the
 * channel or than it is in flight.
 */
struct FmsIoRequest
{
	/* what to do: set before submitting */
	int			fd;				/* valid now; may be closed once submitted */
	bool		is_write;
	uint32		length_bytes;
	uint32		piece_bytes;	/* to be moved in pieces of this; 0: at once */
	char	   *buffer;			/* NULL, in a write: what the page cache has of
								 * that stretch goes to the device */
	uint64		offset_bytes;

	/* what became of it */
	FmsIoState	state;
	int			result;			/* bytes moved (without a buffer 0), or
								 * -errno; valid when DONE */

	/* kept by the channel and its method */
	FmsIo	   *io;
	uint32		pieces_left;	/* of those that are on their way */
	FmsIoRequest *next_part;	/* completed with this one */
	uint32	   *group;			/* if not NULL, counts its group's requests
								 * in flight */
};

/* Of how many pieces a request consists. */
static inline uint32
fms_io_pieces(const FmsIoRequest *request)
{
	return request->piece_bytes == 0 ? 1 :
		(request->length_bytes - 1) / request->piece_bytes + 1;
}

/* Length of the piece that begins so far into a request. */
static inline uint32
fms_io_piece_bytes(const FmsIoRequest *request, uint32 at_bytes)
{
	uint32		left = request->length_bytes - at_bytes;

	return request->piece_bytes == 0 ? left : Min(left, request->piece_bytes);
}

/*
 * How requests are carried out.  None of these raises an error, and none
 * may be interrupted half-way: errors are results, and whoever waits for a
 * request reports them.
 */
typedef struct FmsIoMethod
{
	const char *name;			/* as EXPLAIN shows it */
	bool		submit_blocks;	/* transfers happen inside submit */

	/* Gets ready; called once a channel.  0, or -errno: not to be had. */
	int			(*open) (void);

	/*
	 * Starts n requests.  All have to be accepted; a method that fails marks
	 * those it could not start DONE with the error.
	 * Calls fms_io_complete() for each request exactly once, now or later.
	 */
	void		(*submit) (FmsIoRequest **requests, int n);

	/* Completes what has finished.  Must not block. */
	void		(*poll) (void);

	/*
	 * Blocks until at least one request of this process has finished, and
	 * completes it.  0, or -EINTR if a signal came first; any other error
	 * means that no completion will ever come.
	 */
	int			(*wait) (void);

	/*
	 * The buffer will be used for many transfers past the page cache; it is
	 * going to be unmapped.  Neither need have an effect, and either may be
	 * NULL.
	 */
	void		(*pin) (char *buffer, Size bytes);
	void		(*unpin) (const char *buffer);

	/* Undoes open; the channel has nothing in flight. */
	void		(*close) (void);
} FmsIoMethod;

extern const FmsIoMethod fms_io_uring_method;
extern const FmsIoMethod fms_io_sync_method;

struct FmsIo
{
	const FmsIoMethod *method;	/* NULL once closed */
	uint32		in_flight;		/* requests the kernel has */
	bool		pins;			/* buffers are for transfers past the page
								 * cache, and made ready for them */
	Size		spare_bytes;	/* that mappings may take beyond what they are
								 * asked for, to be of larger pages; whoever
								 * owns the channel may set it */
	dlist_head	mappings;		/* buffers handed out */
};

/* What the processes of a server share, if it preloads the library. */
typedef struct FmsIoShared
{
	pg_atomic_flag explained;	/* the log says why there is no io_uring */
} FmsIoShared;

extern void fms_io_share(FmsIoShared *memory, bool is_new);

/*
 * Opens a channel in caller's memory.  With FMS_IO_AUTO falls back to
 * synchronous I/O and says so at LOG, once for the server or, without shared
 * memory, once for the session; with FMS_IO_URING raises an error instead.
 */
extern void fms_io_open(FmsIo *io, FmsIoChoice choice);

/*
 * Drains the channel and gives back everything it holds.  Never raises,
 * may be called twice, and in any state: it is what an error path calls.
 */
extern void fms_io_close(FmsIo *io);

/*
 * Page-aligned, zeroed buffers, untouched pages of which cost nothing; made of
 * huge pages where that can be, with io->spare_bytes for rounding up.  May
 * raise out-of-memory.  Unmapping drains the channel first.
 */
extern char *fms_io_map(FmsIo *io, Size bytes);
extern void fms_io_unmap(FmsIo *io, char *buffer);

/*
 * The same, with room behind it, in the same huge pages, for one more buffer;
 * memory that was mapped elsewhere and is nothing but such room, which is the
 * channel's from now on, FMS_IO_ROOM_BYTES() of it, page-aligned; and that
 * buffer, or, where there is no room for it, any.  It need not be zeroed, and
 * goes by fms_io_unmap(), before the one in front of it does.
 */
#define FMS_IO_ROOM_BYTES(bytes) \
	((Size) (FMS_IO_ALIGN(bytes) + FMS_IO_ALIGN_BYTES))

extern char *fms_io_map_with_room(FmsIo *io, Size bytes, Size room_bytes);
extern void fms_io_adopt(FmsIo *io, char *memory, Size bytes);
extern char *fms_io_map_in_room(FmsIo *io, Size bytes);

/*
 * From now on transfers go past the page cache: buffers, those that are there
 * already as well, are made ready for that as the method can.
 */
extern void fms_io_pin(FmsIo *io);

/*
 * Starts requests, of any files.  Descriptors must be valid now; they may be
 * closed or reused as soon as this returns.
 */
extern void fms_io_submit(FmsIo *io, FmsIoRequest **requests, int n);

/* Does what submitting and waiting do, without any method: at once. */
extern void fms_io_carry_out(FmsIo *io, FmsIoRequest *request);

/* Completes what has finished, without blocking. */
extern void fms_io_poll(FmsIo *io);

/*
 * Blocks until some request has finished.  False if a signal came first, so
 * that the caller, whose state is consistent, can look for interrupts.
 * Raises an error if the method can no longer deliver.
 */
extern bool fms_io_wait(FmsIo *io);

/*
 * Carries a request out at once, without any method.  Returns what moved, or
 * -errno; the request's state stays as it is.
 */
extern int	fms_io_transfer(const FmsIoRequest *request);

/*
 * For methods: how many of the requests, from the first on, are reads of one
 * stretch of the file?  Those can be one operation, into the buffers of the
 * vector, which has FMS_IO_PARTS_MAX entries.  Completing the first with the
 * result of that completes them all.
 */
extern int	fms_io_join(FmsIoRequest **requests, int n,
						struct iovec *vector);

/* For methods: the request, with those joined to it, has finished. */
extern void fms_io_complete(FmsIoRequest *request, int result);

#endif							/* FMS_IO_H */
