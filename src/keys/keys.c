/*-------------------------------------------------------------------------
 *
 * keys.c
 *	  The sort's columns: making keys, comparing records, making first keys.
 *
 * A comparison has two stages.
 *
 *	  key bytes		equal?		columns
 *	  memcmp order  ------->	the types' own comparators, from the first
 *	  of 2 - 34 B				column that the bytes may leave undecided
 *
 * Which columns go into the bytes is decided once: leading columns whose
 * comparison function we know how to encode exactly (the operator family's
 * function decides, never the column's type: that covers domains and binary
 * compatible types, and rejects a user's own operator class).  The first
 * column without an encoding ends the key, because nothing behind it may be
 * compared before it.  From there the comparator does the work, as it does
 * in the stock sort; a sort with no encodable column has empty keys and
 * still works the same way.
 *
 * Why not always encode everything: a key would be as long as the text it
 * stands for, written to disk beside it.  Why not only the comparator: a
 * function call and two attribute fetches for each of n log n comparisons.
 *
 * Collations.  Text is encoded as its bytes where the collation compares
 * bytes: C, POSIX, and a recent glibc's C.UTF-8, which servers before 17 do
 * not take for one of them (compat.h).  Under an ICU collation the key is
 * ICU's sort key (collation.c), up to a length.  Behind a whole one stand the
 * bytes if the collation is deterministic, because these decide between texts
 * that ICU calls equal.  Other collations are left to the comparator.
 *
 * Toast.  A value that is compressed or stored elsewhere is fetched; of text
 * that is compared as bytes only as much as a key can hold.
 *
 * Memory: FmsKeys, comparators' caches and first keys lie in the context
 * current at creation or call, and what is made for a call is freed in it.  No
 * clean-up is needed on ERROR.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <sys/socket.h>

#include "access/nbtree.h"
#include "utils/builtins.h"
#include "utils/date.h"
#include "utils/fmgroids.h"
#include "utils/inet.h"
#include "utils/lsyscache.h"
#include "utils/sortsupport.h"
#include "utils/timestamp.h"
#include "utils/uuid.h"
#include "utils/cash.h"

#include "keys/collation.h"
#include "base/compat.h"
#include "keys/encode.h"
#include "keys/encode_numeric.h"
#include "keys/keys.h"

typedef enum FmsEncoding
{
	FMS_ENCODE_NONE,			/* comparator only */
	FMS_ENCODE_INT16,
	FMS_ENCODE_INT32,
	FMS_ENCODE_INT64,
	FMS_ENCODE_UINT8,
	FMS_ENCODE_UINT32,
	FMS_ENCODE_UINT64,
	FMS_ENCODE_FLOAT4,
	FMS_ENCODE_FLOAT8,
	FMS_ENCODE_UUID,
	FMS_ENCODE_MACADDR,
	FMS_ENCODE_MACADDR8,
	FMS_ENCODE_TID,
	FMS_ENCODE_TIMETZ,
	FMS_ENCODE_INTERVAL,
	FMS_ENCODE_NAME,
	FMS_ENCODE_TEXT,
	FMS_ENCODE_BPCHAR,
	FMS_ENCODE_BYTEA,
	FMS_ENCODE_BITS,
	FMS_ENCODE_INET,
	FMS_ENCODE_NUMERIC
} FmsEncoding;

typedef struct FmsColumn
{
	SortSupportData comparator;
	AttrNumber	attno;			/* in the tuples */
	FmsEncoding encoding;
	uint8		invert;			/* 0xFF if descending */
	uint8		null_byte;		/* first byte of a null */
	uint8		value_byte;		/* first byte of any value */
	FmsSortKeys sort_keys;		/* of text that is not compared as bytes */
} FmsColumn;

struct FmsKeys
{
	TupleDesc	desc;			/* of the tuples */
	TupleDesc	first_key_desc; /* of a first key's tuple: the key columns */
	int			ncolumns;
	int			nencoded;		/* columns 0 .. nencoded - 1 are in the key */
	int			undecided;		/* equal keys decide the columns before this
								 * one; <= nencoded */
	bool		prefix_decides; /* no key is longer than a prefix */
	AttrNumber	placed_attno;	/* of column `undecided`, if records say where
								 * it is; else 0 */
	MemoryContext context;		/* the one current at creation */
	FmsRecord  *first_key;		/* made last */
	Size		first_key_bytes;	/* allocated for it */
	FmsColumn	columns[FLEXIBLE_ARRAY_MEMBER];
};

