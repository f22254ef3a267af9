/*-------------------------------------------------------------------------
 *
 * first_key_store.c
 *	  The first keys of a run's blocks: noted while the run is written, read
 *	  back in the same order while it is merged.
 *
 * A first key is a few bytes, but there is one for every block, so their
 * number grows with the data while work_mem does not.  Up to a share of the
 * memory they stay there.  Past it, a run's further first keys go to a tape of
 * their own, and the merge reads them back piece by piece:
 *
 *	  run 0:  memory [f f f f f f]
 *	  run 1:  memory [f f f]  tape [f f f][f f f][f f]
 *	  run 2:                  tape [f f f][f f f][f f f]
 *	                               |<-->| chunk
 *
 * A run's chunks are contiguous on the tape, because runs are written one at a
 * time, so a run needs to remember one offset: memory is O(runs), not
 * O(blocks).  A reader ahead has two chunk buffers and reads the next chunk
 * while it hands out first keys of the current one; one that follows it finds
 * all in the page cache and has one.  With little memory chunks are small:
 * what readers take, the merge's blocks cannot have.  There are many of them,
 * then, and none is needed before the one in front of it has been used up; so
 * their reads are collected, and submitted some at a time.
 *
 * Why a tape of their own and not between the blocks: blocks of one run stay
 * contiguous and of one size, which is what reading several at once and
 * finding a block by its number need.
 *
 * That tape is always in the page cache, also where blocks go past it.  It is
 * some hundredths of the blocks if these are tiny, and thousandths as a rule;
 * but each chunk is a read like a block, of which the drive serves only so
 * many, and submitting one past the page cache takes the processor as long as
 * ten copies out of it.
 *
 * First keys are packed: their number, and what has to be read of them again,
 * is what the order costs.  A run is sorted, so a key begins like the one
 * before it, and what normalized keys end with is often zeros; neither is
 * written.  Nearly all first keys are of one block and of a key that is all
 * there is to compare, and need nothing else:
 *
 *	  +------+-------+		+------+---------------+-------+-------+
 *	  | head | given |		| head | blocks, t_len | given | tuple |
 *	  | 2 B  | 0 ..  |		| 2 B  | 8 B           |       |       |
 *	  +------+-------+		+------+---------------+-------+-------+
 *
 *	  before	01 80 00 07 d1 00 00 00 00 00
 *	  key		01 80 00 07 d9 00 00 00 00 00
 *	            |- shared -|  |--- zeros ---|	given: d9
 *
 * A date takes 3 bytes like this; as a record, with header and padding, it
 * would take 32.  A chunk begins with a whole key, so that each can be read
 * by itself.
 *
 * A first key with a long key may be larger than a chunk.  It gets a chunk as
 * large as it needs; the chunk's header says so, and the reader fetches the
 * rest when it sees that.
 *
 * The memory: chunks palloc'd in the store's context, buffers mapped through
 * the channel.  The tape's counters are the store's own, so that reads of
 * first keys are not taken for reads of blocks.  On ERROR nothing is done
 * here: see io.c.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "port/pg_bitutils.h"
#include "port/pg_bswap.h"

#include "order/first_key_store.h"
#include "base/interrupts.h"
#include "tape/write_buffer.h"

/* A chunk on tape, and the largest in memory, is of this size or smaller. */
#define CHUNK_MAX_BYTES		((Size) 2048)
/* Of what the store may have, a chunk takes this part. */
#define CHUNK_FRACTION		256
/* The first chunk in memory of a run; they double from there. */
#define CHUNK_MIN_BYTES		((Size) 256)
/* Reads of chunks are submitted so many together. */
#define REQUESTS_BATCH		8
/* Chunks are collected in buffers of this size. */
#define BUFFER_BYTES		((Size) 2 * FMS_IO_ALIGN_BYTES)

#define CHUNK_MAGIC			0x464D5346	/* "FMSF" */

/*
 * A first key in parts, those of the record of a block's first key.  They need
 * not be aligned.
 */
typedef struct FmsFirstKey
{
	uint32		nblocks;		/* that the block's first record extends over;
								 * > 1: a chain of blocks */
	uint32		key_bytes;
	uint32		tuple_bytes;	/* as in FmsRecord; 0: the key is all there is
								 * to compare */
	const char *tuple;			/* its data */
} FmsFirstKey;

/* First keys follow the header, in memory and on tape. */
typedef struct FmsFirstKeyChunk
{
	FmsChecksum checksum;		/* on tape only */
	struct FmsFirstKeyChunk *next;	/* in memory only */
	uint32		magic;
	uint32		number;			/* on tape: chunk_number() */
	uint32		size_bytes;		/* all of it */
	uint32		used_bytes;		/* header included */
} FmsFirstKeyChunk;

StaticAssertDecl(sizeof(FmsFirstKeyChunk) == 32 &&
				 offsetof(FmsFirstKeyChunk, checksum) == 0,
				 "chunks go to disk: their header must not be padded");

/*
 * The head of a packed first key: how many words of eight bytes its key has
 * (FMS_KEY_LAST_BYTES come behind them), whether it has the middle part, how
 * many bytes of the key are those of the key before it, and how many follow.
 * Without a middle part it is of one block and has no tuple.
 */
