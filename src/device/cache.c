/*-------------------------------------------------------------------------
 *
 * cache.c
 *	  How much a sort may leave in the page cache.
 *
 * A spill that stays in the page cache costs two copies in memory: it is read
 * back and deleted before the kernel has begun to write it to the device.
 * One that the kernel does begin to write goes to the device anyway, more
 * slowly than past the cache, and pushes others' pages out.  So the line is
 * drawn where the kernel draws it (vm.dirty_background_ratio), less what is
 * waiting to be written already, ours and others'; and at a small part of the
 * memory that is available, or most of what the control group has left that
 * this process runs in (a container's page cache counts against its limit, and
 * what it pushes out is its own).
 *
 *	  available   |###################################################|
 *	  background  |#####|			where the kernel begins to write
 *	  dirty       |##|
 *	  room           |##|			a sort takes a part, and asks again
 *
 * Where the device is slow it is another line.  A sort that bypasses the cache
 * waits for the device twice, one that does not waits at most once, when the
 * kernel writes, and what stays in memory need not be read from the device.
 * So then only memory counts: a sort may take most of what is available.
 *
 * Asked when a sort begins to spill, and again when it has used up the part
 * it was given; reading these files takes some tens of microseconds.  Where
 * there is no /proc, there is no room.
 *
 * Files are open for the length of a call; nothing is kept.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "storage/fd.h"

#include "device/cache.h"

/* A sort's part of the memory that is available; many may run at once. */
#define AVAILABLE_FRACTION	16
/* Of its group's memory, or on a slow device of all: all but this part. */
#define SPARED_FRACTION		4
/* A sort's input has so many times its spill's pages, read as it is sorted. */
#define INPUT_PAGES		1
/* It gets the room that there is in parts, since others may want it, too. */
#define ROOM_FRACTION		8

/* What the kernel says of memory, in bytes. */
typedef struct FmsMemory
{
	uint64		available;
	uint64		dirty;			/* in the page cache, to be written or being
								 * written */
} FmsMemory;

/*
 * The same, of whom?  Groups of version 2 have a dirty limit of their own.
 */
typedef struct FmsMemories
{
	FmsMemory	machine;
	FmsMemory	flushed;		/* what the kernel's dirty limit goes by */
	FmsMemory	group;			/* the smallest; else the machine */
} FmsMemories;

/* The number in a file that holds just one; PG_UINT64_MAX if there is none. */
static uint64
number_in(const char *path)
{
	FILE	   *file = AllocateFile(path, "r");
	unsigned long long number;
	bool		found;

	if (file == NULL)
		return PG_UINT64_MAX;
	found = fscanf(file, "%llu", &number) == 1;
	FreeFile(file);
	return found ? (uint64) number : PG_UINT64_MAX;
}

static FmsMemory
ask_memory(void)
{
	FILE	   *file = AllocateFile("/proc/meminfo", "r");
	FmsMemory	memory = {0, 0};
	unsigned long long kb;
	char		line[256];

	if (file == NULL)
		return memory;
	while (fgets(line, sizeof(line), file))
	{
		if (sscanf(line, "MemAvailable: %llu kB", &kb) == 1)
			memory.available = (uint64) kb * 1024;
		else if (sscanf(line, "Dirty: %llu kB", &kb) == 1 ||
				 sscanf(line, "Writeback: %llu kB", &kb) == 1)
			memory.dirty += (uint64) kb * 1024;
	}
	FreeFile(file);
	return memory;
}

/* How much may be dirty before the kernel begins to write it? */
static uint64
background_bytes(uint64 available)
{
	uint64		bytes = number_in("/proc/sys/vm/dirty_background_bytes");
	uint64		ratio = number_in("/proc/sys/vm/dirty_background_ratio");

	if (bytes > 0 && bytes < PG_UINT64_MAX)
		return bytes;
	return ratio <= 100 ? available / 100 * ratio : 0;
}

/* How a version of control groups calls what we ask it. */
typedef struct FmsGroupNames
{
	const char *mount;
	const char *limit;			/* files */
	const char *usage;
	const char *inactive;		/* entries of memory.stat */
	const char *active;
	const char *dirty;
	const char *writeback;
} FmsGroupNames;

static const FmsGroupNames version_1 = {
	.mount = "/sys/fs/cgroup/memory",
	.limit = "memory.limit_in_bytes",
	.usage = "memory.usage_in_bytes",
	.inactive = "total_inactive_file",
	.active = "total_active_file",
	.dirty = "total_dirty",
	.writeback = "total_writeback"
};

static const FmsGroupNames version_2 = {
	.mount = "/sys/fs/cgroup",
	.limit = "memory.max",
	.usage = "memory.current",
	.inactive = "inactive_file",
	.active = "active_file",
	.dirty = "file_dirty",
	.writeback = "file_writeback"
};

