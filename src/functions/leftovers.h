/*-------------------------------------------------------------------------
 *
 * leftovers.h
 *	  What a query could leave behind although it is rolled back: refused.
 *
 *-------------------------------------------------------------------------
 */
#ifndef FMS_LEFTOVERS_H
#define FMS_LEFTOVERS_H

/*
 * From begin to end, whatever this session runs raises an error before it does
 * what a rollback would not take back.  The caller ends it on ERROR, too.
 */
extern void fms_leftovers_refuse_begin(void);
extern void fms_leftovers_refuse_end(void);

#endif							/* FMS_LEFTOVERS_H */
