/* links: device/spill_policy base/device */
/*
 * The spill policy's table (spill_policy.h), row by row, and what a whole
 * spill makes of it.  Free memory is made up.
 */
#include "postgres.h"

#include "device/spill_policy.h"
#include "shim.h"

#define BLOCK	65536
#define MB		((uint64) 1000 * 1000)

/* Enough that only what a case sets is short. */
static FmsFreeMemory free_memory;
static int	looks;

FmsFreeMemory
fms_free_memory(void)
{
	looks++;
	return free_memory;
}

static FmsOptions options;
static FmsSharedFiles files;
static FmsDevice device;
static FmsSpillFacts facts;
static FmsSpillChoice choice;
static FmsSpillChoice previous;

static void
set_memory(uint64 usable_mb, uint64 room_mb)
{
	free_memory = (FmsFreeMemory) {
		.machine_bytes = 1000 * 1000 * MB,
		.available_bytes = usable_mb * MB / 3 * 4,
		.writeback_bytes = room_mb * MB
	};
}

/* A device with that rate each way, half of it as a round trip; 0: unknown. */
static void
set_device(FmsDevice *device, double mb)
{
	memset(device, 0, sizeof(*device));
	if (mb > 0)
	{
		fms_device_note(device, "append", 262144, 4, mb);
		fms_device_note(device, "random_read", BLOCK, 8, mb);
	}
}

static void
begin_spill(void)
{
	fms_spill_policy_begin(&facts, &options, BLOCK);
	facts.async_reads = true;
}

/* Automatic settings, 10 GB of memory, 1 GB of room. */
static void
begin(double device_mb, uint64 expected_mb)
{
	set_memory(10000, 1000);
	memset(&options, 0, sizeof(options));
	memset(&previous, 0, sizeof(previous));
	options.mode = FMS_MODE_FMSORT;
	options.direct_io = FMS_DIRECT_AUTO;
	options.compression = FMS_COMPRESS_AUTO;
	options.memory_bytes = 4 * MB;
	options.expected_bytes = expected_mb * MB;
	set_device(&device, device_mb);
	options.device = &device;
	begin_spill();
}

static void
choose(void)
{
	facts.memory = fms_free_memory();
	choice = fms_spill_policy_choose(&facts, &previous);
}

static bool
goes(bool direct, FmsDirectReason reason)
{
	choose();
	return choice.direct == direct && choice.direct_reason == reason;
}

static bool
compresses(bool compressed, FmsCompressReason reason)
{
	choose();
	return choice.compressed == compressed &&
		choice.compress_reason == reason;
}

static void
write_bytes(uint64 cached_mb, uint64 direct_mb)
{
	facts.cached_bytes += cached_mb * MB;
	facts.written_bytes += (cached_mb + direct_mb) * MB;
	free_memory.writeback_bytes -= Min(free_memory.writeback_bytes,
									   cached_mb * MB);
}

static void
had(bool direct, FmsDirectReason reason, double device_mb)
{
	previous.device_mb = device_mb;
	previous.direct = direct;
	previous.direct_reason = reason;
}

