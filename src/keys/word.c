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
				   bool descending, MinimalTuple tuple)
{
	uint8		key[FMS_PREFIX_BYTES] = {FMS_VALUE_BYTE};

	Assert(fms_record_size(sizeof(key), tuple->t_len) ==
		   sizeof(FmsWordRecord));

	type->bytes = bytes;
	type->shift = 64 - 8 * bytes;
	type->flip = descending ? PG_UINT64_MAX << type->shift : 0;
	if (is_signed)
		type->flip ^= UINT64CONST(1) << 63;
	fms_record_write(&type->record.record, key, sizeof(key), FMS_RECORD_EXACT,
					 (const char *) tuple, tuple->t_len);
}
