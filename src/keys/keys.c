/*-------------------------------------------------------------------------
 *
 * keys.c
 *	  The columns of a sort, and the normalized keys of its tuples.
 *
 * A key has the leading columns whose comparison functions are in the table
 * of key_types.c; the first column without an encoding ends it.  Equal keys
 * are decided by the types' comparators (key_compare.c).  A sort without an
 * encodable column has empty keys and works the same way.
 *
 *	  key		| 01 80 00 07 d1 | 01 'C' 'l' 'e' ... |	  at most 34 bytes
 *				  ^  column 0		 ^  column 1
 *				  null byte: 01 for a value, 00 or 02 for a null
 *
 * Text is encoded as its bytes if the collation compares bytes (C, POSIX,
 * glibc's C.UTF-8), as ICU's sort key under an ICU collation (collation.c),
 * and not at all under other collations.
 *
 * Memory: FmsKeys and the comparators' caches are in the memory context that
 * is current at creation and need no clean-up.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/nbtree.h"
#include "utils/lsyscache.h"
#include "utils/typcache.h"

#include "base/compat.h"
#include "keys/key_columns.h"
#include "keys/keys.h"

/* First byte of a column that is not null. */
#define VALUE_BYTE	1

/*
 * The comparison function of an ordering operator's family, or InvalidOid.
 * The type cache knows the usual operators of the column's type.
 */
static Oid
comparison_function(Oid operator, Oid column_type, bool *descending)
{
	const TypeCacheEntry *type = lookup_type_cache(column_type,
												   TYPECACHE_LT_OPR |
												   TYPECACHE_GT_OPR |
												   TYPECACHE_CMP_PROC);
	Oid			family;
	Oid			input;

	*descending = operator == type->gt_opr;
	if (*descending || operator == type->lt_opr)
		return type->cmp_proc;
	return fms_ordering_op(operator, &family, &input, descending) ?
		get_opfamily_proc(family, input, input, BTORDER_PROC) : InvalidOid;
}

/* Returns the row of the column's type, whatever its collation, or NULL. */
static const FmsKeyType *
init_column(FmsKeys *keys, const FmsKeySpec *spec, int i)
{
	FmsColumn  *column = &keys->columns[i];
	SortSupport comparator = &column->comparator;
	AttrNumber	attno = spec->attnos[i];
	bool		descending;
	Oid			function =
		comparison_function(spec->operators[i],
							TupleDescAttr(keys->desc, attno - 1)->atttypid,
							&descending);

	comparator->ssup_cxt = CurrentMemoryContext;
	comparator->ssup_collation = spec->collations[i];
	comparator->ssup_nulls_first = spec->nulls_first[i];
	comparator->ssup_attno = attno;
	comparator->abbreviate = false;

	column->attno = attno;
	column->invert = descending ? 0xFF : 0;
	column->null_byte = spec->nulls_first[i] ? VALUE_BYTE - 1 : VALUE_BYTE + 1;
	return fms_key_type_find(function);
}

/* Returns the type, or NULL if it has no encoding under the collation. */
static const FmsKeyType *
init_collation(FmsColumn *column, const FmsKeyType *type)
{
	Oid			collation = column->comparator.ssup_collation;

	if (type == NULL || !type->collated || fms_collation_is_c(collation))
		return type;
	column->sort_keys = fms_sort_keys_of(collation);
	return column->sort_keys.collator ? type : NULL;
}

/* What comparing columns needs, of records with equal keys. */
static void
init_undecided(FmsKeys *keys)
{
	AttrNumber	attno = keys->columns[keys->undecided].attno;
	int			i;

	if (!TupleDescAttr(keys->desc, attno - 1)->attbyval)
		keys->offset_attno = attno;
	keys->first_key_desc = CreateTemplateTupleDesc(keys->ncolumns);
	for (i = 0; i < keys->ncolumns; i++)
		TupleDescCopyEntry(keys->first_key_desc, i + 1, keys->desc,
						   keys->columns[i].attno);
}

FmsKeys *
fms_keys_create(TupleDesc desc, const FmsKeySpec *spec)
{
	FmsKeys    *keys;
	int			key_bytes = 0;	/* as far as they do not vary */
	bool		decided = true;
	int			i;

	Assert(spec->ncolumns > 0);

	keys = palloc0(offsetof(FmsKeys, columns) +
				   spec->ncolumns * sizeof(FmsColumn));
	keys->context = CurrentMemoryContext;
	keys->desc = desc;
	keys->ncolumns = spec->ncolumns;

	for (i = 0; i < spec->ncolumns; i++)
	{
		FmsColumn  *column = &keys->columns[i];
		const FmsKeyType *type = init_column(keys, spec, i);

		decided = decided && type && type->bytes > 0 &&
			key_bytes + 1 + type->bytes <= FMS_KEY_MAX_BYTES;
		/* this refuses a collation that is not determined */
		if (!decided)
			PrepareSortSupportFromOrderingOp(spec->operators[i],
											 &column->comparator);
		type = init_collation(column, type);
		column->encode = type ? type->encode : NULL;

		if (keys->nencoded < i || !type || key_bytes >= FMS_KEY_MAX_BYTES)
			continue;
		keys->nencoded++;
		key_bytes += 1 + type->bytes;
		if (decided)
			keys->undecided = keys->nencoded;
	}

	if (keys->undecided < keys->ncolumns)
		init_undecided(keys);
	keys->prefix_decides = keys->undecided == keys->ncolumns &&
		key_bytes <= FMS_PREFIX_BYTES;
	return keys;
}

bool
fms_keys_prefix_decides(const FmsKeys *keys)
{
	return keys->prefix_decides;
}

void
fms_keys_encode(FmsKeys *keys, TupleTableSlot *slot, FmsKeyImage *image)
{
	FmsKeyWriter writer = {
		.at = image->bytes,
		.end = image->bytes + FMS_KEY_MAX_BYTES
	};
	int			i;

	memset(image->bytes, 0, sizeof(image->bytes));

	for (i = 0; i < keys->nencoded && !writer.truncated; i++)
	{
		const FmsColumn *column = &keys->columns[i];
		bool		isnull;
		Datum		value = slot_getattr(slot, column->attno, &isnull);

		/* the null byte is not inverted: nulls_first is independent of DESC */
		writer.invert = 0;
		if (isnull)
			fms_encode_byte(&writer, column->null_byte);
		else
		{
			fms_encode_byte(&writer, VALUE_BYTE);
			writer.invert = column->invert;
			column->encode(&writer, value, &column->sort_keys);
		}
	}

	image->record.tuple_bytes = 0;
	image->record.key_bytes = fms_key_room(writer.at - image->bytes);
	image->record.flags = !writer.truncated &&
		keys->nencoded == keys->ncolumns ? FMS_RECORD_EXACT : 0;
}
