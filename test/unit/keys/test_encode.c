/* links:  */
/*
 * Every encoder against the comparator it stands for: the same order, equal
 * bytes for equal values only, no encoding the beginning of another one, and
 * a key that was cut off is never wrong, only undecided.
 *
 * Seen to fail with: int64 without its sign flipped; -0 left alone; no 0xFF
 * behind a zero byte of bytea; fms_encode_byte() or fms_encode_bytes() not
 * inverting, or not setting `truncated`; bits without the count at the end;
 * timetz without its zone, or with the zone subtracted; interval with a
 * negative rest of a day, or months of 31 days; inet without its family, its
 * length, its rest, or with the rest in the network; numeric with zero digits
 * left in front or behind, without its end, not inverted, or inverting what
 * follows, with a short weight taken as unsigned, a long sign lost, digits
 * that begin with a zero byte, weight -62 in the lead byte, NaN as Infinity,
 * read at odd addresses as words, or past its end.
 */
#include "postgres.h"

#include <float.h>
#include <stdlib.h>

#include "keys/encode.h"
#include "keys/encode_numeric.h"
#include "keys/record.h"
#include "shim.h"

#define ROOM_BYTES	512
#define ROUNDS		20000

typedef enum Kind
{
	KIND_INT16, KIND_INT32, KIND_INT64, KIND_UINT8, KIND_UINT32, KIND_UINT64,
	KIND_FLOAT4, KIND_FLOAT8, KIND_STRING, KIND_BINARY, KIND_BITS, KIND_TID,
	KIND_TIMETZ, KIND_INTERVAL, KIND_INET, KIND_NUMERIC, NKINDS
} Kind;

static const char *const kind_names[] = {
	"int2", "int4", "int8", "one byte", "uint4", "uint8", "float4", "float8",
	"string", "binary", "bits", "tid", "timetz", "interval", "inet", "numeric"
};

/* A numeric, as it is and as it is stored. */
#define MAX_DIGITS	24

typedef enum Special
{
	FINITE, MINUS_INFINITY, PLUS_INFINITY, NOT_A_NUMBER
} Special;

typedef struct Number
{
	Special		special;
	bool		negative;
	int			weight;
	int			ndigits;
	int16		digits[MAX_DIGITS];
	bool		stored_long;
	int			scale;			/* to be displayed; does not count */
} Number;

/* A value of any kind; null only inside of a key of several columns. */
typedef struct Value
{
	bool		is_null;
	int64		integer;		/* tid: block; timetz, interval: time */
	uint64		whole;
	double		real;
	int32		small;			/* tid: offset; timetz: zone; interval: day;
								 * bits: how many; inet: bits of network */
	int32		month;
	int			length;
	char		bytes[72];
	Number		number;
} Value;

/* ---- values that make trouble ---- */

static const int64 integers[] = {
	0, 1, -1, 2, -2, 127, 128, 255, 256, -128, -129, PG_INT16_MAX,
	PG_INT16_MIN, 65535, 65536, PG_INT32_MAX, PG_INT32_MIN,
	INT64CONST(0x7FFFFFFFFFFFFFFF), -INT64CONST(0x7FFFFFFFFFFFFFFF) - 1,
	INT64CONST(0x100000000), -INT64CONST(0x100000000)
};

static double
some_real(void)
{
	const double reals[] = {
		0.0, -0.0, 1.0, -1.0, DBL_MIN, -DBL_MIN, DBL_MAX, -DBL_MAX,
		FLT_MIN, -FLT_MIN, FLT_MAX, -FLT_MAX, 4.9e-324, -4.9e-324, 1.4e-45,
		-1.4e-45, HUGE_VAL, -HUGE_VAL, NAN, -NAN, 1.5, 1.0000001, 0.1, -0.1
	};
	uint64		bits;
	double		value;

	if (shim_below(2))
		return reals[shim_below(lengthof(reals))];
	bits = shim_random();
	memcpy(&value, &bits, sizeof(value));
	return value;
}

