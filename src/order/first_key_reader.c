/*-------------------------------------------------------------------------
 *
 * first_key_reader.c
 *	  Reads one run's first keys in sequence.
 *
 *	  memory [k k k]->[k k k k k k]   file [k k k k k k][k k k]
 *	                     ^ at    ^ end
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "order/first_key_store.h"

#define LINE_BYTES			64	/* of a processor's cache */
#define WHOLE_LONG_BYTES	((Size) 256)	/* room kept for short tuples */

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
	const char *end;			/* of the chunk's keys */
	uint32		blocks_left;	/* of the keys to come */
	FmsKeyRecord plain;			/* its key is the last one read */

	FmsRecordBuffer whole;		/* the last record that has a tuple */
	const FmsFirstKeyChunk *chunk;	/* NULL: after the last */
	FmsFirstKeyFile *file;
	FmsFirstKeyExtent extent;	/* the chunks that have not been read */
	FmsFirstKeyChunk *buffer;	/* of buffer_bytes: the chunk read last */
	Size		buffer_bytes;	/* 0: no chunk is in the file */
	MemoryContext context;
	void	   *memory;			/* the allocation of reader and buffer */
};

StaticAssertDecl(offsetof(FmsFirstKeyReader, plain.key) + FMS_PREFIX_BYTES <=
				 LINE_BYTES, "a short key is in the reader's first line");

/* Bytes of a reader, wherever its allocation begins. */
#define READER_BYTES		(sizeof(FmsFirstKeyReader) + LINE_BYTES)

Size
fms_first_key_reader_bytes(const FmsFirstKeyMemory *memory)
{
	Size		largest = memory->largest_bytes;

	/* long keys are copied */
	return READER_BYTES + largest +
		(largest > FMS_FIRST_KEY_CHUNK_BYTES ? largest : 0);
}

Size
fms_first_keys_run_bytes(void)
{
	return 2 * (READER_BYTES + FMS_FIRST_KEY_CHUNK_BYTES);
}

static const FmsFirstKeyChunk *
next_chunk(FmsFirstKeyReader *reader)
{
	const FmsFirstKeyChunk *next = reader->chunk ? reader->chunk->next : NULL;

	if (next || reader->extent.nchunks == 0)
		return next;
	fms_first_key_file_read(reader->file, &reader->extent, reader->buffer,
							reader->buffer_bytes);
	return reader->buffer;
}

static void
enter_chunk(FmsFirstKeyReader *reader, const FmsFirstKeyChunk *chunk)
{
	reader->chunk = chunk;
	reader->at = chunk ? (const char *) (chunk + 1) : NULL;
	reader->end = chunk ? (const char *) chunk + chunk->used_bytes : NULL;
}

FmsFirstKeyReader *
fms_first_key_reader_open(FmsFirstKeyFile *file,
						  const FmsFirstKeys *first_keys)
{
	Size		buffer_bytes = first_keys->extent.nchunks == 0 ? 0 :
		file->largest_bytes;
	void	   *memory = palloc_extended(READER_BYTES + buffer_bytes,
										 MCXT_ALLOC_HUGE);
	FmsFirstKeyReader *reader =
		(FmsFirstKeyReader *) TYPEALIGN(LINE_BYTES, memory);

	memset(reader, 0, sizeof(*reader));
	reader->context = CurrentMemoryContext;
	reader->memory = memory;
	reader->file = file;
	reader->extent = first_keys->extent;
	reader->blocks_left = first_keys->nblocks;
	reader->buffer = (FmsFirstKeyChunk *) ((char *) memory + READER_BYTES);
	reader->buffer_bytes = buffer_bytes;
	enter_chunk(reader, first_keys->first ? first_keys->first :
				next_chunk(reader));
	return reader;
}

void
fms_first_key_reader_close(FmsFirstKeyReader *reader)
{
	fms_record_buffer_free(&reader->whole);
	pfree(reader->memory);
}

/* The record of first_key, whose key is in reader->plain. */
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

/* Loads at the width of the stores: otherwise it would wait for them. */
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
fms_first_key_reader_next(FmsFirstKeyReader *reader, uint32 *nblocks,
						  uint32 *rows_before)
{
	char	   *key = reader->plain.key;
	FmsPackedKey packed;
	FmsFirstKey first_key;
	const FmsRecord *record;

	if (unlikely(reader->blocks_left == 0))
		return NULL;
	reader->at = fms_first_key_unpack(reader->at, &packed, &first_key);
	Assert(reader->at <= reader->end);
	for (int i = packed.shared / (int) sizeof(uint64); i < packed.nwords; i++)
		store_word(key, i, fms_packed_key_word(&packed, i, load_word(key, i)));
	record = make_record(reader, &first_key);
	*nblocks = first_key.nblocks;
	*rows_before = first_key.rows_before;
	reader->blocks_left -= first_key.nblocks;
	/* the record is a copy, so it outlives the chunk */
	if (unlikely(reader->at == reader->end))
		enter_chunk(reader, next_chunk(reader));
	return record;
}

void
fms_first_key_reader_prefetch(const FmsFirstKeyReader *reader)
{
	__builtin_prefetch(reader->at);
}

void
fms_first_keys_adopt(FmsFirstKeyStore *store, FmsFirstKeyFile *file,
					 FmsFirstKeys *first_keys)
{
	FmsFirstKeyReader *reader = fms_first_key_reader_open(file, first_keys);
	const FmsRecord *first_key;
	uint32		nblocks;
	uint32		rows;

	memset(first_keys, 0, sizeof(*first_keys));
	while ((first_key = fms_first_key_reader_next(reader, &nblocks,
												  &rows)) != NULL)
		fms_first_keys_note(store, first_keys, first_key, nblocks, rows);
	fms_first_keys_finish(store, first_keys);
	fms_first_key_reader_close(reader);
}