#define HEAD_WORDS_MASK		0x0007
#define HEAD_HAS_MIDDLE		0x0008
#define HEAD_SHARED_SHIFT	4
#define HEAD_GIVEN_SHIFT	10
#define HEAD_BYTES_MASK		0x003F	/* of either number */

/*
 * Parts of keys are copied a word at a time, whatever their length: a call of
 * memcpy() takes longer than all else here.  So there must be some bytes
 * behind a key, in its chunk as elsewhere, that may be read and overwritten.
 */
#define COPY_BYTES			sizeof(uint64)
#define KEY_WORDS			(FMS_KEY_MAX_WORDS + 1)
#define KEY_BUFFER_BYTES	(KEY_WORDS * sizeof(uint64))

StaticAssertDecl(KEY_BUFFER_BYTES >= FMS_KEY_MAX_BYTES + COPY_BYTES,
				 "a key's last part can be copied as a word");

typedef struct FmsPackedExtra
{
	uint32		nblocks;
	uint32		tuple_bytes;
} FmsPackedExtra;

StaticAssertDecl(FMS_KEY_MAX_BYTES <= HEAD_BYTES_MASK &&
				 FMS_KEY_MAX_WORDS <= HEAD_WORDS_MASK,
				 "the longest key's lengths fit into a head");
StaticAssertDecl(sizeof(FmsPackedExtra) == 8,
				 "middle parts go to disk: they must not be padded");

/*
 * A key as numbers that compare like its bytes.  It is written and read word
 * by word, and never copied: what is loaded at another width than it was
 * stored waits for all stores before, and these are the block's.
 */
typedef struct FmsKeyWords
{
	uint64		words[KEY_WORDS];	/* the key's, and one that is zero */
	uint32		key_bytes;		/* 0: there is none */
} FmsKeyWords;

struct FmsFirstKeyStore
{
	MemoryContext context;
	FmsKeys	   *keys;
	FmsIo	   *io;
	Size		share_bytes;
	Size		chunk_bytes;	/* usual size of a chunk on tape */
	Size		memory_bytes;	/* of chunks in memory */
	Size		largest_bytes;	/* of any chunk on tape */
	FmsKeyWords noted[2];		/* keys of the chunk that is being filled: the
								 * last one, and room for the next */
	int			last_noted;		/* of these two */

	/* writing to tape */
	FmsTape	   *tape;			/* NULL until the share is used up */
	FmsTapeUse	counted;		/* of the tape's use, what has been counted */
	uint64		counted_bytes;	/* likewise of its size */
	FmsWriteBuffer *stream;		/* likewise */
	FmsFirstKeyChunk *open;		/* chunk being filled, or NULL */

	/* reading from tape */
	FmsIoRequest *requests[REQUESTS_BATCH];	/* not submitted yet */
	int			nrequests;
};

/* A chunk of a reader's: being read, or there. */
typedef struct FmsChunkSlot
{
	char	   *buffer;			/* chunk_bytes, the caller's */
	char	   *extra;			/* mapped: a larger chunk, or NULL */
	FmsIoRequest request;
} FmsChunkSlot;

/*
 * The record of the first key taken last, if its key is all there is to
 * compare; where the next key finds that before it, anyway.
 */
typedef struct FmsKeyRecord
{
	FmsRecord	header;
	char		key[KEY_BUFFER_BYTES];
} FmsKeyRecord;

StaticAssertDecl(offsetof(FmsKeyRecord, key) == sizeof(FmsRecord),
				 "a record's key follows its header");

/* Of the processor's caches. */
#define LINE_BYTES			64

/* What a reader has besides if some of the first keys are on tape. */
typedef struct FmsTapeReader
{
	uint64		next_offset;	/* of the chunk to request next */
	uint64		end_offset;
	int			slot;			/* the one that holds the reader's chunk, if
								 * that is on tape */
	bool		requested;		/* the next chunk has been */
	FmsFirstKeyReading reading;
	FmsChunkSlot slots[FLEXIBLE_ARRAY_MEMBER];	/* `reading` of them */
} FmsTapeReader;

struct FmsFirstKeyReader
{
	/*
	 * first, as all that a usual first key needs: a line, if the key is short
	 */
	const char *at;				/* the next first key */
	const char *end;			/* of the chunk's; at == end: after the last */
	FmsKeyRecord usual;

	FmsRecord  *whole;			/* the one taken last, if it has a tuple */
	Size		whole_bytes;	/* room for that */
	const FmsFirstKeyChunk *first;	/* in memory; NULL: all are on tape */
	const FmsFirstKeyChunk *chunk;	/* NULL: after the last */
	FmsFirstKeyStore *store;
	MemoryContext context;
	void	   *memory;			/* the reader is somewhere in */
	FmsTapeReader *tape;		/* NULL: all are in memory */
};

StaticAssertDecl(offsetof(FmsFirstKeyReader, usual.key) + FMS_PREFIX_BYTES <=
				 LINE_BYTES,
				 "taking a usual first key needs a line of its reader");

