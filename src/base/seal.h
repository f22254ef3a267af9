/*-------------------------------------------------------------------------
 *
 * seal.h
 *	  What every piece of a temporary file begins with, so that bytes which
 *	  are not what was written there are noticed.
 *
 *-------------------------------------------------------------------------
 */
#ifndef FMS_SEAL_H
#define FMS_SEAL_H

#include "c.h"

typedef struct FmsSeal
{
	uint32		checksum;		/* CRC32C of the rest of the piece, or 0 */
	uint32		salt;			/* of the tape: no other one's piece has it */
} FmsSeal;

StaticAssertDecl(sizeof(FmsSeal) == 8 && offsetof(FmsSeal, checksum) == 0,
				 "seals go to disk: the checksum covers what follows it");

/* A salt for a new tape.  Random, as earlier files are not known. */
extern uint32 fms_seal_new_salt(void);

/*
 * Seals a piece of so many bytes, which begins with the seal and is complete
 * but for it.
 */
extern void fms_seal_close(FmsSeal *seal, Size bytes, uint32 salt,
						   bool checksum);

/*
 * Are these the bytes that were sealed with that salt?  Without a checksum,
 * only the salt can tell.
 */
extern bool fms_seal_holds(const FmsSeal *seal, Size bytes, uint32 salt,
						   bool checksum);

#endif							/* FMS_SEAL_H */
