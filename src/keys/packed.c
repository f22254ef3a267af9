/*-------------------------------------------------------------------------
 *
 * packed.c
 *	  Entries packed into a word each, and sorted as such.
 *
 * An entry has 80 bits of the key and 48 of the way to its record.  Of both
 * few differ among the entries at hand: two thousand dates, some million
 * customers, records in 64 MB.  So from each key the smallest one is taken
 * away, the bits at its end that are alike everywhere are dropped, and what
 * remains goes into one word, in front of the way:
 *
 *	  entry     | 7FFFF3A1 00000000 0000 | 000000A2F3C8 |	128 bits
 *	  word      |      key - low |  way / 8 |				 64 bits
 *
 * Words that are all different and compare like the entries: no ties to look
 * after.  They take half of the entries' memory, so the other half is free,
 * and that is just what a radix sort out of place needs.
 *
 *	  entries   | e0    | e1    | e2    | e3    |
 *	  packed    |w0 |w1 |w2 |w3 |    (room)     |
 *	  dealt     |               |w2 |w0 |w3 |w1 |	by the last digit
 *	  dealt     |w0 |w2 |w1 |w3 |				|	by the first: sorted
 *	  unpacked  | e0    | e2    | e1    | e3    |
 *
 * Dealing from the last digit to the first keeps the order of what is equal,
 * so entries in order of arrival need only be dealt by the bits of their
 * keys.  Entries that are in another order are dealt by all bits, those of
 * their ways first; few entries are compared, as words.
 *
 * Why not a radix sort of the entries themselves: out of place it takes
 * memory that the runs would miss; in place it mixes up the arrivals, and the
 * ties, which may be most of the input, have to be sorted by comparing.
 *
 * Memory: the entries' own, and the stack.  Each loop checks for interrupts
 * (interrupts.h); after an error the entries can only be forgotten.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "port/pg_bitutils.h"

#include "base/interrupts.h"
#include "keys/packed.h"

/* Records are MAXALIGNed, and so are the ways to them. */
#define WAY_SHIFT			3

/* Digits: as many buckets as the processor's caches can write to at once. */
#define DIGIT_BITS_MAX		11
/* Fewer words than this are sorted by comparing. */
#define DEAL_MIN_WORDS		32

StaticAssertDecl(MAXIMUM_ALIGNOF == 1 << WAY_SHIFT,
				 "the way to a record is a multiple of its alignment");
StaticAssertDecl(sizeof(FmsEntry) == 2 * sizeof(uint64),
				 "packed entries must leave room for as many again");

static inline int
compare_words(const uint64 *a, const uint64 *b)
{
	return *a < *b ? -1 : *a > *b;
}

#define ST_SORT sort_words
#define ST_ELEMENT_TYPE uint64
#define ST_COMPARE(a, b) compare_words(a, b)
#define ST_SCOPE static
#define ST_DEFINE
#include "lib/sort_template.h"

/* How many bits does it take to write the number? */
static int
bits_of(uint128 number)
{
	uint64		high = (uint64) (number >> 64);
	uint64		low = (uint64) number;

	if (high != 0)
		return 65 + pg_leftmost_one_pos64(high);
	return low != 0 ? 1 + pg_leftmost_one_pos64(low) : 0;
}

/* How many zeros does it end with?  It is not zero itself. */
static int
zeros_behind(uint128 number)
{
	uint64		low = (uint64) number;

	Assert(number != 0);
	return low != 0 ? pg_rightmost_one_pos64(low) :
		64 + pg_rightmost_one_pos64((uint64) (number >> 64));
}

FmsPacking
fms_packing_of(const FmsEntry *entries, Size count)
{
	uint128		first = fms_entry_key(&entries[0]);
	uint128		low = first;
	uint128		high = first;
	uint128		varying = 0;
	uint64		back = 0;
	FmsPacking	packing;
	Size		i;

	for (i = 0; i < count;)
	{
		Size		stop = fms_interrupts_stretch(i, count, sizeof(FmsEntry));

		for (; i < stop; i++)
		{
			uint128		key = fms_entry_key(&entries[i]);

			low = Min(low, key);
			high = Max(high, key);
			varying |= key ^ first;
			back |= fms_entry_place(&entries[i]);
		}
	}
	packing.low = low;
	packing.shift = varying != 0 ? zeros_behind(varying) : 0;
	packing.key_bits = bits_of((high - low) >> packing.shift);
	packing.back_bits = bits_of(back >> WAY_SHIFT);
	return packing;
}