/* Few different bytes, so that beginnings are often shared. */
static void
some_bytes(Value *value, bool zeroes)
{
	static const unsigned char letters[] = {0, 1, 0x7F, 0x80, 0xFE, 0xFF};
	int			i;

	value->length = shim_below(4) ? (int) shim_below(6) :
		(int) shim_below(sizeof(value->bytes) + 1);
	for (i = 0; i < value->length; i++)
	{
		int			letter = shim_below(lengthof(letters));

		if (i < value->length - 2 && shim_below(8))
			letter = zeroes ? 0 : 2;
		if (letter == 0 && !zeroes)
			letter = 1;
		value->bytes[i] = (char) letters[letter];
	}
}

/* Bits, of which those behind the last one are zeroes. */
static void
trim_bits(Value *value)
{
	value->length = (value->small + 7) / 8;
	if (value->small % 8 != 0)
		value->bytes[value->length - 1] &= 0xFF << (8 - value->small % 8);
}

static void
some_bits(Value *value)
{
	some_bytes(value, true);
	value->small = Max(8 * value->length - (int) shim_below(8), 0);
	trim_bits(value);
}

static void
some_interval(Value *value)
{
	static const int64 times[] = {
		0, 1, -1, USECS_PER_DAY, -USECS_PER_DAY, USECS_PER_DAY - 1,
		1 - USECS_PER_DAY, 30 * USECS_PER_DAY, PG_INT64_MAX, PG_INT64_MIN
	};
	static const int32 days[] = {
		0, 0, 1, -1, 30, -30, 31, PG_INT32_MAX, PG_INT32_MIN
	};

	value->integer = shim_below(2) ? times[shim_below(lengthof(times))] :
		(int64) shim_random() >> shim_below(64);
	value->small = days[shim_below(lengthof(days))];
	value->month = days[shim_below(lengthof(days))];
}

/* The address's bits and the network's: family 2 has 32, family 3 has 128. */
static void
some_inet(Value *value)
{
	int			i;

	value->whole = 2 + shim_below(2);
	value->length = value->whole == 2 ? 4 : 16;
	value->small = shim_below(4) ? (int) shim_below(8 * value->length + 1) :
		8 * value->length;
	for (i = 0; i < value->length; i++)
		value->bytes[i] = shim_below(3) ? 0 : 1 << shim_below(8);
}

static int16
some_digit(void)
{
	static const int16 digits[] = {0, 1, 255, 256, 5000, 9998, 9999};

	return shim_below(2) ? digits[shim_below(lengthof(digits))] :
		(int16) shim_below(10000);
}

static void
some_number(Number *number)
{
	static const int weights[] = {
		0, 0, 0, 1, -1, 2, 60, 61, 62, 63, 64, -60, -61, -62, -63, -64, -65,
		PG_INT16_MAX, PG_INT16_MIN
	};
	int			i;

	if (shim_below(12) == 0)
		number->special = 1 + shim_below(3);
	number->negative = shim_below(2);
	number->weight = weights[shim_below(lengthof(weights))];
	number->ndigits = shim_below(4) ? (int) shim_below(5) :
		(int) shim_below(MAX_DIGITS + 1);
	for (i = 0; i < number->ndigits; i++)
		number->digits[i] = some_digit();
	number->stored_long = shim_below(2);
	number->scale = shim_below(64);
}