/*
 * The encoding for what a btree comparison function compares, or NONE.  If
 * the function minds a collation, this one compares bytes.
 */
static FmsEncoding
encoding_of_function(Oid function)
{
	switch (function)
	{
		case F_BTINT2CMP:
			return FMS_ENCODE_INT16;
		case F_BTINT4CMP:
		case F_DATE_CMP:
			return FMS_ENCODE_INT32;
		case F_BTINT8CMP:
		case F_TIME_CMP:
		case F_TIMESTAMP_CMP:
		case F_TIMESTAMPTZ_CMP:
		case F_CASH_CMP:
			return FMS_ENCODE_INT64;
		case F_BTBOOLCMP:
		case F_BTCHARCMP:
			return FMS_ENCODE_UINT8;
		case F_BTOIDCMP:
			return FMS_ENCODE_UINT32;
		case F_XID8CMP:
		case F_PG_LSN_CMP:
			return FMS_ENCODE_UINT64;
		case F_BTFLOAT4CMP:
			return FMS_ENCODE_FLOAT4;
		case F_BTFLOAT8CMP:
			return FMS_ENCODE_FLOAT8;
		case F_UUID_CMP:
			return FMS_ENCODE_UUID;
		case F_MACADDR_CMP:
			return FMS_ENCODE_MACADDR;
		case F_MACADDR8_CMP:
			return FMS_ENCODE_MACADDR8;
		case F_BTTIDCMP:
			return FMS_ENCODE_TID;
		case F_TIMETZ_CMP:
			return FMS_ENCODE_TIMETZ;
		case F_INTERVAL_CMP:
			return FMS_ENCODE_INTERVAL;
		case F_BTNAMECMP:
			return FMS_ENCODE_NAME;
		case F_BTTEXTCMP:
		case F_BTTEXT_PATTERN_CMP:
			return FMS_ENCODE_TEXT;
		case F_BPCHARCMP:
		case F_BTBPCHAR_PATTERN_CMP:
			return FMS_ENCODE_BPCHAR;
		case F_BYTEACMP:
			return FMS_ENCODE_BYTEA;
		case F_BITCMP:
		case F_VARBITCMP:
			return FMS_ENCODE_BITS;
		case F_NETWORK_CMP:
			return FMS_ENCODE_INET;
		case F_NUMERIC_CMP:
			return FMS_ENCODE_NUMERIC;
		default:
			return FMS_ENCODE_NONE;
	}
}

static bool
function_minds_collation(Oid function)
{
	return function == F_BTTEXTCMP || function == F_BPCHARCMP ||
		function == F_BTNAMECMP;
}

/* Bytes the encoding always needs, or 0 if that depends on the value. */
static int
encoding_width(FmsEncoding encoding)
{
	switch (encoding)
	{
		case FMS_ENCODE_UINT8:
			return 1;
		case FMS_ENCODE_INT16:
			return 2;
		case FMS_ENCODE_INT32:
		case FMS_ENCODE_UINT32:
		case FMS_ENCODE_FLOAT4:
			return 4;
		case FMS_ENCODE_INT64:
		case FMS_ENCODE_UINT64:
		case FMS_ENCODE_FLOAT8:
			return 8;
		case FMS_ENCODE_UUID:
			return UUID_LEN;
		case FMS_ENCODE_MACADDR:
		case FMS_ENCODE_TID:
			return 6;
		case FMS_ENCODE_MACADDR8:
			return 8;
		case FMS_ENCODE_INTERVAL:
			return 10;
		case FMS_ENCODE_TIMETZ:
			return 12;
		default:
			return 0;
	}
}

/* Decides how a column is encoded; its comparator is there already. */
static void
init_encoding(FmsColumn *column, Oid operator, Oid collation)
{
	Oid			family;
	Oid			type;
	Oid			function;
	bool		descending;

	column->encoding = FMS_ENCODE_NONE;
	if (!fms_ordering_op(operator, &family, &type, &descending))
		return;
	function = get_opfamily_proc(family, type, type, BTORDER_PROC);
	if (function_minds_collation(function) && !fms_collation_is_c(collation))
	{
		column->sort_keys = fms_sort_keys_of(collation);
		if (column->sort_keys.collator == NULL)
			return;
	}
	column->encoding = encoding_of_function(function);
}