/* Words move to the front: none is written over before it has been read. */
static void
pack(const FmsPacking *packing, FmsEntry *entries, uint64 *words, Size count)
{
	Size		i;

	for (i = 0; i < count;)
	{
		Size		stop = fms_interrupts_stretch(i, count, sizeof(FmsEntry));

		for (; i < stop; i++)
		{
			FmsEntry	entry = entries[i];
			uint64		way = fms_entry_place(&entry) >> WAY_SHIFT;

			words[i] = (uint64) ((fms_entry_key(&entry) - packing->low) >>
								 packing->shift) << packing->back_bits | way;
		}
	}
}

static inline FmsEntry
unpack(const FmsPacking *packing, uint64 word)
{
	uint64		way = word & ((UINT64CONST(1) << packing->back_bits) - 1);
	uint128		key = word >> packing->back_bits;

	return fms_entry_of_key(packing->low + (key << packing->shift),
							way << WAY_SHIFT);
}

/* From the first half of the entries' memory, or from the second. */
static void
unpack_all(const FmsPacking *packing, FmsEntry *entries, const uint64 *words,
		   Size count)
{
	bool		backwards = words == (const uint64 *) entries;
	Size		done;

	for (done = 0; done < count;)
	{
		Size		stop = fms_interrupts_stretch(done, count,
												  sizeof(FmsEntry));

		if (backwards)
		{
			for (; done < stop; done++)
				entries[count - 1 - done] =
					unpack(packing, words[count - 1 - done]);
		}
		else
		{
			for (; done < stop; done++)
				entries[done] = unpack(packing, words[done]);
		}
	}
}

/*
 * Deals words by one digit, in the order they are in.  False: they are all
 * alike in it, and stay where they are.
 */
static bool
deal_words(const uint64 *from, uint64 *to, Size count, int shift, int bits)
{
	Size		next[1 << DIGIT_BITS_MAX];
	uint64		mask = (UINT64CONST(1) << bits) - 1;
	Size		sum = 0;
	Size		i;

	memset(next, 0, sizeof(Size) << bits);
	for (i = 0; i < count;)
	{
		Size		stop = fms_interrupts_stretch(i, count, sizeof(FmsEntry));

		for (; i < stop; i++)
			next[(from[i] >> shift) & mask]++;
	}
	if (next[(from[0] >> shift) & mask] == count)
		return false;
	for (i = 0; i <= mask; i++)
	{
		Size		size = next[i];

		next[i] = sum;
		sum += size;
	}
	for (i = 0; i < count;)
	{
		Size		stop = fms_interrupts_stretch(i, count, sizeof(FmsEntry));

		for (; i < stop; i++)
			to[next[(from[i] >> shift) & mask]++] = from[i];
	}
	return true;
}

/*
 * Sorts by the bits from that one on; returns which of the two halves has the
 * words.
 */
static uint64 *
deal_all(int first_bit, int nbits, uint64 *words, uint64 *room, Size count)
{
	/* no more buckets than words: they are all counted through */
	int			most = Min(DIGIT_BITS_MAX, pg_leftmost_one_pos64(count));
	int			ndigits = (nbits + most - 1) / most;
	int			bits = (nbits + ndigits - 1) / ndigits;
	int			i;

	for (i = 0; i < ndigits; i++)
	{
		int			shift = first_bit + i * bits;

		if (deal_words(words, room, count, shift, Min(bits, 64 - shift)))
		{
			uint64	   *dealt = room;

			room = words;
			words = dealt;
		}
	}
	return words;
}

void
fms_packed_sort(const FmsPacking *packing, FmsEntry *entries, Size count,
				bool in_arrival)
{
	uint64	   *words = (uint64 *) entries;
	int			first_bit = in_arrival ? packing->back_bits : 0;

	Assert(fms_packing_fits(packing));

	if (in_arrival && packing->key_bits == 0)
		return;
	pack(packing, entries, words, count);
	if (count >= DEAL_MIN_WORDS)
		words = deal_all(first_bit,
						 packing->back_bits + packing->key_bits - first_bit,
						 words, words + count, count);
	else
		sort_words(words, count);
	unpack_all(packing, entries, words, count);
}
