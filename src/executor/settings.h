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

/* Defines them; called once, when the library is loaded. */
extern void fms_settings_define(void);

/* fmsort.mode as it stands now, FMS_MODE_OFF included. */
extern FmsModeChoice fms_settings_mode(void);

/* fmsort.log_min_duration: milliseconds, or -1. */
extern int	fms_settings_log_min_duration(void);

/*
 * The settings and work_mem as they stand now, for a sort that starts.
 * expected_bytes: the planner's guess of its input, or 0.
 */
extern void fms_settings_snapshot(FmsOptions *options, double expected_bytes);

#endif							/* FMS_SETTINGS_H */
