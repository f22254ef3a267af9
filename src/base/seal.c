/*-------------------------------------------------------------------------
 *
 * seal.c
 *	  What every piece of a temporary file begins with, so that bytes which
 *	  are not what was written there are noticed.
 *
 * A device may return what it was not given: a flipped bit, a page that was
 * never written, a page of the file that had the place before.  The merge
 * hands out tuples in place, so such bytes would be a wrong answer or a crash.
 *
 *	  | checksum | salt | header of the piece | contents | padding |
 *	             |<------------- covered by the checksum --------->|
 *
 * The checksum finds bytes that were never one piece.  The salt finds a whole
 * and intact piece of another sort, or of an earlier one in the same place;
 * what the piece says of itself (run, number) finds one from elsewhere in the
 * same file.  Padding is covered, too: it costs little, and the check does
 * not have to trust a length before it knows that the length is right.
 *
 * CRC32C, because the server brings it for every processor, in hardware where
 * that has it.  It guards against accidents.  Who can write to the server's
 * files can forge it, and can do worse.
 *
 * Even so it takes about 0.1 s a GB, twice, which is more than anything else
 * that happens to a block between memory and tape.  So the checksum of blocks
 * is a choice (fmsort.checksums); the salt is always there.
 *
 * Nothing is owned and nothing can fail.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "common/pg_prng.h"
#include "port/pg_crc32c.h"

#include "base/seal.h"

static uint32
checksum_of(const FmsSeal *seal, Size bytes)
{
	pg_crc32c	crc;

	INIT_CRC32C(crc);
	COMP_CRC32C(crc, &seal->salt, bytes - sizeof(seal->checksum));
	FIN_CRC32C(crc);
	return crc;
}

uint32
fms_seal_new_salt(void)
{
	return pg_prng_uint32(&pg_global_prng_state);
}

void
fms_seal_close(FmsSeal *seal, Size bytes, uint32 salt, bool checksum)
{
	seal->salt = salt;
	seal->checksum = checksum ? checksum_of(seal, bytes) : 0;
}

bool
fms_seal_holds(const FmsSeal *seal, Size bytes, uint32 salt, bool checksum)
{
	return seal->salt == salt &&
		seal->checksum == (checksum ? checksum_of(seal, bytes) : 0);
}
