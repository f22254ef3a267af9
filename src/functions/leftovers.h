/*-------------------------------------------------------------------------
 *
 * leftovers.h
 *	  Refuses what a query would leave behind although it is rolled back.
 *
 *-------------------------------------------------------------------------
 */
#ifndef FMS_LEFTOVERS_H
#define FMS_LEFTOVERS_H

/*
 * Between begin and end, this session raises an error instead of doing what a
 * rollback would not take back.  The caller calls end on ERROR, too.
 */
extern void fms_leftovers_refuse_begin(void);
extern void fms_leftovers_refuse_end(void);

#endif							/* FMS_LEFTOVERS_H */
