/*-------------------------------------------------------------------------
 *
 * key_types.c
 *	  The table of types that normalized keys can encode.
 *
 * Each encoder takes a Datum apart and passes its parts to encode.h.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <sys/socket.h>

#include "utils/builtins.h"
#include "utils/date.h"
#include "utils/fmgroids.h"
#include "utils/inet.h"
#include "utils/timestamp.h"
#include "utils/uuid.h"

#include "keys/encode_numeric.h"
#include "keys/key_columns.h"

/* Defines an encoder that detoasts nothing. */
#define DEFINE_ENCODER(name, write) \
static void \
name(FmsKeyWriter *writer, Datum value, const FmsSortKeys *sort_keys) \
{ \
	write; \
}

/*
 * Defines an encoder of `length` bytes at `bytes`.  If most_bytes is not 0, no
 * more of a toasted value is detoasted.
 */
#define DEFINE_VARLENA_ENCODER(name, most_bytes, write) \
static void \
name(FmsKeyWriter *writer, Datum value, const FmsSortKeys *sort_keys) \
{ \
	struct varlena *varlena = detoast(value, most_bytes); \
	char	   *bytes = VARDATA_ANY(varlena); \
	Size		length = VARSIZE_ANY_EXHDR(varlena); \
\
	write; \
	if ((Pointer) varlena != DatumGetPointer(value)) \
		pfree(varlena); \
}

DEFINE_ENCODER(encode_int16, fms_encode_int(writer, DatumGetInt16(value), 2))
DEFINE_ENCODER(encode_int32, fms_encode_int(writer, DatumGetInt32(value), 4))
DEFINE_ENCODER(encode_int64, fms_encode_int(writer, DatumGetInt64(value), 8))
DEFINE_ENCODER(encode_uint8, fms_encode_byte(writer, DatumGetUInt8(value)))
DEFINE_ENCODER(encode_uint32,
			   fms_encode_uint(writer, DatumGetUInt32(value), 4))
DEFINE_ENCODER(encode_uint64,
			   fms_encode_uint(writer, DatumGetUInt64(value), 8))
DEFINE_ENCODER(encode_float4, fms_encode_float4(writer, DatumGetFloat4(value)))
DEFINE_ENCODER(encode_float8, fms_encode_float8(writer, DatumGetFloat8(value)))
DEFINE_ENCODER(encode_6_bytes,
			   fms_encode_bytes(writer, DatumGetPointer(value), 6))
DEFINE_ENCODER(encode_8_bytes,
			   fms_encode_bytes(writer, DatumGetPointer(value), 8))
DEFINE_ENCODER(encode_16_bytes,
			   fms_encode_bytes(writer, DatumGetPointer(value), 16))
DEFINE_ENCODER(encode_timetz,
			   fms_encode_timetz(writer, DatumGetTimeTzADTP(value)->time,
								 DatumGetTimeTzADTP(value)->zone))

static void
encode_tid(FmsKeyWriter *writer, Datum value, const FmsSortKeys *sort_keys)
{
	ItemPointer tid = (ItemPointer) DatumGetPointer(value);

	fms_encode_tid(writer, ItemPointerGetBlockNumberNoCheck(tid),
				   ItemPointerGetOffsetNumberNoCheck(tid));
}

static void
encode_interval(FmsKeyWriter *writer, Datum value,
				const FmsSortKeys *sort_keys)
{
	Interval   *interval = DatumGetIntervalP(value);

	fms_encode_interval(writer, interval->time, interval->day,
						interval->month);
}

/*
 * Writes the whole sort key and, if texts with equal ones are ordered by their
 * bytes, the text; or the first `limit` bytes of the sort key.
 */
static pg_noinline void
encode_sort_key(FmsKeyWriter *writer, const char *text, Size length,
				const FmsSortKeys *sort_keys)
{
	char		key[FMS_SORT_KEY_MAX] = {0};
	Size		room = writer->end - writer->at;
	Size		limit = Min(room, sort_keys->max_bytes);
	Size		key_bytes = fms_sort_key_make(sort_keys, text, length, key,
											  limit);

	if (key_bytes == limit || !sort_keys->exact)
	{
		fms_encode_bytes(writer, key, limit);
		writer->truncated = true;
		return;
	}
	fms_encode_string(writer, key, key_bytes);
	if (sort_keys->deterministic)
		fms_encode_string(writer, text, length);
}

static inline void
encode_characters(FmsKeyWriter *writer, const char *text, Size length,
				  const FmsSortKeys *sort_keys)
{
	if (sort_keys->collator)
		encode_sort_key(writer, text, length, sort_keys);
	else
		fms_encode_string(writer, text, length);
}

/* The data of a bit string starts with the number of its bits. */
static void
encode_bit_string(FmsKeyWriter *writer, const char *bytes, Size length)
{
	int32		nbits = 0;
	Size		header_bytes = Min(length, sizeof(nbits));

	memcpy(&nbits, bytes, header_bytes);
	fms_encode_bits(writer, bytes + header_bytes, length - header_bytes,
					nbits);
}

