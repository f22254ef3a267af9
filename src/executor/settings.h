/*-------------------------------------------------------------------------
 *
 * settings.h
 *	  The fmsort.* settings.
 *
 *-------------------------------------------------------------------------
 */
#ifndef FMS_SETTINGS_H
#define FMS_SETTINGS_H

#include "postgres.h"

#include "base/options.h"

/* Defines the settings; called once, when the library is loaded. */
extern void fms_settings_define(void);

/* fmsort.mode, which may be FMS_MODE_OFF. */
extern FmsModeChoice fms_settings_mode(void);

/* fmsort.parallel. */
extern bool fms_settings_parallel(void);

/* fmsort.debug_group_filter */
extern bool fms_settings_group_filter(void);

/* fmsort.log_min_duration in milliseconds, or -1: off. */
extern int	fms_settings_log_min_duration(void);

/*
 * Copies the settings and work_mem.  expected_bytes: the planner's estimate of
 * the sort's input, or 0.
 */
extern void fms_settings_snapshot(FmsOptions *options, double expected_bytes);

#endif							/* FMS_SETTINGS_H */
