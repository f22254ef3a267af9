/*-------------------------------------------------------------------------
 *
 * formation.c
 *	  Run formation: memory full of tuples to a sorted run (Algorithm 1,
 *	  lines 3 to 6).
 *
 * Two pieces of memory (arena.c).  Records are packed into one as they arrive,
 * entries of 16 bytes each into the other.
 *
 *	  entries [prefix|place] [prefix|place] ..
 *	                     |              |
 *	                     v              v
 *	  records [header|key|tuple] [header|key|tuple] ..
 *
 * Entries are what gets sorted (entries.c); records stay where they are.  An
 * entry finds its record by the distance from the first one, so memory that
 * grows may move.
 *
 * A bound.  If only the first n tuples are wanted, memory need not hold more
 * than about twice as many.  When it does, entries are sorted, the first n
 * stay, and the last of them is the cutoff: whatever does not sort before it
 * is refused from then on, mostly after one look at its key and without
 * being copied.  (A heap of n tuples, the stock sort's way, pays log n for
 * every tuple it accepts and copies every tuple before it looks.)
 *
 *	  shrink:  [..... n first, sorted .....|.... the others ....]
 *	           back in order of arrival    | forgotten
 *	           records moved together at the memory's beginning
 *
 * Spilling in parts.  Since records lie in order of arrival, those that came
 * first can be sorted and written by themselves; the others then move up.  So
 * memory that is a little too small spills a little (sort.c decides how much),
 * and what is left when the input ends is never written at all.
 *
 *	  before:  [e0 e1 e2 e3 e4 ..]  [r0 r1 r2 r3 r4 ..]
 *	  after:   [e2 e3 e4 ..]        [r2 r3 r4 ..]		0 and 1: a run
 *
 * Why not replacement selection, with runs twice as long: it costs a tree
 * walk through cold memory per tuple, gains nothing once the merge takes one
 * pass anyway, and its stability needs extra care.
 *
 * Memory: the arena's (arena.c), and a scratch context for keys and tuples
 * under way.  Nothing has to be done on ERROR.  Each loop over tuples checks
 * for interrupts (interrupts.h), also half-way through moving them: whoever
 * gets an error forgets the formation.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "utils/memutils.h"

#include "formation/arena.h"
#include "base/clock.h"
#include "keys/entries.h"
#include "formation/formation.h"
#include "base/interrupts.h"

/*
 * Records lie anywhere when they are asked for in order.  How far ahead of
 * that they are fetched into the cache: first the line that says how long
 * one is, then the others.
 */
#define PREFETCH_ENTRIES	24
#define PREFETCH_WHOLE		12
#define PREFETCH_LINES_MAX	8
#define CACHE_LINE_BYTES	64

/* Below so many entries more than the bound it is not worth shrinking. */
#define SHRINK_MIN_ENTRIES	1024

struct FmsFormation
{
	MemoryContext scratch;		/* detoasted keys, tuples being formed */
	MemoryContext context;		/* the one current at creation */
	FmsKeys    *keys;
	FmsArena	arena;			/* index: entries; data: records */
	Size		count;			/* of entries */
	Size		records_bytes;

	uint64		bound;			/* tuples wanted, or 0: all */
	uint64		cutoff_prefix;
	FmsRecord  *cutoff;			/* copy of the bound's last record; NULL: not
								 * known yet */
	Size		cutoff_bytes;	/* allocated for it */
	double		shrink_us;		/* all time in shrink() */
};

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

static inline FmsArenaBytes
bytes_used(const FmsFormation *formation)
{
	return (FmsArenaBytes) {
		.index = formation->count * sizeof(FmsEntry),
		.data = formation->records_bytes
	};
}

/*
 * Fetches what will be asked for soon after the record of that position.
 * Always inline: to the compiler a function that only prefetches does nothing,
 * and it drops calls of such.
 */
static pg_attribute_always_inline void
fetch_ahead(const char *records, const FmsEntry *entries, Size position,
			Size count)
{
	if (position + PREFETCH_ENTRIES < count)
		__builtin_prefetch(fms_entry_record(records,
											&entries[position +
													 PREFETCH_ENTRIES]));
	if (position + PREFETCH_WHOLE < count)
	{
		const FmsRecord *record =
			fms_entry_record(records, &entries[position + PREFETCH_WHOLE]);
		const char *line = (const char *) record + CACHE_LINE_BYTES;
		const char *end = (const char *) record +
			Min(fms_record_bytes(record),
				PREFETCH_LINES_MAX * CACHE_LINE_BYTES);

		for (; line < end; line += CACHE_LINE_BYTES)
			__builtin_prefetch(line);
	}
}

