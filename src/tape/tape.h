/*-------------------------------------------------------------------------
 *
 * tape.h
 *	  Temporary files that are written at the end or in free extents, and read
 *	  anywhere, asynchronously.
 *
 *-------------------------------------------------------------------------
 */
#ifndef FMS_TAPE_H
#define FMS_TAPE_H

#include "storage/fd.h"

#include "base/counters.h"
#include "base/options.h"
#include "io/io.h"

/* ---- a temporary file of PostgreSQL's: temp_file.c ---- */

/* Fields are temp_file.c's own. */
typedef struct FmsTempFile
{
	File		file;			/* accounting, and buffered transfers */
	File		direct_file;	/* O_DIRECT on the same path, or 0 */
	uint64		direct_from_bytes;	/* offsets where direct I/O begins and */
	uint64		direct_upto_bytes;	/* ends; PG_UINT64_MAX: not yet */
	uint32		block_bytes;
	uint32		direct_alignment;	/* 0: not asked, or no direct I/O */
	uint64		charged_bytes;	/* the file's size, as fd.c knows it */
} FmsTempFile;

/* Fills in the session's temporary tablespaces.  Their number, 1 to `most`. */
extern int	fms_temp_file_tablespaces(Oid *tablespaces, int most);

/*
 * Opens a file of the current resource owner's, in the session's next
 * temporary tablespace.  Transfers are of multiples of block_bytes.  shared:
 * where other processes will find the file, or NULL.
 */
extern void fms_temp_file_open(FmsTempFile *file, uint32 block_bytes,
							   const FmsSharedFiles *shared);

/* Opens a file of another process, which has closed it; written: as then. */
extern void fms_temp_file_adopt(FmsTempFile *file, const FmsTempFile *written,
								const FmsSharedFiles *shared);

/* Closes the file, and deletes it unless it is shared: its set does that. */
extern void fms_temp_file_close(FmsTempFile *file);

/*
 * Transfers from end_bytes on use direct I/O from now on, or the page cache.
 * False, with nothing changed, if the file system has no direct I/O for these
 * blocks (errno says why), or if direct I/O has ended before.
 */
extern bool fms_temp_file_set_direct(FmsTempFile *file, uint64 end_bytes,
									 bool direct);

/* Raises the error for set_direct() having failed. */
extern void fms_temp_file_report_no_direct(const FmsTempFile *file)
			__attribute__((noreturn));

/* Do transfers at that offset use direct I/O? */
static inline bool
fms_temp_file_is_direct_at(const FmsTempFile *file, uint64 offset_bytes)
{
	return offset_bytes >= file->direct_from_bytes &&
		offset_bytes < file->direct_upto_bytes;
}

/* The descriptor for that offset, or -1.  Valid until fd.c is called again. */
extern int	fms_temp_file_fd(const FmsTempFile *file, uint64 offset_bytes);

/* Reopens it, if necessary; fd.c may close another one for that. */
extern void fms_temp_file_reopen(FmsTempFile *file, uint64 offset_bytes);

/* Charges the file up to upto_bytes; raises temp_file_limit's error. */
extern void fms_temp_file_reserve(FmsTempFile *file, uint64 upto_bytes);

/* Gives up what is reserved behind end_bytes.  Nothing may be in flight. */
extern void fms_temp_file_trim(FmsTempFile *file, uint64 end_bytes);

/* ---- free extents, which may be written again: space.c ---- */

typedef struct FmsFreeExtent
{
	uint64		from_bytes;
	uint64		upto_bytes;		/* first byte behind it; > from_bytes */
} FmsFreeExtent;

typedef struct FmsSpace
{
	FmsFreeExtent *extents;		/* by offset, none touches the next; or NULL */
	int			count;
	int			size;			/* allocated */
} FmsSpace;

/* Empties the space and frees its memory.  A zeroed space is empty. */
extern void fms_space_clear(FmsSpace *space);

/* Adds an extent, which was not free.  palloc'd. */
extern void fms_space_add(FmsSpace *space, FmsFreeExtent extent);