static Value
some_value(Kind kind)
{
	Value		value = {0};

	switch (kind)
	{
		case KIND_INT16:
		case KIND_INT32:
		case KIND_INT64:
		case KIND_UINT8:
		case KIND_UINT32:
		case KIND_UINT64:
		case KIND_TID:
			value.integer = shim_below(2) ?
				integers[shim_below(lengthof(integers))] :
				(int64) (shim_random() >> shim_below(64));
			break;
		case KIND_FLOAT4:
		case KIND_FLOAT8:
			value.real = some_real();
			break;
		case KIND_STRING:
		case KIND_BINARY:
			some_bytes(&value, kind == KIND_BINARY);
			break;
		case KIND_BITS:
			some_bits(&value);
			break;
		case KIND_TIMETZ:
			value.integer = shim_below(4) ?
				(int64) (shim_random() % (USECS_PER_DAY + 1)) :
				(int64) shim_below(2) * USECS_PER_DAY;
			value.small = ((int) shim_below(33) - 16) * 3600 +
				(shim_below(2) ? 0 : (int) shim_below(1800));
			break;
		case KIND_INTERVAL:
			some_interval(&value);
			break;
		case KIND_INET:
			some_inet(&value);
			break;
		case KIND_NUMERIC:
			some_number(&value.number);
			break;
		case NKINDS:
			break;
	}
	switch (kind)
	{
		case KIND_INT16:
			value.integer = (int16) value.integer;
			break;
		case KIND_INT32:
			value.integer = (int32) value.integer;
			break;
		case KIND_UINT8:
			value.whole = (uint8) value.integer;
			break;
		case KIND_UINT32:
			value.whole = (uint32) value.integer;
			break;
		case KIND_UINT64:
			value.whole = (uint64) value.integer;
			break;
		case KIND_TID:
			value.integer = (uint32) value.integer;
			value.small = shim_below(3) * 0x7FFF + shim_below(2);
			break;
		case KIND_FLOAT4:
			/* out of its range would be undefined, not infinite */
			if (!isnan(value.real) && fabs(value.real) > FLT_MAX)
				value.real = value.real > 0 ? HUGE_VAL : -HUGE_VAL;
			value.real = (float) value.real;
			break;
		default:
			break;
	}
	return value;
}

/* ---- values that are nearly, or exactly, another one ---- */

static void
change_interval(Value *value)
{
	switch (shim_below(4))
	{
		case 0:
			if (value->month > PG_INT32_MIN &&
				value->small < PG_INT32_MAX - 30)
			{
				value->month--;
				value->small += 30;
			}
			break;
		case 1:
			if (value->small > PG_INT32_MIN &&
				value->integer < PG_INT64_MAX - USECS_PER_DAY)
			{
				value->small--;
				value->integer += USECS_PER_DAY;
			}
			break;
		case 2:
			if (value->small < PG_INT32_MAX &&
				value->integer > PG_INT64_MIN + USECS_PER_DAY)
			{
				value->small++;
				value->integer -= USECS_PER_DAY;
			}
			break;
		default:
			if (value->integer < PG_INT64_MAX)
				value->integer++;
			break;
	}
}

static void
change_number(Number *number)
{
	int			n = number->ndigits;

	number->stored_long = shim_below(2);
	number->scale = shim_below(64);
	switch (shim_below(6))
	{
		case 0:
			if (n > 0)
				number->digits[shim_below(n)] = some_digit();
			break;
		case 1:
			number->negative = !number->negative;
			break;
		case 2:					/* a zero behind, which does not count */
			if (n < MAX_DIGITS)
				number->digits[number->ndigits++] = 0;
			break;
		case 3:					/* and one in front */
			if (n < MAX_DIGITS && number->weight < PG_INT16_MAX)
			{
				memmove(number->digits + 1, number->digits,
						n * sizeof(number->digits[0]));
				number->digits[0] = 0;
				number->ndigits++;
				number->weight++;
			}
			break;
		case 4:
			if (n > 0)
				number->ndigits--;
			break;
		default:
			break;
	}
}

static Value
neighbour(Kind kind, const Value *value)
{
	Value		other = *value;
	int			shift;

	switch (kind)
	{
		case KIND_BITS:
			other.small += (int) shim_below(3) - 1;
			other.small = Max(other.small, 0);
			other.small = Min(other.small, 8 * (int) sizeof(other.bytes));
			trim_bits(&other);
			break;
		case KIND_TID:
			other.small ^= shim_below(2) ? 1 : 0x8000;
			break;
		case KIND_TIMETZ:
			shift = shim_below(3600) * (shim_below(2) ? 1 : -1);
			other.small += shift;
			other.integer -= shift * USECS_PER_SEC;
			break;
		case KIND_INTERVAL:
			change_interval(&other);
			break;
		case KIND_INET:
			if (shim_below(2))
				other.small = shim_below(8 * other.length + 1);
			if (shim_below(2))
				other.bytes[shim_below(other.length)] ^= 1 << shim_below(8);
			break;
		case KIND_NUMERIC:
			change_number(&other.number);
			break;
		default:
			break;
	}
	return other;
}

static Value
some_other_value(Kind kind, const Value *value)
{
	switch (shim_below(4))
	{
		case 0:
			return *value;
		case 1:
			return neighbour(kind, value);
		default:
			return some_value(kind);
	}
}

