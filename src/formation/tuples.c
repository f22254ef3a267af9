/*-------------------------------------------------------------------------
 *
 * tuples.c
 *	  Run formation of tuples, as records and entries.
 *
 * Records lie in order of arrival in one piece of an arena, entries in the
 * other.  Only the entries are sorted.
 *
 *	  entries [prefix|offset] [prefix|offset] ..
 *	                     |               |
 *	                     v               v
 *	  records [header|key|tuple] [header|key|tuple] ..
 *
 * Spilling.  The tuples that arrived first are written, the others move up:
 *
 *	  before:  [e0 e1 e2 e3 e4 ..]  [r0 r1 r2 r3 r4 ..]
 *	  after:   [e2 e3 e4 ..]        [r2 r3 r4 ..]		0 and 1: a run
 *
 * Groups.  If one row of each is wanted, memory that was filtered has a table
 * of entries by the hash of their groups.  A row that comes behind the entry's
 * row, in the same group, is refused: it is behind that row also if the row
 * goes into a run, gives way to a better row of its group, or is dropped
 * beyond a bound.  Places may be wrong: the keys decide.
 *
 * Memory: the arena, the table, the caller's scratch context for values.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "utils/memutils.h"

#include "base/interrupts.h"
#include "formation/formation.h"
#include "keys/entry.h"

/*
 * Distances in entries at which a record is prefetched: its header, and then
 * the other cache lines that the header says it has, up to a number of lines.
 */
#define PREFETCH_HEADER		24
#define PREFETCH_LINES		12
#define PREFETCH_LINES_MAX	8
#define CACHE_LINE_BYTES	64

/* Bytes of the table for a group, 8 places; groups whose 8 MB soon clear */
#define GROUP_BYTES		((Size) 32)
#define GROUPS_MAX		((Size) 256 * 1024)

/* Rows looked up in vain until the table rests; one refused makes up for 3 */
#define GROUPS_LOOK		1024

StaticAssertDecl(FMS_ROW_INDEX_BYTES == sizeof(FmsEntry),
				 "the index has the entries");

static inline FmsEntry *
entries_of(const FmsFormation *formation)
{
	return (FmsEntry *) formation->arena.index.base;
}

static inline const FmsRecord *
record_of(const FmsFormation *formation, const FmsEntry *entry)
{
	return fms_entry_record(formation->arena.data.base, entry);
}

/*
 * Prefetches the records that follow entry i of `count` entries.  Always
 * inline: the compiler drops calls of functions that only prefetch.
 */
static pg_attribute_always_inline void
prefetch_records(const char *records, const FmsEntry *entries, Size i,
				 Size count)
{
	if (i + PREFETCH_HEADER < count)
		__builtin_prefetch(fms_entry_record(records,
											&entries[i + PREFETCH_HEADER]));
	if (i + PREFETCH_LINES < count)
	{
		const FmsRecord *record =
			fms_entry_record(records, &entries[i + PREFETCH_LINES]);
		const char *line = (const char *) record + CACHE_LINE_BYTES;
		const char *end = (const char *) record +
			Min(fms_record_bytes(record),
				PREFETCH_LINES_MAX * CACHE_LINE_BYTES);

		for (; line < end; line += CACHE_LINE_BYTES)
			__builtin_prefetch(line);
	}
}

/* A slot's tuple, of which the first FMS_TUPLE_SKIPPED_BYTES do not matter. */
typedef struct FmsSource
{
	const char *tuple;			/* has the layout of a MinimalTuple; NULL: the
								 * tuple has to be formed */
	Size		bytes;			/* length of the tuple */
	Size		values_at;		/* offset of the values, if it is NULL */
	bool		has_nulls;		/* likewise */
} FmsSource;

