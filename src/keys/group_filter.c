/*-------------------------------------------------------------------------
 *
 * group_filter.c
 *	  Dropping rows of a group that the parent does not want.
 *
 * A group is the rows that are equal in the first columns of the sort.  Unique
 * and Group want the first row of each, a WindowAgg with a run condition the
 * first k rows or ranks:
 *
 *	  group, order	a 1  a 1  a 2  a 3  b 1
 *	  row_number()	1    2    3    4    1
 *	  rank()		1    1    3    4    1
 *	  dense_rank()	1    1    2    3    1
 *
 * A row that is not wanted among some rows of the sort is not wanted among all
 * of them, and the numbers of those that are wanted count none of those that
 * are not.  So each sequence of sorted rows can be filtered alone: in memory,
 * as it becomes a run, in the last merge.  Equality is that of the sort's
 * comparators.
 *
 * Looking for the end of a group costs something for each row.  After
 * LOOK_ROWS with few to drop the filter lets REST_ROWS pass.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "base/interrupts.h"
#include "keys/group_filter.h"
#include "keys/key_columns.h"

/* Rows; less than one of LOOK_DROPS_FRACTION dropped is few. */
#define LOOK_ROWS			1024
#define LOOK_DROPS_FRACTION 64
#define REST_ROWS			(15 * LOOK_ROWS)

/*
 * A larger record that does not stay is not remembered: its group goes on as
 * a new one.
 */
#define COPY_MAX_BYTES		((Size) 8 * 1024)

/* The first columns of the record `first`, for comparing others with them. */
typedef struct FmsFirstColumns
{
	int			columns;
	int			in_key;			/* of them, whole in its key */
	int			key_bytes;		/* where these end in the key */
} FmsFirstColumns;

struct FmsGroupFilter
{
	FmsKeys    *keys;
	MemoryContext context;		/* of the copy */
	FmsGroupLimit limit;
	bool		stay;			/* see fms_group_filter_begin() */
	const FmsRecord *first;		/* of the group, or of the latest rank in it;
								 * NULL: none */
	FmsFirstColumns group;
	FmsFirstColumns peers;
	FmsRecordBuffer copy;		/* of it, if records do not stay */
	int64		rows;			/* of the group that are wanted */
	int64		ranks;			/* of different rank among them */
	uint64		dropped;		/* not reported yet */
	int			looked_at;		/* rows since the last rest */
	int			looked_drops;	/* of them */
	int			rest;			/* rows to let pass */
};

FmsGroupFilter *
fms_group_filter_create(FmsKeys *keys, const FmsGroupLimit *limit)
{
	FmsGroupFilter *filter = palloc0(sizeof(FmsGroupFilter));

	Assert(limit->counts != FMS_GROUP_ALL && limit->wanted > 0);
	Assert(limit->columns <= keys->ncolumns);
	filter->keys = keys;
	filter->context = CurrentMemoryContext;
	filter->limit = *limit;
	filter->group.columns = limit->columns;
	filter->peers.columns = limit->peer_columns;
	return filter;
}

void
fms_group_filter_begin(FmsGroupFilter *filter, bool stay)
{
	filter->stay = stay;
	filter->first = NULL;
	filter->looked_at = 0;
	filter->looked_drops = 0;
	filter->rest = 0;
}

/*
 * Finds out which of the columns are whole in the record's key.  A key that is
 * cut off within a column has no room left, except behind an ICU sort key.
 */
static void
measure(const FmsKeys *keys, const FmsRecord *record, FmsFirstColumns *first)
{
	const char *key = fms_record_key(record);
	int			key_bytes = record->key_bytes;
	int			most = Min(first->columns, keys->nencoded);
	int			at = 0;
	int			i;

	for (i = 0; i < most && at < key_bytes; i++)
	{
		const FmsColumn *column = &keys->columns[i];
		int			end = at + 1;
		int			string;

		if (key[at] == FMS_VALUE_BYTE)
		{
			if ((column->bytes == 0 && column->strings == 0) ||
				(column->sort_keys.collator &&
				 !(record->flags & FMS_RECORD_EXACT)))
				break;
			end += column->bytes;
			for (string = 0; string < column->strings; string++)
			{
				const char *zero = end < key_bytes ?
					memchr(key + end, column->invert, key_bytes - end) : NULL;

				end = zero ? zero + 1 - key : key_bytes + 1;
			}
		}
		if (end > key_bytes)
			break;
		at = end;
	}
	first->in_key = i;
	first->key_bytes = at;
}

