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

static inline void
fms_encode_bytes(FmsKeyWriter *writer, const void *bytes, Size length)
{
	Size		room = writer->end - writer->at;
	Size		fits = Min(room, length);
	uint8	   *out = writer->at;
	Size		i;

	memcpy(out, bytes, fits);
	if (writer->invert)
	{
		for (i = 0; i < fits; i++)
			out[i] = ~out[i];
	}
	writer->at += fits;
	if (fits < length)
		writer->truncated = true;
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

static inline void
fms_encode_int16(FmsKeyWriter *writer, int16 value)
{
	uint16		ordered = pg_hton16((uint16) value ^ 0x8000);

	fms_encode_bytes(writer, &ordered, sizeof(ordered));
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

#endif							/* FMS_ENCODE_H */
