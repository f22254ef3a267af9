/*-------------------------------------------------------------------------
 *
 * formation.c
 *	  Run formation: memory full of tuples to a sorted run (Algorithm 1,
 *	  lines 3 to 6).
 *
 * One piece of memory, filled from both ends.  Records are packed downwards
 * from its end as they arrive; entries, 16 bytes each, grow upwards from its
 * beginning and are what gets sorted.
 *
 *	  entries -->                                       <-- records
 *	  [prefix|back] [prefix|back] ..        ..[header|key|tuple][header|..]
 *	             |                             ^                           |
 *	             +-----------------------------+<---------- back ----------+
 *
 * The prefix is the first eight bytes of the normalized key, so most
 * comparisons never leave the entries.  An entry finds its record by the
 * distance back from the memory's end; that grows with arrival, so comparing
 * it last makes the sort stable whatever algorithm sorts.
 *
 * Sorting goes in two steps.  First the entries are dealt into buckets by
 * the leading significant bits of their prefixes (all prefixes between the
 * smallest and the largest one, so it does not matter which bytes of the key
 * vary).  Buckets are in order already; then each is sorted on its own,
 * small enough for the cache.  When a run is written, a bucket is sorted and
 * appended before the next one is sorted: the device writes the first
 * buckets while the processor sorts the later ones.
 *
 * Why not replacement selection, with runs twice as long: it costs a tree
 * walk through cold memory per tuple, gains nothing once the merge takes one
 * pass anyway, and its stability needs extra care.
 *
 * Memory: the arena's (arena.c), and a scratch context for keys and tuples
 * under way.  Nothing has to be done on ERROR.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "miscadmin.h"
#include "utils/memutils.h"

#include "arena.h"
#include "formation.h"

typedef struct FmsEntry
{
	uint64		prefix;			/* fms_record_prefix() */
	uint64		back;			/* from the memory's end to the record */
} FmsEntry;

#define BUCKET_BITS			8
#define NBUCKETS			(1 << BUCKET_BITS)
/* Fewer entries than this are sorted in one piece. */
#define BUCKETS_MIN_ENTRIES 2048

/* How far ahead of the copying its records are fetched into the cache. */
#define PREFETCH_ENTRIES	8

struct FmsFormation
{
	MemoryContext scratch;		/* detoasted keys, tuples being formed */
	FmsKeys    *keys;
	bool		prefix_decides; /* fms_keys_prefix_decides() */
	FmsArena	arena;			/* low: entries; high: records */
	Size		count;			/* of entries */
	Size		records_bytes;
};

static inline FmsEntry *
entries_of(const FmsFormation *formation)
{
	return (FmsEntry *) formation->arena.base;
}

static inline const FmsRecord *
record_of(const FmsFormation *formation, const FmsEntry *entry)
{
	return (const FmsRecord *) (fms_arena_end(&formation->arena) -
								entry->back);
}

static inline int
compare_entries(const FmsEntry *a, const FmsEntry *b,
				FmsFormation *formation)
{
	if (a->prefix != b->prefix)
		return a->prefix < b->prefix ? -1 : 1;
	if (!formation->prefix_decides)
	{
		int			order;

		order = fms_keys_compare_rest(formation->keys,
									  record_of(formation, a),
									  record_of(formation, b));
		if (order != 0)
			return order;
	}
	/* the same entry may be compared with itself */
	return a->back < b->back ? -1 : a->back > b->back;
}

#define ST_SORT sort_entries
#define ST_ELEMENT_TYPE FmsEntry
#define ST_COMPARE(a, b, formation) compare_entries(a, b, formation)
#define ST_COMPARE_ARG_TYPE FmsFormation
#define ST_CHECK_FOR_INTERRUPTS
#define ST_SCOPE static
#define ST_DEFINE
#include "lib/sort_template.h"

FmsFormation *
fms_formation_create(FmsKeys *keys)
{
	FmsFormation *formation = palloc0(sizeof(FmsFormation));

	fms_arena_init(&formation->arena);
	formation->scratch = AllocSetContextCreate(CurrentMemoryContext,
											   "fmsort scratch",
											   ALLOCSET_SMALL_SIZES);
	formation->keys = keys;
	formation->prefix_decides = fms_keys_prefix_decides(keys);
	return formation;
}

void
fms_formation_destroy(FmsFormation *formation)
{
	fms_arena_free(&formation->arena);
	MemoryContextDelete(formation->scratch);
	formation->scratch = NULL;
}

uint64
fms_formation_count(const FmsFormation *formation)
{
	return formation->count;
}

Size
fms_formation_memory_bytes(const FmsFormation *formation)
{
	return formation->records_bytes + formation->count * sizeof(FmsEntry);
}

/*
 * The slot's tuple in the form it is kept in.  A tuple that the slot holds in
 * another form is made in the scratch context.
 */
static MinimalTuple
slot_tuple(TupleTableSlot *slot)
{
	bool		in_scratch;

	return ExecFetchSlotMinimalTuple(slot, &in_scratch);
}

