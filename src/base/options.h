/*-------------------------------------------------------------------------
 *
 * options.h
 *	  The options of a sort: a snapshot of the settings.
 *
 * A node copies the settings when it sorts for the first time, so a SET does
 * not change the sort of an open cursor.  Unit tests fill in this struct.
 *
 *-------------------------------------------------------------------------
 */
#ifndef FMS_OPTIONS_H
#define FMS_OPTIONS_H

#include "storage/fileset.h"

#include "base/device.h"

/* How the merge phase reads blocks (merge/modes/); off: PostgreSQL's sort. */
#define FMS_MODES(MODE) \
	MODE(FMS_MODE_FMSORT, "fmsort") \
	MODE(FMS_MODE_DOUBLE_BUFFERING, "double_buffering") \
	MODE(FMS_MODE_TRADITIONAL, "traditional") \
	MODE(FMS_MODE_MULTI_BLOCK, "multi_block") \
	MODE(FMS_MODE_FLASH, "flash") \
	MODE(FMS_MODE_OFF, "off")

#define FMS_IO_METHODS(METHOD) \
	METHOD(FMS_IO_AUTO, "auto") \
	METHOD(FMS_IO_URING, "io_uring") \
	METHOD(FMS_IO_SYNC, "sync")

#define FMS_ENUM_MEMBER(choice, name)	choice,
#define FMS_NAME_OF(choice, name)	[choice] = name,

typedef enum FmsModeChoice
{
	FMS_MODES(FMS_ENUM_MEMBER)
} FmsModeChoice;

typedef enum FmsIoChoice
{
	FMS_IO_METHODS(FMS_ENUM_MEMBER)
} FmsIoChoice;

static inline const char *
fms_mode_name(FmsModeChoice mode)
{
	static const char *const names[] = {FMS_MODES(FMS_NAME_OF)};

	return names[mode];
}

static inline const char *
fms_io_method_name(FmsIoChoice method)
{
	static const char *const names[] = {FMS_IO_METHODS(FMS_NAME_OF)};

	return names[method];
}

typedef enum FmsDirectChoice
{
	FMS_DIRECT_AUTO,
	FMS_DIRECT_ON,
	FMS_DIRECT_OFF
} FmsDirectChoice;

typedef enum FmsCompressChoice
{
	FMS_COMPRESS_AUTO,
	FMS_COMPRESS_ON,
	FMS_COMPRESS_OFF
} FmsCompressChoice;

/* What the settings allow, in bytes, and in blocks. */
#define FMS_BLOCK_QUANTUM_BYTES		512
#define FMS_BLOCK_MIN_BYTES			512
#define FMS_BLOCK_MAX_BYTES			(4 * 1024 * 1024)
#define FMS_ASSIST_MAX_BLOCKS		1024

/* The participant that merges. */
#define FMS_LEADER			0

/*
 * One participant's temporary files, which the others can open.  The server
 * deletes the set when the last process has left it.
 */
typedef struct FmsSharedFiles
{
	FileSet    *set;
	uint32		salt;			/* of all checksums, in all files */
	int			participant;	/* FMS_LEADER, or 1 + a worker's number */
} FmsSharedFiles;

/* Length of a file's name in the set, with its end, at most. */
#define FMS_SHARED_NAME_BYTES	32

/* The name of the participant's file of that kind. */
static inline const char *
fms_shared_file_name(const FmsSharedFiles *files, const char *kind,
					 char name[FMS_SHARED_NAME_BYTES])
{
	snprintf(name, FMS_SHARED_NAME_BYTES, "%s.%d", kind, files->participant);
	return name;
}

/* Are they the files of a process that hands them over to the leader? */
static inline bool
fms_shared_files_are_workers(const FmsSharedFiles *files)
{
	return files != NULL && files->participant != FMS_LEADER;
}

typedef struct FmsOptions
{
	FmsModeChoice mode;			/* never FMS_MODE_OFF inside a sort */
	FmsIoChoice io_method;
	FmsDirectChoice direct_io;
	FmsCompressChoice compression;	/* of blocks on disk */
	bool		checksums;		/* of blocks on disk */
	bool		materialize;	/* write the result, too: for comparison */
	bool		cutoff;			/* refuse tuples by what the runs have */
	bool		skips;			/* fms_sort_skip() passes over tuples */
	uint32		assist_blocks;	/* l; 0 = automatic */
	uint32		block_bytes;	/* 0 = automatic, else a multiple of 512 */
	Size		memory_bytes;	/* work_mem */
	double		expected_bytes; /* planner's estimate of the input, or 0 */

	const FmsDevice *device;	/* under temporary files; NULL: unknown */

	/* parallel sorts */
	int			workers;		/* that may form runs, beside the leader */
	uint32		agreed_block_bytes; /* of all of them; 0: the sort chooses */
	const FmsSharedFiles *files;	/* NULL: files of the sort's own */

	/* what will be asked of the sort */
	uint64		bound;			/* tuples wanted, or 0: all */
	bool		backward;		/* fms_sort_get() may go backwards */
	bool		marks;			/* fms_sort_mark() may be called */

	/* only reported */
	double		expected_tuples;	/* planner's guess of the whole input */
	bool		presorted;		/* this is one group of presorted input */
	uint64		earlier_tuples; /* in groups before this one */
} FmsOptions;

#endif							/* FMS_OPTIONS_H */