static void
init_column(FmsColumn *column, const FmsKeySpec *spec, int i)
{
	SortSupport comparator = &column->comparator;

	/* the comparator: same set-up as the stock sort, no abbreviation */
	comparator->ssup_cxt = CurrentMemoryContext;
	comparator->ssup_collation = spec->collations[i];
	comparator->ssup_nulls_first = spec->nulls_first[i];
	comparator->ssup_attno = spec->attnos[i];
	comparator->abbreviate = false;
	PrepareSortSupportFromOrderingOp(spec->operators[i], comparator);

	column->attno = spec->attnos[i];
	init_encoding(column, spec->operators[i], spec->collations[i]);
	column->invert = comparator->ssup_reverse ? 0xFF : 0;
	column->null_byte = spec->nulls_first[i] ? 0 : 2;
	column->value_byte = 1;
}

FmsKeys *
fms_keys_create(TupleDesc desc, const FmsKeySpec *spec)
{
	FmsKeys    *keys;
	int			fixed_bytes = 0;
	bool		decided = true;
	int			i;

	Assert(spec->ncolumns > 0);

	keys = palloc0(offsetof(FmsKeys, columns) +
				   spec->ncolumns * sizeof(FmsColumn));
	keys->context = CurrentMemoryContext;
	keys->desc = desc;
	keys->ncolumns = spec->ncolumns;
	keys->first_key_desc = CreateTemplateTupleDesc(spec->ncolumns);

	for (i = 0; i < spec->ncolumns; i++)
	{
		FmsColumn  *column = &keys->columns[i];

		init_column(column, spec, i);
		TupleDescCopyEntry(keys->first_key_desc, i + 1, desc, column->attno);

		if (keys->nencoded == i && column->encoding != FMS_ENCODE_NONE &&
			fixed_bytes < FMS_KEY_MAX_BYTES)
		{
			int			width = encoding_width(column->encoding);

			keys->nencoded++;
			fixed_bytes += 1 + width;
			if (width == 0 || fixed_bytes > FMS_KEY_MAX_BYTES)
				decided = false;
			if (decided)
				keys->undecided = keys->nencoded;
		}
	}

	Assert(keys->undecided <= keys->nencoded);
	if (keys->undecided < keys->ncolumns)
	{
		AttrNumber	attno = keys->columns[keys->undecided].attno;

		if (!TupleDescAttr(desc, attno - 1)->attbyval)
			keys->placed_attno = attno;
	}
	keys->prefix_decides = keys->undecided == keys->ncolumns &&
		fixed_bytes <= FMS_PREFIX_BYTES;
	return keys;
}

bool
fms_keys_prefix_decides(const FmsKeys *keys)
{
	return keys->prefix_decides;
}

/*
 * Text under a collation with sort keys.  Those that reach the limit are cut
 * off there, all at the same byte; those that do not are whole.
 */
static pg_noinline void
encode_collated(FmsKeyWriter *writer, const FmsSortKeys *sort_keys,
				const char *bytes, Size length)
{
	char		key[FMS_SORT_KEY_MAX] = {0};
	Size		room = writer->end - writer->at;
	Size		limit = Min(room, sort_keys->exact ? FMS_SORT_KEY_MAX :
							FMS_SORT_KEY_TRUSTED);
	Size		key_bytes = fms_sort_key_make(sort_keys, bytes, length, key,
											  limit);

	if (key_bytes == limit || !sort_keys->exact)
	{
		fms_encode_beginning(writer, key, limit);
		return;
	}
	fms_encode_string(writer, key, key_bytes);
	if (sort_keys->deterministic)
		fms_encode_string(writer, bytes, length);
}

static inline void
encode_text(FmsKeyWriter *writer, const FmsColumn *column, const char *bytes,
			Size length)
{
	if (column->sort_keys.collator)
		encode_collated(writer, &column->sort_keys, bytes, length);
	else
		fms_encode_string(writer, bytes, length);
}

