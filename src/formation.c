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
 * Sorting deals the entries into buckets by the leading significant bits of
 * their prefixes (of all values between the smallest and the largest one, so
 * it does not matter which bytes of the key vary).  Buckets are in order
 * already; a large one is dealt again, a small one is sorted by comparing.
 * When a run is written, a bucket is sorted and appended before the next one
 * is sorted: the device writes the first buckets while the processor sorts
 * the later ones.
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

/* As many buckets as leave some entries for each, up to what a cache holds. */
#define MAX_BUCKETS			2048
#define ENTRIES_A_BUCKET	8
/* Fewer entries than this are sorted by comparing. */
#define DEAL_MIN_ENTRIES	256

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

static inline void
copy_tuple(MinimalTuple copy, const FmsTupleView *view)
{
	memcpy(copy, view->bytes, view->length_bytes);
	copy->t_len = view->length_bytes;
	/* where a heap tuple keeps its address */
	memset(copy->mt_padding, 0, sizeof(copy->mt_padding));
}

static void
add_record(FmsFormation *formation, const FmsKeyImage *image,
		   const FmsTupleView *tuple, Size size)
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
	copy_tuple(fms_record_tuple(record), tuple);

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
	FmsTupleView tuple;
	Size		size;
	Size		needed;
	bool		fits;

	fms_keys_encode(formation->keys, slot, &image);
	view_tuple(slot, &tuple);
	size = fms_record_size(image.key_bytes, tuple.length_bytes);
	needed = fms_formation_memory_bytes(formation) + size + sizeof(FmsEntry);

	fits = formation->count == 0 || needed <= budget_bytes;
	if (fits)
	{
		if (needed > formation->arena.size_bytes)
			fms_arena_grow(&formation->arena,
						   formation->count * sizeof(FmsEntry),
						   formation->records_bytes, needed, budget_bytes);
		add_record(formation, &image, &tuple, size);
	}

	MemoryContextSwitchTo(caller);
	MemoryContextReset(formation->scratch);
	return fits;
}

/* How entries are dealt: bucket = (prefix - low) >> shift. */
typedef struct FmsDeal
{
	uint64		low;			/* smallest prefix */
	int			shift;
	int			nbuckets;
	Size		ends[MAX_BUCKETS];	/* first entry after each bucket */
} FmsDeal;

static inline int
bucket_of(const FmsDeal *deal, const FmsEntry *entry)
{
	return (int) ((entry->prefix - deal->low) >> deal->shift);
}

/* Chooses buckets for the entries.  False: all prefixes are the same. */
static bool
choose_buckets(FmsDeal *deal, const FmsEntry *entries, Size count)
{
	uint64		high = entries[0].prefix;
	Size		i;

	deal->low = high;
	for (i = 1; i < count; i++)
	{
		deal->low = Min(deal->low, entries[i].prefix);
		high = Max(high, entries[i].prefix);
	}
	deal->nbuckets = MAX_BUCKETS;
	while ((Size) deal->nbuckets * ENTRIES_A_BUCKET > count)
		deal->nbuckets /= 2;
	deal->shift = 0;
	while ((high - deal->low) >> deal->shift >= (uint64) deal->nbuckets)
		deal->shift++;
	return deal->low < high;
}

/*
 * Moves each entry into its bucket, in place.  Each swap brings one entry
 * home (the "American flag" scheme), so presorted entries stay where they
 * are.
 */
static void
deal_entries(FmsDeal *deal, FmsEntry *entries, Size count)
{
	Size		next[MAX_BUCKETS];
	Size		sum = 0;
	Size		i;
	int			b;

	memset(next, 0, deal->nbuckets * sizeof(Size));
	for (i = 0; i < count; i++)
		next[bucket_of(deal, &entries[i])]++;
	for (b = 0; b < deal->nbuckets; b++)
	{
		Size		size = next[b];

		next[b] = sum;
		sum += size;
		deal->ends[b] = sum;
	}

	for (b = 0; b < deal->nbuckets; b++)
	{
		while (next[b] < deal->ends[b])
		{
			FmsEntry	entry = entries[next[b]];
			int			home = bucket_of(deal, &entry);

			while (home != b)
			{
				FmsEntry   *place = &entries[next[home]++];
				FmsEntry	displaced = *place;

				*place = entry;
				entry = displaced;
				home = bucket_of(deal, &entry);
			}
			entries[next[b]++] = entry;
		}
	}
}

/*
 * What takes sorted entries while later ones are being sorted; NULL where
 * the whole is wanted.
 */
typedef struct FmsConsumer
{
	FmsRunWriter *writer;
	const FmsEntry *next;		/* sorted up to here and taken */
} FmsConsumer;

/* Appends the entries that are sorted and not yet taken to the run. */
static void
consume(FmsFormation *formation, FmsConsumer *consumer, const FmsEntry *end)
{
	const FmsEntry *entry;

	for (entry = consumer->next; entry < end; entry++)
	{
		if (end - entry > PREFETCH_ENTRIES)
			__builtin_prefetch(record_of(formation,
										 entry + PREFETCH_ENTRIES));
		fms_run_append(consumer->writer, record_of(formation, entry));
	}
	consumer->next = end;
}

/* Sorts entries; those before them are sorted already. */
static void
sort_in_pieces(FmsFormation *formation, FmsEntry *entries, Size count,
			   FmsConsumer *consumer)
{
	FmsDeal		deal;
	Size		start = 0;
	int			b;

	CHECK_FOR_INTERRUPTS();
	if (count < DEAL_MIN_ENTRIES || !choose_buckets(&deal, entries, count))
	{
		sort_entries(entries, count, formation);
		/* not less, so that fetching ahead has somewhere to go */
		if (consumer && entries + count - consumer->next >= DEAL_MIN_ENTRIES)
			consume(formation, consumer, entries + count);
		return;
	}

	/* each level uses up some of the prefix's 64 bits, so this ends */
	check_stack_depth();
	deal_entries(&deal, entries, count);
	for (b = 0; b < deal.nbuckets; b++)
	{
		if (deal.ends[b] > start)
			sort_in_pieces(formation, entries + start, deal.ends[b] - start,
						   consumer);
		start = deal.ends[b];
	}
}

void
fms_formation_sort(FmsFormation *formation)
{
	sort_in_pieces(formation, entries_of(formation), formation->count,
				   NULL);
}

const FmsRecord *
fms_formation_get(const FmsFormation *formation, uint64 position)
{
	Assert(position < formation->count);
	return record_of(formation, &entries_of(formation)[position]);
}

void
fms_formation_spill(FmsFormation *formation, FmsRunWriter *writer)
{
	FmsEntry   *entries = entries_of(formation);
	FmsConsumer consumer = {.writer = writer, .next = entries};

	sort_in_pieces(formation, entries, formation->count, &consumer);
	consume(formation, &consumer, entries + formation->count);
	formation->records_bytes = 0;
	formation->count = 0;
}
