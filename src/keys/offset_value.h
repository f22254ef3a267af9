/*-------------------------------------------------------------------------
 *
 * offset_value.h
 *	  Offset-value codes: what a key differs by from the one that left before.
 *
 * While runs are merged, the heads that could leave next begin alike: like
 * each other, and like the record that has just left.  Comparing their first
 * bytes tells nothing, and comparing the rest means to fetch both records,
 * log2(n) times a step.  So each node of the tree of losers has a code: how
 * many words its key shares with the key that it lost to, and the next word
 * (Conner's offset-value coding, here in words of eight bytes).
 *
 *	  left before:  clerk#00 00000017 1995-03-
 *
 *	  clerk#00 00000017 1995-04-	2 words shared, then "1995-04-"
 *	  clerk#00 00000023 1992-01-	1 word shared, then "00000023"
 *
 * Nothing left goes before what has left; so whoever shares more with that is
 * closer to it, and leaves sooner; if two share the same, the one with the
 * smaller word does.  Whoever loses by its code differs from the winner just
 * as it differed from what left before, so its code holds on.  Only two of the
 * same code have to be compared, from the next word on, and then the loser
 * gets a new code, that of where it differs from the winner.  Each word of a
 * key is thus compared about once on the way through the tree, however many
 * matches it plays, and most matches fetch no record.
 *
 *	  code      | rank, 8 bits | word, 64 bits | 0, 24 bits |
 *
 *	  rank 0	the same key, and nothing else to compare
 *	  rank 1	the same key bytes; columns are to be compared (record.h)
 *	  rank 2 .. the fewer words are shared, the higher
 *	  rank 255	the end of a run (fms_losertree_end())
 *
 * Matches are only played between codes by the same key: losers on the path of
 * a winner lost to it, and its successor is coded by it.
 *
 * Where the first ten bytes are all of the key, they themselves are the better
 * code (merge.c): they need no key to be remembered.
 *
 * Nothing here allocates; comparing columns may do what keys.h says.
 *
 *-------------------------------------------------------------------------
 */
#ifndef FMS_OFFSET_VALUE_H
#define FMS_OFFSET_VALUE_H

#include "keys/keys.h"
#include "base/losertree.h"

/* The key that codes are made by; zeroed: none, everything differs from it. */
typedef struct FmsCodeBase
{
	int			nwords;
	uint64		words[FMS_KEY_MAX_WORDS];
} FmsCodeBase;

#define FMS_CODE_SAME		0
#define FMS_CODE_SAME_BYTES 1
#define FMS_CODE_DIFFERS	2	/* in the last word; each before: +1 */

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

/* Differs in word i, the first one that does. */
static inline FmsLoserNode
fms_code_differs(const FmsRecord *record, int i, int leaf)
{
	return fms_code_node(FMS_CODE_DIFFERS + FMS_KEY_MAX_WORDS - 1 - i,
						 fms_record_key_word(record, i), leaf);
}

/* Does not differ in any word. */
static inline FmsLoserNode
fms_code_same(const FmsRecord *record, int leaf)
{
	return fms_code_node(record->flags & FMS_RECORD_EXACT ?
						 FMS_CODE_SAME : FMS_CODE_SAME_BYTES, 0, leaf);
}

/* How many words of the key are known to be shared by two of that code. */
static inline int
fms_code_shared_words(FmsLoserNode node)
{
	return FMS_CODE_DIFFERS + FMS_KEY_MAX_WORDS - fms_code_rank(node);
}

/* From now on codes are made by this record's key. */
static inline void
fms_code_set_base(FmsCodeBase *base, const FmsRecord *record)
{
	int			i;

	Assert(record->key_bytes <= FMS_KEY_MAX_BYTES);
	base->nwords = fms_record_key_words(record);
	for (i = 0; i < base->nwords; i++)
		base->words[i] = fms_record_key_word(record, i);
}

/* The code of a record that does not go before the base. */
static inline FmsLoserNode
fms_code_of(const FmsRecord *record, const FmsCodeBase *base, int leaf)
{
	int			nwords = fms_record_key_words(record);
	int			i;

	for (i = 0; i < nwords; i++)
	{
		if (i >= base->nwords ||
			fms_record_key_word(record, i) != base->words[i])
			return fms_code_differs(record, i, leaf);
	}
	return fms_code_same(record, leaf);
}

/*
 * Can the tie of two such codes be broken without one of them getting another?
 */
static inline bool
fms_code_is_lasting(FmsLoserNode node)
{
	return fms_code_rank(node) < FMS_CODE_DIFFERS;
}

/*
 * Which of two records of the same code loses?  Its node, with its code by the
 * winner's key.  Of equal records, the one of the later leaf.
 */
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
		int			i;

		for (i = fms_code_shared_words(a); i < nwords; i++)
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
		/* keys are prefix-free: only damaged ones are exact and not */
		if (fms_code_rank(a) == FMS_CODE_SAME || !fms_losertree_tied(a, b))
			return later;
	}
	order = fms_keys_compare_columns(keys, a_record, b_record);
	return order == 0 ? later : order < 0 ? b : a;
}

#endif							/* FMS_OFFSET_VALUE_H */
