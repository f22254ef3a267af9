/*-------------------------------------------------------------------------
 *
 * first_key_store.h
 *	  The first keys of a run's blocks: noted while the run is written, read
 *	  back in the same order while it is merged.
 *
 *-------------------------------------------------------------------------
 */
#ifndef FMS_FIRST_KEY_STORE_H
#define FMS_FIRST_KEY_STORE_H

#include "postgres.h"

#include "base/counters.h"
#include "keys/entry.h"
#include "io/io.h"
#include "keys/keys.h"
#include "tape/tape.h"

/*
 * Where one run's first keys are: some in memory, the ones after them on tape.
 */
typedef struct FmsFirstKeys
{
	struct FmsFirstKeyChunk *first;	/* in memory */
	struct FmsFirstKeyChunk *last;
	uint64		tape_offset_bytes;	/* of the chunks on tape */
	uint64		tape_bytes;		/* of them; 0: all are in memory */
} FmsFirstKeys;

/* What the first keys of all runs of a sort share. */
typedef struct FmsFirstKeyStore FmsFirstKeyStore;

/*
 * An empty store in the current context, which must be the one whose owner
 * drains the channel.  First keys of all runs together take at most
 * share_bytes of memory (and a buffer's worth); then a tape of their own is
 * opened.
 */
extern FmsFirstKeyStore *fms_first_keys_create(FmsKeys *keys, FmsIo *io,
										Size share_bytes);

/*
 * Closes its tape and frees it, but not the first keys in memory, which go
 * with the context.  The channel has been closed, or will be without further
 * use.
 */
extern void fms_first_keys_destroy(FmsFirstKeyStore *store);

/*
 * What a run takes in a merge if first keys are on tape, with a reader ahead
 * and one behind, and what that tape takes.
 */
extern Size fms_first_keys_run_bytes(Size share_bytes);
extern Size fms_first_keys_tape_bytes(void);

/* The numbers of a store that decide how much memory a merge needs. */
typedef struct FmsFirstKeyMemory
{
	Size		share_bytes;	/* as created; 0: there is no store yet */
	Size		memory_bytes;	/* taken now */
	Size		largest_bytes;	/* largest first key on tape */
	bool		on_tape;		/* some first keys are on tape */
	bool		prefix_decides; /* see fms_keys_prefix_decides() */
} FmsFirstKeyMemory;

extern FmsFirstKeyMemory fms_first_keys_memory(const FmsFirstKeyStore *store);

/* Adds what the store's own tape did, and how long that took. */
extern void fms_first_keys_count(FmsFirstKeyStore *store,
							 FmsCounters *counters);

/*
 * Algorithm 1, lines 7 and 8: notes that the run's next block starts with
 * this record, and that the record extends over so many blocks (usually 1).
 * Only one run at a time can be noting; its list starts zeroed.
 */
extern void fms_first_keys_note(FmsFirstKeyStore *store,
								FmsFirstKeys *first_keys,
								const FmsRecord *record, uint32 nblocks);

/* The key that would be noted of this record; valid until the next note. */
extern const FmsRecord *fms_first_keys_key(const FmsFirstKeyStore *store,
									   const FmsRecord *record);

/* The run is complete. */
extern void fms_first_keys_finish(FmsFirstKeyStore *store,
								  FmsFirstKeys *first_keys);

/* Everything noted is where it can be read. */
extern void fms_first_keys_flush(FmsFirstKeyStore *store);

/* Frees a run's first keys: the run has been merged into another one. */
extern void fms_first_keys_forget(FmsFirstKeyStore *store,
								  FmsFirstKeys *first_keys);

typedef struct FmsFirstKeyReader FmsFirstKeyReader;

/*
 * A reader of one run's first keys: how many chunks of those on tape has it
 * room for?
 */
typedef enum FmsFirstKeyReading
{
	FMS_FIRST_KEYS_BEHIND = 1,	/* follows another reader, so finds its chunks
								 * in the page cache: one buffer */
	FMS_FIRST_KEYS_AHEAD = 2	/* reads the next chunk meanwhile */
} FmsFirstKeyReading;

/* What it may take, its buffer included. */
extern Size fms_first_key_reader_bytes(const FmsFirstKeyMemory *memory,
									   FmsFirstKeyReading reading);

/* Size of that buffer; 0 while all first keys are in memory. */
extern Size fms_first_key_reader_buffer_bytes(const FmsFirstKeyStore *store,
										  FmsFirstKeyReading reading);
extern FmsIo *fms_first_keys_io(const FmsFirstKeyStore *store);

/* What it was created with. */
extern Size fms_first_keys_share_bytes(const FmsFirstKeyStore *store);

/*
 * Current context.  The buffer is the caller's, mapped through the store's
 * channel.  If the first first key has to be read from tape, that is asked for
 * together with what further readers need, which may be opened before any is
 * started.
 */
extern FmsFirstKeyReader *fms_first_key_reader_open(FmsFirstKeyStore *store,
											 const FmsFirstKeys *first_keys,
											 FmsFirstKeyReading reading,
											 char *buffer);

/* Stands at the first first key now. */
extern void fms_first_key_reader_start(FmsFirstKeyReader *reader);

/* Nothing may be in flight: unmap the buffer first, which sees to that. */
extern void fms_first_key_reader_close(FmsFirstKeyReader *reader);

/*
 * The record of the next first key's key, and over how many blocks the record
 * extends that it is of; valid until the next one.  NULL after the last one.
 */
extern const FmsRecord *fms_first_key_reader_next(FmsFirstKeyReader *reader,
											  uint32 *nblocks);

/*
 * Likewise up to n of them at once, for keys whose prefixes decide: of each
 * the prefix, with `back` behind it.  Returns how many; 0 after the last one.
 * All but the last of them are of one block each.
 */
extern int fms_first_key_reader_take(FmsFirstKeyReader *reader,
									 FmsEntry *entries, int n, uint64 back,
									 uint32 *nblocks);

/*
 * Somebody is about to ask for a first key.  To fetch the reader itself, a
 * line of the processor's caches, is up to him.
 */
extern void fms_first_key_reader_prefetch(const FmsFirstKeyReader *reader);

#endif							/* FMS_FIRST_KEY_STORE_H */