/* The tuple of a slot that has only values. */
static FmsSource
values_of(const TupleTableSlot *slot)
{
	TupleDesc	desc = slot->tts_tupleDescriptor;
	FmsSource	source = {NULL};

	for (int i = 0; i < desc->natts; i++)
		source.has_nulls |= slot->tts_isnull[i];
	source.values_at = MAXALIGN(SizeofMinimalTupleHeader +
								(source.has_nulls ? BITMAPLEN(desc->natts) :
								 0));
	source.bytes = source.values_at +
		heap_compute_data_size(desc, slot->tts_values, slot->tts_isnull);
	return source;
}

/* The tuple of a slot; a heap tuple need not be converted. */
static FmsSource
source_of(TupleTableSlot *slot)
{
	FmsSource	source = {NULL};
	bool		made;

	if (TTS_IS_VIRTUAL(slot) &&
		slot->tts_tupleDescriptor->natts <= MaxTupleAttributeNumber)
		source = values_of(slot);
	/* the server refuses tuples of too many columns or bytes */
	if (source.bytes > 0 && source.bytes <= MaxAllocSize)
		return source;
	if (TTS_IS_BUFFERTUPLE(slot) || TTS_IS_HEAPTUPLE(slot))
	{
		HeapTuple	tuple = ExecFetchSlotHeapTuple(slot, false, &made);

		source.bytes = tuple->t_len - MINIMAL_TUPLE_OFFSET;
		source.tuple = (const char *) tuple->t_data + MINIMAL_TUPLE_OFFSET;
	}
	else
	{
		MinimalTuple tuple = ExecFetchSlotMinimalTuple(slot, &made);

		source.bytes = tuple->t_len;
		source.tuple = (const char *) tuple;
	}
	return source;
}

/* Forms the tuple of a slot that has only values, in its record. */
static const char *
form_tuple(const TupleTableSlot *slot, const FmsSource *source,
		   FmsRecord *record)
{
	MinimalTuple tuple = fms_record_tuple(record);
	char	   *bytes = (char *) tuple;

	memset(bytes + FMS_TUPLE_SKIPPED_BYTES, 0,
		   source->bytes - FMS_TUPLE_SKIPPED_BYTES);
	tuple->t_infomask2 = slot->tts_tupleDescriptor->natts;
	tuple->t_hoff = source->values_at + MINIMAL_TUPLE_OFFSET;
	heap_fill_tuple(slot->tts_tupleDescriptor, slot->tts_values,
					slot->tts_isnull, bytes + source->values_at,
					source->bytes - source->values_at, &tuple->t_infomask,
					source->has_nulls ? tuple->t_bits : NULL);
	return bytes;
}

static const FmsRecord *
get_tuple(const FmsFormation *formation, uint64 position)
{
	const FmsEntry *entry = &entries_of(formation)[position];

	if (position + PREFETCH_LINES < fms_formation_count(formation))
		__builtin_prefetch(record_of(formation, entry + PREFETCH_LINES));
	return record_of(formation, entry);
}

static inline uint32 *
place_of(const FmsFormation *formation, const FmsRecord *key)
{
	uint64		places = formation->groups_bytes / sizeof(uint32);

	return formation->groups +
		(fms_group_filter_hash(formation->filter, key) * places >> 32);
}

/* Makes the table, unless it rests, in memory that the records leave. */
static void
learn_groups(FmsFormation *formation)
{
	FmsPiece   *data = &formation->arena.data;
	Size		count = fms_formation_count(formation);
	Size		left = data->size_bytes - data->used_bytes;
	Size		bytes = Min(left / 4, Min(count, GROUPS_MAX) * GROUP_BYTES);

	formation->groups_gain += GROUPS_LOOK / 16;
	if (formation->groups_gain < 0 || bytes < GROUP_BYTES ||
		!fms_piece_resize(data, MAXALIGN_DOWN(data->size_bytes - bytes)))
		return;
	formation->groups = MemoryContextAllocZero(formation->context, bytes);
	formation->groups_bytes = bytes;
	fms_for_interruptible(i, count, FMS_INTERRUPT_RECORD_BYTES)
		*place_of(formation, get_tuple(formation, i)) = i;
}