/* Room for a tuple longer than this is not kept for short ones. */
#define WHOLE_LONG_BYTES	((Size) 256)
#define READER_BYTES		(sizeof(FmsFirstKeyReader) + LINE_BYTES)

static Size
tape_reader_bytes(FmsFirstKeyReading reading)
{
	return offsetof(FmsTapeReader, slots) + reading * sizeof(FmsChunkSlot);
}

static Size
chunk_bytes_for(Size share_bytes)
{
	Size		bytes = share_bytes / CHUNK_FRACTION;

	bytes -= bytes % FMS_BLOCK_QUANTUM_BYTES;
	return Max(FMS_BLOCK_QUANTUM_BYTES, Min(CHUNK_MAX_BYTES, bytes));
}

Size
fms_first_keys_run_bytes(Size share_bytes)
{
	return 2 * READER_BYTES + tape_reader_bytes(FMS_FIRST_KEYS_AHEAD) +
		tape_reader_bytes(FMS_FIRST_KEYS_BEHIND) +
		(FMS_FIRST_KEYS_AHEAD + FMS_FIRST_KEYS_BEHIND) *
		chunk_bytes_for(share_bytes);
}

Size
fms_first_keys_tape_bytes(void)
{
	return FMS_WRITE_BUFFERS_MIN * BUFFER_BYTES;
}

FmsFirstKeyStore *
fms_first_keys_create(FmsKeys *keys, FmsIo *io, Size share_bytes)
{
	FmsFirstKeyStore *store = palloc0(sizeof(FmsFirstKeyStore));

	store->context = CurrentMemoryContext;
	store->keys = keys;
	store->io = io;
	store->share_bytes = share_bytes;
	store->chunk_bytes = chunk_bytes_for(share_bytes);
	return store;
}

void
fms_first_keys_destroy(FmsFirstKeyStore *store)
{
	if (store->tape)
	{
		fms_write_buffer_forget(store->stream);
		fms_tape_close(store->tape);
	}
	pfree(store);
}

FmsFirstKeyMemory
fms_first_keys_memory(const FmsFirstKeyStore *store)
{
	FmsFirstKeyMemory memory = {
		.share_bytes = store->share_bytes,
		.memory_bytes = store->memory_bytes +
		(store->stream ? fms_write_buffer_bytes(store->stream) : 0),
		.largest_bytes = store->largest_bytes,
		.on_tape = store->tape != NULL,
		.prefix_decides = fms_keys_prefix_decides(store->keys)
	};

	return memory;
}

FmsIo *
fms_first_keys_io(const FmsFirstKeyStore *store)
{
	return store->io;
}

Size
fms_first_keys_share_bytes(const FmsFirstKeyStore *store)
{
	return store->share_bytes;
}

Size
fms_first_key_reader_buffer_bytes(const FmsFirstKeyStore *store,
							  FmsFirstKeyReading reading)
{
	return store->tape ? reading * store->chunk_bytes : 0;
}

Size
fms_first_key_reader_bytes(const FmsFirstKeyMemory *memory,
						   FmsFirstKeyReading reading)
{
	Size		chunk_bytes = chunk_bytes_for(memory->share_bytes);

	if (!memory->on_tape)
		return READER_BYTES;
	return READER_BYTES + tape_reader_bytes(reading) + reading * chunk_bytes +
		(memory->largest_bytes > chunk_bytes ? memory->largest_bytes : 0);
}

void
fms_first_keys_count(FmsFirstKeyStore *store, FmsCounters *counters)
{
	const FmsTapeUse *use;
	uint64		end_bytes;

	if (store->tape == NULL)
		return;
	use = fms_tape_use(store->tape);
	end_bytes = fms_tape_end(store->tape);
	fms_count(counters, FMS_COUNT_READ_BYTES,
			  use->read_bytes - store->counted.read_bytes);
	fms_count(counters, FMS_COUNT_WRITTEN_BYTES,
			  use->written_bytes - store->counted.written_bytes);
	fms_count(counters, FMS_COUNT_SPILLED_BYTES,
			  end_bytes - store->counted_bytes);
	store->counted = *use;
	store->counted_bytes = end_bytes;
}

void
fms_first_keys_flush(FmsFirstKeyStore *store)
{
	Assert(store->open == NULL);
	if (store->tape == NULL)
		return;
	fms_write_buffer_flush(store->stream);
	/* what was reserved and not needed must not be counted */
	fms_tape_trim(store->tape);
}

static void
close_chunk(FmsFirstKeyStore *store)
{
	FmsFirstKeyChunk *chunk = store->open;

	memset((char *) chunk + chunk->used_bytes, 0,
		   chunk->size_bytes - chunk->used_bytes);
	fms_tape_set_checksum(store->tape, &chunk->checksum, chunk->size_bytes);
	fms_write_buffer_done(store->stream, chunk->size_bytes);
	store->open = NULL;
}

/*
 * What a chunk on tape is known by: its place.  The number in its run would
 * not do: a reader's buffer may have held another run's before, and a read
 * that changes nothing would go unnoticed.
 */
static inline uint32
chunk_number(uint64 offset_bytes)
{
	return offset_bytes / FMS_BLOCK_QUANTUM_BYTES;
}

