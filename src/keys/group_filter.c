/*-------------------------------------------------------------------------
 *
 * group_filter.c
 *	  Dropping rows of a group that the parent does not want.
 *
 *	  group, order	a 1  a 1  a 2  a 3  b 1
 *	  row_number()	1    2    3    4    1
 *	  rank()		1    1    3    4    1
 *	  dense_rank()	1    1    2    3    1
 *
 * A row that is not wanted among some rows of the sort is not wanted among all
 * of them.  So any sequence of sorted rows can be filtered, or a part of it.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "common/hashfn.h"
#include "miscadmin.h"

#include "keys/key_columns.h"
#include "keys/keys.h"

/* Wanted rows in a row before the filter rests, and rows that then pass. */
#define LOOK_ROWS		1024
#define REST_ROWS		(15 * LOOK_ROWS)

/* Records that can be remembered: rows of tables are toasted beyond 2 kB. */
#define FIRST_MAX_BYTES	2176

struct FmsGroupFilter
{
	FmsKeys    *keys;
	FmsGroupLimit limit;
	int64		rows;			/* wanted of the group; 0: no group is known */
	int64		ranks;			/* of different rank among them */
	int			group_bytes;	/* of its columns in first's key; 0: not all */
	uint64		dropped;		/* not reported yet */
	int			streak;			/* rows passed since one was dropped */
	union
	{
		FmsRecord	record;
		uint64		aligned[FIRST_MAX_BYTES / sizeof(uint64)];
	}			first;			/* of the group, or of the latest rank in it */
};

FmsGroupFilter *
fms_group_filter_create(FmsKeys *keys, const FmsGroupLimit *limit)
{
	FmsGroupFilter *filter = palloc0(sizeof(FmsGroupFilter));

	filter->keys = keys;
	filter->limit = *limit;
	return filter;
}

FmsGroupFilter *
fms_keys_group_filter(const FmsKeys *keys)
{
	return keys->filter;
}

void
fms_group_filter_begin(FmsGroupFilter *filter)
{
	filter->rows = 0;
	filter->streak = 0;
}

static int
group_bytes(const FmsGroupFilter *filter, const FmsRecord *record)
{
	const FmsKeys *keys = filter->keys;
	const char *key = fms_record_key(record);
	const char *end = key + record->key_bytes;
	const char *at = key;
	int			most = Min(filter->limit.columns, keys->nencoded);
	int			i;

	for (i = 0; i < most && at < end; i++)
	{
		const FmsColumn *column = &keys->columns[i];

		if (*at++ != FMS_VALUE_BYTE)
			continue;			/* a null is one byte */
		if (column->length < 0)
			at = memchr(at, column->invert, end - at);
		if (column->length == 0 || at == NULL)
			return 0;
		at += Max(column->length, 1);
	}
	return i == filter->limit.columns && at <= end ? at - key : 0;
}

static void
set_first(FmsGroupFilter *filter, const FmsRecord *record)
{
	Size		bytes = fms_record_bytes(record);

	if (bytes > FIRST_MAX_BYTES)
		filter->rows = 0;
	else
	{
		memcpy(&filter->first, record, bytes);
		filter->group_bytes = group_bytes(filter, record);
	}
}

static bool
is_in_group(const FmsGroupFilter *filter, const FmsRecord *record)
{
	const FmsRecord *first = &filter->first.record;

	if (filter->rows == 0)
		return false;
	/* a shorter key differs before its end */
	if (filter->group_bytes > 0)
		return record->key_bytes >= filter->group_bytes &&
			memcmp(fms_record_key(first), fms_record_key(record),
				   filter->group_bytes) == 0;
	for (int i = 0; i < filter->limit.columns; i++)
	{
		if (fms_keys_compare_column(filter->keys, first, record, i) != 0)
			return false;
	}
	return true;
}

static bool
is_wanted(FmsGroupFilter *filter, const FmsRecord *record)
{
	FmsGroupCount counts = filter->limit.counts;
	bool		is_first = !is_in_group(filter, record);
	int64		before = counts == FMS_GROUP_DENSE_RANKS ? filter->ranks :
		filter->rows;

	if (is_first)
		filter->rows = filter->ranks = 0;
	else if (counts != FMS_GROUP_ROWS &&
			 fms_keys_compare(filter->keys, &filter->first.record,
							  record) == 0)
	{
		filter->rows++;
		return true;
	}
	else if (before >= filter->limit.wanted)
		return false;
	filter->rows++;
	filter->ranks++;
	if (is_first || counts != FMS_GROUP_ROWS)
		set_first(filter, record);
	return true;
}

bool
fms_group_filter_wants(FmsGroupFilter *filter, const FmsRecord *record)
{
	if (filter->streak == LOOK_ROWS + REST_ROWS)
		fms_group_filter_begin(filter);
	if (filter->streak++ >= LOOK_ROWS || is_wanted(filter, record))
		return true;
	CHECK_FOR_INTERRUPTS();
	filter->dropped++;
	filter->streak = 0;
	return false;
}

uint32
fms_group_filter_hash(const FmsGroupFilter *filter, const FmsRecord *key)
{
	return hash_bytes((unsigned char *) fms_record_key(key),
					  group_bytes(filter, key));
}

bool
fms_group_filter_refuses(FmsGroupFilter *filter, const FmsRecord *key,
						 const FmsRecord *earlier)
{
	int			bytes = group_bytes(filter, key);

	if (filter->limit.counts != FMS_GROUP_ROWS || filter->limit.wanted > 1 ||
		!(key->flags & FMS_RECORD_EXACT) || earlier->key_bytes < bytes ||
		memcmp(fms_record_key(key), fms_record_key(earlier), bytes) != 0 ||
		bytes == 0 || fms_keys_compare(filter->keys, earlier, key) > 0)
		return false;
	filter->dropped++;
	return true;
}

uint64
fms_group_filter_dropped(FmsGroupFilter *filter)
{
	uint64		dropped = filter->dropped;

	filter->dropped = 0;
	return dropped;
}
