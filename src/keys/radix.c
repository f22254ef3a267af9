/*-------------------------------------------------------------------------
 *
 * radix.c
 *	  Sorting words of 8 bytes by radix.
 *
 * Words are dealt into buckets by one digit after another, the last digit
 * first.  Dealing keeps the order of equal digits:
 *
 *	  words     | 32 | 13 | 31 | 12 |
 *	  dealt     | 31 | 32 | 12 | 13 |		by the last digit, into the room
 *	  dealt     | 12 | 13 | 31 | 32 |		by the first, back: sorted
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
#define DIGIT_BITS_MAX		11

/* Fewer words than this are sorted by insertion. */
#define DEAL_MIN_WORDS		32

/* What to know about words before they are sorted. */
typedef struct FmsWordRange
{
	uint64		low;			/* smallest word */
	uint64		high;			/* largest word */
	uint64		varying;		/* bits that are not the same in all words */
	bool		ascending;
} FmsWordRange;

/*
 * Deals words by one digit, keeping the order of equal digits.  Returns false,
 * with nothing moved, if the digit is the same in all words.
 */
static bool
deal_words(const uint64 *from, uint64 *to, Size count, uint64 low, int shift,
		   int bits)
{
	Size		next[1 << DIGIT_BITS_MAX];
	uint64		mask = (UINT64CONST(1) << bits) - 1;
	Size		sum = 0;
	Size		i = 0;

	memset(next, 0, sizeof(Size) << bits);
	fms_for_interruptible(i, count, 2 * sizeof(uint64))
		next[((from[i] - low) >> shift) & mask]++;
	if (next[((from[0] - low) >> shift) & mask] == count)
		return false;
	for (i = 0; i <= mask; i++)
	{
		Size		size = next[i];

		next[i] = sum;
		sum += size;
	}
	i = 0;
	fms_for_interruptible(i, count, 2 * sizeof(uint64))
		to[next[((from[i] - low) >> shift) & mask]++] = from[i];
	return true;
}

uint64 *
fms_radix_deal(uint64 *words, uint64 *room, Size count, uint64 low,
			   int first_bit, int nbits)
{
	/* each digit scans its buckets: no more buckets than words */
	int			most = Min(DIGIT_BITS_MAX, pg_leftmost_one_pos64(count));
	int			ndigits = (nbits + most - 1) / most;
	int			bits = (nbits + ndigits - 1) / ndigits;
	int			i;

	for (i = 0; i < ndigits; i++)
	{
		int			shift = first_bit + i * bits;

		if (deal_words(words, room, count, low, shift, Min(bits, 64 - shift)))
		{
			uint64	   *dealt = room;

			room = words;
			words = dealt;
		}
	}
	return words;
}

static FmsWordRange
range_of(const uint64 *words, Size count)
{
	FmsWordRange range = {words[0], words[0], 0, true};
	uint64		before = words[0];
	Size		i = 1;

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

static void
sort_few(uint64 *words, Size count)
{
	Size		i;

	for (i = 1; i < count; i++)
	{
		uint64		word = words[i];
		Size		at = i;

		for (; at > 0 && words[at - 1] > word; at--)
			words[at] = words[at - 1];
		words[at] = word;
	}
}

void
fms_radix_sort(uint64 *words, uint64 *room, Size count)
{
	FmsWordRange range;
	uint64	   *sorted;
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
	sorted = fms_radix_deal(words, room, count, range.low, shift,
							pg_leftmost_one_pos64(range.high - range.low) +
							1 - shift);
	if (sorted != words)
		fms_interrupts_memmove(words, sorted, count * sizeof(uint64));
}
