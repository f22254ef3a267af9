/*-------------------------------------------------------------------------
 *
 * encode_numeric.h
 *	  A numeric to bytes that memcmp() orders like numerics.
 *
 * A stored numeric has a sign, digits to base 10000 and the weight of the
 * first digit.  The key has, most significant first:
 *
 *	  lead byte	  [weight]	 digit 2 B	digit 2 B  ...	0x00
 *
 *	  lead byte	  00		-Infinity
 *				  02 .. 7E	below zero: all bytes up to the end inverted
 *				  80		zero
 *				  81 .. FD	above zero
 *				  FE		Infinity
 *				  FF		NaN
 *
 * Weights -61 .. 61 are part of the lead byte; others follow 81 or FD as an
 * int4.  256 is added to each digit: its first byte is not zero, and the zero
 * byte at the end puts a number before its continuations.  Zeros around the
 * digits do not count.  The layout is the server's on-disk format.
 *
 *-------------------------------------------------------------------------
 */
#ifndef FMS_ENCODE_NUMERIC_H
#define FMS_ENCODE_NUMERIC_H

#include "keys/encode.h"

/* Lead bytes of a key. */
#define FMS_NUMERIC_MINUS_INFINITY	0x00
#define FMS_NUMERIC_ZERO			0x80
#define FMS_NUMERIC_SMALLER			0x81
#define FMS_NUMERIC_WEIGHT_0		0xBF
#define FMS_NUMERIC_LARGER			0xFD
#define FMS_NUMERIC_INFINITY		0xFE
#define FMS_NUMERIC_NAN				0xFF

/* Bits of the first word of a stored numeric. */
#define FMS_NUMERIC_IS_SHORT		0x8000	/* no second word */
#define FMS_NUMERIC_IS_SPECIAL		0xC000	/* both bits; no digits */
#define FMS_NUMERIC_IS_NAN			0xC000	/* all of the word */
#define FMS_NUMERIC_IS_INFINITY		0xD000	/* all of the word */
#define FMS_NUMERIC_SHORT_NEGATIVE	0x2000
#define FMS_NUMERIC_SHORT_WEIGHT	0x007F	/* a signed number of 7 bits */
#define FMS_NUMERIC_LONG_NEGATIVE	0x4000

/* A finite number, without zeros around its digits. */
typedef struct FmsNumeric
{
	bool		negative;
	int			weight;
	const char *digits;			/* in the value: int16, perhaps not aligned */
	int			ndigits;
} FmsNumeric;

static inline uint16
fms_numeric_word(const char *at)
{
	uint16		word;

	memcpy(&word, at, sizeof(word));
	return word;
}

static inline uint16
fms_numeric_digit(const FmsNumeric *number, int i)
{
	return fms_numeric_word(number->digits + i * sizeof(uint16));
}

static inline FmsNumeric
fms_numeric_parse(uint16 header, const char *value, Size length)
{
	bool		is_short = (header & FMS_NUMERIC_IS_SHORT) != 0;
	Size		header_bytes = (is_short ? 1 : 2) * sizeof(uint16);
	FmsNumeric	number;

	if (length < header_bytes)
		return (FmsNumeric) {0};
	number.digits = value + header_bytes;
	number.ndigits = (length - header_bytes) / sizeof(uint16);
	if (is_short)
	{
		number.negative = (header & FMS_NUMERIC_SHORT_NEGATIVE) != 0;
		number.weight = header & FMS_NUMERIC_SHORT_WEIGHT;
		if (number.weight > FMS_NUMERIC_SHORT_WEIGHT / 2)
			number.weight -= FMS_NUMERIC_SHORT_WEIGHT + 1;
	}
	else
	{
		number.negative = (header & FMS_NUMERIC_LONG_NEGATIVE) != 0;
		number.weight = (int16) fms_numeric_word(value + sizeof(uint16));
	}

	while (number.ndigits > 0 && fms_numeric_digit(&number, 0) == 0)
	{
		number.digits += sizeof(uint16);
		number.ndigits--;
		number.weight--;
	}
	while (number.ndigits > 0 &&
		   fms_numeric_digit(&number, number.ndigits - 1) == 0)
		number.ndigits--;
	return number;
}

static inline void
fms_encode_numeric_weight(FmsKeyWriter *writer, int weight)
{
	int			lead = FMS_NUMERIC_WEIGHT_0 + weight;

	if (lead > FMS_NUMERIC_SMALLER && lead < FMS_NUMERIC_LARGER)
		fms_encode_byte(writer, lead);
	else
	{
		fms_encode_byte(writer, weight < 0 ? FMS_NUMERIC_SMALLER :
						FMS_NUMERIC_LARGER);
		fms_encode_int(writer, weight, 4);
	}
}

/* `value` is the numeric without its varlena header. */
static inline void
fms_encode_numeric(FmsKeyWriter *writer, const char *value, Size length)
{
	uint16		header = length < sizeof(uint16) ? 0 : fms_numeric_word(value);
	uint8		invert = writer->invert;
	FmsNumeric	number;

	if ((header & FMS_NUMERIC_IS_SPECIAL) == FMS_NUMERIC_IS_SPECIAL)
	{
		fms_encode_byte(writer,
						header == FMS_NUMERIC_IS_NAN ? FMS_NUMERIC_NAN :
						header == FMS_NUMERIC_IS_INFINITY ?
						FMS_NUMERIC_INFINITY : FMS_NUMERIC_MINUS_INFINITY);
		return;
	}
	number = fms_numeric_parse(header, value, length);
	if (number.ndigits == 0)
	{
		fms_encode_byte(writer, FMS_NUMERIC_ZERO);
		return;
	}

	if (number.negative)
		writer->invert = ~invert;
	fms_encode_numeric_weight(writer, number.weight);
	for (int i = 0; i < number.ndigits && !writer->truncated; i++)
		fms_encode_uint(writer, fms_numeric_digit(&number, i) + 256, 2);
	fms_encode_byte(writer, 0);
	writer->invert = invert;
}

#endif							/* FMS_ENCODE_NUMERIC_H */