/* A chunk to be filled, by a whole key at first. */
static void
init_chunk(FmsFirstKeyStore *store, FmsFirstKeyChunk *chunk, uint32 number,
		   Size size)
{
	chunk->next = NULL;
	chunk->magic = CHUNK_MAGIC;
	chunk->number = number;
	chunk->size_bytes = size;
	chunk->used_bytes = sizeof(FmsFirstKeyChunk);
	store->noted[store->last_noted].key_bytes = 0;
}

/* The run's first keys go to tape from here on. */
static void
turn_to_tape(FmsFirstKeyStore *store, FmsFirstKeys *first_keys)
{
	if (store->tape == NULL)
	{
		/* there is little of it, so checksums cost next to nothing */
		store->tape = fms_tape_open(store->io, FMS_DIRECT_OFF,
									FMS_BLOCK_QUANTUM_BYTES, true, NULL);
		store->stream = fms_write_buffer_create(store->io, store->tape,
										  BUFFER_BYTES,
										  FMS_WRITE_BUFFERS_MIN, false);
	}
	first_keys->tape_offset_bytes = fms_write_buffer_position(store->stream);
}

/* Opens a chunk with room for so many bytes of first keys. */
static void
open_tape_chunk(FmsFirstKeyStore *store, Size bytes)
{
	Size		size = sizeof(FmsFirstKeyChunk) + bytes;
	uint64		offset_bytes = fms_write_buffer_position(store->stream);

	size = (size + store->chunk_bytes - 1) / store->chunk_bytes *
		store->chunk_bytes;
	store->open = (FmsFirstKeyChunk *)
		fms_write_buffer_piece(store->stream, size);
	init_chunk(store, store->open, chunk_number(offset_bytes), size);
	store->largest_bytes = Max(store->largest_bytes, size);
}

/* A chunk in memory, if the share allows it; else NULL. */
static FmsFirstKeyChunk *
new_memory_chunk(FmsFirstKeyStore *store, FmsFirstKeys *first_keys, Size bytes)
{
	Size		size = first_keys->last == NULL ? CHUNK_MIN_BYTES :
		Min(store->chunk_bytes, (Size) 2 * first_keys->last->size_bytes);
	FmsFirstKeyChunk *chunk;

	size = Max(size, sizeof(FmsFirstKeyChunk) + bytes);
	if (store->memory_bytes + size > store->share_bytes)
		return NULL;
	chunk = MemoryContextAllocExtended(store->context, size, MCXT_ALLOC_HUGE);
	init_chunk(store, chunk, 0, size);
	store->memory_bytes += size;

	if (first_keys->last)
		first_keys->last->next = chunk;
	else
		first_keys->first = chunk;
	first_keys->last = chunk;
	return chunk;
}

static inline bool
chunk_has_room(const FmsFirstKeyChunk *chunk, Size bytes)
{
	return chunk->size_bytes - chunk->used_bytes >= bytes;
}

/* The chunk that takes the run's next first key of that size. */
static FmsFirstKeyChunk *
chunk_for(FmsFirstKeyStore *store, FmsFirstKeys *first_keys, Size bytes)
{
	FmsFirstKeyChunk *chunk;

	if (first_keys->tape_bytes == 0)
	{
		if (first_keys->last && chunk_has_room(first_keys->last, bytes))
			return first_keys->last;
		chunk = new_memory_chunk(store, first_keys, bytes);
		if (chunk)
			return chunk;
		turn_to_tape(store, first_keys);
		/* the true size is known when the run ends */
		first_keys->tape_bytes = 1;
	}

	if (store->open && !chunk_has_room(store->open, bytes))
		close_chunk(store);
	if (store->open == NULL)
		open_tape_chunk(store, bytes);
	return store->open;
}

const FmsRecord *
fms_first_keys_key(const FmsFirstKeyStore *store, const FmsRecord *record)
{
	return fms_keys_make_first_key(store->keys, record);
}

/* The first key that the record makes: the record, or one of the keys' own. */
static inline const FmsRecord *
first_key_of(FmsKeys *keys, const FmsRecord *record)
{
	return record->flags & FMS_RECORD_EXACT ? record :
		fms_keys_make_first_key(keys, record);
}

/* Its parts.  If the key is all there is to compare, its tuple is none. */
static void
take_apart(const FmsRecord *record, uint32 nblocks, FmsFirstKey *first_key)
{
	bool		exact = (record->flags & FMS_RECORD_EXACT) != 0;

	first_key->nblocks = nblocks;
	first_key->tuple_bytes = exact ? 0 : record->tuple_bytes;
	first_key->key_bytes = record->key_bytes;
	first_key->tuple = (const char *) fms_record_tuple(record) +
		FMS_TUPLE_SKIPPED_BYTES;
}

/*
 * The two are no neighbours in the struct: compilers would compare both as one
 * word, and loading what has just been stored in two parts waits for all
 * stores before it, the block's own among them.
 */
static inline bool
is_usual(const FmsFirstKey *first_key)
{
	return first_key->nblocks == 1 && first_key->tuple_bytes == 0;
}

static inline Size
packed_tuple_bytes(const FmsFirstKey *first_key)
{
	return first_key->tuple_bytes == 0 ? 0 :
		first_key->tuple_bytes - FMS_TUPLE_SKIPPED_BYTES;
}

