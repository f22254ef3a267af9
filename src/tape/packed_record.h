/*-------------------------------------------------------------------------
 *
 * packed_record.h
 *	  Records without what their tuples give again: the contents of packed
 *	  blocks.
 *
 *-------------------------------------------------------------------------
 */
#ifndef FMS_PACKED_RECORD_H
#define FMS_PACKED_RECORD_H

#include "postgres.h"

#include "keys/keys.h"

/*
 * Longest tuple that is packed, in bytes.  No record of a longer one is
 * larger than PostgreSQL's by FMS_PACKED_GAIN, with a key of 34 bytes.
 */
#define FMS_PACKED_TUPLE_BYTES	384

/* Memory for unpacking a record, MAXALIGNed. */
#define FMS_PACKED_BUFFER_BYTES \
	(FMS_KEY_MAX_BYTES - FMS_KEY_LAST_BYTES + FMS_PACKED_TUPLE_BYTES)

/*
 * Packing pays if the record is larger than PostgreSQL's tuple on tape, with
 * its length, by this part of the latter: 1/10.
 */
#define FMS_PACKED_GAIN			10

/* Does it pay to pack the record?  words: see fms_keys_word_type(). */
static inline bool
fms_packing_pays(const FmsWordType *words, const FmsRecord *record)
{
	uint32		stock_bytes = record->tuple_bytes - FMS_TUPLE_SKIPPED_BYTES +
		sizeof(int);

	return words || (record->tuple_bytes <= FMS_PACKED_TUPLE_BYTES &&
					 fms_record_bytes(record) >
					 stock_bytes + stock_bytes / FMS_PACKED_GAIN);
}

/*
 * Appends a record to the packed records in area[room_bytes], which is
 * MAXALIGNed and used up to at_bytes; at the beginning at_bytes is 0.  A
 * record that cannot be packed is stored as it is.  Returns the end of what is
 * used now, or 0 with at_bytes still valid if the record does not fit.
 */
extern uint32 fms_packed_append(const FmsWordType *words, char *area,
								uint32 at_bytes, uint32 room_bytes,
								const FmsRecord *record);

/*
 * Returns the closed record at *at_bytes, and moves *at_bytes behind it.  The
 * record is in area[room_bytes] or in buffer, which is MAXALIGNed and has
 * FMS_PACKED_BUFFER_BYTES.  Returns NULL if fms_packed_append() cannot have
 * written it.  May run an encoder, hence allocate and ERROR.
 */
extern const FmsRecord *fms_packed_read(FmsKeys *keys, const char *area,
										uint32 *at_bytes, uint32 room_bytes,
										char *buffer);

#endif							/* FMS_PACKED_RECORD_H */
