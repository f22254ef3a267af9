/*-------------------------------------------------------------------------
 *
 * block.c
 *	  The format of a run's blocks.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "tape/block.h"

pg_noinline static void
report_bad_block(const FmsTape *tape, int file, const FmsBlockHeader *header,
				 uint32 run, uint32 number)
{
	fms_tape_report_corrupted(tape, file,
							  header->run == run && header->number == number ?
							  psprintf(_("Block %u of run %u has a wrong checksum."),
									   number, run) :
							  psprintf(_("Expected block %u of run %u, found block %u of run %u with magic %08X."),
									   number, run, header->number,
									   header->run, header->magic));
}

void
fms_block_check(const FmsTape *tape, int file, const char *block,
				uint32 block_bytes, uint32 run, uint32 number)
{
	const FmsBlockHeader *header = (const FmsBlockHeader *) block;
	uint32		magic = header->magic;

	if (unlikely(!fms_checksum_holds(&header->checksum, block_bytes,
									 tape->salt, tape->checksums) ||
				 (magic != FMS_BLOCK_PLAIN_MAGIC &&
				  magic != FMS_BLOCK_PACKED_MAGIC &&
				  magic != FMS_BLOCK_COMPRESSED_MAGIC) ||
				 header->run != run || header->number != number ||
				 header->used_bytes > block_bytes ||
				 header->used_bytes < sizeof(FmsBlockHeader) ||
				 header->continued_bytes >
				 (magic == FMS_BLOCK_PLAIN_MAGIC ?
				  fms_block_room(header->used_bytes) : 0)))
		report_bad_block(tape, file, header, run, number);
}