static void
encode_address(FmsKeyWriter *writer, const char *bytes, Size length)
{
	inet_struct address = {0};

	memcpy(&address, bytes, Min(length, sizeof(address)));
	fms_encode_inet(writer, address.family, address.bits, address.ipaddr,
					address.family == PGSQL_AF_INET ? 4 : 16);
}

/* A value that is not toasted is returned as it is. */
static inline struct varlena *
detoast(Datum value, int most_bytes)
{
	struct varlena *varlena = (struct varlena *) DatumGetPointer(value);

	if (!VARATT_IS_EXTERNAL(varlena) && !VARATT_IS_COMPRESSED(varlena))
		return varlena;
	if (most_bytes > 0)
		return pg_detoast_datum_slice(varlena, 0, most_bytes);
	return pg_detoast_datum_packed(varlena);
}

DEFINE_ENCODER(encode_name,
			   encode_characters(writer, NameStr(*DatumGetName(value)),
								 strnlen(NameStr(*DatumGetName(value)),
										 NAMEDATALEN), sort_keys))
/* a sort key depends on the whole text */
DEFINE_VARLENA_ENCODER(encode_text,
					   sort_keys->collator ? 0 : FMS_KEY_MAX_BYTES,
					   encode_characters(writer, bytes, length, sort_keys))
DEFINE_VARLENA_ENCODER(encode_bpchar, 0,
					   encode_characters(writer, bytes,
										 bpchartruelen(bytes, length),
										 sort_keys))
DEFINE_VARLENA_ENCODER(encode_bytea, FMS_KEY_MAX_BYTES,
					   fms_encode_binary(writer, bytes, length))
DEFINE_VARLENA_ENCODER(encode_bits, 0,
					   encode_bit_string(writer, bytes, length))
DEFINE_VARLENA_ENCODER(encode_inet, 0, encode_address(writer, bytes, length))
DEFINE_VARLENA_ENCODER(encode_numeric, 0,
					   fms_encode_numeric(writer, bytes, length))

static const FmsKeyType key_types[] = {
	/* function, encoder, bytes, kind; the usual types first */
	{F_BTINT2CMP, encode_int16, 2, FMS_KEY_SIGNED},
	{F_BTINT4CMP, encode_int32, 4, FMS_KEY_SIGNED},
	{F_DATE_CMP, encode_int32, 4, FMS_KEY_SIGNED},
	{F_BTINT8CMP, encode_int64, 8, FMS_KEY_SIGNED},
	{F_BTTEXTCMP, encode_text, 0, FMS_KEY_COLLATED},
	{F_NUMERIC_CMP, encode_numeric, 0, FMS_KEY_OTHER},
	{F_TIME_CMP, encode_int64, 8, FMS_KEY_SIGNED},
	{F_TIMESTAMP_CMP, encode_int64, 8, FMS_KEY_SIGNED},
	{F_TIMESTAMPTZ_CMP, encode_int64, 8, FMS_KEY_SIGNED},
	{F_CASH_CMP, encode_int64, 8, FMS_KEY_SIGNED},
	{F_BTBOOLCMP, encode_uint8, 1, FMS_KEY_UNSIGNED},
	{F_BTCHARCMP, encode_uint8, 1, FMS_KEY_UNSIGNED},
	{F_BTOIDCMP, encode_uint32, 4, FMS_KEY_UNSIGNED},
	{F_XID8CMP, encode_uint64, 8, FMS_KEY_UNSIGNED},
	{F_PG_LSN_CMP, encode_uint64, 8, FMS_KEY_UNSIGNED},
	{F_BTFLOAT4CMP, encode_float4, 4, FMS_KEY_OTHER},
	{F_BTFLOAT8CMP, encode_float8, 8, FMS_KEY_OTHER},
	{F_UUID_CMP, encode_16_bytes, UUID_LEN, FMS_KEY_OTHER},
	{F_MACADDR_CMP, encode_6_bytes, sizeof(macaddr), FMS_KEY_OTHER},
	{F_MACADDR8_CMP, encode_8_bytes, sizeof(macaddr8), FMS_KEY_OTHER},
	{F_BTTIDCMP, encode_tid, 6, FMS_KEY_OTHER},
	{F_TIMETZ_CMP, encode_timetz, 12, FMS_KEY_OTHER},
	{F_INTERVAL_CMP, encode_interval, 10, FMS_KEY_OTHER},
	{F_BTNAMECMP, encode_name, 0, FMS_KEY_COLLATED},
	{F_BTTEXT_PATTERN_CMP, encode_text, 0, FMS_KEY_OTHER},
	{F_BPCHARCMP, encode_bpchar, 0, FMS_KEY_COLLATED},
	{F_BTBPCHAR_PATTERN_CMP, encode_bpchar, 0, FMS_KEY_OTHER},
	{F_BYTEACMP, encode_bytea, 0, FMS_KEY_OTHER},
	{F_BITCMP, encode_bits, 0, FMS_KEY_OTHER},
	{F_VARBITCMP, encode_bits, 0, FMS_KEY_OTHER},
	{F_NETWORK_CMP, encode_inet, 0, FMS_KEY_OTHER}
};

const FmsKeyType *
fms_key_type_find(Oid function)
{
	for (int i = 0; i < (int) lengthof(key_types); i++)
	{
		if (key_types[i].function == function)
			return &key_types[i];
	}
	return NULL;
}