/* ---- the order that the types have ---- */

static int
compare_integers(int64 a, int64 b)
{
	return a < b ? -1 : a > b;
}

static int
compare_bytes(const Value *a, const Value *b)
{
	int			order = memcmp(a->bytes, b->bytes, Min(a->length, b->length));

	if (order == 0)
		order = a->length - b->length;
	return compare_integers(order, 0);
}

static int
compare_timetz(const Value *a, const Value *b)
{
	int64		a_moment = a->integer + a->small * USECS_PER_SEC;
	int64		b_moment = b->integer + b->small * USECS_PER_SEC;
	int			order = compare_integers(a_moment, b_moment);

	return order ? order : compare_integers(a->small, b->small);
}

/* The microseconds of it. */
static __int128
span(const Value *value)
{
	return ((__int128) value->month * 30 + value->small) * USECS_PER_DAY +
		value->integer;
}

static int
bit_of(const Value *value, int i)
{
	return (uint8) value->bytes[i / 8] >> (7 - i % 8) & 1;
}

static int
compare_networks(const Value *a, const Value *b, int nbits)
{
	int			i;

	for (i = 0; i < nbits; i++)
	{
		if (bit_of(a, i) != bit_of(b, i))
			return bit_of(a, i) - bit_of(b, i);
	}
	return 0;
}

static int
compare_inets(const Value *a, const Value *b)
{
	int			order = compare_integers(a->whole, b->whole);

	if (order == 0)
		order = compare_networks(a, b, Min(a->small, b->small));
	if (order == 0)
		order = compare_integers(a->small, b->small);
	if (order == 0)
		order = compare_networks(a, b, 8 * a->length);
	return order;
}

/* The i-th digit that is not zero, and what power it counts; or false. */
static bool
significant_digit(const Number *number, int i, int *power, int *digit)
{
	int			at;

	for (at = 0; at < number->ndigits; at++)
	{
		if (number->digits[at] != 0 && i-- == 0)
		{
			*power = number->weight - at;
			*digit = number->digits[at];
			return true;
		}
	}
	return false;
}

static bool
is_zero(const Number *number)
{
	int			power;
	int			digit;

	return !significant_digit(number, 0, &power, &digit);
}

static int
compare_magnitudes(const Number *a, const Number *b)
{
	int			i;

	for (i = 0;; i++)
	{
		int			a_power;
		int			b_power;
		int			a_digit;
		int			b_digit;
		bool		a_has = significant_digit(a, i, &a_power, &a_digit);
		bool		b_has = significant_digit(b, i, &b_power, &b_digit);

		if (!a_has || !b_has)
			return a_has - b_has;
		if (a_power != b_power)
			return compare_integers(a_power, b_power);
		if (a_digit != b_digit)
			return compare_integers(a_digit, b_digit);
	}
}

static int
rank_of(const Number *number)
{
	switch (number->special)
	{
		case MINUS_INFINITY:
			return 0;
		case FINITE:
			return is_zero(number) ? 2 : number->negative ? 1 : 3;
		case PLUS_INFINITY:
			return 4;
		default:
			return 5;
	}
}

static int
compare_numbers(const Number *a, const Number *b)
{
	int			order = compare_integers(rank_of(a), rank_of(b));

	if (order == 0 && rank_of(a) == 1)
		order = compare_magnitudes(b, a);
	else if (order == 0 && rank_of(a) == 3)
		order = compare_magnitudes(a, b);
	return order;
}

