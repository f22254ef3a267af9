/*-------------------------------------------------------------------------
 *
 * tape.h
 *	  A temporary file that is written at its end and read anywhere, both
 *	  asynchronously, and the format of the blocks in it.
 *
 *-------------------------------------------------------------------------
 */
#ifndef FMS_TAPE_H
#define FMS_TAPE_H

#include "postgres.h"

#include "counters.h"
#include "io.h"
#include "seal.h"

/*
 * Every block begins with this.  It names the block and seals it, so that a
 * wrong or stale one is an error and never a wrong answer.
 *
 *	  | header | continued_bytes | record | record | ... | unused |
 *	  | header | bundle of records | bundle | .......... | unused |
 *	  |<---------------------- used_bytes -------------->|
 *
 * Its magic number says which of both it is.
 */
typedef struct FmsBlockHeader
{
	FmsSeal		seal;
	uint32		magic;			/* FMS_BLOCK_MAGIC or _BUNDLED_MAGIC */
	uint32		run;			/* id of the run it belongs to */
	uint32		number;			/* position in that run, from 0 */
	uint32		used_bytes;		/* header included */
	uint32		continued_bytes;	/* of a record that began in an earlier
									 * block; 0: starts with a record */
	uint32		records;		/* that begin in this block */
} FmsBlockHeader;

#define FMS_BLOCK_MAGIC 0x464D5342	/* "FMSB" */
#define FMS_BLOCK_BUNDLED_MAGIC 0x464D5343	/* "FMSC" */

StaticAssertDecl(sizeof(FmsBlockHeader) == 32 &&
				 offsetof(FmsBlockHeader, seal) == 0,
				 "blocks go to disk: their header must not be padded");

/* Room for records in a block of that size. */
static inline uint32
fms_block_room(uint32 block_bytes)
{
	return block_bytes - sizeof(FmsBlockHeader);
}

/* Does it hold bundles (bundle.h), not records? */
static inline bool
fms_block_is_bundled(const FmsBlockHeader *header)
{
	return header->magic == FMS_BLOCK_BUNDLED_MAGIC;
}

typedef struct FmsTape FmsTape;

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
 * Starts writing at the end of the tape, and moves the end.  Length must be
 * a multiple of FMS_IO_ALIGN_BYTES.  Raises temp_file_limit's error, or one
 * for a full disk if that is known already (else fms_tape_wait() does).
 */
extern void fms_tape_append(FmsTape *tape, FmsIoRequest *request,
							char *buffer, uint32 length_bytes);
extern uint64 fms_tape_end(const FmsTape *tape);

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
 * In which pieces is space best given back?  Past the page cache in large
 * ones, of this: each is a change of the file's map, and holds up the reads
 * that are going on.  From the page cache in small ones, as a merge of many
 * runs stands in the middle of a piece of each, and what is kept there is
 * memory: a pass that writes as it reads takes new memory for as much.
 */
#define FMS_TAPE_GIVE_BACK_BYTES	((Size) 4 * 1024 * 1024)

extern Size fms_tape_give_back_bytes(const FmsTape *tape,
									 uint64 offset_bytes);

/*
 * What lies there is not needed any more: its whole pages' space goes back to
 * the file system.  temp_file_limit counts it all the same.  Must not be in
 * flight.  False: the file system cannot do it.
 */
extern bool fms_tape_give_back(FmsTape *tape, uint64 offset_bytes,
							   Size length_bytes);

/* Starts reads; offset, length and buffer stand in the requests. */
extern void fms_tape_read(FmsTape *tape, FmsIoRequest **requests, int n);

/* Starts writes likewise, over what is on the tape: not past its end. */
extern void fms_tape_overwrite(FmsTape *tape, FmsIoRequest **requests, int n);

/*
 * Waits until the request is done, allowing interrupts, and returns it to
 * IDLE.  Raises an error if the transfer failed.  Adds what it waited to
 * blocked_us if it is a read.
 */
extern void fms_tape_wait(FmsTape *tape, FmsIoRequest *request);

/*
 * Seals a piece that is to be appended, and says whether one just read is
 * what was sealed for this tape.
 */
extern void fms_tape_seal(const FmsTape *tape, FmsSeal *piece, Size bytes);
extern bool fms_tape_seal_holds(const FmsTape *tape, const FmsSeal *piece,
								Size bytes);

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