/* What it takes in its chunk at most, with what copying it overwrites. */
static inline Size
largest_packed_bytes(const FmsFirstKey *first_key)
{
	return sizeof(uint16) +
		(is_usual(first_key) ? 0 : sizeof(FmsPackedExtra)) +
		first_key->key_bytes + packed_tuple_bytes(first_key) + COPY_BYTES;
}

static inline void
take_key(const FmsRecord *record, FmsKeyWords *key)
{
	int			nwords = fms_record_key_words(record);
	int			i;

	for (i = 0; i < nwords; i++)
		key->words[i] = fms_record_key_word(record, i);
	key->words[nwords] = 0;
	key->key_bytes = record->key_bytes;
}

/* With how many bytes two keys of one length begin alike. */
static inline Size
shared_bytes(const FmsKeyWords *a, const FmsKeyWords *b)
{
	Size		i;

	if (a->key_bytes != b->key_bytes)
		return 0;
	for (i = 0; i * sizeof(uint64) < a->key_bytes; i++)
	{
		uint64		differing = a->words[i] ^ b->words[i];

		if (differing != 0)
			return i * sizeof(uint64) +
				(63 - pg_leftmost_one_pos64(differing)) / BITS_PER_BYTE;
	}
	return a->key_bytes;
}

/* Its length without the zeros that it ends with. */
static inline Size
bytes_before_zeros(const FmsKeyWords *key)
{
	int			i;

	for (i = key->key_bytes / sizeof(uint64); i >= 0; i--)
		if (key->words[i] != 0)
			return (i + 1) * sizeof(uint64) -
				pg_rightmost_one_pos64(key->words[i]) / BITS_PER_BYTE;
	return 0;
}

/* Writes so many of its bytes from one on, and overwrites what follows. */
static inline void
write_key_part(const FmsKeyWords *key, Size from, Size bytes, char *at)
{
	int			shift = from % sizeof(uint64) * BITS_PER_BYTE;
	const uint64 *words = &key->words[from / sizeof(uint64)];
	Size		i;

	for (i = 0; i * sizeof(uint64) < bytes; i++)
	{
		uint64		word = words[i] << shift;

		if (shift > 0)
			word |= words[i + 1] >> (64 - shift);
		word = pg_hton64(word);
		memcpy(at + i * sizeof(uint64), &word, sizeof(word));
	}
}

/* The first bytes of a word, the others zero; less than eight of them. */
static inline uint64
first_bytes(uint64 word, int bytes)
{
	return word & ~(PG_UINT64_MAX >> bytes * BITS_PER_BYTE);
}

/* The next word of what is given, of which `left` bytes are left. */
static inline uint64
given_word(const char *at, int left)
{
	uint64		word;

	if (left <= 0)
		return 0;
	memcpy(&word, at, sizeof(word));
	word = pg_ntoh64(word);
	return left < (int) sizeof(word) ? first_bytes(word, left) : word;
}

/*
 * Makes a key of the one before it in the buffer: so many bytes stay, so many
 * are given, the rest are zeros.  By whole words: who loads one that has been
 * stored in parts waits for all stores before.
 */
static inline void
read_key(char *key, int nwords, int shared, int given, const char *at)
{
	int			i = shared / (int) sizeof(uint64);
	int			kept = shared % (int) sizeof(uint64);
	uint64		word;

	memcpy(&word, key + i * sizeof(word), sizeof(word));
	word = first_bytes(pg_ntoh64(word), kept);
	for (; i < nwords; i++)
	{
		word |= given_word(at, given) >> kept * BITS_PER_BYTE;
		word = pg_hton64(word);
		memcpy(key + i * sizeof(word), &word, sizeof(word));
		at += sizeof(word) - kept;
		given -= (int) sizeof(word) - kept;
		kept = 0;
		word = 0;
	}
}

/*
 * Packs the first key of that key behind the one before; returns where it
 * ends.
 */
static inline char *
pack(const FmsFirstKey *first_key, const FmsKeyWords *key,
	 const FmsKeyWords *before, char *at)
{
	Size		shared = shared_bytes(key, before);
	Size		given = Max(shared, bytes_before_zeros(key)) - shared;
	uint16		head = key->key_bytes / sizeof(uint64) |
		(is_usual(first_key) ? 0 : HEAD_HAS_MIDDLE) |
		shared << HEAD_SHARED_SHIFT | given << HEAD_GIVEN_SHIFT;

	memcpy(at, &head, sizeof(head));
	at += sizeof(head);
	if (!is_usual(first_key))
	{
		FmsPackedExtra middle = {
			.nblocks = first_key->nblocks,
			.tuple_bytes = first_key->tuple_bytes
		};

		memcpy(at, &middle, sizeof(middle));
		at += sizeof(middle);
	}
	write_key_part(key, shared, given, at);
	at += given;
	if (first_key->tuple_bytes > 0)
		memcpy(at, first_key->tuple, packed_tuple_bytes(first_key));
	return at + packed_tuple_bytes(first_key);
}

