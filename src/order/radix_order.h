/*-------------------------------------------------------------------------
 *
 * radix_order.h
 *	  The next blocks of all runs in block read order, many at a time.
 *
 *-------------------------------------------------------------------------
 */
#ifndef FMS_RADIX_ORDER_H
#define FMS_RADIX_ORDER_H

#include "postgres.h"

#include "order/first_key_store.h"

/* For keys whose prefixes decide.  See radix_order.c. */
typedef struct FmsRadixOrder FmsRadixOrder;

/*
 * Bytes that it takes.  Of the share it makes what it can, and takes more if
 * that is too little for so many runs.
 */
extern Size fms_radix_order_bytes(int nruns, Size share_bytes);

/* Memory comes from the current context. */
extern FmsRadixOrder *fms_radix_order_create(int nruns, Size share_bytes);
extern void fms_radix_order_destroy(FmsRadixOrder *naming);

/* The run's blocks are named from the reader's next first key on. */
extern void fms_radix_order_add(FmsRadixOrder *naming, int run,
								FmsFirstKeyReader *ahead);

/*
 * Names the next ones: for each the run whose next block it is.  Returns how
 * many those are, 0 after the last block.  Valid until the next call.
 */
extern int	fms_radix_order_next(FmsRadixOrder *naming, const int **runs);

#endif							/* FMS_RADIX_ORDER_H */
