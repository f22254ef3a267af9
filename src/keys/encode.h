/*-------------------------------------------------------------------------
 *
 * encode.h
 *	  Values to bytes that memcmp() orders as the values are ordered.
 *
 * Pure functions on C values, without a server, so that a unit test can hold
 * each against its comparator.  keys.c decides which column gets which.
 *
 *	  integers	sign bit flipped, most significant byte first
 *	  floats	-0 becomes +0 and every NaN the same, largest one; then the
 *				IEEE bits, inverted if negative, else with the sign bit set
 *	  strings	their bytes and a zero byte (which text cannot contain)
 *	  bytea		0x00 becomes 0x00 0xFF, the end is 0x00 0x00
 *	  bit		as bytea, then how many bits of the last byte count
 *	  tid		block, offset
 *	  timetz	the moment (time and zone), then the zone
 *	  interval	days, then what is left of a day
 *	  inet		family, network, length of the network, rest of the address
 *	  numeric	see encode_numeric.h
 *
 * An interval is compared as one number of microseconds, a month being 30
 * days.  That takes 128 bits, of which the first 64 hardly ever differ, and
 * the first bytes of a key are what a sort compares most (FMS_PREFIX_BYTES).
 * Whole days and a never negative rest of a day order the same way, in ten
 * bytes.
 *
 * Each encoding is prefix-free: no key is the beginning of another, so what
 * follows a column never decides before it, and equal bytes mean equal
 * values.  A descending column inverts its bytes; the byte that says whether
 * it is null stands before it, is not inverted, and puts nulls where the
 * sort wants them.
 *
 * The writer has room for FMS_KEY_MAX_BYTES.  What does not fit is cut off
 * and `truncated` set: the bytes are then still never wrong, only undecided
 * where they are equal.
 *
 *-------------------------------------------------------------------------
 */
#ifndef FMS_ENCODE_H
#define FMS_ENCODE_H

#include "postgres.h"

#include <math.h>

#include "datatype/timestamp.h"
#include "port/pg_bswap.h"

typedef struct FmsKeyWriter
{
	uint8	   *at;				/* next byte to write */
	uint8	   *end;			/* first byte past the room */
	bool		truncated;		/* something did not fit */
	uint8		invert;			/* 0xFF while in a descending column */
} FmsKeyWriter;

static inline void
fms_encode_byte(FmsKeyWriter *writer, uint8 byte)
{
	if (writer->at < writer->end)
		*writer->at++ = byte ^ writer->invert;
	else
		writer->truncated = true;
}

/* Bytes that fit. */
static inline void
fms_encode_fitting(FmsKeyWriter *writer, const void *bytes, Size length)
{
	uint8	   *out = writer->at;
	Size		i;

	memcpy(out, bytes, length);
	if (writer->invert)
	{
		for (i = 0; i < length; i++)
			out[i] = ~out[i];
	}
	writer->at += length;
}

static inline void
fms_encode_bytes(FmsKeyWriter *writer, const void *bytes, Size length)
{
	Size		room = writer->end - writer->at;

	/* apart, so that the compiler sees the constant lengths of numbers */
	if (likely(length <= room))
		fms_encode_fitting(writer, bytes, length);
	else
	{
		fms_encode_fitting(writer, bytes, room);
		writer->truncated = true;
	}
}

static inline void
fms_encode_uint16(FmsKeyWriter *writer, uint16 value)
{
	uint16		ordered = pg_hton16(value);

	fms_encode_bytes(writer, &ordered, sizeof(ordered));
}

static inline void
fms_encode_uint32(FmsKeyWriter *writer, uint32 value)
{
	uint32		ordered = pg_hton32(value);

	fms_encode_bytes(writer, &ordered, sizeof(ordered));
}

static inline void
fms_encode_uint64(FmsKeyWriter *writer, uint64 value)
{
	uint64		ordered = pg_hton64(value);

	fms_encode_bytes(writer, &ordered, sizeof(ordered));
}

/* The lower five bytes of it. */
static inline void
fms_encode_uint40(FmsKeyWriter *writer, uint64 value)
{
	uint64		ordered = pg_hton64(value << 24);

	fms_encode_bytes(writer, &ordered, 5);
}

static inline void
fms_encode_int16(FmsKeyWriter *writer, int16 value)
{
	fms_encode_uint16(writer, (uint16) value ^ 0x8000);
}

static inline void
fms_encode_int32(FmsKeyWriter *writer, int32 value)
{
	fms_encode_uint32(writer, (uint32) value ^ UINT32_C(0x80000000));
}

