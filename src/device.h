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
 * How it is measured what sorts do with reads and writes: see calibrate.c.
 * Runs are written, nearly, in pieces of APPEND's size, so many at once.
 */
#define FMS_DEVICE_APPEND_BLOCK_BYTES	262144
#define FMS_DEVICE_APPEND_DEPTH			4
#define FMS_DEVICE_JOINED_BLOCK_BYTES	4096
#define FMS_DEVICE_JOINED_DEPTH			64
#define FMS_DEVICE_JOINED_PARTS			16	/* blocks in one read */
#define FMS_DEVICE_USED_BLOCK_BYTES		131072
#define FMS_DEVICE_USED_DEPTH			64

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

	float		joined_blocks;	/* millions a second that are parts of a larger
								 * read; 0: not measured */
	float		used_mb;		/* random reads that the processor looks at,
								 * MB/s; 0: not measured */

	float		write_mb;		/* writing runs, MB/s; 0: not measured */
	float		mixed_mb;		/* reading and writing by turns, MB/s of both;
								 * 0: not measured */
	float		give_back_mb;	/* giving space back; 0: not measured, or not
								 * to be had */
} FmsDevice;

/* The index of a size or depth that is measured, or -1. */
extern int	fms_device_block_index(int64 block_bytes);
extern int	fms_device_depth_index(int64 depth);

/* Says what is known of the device under temporary files.  May ERROR. */
typedef void (*FmsFindDevice) (FmsDevice *device);

/*
 * Notes a rate that was measured.  What cannot be one (not a number, not
 * above 0, beyond what a bus can carry; a size or depth not measured) is
 * ignored: it comes from a table that people can write to.
 */
extern void fms_device_note_read(FmsDevice *device, int64 block_bytes,
								 int64 depth, double mb);
extern void fms_device_note_lasting(FmsDevice *device, int64 block_bytes,
									double mb);
extern void fms_device_note_joined(FmsDevice *device, int64 block_bytes,
								   double mb);
extern void fms_device_note_used(FmsDevice *device, double mb);
extern void fms_device_note_write(FmsDevice *device, double mb);
extern void fms_device_note_mixed(FmsDevice *device, double mb);
extern void fms_device_note_give_back(FmsDevice *device, double mb);

/*
 * MB/s of random reads of that size, so many at once: between the points
 * measured, never less than with fewer at once, and no more than what lasts.
 * 0: not known.
 */
extern double fms_device_read_mb(const FmsDevice *device, uint32 block_bytes,
								 uint32 depth);

/*
 * What the device usually brings to a merge, where read_mb is what it can: for
 * foreseeing how long reads take, not for comparing what might be chosen.  So
 * many blocks on average are one read, into buffers that lie apart: more than
 * by themselves, but each of them is another piece of memory to the device.
 * Where no short measurement was made, what lasts.
 */
extern double fms_device_merge_mb(const FmsDevice *device,
								  uint32 block_bytes, uint32 depth,
								  double joined);

/* Reads at once that bring nearly all that any number brings; 0: not known. */
extern uint32 fms_device_enough_depth(const FmsDevice *device,
									  uint32 block_bytes);

/* MB/s with that. */
extern double fms_device_best_mb(const FmsDevice *device, uint32 block_bytes);

/*
 * MB/s at which bytes get onto the device, in such blocks back again, and
 * their space to the file system, one after the other; 0: not known.  Where
 * reads are not known they count as fast as writes, and giving back as
 * nothing.
 */
extern double fms_device_round_trip_mb(const FmsDevice *device,
									   uint32 block_bytes);

/*
 * Microseconds for reading so many bytes at that rate while as many are
 * written, in such pieces, so many at once; 0 for what is not known.
 */
extern double fms_device_rewrite_us(const FmsDevice *device, double bytes,
									double read_mb, uint32 piece_bytes,
									uint32 pieces);

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