/*
 * Takes the whole pages of the largest extent, if these hold that many bytes;
 * else returns false.  If extent is NULL, it only asks.
 */
extern bool fms_space_take(FmsSpace *space, Size bytes,
						   FmsFreeExtent *extent);

/* ---- the tape: tape.c ---- */

/*
 * An address on the tape: the number of a file, and the offset in it, which
 * has this many bits.  The tape grows at the end of file 0, where addresses
 * are offsets.  File 0 may be several, one in each temporary tablespace, with
 * stripes of whole blocks:
 *
 *	  address	| stripe 0 | stripe 1 | stripe 2 | stripe 3 | ...
 *	  files		  0			 1			0		   1
 */
#define FMS_TAPE_OFFSET_BITS	48
#define FMS_TAPE_OFFSET_MASK	((UINT64CONST(1) << FMS_TAPE_OFFSET_BITS) - 1)

/* Most files with stripes. */
#define FMS_TAPE_STRIPES_MAX	8

/* Others read these fields, only tape.c changes them. */
typedef struct FmsTape
{
	FmsIo	   *io;
	FmsCounters *counters;		/* written only */
	FmsTempFile *files;
	int			nfiles;
	int			nstriped;		/* of them, file 0 of addresses */
	uint64		stripe_bytes;
	uint32		block_bytes;
	uint32		salt;			/* of all checksums */
	bool		checksums;
	uint64		end_bytes;		/* of file 0: written or being written */
	FmsFreeExtent here;			/* from the position on, what can be written
								 * in a row; at the end, without limit */
	FmsSpace	free;			/* other extents before the end */

	/* what has passed between the tape and its device */
	uint64		written_bytes;
	uint64		cached_bytes;	/* of them, into the page cache */
	double		write_blocked_us;	/* waiting for writes */
} FmsTape;

/*
 * Opens a tape of blocks of block_bytes: a temporary file in each of the
 * session's temporary tablespaces, under the current resource owner.
 * Transfers go through the page cache until fms_tape_set_direct().  shared:
 * NULL, or where other processes will find the tape, which is one file then.
 */
extern FmsTape *fms_tape_open(FmsIo *io, uint32 block_bytes, bool checksums,
							  const FmsSharedFiles *shared,
							  FmsCounters *counters);

/*
 * Adds a file of another process, with the tape's blocks, salt and checksums:
 * see fms_temp_file_adopt().  Returns what to add to its addresses.
 */
extern uint64 fms_tape_adopt(FmsTape *tape, const FmsTempFile *written,
							 const FmsSharedFiles *shared);

/* Closes the files.  Nothing may be in flight. */
extern void fms_tape_close(FmsTape *tape);

/*
 * Appends to the end with direct I/O from now on, or through the page cache.
 * False, and nothing changes, if the file system has no direct I/O for the
 * tape's blocks, or if direct I/O ended before; if it is required, an error.
 * Nothing may be in flight.
 */
extern bool fms_tape_set_direct(FmsTape *tape, bool direct, bool required);

/* Has the tape used direct I/O at all? */
extern bool fms_tape_is_direct(const FmsTape *tape);

/* The path of a file, as fd.c knows it. */
extern const char *fms_tape_path(const FmsTape *tape, int file);

/* Sets where a request transfers. */
static inline void
fms_tape_locate(const FmsTape *tape, FmsIoRequest *request, uint64 address)
{
	uint64		offset = address & FMS_TAPE_OFFSET_MASK;
	uint64		stripe = offset / tape->stripe_bytes;

	request->file = (address >> FMS_TAPE_OFFSET_BITS) +
		stripe % tape->nstriped;
	request->offset_bytes = stripe / tape->nstriped * tape->stripe_bytes +
		offset % tape->stripe_bytes;
}

/* Bytes that one request can transfer from the address on. */
static inline uint64
fms_tape_in_row(const FmsTape *tape, uint64 address)
{
	return tape->stripe_bytes -
		(address & FMS_TAPE_OFFSET_MASK) % tape->stripe_bytes;
}

