/*-------------------------------------------------------------------------
 *
 * tape.h
 *	  A temporary file that is written at its end, or again where it is free,
 *	  and read anywhere, both asynchronously; the format of the blocks in it.
 *
 *-------------------------------------------------------------------------
 */
#ifndef FMS_TAPE_H
#define FMS_TAPE_H

#include "postgres.h"

#include "base/counters.h"
#include "io/io.h"
#include "base/checksum.h"

/*
 * Every block begins with this.  It names the block and seals it, so that a
 * wrong or stale one is an error and never a wrong answer.
 *
 *	  | header | continued_bytes | record | record | ... | unused |
 *	  | header | chunk of records | chunk | .......... | unused |
 *	  |<---------------------- used_bytes -------------->|
 *
 * Its magic number says which of both it is.
 */
typedef struct FmsBlockHeader
{
	FmsChecksum		checksum;
	uint32		magic;			/* FMS_BLOCK_MAGIC or _BUNDLED_MAGIC */
	uint32		run;			/* id of the run it belongs to */
	uint32		number;			/* position in that run, from 0 */
	uint32		used_bytes;		/* header included */
	uint32		continued_bytes;	/* of a record that began in an earlier
									 * block; 0: starts with a record */
	uint32		records;		/* that begin in this block */
} FmsBlockHeader;

#define FMS_BLOCK_MAGIC 0x464D5342	/* "FMSB" */
#define FMS_BLOCK_COMPRESSED_MAGIC 0x464D5343	/* "FMSC" */

StaticAssertDecl(sizeof(FmsBlockHeader) == 32 &&
				 offsetof(FmsBlockHeader, checksum) == 0,
				 "blocks go to disk: their header must not be padded");

/* Room for records in a block of that size. */
static inline uint32
fms_block_room(uint32 block_bytes)
{
	return block_bytes - sizeof(FmsBlockHeader);
}

/* Does it hold chunks (compressed_chunk.h), not records? */
static inline bool
fms_block_is_compressed(const FmsBlockHeader *header)
{
	return header->magic == FMS_BLOCK_COMPRESSED_MAGIC;
}

typedef struct FmsTape FmsTape;

/* What has passed between a tape and its device. */
typedef struct FmsTapeUse
{
	uint64		read_bytes;
	uint64		written_bytes;
	uint64		cached_bytes;	/* of them, into the page cache */
	double		write_blocked_us;	/* waiting for writes */
} FmsTapeUse;

/*
 * Opens a tape: a temporary file under the current resource owner, which
 * counts it, limits it, logs it and deletes it.  Under FMS_DIRECT_ON raises
 * an error where the file system has no direct I/O for this block size;
 * under FMS_DIRECT_AUTO uses the page cache there.  With checksums, seals hold
 * only for bytes that have not changed.
 */
extern FmsTape *fms_tape_open(FmsIo *io, FmsDirectChoice direct,
							  uint32 block_bytes, bool checksums,
							  FmsCounters *counters);

/* Belongs to the tape, and changes as it is used. */
extern const FmsTapeUse *fms_tape_use(const FmsTape *tape);

/*
 * What is appended from now on goes past the page cache, or into it, and comes
 * back that way; what is on the tape is read as it was written.  False, and
 * nothing changes, if the file system has no direct I/O or this has been asked
 * too often.  Nothing may be in flight.
 */
extern bool fms_tape_set_direct(FmsTape *tape, bool direct);

/* Closes and deletes the file.  Nothing may be in flight. */
extern void fms_tape_close(FmsTape *tape);

/* Is there direct I/O on this tape, for some of it at least? */
extern bool fms_tape_is_direct(const FmsTape *tape);

/* The file's path, as fd.c knows it. */
extern const char *fms_tape_path(const FmsTape *tape);

/*
 * Starts writing at the tape's position, and moves it on.  Length must be a
 * multiple of FMS_IO_ALIGN_BYTES, and as much be left there.  Raises
 * temp_file_limit's error, or one for a full disk if that is known already
 * (else fms_tape_wait() does).
 */
extern void fms_tape_append(FmsTape *tape, FmsIoRequest *request,
							char *buffer, uint32 length_bytes);

/*
 * The position is the end of all that has been written, or, once something of
 * that is free, in there; does it hold so many bytes, one behind the other?
 */
extern uint64 fms_tape_position(const FmsTape *tape);
extern bool fms_tape_holds(const FmsTape *tape, Size bytes);
extern uint64 fms_tape_end(const FmsTape *tape);

/* Is the position at the end, though so many bytes in a row are free? */
extern bool fms_tape_has_free(const FmsTape *tape, Size bytes);

/*
 * Moves the position to where it holds so many bytes: free ones, if there are
 * as many in a row, else at the end.
 */
extern void fms_tape_move_on(FmsTape *tape, Size bytes);

/*
 * What lies there is not needed any more: it is written again.  Best done in
 * pieces of fms_tape_free_bytes().  Must not be in flight.  Current context,
 * which must be that of the tape; may ERROR.
 */
extern void fms_tape_free(FmsTape *tape, uint64 offset_bytes,
						  Size length_bytes);
extern Size fms_tape_free_bytes(const FmsTape *tape);

/*
 * Has the device write a stretch that was written through the page cache and
 * stays there.  The request is done when it has; nothing else waits for it,
 * and its result is the caller's to look at.
 */
extern void fms_tape_write_out(FmsTape *tape, FmsIoRequest *request,
							   uint64 offset_bytes, uint32 length_bytes);

/* Gives back the space that was reserved past the end; nothing in flight. */
extern void fms_tape_trim(FmsTape *tape);

/*
 * What lies there is not needed any more, nor will it be written again: its
 * whole pages' space goes back to the file system.  temp_file_limit counts it
 * all the same.  Must not be in flight.  False: the file system cannot do it.
 */
extern bool fms_tape_make_hole(FmsTape *tape, uint64 offset_bytes,
							   Size length_bytes);

/* Starts reads; offset, length and buffer stand in the requests. */
extern void fms_tape_read(FmsTape *tape, FmsIoRequest **requests, int n);

/* Starts writes likewise, over what is on the tape: not past its end. */
extern void fms_tape_overwrite(FmsTape *tape, FmsIoRequest **requests, int n);

/*
 * Waits until the request is done, allowing interrupts, and returns it to
 * IDLE.  Raises an error if the transfer failed.  The time waited
 * for a read goes to FMS_COUNT_BLOCKED_NS.
 */
extern void fms_tape_wait(FmsTape *tape, FmsIoRequest *request);

/*
 * Seals a piece that is to be appended, and says whether one just read is
 * what was sealed for this tape.
 */
extern void fms_tape_set_checksum(const FmsTape *tape, FmsChecksum *piece,
								  Size bytes);
extern bool fms_tape_checksum_holds(const FmsTape *tape,
									const FmsChecksum *piece, Size bytes);

/*
 * Raises ERRCODE_DATA_CORRUPTED for a piece that is not what was written.
 * The detail, if not NULL, is a palloc'd sentence.
 */
extern void fms_tape_report_corrupted(const FmsTape *tape,
									  const char *detail)
			__attribute__((noreturn));

/*
 * Checks that a block just read is the one that was asked for, is as it was
 * written, and that its header is sane.  ERRCODE_DATA_CORRUPTED otherwise.
 */
extern void fms_tape_check_block(const FmsTape *tape, const char *block,
								 uint32 run, uint32 number);

#endif							/* FMS_TAPE_H */
