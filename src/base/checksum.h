/*-------------------------------------------------------------------------
 *
 * checksum.h
 *	  Salt and checksum at the beginning of every piece of a temporary file.
 *
 *-------------------------------------------------------------------------
 */
#ifndef FMS_CHECKSUM_H
#define FMS_CHECKSUM_H

#include "c.h"

typedef struct FmsChecksum
{
	uint32		crc;			/* CRC32C of the rest of the piece; 0 without
								 * checksums */
	uint32		salt;			/* of the tape, which no other tape has */
} FmsChecksum;

StaticAssertDecl(sizeof(FmsChecksum) == 8 && offsetof(FmsChecksum, crc) == 0,
				 "checksums go to disk: crc covers what follows it");

/* A random salt for a new tape. */
extern uint32 fms_checksum_new_salt(void);

/*
 * Fills in the checksum of a complete piece of `bytes` bytes that begins with
 * it.  with_crc: fmsort.checksums is on.
 */
extern void fms_checksum_set(FmsChecksum *checksum, Size bytes, uint32 salt,
							 bool with_crc);

/* Is the piece what fms_checksum_set() was given with the same salt? */
extern bool fms_checksum_holds(const FmsChecksum *checksum, Size bytes,
							   uint32 salt, bool with_crc);

#endif							/* FMS_CHECKSUM_H */
