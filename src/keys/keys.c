/*-------------------------------------------------------------------------
 *
 * keys.c
 *	  The columns of a sort, and the normalized keys of its tuples.
 *
 * A key has the leading columns that key_types.c can encode.  Equal keys are
 * decided by the types' comparators (key_compare.c).
 *
 *	  key		| 01 80 00 07 d1 | 01 'C' 'l' 'e' ... |	  at most 34 bytes
 *				  ^  column 0		 ^  column 1
 *				  null byte: 01 for a value, 00 or 02 for a null
 *
 * Text is encoded as its bytes if the collation compares bytes, as ICU's sort
 * key under an ICU collation (collation.c), and not at all under others.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/nbtree.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/typcache.h"

#include "base/compat.h"
#include "keys/key_columns.h"
#include "keys/keys.h"

/* The type of sort column i, or NULL: usual ones are in the type cache. */
static const FmsKeyType *
find_type(TupleDesc desc, const FmsKeySpec *spec, int i, bool *descending)
{
	Oid			operator = spec->operators[i];
	const TypeCacheEntry *type =
		lookup_type_cache(TupleDescAttr(desc, spec->attnos[i] - 1)->atttypid,
						  TYPECACHE_LT_OPR | TYPECACHE_GT_OPR |
						  TYPECACHE_CMP_PROC);
	Oid			family;
	Oid			input;

	*descending = operator == type->gt_opr;
	if (*descending || operator == type->lt_opr)
		return fms_key_type_find(type->cmp_proc);
	if (!fms_ordering_op(operator, &family, &input, descending))
		return NULL;
	return fms_key_type_find(get_opfamily_proc(family, input, input,
											   BTORDER_PROC));
}

static const FmsKeyType *
init_column(FmsKeys *keys, const FmsKeySpec *spec, int i)
{
	FmsColumn  *column = &keys->columns[i];
	SortSupport comparator = &column->comparator;
	bool		descending;
	const FmsKeyType *type = find_type(keys->desc, spec, i, &descending);

	comparator->ssup_cxt = CurrentMemoryContext;
	comparator->ssup_collation = spec->collations[i];
	comparator->ssup_nulls_first = spec->nulls_first[i];
	comparator->ssup_attno = spec->attnos[i];
	comparator->abbreviate = false;

	column->attno = spec->attnos[i];
	column->invert = descending ? 0xFF : 0;
	column->null_byte = FMS_VALUE_BYTE + (spec->nulls_first[i] ? -1 : 1);
	return type;
}

/* Sets how the column is encoded.  Returns false if it is not. */
static bool
init_encoding(FmsColumn *column, const FmsKeyType *type, double tuples)
{
	Oid			collation = column->comparator.ssup_collation;

	if (type == NULL)
		return false;
	if (type->kind == FMS_KEY_COLLATED && !fms_collation_is_c(collation))
	{
		column->sort_keys = fms_sort_keys_of(collation);
		if (column->sort_keys.collator == NULL)
			return false;
		if (tuples > 0 && tuples < FMS_SORT_KEY_TEXTS)
			column->sort_keys.max_bytes = FMS_SORT_KEY_TRUSTED;
	}
	if (type->kind == FMS_KEY_SIGNED || type->kind == FMS_KEY_UNSIGNED)
	{
		column->bits = 8 * type->bytes;
		column->flip = (column->invert ? PG_UINT64_MAX : 0) ^
			(uint64) (type->kind == FMS_KEY_SIGNED) << (column->bits - 1);
	}
	column->encode = type->encode;
	column->length = type->kind == FMS_KEY_COLLATED &&
		column->sort_keys.collator == NULL ? -1 : type->bytes;
	column->is_bytes = column->sort_keys.collator == NULL &&
		(type->function == F_BTTEXTCMP ||
		 type->function == F_BTTEXT_PATTERN_CMP);
	return true;
}