static void
encode_bits(FmsKeyWriter *writer, const char *bytes, Size length)
{
	int32		nbits = 0;
	Size		header_bytes = Min(length, sizeof(nbits));

	memcpy(&nbits, bytes, header_bytes);
	fms_encode_bits(writer, bytes + header_bytes, length - header_bytes,
					nbits);
}

static pg_noinline void
encode_inet(FmsKeyWriter *writer, const char *bytes, Size length)
{
	inet_struct address = {0};

	memcpy(&address, bytes, Min(length, sizeof(address)));
	fms_encode_inet(writer, address.family, address.bits, address.ipaddr,
					address.family == PGSQL_AF_INET ? 4 : 16);
}

/*
 * The value, plain or with a short header; a copy if it was toasted.  May be
 * cut off where the key is certainly full: not where blanks at the end, or a
 * sort key, need to see the end.
 */
static inline struct varlena *
untoasted(const FmsColumn *column, Datum value)
{
	struct varlena *varlena = (struct varlena *) DatumGetPointer(value);

	if (!VARATT_IS_EXTERNAL(varlena) && !VARATT_IS_COMPRESSED(varlena))
		return varlena;
	if (column->encoding == FMS_ENCODE_BYTEA ||
		(column->encoding == FMS_ENCODE_TEXT &&
		 column->sort_keys.collator == NULL))
		return pg_detoast_datum_slice(varlena, 0, FMS_KEY_MAX_BYTES);
	return pg_detoast_datum_packed(varlena);
}

/* Types of variable length.  Kept out of the way of the simple ones. */
static pg_noinline void
encode_varlena(FmsKeyWriter *writer, const FmsColumn *column, Datum value)
{
	struct varlena *varlena = untoasted(column, value);
	char	   *bytes = VARDATA_ANY(varlena);
	Size		length = VARSIZE_ANY_EXHDR(varlena);

	switch (column->encoding)
	{
		case FMS_ENCODE_TEXT:
			encode_text(writer, column, bytes, length);
			break;
		case FMS_ENCODE_BPCHAR:
			encode_text(writer, column, bytes, bpchartruelen(bytes, length));
			break;
		case FMS_ENCODE_BYTEA:
			fms_encode_binary(writer, bytes, length);
			break;
		case FMS_ENCODE_BITS:
			encode_bits(writer, bytes, length);
			break;
		case FMS_ENCODE_INET:
			encode_inet(writer, bytes, length);
			break;
		default:
			Assert(column->encoding == FMS_ENCODE_NUMERIC);
			fms_encode_numeric(writer, bytes, length);
			break;
	}
	if ((Pointer) varlena != DatumGetPointer(value))
		pfree(varlena);
}

/* Types of a fixed length that are more than one number. */
static pg_noinline void
encode_fixed(FmsKeyWriter *writer, const FmsColumn *column, Datum value)
{
	switch (column->encoding)
	{
		case FMS_ENCODE_TID:
			{
				ItemPointer tid = (ItemPointer) DatumGetPointer(value);

				fms_encode_tid(writer,
							   ItemPointerGetBlockNumberNoCheck(tid),
							   ItemPointerGetOffsetNumberNoCheck(tid));
				break;
			}
		case FMS_ENCODE_TIMETZ:
			{
				TimeTzADT  *time = DatumGetTimeTzADTP(value);

				fms_encode_timetz(writer, time->time, time->zone);
				break;
			}
		case FMS_ENCODE_INTERVAL:
			{
				Interval   *interval = DatumGetIntervalP(value);

				fms_encode_interval(writer, interval->time, interval->day,
									interval->month);
				break;
			}
		default:
			{
				const char *name = NameStr(*DatumGetName(value));

				Assert(column->encoding == FMS_ENCODE_NAME);
				encode_text(writer, column, name, strnlen(name, NAMEDATALEN));
				break;
			}
	}
}

