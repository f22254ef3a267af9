/*-------------------------------------------------------------------------
 *
 * checksum.c
 *	  Salt and checksum at the beginning of every piece of a temporary file.
 *
 *	  | crc | salt | header of the piece | contents | padding |
 *	        |<------------ covered by the crc --------------->|
 *
 * The merge hands out tuples where they lie in the buffer, so bytes that the
 * device returns wrongly would be a wrong answer or a crash.  The crc finds
 * bytes that were never one piece.  The salt finds an intact piece of another
 * file, or of an earlier file in the same place.  The piece's header (run and
 * number) finds an intact piece from elsewhere in the same file.
 *
 * The crc costs about 0.1 s a GB in each direction, so it is a choice
 * (fmsort.checksums).  The salt is always checked.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "common/pg_prng.h"
#include "port/pg_crc32c.h"

#include "base/checksum.h"

static uint32
crc_of(const FmsChecksum *checksum, Size bytes)
{
	pg_crc32c	crc;

	INIT_CRC32C(crc);
	COMP_CRC32C(crc, &checksum->salt, bytes - sizeof(checksum->crc));
	FIN_CRC32C(crc);
	return crc;
}

uint32
fms_checksum_new_salt(void)
{
	return pg_prng_uint32(&pg_global_prng_state);
}

void
fms_checksum_set(FmsChecksum *checksum, Size bytes, uint32 salt, bool with_crc)
{
	checksum->salt = salt;
	checksum->crc = with_crc ? crc_of(checksum, bytes) : 0;
}

bool
fms_checksum_holds(const FmsChecksum *checksum, Size bytes, uint32 salt,
				   bool with_crc)
{
	return checksum->salt == salt &&
		checksum->crc == (with_crc ? crc_of(checksum, bytes) : 0);
}
