/*-------------------------------------------------------------------------
 *
 * device.h
 *	  What is known of the device under a sort: how fast it reads in which
 *	  pieces.
 *
 *-------------------------------------------------------------------------
 */
#ifndef FMS_DEVICE_H
#define FMS_DEVICE_H

#include "c.h"

/* Block sizes 512 B, 1 kB .. 4 MB; queue depths 1, 2, 4 .. 64. */
#define FMS_DEVICE_BLOCKS	14
#define FMS_DEVICE_DEPTHS	7

#define FMS_DEVICE_BLOCK_BYTES(i)	((uint32) 512 << (i))
#define FMS_DEVICE_DEPTH(i)			((uint32) 1 << (i))

/*
 * Plain numbers, so that it can be part of a snapshot (options.h).  All zero:
 * nothing is known.  1 MB is 1,000,000 bytes.
 */
typedef struct FmsDevice
{
	bool		known;			/* at least one rate below is not 0 */

	/* random reads, MB/s, by block size and depth; 0: not measured */
	float		read_mb[FMS_DEVICE_BLOCKS][FMS_DEVICE_DEPTHS];

	/* of them, what lasts longer than a moment; 0: not measured */
	float		lasting_mb;		/* MB/s, whatever their size */
	float		lasting_requests;	/* millions a second, likewise */

	float		write_mb;		/* writing runs, MB/s; 0: not measured */
	float		give_back_mb;	/* giving space back; 0: not measured, or not
								 * to be had */
} FmsDevice;

/* What is measured (probe.c); RR_LASTING, APPEND, GIVE_BACK once each. */
typedef enum FmsPattern
{
	FMS_PATTERN_SR,				/* sequential reads */
	FMS_PATTERN_RR,				/* random reads */
	FMS_PATTERN_SW,				/* sequential writes, over what is there */
	FMS_PATTERN_RW,				/* random writes, likewise */
	FMS_PATTERN_RR_LASTING,		/* RR, the second half of the time only */
	FMS_PATTERN_APPEND,			/* as runs are written, at the file's end */
	FMS_PATTERN_GIVE_BACK		/* making holes of what has been read */
} FmsPattern;

#define FMS_PATTERNS	(FMS_PATTERN_GIVE_BACK + 1)

/* As users write them: SR, RR, ... */
extern const char *const fms_pattern_names[FMS_PATTERNS];

/* The index of a size or depth that is measured, or -1. */
extern int	fms_device_block_index(int64 block_bytes);
extern int	fms_device_depth_index(int64 depth);

/* Says what is known of the device under temporary files.  May ERROR. */
typedef void (*FmsFindDevice) (FmsDevice *device);

/*
 * Notes a rate that was measured, MB/s.  The table that it comes from can be
 * written to, so an impossible rate, size or depth is ignored.
 */
extern void fms_device_note(FmsDevice *device, FmsPattern pattern,
							int64 block_bytes, int64 depth, double mb);

/*
 * MB/s of random reads of that size, so many at once: between the points
 * measured, never less than with fewer at once, and no more than what lasts.
 * 0: not known.
 */
extern double fms_device_read_mb(const FmsDevice *device, uint32 block_bytes,
								 uint32 depth);

/* Reads at once that bring nearly all that any number brings; 0: not known. */
extern uint32 fms_device_enough_depth(const FmsDevice *device,
									  uint32 block_bytes);

/* MB/s with that. */
extern double fms_device_best_mb(const FmsDevice *device, uint32 block_bytes);

/*
 * MB/s of writing to the device and reading back in blocks of block_bytes, one
 * after the other; 0: unknown.  Unknown reads count as fast as writes.
 * async_reads: several reads are in flight at once.
 */
extern double fms_device_round_trip_mb(const FmsDevice *device,
									   uint32 block_bytes, bool async_reads);

/* What a sort has seen of a device: its writes of so many bytes. */
typedef struct FmsSeen
{
	double		bytes;
	double		elapsed_us;		/* in this time, or less */
	double		blocked_us;		/* but in no less than this, when nothing but
								 * them was waited for */
} FmsSeen;

/*
 * That overrules what was measured before, or has it forgotten.  True if that
 * was necessary, or the device was not known and is now.
 */
extern bool fms_device_correct(FmsDevice *device, const FmsSeen *seen);

#endif							/* FMS_DEVICE_H */
