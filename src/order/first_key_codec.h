/*-------------------------------------------------------------------------
 *
 * first_key_codec.h
 *	  The packed form of the first keys of a run's blocks.
 *
 * A run is sorted, so a key begins like the key before it, and normalized keys
 * often end with zeros.  Neither part is written.  Most keys belong to one
 * block and need no tuple to be compared: these have the plain form, left.
 *
 *	  +------+-------+	+------+-----------------------------+-------+-------+
 *	  | head | given |	| head | nblocks, tuple_bytes, rows  | given | tuple |
 *	  | 4 B  | 0 ..  |	| 4 B  | 12 B                        |       |       |
 *	  +------+-------+	+------+-----------------------------+-------+-------+
 *
 *	  before	01 80 00 07 d1 00 00 00 00 00
 *	  key		01 80 00 07 d9 00 00 00 00 00
 *	            |- shared -|  |--- zeros ---|	given: d9
 *
 * Keys are copied by whole words, whatever their length, which is faster than
 * memcpy() of a few bytes.  So FMS_PACKED_SLACK_BYTES behind a packed key must
 * be readable and writable.
 *
 *-------------------------------------------------------------------------
 */
#ifndef FMS_FIRST_KEY_CODEC_H
#define FMS_FIRST_KEY_CODEC_H

#include "port/pg_bitutils.h"
#include "port/pg_bswap.h"

#include "keys/record.h"

/* A first key in parts, which need not be aligned. */
typedef struct FmsFirstKey
{
	uint32		nblocks;		/* of the chain that its record begins */
	uint32		key_bytes;
	uint32		tuple_bytes;	/* as in FmsRecord; 0: the key decides */
	const char *tuple;			/* its data, behind the skipped bytes */
	uint32		rows_before;	/* that begin since the first key before */
} FmsFirstKey;

#define FMS_FIRST_KEY_WORDS		(FMS_KEY_MAX_WORDS + 1)

/* A key as numbers that compare like its bytes. */
typedef struct FmsKeyWords
{
	uint64		words[FMS_FIRST_KEY_WORDS]; /* of the key, and a zero */
	uint32		key_bytes;		/* 0: there is no key */
} FmsKeyWords;

#define FMS_PACKED_SLACK_BYTES	sizeof(uint64)

/*
 * The head: number of whole words in the key, whether the form is extended,
 * number of shared and of given bytes; if the form is plain, rows_before.
 */
#define FMS_HEAD_WORDS_MASK		0x0007
#define FMS_HEAD_EXTENDED		0x0008
#define FMS_HEAD_SHARED_SHIFT	4
#define FMS_HEAD_GIVEN_SHIFT	10
#define FMS_HEAD_BYTES_MASK		0x003F	/* of shared and of given bytes */
#define FMS_HEAD_ROWS_SHIFT		16

typedef struct FmsPackedExtra
{
	uint32		nblocks;
	uint32		tuple_bytes;
	uint32		rows_before;
} FmsPackedExtra;

StaticAssertDecl(FMS_KEY_MAX_BYTES <= FMS_HEAD_BYTES_MASK &&
				 FMS_KEY_MAX_WORDS <= FMS_HEAD_WORDS_MASK,
				 "the longest key's lengths fit into a head");
StaticAssertDecl(sizeof(FmsPackedExtra) == 12,
				 "packed keys go to disk: they must not be padded");

/*
 * The fields are no neighbours: compilers would compare two as one word, and a
 * load wider than the stores before it waits for all of these.
 */
static inline bool
fms_first_key_is_plain(const FmsFirstKey *key)
{
	return key->nblocks == 1 && key->tuple_bytes == 0 &&
		key->rows_before <= PG_UINT16_MAX;
}

static inline Size
fms_packed_tuple_bytes(const FmsFirstKey *key)
{
	return key->tuple_bytes == 0 ? 0 :
		key->tuple_bytes - FMS_TUPLE_SKIPPED_BYTES;
}

/* Largest size of the packed key, with what copying it overwrites. */
static inline Size
fms_packed_max_bytes(const FmsFirstKey *key)
{
	return sizeof(uint32) +
		(fms_first_key_is_plain(key) ? 0 : sizeof(FmsPackedExtra)) +
		key->key_bytes + fms_packed_tuple_bytes(key) + FMS_PACKED_SLACK_BYTES;
}

static inline void
fms_key_words_take(FmsKeyWords *key, const FmsRecord *record)
{
	int			nwords = fms_record_key_words(record);

	for (int i = 0; i < nwords; i++)
		key->words[i] = fms_record_key_word(record, i);
	key->words[nwords] = 0;
	key->key_bytes = record->key_bytes;
}

/* Number of leading bytes in which two keys of one length are alike. */
static inline Size
fms_key_words_shared(const FmsKeyWords *a, const FmsKeyWords *b)
{
	if (a->key_bytes != b->key_bytes)
		return 0;
	for (Size i = 0; i * sizeof(uint64) < a->key_bytes; i++)
	{
		uint64		differing = a->words[i] ^ b->words[i];

		if (differing != 0)
			return i * sizeof(uint64) +
				(63 - pg_leftmost_one_pos64(differing)) / BITS_PER_BYTE;
	}
	return a->key_bytes;
}

