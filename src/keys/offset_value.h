/*-------------------------------------------------------------------------
 *
 * offset_value.h
 *	  Offset-value codes (Conner): a record's key relative to the base, the key
 *	  of the record that left the loser tree last.
 *
 *	  base:         clerk#00 00000017 1995-03-
 *	  clerk#00 00000017 1995-04-	2 words shared, then "1995-04-"
 *	  clerk#00 00000023 1992-01-	1 word shared, then "00000023"
 *
 *	  code		| rank, 8 bits | word, 64 bits | 0, 24 bits |
 *
 *	  rank 0	equal records
 *	  rank 1	equal keys, columns decide
 *	  rank 2..	the more words are shared, the lower
 *	  rank 255	the end of a run (fms_losertree_end())
 *
 * No key is less than the base, so the record that shares more words with it
 * is smaller.  A record that loses by its code differs from the winner where
 * it differed from the base, so its code stays valid.  Two equal codes are
 * compared from the next word on, and the loser gets a code relative to the
 * winner.
 *
 *-------------------------------------------------------------------------
 */
#ifndef FMS_OFFSET_VALUE_H
#define FMS_OFFSET_VALUE_H

#include "keys/keys.h"
#include "base/losertree.h"

/* The base key; zeroed: none, every key differs from it in word 0. */
typedef struct FmsCodeBase
{
	int			nwords;
	uint64		words[FMS_KEY_MAX_WORDS];
} FmsCodeBase;

#define FMS_CODE_SAME		0
#define FMS_CODE_SAME_BYTES 1
#define FMS_CODE_DIFFERS	2	/* in the last word; + 1 for each before */

static inline FmsLoserNode
fms_code_node(int rank, uint64 word, int leaf)
{
	return fms_losertree_node((uint64) rank << 56 | word >> 8,
							  (uint32) word << 24, leaf);
}

static inline int
fms_code_rank(FmsLoserNode node)
{
	return (int) (node >> 120);
}

/* Of a record whose key first differs in word i. */
static inline FmsLoserNode
fms_code_differs(const FmsRecord *record, int i, int leaf)
{
	return fms_code_node(FMS_CODE_DIFFERS + FMS_KEY_MAX_WORDS - 1 - i,
						 fms_record_key_word(record, i), leaf);
}

/* The code of a record whose key has the same words. */
static inline FmsLoserNode
fms_code_same(const FmsRecord *record, int leaf)
{
	return fms_code_node(record->flags & FMS_RECORD_EXACT ?
						 FMS_CODE_SAME : FMS_CODE_SAME_BYTES, 0, leaf);
}

/* Number of leading words that two keys with this code share. */
static inline int
fms_code_shared_words(FmsLoserNode node)
{
	return FMS_CODE_DIFFERS + FMS_KEY_MAX_WORDS - fms_code_rank(node);
}

static inline void
fms_code_set_base(FmsCodeBase *base, const FmsRecord *record)
{
	Assert(record->key_bytes <= FMS_KEY_MAX_BYTES);
	base->nwords = fms_record_key_words(record);
	for (int i = 0; i < base->nwords; i++)
		base->words[i] = fms_record_key_word(record, i);
}

/* The code of a record that is not less than the base. */
static inline FmsLoserNode
fms_code_of(const FmsRecord *record, const FmsCodeBase *base, int leaf)
{
	int			nwords = fms_record_key_words(record);

	for (int i = 0; i < nwords; i++)
	{
		if (i >= base->nwords ||
			fms_record_key_word(record, i) != base->words[i])
			return fms_code_differs(record, i, leaf);
	}
	return fms_code_same(record, leaf);
}

/* Does a tie of two such codes leave both codes valid? */
static inline bool
fms_code_is_lasting(FmsLoserNode node)
{
	return fms_code_rank(node) < FMS_CODE_DIFFERS;
}

/* The loser of two equal codes, with a new code; of ties, the later leaf. */
static inline FmsLoserNode
fms_code_tie_loser(FmsKeys *keys, FmsLoserNode a, const FmsRecord *a_record,
				   FmsLoserNode b, const FmsRecord *b_record)
{
	FmsLoserNode later = fms_losertree_later(a, b);
	int			order;

	Assert(fms_losertree_tied(a, b));

	if (fms_code_rank(a) == FMS_CODE_SAME)
		return later;
	if (fms_code_rank(a) >= FMS_CODE_DIFFERS)
	{
		int			nwords = Min(fms_record_key_words(a_record),
								 fms_record_key_words(b_record));

		for (int i = fms_code_shared_words(a); i < nwords; i++)
		{
			uint64		a_word = fms_record_key_word(a_record, i);
			uint64		b_word = fms_record_key_word(b_record, i);

			if (a_word < b_word)
				return fms_code_differs(b_record, i, fms_losertree_leaf(b));
			if (a_word > b_word)
				return fms_code_differs(a_record, i, fms_losertree_leaf(a));
		}
		a = fms_code_same(a_record, fms_losertree_leaf(a));
		b = fms_code_same(b_record, fms_losertree_leaf(b));
		later = fms_losertree_later(a, b);
		/* keys are prefix-free: only damaged records differ in being exact */
		if (fms_code_rank(a) == FMS_CODE_SAME || !fms_losertree_tied(a, b))
			return later;
	}
	order = fms_keys_compare_columns(keys, a_record, b_record, 0);
	return order == 0 ? later : order < 0 ? b : a;
}

#endif							/* FMS_OFFSET_VALUE_H */
