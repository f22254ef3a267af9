/*-------------------------------------------------------------------------
 *
 * formation.c
 *	  Run formation: memory full of tuples to a sorted run (Algorithm 1,
 *	  lines 3 to 6).
 *
 * Two arrays.  Records are packed one after the other as they arrive;
 * entries, 16 bytes each, are what gets sorted.
 *
 *	  entries:  [prefix|offset] [prefix|offset] [prefix|offset] ...
 *	                      |            |
 *	             +--------+   +--------+
 *	             v            v
 *	  records:  [header|key|tuple][header|key|tuple][header|key|tuple] ...
 *
 * The prefix is the first eight bytes of the normalized key, so most
 * comparisons never leave the entries.  The offset grows with arrival, so
 * comparing it last makes the sort stable whatever algorithm sorts.
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
 * Memory: both arrays are palloc'd in the context of creation and doubled as
 * they fill, up to the budget; what has not been used is address space, not
 * memory.  Nothing else is owned; nothing to do on ERROR.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "miscadmin.h"
#include "utils/memutils.h"

#include "formation.h"

typedef struct FmsEntry
{
	uint64		prefix;			/* fms_record_prefix() */
	uint64		offset;			/* of the record in the records' memory */
} FmsEntry;

#define FIRST_RECORDS_BYTES ((Size) 8192)
#define FIRST_ENTRIES		((Size) 128)

#define BUCKET_BITS			8
#define NBUCKETS			(1 << BUCKET_BITS)
/* Fewer entries than this are sorted in one piece. */
#define BUCKETS_MIN_ENTRIES 2048

/* How far ahead of the copying its records are fetched into the cache. */
#define PREFETCH_ENTRIES	8

struct FmsFormation
{
	MemoryContext context;
	MemoryContext scratch;		/* detoasted keys, tuples being formed */
	FmsKeys    *keys;
	bool		prefix_decides; /* fms_keys_prefix_decides() */
	char	   *records;
	Size		records_size;	/* allocated */
	Size		records_used;
	FmsEntry   *entries;
	Size		entries_size;	/* allocated, in entries */
	Size		count;
};

static inline const FmsRecord *
record_of(const FmsFormation *formation, const FmsEntry *entry)
{
	return (const FmsRecord *) (formation->records + entry->offset);
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
	return a->offset < b->offset ? -1 : a->offset > b->offset;
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

	formation->context = CurrentMemoryContext;
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
	if (formation->records)
		pfree(formation->records);
	if (formation->entries)
		pfree(formation->entries);
	MemoryContextDelete(formation->scratch);
	pfree(formation);
}

uint64
fms_formation_count(const FmsFormation *formation)
{
	return formation->count;
}

Size
fms_formation_memory_bytes(const FmsFormation *formation)
{
	return formation->records_used + formation->count * sizeof(FmsEntry);
}

static void *
resize(FmsFormation *formation, void *memory, Size bytes)
{
	if (memory == NULL)
		return MemoryContextAllocHuge(formation->context, bytes);
	return repalloc_huge(memory, bytes);
}

/* Makes room for one more record of that size, and its entry. */
static void
make_room(FmsFormation *formation, Size record_bytes, Size budget_bytes)
{
	Size		needed = formation->records_used + record_bytes;

	if (needed > formation->records_size)
	{
		Size		size = Max(formation->records_size * 2,
							   FIRST_RECORDS_BYTES);

		/* the last doubling stops at the budget */
		size = Max(Min(size, budget_bytes), needed);
		formation->records = resize(formation, formation->records, size);
		formation->records_size = size;
	}
	if (formation->count >= formation->entries_size)
	{
		Size		size = Max(formation->entries_size * 2, FIRST_ENTRIES);

		formation->entries = resize(formation, formation->entries,
									size * sizeof(FmsEntry));
		formation->entries_size = size;
	}
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
	FmsRecord  *record = (FmsRecord *) (formation->records +
										formation->records_used);
	FmsEntry   *entry = &formation->entries[formation->count];
	char	   *end = (char *) record + size;

	record->size_bytes = size;
	record->key_bytes = image->key_bytes;
	record->flags = image->exact ? FMS_RECORD_EXACT : 0;
	memcpy(fms_record_key(record), image->bytes, image->key_bytes);
	/* what the tuple does not fill of its last word goes to disk: zero it */
	memset(end - MAXIMUM_ALIGNOF, 0, MAXIMUM_ALIGNOF);
	memcpy(fms_record_tuple(record), tuple, tuple->t_len);

	entry->prefix = fms_record_prefix(record);
	entry->offset = formation->records_used;
	formation->records_used += size;
	formation->count++;
}

bool
fms_formation_put(FmsFormation *formation, TupleTableSlot *slot,
				  Size budget_bytes)
{
	MemoryContext caller = MemoryContextSwitchTo(formation->scratch);
	FmsKeyImage image;
	MinimalTuple tuple;
	Size		size;
	bool		fits;

	fms_keys_encode(formation->keys, slot, &image);
	tuple = slot_tuple(slot);
	size = fms_record_size(image.key_bytes, tuple->t_len);

	fits = formation->count == 0 ||
		fms_formation_memory_bytes(formation) + size + sizeof(FmsEntry) <=
		budget_bytes;
	if (fits)
	{
		make_room(formation, size, budget_bytes);
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
		deal(formation->entries, formation->count, ends);
		npieces = NBUCKETS;
	}

	for (i = 0; i < npieces; i++)
	{
		if (ends[i] == start)
			continue;
		CHECK_FOR_INTERRUPTS();
		sort_entries(formation->entries + start, ends[i] - start, formation);
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
	return record_of(formation, &formation->entries[position]);
}

static void
append_piece(FmsFormation *formation, Size first, Size end, void *arg)
{
	FmsRunWriter *writer = arg;
	Size		i;

	for (i = first; i < end; i++)
	{
		if (i + PREFETCH_ENTRIES < end)
			__builtin_prefetch(record_of(formation,
									  &formation->entries[i +
														  PREFETCH_ENTRIES]));
		fms_run_append(writer, record_of(formation, &formation->entries[i]));
	}
}

void
fms_formation_spill(FmsFormation *formation, FmsRunWriter *writer)
{
	sort_in_pieces(formation, append_piece, writer);
	formation->records_used = 0;
	formation->count = 0;
}
