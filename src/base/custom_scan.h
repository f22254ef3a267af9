/*-------------------------------------------------------------------------
 *
 * custom_scan.h
 *	  A CustomScan node that takes the place of a node of PostgreSQL's.
 *
 *-------------------------------------------------------------------------
 */
#ifndef FMS_CUSTOM_SCAN_H
#define FMS_CUSTOM_SCAN_H

#include "postgres.h"

#include "nodes/extensible.h"
#include "nodes/plannodes.h"

/*
 * Makes a node with the costs, parameters and node id of `plan`, and `child`
 * as its left child: code that walks plans treats the node like `plan`.  The
 * node returns the tuples of its children as they are, so its target list is
 * that of `plan`, which refers to the left child.
 */
extern CustomScan *fms_custom_scan(const Plan *plan, Plan *child,
								   const CustomScanMethods *methods);

#endif							/* FMS_CUSTOM_SCAN_H */
