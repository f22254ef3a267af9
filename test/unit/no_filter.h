/*
 * no_filter.h
 *	  Keys without a filter of groups, for programs that link what asks for it.
 */
#ifndef FMS_NO_FILTER_H
#define FMS_NO_FILTER_H

#include "postgres.h"

#include "keys/keys.h"

FmsGroupFilter *
fms_keys_group_filter(const FmsKeys *keys)
{
	return NULL;
}

void
fms_group_filter_begin(FmsGroupFilter *filter)
{
	abort();
}

bool
fms_group_filter_wants(FmsGroupFilter *filter, const FmsRecord *record)
{
	abort();
}

uint32
fms_group_filter_hash(const FmsGroupFilter *filter, const FmsRecord *key)
{
	abort();
}

bool
fms_group_filter_refuses(FmsGroupFilter *filter, const FmsRecord *key,
						 const FmsRecord *earlier)
{
	abort();
}

#endif							/* FMS_NO_FILTER_H */
