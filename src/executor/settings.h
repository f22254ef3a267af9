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

/* Settings that count before a sort begins, or after it has ended. */
extern int	fms_mode;			/* FmsModeChoice, may be FMS_MODE_OFF */
extern bool fms_parallel;
extern bool fms_group_filter;
extern int	fms_log_min_duration;	/* milliseconds; -1: off */

/*
 * Copies the settings and work_mem.  expected_bytes: the planner's estimate of
 * the sort's input, or 0.
 */
extern void fms_settings_snapshot(FmsOptions *options, double expected_bytes);

#endif							/* FMS_SETTINGS_H */
