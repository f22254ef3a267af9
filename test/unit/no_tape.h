/*
 * no_tape.h
 *	  A tape that no test reaches, for programs that link what would use one.
 */
#ifndef FMS_NO_TAPE_H
#define FMS_NO_TAPE_H

#include "postgres.h"

#include "tape/block.h"
#include "tape/tape.h"

#define NEVER_CALLED(type, function, arguments) \
	type function arguments { abort(); }

NEVER_CALLED(FmsTape *, fms_tape_open,
			 (FmsIo *io, uint32 block_bytes, bool checksums,
			  const FmsSharedFiles *shared, FmsCounters *counters))
NEVER_CALLED(void, fms_tape_close, (FmsTape *tape))
NEVER_CALLED(bool, fms_tape_is_direct, (const FmsTape *tape))
NEVER_CALLED(void, fms_tape_append,
			 (FmsTape *tape, FmsIoRequest *request, char *buffer,
			  uint32 length_bytes))
NEVER_CALLED(void, fms_tape_trim, (FmsTape *tape))
NEVER_CALLED(bool, fms_tape_has_free, (FmsTape *tape, Size bytes))
NEVER_CALLED(void, fms_tape_move_on, (FmsTape *tape, Size bytes))
NEVER_CALLED(void, fms_tape_free,
			 (FmsTape *tape, uint64 address, Size length_bytes))
NEVER_CALLED(void, fms_tape_read,
			 (FmsTape *tape, FmsIoRequest **requests, int n))
NEVER_CALLED(bool, fms_tape_is_late, (FmsTape *tape, FmsIoRequest *request))
NEVER_CALLED(void, fms_tape_wait, (FmsTape *tape, FmsIoRequest *request))
NEVER_CALLED(void, fms_tape_report_corrupted,
			 (const FmsTape *tape, int file, const char *detail))
NEVER_CALLED(void, fms_block_check,
			 (const FmsTape *tape, int file, const char *block,
			  uint32 block_bytes, uint32 run, uint32 number))

#endif							/* FMS_NO_TAPE_H */
