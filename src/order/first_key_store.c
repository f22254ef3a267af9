/*-------------------------------------------------------------------------
 *
 * first_key_store.c
 *	  The first keys of all runs' blocks: noted while a run is written.
 *
 * Each chain of blocks has a first key of a few bytes, so their number grows
 * with the data while work_mem does not.  When a share of work_mem is full,
 * further first keys of each run go to a temporary file:
 *
 *	  run 0:  memory [k k k k k k]
 *	  run 1:  memory [k k k]  file [k k k][k k k][k k]
 *	  run 2:                  file [k k k][k k k][k k k]
 *	                               |<-->| chunk
 *
 * A key that is larger than a usual chunk gets a chunk of its own size.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "base/interrupts.h"
#include "order/first_key_store.h"

/* Size of a run's first chunk in memory; the next ones double it. */
#define CHUNK_MIN_BYTES		((Size) 256)

FmsFirstKeyStore *
fms_first_keys_create(FmsKeys *keys, FmsCounters *counters, Size share_bytes,
					  const FmsSharedFiles *shared)
{
	FmsFirstKeyStore *store = palloc0(sizeof(FmsFirstKeyStore));

	store->context = CurrentMemoryContext;
	store->keys = keys;
	store->counters = counters;
	store->share_bytes = share_bytes;
	store->shared = shared;
	return store;
}

void
fms_first_keys_destroy(FmsFirstKeyStore *store)
{
	if (store->file)
		fms_first_key_file_close(store->file);
	pfree(store);
}

void
fms_first_keys_hand_over(FmsFirstKeyStore *store)
{
	if (store->file)
		BufFileExportFileSet(store->file->file);
}

FmsFirstKeyMemory
fms_first_keys_memory(const FmsFirstKeyStore *store)
{
	return (FmsFirstKeyMemory) {
		.share_bytes = store->share_bytes,
		.memory_bytes = store->memory_bytes,
		.largest_bytes = store->file ? store->file->largest_bytes : 0
	};
}

/* Opens a chunk for key_bytes behind `last`, the run's last, or NULL. */
static void
open_chunk(FmsFirstKeyStore *store, FmsFirstKeys *first_keys,
		   FmsFirstKeyChunk *last, Size key_bytes)
{
	Size		least = sizeof(FmsFirstKeyChunk) + key_bytes;
	Size		size = Max(least, last == NULL ? CHUNK_MIN_BYTES :
						   Min(2 * (Size) last->size_bytes,
							   FMS_FIRST_KEY_CHUNK_BYTES));
	FmsFirstKeyChunk *chunk;

	if (fms_shared_files_are_workers(store->shared) ||
		store->memory_bytes + size > store->share_bytes)
		store->to_file = true;
	if (store->to_file)
		size = Max(least, FMS_FIRST_KEY_CHUNK_BYTES);
	chunk = MemoryContextAllocExtended(store->context, size, MCXT_ALLOC_HUGE);
	memset(chunk, 0, sizeof(*chunk));
	chunk->size_bytes = size;
	chunk->used_bytes = sizeof(*chunk);
	if (!store->to_file)
	{
		store->memory_bytes += size;
		if (last)
			last->next = chunk;
		else
			first_keys->first = chunk;
	}
	store->open = chunk;
	/* a chunk begins with a whole key */
	store->noted[store->last_noted].key_bytes = 0;
}

/* Closes the open chunk, if any.  Returns it if it stays in memory. */
static FmsFirstKeyChunk *
close_chunk(FmsFirstKeyStore *store, FmsFirstKeys *first_keys)
{
	FmsFirstKeyChunk *chunk = store->open;

	store->open = NULL;
	if (chunk == NULL || !store->to_file)
		return chunk;
	if (store->file == NULL)
	{
		MemoryContext caller = MemoryContextSwitchTo(store->context);

		store->file = fms_first_key_file_open(store->shared, store->counters);
		MemoryContextSwitchTo(caller);
	}
	fms_first_key_file_append(store->file, &first_keys->extent, chunk);
	pfree(chunk);
	return NULL;
}

void
fms_first_keys_note(FmsFirstKeyStore *store, FmsFirstKeys *first_keys,
					const FmsRecord *record, uint32 nblocks,
					uint32 rows_before)
{
	bool		exact = (record->flags & FMS_RECORD_EXACT) != 0;
	FmsFirstKey first_key;
	FmsFirstKeyChunk *chunk;
	FmsKeyWords *before = &store->noted[store->last_noted];
	FmsKeyWords *key = &store->noted[1 - store->last_noted];
	Size		max_bytes;
	char	   *end;

	Assert(nblocks >= 1);
	first_keys->nblocks += nblocks;
	if (!exact)
		record = fms_keys_make_first_key(store->keys, record);
	first_key.nblocks = nblocks;
	first_key.rows_before = rows_before;
	first_key.tuple_bytes = exact ? 0 : record->tuple_bytes;
	first_key.key_bytes = record->key_bytes;
	first_key.tuple = (const char *) fms_record_tuple(record) +
		FMS_TUPLE_SKIPPED_BYTES;
	max_bytes = fms_packed_max_bytes(&first_key);
	if (store->open == NULL ||
		store->open->size_bytes - store->open->used_bytes < max_bytes)
		open_chunk(store, first_keys, close_chunk(store, first_keys),
				   max_bytes);

	chunk = store->open;
	fms_key_words_take(key, record);
	end = fms_first_key_pack(&first_key, key, before,
							 (char *) chunk + chunk->used_bytes);
	store->last_noted = 1 - store->last_noted;
	chunk->used_bytes = end - (char *) chunk;
	Assert(chunk->used_bytes + FMS_PACKED_SLACK_BYTES <= chunk->size_bytes);
}

void
fms_first_keys_finish(FmsFirstKeyStore *store, FmsFirstKeys *first_keys)
{
	(void) close_chunk(store, first_keys);
	store->to_file = false;
}

void
fms_first_keys_forget(FmsFirstKeyStore *store, FmsFirstKeys *first_keys)
{
	FmsFirstKeyChunk *chunk = first_keys->first;
	Size		touched_bytes = 0;

	while (chunk)
	{
		FmsFirstKeyChunk *next = chunk->next;

		fms_interrupts_after(&touched_bytes, FMS_INTERRUPT_RECORD_BYTES);
		/* an error in the next check finds only chunks that are there */
		first_keys->first = next;
		store->memory_bytes -= chunk->size_bytes;
		pfree(chunk);
		chunk = next;
	}
	memset(first_keys, 0, sizeof(*first_keys));
}
