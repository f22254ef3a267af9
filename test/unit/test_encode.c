/* links: */
/*
 * Every encoder against the comparator it stands for: the same order, equal
 * bytes for equal values only, no encoding the beginning of another one, and
 * a key that was cut off is never wrong, only undecided.
 *
 * Seen to fail with: int64 without its sign flipped; -0 left alone; no 0xFF
 * behind a zero byte of bytea; fms_encode_byte() not inverting, or not setting
 * `truncated`.
 */
#include "postgres.h"

#include <float.h>

#include "encode.h"
#include "record.h"
#include "shim.h"

#define ROOM_BYTES	512
#define ROUNDS		20000

typedef enum Kind
{
	KIND_INT16, KIND_INT32, KIND_INT64, KIND_UINT8, KIND_UINT32, KIND_UINT64,
	KIND_FLOAT4, KIND_FLOAT8, KIND_STRING, KIND_BINARY, NKINDS
} Kind;

static const char *const kind_names[] = {
	"int2", "int4", "int8", "one byte", "uint4", "uint8", "float4", "float8",
	"string", "binary"
};

/* A value of any kind; null only inside of a key of several columns. */
typedef struct Value
{
	bool		is_null;
	int64		integer;
	uint64		whole;
	double		real;
	int			length;
	char		bytes[72];
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

/* ---- the order that the types have ---- */

static int
compare_values(Kind kind, const Value *a, const Value *b)
{
	int			order;

	switch (kind)
	{
		case KIND_INT16:
		case KIND_INT32:
		case KIND_INT64:
			return a->integer < b->integer ? -1 : a->integer > b->integer;
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
			order = memcmp(a->bytes, b->bytes, Min(a->length, b->length));
			if (order == 0)
				order = a->length - b->length;
			return order < 0 ? -1 : order > 0;
		case NKINDS:
			break;
	}
	return 0;
}

static void
encode(Kind kind, FmsKeyWriter *writer, const Value *value)
{
	switch (kind)
	{
		case KIND_INT16:
			fms_encode_int16(writer, value->integer);
			break;
		case KIND_INT32:
			fms_encode_int32(writer, value->integer);
			break;
		case KIND_INT64:
			fms_encode_int64(writer, value->integer);
			break;
		case KIND_UINT8:
			fms_encode_byte(writer, value->whole);
			break;
		case KIND_UINT32:
			fms_encode_uint32(writer, value->whole);
			break;
		case KIND_UINT64:
			fms_encode_uint64(writer, value->whole);
			break;
		case KIND_FLOAT4:
			fms_encode_float4(writer, value->real);
			break;
		case KIND_FLOAT8:
			fms_encode_float8(writer, value->real);
			break;
		case KIND_STRING:
			fms_encode_string(writer, value->bytes, value->length);
			break;
		case KIND_BINARY:
			fms_encode_binary(writer, value->bytes, value->length);
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
 * A pair of rows, with all the room they need and with less; zeroes behind
 * the key count, as they do in a record.
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

	for (room = 0; room <= FMS_KEY_MAX_BYTES; room++)
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
show(const Column *columns, int ncolumns, const Value *values)
{
	int			i;
	int			j;

	for (i = 0; i < ncolumns; i++)
	{
		char		hex[2 * sizeof(values->bytes) + 1] = "";

		for (j = 0; j < values[i].length; j++)
			snprintf(hex + 2 * j, 3, "%02x", (uint8) values[i].bytes[j]);
		shim_note("  %s%s%s: %s integer=%lld real=%g bytes=%s",
				  kind_names[columns[i].kind],
				  columns[i].descending ? " desc" : "",
				  columns[i].nulls_first ? " nulls first" : "",
				  values[i].is_null ? "null" : "",
				  (long long) values[i].integer, values[i].real, hex);
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
		Value		b = shim_below(8) ? some_value(kind) : a;

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
			b[i] = shim_below(3) ? a[i] : some_value(columns[i].kind);
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
	shim_ok(check_rows(), "keys of several columns, with nulls");
	return shim_done();
}