FmsFormation *
fms_formation_create(FmsKeys *keys)
{
	FmsFormation *formation = palloc0(sizeof(FmsFormation));

	fms_arena_init(&formation->arena);
	formation->scratch = AllocSetContextCreate(CurrentMemoryContext,
											   "fmsort scratch",
											   ALLOCSET_SMALL_SIZES);
	formation->context = CurrentMemoryContext;
	formation->keys = keys;
	return formation;
}

void
fms_formation_want_head(FmsFormation *formation, Size bytes)
{
	fms_piece_want_head(&formation->arena.data, bytes);
}

char *
fms_formation_take_head(FmsFormation *formation, Size *bytes)
{
	return fms_piece_take_head(&formation->arena.data, bytes);
}

void
fms_formation_set_bound(FmsFormation *formation, uint64 bound)
{
	Assert(formation->count == 0);
	formation->bound = bound;
	if (formation->cutoff)
		pfree(formation->cutoff);
	formation->cutoff = NULL;
	formation->cutoff_bytes = 0;
}

/* Where a run being written gets its records from. */
typedef struct FmsSpilling
{
	FmsRunWriter *writer;
	const char *records;
} FmsSpilling;

double
fms_formation_rare_us(const FmsFormation *formation)
{
	return formation->arena.make_room_us + formation->shrink_us;
}

uint64
fms_formation_count(const FmsFormation *formation)
{
	return formation->count;
}

Size
fms_formation_refused_at(const FmsFormation *formation)
{
	return formation->arena.refused ? fms_arena_size(&formation->arena) : 0;
}

Size
fms_formation_memory_bytes(const FmsFormation *formation)
{
	return formation->records_bytes + formation->count * sizeof(FmsEntry);
}

/*
 * A slot's tuple, before it has become part of a record: the bytes of a
 * minimal tuple but for its first fields, which copy_tuple() writes.
 */
typedef struct FmsTupleView
{
	const char *bytes;
	Size		length_bytes;
} FmsTupleView;

/*
 * A heap tuple differs from a minimal one only in what its header starts
 * with, so it is not converted first.  A tuple that the slot holds in
 * another form is made in the current context.
 */
static void
view_tuple(TupleTableSlot *slot, FmsTupleView *view)
{
	bool		made;

	if (TTS_IS_BUFFERTUPLE(slot) || TTS_IS_HEAPTUPLE(slot))
	{
		HeapTuple	tuple = ExecFetchSlotHeapTuple(slot, false, &made);

		view->bytes = (const char *) tuple->t_data + MINIMAL_TUPLE_OFFSET;
		view->length_bytes = tuple->t_len - MINIMAL_TUPLE_OFFSET;
	}
	else
	{
		MinimalTuple tuple = ExecFetchSlotMinimalTuple(slot, &made);

		view->bytes = (const char *) tuple;
		view->length_bytes = tuple->t_len;
	}
}

static void
add_record(FmsFormation *formation, TupleTableSlot *slot,
		   const FmsKeyImage *image, const FmsTupleView *tuple, Size size)
{
	FmsRecord  *record = (FmsRecord *)
		(formation->arena.data.base + formation->records_bytes);

	fms_record_write(record, image->bytes, image->key_bytes,
					 image->exact ? FMS_RECORD_EXACT :
					 fms_keys_place(formation->keys, slot, tuple->bytes,
									tuple->length_bytes),
					 tuple->bytes, tuple->length_bytes);

	entries_of(formation)[formation->count++] =
		fms_entry_make(record, formation->records_bytes);
	formation->records_bytes += size;
}

/* Keeps a copy of the bound's last record. */
static void
set_cutoff(FmsFormation *formation, const FmsRecord *record)
{
	Size		bytes = fms_record_bytes(record);

	if (formation->cutoff_bytes < bytes)
	{
		if (formation->cutoff)
			pfree(formation->cutoff);
		formation->cutoff = NULL;
		formation->cutoff = MemoryContextAllocExtended(formation->context,
													   bytes, MCXT_ALLOC_HUGE);
		formation->cutoff_bytes = bytes;
	}
	fms_interrupts_memmove(formation->cutoff, record, bytes);
	formation->cutoff_prefix = fms_record_prefix(record);
}

/*
 * Moves the records of the entries, which are in order of arrival, together
 * at the memory's beginning.  Each moves towards the beginning, if at all, so
 * none is overwritten before it has moved.
 */
