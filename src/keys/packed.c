/*-------------------------------------------------------------------------
 *
 * packed.c
 *	  Entries packed into one word each and sorted by radix.
 *
 * An entry has 80 bits of the key and 48 bits of the record's offset, few of
 * which vary in a set of entries.  A word holds those:
 *
 *	  entry     | 7FFFF3A1 00000000 0000 | 000000A2F3C8 |	128 bits
 *	  word      | (key - low) >> shift | offset / 8 |		 64 bits
 *
 * The words are distinct and order like the entries.  They take half of the
 * entries' memory; the other half is the room for a radix sort:
 *
 *	  entries   | e0    | e1    | e2    | e3    |
 *	  packed    |w0 |w1 |w2 |w3 |    (room)     |
 *	  dealt     |               |w2 |w0 |w3 |w1 |	by the last digit
 *	  dealt     |w0 |w2 |w1 |w3 |				|	by the first: sorted
 *	  unpacked  | e0    | e2    | e1    | e3    |
 *
 * Dealing keeps the order of equal digits.  So entries in order of arrival
 * are dealt by the bits of their keys only.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "port/pg_bitutils.h"

#include "base/interrupts.h"
#include "keys/entry.h"
#include "keys/word.h"

/* Records are MAXALIGNed: the lowest bits of an offset are zero. */
#define OFFSET_SHIFT		3

StaticAssertDecl(MAXIMUM_ALIGNOF == 1 << OFFSET_SHIFT,
				 "an offset is a multiple of MAXIMUM_ALIGNOF");
StaticAssertDecl(sizeof(FmsEntry) == 2 * sizeof(uint64),
				 "packed entries leave room for as many words again");

/* How a set of entries is packed; valid for that set only. */
typedef struct FmsPacking
{
	uint128		low;			/* smallest fms_entry_key() */
	int			shift;			/* bits at the end of the keys that are the
								 * same in all keys */
	int			key_bits;		/* of (key - low) >> shift; 0: equal keys */
	int			offset_bits;	/* of the record's offset / MAXIMUM_ALIGNOF */
} FmsPacking;

/* Number of bits of the number without its leading zeros. */
static int
bits_of(uint128 number)
{
	uint64		high = (uint64) (number >> 64);
	uint64		low = (uint64) number;

	if (high != 0)
		return 65 + pg_leftmost_one_pos64(high);
	return low != 0 ? 1 + pg_leftmost_one_pos64(low) : 0;
}

/* Number of zero bits at the end of a number that is not 0. */
static int
trailing_zeros(uint128 number)
{
	uint64		low = (uint64) number;

	Assert(number != 0);
	return low != 0 ? pg_rightmost_one_pos64(low) :
		64 + pg_rightmost_one_pos64((uint64) (number >> 64));
}

/* Computes the packing of at least one entry. */
static FmsPacking
packing_of(const FmsEntry *entries, Size count)
{
	uint128		first = fms_entry_key(&entries[0]);
	uint128		low = first;
	uint128		high = first;
	uint128		varying = 0;
	uint64		offsets = 0;
	FmsPacking	packing;
	Size		i = 0;

	fms_for_interruptible(i, count, sizeof(FmsEntry))
	{
		uint128		key = fms_entry_key(&entries[i]);

		low = Min(low, key);
		high = Max(high, key);
		varying |= key ^ first;
		offsets |= fms_entry_offset(&entries[i]);
	}
	packing.low = low;
	packing.shift = varying != 0 ? trailing_zeros(varying) : 0;
	packing.key_bits = bits_of((high - low) >> packing.shift);
	packing.offset_bits = bits_of(offsets >> OFFSET_SHIFT);
	return packing;
}

/* Packs the entries into the first half of their memory. */
static void
pack(const FmsPacking *packing, FmsEntry *entries, uint64 *words, Size count)
{
	Size		i = 0;

	fms_for_interruptible(i, count, sizeof(FmsEntry))
	{
		FmsEntry	entry = entries[i];
		uint64		key = (fms_entry_key(&entry) - packing->low) >>
			packing->shift;

		words[i] = key << packing->offset_bits |
			fms_entry_offset(&entry) >> OFFSET_SHIFT;
	}
}

static inline FmsEntry
unpack(const FmsPacking *packing, uint64 word)
{
	uint64		offset = word &
		((UINT64CONST(1) << packing->offset_bits) - 1);
	uint128		key = word >> packing->offset_bits;

	return fms_entry_of_key(packing->low + (key << packing->shift),
							offset << OFFSET_SHIFT);
}

/* Unpacks words in either half of the entries' memory, unread ones last. */
static void
unpack_all(const FmsPacking *packing, FmsEntry *entries, const uint64 *words,
		   Size count)
{
	Size		i = 0;

	if (words != (const uint64 *) entries)
	{
		fms_for_interruptible(i, count, sizeof(FmsEntry))
			entries[i] = unpack(packing, words[i]);
	}
	else
	{
		fms_for_interruptible(i, count, sizeof(FmsEntry))
			entries[count - 1 - i] = unpack(packing, words[count - 1 - i]);
	}
}

bool
fms_entries_sort_packed(FmsEntry *entries, Size count, bool in_arrival)
{
	FmsPacking	packing = packing_of(entries, count);
	int			end_bit = packing.offset_bits + packing.key_bits;
	int			first_bit = in_arrival ? packing.offset_bits : 0;
	uint64	   *words = (uint64 *) entries;

	if (end_bit > 64)
		return false;
	if (first_bit == end_bit)
		return true;
	pack(&packing, entries, words, count);
	words = fms_radix_deal(words, words + count, count, 0, first_bit,
						   end_bit - first_bit);
	unpack_all(&packing, entries, words, count);
	return true;
}
