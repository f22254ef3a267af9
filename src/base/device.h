/*-------------------------------------------------------------------------
 *
 * device.h
 *	  Profile of the device under a sort's temporary files.
 *
 *-------------------------------------------------------------------------
 */
#ifndef FMS_DEVICE_H
#define FMS_DEVICE_H

/* Measured block sizes: 512 B, 1 kB .. 4 MB; queue depths: 1, 2, 4 .. 64. */
#define FMS_DEVICE_BLOCKS	14
#define FMS_DEVICE_DEPTHS	7

#define FMS_DEVICE_BLOCK_BYTES(i)	((uint32) 512 << (i))
#define FMS_DEVICE_DEPTH(i)			((uint32) 1 << (i))
#define FMS_DEVICE_DEPTH_MAX		FMS_DEVICE_DEPTH(FMS_DEVICE_DEPTHS - 1)

/* Rates in MB/s of 1,000,000 bytes; 0: unknown. */
typedef struct FmsDevice
{
	bool		known;			/* some rate is */
	float		read_mb[FMS_DEVICE_BLOCKS][FMS_DEVICE_DEPTHS];	/* random */
	float		write_mb;		/* of runs */
} FmsDevice;

/* What fmsort_calibrate() measures; names in SQL: fms_pattern_names. */
typedef enum FmsPattern
{
	FMS_PATTERN_SR,				/* sequential reads */
	FMS_PATTERN_RR,				/* random reads */
	FMS_PATTERN_SW,				/* sequential overwrites */
	FMS_PATTERN_RW,				/* random overwrites */
	FMS_PATTERN_APPEND,			/* writing at the file's end, as runs are */
	FMS_PATTERNS
} FmsPattern;

extern const char *const fms_pattern_names[FMS_PATTERNS];

/* Adds a rate in MB/s, unless sorts do not use the pattern or it cannot be. */
extern void fms_device_note(FmsDevice *device, const char *pattern,
							int64 block_bytes, int64 depth, double mb);

/* MB/s of random reads with that block size and depth; 0: unknown. */
extern double fms_device_read_mb(const FmsDevice *device, uint32 block_bytes,
								 uint32 depth);

/* The least depth that reads nearly as fast as any; 0: unknown, or NULL. */
extern uint32 fms_device_enough_depth(const FmsDevice *device,
									  uint32 block_bytes);

/* MB/s of writing blocks and reading them back; 0: unknown. */
extern double fms_device_round_trip_mb(const FmsDevice *device,
									   uint32 block_bytes);

/* Adds a device to n; stripes on all of them are as fast as on the slowest. */
extern void fms_device_add_stripe(FmsDevice *device, const FmsDevice *other,
								  int n);

/* Direct writes of a sort. */
typedef struct FmsSeen
{
	double		bytes;
	double		elapsed_us;		/* from the first write to the last */
	double		blocked_us;		/* of that, waiting for writes */
} FmsSeen;

/* Corrects the rates by that.  True if the rate of writing was wrong. */
extern bool fms_device_correct(FmsDevice *device, const FmsSeen *seen);

#endif							/* FMS_DEVICE_H */
