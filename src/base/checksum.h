/*-------------------------------------------------------------------------
 *
 * checksum.h
 *	  Salt and checksum at the beginning of every unit of a temporary file: a
 *	  block, or a chunk of first keys.
 *
 * The merge returns tuples in its input buffer, so wrong bytes from the device
 * would be a wrong answer or a crash.  The CRC detects changed bytes and costs
 * about 0.1 s a GB in each direction, so it is optional (fmsort.checksums).
 * The salt, which is always checked, detects a unit of another file; the
 * unit's own header (run and number) one from another place of the same file.
 *
 *-------------------------------------------------------------------------
 */
#ifndef FMS_CHECKSUM_H
#define FMS_CHECKSUM_H

#include "common/pg_prng.h"
#include "port/pg_crc32c.h"

typedef struct FmsChecksum
{
	uint32		crc;			/* CRC32C of what follows; 0: no checksums */
	uint32		salt;			/* of the file, which no other file has */
} FmsChecksum;

StaticAssertDecl(sizeof(FmsChecksum) == 8 && offsetof(FmsChecksum, crc) == 0,
				 "checksums go to disk: crc covers what follows it");

static inline uint32
fms_checksum_new_salt(void)
{
	return pg_prng_uint32(&pg_global_prng_state);
}

static inline uint32
fms_checksum_crc(const FmsChecksum *checksum, Size bytes)
{
	pg_crc32c	crc;

	INIT_CRC32C(crc);
	COMP_CRC32C(crc, &checksum->salt, bytes - sizeof(checksum->crc));
	FIN_CRC32C(crc);
	return crc;
}

/* Completes a unit of `bytes` bytes.  with_crc: fmsort.checksums is on. */
static inline void
fms_checksum_set(FmsChecksum *checksum, Size bytes, uint32 salt, bool with_crc)
{
	checksum->salt = salt;
	checksum->crc = with_crc ? fms_checksum_crc(checksum, bytes) : 0;
}

/* Is the unit what fms_checksum_set() was given with the same salt? */
static inline bool
fms_checksum_holds(const FmsChecksum *checksum, Size bytes, uint32 salt,
				   bool with_crc)
{
	return checksum->salt == salt &&
		checksum->crc == (with_crc ? fms_checksum_crc(checksum, bytes) : 0);
}

#endif							/* FMS_CHECKSUM_H */
