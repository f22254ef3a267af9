/*-------------------------------------------------------------------------
 *
 * radix_order.h
 *	  The block read order for keys whose prefixes decide, a batch at a time.
 *
 *-------------------------------------------------------------------------
 */
#ifndef FMS_RADIX_ORDER_H
#define FMS_RADIX_ORDER_H

#include "postgres.h"

#include "order/first_key_reader.h"

typedef struct FmsRadixOrder FmsRadixOrder;

/*
 * Memory for nruns runs.  It follows share_bytes, unless these are too few
 * for the shortest windows.
 */
extern Size fms_radix_order_bytes(int nruns, Size share_bytes);

/* Creates an order in the current context. */
extern FmsRadixOrder *fms_radix_order_create(int nruns, Size share_bytes);
extern void fms_radix_order_destroy(FmsRadixOrder *order);

/* Names the run's blocks from the next key of its reader on. */
extern void fms_radix_order_add(FmsRadixOrder *order, int run,
								FmsFirstKeyReader *ahead);

/*
 * Sets runs to the runs of the next blocks, in read order.  Returns their
 * number, 0 after the last block.  Valid until the next call.
 */
extern int	fms_radix_order_next(FmsRadixOrder *order, const int **runs);

#endif							/* FMS_RADIX_ORDER_H */
