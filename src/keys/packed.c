/*-------------------------------------------------------------------------
 *
 * packed.c
 *	  Entries packed into one word each and sorted by radix.
 *
 * A word holds the bits of the key, in up to PARTS_MAX parts, and of the
 * record's offset that vary in a set of entries.  A date and an integer:
 *
 *	  entry     | 01 800011A4 01 8000B3C2 | 000000A2F3C8 |	128 bits
 *	  varying   |       ^^^^        ^^^^^ |
 *	  word      | 11A4 | 0B3C2 | offset / 8 |				 64 bits
 *
 * The words order like the entries.  They take half of the entries' memory;
 * the other half is the room for a radix sort:
 *
 *	  entries   | e0    | e1    | e2    | e3    |
 *	  packed    |w0 |w1 |w2 |w3 |    (room)     |
 *	  sorted    |               |w0 |w2 |w1 |w3 |
 *	  unpacked  | e0    | e2    | e1    | e3    |
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

/* Parts of the key that a word has, at most. */
#define PARTS_MAX			4

/* Bits of the key that a word has next to each other. */
typedef struct FmsKeyPart
{
	int			from;			/* number of the lowest bit, from 0 on */
	int			bits;
	uint64		mask;			/* `bits` ones */
} FmsKeyPart;

/* How a set of entries is packed. */
typedef struct FmsPacking
{
	uint128		same;			/* the bits of all keys that are in no part */
	FmsKeyPart	parts[PARTS_MAX];	/* the lowest one first */
	int			nparts;
	int			key_bits;		/* of all parts; 0: equal keys */
	int			offset_bits;	/* of the record's offset / MAXIMUM_ALIGNOF */
} FmsPacking;

static int
bits_of(uint128 number)
{
	uint64		high = (uint64) (number >> 64);
	uint64		low = (uint64) number;

	if (high != 0)
		return 65 + pg_leftmost_one_pos64(high);
	return low != 0 ? 1 + pg_leftmost_one_pos64(low) : 0;
}

static int
trailing_zeros(uint128 number)
{
	uint64		low = (uint64) number;

	Assert(number != 0);
	return low != 0 ? pg_rightmost_one_pos64(low) :
		64 + pg_rightmost_one_pos64((uint64) (number >> 64));
}

static void
choose_parts(FmsPacking *packing, uint128 varying)
{
	while (varying != 0)
	{
		FmsKeyPart *part = &packing->parts[packing->nparts++];
		uint128		rest;

		part->from = trailing_zeros(varying);
		rest = varying >> part->from;
		if (packing->nparts == PARTS_MAX)
			part->bits = bits_of(rest);
		else
		{
			/* up to four bits that do not vary */
			uint128		gap = ~(rest | rest >> 1 | rest >> 2 | rest >> 3);

			part->bits = trailing_zeros(gap);
		}
		rest = (uint128) 1 << part->bits;
		part->mask = (uint64) (rest - 1);
		packing->key_bits += part->bits;
		packing->same &= ~((rest - 1) << part->from);
		varying &= ~((rest - 1) << part->from);
	}
}

static FmsPacking
packing_of(const FmsEntry *entries, Size count)
{
	uint128		first = fms_entry_key(&entries[0]);
	FmsPacking	packing = {.same = first};
	uint128		varying = 0;
	uint64		offsets = 0;

	fms_for_interruptible(i, count, sizeof(FmsEntry))
	{
		varying |= fms_entry_key(&entries[i]) ^ first;
		offsets |= fms_entry_offset(&entries[i]);
	}
	choose_parts(&packing, varying);
	packing.offset_bits = bits_of(offsets >> OFFSET_SHIFT);
	return packing;
}

static void
pack(const FmsPacking *packing, FmsEntry *entries, uint64 *words, Size count)
{
	fms_for_interruptible(i, count, sizeof(FmsEntry))
	{
		uint128		key = fms_entry_key(&entries[i]);
		uint64		word = fms_entry_offset(&entries[i]) >> OFFSET_SHIFT;
		int			at = packing->offset_bits;

		for (int p = 0; p < packing->nparts; p++)
		{
			const FmsKeyPart *part = &packing->parts[p];

			word |= ((uint64) (key >> part->from) & part->mask) << at;
			at += part->bits;
		}
		words[i] = word;
	}
}

static inline FmsEntry
unpack(const FmsPacking *packing, uint64 word)
{
	uint64		offset = word &
		((UINT64CONST(1) << packing->offset_bits) - 1);
	uint128		key = packing->same;

	word >>= packing->offset_bits;
	for (int p = 0; p < packing->nparts; p++)
	{
		const FmsKeyPart *part = &packing->parts[p];

		key |= (uint128) (word & part->mask) << part->from;
		word >>= part->bits;
	}
	return fms_entry_of_key(key, offset << OFFSET_SHIFT);
}

bool
fms_entries_sort_packed(FmsEntry *entries, Size count, bool in_arrival)
{
	FmsPacking	packing = packing_of(entries, count);
	int			end_bit = packing.offset_bits + packing.key_bits;
	int			first_bit = in_arrival ? packing.offset_bits : 0;
	uint64	   *words = (uint64 *) entries;
	uint64	   *sorted = words + count;

	if (end_bit > 64)
		return false;
	if (first_bit == end_bit)
		return true;
	pack(&packing, entries, words, count);
	fms_radix_deal(words, sorted, count, 0, first_bit, end_bit - first_bit);
	/* no entry reaches a word that has not been read */
	fms_for_interruptible(i, count, sizeof(FmsEntry))
		entries[i] = unpack(&packing, sorted[i]);
	return true;
}