static inline void
encode_value(FmsKeyWriter *writer, const FmsColumn *column, Datum value)
{
	switch (column->encoding)
	{
		case FMS_ENCODE_INT16:
			fms_encode_int16(writer, DatumGetInt16(value));
			break;
		case FMS_ENCODE_INT32:
			fms_encode_int32(writer, DatumGetInt32(value));
			break;
		case FMS_ENCODE_INT64:
			fms_encode_int64(writer, DatumGetInt64(value));
			break;
		case FMS_ENCODE_UINT8:
			fms_encode_byte(writer, DatumGetUInt8(value));
			break;
		case FMS_ENCODE_UINT32:
			fms_encode_uint32(writer, DatumGetUInt32(value));
			break;
		case FMS_ENCODE_UINT64:
			fms_encode_uint64(writer, DatumGetUInt64(value));
			break;
		case FMS_ENCODE_FLOAT4:
			fms_encode_float4(writer, DatumGetFloat4(value));
			break;
		case FMS_ENCODE_FLOAT8:
			fms_encode_float8(writer, DatumGetFloat8(value));
			break;
		case FMS_ENCODE_UUID:
			fms_encode_bytes(writer, DatumGetPointer(value), UUID_LEN);
			break;
		case FMS_ENCODE_MACADDR:
			fms_encode_bytes(writer, DatumGetPointer(value), sizeof(macaddr));
			break;
		case FMS_ENCODE_MACADDR8:
			fms_encode_bytes(writer, DatumGetPointer(value),
							 sizeof(macaddr8));
			break;
		case FMS_ENCODE_TID:
		case FMS_ENCODE_TIMETZ:
		case FMS_ENCODE_INTERVAL:
		case FMS_ENCODE_NAME:
			encode_fixed(writer, column, value);
			break;
		case FMS_ENCODE_TEXT:
		case FMS_ENCODE_BPCHAR:
		case FMS_ENCODE_BYTEA:
		case FMS_ENCODE_BITS:
		case FMS_ENCODE_INET:
		case FMS_ENCODE_NUMERIC:
			encode_varlena(writer, column, value);
			break;
		case FMS_ENCODE_NONE:
			pg_unreachable();
	}
}

void
fms_keys_encode(FmsKeys *keys, TupleTableSlot *slot, FmsKeyImage *image)
{
	FmsKeyWriter writer = {
		.at = image->bytes,
		.end = image->bytes + FMS_KEY_MAX_BYTES
	};
	int			i;

	memset(image->bytes, 0, FMS_KEY_MAX_BYTES);

	for (i = 0; i < keys->nencoded && !writer.truncated; i++)
	{
		const FmsColumn *column = &keys->columns[i];
		bool		isnull;
		Datum		value = slot_getattr(slot, column->attno, &isnull);

		writer.invert = 0;
		if (isnull)
			fms_encode_byte(&writer, column->null_byte);
		else
		{
			fms_encode_byte(&writer, column->value_byte);
			writer.invert = column->invert;
			encode_value(&writer, column, value);
		}
	}

	image->key_bytes = fms_key_room(writer.at - image->bytes);
	image->exact = !writer.truncated && keys->nencoded == keys->ncolumns;
}

/* A minimal tuple, or what is like one, as heap tuples' functions see it. */
static inline HeapTupleData
heap_view(const char *tuple, Size tuple_bytes)
{
	HeapTupleData view = {0};

	view.t_len = tuple_bytes + MINIMAL_TUPLE_OFFSET;
	view.t_data = (HeapTupleHeader) (tuple - MINIMAL_TUPLE_OFFSET);
	return view;
}

/*
 * A slot that holds the tuple itself has the column's place at hand; else it
 * is looked for here, once, and not in every comparison.
 */
uint16
fms_keys_place(FmsKeys *keys, TupleTableSlot *slot, const char *tuple,
			   Size tuple_bytes)
{
	bool		isnull;
	const char *value;

	if (keys->placed_attno == 0)
		return 0;
	value = DatumGetPointer(slot_getattr(slot, keys->placed_attno, &isnull));
	if (isnull)
		return 0;
	if (value <= tuple || value >= tuple + tuple_bytes)
	{
		HeapTupleData view = heap_view(tuple, tuple_bytes);

		value = DatumGetPointer(heap_getattr(&view, keys->placed_attno,
											 keys->desc, &isnull));
		/* it may come from the catalog: a column added later */
		if (isnull || value <= tuple || value >= tuple + tuple_bytes)
			return 0;
	}
	return fms_record_place_flags(value - tuple);
}

