/*-------------------------------------------------------------------------
 *
 * word.c
 *	  What the words of a sort have in common.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "keys/word.h"

void
fms_word_type_init(FmsWordType *type, int bytes, bool is_signed,
				   bool descending)
{
	uint8		key[FMS_PREFIX_BYTES] = {FMS_VALUE_BYTE};
	uint16		key_bytes = fms_key_room(1 + bytes);
	MinimalTuple tuple;

	type->bytes = bytes;
	type->shift = 64 - 8 * bytes;
	type->flip = descending ? PG_UINT64_MAX << type->shift : 0;
	if (is_signed)
		type->flip ^= UINT64CONST(1) << 63;
	memset(&type->record, 0, sizeof(type->record));
	fms_record_write(&type->record.record, key, key_bytes, FMS_RECORD_EXACT,
					 NULL, FMS_WORD_VALUE_OFFSET + bytes);
	tuple = fms_record_tuple(&type->record.record);
	tuple->t_infomask2 = 1;		/* a column, which is not null */
	tuple->t_hoff = FMS_WORD_VALUE_OFFSET + MINIMAL_TUPLE_OFFSET;
}