/*
 * Starts writing length_bytes, a multiple of FMS_IO_ALIGN_BYTES, at the tape's
 * position, which must hold them, and moves it on.  Raises temp_file_limit's
 * error; fms_tape_wait() raises those of the device.
 */
extern void fms_tape_append(FmsTape *tape, FmsIoRequest *request,
							char *buffer, uint32 length_bytes);

/* The address is in a free extent, or at the end of all that was written. */
static inline uint64
fms_tape_position(const FmsTape *tape)
{
	return tape->here.from_bytes;
}

/* Can that many bytes be appended in a row? */
static inline bool
fms_tape_holds(const FmsTape *tape, Size bytes)
{
	return bytes <= Min(tape->here.upto_bytes - tape->here.from_bytes,
						fms_tape_in_row(tape, tape->here.from_bytes));
}

/* Smallest extent to free or to write again, which bounds their number. */
static inline Size
fms_tape_free_bytes(const FmsTape *tape)
{
	return Max((Size) 32 * 1024, tape->end_bytes / 4096);
}

/* Is the position at the end, though an extent of that many bytes is free? */
extern bool fms_tape_has_free(FmsTape *tape, Size bytes);

/* Moves on: to the next stripe, a free extent of `bytes`, or the end. */
extern void fms_tape_move_on(FmsTape *tape, Size bytes);

/* Frees an extent, which is not in flight.  The tape's context is current. */
extern void fms_tape_free(FmsTape *tape, uint64 address, Size length_bytes);

/* Gives up space reserved past the end.  Nothing may be in flight. */
extern void fms_tape_trim(FmsTape *tape);

/* Starts reads; the requests have place, length and buffer. */
extern void fms_tape_read(FmsTape *tape, FmsIoRequest **requests, int n);

/* Starts writes likewise, below the tape's end. */
extern void fms_tape_overwrite(FmsTape *tape, FmsIoRequest **requests, int n);

/* Would waiting mean to wait for the device?  If not, the request is DONE. */
extern bool fms_tape_is_late(FmsTape *tape, FmsIoRequest *request);

/* Waits until the request is done, which is IDLE then; raises its error. */
extern void fms_tape_wait(FmsTape *tape, FmsIoRequest *request);

/* A block of that file is not as written; detail: a palloc'd sentence. */
extern void fms_tape_report_corrupted(const FmsTape *tape, int file,
									  const char *detail)
			__attribute__((noreturn));

/* ---- writing blocks in large asynchronous writes: write_buffer.c ---- */

typedef struct FmsWriteBuffer FmsWriteBuffer;

/* Size of a buffer that holds a block, whose pages need not be whole. */
#define FMS_WRITE_BUFFER_BYTES(block_bytes) \
	((block_bytes) % FMS_IO_ALIGN_BYTES == 0 ? (Size) (block_bytes) : \
	 FMS_IO_ALIGN((block_bytes) + FMS_IO_ALIGN_BYTES))

/* Most buffers: one is filled while the others are written. */
#define FMS_WRITE_BUFFERS_MAX	4

/*
 * Creates the tape's only write buffer in the current context, whose owner
 * drains the channel.  Each of the nbuffers buffers has buffer_bytes, at least
 * FMS_WRITE_BUFFER_BYTES() of a block.  Once flushed, pfree() frees it.
 */
extern FmsWriteBuffer *fms_write_buffer_create(FmsTape *tape,
											   Size buffer_bytes,
											   int nbuffers);

/*
 * Memory of the next block, MAXALIGNed if its size is, and its address on the
 * tape.  The caller fills it before fms_write_buffer_done().
 */
extern char *fms_write_buffer_block(FmsWriteBuffer *buffer, uint64 *address);
extern void fms_write_buffer_done(FmsWriteBuffer *buffer);

/* Starts writing all blocks; the next one starts on a new page of the tape. */
extern void fms_write_buffer_end_page(FmsWriteBuffer *buffer);

/*
 * After that: waits for all writes, reports failed ones, and unmaps the
 * buffers until the next block.
 */
extern void fms_write_buffer_flush(FmsWriteBuffer *buffer);

#endif							/* FMS_TAPE_H */