/* Column number i of a record, be it a whole one or a first key. */
static inline Datum
record_column(const FmsKeys *keys, const FmsRecord *record, int i,
			  bool *isnull)
{
	MinimalTuple tuple = fms_record_tuple(record);
	Size		place = record->flags >> FMS_RECORD_PLACE_SHIFT;
	HeapTupleData view;

	Assert(fms_record_has_tuple(record));
	if (i == keys->undecided && place > 0)
	{
		*isnull = false;
		return PointerGetDatum((char *) tuple + place);
	}
	view = heap_view((const char *) tuple, record->tuple_bytes);
	if (record->flags & FMS_RECORD_FIRST_KEY)
		return heap_getattr(&view, i + 1, keys->first_key_desc, isnull);
	return heap_getattr(&view, keys->columns[i].attno, keys->desc, isnull);
}

int
fms_keys_compare_columns(FmsKeys *keys, const FmsRecord *a,
						 const FmsRecord *b)
{
	int			i;

	for (i = keys->undecided; i < keys->ncolumns; i++)
	{
		bool		a_null;
		bool		b_null;
		Datum		a_value = record_column(keys, a, i, &a_null);
		Datum		b_value = record_column(keys, b, i, &b_null);
		int			order;

		order = ApplySortComparator(a_value, a_null, b_value, b_null,
									&keys->columns[i].comparator);
		if (order != 0)
			return order;
	}
	return 0;
}

int
fms_keys_compare_rest(FmsKeys *keys, const FmsRecord *a, const FmsRecord *b)
{
	int			nwords = Min(fms_record_key_words(a), fms_record_key_words(b));
	int			i;

	Assert(fms_record_prefix(a) == fms_record_prefix(b));

	for (i = 1; i < nwords; i++)
	{
		uint64		a_word = fms_record_key_word(a, i);
		uint64		b_word = fms_record_key_word(b, i);

		if (a_word != b_word)
			return a_word < b_word ? -1 : 1;
	}

	/*
	 * Equal bytes.  Keys being prefix-free, they are then equally long, and
	 * both exact or neither.
	 */
	Assert(a->key_bytes == b->key_bytes);
	if (a->flags & b->flags & FMS_RECORD_EXACT)
		return 0;
	return fms_keys_compare_columns(keys, a, b);
}

static MinimalTuple
make_first_key_tuple(FmsKeys *keys, const FmsRecord *record)
{
	Datum	   *values = palloc(keys->ncolumns * sizeof(Datum));
	bool	   *nulls = palloc(keys->ncolumns * sizeof(bool));
	MinimalTuple tuple;
	int			i;

	for (i = 0; i < keys->ncolumns; i++)
		values[i] = record_column(keys, record, i, &nulls[i]);
	tuple = fms_form_minimal_tuple(keys->first_key_desc, values, nulls);
	pfree(values);
	pfree(nulls);
	return tuple;
}

static void
make_first_key_room(FmsKeys *keys, Size bytes)
{
	if (keys->first_key_bytes >= bytes)
		return;
	if (keys->first_key)
		pfree(keys->first_key);
	keys->first_key = NULL;
	keys->first_key_bytes = 0;
	/* with its key, the first key of the longest tuple has more than a GB */
	keys->first_key = MemoryContextAllocExtended(keys->context, bytes,
												 MCXT_ALLOC_HUGE);
	keys->first_key_bytes = bytes;
}

const FmsRecord *
fms_keys_make_first_key(FmsKeys *keys, const FmsRecord *record)
{
	bool		exact = (record->flags & FMS_RECORD_EXACT) != 0;
	MinimalTuple tuple = exact ? NULL : make_first_key_tuple(keys, record);
	Size		tuple_bytes = tuple ? tuple->t_len : 0;

	make_first_key_room(keys, fms_record_size(record->key_bytes, tuple_bytes));
	/* its tuple is another, so the place does not hold */
	fms_record_write(keys->first_key, fms_record_key(record),
					 record->key_bytes, (record->flags & FMS_RECORD_EXACT) |
					 FMS_RECORD_FIRST_KEY, (const char *) tuple, tuple_bytes);
	if (tuple)
		pfree(tuple);
	return keys->first_key;
}