static int
compare_values(Kind kind, const Value *a, const Value *b)
{
	int			order;

	switch (kind)
	{
		case KIND_INT16:
		case KIND_INT32:
		case KIND_INT64:
			return compare_integers(a->integer, b->integer);
		case KIND_UINT8:
		case KIND_UINT32:
		case KIND_UINT64:
			return a->whole < b->whole ? -1 : a->whole > b->whole;
		case KIND_FLOAT4:
		case KIND_FLOAT8:
			/* NaN is equal to itself and larger than all others */
			if (isnan(a->real) || isnan(b->real))
				return isnan(a->real) - isnan(b->real);
			return a->real < b->real ? -1 : a->real > b->real;
		case KIND_STRING:
		case KIND_BINARY:
			return compare_bytes(a, b);
		case KIND_BITS:
			order = compare_bytes(a, b);
			return order ? order : compare_integers(a->small, b->small);
		case KIND_TID:
			order = compare_integers(a->integer, b->integer);
			return order ? order : compare_integers(a->small, b->small);
		case KIND_TIMETZ:
			return compare_timetz(a, b);
		case KIND_INTERVAL:
			return span(a) < span(b) ? -1 : span(a) > span(b);
		case KIND_INET:
			return compare_inets(a, b);
		case KIND_NUMERIC:
			return compare_numbers(&a->number, &b->number);
		case NKINDS:
			break;
	}
	return 0;
}

/* ---- encoding them ---- */

/* As the server stores it, behind the length word.  Returns its bytes. */
static int
store_number(const Number *number, uint16 *words)
{
	static const uint16 specials[] = {0, 0xF000, 0xD000, 0xC000};
	bool		is_long = number->stored_long || number->weight < -64 ||
		number->weight > 63;
	int			n = 0;
	int			i;

	if (number->special != FINITE)
	{
		words[0] = specials[number->special];
		words[1] = 0;
		/* old servers stored four bytes of a NaN */
		return number->special == NOT_A_NUMBER && is_long ? 4 : 2;
	}
	if (is_long)
	{
		words[n++] = (number->negative ? 0x4000 : 0) | number->scale;
		words[n++] = (uint16) number->weight;
	}
	else
		words[n++] = 0x8000 | (number->negative ? 0x2000 : 0) |
			number->scale << 7 | (number->weight & 0x7F);
	for (i = 0; i < number->ndigits; i++)
		words[n++] = number->digits[i];
	return n * sizeof(uint16);
}

/*
 * Gives the encoder nothing to read but what is there: a byte too far is the
 * sanitizer's.  The odd address is what a short varlena header makes of it.
 */
static char *
exactly(const void *bytes, int length)
{
	char	   *chunk = malloc(length + 1);

	memcpy(chunk + 1, bytes, length);
	return chunk;
}

static void
encode_bytes(Kind kind, FmsKeyWriter *writer, const Value *value)
{
	char	   *chunk = exactly(value->bytes, value->length);
	char	   *bytes = chunk + 1;

	if (kind == KIND_STRING)
		fms_encode_string(writer, bytes, value->length);
	else if (kind == KIND_BINARY)
		fms_encode_binary(writer, bytes, value->length);
	else if (kind == KIND_BITS)
		fms_encode_bits(writer, bytes, value->length, value->small);
	else
		fms_encode_inet(writer, value->whole, value->small,
						(const uint8 *) bytes, value->length);
	free(chunk);
}

static void
encode_number(FmsKeyWriter *writer, const Number *number)
{
	uint16		words[MAX_DIGITS + 2];
	int			length = store_number(number, words);
	char	   *chunk = exactly(words, length);

	fms_encode_numeric(writer, chunk + 1, length);
	free(chunk);
}

static void
encode(Kind kind, FmsKeyWriter *writer, const Value *value)
{
	switch (kind)
	{
		case KIND_INT16:
			fms_encode_int(writer, value->integer, 2);
			break;
		case KIND_INT32:
			fms_encode_int(writer, value->integer, 4);
			break;
		case KIND_INT64:
			fms_encode_int(writer, value->integer, 8);
			break;
		case KIND_UINT8:
			fms_encode_byte(writer, value->whole);
			break;
		case KIND_UINT32:
			fms_encode_uint(writer, value->whole, 4);
			break;
		case KIND_UINT64:
			fms_encode_uint(writer, value->whole, 8);
			break;
		case KIND_FLOAT4:
			fms_encode_float4(writer, value->real);
			break;
		case KIND_FLOAT8:
			fms_encode_float8(writer, value->real);
			break;
		case KIND_STRING:
		case KIND_BINARY:
		case KIND_BITS:
		case KIND_INET:
			encode_bytes(kind, writer, value);
			break;
		case KIND_TID:
			fms_encode_tid(writer, value->integer, value->small);
			break;
		case KIND_TIMETZ:
			fms_encode_timetz(writer, value->integer, value->small);
			break;
		case KIND_INTERVAL:
			fms_encode_interval(writer, value->integer, value->small,
								value->month);
			break;
		case KIND_NUMERIC:
			encode_number(writer, &value->number);
			break;
		case NKINDS:
			break;
	}
}

