/*-------------------------------------------------------------------------
 *
 * first_key_store.c
 *	  The first keys of all runs' blocks: noted while a run is written.
 *
 * Each chain of blocks has a first key of a few bytes, so their number grows
 * with the data while work_mem does not.  First keys stay in memory up to a
 * share of it.  From there on, a run's further ones go to a tape:
 *
 *	  run 0:  memory [k k k k k k]
 *	  run 1:  memory [k k k]  tape [k k k][k k k][k k]
 *	  run 2:                  tape [k k k][k k k][k k k]
 *	                               |<-->| chunk
 *
 * Chunks in memory are palloc'd in the store's context.  On ERROR nothing is
 * done here: see io.c.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "base/interrupts.h"
#include "order/first_key_store.h"

/* Size of a run's first chunk in memory; the next ones double it. */
#define CHUNK_MIN_BYTES		((Size) 256)

FmsFirstKeyStore *
fms_first_keys_create(FmsKeys *keys, FmsIo *io, Size share_bytes)
{
	FmsFirstKeyStore *store = palloc0(sizeof(FmsFirstKeyStore));

	store->context = CurrentMemoryContext;
	store->keys = keys;
	store->share_bytes = share_bytes;
	fms_first_key_tape_init(&store->tape, io, share_bytes);
	return store;
}

void
fms_first_keys_destroy(FmsFirstKeyStore *store)
{
	fms_first_key_tape_close(&store->tape);
	pfree(store);
}

FmsFirstKeyMemory
fms_first_keys_memory(const FmsFirstKeyStore *store)
{
	const FmsFirstKeyTape *tape = &store->tape;

	return (FmsFirstKeyMemory) {
		.share_bytes = store->share_bytes,
		.memory_bytes = store->memory_bytes +
			(tape->buffer ? fms_write_buffer_bytes(tape->buffer) : 0),
		.largest_bytes = tape->largest_bytes,
		.on_tape = tape->tape != NULL,
		.prefix_decides = fms_keys_prefix_decides(store->keys)
	};
}

void
fms_first_keys_count(FmsFirstKeyStore *store, FmsCounters *counters)
{
	FmsFirstKeyTape *tape = &store->tape;
	FmsTapeUse	use;
	uint64		end_bytes;

	if (tape->tape == NULL)
		return;
	use = *fms_tape_use(tape->tape);
	end_bytes = fms_tape_end(tape->tape);
	fms_count(counters, FMS_COUNT_READ_BYTES,
			  use.read_bytes - tape->counted.read_bytes);
	fms_count(counters, FMS_COUNT_WRITTEN_BYTES,
			  use.written_bytes - tape->counted.written_bytes);
	fms_count(counters, FMS_COUNT_SPILLED_BYTES,
			  end_bytes - tape->counted_bytes);
	tape->counted = use;
	tape->counted_bytes = end_bytes;
}

void
fms_first_keys_flush(FmsFirstKeyStore *store)
{
	Assert(store->open == NULL);
	fms_first_key_tape_flush(&store->tape);
}

/*
 * A further chunk of the run in memory, with room for key_bytes; NULL if the
 * share does not allow one.
 */
static FmsFirstKeyChunk *
new_memory_chunk(FmsFirstKeyStore *store, FmsFirstKeys *first_keys,
				 Size key_bytes)
{
	FmsFirstKeyChunk *last = store->open;
	Size		size = last == NULL ? CHUNK_MIN_BYTES :
		Min(store->tape.chunk_bytes, (Size) 2 * last->size_bytes);
	FmsFirstKeyChunk *chunk;

	size = Max(size, sizeof(FmsFirstKeyChunk) + key_bytes);
	if (store->memory_bytes + size > store->share_bytes)
		return NULL;
	chunk = MemoryContextAllocExtended(store->context, size, MCXT_ALLOC_HUGE);
	fms_first_key_chunk_init(chunk, 0, size);
	store->memory_bytes += size;
	if (last)
		last->next = chunk;
	else
		first_keys->first = chunk;
	return chunk;
}

/* Opens a chunk with room for key_bytes, in place of the open one, if any. */
static void
open_chunk(FmsFirstKeyStore *store, FmsFirstKeys *first_keys, Size key_bytes)
{
	FmsFirstKeyChunk *chunk = NULL;

	if (first_keys->tape_bytes == 0)
		chunk = new_memory_chunk(store, first_keys, key_bytes);
	else
		fms_first_key_tape_end(&store->tape, store->open);
	if (chunk == NULL && first_keys->tape_bytes == 0)
	{
		first_keys->tape_offset_bytes =
			fms_first_key_tape_offset(&store->tape);
		/* the true size is known when the run ends */
		first_keys->tape_bytes = 1;
	}
	store->open = chunk ? chunk :
		fms_first_key_tape_begin(&store->tape, key_bytes);
	/* a chunk begins with a whole key */
	store->noted[store->last_noted].key_bytes = 0;
}

void
fms_first_keys_note(FmsFirstKeyStore *store, FmsFirstKeys *first_keys,
					const FmsRecord *record, uint32 nblocks)
{
	bool		exact = (record->flags & FMS_RECORD_EXACT) != 0;
	FmsFirstKey first_key;
	FmsFirstKeyChunk *chunk;
	FmsKeyWords *before = &store->noted[store->last_noted];
	FmsKeyWords *key = &store->noted[1 - store->last_noted];
	Size		max_bytes;
	char	   *end;

	Assert(nblocks >= 1);
	if (!exact)
		record = fms_keys_make_first_key(store->keys, record);
	first_key.nblocks = nblocks;
	first_key.tuple_bytes = exact ? 0 : record->tuple_bytes;
	first_key.key_bytes = record->key_bytes;
	first_key.tuple = (const char *) fms_record_tuple(record) +
		FMS_TUPLE_SKIPPED_BYTES;
	max_bytes = fms_packed_max_bytes(&first_key);
	if (store->open == NULL ||
		store->open->size_bytes - store->open->used_bytes < max_bytes)
		open_chunk(store, first_keys, max_bytes);

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
	if (first_keys->tape_bytes > 0)
	{
		fms_first_key_tape_end(&store->tape, store->open);
		first_keys->tape_bytes = fms_first_key_tape_offset(&store->tape) -
			first_keys->tape_offset_bytes;
		fms_write_buffer_end_page(store->tape.buffer);
	}
	store->open = NULL;
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
