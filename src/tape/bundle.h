/*-------------------------------------------------------------------------
 *
 * bundle.h
 *	  Records compressed together: what the blocks of a compressed run hold.
 *
 *-------------------------------------------------------------------------
 */
#ifndef FMS_BUNDLE_H
#define FMS_BUNDLE_H

#include "postgres.h"

#include "keys/record.h"

/* A bundle on disk begins with this. */
typedef struct FmsBundle
{
	uint16		stored_bytes;	/* that follow; as many as record_bytes: not
								 * compressed, it would have gained nothing */
	uint16		record_bytes;	/* of the records, side by side */
	uint32		records;		/* how many; at least one */
} FmsBundle;

StaticAssertDecl(sizeof(FmsBundle) == MAXIMUM_ALIGNOF,
				 "bundles go to disk: their header must not be padded");

/* Of a block, at most: that is what unpacking takes. */
#define FMS_BUNDLE_MAX_SHARE	0.25

/*
 * Bytes of records that a bundle holds at most, in blocks of that size.  What
 * unpacks it needs as much memory, MAXALIGNed.
 */
extern uint32 fms_bundle_capacity(uint32 block_bytes);

/* What it takes of a block; the next one begins there. */
static inline uint32
fms_bundle_size(const FmsBundle *bundle)
{
	return sizeof(FmsBundle) + MAXALIGN(bundle->stored_bytes);
}

/*
 * Unpacks a bundle, of which left_bytes are there to be read, and says whether
 * it could have been made by fms_bundler_close(): whatever the bytes are,
 * nothing is read or written outside.
 */
extern bool fms_bundle_unpack(const FmsBundle *bundle, uint32 left_bytes,
							  char *records, uint32 capacity);

/* Makes bundles, one after the other. */
typedef struct FmsBundler FmsBundler;

/*
 * Current context; pfree() is all it takes to be rid of it.  It takes 33 kB at
 * most, which count against nothing.
 */
extern FmsBundler *fms_bundler_create(uint32 capacity);

/* Can this record be part of a bundle at all? */
extern bool fms_bundler_takes(const FmsBundler *bundler,
							  const FmsRecord *record);

/* Adds a copy of it.  False, and nothing changes: this bundle is full. */
extern bool fms_bundler_add(FmsBundler *bundler, const FmsRecord *record);

extern bool fms_bundler_is_empty(const FmsBundler *bundler);

/*
 * Compresses what has been added, and begins the next bundle.  The bundle and
 * what first() and last() return stay until the next add().
 */
extern const FmsBundle *fms_bundler_close(FmsBundler *bundler);
extern const FmsRecord *fms_bundler_first(const FmsBundler *bundler);
extern const FmsRecord *fms_bundler_last(const FmsBundler *bundler);

#endif							/* FMS_BUNDLE_H */
