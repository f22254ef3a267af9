/*-------------------------------------------------------------------------
 *
 * key_compare.c
 *	  Comparing records, and making first keys that can be compared.
 *
 * The keys' bytes are compared as words.  If they are equal, the types'
 * comparators decide, from the first column that equal keys leave undecided.
 *
 * Memory: a first key is in the context of its FmsKeys.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "base/compat.h"
#include "keys/key_columns.h"
#include "keys/keys.h"

/* A tuple with the layout of a MinimalTuple as a heap tuple. */
static inline HeapTupleData
heap_view(const char *tuple, Size tuple_bytes)
{
	HeapTupleData view = {0};

	view.t_len = tuple_bytes + MINIMAL_TUPLE_OFFSET;
	view.t_data = (HeapTupleHeader) (tuple - MINIMAL_TUPLE_OFFSET);
	return view;
}

/* If the slot holds this very tuple, the column's value points into it. */
uint16
fms_keys_column_flags(FmsKeys *keys, TupleTableSlot *slot, const char *tuple,
					  Size tuple_bytes)
{
	bool		isnull;
	const char *value;

	if (keys->offset_attno == 0)
		return 0;
	value = DatumGetPointer(slot_getattr(slot, keys->offset_attno, &isnull));
	if (isnull)
		return 0;
	if (value <= tuple || value >= tuple + tuple_bytes)
	{
		HeapTupleData view = heap_view(tuple, tuple_bytes);

		value = DatumGetPointer(heap_getattr(&view, keys->offset_attno,
											 keys->desc, &isnull));
		/* the catalog has the value of a column that was added later */
		if (isnull || value <= tuple || value >= tuple + tuple_bytes)
			return 0;
	}
	return value - tuple > FMS_RECORD_COLUMN_MAX ? 0 :
		(value - tuple) << FMS_RECORD_COLUMN_SHIFT;
}

Datum
fms_keys_column(const FmsKeys *keys, const FmsRecord *record, int i,
				bool *isnull)
{
	MinimalTuple tuple = fms_record_tuple(record);
	Size		offset = record->flags >> FMS_RECORD_COLUMN_SHIFT;
	HeapTupleData view;

	Assert(record->tuple_bytes > 0);
	if (i == keys->undecided && offset > 0)
	{
		*isnull = false;
		return PointerGetDatum((char *) tuple + offset);
	}
	view = heap_view((const char *) tuple, record->tuple_bytes);
	if (record->flags & FMS_RECORD_FIRST_KEY)
		return heap_getattr(&view, i + 1, keys->first_key_desc, isnull);
	return heap_getattr(&view, keys->columns[i].attno, keys->desc, isnull);
}

int
fms_keys_compare_column(FmsKeys *keys, const FmsRecord *a, const FmsRecord *b,
						int i)
{
	bool		a_null;
	bool		b_null;
	Datum		a_value = fms_keys_column(keys, a, i, &a_null);
	Datum		b_value = fms_keys_column(keys, b, i, &b_null);

	return ApplySortComparator(a_value, a_null, b_value, b_null,
							   &keys->columns[i].comparator);
}

int
fms_keys_compare_columns(FmsKeys *keys, const FmsRecord *a,
						 const FmsRecord *b, int equal)
{
	int			order = 0;
	int			i;

	for (i = keys->undecided + equal; i < keys->ncolumns && order == 0; i++)
		order = fms_keys_compare_column(keys, a, b, i);
	return order;
}

int
fms_keys_compare_rest(FmsKeys *keys, const FmsRecord *a, const FmsRecord *b)
{
	int			nwords = Min(fms_record_key_words(a), fms_record_key_words(b));

	Assert(fms_record_prefix(a) == fms_record_prefix(b));

	for (int i = 1; i < nwords; i++)
	{
		uint64		a_word = fms_record_key_word(a, i);
		uint64		b_word = fms_record_key_word(b, i);

		if (a_word != b_word)
			return a_word < b_word ? -1 : 1;
	}

	/* keys are prefix-free: these are equally long, and both exact or not */
	Assert(a->key_bytes == b->key_bytes);
	if (a->flags & b->flags & FMS_RECORD_EXACT)
		return 0;
	return fms_keys_compare_columns(keys, a, b, 0);
}

static MinimalTuple
make_first_key_tuple(FmsKeys *keys, const FmsRecord *record)
{
	Datum	   *values = palloc(keys->ncolumns * sizeof(Datum));
	bool	   *nulls = palloc(keys->ncolumns * sizeof(bool));
	MinimalTuple tuple;

	for (int i = 0; i < keys->ncolumns; i++)
		values[i] = fms_keys_column(keys, record, i, &nulls[i]);
	tuple = fms_form_minimal_tuple(keys->first_key_desc, values, nulls);
	pfree(values);
	pfree(nulls);
	return tuple;
}

const FmsRecord *
fms_keys_make_first_key(FmsKeys *keys, const FmsRecord *record)
{
	uint16		exact = record->flags & FMS_RECORD_EXACT;
	MinimalTuple tuple = exact ? NULL : make_first_key_tuple(keys, record);
	Size		tuple_bytes = tuple ? tuple->t_len : 0;
	FmsRecord  *first_key =
		fms_record_buffer_reserve(&keys->first_key, keys->context,
								  fms_record_size(record->key_bytes,
												  tuple_bytes));

	/* no column offset: the tuple is another one */
	fms_record_write(first_key, fms_record_key(record), record->key_bytes,
					 exact | FMS_RECORD_FIRST_KEY, (const char *) tuple,
					 tuple_bytes);
	if (tuple)
		pfree(tuple);
	return first_key;
}