/* Are rows words whose first sort column has that type, or NULL? */
static bool
type_makes_words(TupleDesc desc, const FmsKeySpec *spec,
				 const FmsKeyType *type)
{
	Form_pg_attribute attribute = TupleDescAttr(desc, 0);

	return desc->natts == 1 && spec->ncolumns == 1 && type &&
		attribute->attbyval && type->bytes == attribute->attlen &&
		(type->kind == FMS_KEY_SIGNED || type->kind == FMS_KEY_UNSIGNED);
}

static void
init_words(FmsKeys *keys, const FmsKeyType *type)
{
	Datum		value = (Datum) 0;
	bool		isnull = true;

	keys->words = palloc0(sizeof(FmsWordType));
	keys->words->null_tuple = fms_form_minimal_tuple(keys->desc, &value,
													 &isnull);
	fms_word_type_init(keys->words, type->bytes, type->kind == FMS_KEY_SIGNED,
					   keys->columns[0].invert != 0);
	keys->words->nulls_first = keys->columns[0].comparator.ssup_nulls_first;
}

FmsKeys *
fms_keys_create(TupleDesc desc, const FmsKeySpec *spec)
{
	FmsKeys    *keys = palloc0(offsetof(FmsKeys, columns) +
							   spec->ncolumns * sizeof(FmsColumn));
	int			key_bytes = 0;	/* as far as they do not vary */
	bool		decided = true;
	int			integers = 0;

	Assert(spec->ncolumns > 0);

	keys->context = CurrentMemoryContext;
	keys->desc = desc;
	keys->ncolumns = spec->ncolumns;
	keys->cheap = true;
	keys->first_key_desc = CreateTemplateTupleDesc(spec->ncolumns);

	for (int i = 0; i < spec->ncolumns; i++)
	{
		FmsColumn  *column = &keys->columns[i];
		const FmsKeyType *type = init_column(keys, spec, i);

		TupleDescCopyEntry(keys->first_key_desc, i + 1, desc, column->attno);
		if (i == 0 && type_makes_words(desc, spec, type))
			init_words(keys, type);
		decided = decided && type && type->bytes > 0 &&
			key_bytes + 1 + type->bytes <= FMS_KEY_MAX_BYTES;
		/* this refuses a collation that is not determined */
		if (!decided || i < spec->limit.columns)
			PrepareSortSupportFromOrderingOp(spec->operators[i],
											 &column->comparator);
		if (!init_encoding(column, type, spec->tuples) || keys->nencoded < i ||
			key_bytes >= FMS_KEY_MAX_BYTES)
			continue;
		integers += column->bits > 0;
		keys->nencoded++;
		keys->cheap &= column->sort_keys.collator == NULL;
		key_bytes += 1 + type->bytes;
		if (decided)
			keys->undecided = keys->nencoded;
	}
	fms_finish_tuple_desc(keys->first_key_desc);

	if (keys->undecided < keys->ncolumns)
	{
		AttrNumber	attno = keys->columns[keys->undecided].attno;

		if (!TupleDescAttr(desc, attno - 1)->attbyval)
			keys->offset_attno = attno;
	}
	keys->prefix_decides = keys->undecided == keys->ncolumns &&
		key_bytes <= FMS_PREFIX_BYTES;
	keys->are_integers = keys->prefix_decides && integers == keys->ncolumns;
	if (spec->limit.counts != FMS_GROUP_ALL)
		keys->filter = fms_group_filter_create(keys, &spec->limit);
	return keys;
}

bool
fms_keys_prefix_decides(const FmsKeys *keys)
{
	return keys->prefix_decides;
}

const FmsWordType *
fms_keys_word_type(const FmsKeys *keys)
{
	return keys->words;
}

bool
fms_keys_are_cheap(const FmsKeys *keys)
{
	return keys->cheap;
}