static inline void
fms_encode_int64(FmsKeyWriter *writer, int64 value)
{
	fms_encode_uint64(writer,
					  (uint64) value ^ UINT64_C(0x8000000000000000));
}

static inline void
fms_encode_float4(FmsKeyWriter *writer, float value)
{
	uint32		bits;

	if (isnan(value))
		bits = UINT32_C(0xFFFFFFFF);
	else
	{
		if (value == 0)
			value = 0;			/* -0 is equal to +0 */
		memcpy(&bits, &value, sizeof(bits));
		if (bits & UINT32_C(0x80000000))
			bits = ~bits;
		else
			bits |= UINT32_C(0x80000000);
	}
	fms_encode_uint32(writer, bits);
}

static inline void
fms_encode_float8(FmsKeyWriter *writer, double value)
{
	uint64		bits;

	if (isnan(value))
		bits = UINT64_C(0xFFFFFFFFFFFFFFFF);
	else
	{
		if (value == 0)
			value = 0;			/* -0 is equal to +0 */
		memcpy(&bits, &value, sizeof(bits));
		if (bits & UINT64_C(0x8000000000000000))
			bits = ~bits;
		else
			bits |= UINT64_C(0x8000000000000000);
	}
	fms_encode_uint64(writer, bits);
}

/* The beginning of a longer key: leaves open what it does not decide. */
static inline void
fms_encode_beginning(FmsKeyWriter *writer, const void *bytes, Size length)
{
	fms_encode_bytes(writer, bytes, length);
	writer->truncated = true;
}

/* A string without zero bytes. */
static inline void
fms_encode_string(FmsKeyWriter *writer, const char *bytes, Size length)
{
	fms_encode_bytes(writer, bytes, length);
	fms_encode_byte(writer, 0);
}

/* Any bytes, compared as bytea does: a beginning goes before the whole. */
static inline void
fms_encode_binary(FmsKeyWriter *writer, const char *bytes, Size length)
{
	Size		i;

	for (i = 0; i < length && !writer->truncated; i++)
	{
		fms_encode_byte(writer, (uint8) bytes[i]);
		if (bytes[i] == 0)
			fms_encode_byte(writer, 0xFF);
	}
	fms_encode_byte(writer, 0);
	fms_encode_byte(writer, 0);
}

/*
 * Bits, padded with zeroes to bytes.  Bytes decide first, so a longer string
 * with equal bytes can only be longer in its last byte.
 */
static inline void
fms_encode_bits(FmsKeyWriter *writer, const char *bytes, Size length,
				int32 nbits)
{
	fms_encode_binary(writer, bytes, length);
	fms_encode_byte(writer, length > 0 ? nbits - 8 * (length - 1) : 0);
}

static inline void
fms_encode_tid(FmsKeyWriter *writer, uint32 block, uint16 offset)
{
	fms_encode_uint32(writer, block);
	fms_encode_uint16(writer, offset);
}

/* The zone counts seconds west of Greenwich, the time microseconds. */
static inline void
fms_encode_timetz(FmsKeyWriter *writer, int64 time, int32 zone)
{
	fms_encode_int64(writer, time + zone * USECS_PER_SEC);
	fms_encode_int32(writer, zone);
}

static inline void
fms_encode_interval(FmsKeyWriter *writer, int64 time, int32 day, int32 month)
{
	int64		days = month * INT64CONST(30) + day + time / USECS_PER_DAY;
	int64		rest = time % USECS_PER_DAY;

	if (rest < 0)
	{
		rest += USECS_PER_DAY;
		days--;
	}
	/* both fit into 40 bits, whatever the interval */
	fms_encode_uint40(writer, days + (INT64CONST(1) << 39));
	fms_encode_uint40(writer, rest);
}

/*
 * An address of 4 or 16 bytes, of which the first `bits` bits are the network.
 * Networks are compared as far as both have bits; where that leaves a tie
 * the shorter one goes first, which is just what zeroes in place of the rest
 * do.  The rest itself comes last, from the byte where the network ends.
 */
static inline void
fms_encode_inet(FmsKeyWriter *writer, uint8 family, uint8 bits,
				const uint8 *address, int size)
{
	uint8		network[16] = {0};
	int			whole;

	bits = Min(bits, 8 * size);
	whole = bits / 8;
	memcpy(network, address, whole);
	if (bits % 8 != 0)
		network[whole] = address[whole] & (0xFF << (8 - bits % 8));

	fms_encode_byte(writer, family);
	fms_encode_bytes(writer, network, size);
	fms_encode_byte(writer, bits);
	fms_encode_bytes(writer, address + whole, size - whole);
}

#endif							/* FMS_ENCODE_H */
