/*-------------------------------------------------------------------------
 *
 * cache.h
 *	  How much a sort may leave in the page cache.
 *
 *-------------------------------------------------------------------------
 */
#ifndef FMS_CACHE_H
#define FMS_CACHE_H

#include "postgres.h"

/*
 * Bytes of temporary files that one sort may have in the page cache without
 * harm; 0 where that cannot be told.  Never fails.
 */
extern uint64 fms_cache_share_bytes(void);

#endif							/* FMS_CACHE_H */