/* ---- keys ---- */

typedef struct Key
{
	uint8		bytes[ROOM_BYTES];
	int			length;
	bool		truncated;
} Key;

typedef struct Column
{
	Kind		kind;
	bool		descending;
	bool		nulls_first;
} Column;

/* As keys.c does it: a byte that says null or not, then the value. */
static void
make_key(Key *key, const Column *columns, int ncolumns, const Value *values,
		 int room)
{
	FmsKeyWriter writer = {.at = key->bytes, .end = key->bytes + room};
	int			i;

	memset(key->bytes, 0, sizeof(key->bytes));
	for (i = 0; i < ncolumns && !writer.truncated; i++)
	{
		writer.invert = 0;
		if (values[i].is_null)
			fms_encode_byte(&writer, columns[i].nulls_first ? 0 : 2);
		else
		{
			fms_encode_byte(&writer, 1);
			writer.invert = columns[i].descending ? 0xFF : 0;
			encode(columns[i].kind, &writer, &values[i]);
		}
	}
	key->length = writer.at - key->bytes;
	key->truncated = writer.truncated;
}

static int
compare_rows(const Column *columns, int ncolumns, const Value *a,
			 const Value *b)
{
	int			i;

	for (i = 0; i < ncolumns; i++)
	{
		int			order;

		if (a[i].is_null || b[i].is_null)
		{
			order = a[i].is_null - b[i].is_null;
			if (columns[i].nulls_first)
				order = -order;
		}
		else
		{
			order = compare_values(columns[i].kind, &a[i], &b[i]);
			if (columns[i].descending)
				order = -order;
		}
		if (order != 0)
			return order;
	}
	return 0;
}

static int
sign(int n)
{
	return n < 0 ? -1 : n > 0;
}

/*
 * A pair of rows, with all the room they need and with some amounts of less;
 * zeroes behind the key count, as they do in a record.
 */
static bool
pair_is_right(const Column *columns, int ncolumns, const Value *a,
			  const Value *b)
{
	static Key	x;
	static Key	y;
	int			expected = compare_rows(columns, ncolumns, a, b);
	int			shorter;
	int			room;

	make_key(&x, columns, ncolumns, a, ROOM_BYTES);
	make_key(&y, columns, ncolumns, b, ROOM_BYTES);
	shorter = Min(x.length, y.length);
	if (x.truncated || y.truncated)
		return false;
	if (sign(memcmp(x.bytes, y.bytes, ROOM_BYTES)) != expected)
		return false;
	/* prefix-free: what is different, is so before the shorter one's end */
	if (expected != 0 && memcmp(x.bytes, y.bytes, shorter) == 0)
		return false;
	if (expected == 0 && x.length != y.length)
		return false;

	for (room = shim_below(4); room <= FMS_KEY_MAX_BYTES;
		 room += 1 + shim_below(6))
	{
		int			order;

		make_key(&x, columns, ncolumns, a, room);
		make_key(&y, columns, ncolumns, b, room);
		order = sign(memcmp(x.bytes, y.bytes, FMS_KEY_MAX_BYTES));
		if (x.length > room || y.length > room)
			return false;
		if (order != 0 && order != expected)
			return false;
		if (order == 0 && expected != 0 && !(x.truncated && y.truncated))
			return false;
		/* keys.c: equal bytes, then both exact or neither, equally long */
		if (order == 0 &&
			(x.truncated != y.truncated || x.length != y.length))
			return false;
	}
	return true;
}

static void
show_number(const Number *number)
{
	char		text[6 * MAX_DIGITS + 1] = "";
	int			i;

	for (i = 0; i < number->ndigits; i++)
		snprintf(text + strlen(text), 7, " %d", number->digits[i]);
	shim_note("  special=%d negative=%d weight=%d long=%d scale=%d digits=%s",
			  number->special, number->negative, number->weight,
			  number->stored_long, number->scale, text);
}