/* Adds what memory.stat says to what is available, and to what is dirty. */
static void
ask_stat(const FmsGroupNames *names, const char *directory, FmsMemory *memory)
{
	char		path[MAXPGPATH];
	char		name[64];
	unsigned long long bytes;
	FILE	   *file;

	snprintf(path, sizeof(path), "%s/memory.stat", directory);
	file = AllocateFile(path, "r");
	if (file == NULL)
		return;
	while (fscanf(file, "%63s %llu", name, &bytes) == 2)
	{
		if (strcmp(name, names->inactive) == 0 ||
			strcmp(name, names->active) == 0)
			memory->available += bytes;
		else if (strcmp(name, names->dirty) == 0 ||
				 strcmp(name, names->writeback) == 0)
			memory->dirty += bytes;
	}
	FreeFile(file);
}

/*
 * A group with a limit has its own idea of what is available: the limit, less
 * what is used and is not page cache.
 */
static void
ask_group(const FmsGroupNames *names, const char *directory,
		  FmsMemories *memories)
{
	FmsMemory	group = {0, 0};
	char		path[MAXPGPATH];
	uint64		limit;
	uint64		usage;

	snprintf(path, sizeof(path), "%s/%s", directory, names->limit);
	limit = number_in(path);
	if (limit >= memories->group.available)
		return;					/* none, or none that matters */
	snprintf(path, sizeof(path), "%s/%s", directory, names->usage);
	usage = number_in(path);
	ask_stat(names, directory, &group);
	if (usage <= limit)
		group.available += limit - usage;
	group.available = Min(group.available, limit);
	if (group.available >= memories->group.available)
		return;
	memories->group = group;
	if (names == &version_2)
		memories->flushed = group;
}

/* The same of a group and those it is in. */
static void
ask_groups(const FmsGroupNames *names, const char *group,
		   FmsMemories *memories)
{
	char		directory[MAXPGPATH];
	Size		top = strlen(names->mount);

	snprintf(directory, sizeof(directory), "%s%s", names->mount, group);
	for (;;)
	{
		char	   *slash;

		ask_group(names, directory, memories);
		slash = strrchr(directory, '/');
		if (slash == NULL || slash < directory + top)
			return;
		*slash = '\0';
	}
}

/* What there is for this process, as its control groups let it. */
static FmsMemories
ask(void)
{
	FmsMemory	machine = ask_memory();
	FmsMemories memories = {machine, machine, machine};
	FILE	   *file = AllocateFile("/proc/self/cgroup", "r");
	char		line[MAXPGPATH];

	if (file == NULL)
		return memories;
	while (fgets(line, sizeof(line), file))
	{
		char	   *group = strrchr(line, ':');

		line[strcspn(line, "\n")] = '\0';
		if (group == NULL)
			continue;
		group++;
		if (strncmp(line, "0::", 3) == 0)
			ask_groups(&version_2, group, &memories);
		else if (strstr(line, ":memory:"))
			ask_groups(&version_1, group, &memories);
	}
	FreeFile(file);
	return memories;
}

/* What is left of a share of which some is taken. */
static uint64
left_of(uint64 share, uint64 taken)
{
	return share > taken ? share - taken : 0;
}

/* Most of what its group has, or the machine. */
static uint64
most_of(const FmsMemory *memory)
{
	return memory->available - memory->available / SPARED_FRACTION;
}

uint64
fms_cache_room_bytes(uint64 taken_bytes)
{
	FmsMemories memories = ask();
	uint64		unwritten =
		left_of(background_bytes(memories.flushed.available),
				memories.flushed.dirty);
	uint64		share = left_of(memories.machine.available /
								AVAILABLE_FRACTION, taken_bytes);

	return Min(Min(unwritten, share),
			   left_of(most_of(&memories.group), taken_bytes));
}

uint64
fms_cache_memory_bytes(uint64 taken_bytes)
{
	FmsMemories memories = ask();

	/* what others have written and the device has not takes memory, too */
	return left_of(most_of(&memories.group),
				   Max(taken_bytes, memories.group.dirty));
}

double
fms_cache_overflow_bytes(double spill_bytes, uint64 taken_bytes)
{
	return Max(0, spill_bytes * (1 + INPUT_PAGES) -
			   (double) (taken_bytes + fms_cache_memory_bytes(taken_bytes)));
}

bool
fms_cache_memory_holds(double spill_bytes, uint64 taken_bytes)
{
	return fms_cache_overflow_bytes(spill_bytes, taken_bytes) <= 0;
}

uint64
fms_cache_part_bytes(uint64 room_bytes)
{
	return room_bytes / ROOM_FRACTION;
}
