/*-------------------------------------------------------------------------
 *
 * encode.h
 *	  Encoders: C values to bytes that memcmp() orders like the values.
 *
 *	  integers	sign bit flipped, most significant byte first
 *	  floats	-0 is +0, every NaN is the same, largest one; then the IEEE
 *				bits, inverted if negative, otherwise with the sign bit set
 *	  strings	the bytes and a zero byte (which text cannot contain)
 *	  bytea		0x00 becomes 0x00 0xFF; the end is 0x00 0x00
 *	  bit		as bytea, then the number of bits in the last byte
 *	  tid		block, offset
 *	  timetz	time in UTC, then the zone
 *	  interval	whole days (months have 30), then the rest of a day
 *	  inet		family, network, its length, rest of the address
 *	  numeric	see encode_numeric.h
 *
 * Invariants: no encoding is a prefix of another one of its type, and equal
 * bytes mean equal values, unless a key that exceeds its room is cut off and
 * marked `truncated`.
 *
 *-------------------------------------------------------------------------
 */
#ifndef FMS_ENCODE_H
#define FMS_ENCODE_H

#include <math.h>

#include "datatype/timestamp.h"
#include "port/pg_bswap.h"

typedef struct FmsKeyWriter
{
	uint8	   *at;				/* next byte to write */
	uint8	   *end;			/* end of the room */
	bool		truncated;		/* some bytes did not fit */
	uint8		invert;			/* XORed with every byte: 0xFF if descending */
} FmsKeyWriter;

static inline void
fms_encode_byte(FmsKeyWriter *writer, uint8 byte)
{
	if (writer->at < writer->end)
		*writer->at++ = byte ^ writer->invert;
	else
		writer->truncated = true;
}

static inline void
fms_encode_fitting(FmsKeyWriter *writer, const void *bytes, Size length)
{
	uint8	   *out = writer->at;

	memcpy(out, bytes, length);
	if (writer->invert)
	{
		for (Size i = 0; i < length; i++)
			out[i] = ~out[i];
	}
	writer->at += length;
}

static inline void
fms_encode_bytes(FmsKeyWriter *writer, const void *bytes, Size length)
{
	Size		room = writer->end - writer->at;

	/* a branch, not Min(): the lengths of numbers stay constants */
	if (likely(length <= room))
		fms_encode_fitting(writer, bytes, length);
	else
	{
		fms_encode_fitting(writer, bytes, room);
		writer->truncated = true;
	}
}

/* The lower `bytes` bytes of an unsigned integer. */
static inline void
fms_encode_uint(FmsKeyWriter *writer, uint64 value, int bytes)
{
	uint64		ordered = pg_hton64(value << (64 - 8 * bytes));

	fms_encode_bytes(writer, &ordered, bytes);
}

/* The lower `bytes` bytes of a signed integer. */
static inline void
fms_encode_int(FmsKeyWriter *writer, int64 value, int bytes)
{
	fms_encode_uint(writer,
					(uint64) value ^ UINT64CONST(1) << (8 * bytes - 1), bytes);
}

/* The bits of a float that is not NaN as an integer of the same order. */
static inline uint64
fms_ordered_float_bits(uint64 bits, uint64 sign_bit)
{
	return bits & sign_bit ? ~bits : bits | sign_bit;
}

static inline void
fms_encode_float4(FmsKeyWriter *writer, float value)
{
	uint32		bits;

	value = value == 0 ? 0 : value; /* -0 is equal to +0 */
	memcpy(&bits, &value, sizeof(bits));
	fms_encode_uint(writer, isnan(value) ? PG_UINT32_MAX :
					fms_ordered_float_bits(bits, UINT64CONST(1) << 31), 4);
}

static inline void
fms_encode_float8(FmsKeyWriter *writer, double value)
{
	uint64		bits;

	value = value == 0 ? 0 : value; /* -0 is equal to +0 */
	memcpy(&bits, &value, sizeof(bits));
	fms_encode_uint(writer, isnan(value) ? PG_UINT64_MAX :
					fms_ordered_float_bits(bits, UINT64CONST(1) << 63), 8);
}

static inline void
fms_encode_string(FmsKeyWriter *writer, const char *bytes, Size length)
{
	fms_encode_bytes(writer, bytes, length);
	fms_encode_byte(writer, 0);
}

static inline void
fms_encode_binary(FmsKeyWriter *writer, const char *bytes, Size length)
{
	for (Size i = 0; i < length && !writer->truncated; i++)
	{
		fms_encode_byte(writer, (uint8) bytes[i]);
		if (bytes[i] == 0)
			fms_encode_byte(writer, 0xFF);
	}
	fms_encode_byte(writer, 0);
	fms_encode_byte(writer, 0);
}

/* `nbits` bits in `length` bytes, the last one padded with zero bits. */
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
	fms_encode_uint(writer, block, 4);
	fms_encode_uint(writer, offset, 2);
}

/* time: local, in microseconds; zone: seconds west of Greenwich. */
static inline void
fms_encode_timetz(FmsKeyWriter *writer, int64 time, int32 zone)
{
	fms_encode_int(writer, time + zone * USECS_PER_SEC, 8);
	fms_encode_int(writer, zone, 4);
}

/* Ten bytes instead of a 128-bit sum, whose first 64 bits rarely differ. */
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
	/* both fit into 40 bits for every interval */
	fms_encode_int(writer, days, 5);
	fms_encode_uint(writer, rest, 5);
}

/* `size`: 4 or 16 bytes, whose first `bits` bits are the network. */
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