static void
show(const Column *columns, int ncolumns, const Value *values)
{
	int			i;
	int			j;

	for (i = 0; i < ncolumns; i++)
	{
		char		hex[2 * sizeof(values->bytes) + 1] = "";

		for (j = 0; j < values[i].length; j++)
			snprintf(hex + 2 * j, 3, "%02x", (uint8) values[i].bytes[j]);
		shim_note("  %s%s%s: %s integer=%lld real=%g small=%d month=%d "
				  "bytes=%s",
				  kind_names[columns[i].kind],
				  columns[i].descending ? " desc" : "",
				  columns[i].nulls_first ? " nulls first" : "",
				  values[i].is_null ? "null" : "",
				  (long long) values[i].integer, values[i].real,
				  values[i].small, values[i].month, hex);
		if (columns[i].kind == KIND_NUMERIC)
			show_number(&values[i].number);
	}
}

static bool
check_pair(const Column *columns, int ncolumns, const Value *a,
		   const Value *b)
{
	if (pair_is_right(columns, ncolumns, a, b))
		return true;
	shim_note("wrong for");
	show(columns, ncolumns, a);
	shim_note("and");
	show(columns, ncolumns, b);
	return false;
}

static bool
check_kind(Kind kind, bool descending)
{
	Column		column = {.kind = kind, .descending = descending};
	int			round;

	for (round = 0; round < ROUNDS; round++)
	{
		Value		a = some_value(kind);
		Value		b = some_other_value(kind, &a);

		if (!check_pair(&column, 1, &a, &b))
			return false;
	}
	return true;
}

static bool
check_rows(void)
{
	int			round;

	for (round = 0; round < 4 * ROUNDS; round++)
	{
		Column		columns[5];
		Value		a[5];
		Value		b[5];
		int			n = 1 + shim_below(5);
		int			i;

		for (i = 0; i < n; i++)
		{
			columns[i].kind = shim_below(NKINDS);
			columns[i].descending = shim_below(2);
			columns[i].nulls_first = shim_below(2);
			a[i] = some_value(columns[i].kind);
			b[i] = shim_below(2) ? a[i] :
				some_other_value(columns[i].kind, &a[i]);
			a[i].is_null = shim_below(6) == 0;
			b[i].is_null = shim_below(3) ? a[i].is_null : shim_below(2);
		}
		if (!check_pair(columns, n, a, b))
			return false;
	}
	return true;
}

/* -0 and 0 are one value, all NaNs another. */
static void
check_equal_floats(void)
{
	static const Column column = {.kind = KIND_FLOAT8};
	static const Column narrow = {.kind = KIND_FLOAT4};
	uint64		odd_nan = UINT64_C(0xFFF0000000000001);
	Value		values[4] = {{.real = 0.0}, {.real = -0.0}, {.real = NAN}};
	Key			keys[4];
	int			i;

	memcpy(&values[3].real, &odd_nan, sizeof(odd_nan));
	for (i = 0; i < 4; i++)
		make_key(&keys[i], &column, 1, &values[i], ROOM_BYTES);
	shim_ok(memcmp(keys[0].bytes, keys[1].bytes, ROOM_BYTES) == 0,
			"float8: -0 is 0");
	shim_ok(memcmp(keys[2].bytes, keys[3].bytes, ROOM_BYTES) == 0,
			"float8: one NaN");
	for (i = 0; i < 4; i++)
		make_key(&keys[i], &narrow, 1, &values[i], ROOM_BYTES);
	shim_ok(memcmp(keys[0].bytes, keys[1].bytes, ROOM_BYTES) == 0,
			"float4: -0 is 0");
	shim_ok(memcmp(keys[2].bytes, keys[3].bytes, ROOM_BYTES) == 0,
			"float4: one NaN");
}

/* What compares equal for more reasons than being the same. */
static void
check_equal_intervals(void)
{
	static const Column column = {.kind = KIND_INTERVAL};
	Value		values[4] = {{.month = 1}, {.small = 30},
	{.integer = 30 * USECS_PER_DAY},
	{.month = 2, .small = -29, .integer = -USECS_PER_DAY}};
	Key			keys[4];
	int			i;

	for (i = 0; i < 4; i++)
		make_key(&keys[i], &column, 1, &values[i], ROOM_BYTES);
	for (i = 1; i < 4; i++)
		shim_ok(memcmp(keys[0].bytes, keys[i].bytes, ROOM_BYTES) == 0,
				"interval: a month is 30 days, is 720 hours (%d)", i);
}

