/*-------------------------------------------------------------------------
 *
 * first_key_reader.h
 *	  Reads one run's first keys in sequence.
 *
 *-------------------------------------------------------------------------
 */
#ifndef FMS_FIRST_KEY_READER_H
#define FMS_FIRST_KEY_READER_H

#include "postgres.h"

#include "keys/entry.h"
#include "order/first_key_store.h"

typedef struct FmsFirstKeyReader FmsFirstKeyReader;

/* Memory of a reader at most, its buffer included. */
extern Size fms_first_key_reader_bytes(const FmsFirstKeyMemory *memory,
									   FmsFirstKeyReading reading);

/* Size of the reader's buffer; 0 while all first keys are in memory. */
extern Size fms_first_key_reader_buffer_bytes(const FmsFirstKeyStore *store,
											  FmsFirstKeyReading reading);

/* Memory of a run's two readers if first keys are on tape. */
extern Size fms_first_keys_run_bytes(Size share_bytes);

/*
 * Opens a reader in the current context.  The caller maps the buffer through
 * the store's channel.  If the run's keys are all on tape, the first read is
 * collected: open all readers before any is started.
 */
extern FmsFirstKeyReader *
fms_first_key_reader_open(FmsFirstKeyStore *store,
						  const FmsFirstKeys *first_keys,
						  FmsFirstKeyReading reading, char *buffer);

/* Moves to the first key. */
extern void fms_first_key_reader_start(FmsFirstKeyReader *reader);

/* Frees the reader.  Nothing may be in flight: unmap the buffer first. */
extern void fms_first_key_reader_close(FmsFirstKeyReader *reader);

/*
 * Returns a record of the next first key, and sets nblocks to the number of
 * blocks in the chain that the key's record begins.  NULL after the last key.
 * Valid until the next call.
 */
extern const FmsRecord *fms_first_key_reader_next(FmsFirstKeyReader *reader,
												  uint32 *nblocks);

/*
 * Returns the prefixes of the next first keys as entries of that offset: at
 * most n, 0 after the last key.  For keys whose prefixes decide.  Only the
 * last of them may begin a chain; nblocks is the chain's length.
 */
extern int	fms_first_key_reader_take(FmsFirstKeyReader *reader,
									  FmsEntry *entries, int n, uint64 offset,
									  uint32 *nblocks);

/*
 * Prefetches the next key.  The caller has prefetched the reader itself, which
 * has all that a plain key needs in its first cache line.
 */
extern void fms_first_key_reader_prefetch(const FmsFirstKeyReader *reader);

#endif							/* FMS_FIRST_KEY_READER_H */