/* Head and middle part of a packed first key. */
typedef struct FmsPackedStart
{
	int			key_words;		/* FMS_KEY_LAST_BYTES come behind them */
	int			shared;			/* bytes of the key before */
	int			given;			/* bytes of the key that follow */
} FmsPackedStart;

/* Returns where what is given of the key begins. */
static inline const char *
unpack_start(const char *at, FmsPackedStart *start, FmsFirstKey *first_key)
{
	uint16		head;
	FmsPackedExtra middle = {.nblocks = 1};

	memcpy(&head, at, sizeof(head));
	at += sizeof(head);
	if (unlikely(head & HEAD_HAS_MIDDLE))
	{
		memcpy(&middle, at, sizeof(middle));
		at += sizeof(middle);
	}
	start->key_words = head & HEAD_WORDS_MASK;
	start->shared = (head >> HEAD_SHARED_SHIFT) & HEAD_BYTES_MASK;
	start->given = (head >> HEAD_GIVEN_SHIFT) & HEAD_BYTES_MASK;
	first_key->nblocks = middle.nblocks;
	first_key->tuple_bytes = middle.tuple_bytes;
	first_key->key_bytes =
		start->key_words * sizeof(uint64) + FMS_KEY_LAST_BYTES;
	first_key->tuple = at + start->given;
	Assert(start->shared + start->given <= (int) first_key->key_bytes);
	return at;
}

/*
 * The key before is in the buffer, and this one is then.  Returns where the
 * first key ends.
 */
static inline const char *
unpack(const char *at, char *key, FmsFirstKey *first_key)
{
	FmsPackedStart start;

	at = unpack_start(at, &start, first_key);
	read_key(key, start.key_words + 1, start.shared, start.given, at);
	return first_key->tuple + packed_tuple_bytes(first_key);
}

void
fms_first_keys_note(FmsFirstKeyStore *store, FmsFirstKeys *first_keys,
				const FmsRecord *record, uint32 nblocks)
{
	FmsFirstKey first_key;
	FmsFirstKeyChunk *chunk;
	FmsKeyWords *key;
	char	   *end;

	Assert(nblocks >= 1);
	record = first_key_of(store->keys, record);
	take_apart(record, nblocks, &first_key);
	chunk = chunk_for(store, first_keys, largest_packed_bytes(&first_key));
	key = &store->noted[1 - store->last_noted];
	take_key(record, key);
	end = pack(&first_key, key, &store->noted[store->last_noted],
			   (char *) chunk + chunk->used_bytes);
	store->last_noted = 1 - store->last_noted;
	chunk->used_bytes = end - (char *) chunk;
	Assert(chunk->used_bytes + COPY_BYTES <= chunk->size_bytes);
}

