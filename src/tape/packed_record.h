/*-------------------------------------------------------------------------
 *
 * packed_record.h
 *	  Records without what their tuples give again: the contents of packed
 *	  blocks and of compressed chunks.
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
#define FMS_PACKED_TUPLE_BYTES	280

/* Memory for unpacking a record, MAXALIGNed. */
#define FMS_PACKED_BUFFER_BYTES \
	(FMS_KEY_MAX_BYTES - FMS_KEY_LAST_BYTES + FMS_PACKED_TUPLE_BYTES)

/*
 * A record is packed if it is larger than PostgreSQL's tuple on tape, with its
 * length, by this part of the latter: 1/6.  Unpacking costs up to a twentieth
 * of a sort's time.
 */
#define FMS_PACKED_GAIN			6

/* Is the record to be packed? */
static inline bool
fms_record_packs(const FmsRecord *record)
{
	uint32		stock_bytes = record->tuple_bytes - FMS_TUPLE_SKIPPED_BYTES +
		sizeof(int);

	return record->tuple_bytes <= FMS_PACKED_TUPLE_BYTES &&
		record->tuple_bytes >= MAXALIGN(SizeofMinimalTupleHeader) &&
		fms_record_bytes(record) >
		stock_bytes + stock_bytes / FMS_PACKED_GAIN &&
	/* making the key again might read out-of-line values again */
		!(fms_record_tuple(record)->t_infomask & HEAP_HASEXTERNAL);
}

/*
 * Appends a record to the packed records in area[end_bytes], which is
 * MAXALIGNed and used up to at_bytes; at the beginning at_bytes is 0.  Returns
 * the end of what is used now, or 0 with at_bytes still valid if the record
 * does not fit.  If packs is false, the record is stored as it is.
 */
extern uint32 fms_packed_append(char *area, uint32 at_bytes, uint32 end_bytes,
								const FmsRecord *record, bool packs);

/*
 * Returns the closed record at *at_bytes, and moves *at_bytes behind it.  The
 * record is in area[end_bytes] or in buffer, which is MAXALIGNed and has
 * FMS_PACKED_BUFFER_BYTES.  Returns NULL if fms_packed_append() cannot have
 * written it.  May run an encoder, hence allocate and ERROR.
 */
extern const FmsRecord *fms_packed_read(const char *area, uint32 *at_bytes,
										uint32 end_bytes, FmsKeys *keys,
										char *buffer);

#endif							/* FMS_PACKED_RECORD_H */
