/*-------------------------------------------------------------------------
 *
 * first_key_reader.c
 *	  Reads one run's first keys in sequence.
 *
 *	  memory [k k k]->[k k k k k k]   tape [k k k k k k][k k k]
 *	                     ^ at    ^ end
 *
 * The reader returns keys one by one as records, for the merge and for the
 * tree of losers, or several at once as entries, for the radix order.
 *
 * Memory is palloc'd in the context of creation.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "order/first_key_reader.h"

/* Size of a processor's cache line. */
#define LINE_BYTES			64
/* Longest room for a tuple, in bytes, that is kept for short ones. */
#define WHOLE_LONG_BYTES	((Size) 256)

/* The record of a key that decides comparisons alone. */
typedef struct FmsKeyRecord
{
	FmsRecord	header;
	char		key[FMS_FIRST_KEY_WORDS * sizeof(uint64)];
} FmsKeyRecord;

StaticAssertDecl(offsetof(FmsKeyRecord, key) == sizeof(FmsRecord),
				 "a record's key follows its header");

struct FmsFirstKeyReader
{
	/* the first cache line: all that a plain, short key needs */
	const char *at;				/* the next key */
	const char *end;			/* of the chunk's keys; at == end: after the
								 * last key of all */
	FmsKeyRecord plain;			/* its key is the last one read */

	FmsRecordBuffer whole;		/* the last record that has a tuple */
	const FmsFirstKeyChunk *chunk;	/* NULL: none yet, or after the last */
	FmsChunkReader *tape;		/* NULL: all chunks are in memory */
	MemoryContext context;
	void	   *memory;			/* the allocation that holds the reader */
};

StaticAssertDecl(offsetof(FmsFirstKeyReader, plain.key) + FMS_PREFIX_BYTES <=
				 LINE_BYTES, "a short key is in the reader's first line");

#define READER_BYTES		(sizeof(FmsFirstKeyReader) + LINE_BYTES)

Size
fms_first_key_reader_buffer_bytes(const FmsFirstKeyStore *store,
								  FmsFirstKeyReading reading)
{
	return store->tape.tape ? reading * store->tape.chunk_bytes : 0;
}

Size
fms_first_key_reader_bytes(const FmsFirstKeyMemory *memory,
						   FmsFirstKeyReading reading)
{
	Size		chunk_bytes = fms_first_key_chunk_bytes(memory->share_bytes);

	if (!memory->on_tape)
		return READER_BYTES;
	return READER_BYTES + fms_chunk_reader_bytes(reading) +
		reading * chunk_bytes +
		(memory->largest_bytes > chunk_bytes ? memory->largest_bytes : 0);
}

Size
fms_first_keys_run_bytes(Size share_bytes)
{
	return 2 * READER_BYTES + fms_chunk_reader_bytes(FMS_FIRST_KEYS_AHEAD) +
		fms_chunk_reader_bytes(FMS_FIRST_KEYS_BEHIND) +
		(FMS_FIRST_KEYS_AHEAD + FMS_FIRST_KEYS_BEHIND) *
		fms_first_key_chunk_bytes(share_bytes);
}

FmsFirstKeyReader *
fms_first_key_reader_open(FmsFirstKeyStore *store,
						  const FmsFirstKeys *first_keys,
						  FmsFirstKeyReading reading, char *buffer)
{
	void	   *memory = palloc0(READER_BYTES);
	FmsFirstKeyReader *reader =
		(FmsFirstKeyReader *) TYPEALIGN(LINE_BYTES, memory);

	reader->context = CurrentMemoryContext;
	reader->memory = memory;
	reader->chunk = first_keys->first;
	if (first_keys->tape_bytes > 0)
		reader->tape = fms_chunk_reader_open(&store->tape,
											 first_keys->tape_offset_bytes,
											 first_keys->tape_bytes, reading,
											 buffer);
	return reader;
}

/* The chunk after the present one; NULL after the last. */
static const FmsFirstKeyChunk *
next_chunk(FmsFirstKeyReader *reader)
{
	const FmsFirstKeyChunk *next = reader->chunk ? reader->chunk->next : NULL;

	return next == NULL && reader->tape ?
		fms_chunk_reader_next(reader->tape) : next;
}

/* Moves to the first key of the chunk, or of the next one that has any. */
static void
enter_chunk(FmsFirstKeyReader *reader, const FmsFirstKeyChunk *chunk)
{
	for (;; chunk = next_chunk(reader))
	{
		reader->chunk = chunk;
		reader->at = chunk ? (const char *) (chunk + 1) : NULL;
		reader->end = chunk ? (const char *) chunk + chunk->used_bytes : NULL;
		if (chunk == NULL || reader->at != reader->end)
			break;
	}
}

