/*
 * A checksum holds for the bytes that it was computed of, and for no others.
 *
 * Seen to fail with: the checksum computed from behind the salt; from one byte
 * less; the salt not compared.
 */
#include "postgres.h"

#include <string.h>

#include "common/pg_prng.h"

#include "base/checksum.h"
#include "shim.h"

#define LARGEST		5000
#define SALT		0xC0FFEE11

static union
{
	FmsChecksum		checksum;
	char		bytes[LARGEST];
}			piece;

static const Size sizes[] = {
	sizeof(FmsChecksum) + 8, 512, 1024, 1024 + 8, 2560, 4096, LARGEST
};

static void
make_piece(Size bytes)
{
	Size		i;

	for (i = 0; i < bytes; i++)
		piece.bytes[i] = (char) shim_random();
	fms_checksum_set(&piece.checksum, bytes, SALT, true);
}

static void
test_every_bit(Size bytes)
{
	int			unnoticed = 0;
	Size		bit;

	make_piece(bytes);
	shim_ok(fms_checksum_holds(&piece.checksum, bytes, SALT, true),
			"%zu bytes: the checksum holds", bytes);
	for (bit = 0; bit < bytes * 8; bit++)
	{
		piece.bytes[bit / 8] ^= 1 << bit % 8;
		unnoticed += fms_checksum_holds(&piece.checksum, bytes, SALT, true);
		piece.bytes[bit / 8] ^= 1 << bit % 8;
	}
	shim_ok(unnoticed == 0, "%zu bytes: every flipped bit is noticed", bytes);
	shim_ok(fms_checksum_holds(&piece.checksum, bytes, SALT, true),
			"%zu bytes: bits flipped back are not", bytes);
}

/* What storage does to a page: not written, written in part, swapped. */
static void
test_sectors(void)
{
	static char saved[LARGEST];
	int			unnoticed = 0;
	Size		from;
	Size		to;

	make_piece(4096);
	memcpy(saved, piece.bytes, 4096);
	for (from = 0; from < 4096; from += 512)
	{
		for (to = from + 512; to <= 4096; to += 512)
		{
			memset(piece.bytes + from, 0, to - from);
			unnoticed += fms_checksum_holds(&piece.checksum, 4096, SALT, true);
			memcpy(piece.bytes, saved, 4096);
			if (to == 4096)
				continue;
			memcpy(piece.bytes + from, saved + to, 512);
			memcpy(piece.bytes + to, saved + from, 512);
			unnoticed += fms_checksum_holds(&piece.checksum, 4096, SALT, true);
			memcpy(piece.bytes, saved, 4096);
		}
	}
	shim_ok(unnoticed == 0, "sectors that are zero or swapped are noticed");

	memset(piece.bytes, 0, sizeof(piece.bytes));
	shim_ok(!fms_checksum_holds(&piece.checksum, 4096, SALT, true) &&
			!fms_checksum_holds(&piece.checksum, 4096, 0, true),
			"zeroes have no valid checksum, without a salt");
}

static void
test_salt(void)
{
	uint32		salts[3];
	int			i;

	make_piece(512);
	shim_ok(!fms_checksum_holds(&piece.checksum, 512, SALT ^ 1, true),
			"an intact piece of another tape is noticed");

	fms_checksum_set(&piece.checksum, 512, SALT, false);
	piece.bytes[300]++;
	shim_ok(fms_checksum_holds(&piece.checksum, 512, SALT, false) &&
			!fms_checksum_holds(&piece.checksum, 512, SALT ^ 1, false),
			"without a checksum, the salt is checked");

	pg_prng_seed(&pg_global_prng_state, shim_random());
	for (i = 0; i < 3; i++)
		salts[i] = fms_checksum_new_salt();
	shim_ok(salts[0] != salts[1] && salts[1] != salts[2] &&
			salts[0] != salts[2], "tapes have salts of their own");
}

int
main(void)
{
	int			i;

	shim_seed();
	for (i = 0; i < (int) lengthof(sizes); i++)
		test_every_bit(sizes[i]);
	test_sectors();
	test_salt();
	return shim_done();
}