static void
check_direct_rows(void)
{
	begin(30, 500);
	facts.direct_io = FMS_DIRECT_ON;
	shim_ok(goes(true, FMS_DIRECT_AS_SET), "1: on, whatever the device");
	begin(50000, 500);
	facts.direct_io = FMS_DIRECT_OFF;
	shim_ok(goes(false, FMS_DIRECT_AS_SET), "1: off, whatever the device");

	begin(50000, 500);
	facts.direct_fixed = true;
	had(false, FMS_DIRECT_ROOM, 0);
	shim_ok(goes(false, FMS_DIRECT_ROOM),
			"3: a tape that cannot change stays in the page cache");
	begin(60, 500);
	facts.direct_fixed = true;
	had(true, FMS_DIRECT_NO_ROOM, 500);
	shim_ok(goes(true, FMS_DIRECT_NO_ROOM), "3: ... or direct");

	begin(0, 100);
	had(true, FMS_DIRECT_NO_ROOM, 0);
	shim_ok(goes(true, FMS_DIRECT_NO_ROOM), "4: once direct, it stays direct");
	begin(400, 100);
	had(true, FMS_DIRECT_FAST, 5000);
	shim_ok(goes(true, FMS_DIRECT_FAST), "4: ... on a slow device, too");
	begin(200, 100);
	had(true, FMS_DIRECT_FAST, 5000);
	shim_ok(goes(false, FMS_DIRECT_ROOM),
			"4: ... but not if it has proved very slow");
	set_memory(3, 1000);
	shim_ok(goes(true, FMS_DIRECT_NO_ROOM), "4: ... unless memory is full");
	begin(200, 100);
	had(true, FMS_DIRECT_NO_ROOM, 100);
	shim_ok(goes(true, FMS_DIRECT_NO_ROOM), "4: ... or it was known before");

	begin(50000, 50000);
	facts.async_reads = false;
	shim_ok(goes(false, FMS_DIRECT_SYNC),
			"5: synchronous reads: the page cache, whatever the device");
	facts.direct_io = FMS_DIRECT_ON;
	shim_ok(goes(true, FMS_DIRECT_AS_SET), "5: ... unless direct I/O is set");

	begin(50000, 5);
	shim_ok(goes(true, FMS_DIRECT_FAST), "6: a fast device, however little");
	begin(3900, 5);
	shim_ok(goes(false, FMS_DIRECT_ROOM), "6: 1950 MB/s is not fast");

	begin(0, 4100);
	shim_ok(goes(true, FMS_DIRECT_NO_ROOM), "7: far more than the room");
	begin(0, 3900);
	shim_ok(goes(false, FMS_DIRECT_ROOM), "7: ... or less: a part of it");
	write_bytes(900, 0);
	shim_ok(goes(false, FMS_DIRECT_ROOM), "7: ... also when that is used");
	begin(0, 100);
	free_memory.machine_bytes = 16 * 20 * MB;
	shim_ok(goes(true, FMS_DIRECT_NO_ROOM),
			"7: the room is a fair share of the machine");
	begin(0, 50000);
	shim_ok(goes(true, FMS_DIRECT_NO_ROOM), "7: more than memory, too");
	begin(400, 4100);
	shim_ok(goes(false, FMS_DIRECT_ROOM), "7: slow: memory, not only room");
	begin(620, 4900);
	shim_ok(goes(true, FMS_DIRECT_NO_ROOM), "7: 310 MB/s is not slow");

	begin(0, 600);
	set_memory(1000, 1000);
	shim_ok(goes(true, FMS_DIRECT_HALF),
			"8: memory does not hold the spill and its input");
	write_bytes(0, 290);
	had(true, FMS_DIRECT_HALF, 0);
	shim_ok(goes(true, FMS_DIRECT_HALF), "8: ... up to half of the spill");
	write_bytes(0, 20);
	shim_ok(goes(false, FMS_DIRECT_ROOM), "8: ... the rest has room");
	begin(400, 600);
	set_memory(1000, 1000);
	shim_ok(goes(true, FMS_DIRECT_HALF), "8: a slow device, too");
	begin(200, 600);
	set_memory(1000, 1000);
	shim_ok(goes(false, FMS_DIRECT_ROOM), "8: ... but no very slow one");
	begin(0, 490);
	set_memory(1000, 1000);
	shim_ok(goes(false, FMS_DIRECT_ROOM), "8: nor if memory holds both");

	begin(0, 0);
	write_bytes(997, 0);
	shim_ok(goes(true, FMS_DIRECT_NO_ROOM), "9: no more room");
	begin(0, 0);
	set_memory(0, 0);
	shim_ok(goes(true, FMS_DIRECT_NO_ROOM), "9: never any");
	begin(400, 0);
	set_memory(3, 1000);
	shim_ok(goes(true, FMS_DIRECT_NO_ROOM), "9: slow, and no memory");
	begin(400, 0);
	free_memory.dirty_bytes = 9999 * MB;
	shim_ok(goes(true, FMS_DIRECT_NO_ROOM),
			"9: slow, and memory full of unwritten pages");

	begin(1000, 100);
	shim_ok(goes(false, FMS_DIRECT_ROOM), "10: the page cache has room");
}