/* Is the row of that key unwanted?  If not, its place is the next entry. */
static inline bool
is_refused(FmsFormation *formation, const FmsRecord *key)
{
	Size		count = fms_formation_count(formation);
	uint32	   *place;
	bool		refused;

	/* the filter may have gone since the table was made */
	if (formation->groups_bytes == 0 || formation->filter == NULL ||
		formation->groups_gain <= -GROUPS_LOOK)
		return false;
	place = place_of(formation, key);
	refused = *place < count &&
		fms_group_filter_refuses(formation->filter, key,
								 record_of(formation,
										   entries_of(formation) + *place));
	if (!refused)
		*place = count;
	formation->groups_gain += refused ? 3 : -1;
	return refused;
}

/* Puts entries in order of arrival and closes the gaps between records. */
static void
pack_records(FmsFormation *formation)
{
	FmsEntry   *entries = entries_of(formation);
	FmsPiece   *data = &formation->arena.data;
	Size		count = fms_formation_count(formation);

	fms_entries_sort_by_comparing(entries, count, NULL);
	data->used_bytes = 0;
	for (Size i = 0; i < count; i++)
	{
		const FmsRecord *record = record_of(formation, &entries[i]);
		Size		size = fms_record_bytes(record);

		fms_interrupts_memmove(data->base + data->used_bytes, record, size);
		entries[i].tail -= fms_entry_offset(&entries[i]) - data->used_bytes;
		data->used_bytes += size;
	}
	if (formation->filter)
		learn_groups(formation);
}

/* Does the key prefix show that the tuple is not less than the cutoff? */
static inline bool
is_beyond_cutoff(const FmsFormation *formation, const FmsKeyImage *image)
{
	const FmsRecord *cutoff = formation->cutoff.record;
	uint64		prefix;

	/* not earlier: the processor would wait until the key is in the cache */
	if (likely(cutoff == NULL))
		return false;
	prefix = fms_record_prefix(&image->record);
	if (prefix != fms_record_prefix(cutoff))
		return prefix > fms_record_prefix(cutoff);
	return fms_keys_prefix_decides(formation->keys) &&
		fms_record_prefix_rest(&image->record) >=
		fms_record_prefix_rest(cutoff);
}

/* Removes the last record if it is not less than the cutoff. */
static void
drop_if_beyond_cutoff(FmsFormation *formation)
{
	FmsArena   *arena = &formation->arena;
	const FmsEntry *entry = entries_of(formation) +
		fms_formation_count(formation) - 1;

	if (fms_keys_compare(formation->keys, record_of(formation, entry),
						 formation->cutoff.record) >= 0)
	{
		arena->data.used_bytes = fms_entry_offset(entry);
		arena->index.used_bytes -= sizeof(FmsEntry);
	}
}

/* Adds the slot's tuple with that key; false if there is no room. */
static bool
add_tuple(FmsFormation *formation, TupleTableSlot *slot,
		  const FmsKeyImage *image, Size budget_bytes)
{
	uint16		flags = image->record.flags;
	FmsSource	source = source_of(slot);
	Size		size = fms_record_size(image->record.key_bytes, source.bytes);
	FmsPiece   *index = &formation->arena.index;
	FmsPiece   *data = &formation->arena.data;
	FmsRecord  *record;

	if (!fms_formation_make_room(formation, size, budget_bytes))
		return false;
	record = (FmsRecord *) (data->base + data->used_bytes);
	fms_record_write(record, image->bytes, image->record.key_bytes, flags,
					 source.tuple, source.bytes);
	if (source.tuple == NULL)
		source.tuple = form_tuple(slot, &source, record);
	if (!(flags & FMS_RECORD_EXACT))
		record->flags = fms_keys_column_flags(formation->keys, slot,
											  source.tuple, source.bytes);
	*(FmsEntry *) (index->base + index->used_bytes) =
		fms_entry_make(&image->record, data->used_bytes);
	index->used_bytes += sizeof(FmsEntry);
	data->used_bytes += size;
	return true;
}

