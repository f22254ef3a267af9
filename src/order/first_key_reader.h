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

#include "order/first_key_store.h"

typedef struct FmsFirstKeyReader FmsFirstKeyReader;

/* Memory of a reader at most, in bytes. */
extern Size fms_first_key_reader_bytes(const FmsFirstKeyMemory *memory);

/* Memory of a run's two readers if first keys are in the file, in bytes. */
extern Size fms_first_keys_run_bytes(void);

/*
 * Opens a reader in the current context, at the run's first key.  The run must
 * be complete, and first_keys must stay unchanged.  file: where the store of
 * the first keys has some of them, or NULL.
 */
extern FmsFirstKeyReader *
fms_first_key_reader_open(FmsFirstKeyFile *file,
						  const FmsFirstKeys *first_keys);

/* Frees the reader. */
extern void fms_first_key_reader_close(FmsFirstKeyReader *reader);

/*
 * Returns a record of the next first key, and sets nblocks to the number of
 * blocks in the chain that the key's record begins, rows_before to that of the
 * records since the key before.  NULL after the last key.  Valid until the
 * next call.
 */
extern const FmsRecord *fms_first_key_reader_next(FmsFirstKeyReader *reader,
												  uint32 *nblocks,
												  uint32 *rows_before);

/*
 * Prefetches the next key.  The caller has prefetched the reader itself, which
 * has all that a plain key needs in its first cache line.
 */
extern void fms_first_key_reader_prefetch(const FmsFirstKeyReader *reader);

/*
 * Copies a run's first keys, all of them in the file of another store, into
 * this store.  *first_keys then has the copies.
 */
extern void fms_first_keys_adopt(FmsFirstKeyStore *store,
								 FmsFirstKeyFile *file,
								 FmsFirstKeys *first_keys);

#endif							/* FMS_FIRST_KEY_READER_H */