/* Does a sort with these options begin with a small spill? */
static bool
begins_small(void)
{
	looks = 0;
	begin_spill();
	return fms_spill_policy_is_small(&facts) && looks == 0;
}

static void
check_small_spills(void)
{
	begin(50000, 5000);
	shim_ok(!begins_small() && looks == 1, "4 MB of work_mem: not small");
	options.memory_bytes = 64 * 1024;
	shim_ok(!begins_small(), "64 kB, but much is expected: not small");
	options.expected_bytes = 100000;
	shim_ok(begins_small(), "64 kB: small, and memory is not read");
	facts.async_reads = false;
	shim_ok(goes(false, FMS_DIRECT_SMALL),
			"2: a small spill, whatever the device");
	facts.written_bytes = facts.cached_bytes = 4 * 1024 * 1024 - 4096;
	looks = 0;
	fms_spill_policy_observe(&facts, false, 4096, 0, 0);
	shim_ok(fms_spill_policy_is_small(&facts) && looks == 0,
			"2: ... up to 4 MB");
	facts.written_bytes += 4096;
	fms_spill_policy_observe(&facts, false, 4096, 0, 0);
	shim_ok(!fms_spill_policy_is_small(&facts) && looks == 1,
			"... then memory is read");
	facts.async_reads = true;
	had(false, FMS_DIRECT_SMALL, 0);
	shim_ok(goes(true, FMS_DIRECT_FAST), "... and the device counts");

	options.direct_io = FMS_DIRECT_ON;
	shim_ok(!begins_small() && goes(true, FMS_DIRECT_AS_SET),
			"direct I/O as set: not small");
	options.direct_io = FMS_DIRECT_AUTO;
	options.io_method = FMS_IO_URING;
	shim_ok(!begins_small(), "io_uring as set: not small");
	options.io_method = FMS_IO_SYNC;
	shim_ok(begins_small(), "synchronous I/O as set: small");
	options.io_method = FMS_IO_AUTO;
	options.files = &files;
	shim_ok(!begins_small(), "a parallel sort: not small");
}

static void
check_compression_rows(void)
{
	begin(60, 2000);
	options.block_bytes = 4096;
	begin_spill();
	shim_ok(compresses(false, FMS_COMPRESS_AS_SET),
			"a: not automatically if the block size is set");
	options.compression = FMS_COMPRESS_ON;
	begin_spill();
	shim_ok(compresses(true, FMS_COMPRESS_AS_SET), "a: ... but if set");
	begin(60, 2000);
	options.mode = FMS_MODE_TRADITIONAL;
	begin_spill();
	shim_ok(compresses(false, FMS_COMPRESS_AS_SET),
			"a: nor in a mode for comparison");
	begin(60, 2000);
	options.memory_bytes = 512 * 1024;
	begin_spill();
	shim_ok(compresses(false, FMS_COMPRESS_AS_SET),
			"a: nor with little memory");
	begin(60, 2000);
	facts.compression = FMS_COMPRESS_OFF;
	shim_ok(compresses(false, FMS_COMPRESS_AS_SET), "a: off is off");

	begin(60, 2000);
	previous.compressed = true;
	facts.compressible_bytes = 110 * MB;
	facts.compressed_bytes = 100 * MB;
	shim_ok(compresses(false, FMS_COMPRESS_GAINED_LITTLE), "b: little gain");
	facts.compressible_bytes = 140 * MB;
	shim_ok(compresses(true, FMS_COMPRESS_SLOW), "b: ... enough gain");
	facts.compressible_bytes = facts.compressed_bytes = MB / 2;
	shim_ok(compresses(true, FMS_COMPRESS_SLOW),
			"b: ... too few bytes to tell");

	begin(0, 20000);
	shim_ok(compresses(false, FMS_COMPRESS_NO_NEED), "c: an unknown device");
	begin(500, 20000);
	shim_ok(compresses(false, FMS_COMPRESS_NO_NEED),
			"c: a device not slow enough");

	begin(60, 100);
	previous.compressed = true;
	shim_ok(compresses(true, FMS_COMPRESS_SLOW), "d: once begun it goes on");
	begin(60, 100);
	facts.direct_io = FMS_DIRECT_ON;
	shim_ok(compresses(true, FMS_COMPRESS_SLOW), "e: a direct run");
	begin(60, 2000);
	shim_ok(compresses(true, FMS_COMPRESS_SLOW) && !choice.direct,
			"f: more than the kernel leaves unwritten");
	begin(60, 900);
	set_memory(1500, 1000);
	shim_ok(compresses(true, FMS_COMPRESS_SLOW),
			"f: memory does not hold the spill and its input");
	begin(60, 900);
	shim_ok(compresses(false, FMS_COMPRESS_NO_NEED),
			"g: a spill that stays in memory");
	begin(60, 100);
	write_bytes(900, 0);
	write_bytes(50, 200);
	shim_ok(compresses(true, FMS_COMPRESS_SLOW),
			"f: ... but not if it is larger than expected");
}