/* 1, 1.000 and 00001.0000 0000, stored in both ways. */
static void
check_equal_numbers(void)
{
	static const Column column = {.kind = KIND_NUMERIC};
	Value		values[4] = {
		{.number = {.ndigits = 1, .digits = {1}}},
		{.number = {.ndigits = 1, .digits = {1}, .scale = 3}},
		{.number = {.ndigits = 1, .digits = {1}, .stored_long = true}},
		{.number = {.weight = 1, .ndigits = 4, .digits = {0, 1}, .scale = 8}}
	};
	Key			keys[4];
	int			i;

	for (i = 0; i < 4; i++)
		make_key(&keys[i], &column, 1, &values[i], ROOM_BYTES);
	for (i = 1; i < 4; i++)
		shim_ok(memcmp(keys[0].bytes, keys[i].bytes, ROOM_BYTES) == 0,
				"numeric: 1 is 1.000, however stored (%d)", i);
	shim_ok(keys[0].length == 5, "numeric: a small number has a short key");
}

/* A negative number inverts itself, and nothing that comes after it. */
static void
check_negative_numbers(void)
{
	const Number one = {.negative = true, .ndigits = 1, .digits = {1}};
	uint8		bytes[FMS_KEY_MAX_BYTES];
	FmsKeyWriter writer = {.at = bytes, .end = bytes + sizeof(bytes)};

	encode_number(&writer, &one);
	shim_ok(bytes[0] == (uint8) ~FMS_NUMERIC_WEIGHT_0 && writer.invert == 0,
			"numeric: -1");
	writer.invert = 0xFF;
	encode_number(&writer, &one);
	shim_ok(bytes[4] == FMS_NUMERIC_WEIGHT_0 && writer.invert == 0xFF,
			"numeric: -1, descending");
}

/* Sixteen decimals of a number are within what sorts compare first. */
static void
check_short_numbers(void)
{
	static const Column column = {.kind = KIND_NUMERIC};
	Value		a = {.number = {.weight = 1, .ndigits = 4,
	.digits = {1234, 5678, 9012, 3456}}};
	Value		b = a;
	Key			x;
	Key			y;

	b.number.digits[3]++;
	make_key(&x, &column, 1, &a, ROOM_BYTES);
	make_key(&y, &column, 1, &b, ROOM_BYTES);
	shim_ok(memcmp(x.bytes, y.bytes, FMS_PREFIX_BYTES) < 0,
			"numeric: four digits within the prefix");
}

/* Values that cannot be: whatever their keys, nothing past them is read. */
static void
check_damaged_values(void)
{
	FmsKeyWriter writer = {0};
	uint8		bytes[FMS_KEY_MAX_BYTES];
	char	   *chunk = exactly("\0\0\0", 3);
	int			length;

	for (length = 0; length <= 3; length++)
	{
		writer.at = bytes;
		writer.end = bytes + sizeof(bytes);
		fms_encode_numeric(&writer, chunk + 4 - length, length);
		shim_ok(bytes[0] == FMS_NUMERIC_ZERO, "numeric of %d bytes", length);
	}
	writer.at = bytes;
	fms_encode_inet(&writer, 3, 255, (uint8 *) chunk + 1, 3);
	shim_ok(writer.at == bytes + 5, "inet of 3 bytes");
	free(chunk);
}

int
main(void)
{
	int			kind;

	shim_seed();
	for (kind = 0; kind < NKINDS; kind++)
	{
		shim_ok(check_kind(kind, false), "%s", kind_names[kind]);
		shim_ok(check_kind(kind, true), "%s, descending", kind_names[kind]);
	}
	check_equal_floats();
	check_equal_intervals();
	check_equal_numbers();
	check_negative_numbers();
	check_short_numbers();
	check_damaged_values();
	shim_ok(check_rows(), "keys of several columns, with nulls");
	return shim_done();
}