static void
add_record(FmsFormation *formation, const FmsKeyImage *image,
		   MinimalTuple tuple, Size size)
{
	char	   *end = fms_arena_end(&formation->arena) -
		formation->records_bytes;
	FmsRecord  *record = (FmsRecord *) (end - size);
	FmsEntry   *entry = &entries_of(formation)[formation->count];

	record->size_bytes = size;
	record->key_bytes = image->key_bytes;
	record->flags = image->exact ? FMS_RECORD_EXACT : 0;
	memcpy(fms_record_key(record), image->bytes, image->key_bytes);
	/* what the tuple does not fill of its last word goes to disk: zero it */
	memset(end - MAXIMUM_ALIGNOF, 0, MAXIMUM_ALIGNOF);
	memcpy(fms_record_tuple(record), tuple, tuple->t_len);

	formation->records_bytes += size;
	formation->count++;
	entry->prefix = fms_record_prefix(record);
	entry->back = formation->records_bytes;
}

bool
fms_formation_put(FmsFormation *formation, TupleTableSlot *slot,
				  Size budget_bytes)
{
	MemoryContext caller = MemoryContextSwitchTo(formation->scratch);
	FmsKeyImage image;
	MinimalTuple tuple;
	Size		size;
	Size		needed;
	bool		fits;

	fms_keys_encode(formation->keys, slot, &image);
	tuple = slot_tuple(slot);
	size = fms_record_size(image.key_bytes, tuple->t_len);
	needed = fms_formation_memory_bytes(formation) + size + sizeof(FmsEntry);

	fits = formation->count == 0 || needed <= budget_bytes;
	if (fits)
	{
		if (needed > formation->arena.size_bytes)
			fms_arena_grow(&formation->arena,
						   formation->count * sizeof(FmsEntry),
						   formation->records_bytes, needed, budget_bytes);
		add_record(formation, &image, tuple, size);
	}

	MemoryContextSwitchTo(caller);
	MemoryContextReset(formation->scratch);
	return fits;
}

/*
 * How far to shift a prefix's distance from the smallest one so that it
 * becomes a bucket number.
 */
static int
bucket_shift(const FmsEntry *entries, Size count, uint64 *smallest)
{
	uint64		low = entries[0].prefix;
	uint64		high = low;
	int			shift = 0;
	Size		i;

	for (i = 1; i < count; i++)
	{
		low = Min(low, entries[i].prefix);
		high = Max(high, entries[i].prefix);
	}
	while ((high - low) >> shift >= NBUCKETS)
		shift++;
	*smallest = low;
	return shift;
}

/*
 * Deals the entries into buckets, in place, and sets ends[b] to the first
 * entry after bucket b.  Each swap brings one entry home (the "American
 * flag" scheme), so presorted entries are not moved at all.
 */
static void
deal(FmsEntry *entries, Size count, Size *ends)
{
	Size		next[NBUCKETS];
	Size		sum = 0;
	uint64		low;
	int			shift = bucket_shift(entries, count, &low);
	Size		i;
	int			b;

	memset(next, 0, sizeof(next));
	for (i = 0; i < count; i++)
		next[(entries[i].prefix - low) >> shift]++;
	for (b = 0; b < NBUCKETS; b++)
	{
		Size		size = next[b];

		next[b] = sum;
		sum += size;
		ends[b] = sum;
	}

	for (b = 0; b < NBUCKETS; b++)
	{
		while (next[b] < ends[b])
		{
			FmsEntry	entry = entries[next[b]];
			int			home = (entry.prefix - low) >> shift;

			while (home != b)
			{
				FmsEntry   *place = &entries[next[home]++];
				FmsEntry	displaced = *place;

				*place = entry;
				entry = displaced;
				home = (entry.prefix - low) >> shift;
			}
			entries[next[b]++] = entry;
		}
	}
}

/*
 * Calls the function on each sorted piece of the entries, in order.
 */
typedef void (*FmsPieceFunction) (FmsFormation *formation, Size first,
								  Size end, void *arg);

static void
sort_in_pieces(FmsFormation *formation, FmsPieceFunction consume, void *arg)
{
	Size		ends[NBUCKETS];
	int			npieces = 1;
	Size		start = 0;
	int			i;

	ends[0] = formation->count;
	if (formation->count >= BUCKETS_MIN_ENTRIES)
	{
		deal(entries_of(formation), formation->count, ends);
		npieces = NBUCKETS;
	}

	for (i = 0; i < npieces; i++)
	{
		if (ends[i] == start)
			continue;
		CHECK_FOR_INTERRUPTS();
		sort_entries(entries_of(formation) + start, ends[i] - start,
					 formation);
		if (consume)
			consume(formation, start, ends[i], arg);
		start = ends[i];
	}
}

void
fms_formation_sort(FmsFormation *formation)
{
	sort_in_pieces(formation, NULL, NULL);
}

const FmsRecord *
fms_formation_get(const FmsFormation *formation, uint64 position)
{
	Assert(position < formation->count);
	return record_of(formation, &entries_of(formation)[position]);
}

static void
append_piece(FmsFormation *formation, Size first, Size end, void *arg)
{
	FmsRunWriter *writer = arg;
	const FmsEntry *entries = entries_of(formation);
	Size		i;

	for (i = first; i < end; i++)
	{
		if (i + PREFETCH_ENTRIES < end)
			__builtin_prefetch(record_of(formation,
										 &entries[i + PREFETCH_ENTRIES]));
		fms_run_append(writer, record_of(formation, &entries[i]));
	}
}

void
fms_formation_spill(FmsFormation *formation, FmsRunWriter *writer)
{
	sort_in_pieces(formation, append_piece, writer);
	formation->records_bytes = 0;
	formation->count = 0;
}
