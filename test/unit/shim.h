/*
 * shim.h
 *	  What the server would provide to the files under test, and the few
 *	  lines of TAP that every test program needs.
 *
 * Memory contexts are pointers that nobody looks into; palloc() is malloc(),
 * so that the sanitizers see every block.  An ereport(ERROR) prints what it
 * was told and ends the program, unless the test waits for it with
 * SHIM_CATCH().
 */
#ifndef FMS_SHIM_H
#define FMS_SHIM_H

#include "postgres.h"

#include <setjmp.h>

#include "access/xact.h"

/* ---- TAP ---- */

extern bool shim_ok(bool passed, const char *format,...)
			pg_attribute_printf(2, 3);
extern void shim_skip(const char *why, const char *what);
extern void shim_note(const char *format,...) pg_attribute_printf(1, 2);

/* Prints the plan; main() returns it. */
extern int	shim_done(void);

/* ---- random numbers ---- */

/*
 * Starts them; prints the seed, which FMSORT_TEST_SEED sets.  Each test that
 * fails can so be repeated.
 */
extern void shim_seed(void);
extern uint64 shim_random(void);

/* 0 .. below - 1 */
extern uint32 shim_below(uint32 below);

/*
 * From now on they are taken from there, the fewest bytes that will do, and
 * are zero when there are no more: a fuzzer chooses them.
 */
extern void shim_feed(const uint8 *bytes, Size length);

/* ---- errors ---- */

extern jmp_buf *shim_catcher;
extern char shim_message[1024];

/*
 * True if the statement raised an error; shim_message then has it.  What the
 * statement had allocated by then is freed by shim_forget_raised(), which does
 * what resetting a memory context does in the server.
 */
extern void shim_forget_raised(void);
extern void shim_begin_catch(jmp_buf *catcher);

#define SHIM_CATCH(statement) \
	__extension__ ({ \
		jmp_buf shim_here; \
		bool shim_raised = setjmp(shim_here) != 0; \
		if (!shim_raised) \
		{ \
			shim_begin_catch(&shim_here); \
			statement; \
		} \
		shim_catcher = NULL; \
		shim_raised; \
	})

/* Messages below ERROR that were logged so far. */
extern int	shim_logged;

/* BufFiles that are open, and the bytes of the one created last. */
extern int	shim_files_open;
extern char *shim_file_bytes(Size *count);

/* Descriptors that AcquireExternalFD() has given out. */
extern int	shim_external_fds;

/* malloc'd and not freed, of palloc()'s kind */
extern int64 shim_live_chunks;

/* Registered by the code under test; NULL: none. */
extern XactCallback shim_end_transaction;

#endif							/* FMS_SHIM_H */
