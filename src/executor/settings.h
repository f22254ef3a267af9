/*-------------------------------------------------------------------------
 *
 * settings.h
 *	  The fmsort.* settings.
 *
 *-------------------------------------------------------------------------
 */
#ifndef FMS_SETTINGS_H
#define FMS_SETTINGS_H

#include "base/options.h"

/* Defines the settings; called once, when the library is loaded. */
extern void fms_settings_define(void);

/* What a sort gets a snapshot of; the mode may be FMS_MODE_OFF. */
extern FmsOptions fms_settings;

/* fmsort.parallel, .debug_group_filter, .log_min_duration (-1: off) */
extern bool fms_settings_parallel;
extern bool fms_settings_group_filter;
extern int	fms_settings_log_min_duration_ms;

/* Copies the settings and work_mem.  expected_bytes: of the input, or 0. */
extern void fms_settings_snapshot(FmsOptions *options, double expected_bytes);

#endif							/* FMS_SETTINGS_H */