static inline Size
fms_key_words_before_zeros(const FmsKeyWords *key)
{
	for (int i = key->key_bytes / sizeof(uint64); i >= 0; i--)
		if (key->words[i] != 0)
			return (i + 1) * sizeof(uint64) -
				pg_rightmost_one_pos64(key->words[i]) / BITS_PER_BYTE;
	return 0;
}

/* Writes bytes of the key from `from` on, and overwrites the slack. */
static inline void
fms_key_words_write(const FmsKeyWords *key, Size from, Size bytes, char *at)
{
	int			shift = from % sizeof(uint64) * BITS_PER_BYTE;
	const uint64 *words = &key->words[from / sizeof(uint64)];

	for (Size i = 0; i * sizeof(uint64) < bytes; i++)
	{
		uint64		word = words[i] << shift;

		if (shift > 0)
			word |= words[i + 1] >> (64 - shift);
		word = pg_hton64(word);
		memcpy(at + i * sizeof(uint64), &word, sizeof(word));
	}
}

/* Packs first_key, whose key is `key`, behind the key `before`. */
static inline char *
fms_first_key_pack(const FmsFirstKey *first_key, const FmsKeyWords *key,
				   const FmsKeyWords *before, char *at)
{
	bool		plain = fms_first_key_is_plain(first_key);
	Size		tuple_bytes = fms_packed_tuple_bytes(first_key);
	Size		shared = fms_key_words_shared(key, before);
	Size		given = Max(shared, fms_key_words_before_zeros(key)) - shared;
	uint32		head = key->key_bytes / sizeof(uint64) |
		(plain ? first_key->rows_before << FMS_HEAD_ROWS_SHIFT :
		 FMS_HEAD_EXTENDED) |
		shared << FMS_HEAD_SHARED_SHIFT | given << FMS_HEAD_GIVEN_SHIFT;

	memcpy(at, &head, sizeof(head));
	at += sizeof(head);
	if (!plain)
	{
		FmsPackedExtra extra = {
			.nblocks = first_key->nblocks,
			.tuple_bytes = first_key->tuple_bytes,
			.rows_before = first_key->rows_before
		};

		memcpy(at, &extra, sizeof(extra));
		at += sizeof(extra);
	}
	fms_key_words_write(key, shared, given, at);
	at += given;
	if (tuple_bytes > 0)
		memcpy(at, first_key->tuple, tuple_bytes);
	return at + tuple_bytes;
}

typedef struct FmsPackedKey
{
	int			nwords;			/* of the key, its last bytes included */
	int			shared;			/* bytes of the key before */
	int			given;			/* bytes at `bytes` */
	const char *bytes;
} FmsPackedKey;

/* Unpacks all but the key, for fms_packed_key_word().  Returns the end. */
static inline const char *
fms_first_key_unpack(const char *at, FmsPackedKey *packed,
					 FmsFirstKey *first_key)
{
	uint32		head;
	FmsPackedExtra extra = {.nblocks = 1};
	int			whole_words;

	memcpy(&head, at, sizeof(head));
	at += sizeof(head);
	extra.rows_before = head >> FMS_HEAD_ROWS_SHIFT;
	if (unlikely(head & FMS_HEAD_EXTENDED))
	{
		memcpy(&extra, at, sizeof(extra));
		at += sizeof(extra);
	}
	whole_words = head & FMS_HEAD_WORDS_MASK;
	packed->nwords = whole_words + 1;
	packed->shared = (head >> FMS_HEAD_SHARED_SHIFT) & FMS_HEAD_BYTES_MASK;
	packed->given = (head >> FMS_HEAD_GIVEN_SHIFT) & FMS_HEAD_BYTES_MASK;
	packed->bytes = at;
	first_key->nblocks = extra.nblocks;
	first_key->tuple_bytes = extra.tuple_bytes;
	first_key->rows_before = extra.rows_before;
	first_key->key_bytes = whole_words * sizeof(uint64) + FMS_KEY_LAST_BYTES;
	first_key->tuple = at + packed->given;
	Assert(packed->shared + packed->given <= (int) first_key->key_bytes);
	return first_key->tuple + fms_packed_tuple_bytes(first_key);
}

/* The leading bytes of a word, less than eight, the others zero. */
static inline uint64
fms_leading_bytes(uint64 word, int bytes)
{
	return word & ~(PG_UINT64_MAX >> bytes * BITS_PER_BYTE);
}

static inline uint64
fms_given_word(const char *at, int left)
{
	uint64		word;

	if (left <= 0)
		return 0;
	memcpy(&word, at, sizeof(word));
	word = pg_ntoh64(word);
	return left < (int) sizeof(word) ? fms_leading_bytes(word, left) : word;
}

/* Word i of the key; `before` is that word of the key before. */
static inline uint64
fms_packed_key_word(const FmsPackedKey *packed, int i, uint64 before)
{
	int			from = i * (int) sizeof(uint64) - packed->shared;

	if (from >= 0)
		return fms_given_word(packed->bytes + from, packed->given - from);
	if (from <= -(int) sizeof(uint64))
		return before;
	return fms_leading_bytes(before, -from) |
		fms_given_word(packed->bytes, packed->given) >> -from * BITS_PER_BYTE;
}

#endif							/* FMS_FIRST_KEY_CODEC_H */