static void
pack_records(FmsFormation *formation)
{
	FmsEntry   *entries = entries_of(formation);
	char	   *records = formation->arena.data.base;
	Size		i;

	formation->records_bytes = 0;
	for (i = 0; i < formation->count; i++)
	{
		const FmsRecord *record = record_of(formation, &entries[i]);
		Size		size = fms_record_bytes(record);

		fms_interrupts_memmove(records + formation->records_bytes, record,
							   size);
		entries[i].tail -= fms_entry_place(&entries[i]) -
			formation->records_bytes;
		formation->records_bytes += size;
	}
}

/* Forgets all but the tuples wanted. */
static void
shrink(FmsFormation *formation)
{
	FmsEntry   *entries = entries_of(formation);
	instr_time	start = fms_clock_now();

	Assert(formation->count > formation->bound);
	fms_formation_sort(formation);
	formation->count = formation->bound;
	set_cutoff(formation, record_of(formation,
									&entries[formation->count - 1]));
	fms_entries_sort_by_arrival(entries, formation->count);
	pack_records(formation);
	formation->shrink_us += fms_clock_since_us(start);
}

/* Has enough come together to choose the tuples wanted? */
static inline bool
worth_shrinking(const FmsFormation *formation)
{
	return formation->bound > 0 &&
		formation->count >= Max(2 * formation->bound,
								formation->bound + SHRINK_MIN_ENTRIES);
}

/*
 * Memory is full: would choosing the tuples wanted free a good part of it?  If
 * not, it would soon be full again, and choosing is sorting.
 */
static inline bool
frees_enough(const FmsFormation *formation)
{
	return formation->bound > 0 &&
		formation->count > formation->bound + formation->bound / 2;
}

/* Can the key's prefix say that the tuple is behind all tuples wanted? */
static inline bool
is_beyond_cutoff(const FmsFormation *formation, const FmsKeyImage *image)
{
	uint64		prefix;

	if (formation->cutoff == NULL)
		return false;
	prefix = fms_image_prefix(image);
	if (prefix != formation->cutoff_prefix)
		return prefix > formation->cutoff_prefix;
	return fms_keys_prefix_decides(formation->keys) &&
		fms_image_prefix_rest(image) >=
		fms_record_prefix_rest(formation->cutoff);
}

/* Takes the last record back if it is behind all tuples wanted. */
static void
drop_if_beyond_cutoff(FmsFormation *formation)
{
	const FmsEntry *entry = &entries_of(formation)[formation->count - 1];
	const FmsRecord *record = record_of(formation, entry);

	if (entry->prefix == formation->cutoff_prefix &&
		fms_keys_compare_rest(formation->keys, record,
							  formation->cutoff) >= 0)
	{
		formation->records_bytes -= fms_record_bytes(record);
		formation->count--;
	}
}

/*
 * Gets room for one record more of that size.  Returns false if the budget or
 * the system does not allow it.  Raises an error if it is the only record and
 * the system refuses it.
 */
static bool
extend(FmsFormation *formation, Size size, Size budget_bytes)
{
	FmsArena   *arena = &formation->arena;
	FmsArenaBytes more = {.index = sizeof(FmsEntry),.data = size};
	Size		needed = fms_formation_memory_bytes(formation) + size +
		sizeof(FmsEntry);

	if (needed > budget_bytes && formation->count > 0)
		return false;
	if (fms_arena_extend(arena, bytes_used(formation), more,
						 Max(budget_bytes, needed)))
		return true;
	if (formation->count > 0)
		return false;
	/* memory for many records may keep this one from being had */
	fms_arena_free(arena);
	if (!fms_arena_extend(arena, bytes_used(formation), more, needed))
		fms_arena_report_refused(needed);
	return true;
}

/*
 * Adds the slot's tuple under that key.  Returns false, with nothing changed,
 * if there is no room for it.
 */
static bool
add_tuple(FmsFormation *formation, TupleTableSlot *slot,
		  const FmsKeyImage *image, Size budget_bytes)
{
	FmsTupleView tuple;
	Size		size;

	view_tuple(slot, &tuple);
	size = fms_record_size(image->key_bytes, tuple.length_bytes);
	if (!extend(formation, size, budget_bytes))
		return false;
	add_record(formation, slot, image, &tuple, size);
	return true;
}

bool
fms_formation_put(FmsFormation *formation, TupleTableSlot *slot,
				  Size budget_bytes)
{
	MemoryContext caller = MemoryContextSwitchTo(formation->scratch);
	FmsKeyImage image;
	bool		fits = true;

	fms_keys_encode(formation->keys, slot, &image);
	if (!is_beyond_cutoff(formation, &image))
	{
		if (worth_shrinking(formation))
			shrink(formation);
		fits = add_tuple(formation, slot, &image, budget_bytes);
		if (!fits && frees_enough(formation))
		{
			shrink(formation);
			fits = add_tuple(formation, slot, &image, budget_bytes);
		}
		if (fits && formation->cutoff)
			drop_if_beyond_cutoff(formation);
	}

	MemoryContextSwitchTo(caller);
	/* most tuples need no memory under way */
	if (unlikely(!formation->scratch->isReset))
		MemoryContextReset(formation->scratch);
	return fits;
}