/* Is the record equal to the first one in these columns? */
static bool
is_equal(FmsGroupFilter *filter, const FmsRecord *record,
		 const FmsFirstColumns *first)
{
	FmsKeys    *keys = filter->keys;
	int			i;

	/* a shorter key differs before its end */
	if (record->key_bytes < first->key_bytes ||
		memcmp(fms_record_key(filter->first), fms_record_key(record),
			   first->key_bytes) != 0)
		return false;
	/* columns that all keys decide have no comparators */
	for (i = Max(first->in_key, keys->undecided); i < first->columns; i++)
	{
		if (fms_keys_compare_column(keys, filter->first, record, i) != 0)
			return false;
	}
	return true;
}

/* Makes the record the first one of a group or of a rank. */
static void
set_first(FmsGroupFilter *filter, const FmsRecord *record)
{
	Size		bytes = fms_record_bytes(record);

	filter->first = NULL;
	if (!filter->stay)
	{
		if (bytes > COPY_MAX_BYTES)
			return;
		record = memcpy(fms_record_buffer_reserve(&filter->copy,
												  filter->context,
												  COPY_MAX_BYTES),
						record, bytes);
	}
	filter->first = record;
	measure(filter->keys, record, &filter->group);
	if (filter->limit.counts != FMS_GROUP_ROWS)
		measure(filter->keys, record, &filter->peers);
}

static bool
is_wanted(FmsGroupFilter *filter, const FmsRecord *record)
{
	const FmsGroupLimit *limit = &filter->limit;

	if (filter->first == NULL || !is_equal(filter, record, &filter->group))
	{
		filter->rows = 0;
		filter->ranks = 0;
	}
	else if (limit->counts == FMS_GROUP_ROWS)
	{
		if (filter->rows >= limit->wanted)
			return false;
		filter->rows++;
		return true;
	}
	else if (is_equal(filter, record, &filter->peers))
	{
		filter->rows++;
		return true;
	}
	else if ((limit->counts == FMS_GROUP_RANKS ? filter->rows :
			  filter->ranks) >= limit->wanted)
		return false;
	filter->rows++;
	filter->ranks++;
	set_first(filter, record);
	return true;
}

bool
fms_group_filter_wants(FmsGroupFilter *filter, const FmsRecord *record)
{
	bool		wanted;

	if (filter->rest > 0)
	{
		filter->rest--;
		return true;
	}
	wanted = is_wanted(filter, record);
	filter->dropped += !wanted;
	filter->looked_drops += !wanted;
	if (++filter->looked_at == LOOK_ROWS)
	{
		if (filter->looked_drops < LOOK_ROWS / LOOK_DROPS_FRACTION)
			filter->rest = REST_ROWS;
		filter->looked_at = 0;
		filter->looked_drops = 0;
	}
	return wanted;
}

Size
fms_group_filter_words(FmsGroupFilter *filter, uint64 *words, Size count)
{
	Size		kept = 0;
	int64		same = 0;
	Size		i = 0;

	if (filter->limit.counts != FMS_GROUP_ROWS || filter->limit.columns == 0)
		return count;
	fms_for_interruptible(i, count, sizeof(uint64))
	{
		same = kept > 0 && words[i] == words[kept - 1] ? same + 1 : 1;
		if (same <= filter->limit.wanted)
			words[kept++] = words[i];
	}
	filter->dropped += count - kept;
	return kept;
}

uint64
fms_group_filter_nulls(FmsGroupFilter *filter, uint64 n)
{
	uint64		wanted = filter->limit.counts == FMS_GROUP_ROWS ?
		Min(n, (uint64) filter->limit.wanted) : n;

	filter->dropped += n - wanted;
	return wanted;
}

uint64
fms_group_filter_dropped(FmsGroupFilter *filter)
{
	uint64		dropped = filter->dropped;

	filter->dropped = 0;
	return dropped;
}
