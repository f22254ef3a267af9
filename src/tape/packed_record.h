/*-------------------------------------------------------------------------
 *
 * packed_record.h
 *	  Packed records: what packed blocks have, without what tuples give again.
 *
 *-------------------------------------------------------------------------
 */
#ifndef FMS_PACKED_RECORD_H
#define FMS_PACKED_RECORD_H

#include "postgres.h"

#include "keys/keys.h"

/* Longest tuple that is packed, in bytes: keys hardly count beside others. */
#define FMS_PACKED_TUPLE_BYTES	384

/* Memory for unpacking a record, MAXALIGNed. */
#define FMS_PACKED_BUFFER_BYTES \
	(FMS_KEY_MAX_BYTES - FMS_KEY_LAST_BYTES + FMS_PACKED_TUPLE_BYTES)

/* Largest size of a small block, in bytes: work_mem is small, too. */
#define FMS_PACKED_SMALL_BYTES	8192

/* Making the key again must not read out-of-line values, nor decompress. */
static inline bool
fms_record_can_be_packed(const FmsRecord *record)
{
	MinimalTuple tuple = fms_record_tuple(record);
	Size		offset = record->flags >> FMS_RECORD_COLUMN_SHIFT;

	return record->tuple_bytes <= FMS_PACKED_TUPLE_BYTES &&
		!(tuple->t_infomask & HEAP_HASEXTERNAL) &&
		!(offset > 0 && VARATT_IS_COMPRESSED((char *) tuple + offset));
}

/*
 * Is the record a tenth larger than PostgreSQL's tuple on tape?  A fifth in
 * large blocks, where unpacking whole rows takes longer than it saves.
 */
static inline bool
fms_packing_pays(const FmsRecord *record, uint32 block_bytes)
{
	Size		stock_bytes = record->tuple_bytes - FMS_TUPLE_SKIPPED_BYTES +
		sizeof(int);

	return fms_record_bytes(record) > stock_bytes +
		stock_bytes / (block_bytes <= FMS_PACKED_SMALL_BYTES ? 10 : 5);
}

/*
 * Appends a record, which can be packed, to those in area[room_bytes], which
 * is used up to at_bytes.  words: see fms_keys_word_type().  Returns the end
 * of what is used now, or 0 if the record does not fit.
 */
extern uint32 fms_packed_append(const FmsWordType *words, char *area,
								uint32 at_bytes, uint32 room_bytes,
								const FmsRecord *record);

/*
 * Returns the closed record at *at_bytes, in buffer, and moves *at_bytes
 * behind it.  buffer is MAXALIGNed and has FMS_PACKED_BUFFER_BYTES.  NULL if
 * fms_packed_append() cannot have written it.  May run an encoder, hence
 * allocate and ERROR.
 */
extern const FmsRecord *fms_packed_read(FmsKeys *keys, const char *area,
										uint32 *at_bytes, uint32 room_bytes,
										char *buffer);

#endif							/* FMS_PACKED_RECORD_H */