/* Appends entries to the writer's run. */
static void
write_entries(void *arg, const FmsEntry *entries, Size count)
{
	FmsSpilling *spilling = arg;
	const char *records = spilling->records;
	Size		i;

	for (i = 0; i < count;)
	{
		Size		stop = fms_interrupts_stretch(i, count,
												  FMS_INTERRUPT_RECORD_BYTES);

		for (; i < stop; i++)
		{
			fetch_ahead(records, entries, i, count);
			fms_run_append(spilling->writer,
						   fms_entry_record(records, &entries[i]));
		}
	}
}

/* Sorts the entries that came first. */
static void
sort_first(FmsFormation *formation, Size count, FmsEntriesTake take,
		   void *arg)
{
	FmsEntriesSort sort = {
		.keys = formation->keys,
		.prefix_decides = fms_keys_prefix_decides(formation->keys),
		.records = formation->arena.data.base,
		.take = take,
		.arg = arg
	};

	fms_entries_sort(&sort, entries_of(formation), count);
}

void
fms_formation_sort(FmsFormation *formation)
{
	sort_first(formation, formation->count, NULL, NULL);
}

void
fms_formation_finish(FmsFormation *formation)
{
	fms_formation_sort(formation);
	if (formation->bound > 0 && formation->count > formation->bound)
	{
		formation->count = formation->bound;
		set_cutoff(formation, fms_formation_get(formation,
												formation->count - 1));
	}
}

bool
fms_formation_has_cutoff(const FmsFormation *formation)
{
	return formation->cutoff != NULL;
}

const FmsRecord *
fms_formation_get(const FmsFormation *formation, uint64 position)
{
	const FmsEntry *entry = &entries_of(formation)[position];

	Assert(position < formation->count);
	/* the caller may not look at all of it */
	if (position + PREFETCH_WHOLE < formation->count)
		__builtin_prefetch(record_of(formation, entry + PREFETCH_WHOLE));
	return record_of(formation, entry);
}

/* Where the records of the entries that came first end. */
static inline Size
records_end(const FmsFormation *formation, Size count)
{
	return count < formation->count ?
		fms_entry_place(&entries_of(formation)[count]) :
		formation->records_bytes;
}

/* How many of the entries, in order of arrival, take so much memory? */
static Size
entries_within(const FmsFormation *formation, Size bytes)
{
	Size		low = 0;
	Size		high = formation->count;

	while (low < high)
	{
		Size		middle = low + (high - low) / 2;

		if (records_end(formation, middle + 1) +
			(middle + 1) * sizeof(FmsEntry) < bytes)
			low = middle + 1;
		else
			high = middle;
	}
	return Min(low + 1, formation->count);
}

/*
 * Forgets the entries that came first, whose records take so many bytes: the
 * others move to their places.
 */
static void
forget_first(FmsFormation *formation, Size count, Size bytes)
{
	FmsEntry   *entries = entries_of(formation);
	char	   *records = formation->arena.data.base;
	Size		i;

	formation->count -= count;
	formation->records_bytes -= bytes;
	fms_interrupts_memmove(records, records + bytes,
						   formation->records_bytes);
	for (i = 0; i < formation->count;)
	{
		Size		stop = fms_interrupts_stretch(i, formation->count,
												  sizeof(FmsEntry));

		for (; i < stop; i++)
		{
			entries[i] = entries[count + i];
			entries[i].tail -= bytes;
		}
	}
}

void
fms_formation_spill(FmsFormation *formation, FmsRunWriter *writer, Size bytes)
{
	FmsSpilling spilling = {
		.writer = writer,
		.records = formation->arena.data.base
	};
	Size		count = entries_within(formation, bytes);
	Size		records_bytes;

	if (count == 0)
		return;
	records_bytes = records_end(formation, count);
	sort_first(formation, count, write_entries, &spilling);
	forget_first(formation, count, records_bytes);
}

void
fms_formation_trim(FmsFormation *formation)
{
	fms_arena_trim(&formation->arena, bytes_used(formation));
}

void
fms_formation_clear(FmsFormation *formation)
{
	formation->records_bytes = 0;
	formation->count = 0;
	formation->arena.refused = false;
}

void
fms_formation_give_back(FmsFormation *formation)
{
	fms_formation_clear(formation);
	fms_arena_free(&formation->arena);
}