void
fms_first_key_reader_start(FmsFirstKeyReader *reader)
{
	enter_chunk(reader, reader->chunk ? reader->chunk : next_chunk(reader));
}

void
fms_first_key_reader_close(FmsFirstKeyReader *reader)
{
	if (reader->tape)
		fms_chunk_reader_close(reader->tape);
	fms_record_buffer_free(&reader->whole);
	pfree(reader->memory);
}

/* The record of first_key, whose key has been read into reader->plain. */
static inline const FmsRecord *
make_record(FmsFirstKeyReader *reader, const FmsFirstKey *first_key)
{
	FmsKeyRecord *plain = &reader->plain;
	FmsRecord  *record;
	Size		bytes;

	if (likely(first_key->tuple_bytes == 0))
	{
		plain->header.tuple_bytes = 0;
		plain->header.key_bytes = first_key->key_bytes;
		plain->header.flags = FMS_RECORD_FIRST_KEY | FMS_RECORD_EXACT;
		return &plain->header;
	}
	bytes = fms_record_size(first_key->key_bytes, first_key->tuple_bytes);
	if (reader->whole.size_bytes > Max(bytes, WHOLE_LONG_BYTES))
		fms_record_buffer_free(&reader->whole);
	record = fms_record_buffer_reserve(&reader->whole, reader->context, bytes);
	fms_record_write(record, plain->key, first_key->key_bytes,
					 FMS_RECORD_FIRST_KEY,
					 first_key->tuple - FMS_TUPLE_SKIPPED_BYTES,
					 first_key->tuple_bytes);
	return record;
}

/*
 * Words of the key in a record.  They are loaded at the width at which they
 * were stored: else the load waits for all stores before it.
 */
static inline uint64
load_word(const char *key, int i)
{
	uint64		word;

	memcpy(&word, key + i * sizeof(word), sizeof(word));
	return pg_ntoh64(word);
}

static inline void
store_word(char *key, int i, uint64 word)
{
	word = pg_hton64(word);
	memcpy(key + i * sizeof(word), &word, sizeof(word));
}

const FmsRecord *
fms_first_key_reader_next(FmsFirstKeyReader *reader, uint32 *nblocks)
{
	char	   *key = reader->plain.key;
	FmsPackedKey packed;
	FmsFirstKey first_key;
	const FmsRecord *record;
	int			i;

	if (unlikely(reader->at == reader->end))
		return NULL;
	reader->at = fms_first_key_unpack(reader->at, &packed, &first_key);
	Assert(reader->at <= reader->end);
	for (i = packed.shared / (int) sizeof(uint64); i < packed.nwords; i++)
		store_word(key, i, fms_packed_key_word(&packed, i, load_word(key, i)));
	record = make_record(reader, &first_key);
	*nblocks = first_key.nblocks;
	/* the record is a copy, so it outlives the chunk */
	if (unlikely(reader->at == reader->end))
		enter_chunk(reader, next_chunk(reader));
	return record;
}

/* As fms_first_key_reader_take(), from the present chunk: one key at least. */
static inline int
take_from_chunk(FmsFirstKeyReader *reader, FmsEntry *entries, int n,
				uint64 offset, uint32 *nblocks)
{
	const char *at = reader->at;
	char	   *key = reader->plain.key;
	uint64		high = load_word(key, 0);	/* in registers meanwhile */
	uint64		low = load_word(key, 1);
	int			taken = 0;
	FmsFirstKey first_key;

	do
	{
		FmsPackedKey packed;

		at = fms_first_key_unpack(at, &packed, &first_key);
		Assert(first_key.key_bytes <= FMS_PREFIX_BYTES);
		high = fms_packed_key_word(&packed, 0, high);
		low = fms_packed_key_word(&packed, 1, low);
		entries[taken++] = fms_entry_of_key((uint128) high << 16 | low >> 48,
											offset);
	} while (taken < n && at != reader->end && first_key.nblocks == 1);

	store_word(key, 0, high);
	store_word(key, 1, low);
	reader->at = at;
	*nblocks = first_key.nblocks;
	return taken;
}

int
fms_first_key_reader_take(FmsFirstKeyReader *reader, FmsEntry *entries, int n,
						  uint64 offset, uint32 *nblocks)
{
	int			taken;

	if (unlikely(reader->at == reader->end))
		return 0;
	taken = take_from_chunk(reader, entries, n, offset, nblocks);
	Assert(reader->at <= reader->end);
	if (unlikely(reader->at == reader->end))
		enter_chunk(reader, next_chunk(reader));
	return taken;
}

void
fms_first_key_reader_prefetch(const FmsFirstKeyReader *reader)
{
	__builtin_prefetch(reader->at);
}
