/*-------------------------------------------------------------------------
 *
 * block.h
 *	  The format of a run's blocks.
 *
 *-------------------------------------------------------------------------
 */
#ifndef FMS_BLOCK_H
#define FMS_BLOCK_H

#include "postgres.h"

#include "base/checksum.h"
#include "tape/tape.h"

/*
 * The header names the block, so that a stale or misplaced block is an error
 * and never a wrong answer.  The magic number says which form the block has:
 *
 *	  | header | continued_bytes | record | record | ... | unused |
 *	  | header | packed record | packed record | ...  .. | unused |
 *	  | header | compressed chunk | compressed chunk | . | unused |
 *	  |<---------------------- used_bytes -------------->|
 */
typedef struct FmsBlockHeader
{
	FmsChecksum checksum;
	uint32		magic;			/* FMS_BLOCK_..._MAGIC */
	uint32		run;			/* id of the run it belongs to */
	uint32		number;			/* position in that run, from 0 */
	uint32		used_bytes;		/* header included */
	uint32		continued_bytes;	/* of a record that began in an earlier
									 * block; 0: starts with a record */
	uint32		records;		/* number of records that begin here */
} FmsBlockHeader;

#define FMS_BLOCK_PLAIN_MAGIC 0x464D5342	/* "FMSB" */
#define FMS_BLOCK_PACKED_MAGIC 0x464D5350	/* "FMSP" */
#define FMS_BLOCK_COMPRESSED_MAGIC 0x464D5343	/* "FMSC" */

StaticAssertDecl(sizeof(FmsBlockHeader) == 32 &&
				 offsetof(FmsBlockHeader, checksum) == 0,
				 "blocks go to disk: their header must not be padded");

/* Room for records in a block of block_bytes. */
static inline uint32
fms_block_room(uint32 block_bytes)
{
	return block_bytes - sizeof(FmsBlockHeader);
}

/* Raises an error unless it is the run's block `number`, as it was written. */
extern void fms_block_check(const FmsTape *tape, int file, const char *block,
							uint32 block_bytes, uint32 run, uint32 number);

#endif							/* FMS_BLOCK_H */