/* A direct run at that rate, the device always being waited for. */
static bool
write_direct(uint64 mb, double rate_mb)
{
	double		us = mb * MB / rate_mb;

	facts.written_bytes += mb * MB;
	looks = 0;
	fms_spill_policy_observe(&facts, true, mb * MB, us, us);
	return looks > 0;
}

static void
check_observations(void)
{
	begin(0, 500);
	shim_ok(!write_direct(1, 20), "a few bytes say nothing");
	shim_ok(write_direct(10, 20) && facts.device_seen &&
			goes(false, FMS_DIRECT_ROOM) && choice.device_mb < 11,
			"a slow device shows without a profile");
	begin(50000, 500);
	had(true, FMS_DIRECT_FAST, 25000);
	shim_ok(write_direct(100, 20) && goes(false, FMS_DIRECT_ROOM),
			"... and in spite of one");
	begin(1000, 500);
	fms_spill_policy_observe(&facts, true, 100 * MB, 1000000, 0);
	shim_ok(!facts.device_seen && facts.device.write_mb == 1000,
			"a device that was not waited for stays as known");
	facts.async_reads = false;
	fms_device_note(&facts.device, "random_read", BLOCK, 8, 100);
	fms_device_note(&facts.device, "random_read", 4 * BLOCK, 1, 1000);
	shim_ok(goes(false, FMS_DIRECT_SYNC) && choice.device_mb == 500,
			"blocks that the kernel reads ahead count as a large one");
}

/* Writes runs of 1 MB and asks as the spill does; returns MB in the cache. */
static uint64
spill(uint64 total_mb)
{
	choose();
	looks = 0;
	for (uint64 mb = 0; mb < total_mb; mb++)
	{
		write_bytes(!choice.direct, choice.direct);
		fms_spill_policy_observe(&facts, choice.direct, MB, 0, 0);
		previous = choice;
		choice = fms_spill_policy_choose(&facts, &previous);
	}
	shim_ok(looks <= (int) total_mb / 4, "memory is read %d times", looks);
	return facts.cached_bytes / MB;
}

static void
check_spills(void)
{
	uint64		mb;

	begin(0, 0);
	mb = spill(5000);
	shim_ok(mb > 900 && mb <= 1100 && choice.direct && looks <= 140,
			"the room is used up, then left for good");
	begin(200, 0);
	mb = spill(20000);
	shim_ok(mb > 9000 && mb <= 11000 && choice.direct,
			"on a slow device: memory is");
	begin(1000, 800);
	set_memory(1000, 1000);
	mb = spill(800);
	shim_ok(mb >= 350 && mb <= 400, "crowded memory gets half of the spill");
}

int
main(void)
{
	check_direct_rows();
	check_small_spills();
	check_compression_rows();
	check_observations();
	check_spills();
	return shim_done();
}
