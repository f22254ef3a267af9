/*-------------------------------------------------------------------------
 *
 * radix.c
 *	  Sorting words of 8 bytes by radix.
 *
 * Words are dealt into buckets by their first digit, and each bucket by the
 * next one, until so few words are left that insertion sorts them:
 *
 *	  words     | 32 | 13 | 31 | 12 |
 *	  dealt     | 13 | 12 | 32 | 31 |		by the first digit
 *	  dealt     | 12 | 13 | 31 | 32 |		each bucket by the next one
 *
 * Only bits that vary make digits.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "port/pg_bitutils.h"

#include "base/interrupts.h"
#include "keys/word.h"

/* Bits of a digit: the L1 cache holds one line of each bucket. */
#define DIGIT_BITS_MAX		9

/* Fewer words than this are sorted by insertion. */
#define DEAL_MIN_WORDS		20

typedef struct FmsWordRange
{
	uint64		low;			/* smallest word */
	uint64		high;			/* largest word */
	uint64		varying;		/* bits that are not the same in all words */
	bool		ascending;
} FmsWordRange;

/*
 * Deals words by one digit, stably.  next: set to the end of each bucket.
 * False, with nothing moved, if all have the same digit, but the last one.
 */
static bool
deal_words(const uint64 *from, uint64 *to, Size count, uint64 low, int shift,
		   int bits, bool is_last, Size *next)
{
	uint64		mask = (UINT64CONST(1) << bits) - 1;
	Size		sum = 0;

	memset(next, 0, sizeof(Size) << bits);
	fms_for_interruptible(i, count, 2 * sizeof(uint64))
		next[((from[i] - low) >> shift) & mask]++;
	if (!is_last && next[((from[0] - low) >> shift) & mask] == count)
		return false;
	for (uint64 i = 0; i <= mask; i++)
	{
		Size		size = next[i];

		next[i] = sum;
		sum += size;
	}
	fms_for_interruptible(i, count, 2 * sizeof(uint64))
		to[next[((from[i] - low) >> shift) & mask]++] = from[i];
	return true;
}

static void
sort_few(uint64 *words, Size count)
{
	for (Size i = 1; i < count; i++)
	{
		uint64		word = words[i];
		Size		at = i;

		for (; at > 0 && words[at - 1] > word; at--)
			words[at] = words[at - 1];
		words[at] = word;
	}
}

void
fms_radix_deal(uint64 *words, uint64 *room, Size count, uint64 low,
			   int first_bit, int nbits)
{
	Size		ends[1 << DIGIT_BITS_MAX];
	Size		start = 0;
	int			bits;

	do
	{
		/* each digit scans its buckets: no more buckets than words */
		bits = Min(Min(DIGIT_BITS_MAX, pg_leftmost_one_pos64(count)), nbits);
		nbits -= bits;
	} while (!deal_words(words, room, count, low, first_bit + nbits, bits,
						 nbits == 0, ends));
	for (int i = 0; nbits > 0 && i < 1 << bits; start = ends[i++])
	{
		Size		size = ends[i] - start;

		if (size < DEAL_MIN_WORDS)
		{
			sort_few(room + start, size);
			continue;
		}
		fms_radix_deal(room + start, words + start, size, low, first_bit,
					   nbits);
		fms_interrupts_memmove(room + start, words + start,
							   size * sizeof(uint64));
	}
}

static FmsWordRange
range_of(const uint64 *words, Size count)
{
	FmsWordRange range = {words[0], words[0], 0, true};
	uint64		before = words[0];

	fms_for_interruptible(i, count, sizeof(uint64))
	{
		uint64		word = words[i];

		range.low = Min(range.low, word);
		range.high = Max(range.high, word);
		range.varying |= word ^ before;
		range.ascending &= before <= word;
		before = word;
	}
	return range;
}

void
fms_radix_sort(uint64 *words, uint64 *room, Size count)
{
	FmsWordRange range;
	int			shift;

	if (count < DEAL_MIN_WORDS)
	{
		sort_few(words, count);
		return;
	}
	range = range_of(words, count);
	if (range.ascending)
		return;
	shift = pg_rightmost_one_pos64(range.varying);
	fms_radix_deal(words, room, count, range.low, shift,
				   pg_leftmost_one_pos64(range.high - range.low) + 1 - shift);
	fms_interrupts_memmove(words, room, count * sizeof(uint64));
}