void
fms_first_keys_finish(FmsFirstKeyStore *store, FmsFirstKeys *first_keys)
{
	if (first_keys->tape_bytes == 0)
		return;
	if (store->open)
		close_chunk(store);
	first_keys->tape_bytes = fms_write_buffer_position(store->stream) -
		first_keys->tape_offset_bytes;
	fms_write_buffer_end_page(store->stream);
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

/* Starts the reads that have been collected. */
static void
submit_requests(FmsFirstKeyStore *store)
{
	int			n = store->nrequests;

	store->nrequests = 0;
	fms_tape_read(store->tape, store->requests, n);
}

/* Reads the next chunk on tape, if there is one, into that slot, some day. */
static void
request_chunk(FmsFirstKeyReader *reader, FmsChunkSlot *slot)
{
	FmsFirstKeyStore *store = reader->store;
	FmsIoRequest *request = &slot->request;

	if (reader->tape->next_offset >= reader->tape->end_offset)
		return;
	request->buffer = slot->buffer;
	request->length_bytes = store->chunk_bytes;
	request->offset_bytes = reader->tape->next_offset;
	store->requests[store->nrequests++] = request;
	if (store->nrequests == REQUESTS_BATCH)
		submit_requests(store);
}

/* That read is not wanted any more, if it has not been submitted. */
static void
forget_request(FmsFirstKeyStore *store, const FmsIoRequest *request)
{
	int			i;

	for (i = 0; i < store->nrequests; i++)
	{
		if (store->requests[i] == request)
		{
			store->requests[i] = store->requests[--store->nrequests];
			break;
		}
	}
}

/* Waits for a chunk that has been requested. */
static void
wait_for_chunk(FmsFirstKeyStore *store, FmsChunkSlot *slot)
{
	/* idle: it has not been submitted */
	if (slot->request.state == FMS_IO_IDLE)
		submit_requests(store);
	fms_tape_wait(store->tape, &slot->request);
}

/* The rest of a chunk that is larger than usual. */
static const FmsFirstKeyChunk *
read_large_chunk(FmsFirstKeyReader *reader, FmsChunkSlot *slot, Size size)
{
	FmsFirstKeyStore *store = reader->store;
	FmsIoRequest *request = &slot->request;

	slot->extra = fms_io_map(store->io, size);
	memcpy(slot->extra, slot->buffer, store->chunk_bytes);
	request->buffer = slot->extra + store->chunk_bytes;
	request->length_bytes = size - store->chunk_bytes;
	request->offset_bytes = reader->tape->next_offset + store->chunk_bytes;
	fms_tape_read(store->tape, &request, 1);
	fms_tape_wait(store->tape, request);
	return (const FmsFirstKeyChunk *) slot->extra;
}

pg_noinline static void
report_bad_chunk(const FmsFirstKeyReader *reader,
				 const FmsFirstKeyChunk *chunk)
{
	fms_tape_report_corrupted(reader->store->tape,
							  psprintf(_("The block read order's chunk %u is wrong: number %u, magic %08X."),
									   chunk_number(reader->tape->next_offset),
									   chunk->number, chunk->magic));
}

/*
 * The chunk's first part has arrived.  What it says of its size is needed
 * before all of it can be read, so the size is held against what was written.
 */
static const FmsFirstKeyChunk *
check_chunk(FmsFirstKeyReader *reader, FmsChunkSlot *slot)
{
	const FmsFirstKeyChunk *chunk = (const FmsFirstKeyChunk *) slot->buffer;
	Size		usual = reader->store->chunk_bytes;
	Size		size = chunk->size_bytes;

	if (size % usual != 0 || size < usual ||
		size > reader->store->largest_bytes ||
		size > reader->tape->end_offset - reader->tape->next_offset)
		report_bad_chunk(reader, chunk);
	if (size > usual)
		chunk = read_large_chunk(reader, slot, size);
	if (!fms_tape_checksum_holds(reader->store->tape, &chunk->checksum,
								 size) ||
		chunk->magic != CHUNK_MAGIC || chunk->next != NULL ||
		chunk->number != chunk_number(reader->tape->next_offset) ||
		chunk->used_bytes < sizeof(FmsFirstKeyChunk) ||
		chunk->used_bytes > size)
		report_bad_chunk(reader, chunk);
	return chunk;
}

/*
 * Stands at the chunk's first first key, if it has any; NULL: after the last.
 */
static void
enter_chunk(FmsFirstKeyReader *reader, const FmsFirstKeyChunk *chunk)
{
	reader->chunk = chunk;
	reader->at = chunk ? (const char *) (chunk + 1) : NULL;
	reader->end = chunk ? (const char *) chunk + chunk->used_bytes : NULL;
}

/*
 * Waits for the next chunk on tape.  Ahead, the one after it is requested
 * now.
 */
static void
enter_tape_chunk(FmsFirstKeyReader *reader)
{
	FmsTapeReader *tape = reader->tape;
	bool		ahead = tape->reading == FMS_FIRST_KEYS_AHEAD;
	FmsChunkSlot *old = &tape->slots[tape->slot];
	FmsChunkSlot *slot;

	if (old->extra)
	{
		fms_io_unmap(reader->store->io, old->extra);
		old->extra = NULL;
	}
	if (tape->next_offset >= tape->end_offset)
	{
		enter_chunk(reader, NULL);
		return;
	}

	tape->slot = tape->reading - 1 - tape->slot;
	slot = &tape->slots[tape->slot];
	if (!tape->requested)
		request_chunk(reader, slot);
	wait_for_chunk(reader->store, slot);
	enter_chunk(reader, check_chunk(reader, slot));
	tape->next_offset += reader->chunk->size_bytes;
	tape->requested = ahead;
	if (ahead)
		request_chunk(reader, old);
}

/* The chunk after the present one, if any. */
static void
enter_next_chunk(FmsFirstKeyReader *reader)
{
	const FmsFirstKeyChunk *next = reader->chunk ? reader->chunk->next : NULL;

	if (next || reader->tape == NULL)
		enter_chunk(reader, next);
	else
		enter_tape_chunk(reader);
}

/* Enters chunks until there is one with a first key left in it. */
static void
skip_empty_chunks(FmsFirstKeyReader *reader)
{
	while (reader->chunk && reader->at == reader->end)
		enter_next_chunk(reader);
}

static FmsTapeReader *
open_tape_reader(FmsFirstKeyStore *store, const FmsFirstKeys *first_keys,
				 FmsFirstKeyReading reading, char *buffer)
{
	FmsTapeReader *tape = palloc0(tape_reader_bytes(reading));
	int			i;

	tape->reading = reading;
	tape->next_offset = first_keys->tape_offset_bytes;
	tape->end_offset = first_keys->tape_offset_bytes + first_keys->tape_bytes;
	for (i = 0; i < (int) reading; i++)
		tape->slots[i].buffer = buffer + i * store->chunk_bytes;
	return tape;
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
	reader->store = store;
	if (first_keys->tape_bytes > 0)
	{
		reader->tape = open_tape_reader(store, first_keys, reading, buffer);
		request_chunk(reader, &reader->tape->slots[reading - 1]);
		reader->tape->requested = true;
	}
	reader->first = first_keys->first;
	return reader;
}

void
fms_first_key_reader_start(FmsFirstKeyReader *reader)
{
	if (reader->first)
		enter_chunk(reader, reader->first);
	else
		enter_next_chunk(reader);
	skip_empty_chunks(reader);
}

static void
close_tape_reader(FmsFirstKeyStore *store, FmsTapeReader *tape)
{
	int			i;

	for (i = 0; i < (int) tape->reading; i++)
	{
		forget_request(store, &tape->slots[i].request);
		if (tape->slots[i].extra)
			fms_io_unmap(store->io, tape->slots[i].extra);
	}
	pfree(tape);
}

void
fms_first_key_reader_close(FmsFirstKeyReader *reader)
{
	if (reader->tape)
		close_tape_reader(reader->store, reader->tape);
	if (reader->whole)
		pfree(reader->whole);
	pfree(reader->memory);
}

/* Sees to it that there is room for such a record. */
static void
make_room(FmsFirstKeyReader *reader, Size bytes)
{
	if (reader->whole_bytes >= bytes &&
		reader->whole_bytes <= Max(bytes, WHOLE_LONG_BYTES))
		return;
	if (reader->whole)
		pfree(reader->whole);
	reader->whole = NULL;
	reader->whole = MemoryContextAllocExtended(reader->context, bytes,
											   MCXT_ALLOC_HUGE);
	reader->whole_bytes = bytes;
}

/* Its record, whose key is in the buffer. */
static inline const FmsRecord *
put_together(FmsFirstKeyReader *reader, const FmsFirstKey *first_key)
{
	FmsKeyRecord *usual = &reader->usual;

	if (likely(first_key->tuple_bytes == 0))
	{
		usual->header.tuple_bytes = 0;
		usual->header.key_bytes = first_key->key_bytes;
		usual->header.flags = FMS_RECORD_FIRST_KEY | FMS_RECORD_EXACT;
		return &usual->header;
	}
	make_room(reader, fms_record_size(first_key->key_bytes,
									  first_key->tuple_bytes));
	fms_record_write(reader->whole, usual->key, first_key->key_bytes,
					 FMS_RECORD_FIRST_KEY, first_key->tuple -
					 FMS_TUPLE_SKIPPED_BYTES, first_key->tuple_bytes);
	return reader->whole;
}

const FmsRecord *
fms_first_key_reader_next(FmsFirstKeyReader *reader, uint32 *nblocks)
{
	FmsFirstKey first_key;
	const FmsRecord *record;

	if (unlikely(reader->at == reader->end))
		return NULL;
	reader->at = unpack(reader->at, reader->usual.key, &first_key);
	Assert(reader->at <= reader->end);
	record = put_together(reader, &first_key);
	*nblocks = first_key.nblocks;
	/* the record is of no chunk, and stays */
	if (unlikely(reader->at == reader->end))
		skip_empty_chunks(reader);
	return record;
}

/* The key taken last, as a number of which its first byte is the first. */
static inline uint128
load_prefix(const char *key)
{
	uint64		high;
	uint64		low;

	memcpy(&high, key, sizeof(high));
	memcpy(&low, key + sizeof(high), sizeof(low));
	return (uint128) pg_ntoh64(high) << 64 | pg_ntoh64(low);
}

static inline void
store_prefix(char *key, uint128 prefix)
{
	uint64		high = pg_hton64((uint64) (prefix >> 64));
	uint64		low = pg_hton64((uint64) prefix);

	memcpy(key, &high, sizeof(high));
	memcpy(key + sizeof(high), &low, sizeof(low));
}

/* Makes such a number of the one before. */
static inline uint128
next_prefix(uint128 key, const FmsPackedStart *start, const char *at)
{
	int			shared_bits = start->shared * BITS_PER_BYTE;
	uint128		given = (uint128) given_word(at, start->given) << 64 |
		given_word(at + sizeof(uint64), start->given - (int) sizeof(uint64));

	return (key & ~(~(uint128) 0 >> shared_bits)) | given >> shared_bits;
}

/*
 * Unpacks first keys of the present chunk, up to n and one at least: as
 * unpack() does, but the key stays in the processor's registers meanwhile.
 */
static inline int
take_from_chunk(FmsFirstKeyReader *reader, FmsEntry *entries, int n,
				uint64 back, uint32 *nblocks)
{
	const char *at = reader->at;
	uint128		key = load_prefix(reader->usual.key);
	int			taken = 0;
	FmsFirstKey first_key;

	do
	{
		FmsPackedStart start;

		at = unpack_start(at, &start, &first_key);
		Assert(first_key.key_bytes <= FMS_PREFIX_BYTES);
		key = next_prefix(key, &start, at);
		at = first_key.tuple + packed_tuple_bytes(&first_key);
		entries[taken++] = fms_entry_of_key(key >> 48, back);
	} while (taken < n && at != reader->end && first_key.nblocks == 1);

	store_prefix(reader->usual.key, key);
	reader->at = at;
	*nblocks = first_key.nblocks;
	return taken;
}

int
fms_first_key_reader_take(FmsFirstKeyReader *reader, FmsEntry *entries, int n,
					  uint64 back, uint32 *nblocks)
{
	int			taken;

	if (unlikely(reader->at == reader->end))
		return 0;
	taken = take_from_chunk(reader, entries, n, back, nblocks);
	Assert(reader->at <= reader->end);
	if (unlikely(reader->at == reader->end))
		skip_empty_chunks(reader);
	return taken;
}

void
fms_first_key_reader_prefetch(const FmsFirstKeyReader *reader)
{
	__builtin_prefetch(reader->at);
}