/* If a heap tuple has one sort column, those before it stay as they are. */
static inline Datum
column_value(const FmsKeys *keys, int i, TupleTableSlot *slot, bool *isnull)
{
	AttrNumber	attno = keys->columns[i].attno;

	if (keys->ncolumns == 1 && attno > slot->tts_nvalid &&
		TTS_IS_BUFFERTUPLE(slot))
		return heap_getattr(((HeapTupleTableSlot *) slot)->tuple, attno,
							slot->tts_tupleDescriptor, isnull);
	return slot_getattr(slot, attno, isnull);
}

/* Keeps the key in registers: a load would wait for stores of single bytes. */
static void
encode_integers(const FmsKeys *keys, TupleTableSlot *slot, FmsKeyImage *image)
{
	uint128		key = 0;
	int			bits = 0;
	uint64		words[2];

	for (int i = 0; i < keys->ncolumns; i++)
	{
		const FmsColumn *column = &keys->columns[i];
		bool		isnull;
		uint64		value = column_value(keys, i, slot, &isnull);

		key = key << 8 | (isnull ? column->null_byte : FMS_VALUE_BYTE);
		bits += 8;
		if (isnull)
			continue;
		value = (value ^ column->flip) & PG_UINT64_MAX >> (64 - column->bits);
		key = key << column->bits | value;
		bits += column->bits;
	}
	key <<= 8 * sizeof(words) - bits;
	words[0] = pg_hton64((uint64) (key >> 64));
	words[1] = pg_hton64((uint64) key);
	memcpy(image->bytes, words, sizeof(words));
	image->record.tuple_bytes = 0;
	image->record.key_bytes = fms_key_room(bits / 8);
	image->record.flags = FMS_RECORD_EXACT;
}

void
fms_keys_encode(FmsKeys *keys, TupleTableSlot *slot, FmsKeyImage *image)
{
	FmsKeyWriter writer = {
		.at = image->bytes,
		.end = image->bytes + FMS_KEY_MAX_BYTES
	};

	if (keys->are_integers)
	{
		encode_integers(keys, slot, image);
		return;
	}
	memset(image->bytes, 0, sizeof(image->bytes));

	for (int i = 0; i < keys->nencoded && !writer.truncated; i++)
	{
		const FmsColumn *column = &keys->columns[i];
		bool		isnull;
		Datum		value = column_value(keys, i, slot, &isnull);

		/* the null byte is not inverted: nulls_first is independent of DESC */
		writer.invert = 0;
		if (isnull)
			fms_encode_byte(&writer, column->null_byte);
		else
		{
			fms_encode_byte(&writer, FMS_VALUE_BYTE);
			writer.invert = column->invert;
			column->encode(&writer, value, &column->sort_keys);
		}
	}

	image->record.tuple_bytes = 0;
	image->record.key_bytes = fms_key_room(writer.at - image->bytes);
	image->record.flags = !writer.truncated &&
		keys->nencoded == keys->ncolumns ? FMS_RECORD_EXACT : 0;
}

void
fms_keys_encode_tuple(FmsKeys *keys, MinimalTuple tuple, Size tuple_bytes,
					  FmsKeyImage *image)
{
	if (unlikely(keys->slot == NULL))
	{
		MemoryContext caller = MemoryContextSwitchTo(keys->context);

		/* a copy of the descriptor, which no resource owner has to know */
		keys->slot =
			MakeSingleTupleTableSlot(CreateTupleDescCopyConstr(keys->desc),
									 &TTSOpsMinimalTuple);
		MemoryContextSwitchTo(caller);
	}
	tuple->t_len = tuple_bytes;
	ExecStoreMinimalTuple(tuple, keys->slot, false);
	fms_keys_encode(keys, keys->slot, image);
	if (!(image->record.flags & FMS_RECORD_EXACT))
		image->record.flags = fms_keys_column_flags(keys, keys->slot,
													(const char *) tuple,
													tuple_bytes);
}