static bool
put_tuple(FmsFormation *formation, TupleTableSlot *slot, Size budget_bytes)
{
	MemoryContext scratch = formation->scratch;
	MemoryContext caller = MemoryContextSwitchTo(scratch);
	FmsKeyImage image;
	bool		fits = true;

	fms_keys_encode(formation->keys, slot, &image);
	if (!is_beyond_cutoff(formation, &image) &&
		!is_refused(formation, &image.record))
	{
		fits = add_tuple(formation, slot, &image, budget_bytes);
		if (fits && formation->cutoff.record)
			drop_if_beyond_cutoff(formation);
	}

	MemoryContextSwitchTo(caller);
	/* not each time: a reset costs as much as forming a small tuple */
	if (unlikely(scratch->mem_allocated > ALLOCSET_DEFAULT_INITSIZE))
		MemoryContextReset(scratch);
	return fits;
}

/* Appends entries to the run of the writer, the sort's argument. */
static void
write_entries(const FmsEntriesSort *sort, const FmsEntry *entries, Size count)
{
	const char *records = sort->records;

	fms_for_interruptible(i, count, FMS_INTERRUPT_RECORD_BYTES)
	{
		prefetch_records(records, entries, i, count);
		fms_run_append(sort->arg, fms_entry_record(records, &entries[i]));
	}
}

/* Sorts the first `count` entries; into the writer's run, if there is one. */
static void
sort_first(FmsFormation *formation, Size count, FmsRunWriter *writer)
{
	FmsEntriesSort sort = {
		.keys = formation->keys,
		.prefix_decides = fms_keys_prefix_decides(formation->keys),
		.records = formation->arena.data.base,
		.take = writer ? write_entries : NULL,
		.arg = writer
	};

	if (formation->groups_bytes > 0)
		pfree(formation->groups);
	formation->groups_bytes = 0;
	fms_entries_sort(&sort, entries_of(formation), count);
}

static void
sort_tuples(FmsFormation *formation)
{
	sort_first(formation, fms_formation_count(formation), NULL);
}

/* Bytes of the records of the first `count` entries. */
static inline Size
first_records_bytes(const FmsFormation *formation, Size count)
{
	return count < fms_formation_count(formation) ?
		fms_entry_offset(&entries_of(formation)[count]) :
		formation->arena.data.used_bytes;
}

/* Number of first entries that, with their records, take `bytes`. */
static Size
entries_within(const FmsFormation *formation, Size bytes)
{
	Size		count = fms_formation_count(formation);
	Size		low = 0;
	Size		high = count;

	while (low < high)
	{
		Size		middle = low + (high - low) / 2;

		if (first_records_bytes(formation, middle + 1) +
			(middle + 1) * sizeof(FmsEntry) < bytes)
			low = middle + 1;
		else
			high = middle;
	}
	return Min(low + 1, count);
}

/* Forgets the first `count` entries, whose records take `bytes`. */
static void
forget_first(FmsFormation *formation, Size count, Size bytes)
{
	FmsEntry   *entries = entries_of(formation);
	FmsPiece   *data = &formation->arena.data;
	Size		left = fms_formation_count(formation) - count;

	data->used_bytes -= bytes;
	fms_interrupts_memmove(data->base, data->base + bytes, data->used_bytes);
	formation->arena.index.used_bytes = left * sizeof(FmsEntry);
	fms_for_interruptible(i, left, sizeof(FmsEntry))
	{
		entries[i] = entries[count + i];
		entries[i].tail -= bytes;
	}
}

static void
spill_tuples(FmsFormation *formation, FmsRunWriter *writer, Size bytes)
{
	Size		count = entries_within(formation, bytes);
	Size		records_bytes = first_records_bytes(formation, count);

	sort_first(formation, count, writer);
	forget_first(formation, count, records_bytes);
}

const FmsFormationKind fms_tuples_kind = {
	.put = put_tuple,
	.sort = sort_tuples,
	.index_bytes = sizeof(FmsEntry),
	.get = get_tuple,
	.spill = spill_tuples,
	.pack = pack_records
};
