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
 * memory that is available, or that the control group which this process
 * runs in may have (a container's page cache counts against its limit).
 *
 *	  available   |###################################################|
 *	  background  |#####|			where the kernel begins to write
 *	  dirty       |##|
 *	  room           |##|			a sort takes a part, and asks again
 *
 * Asked when a sort begins to spill, and again when it has used up the part
 * it was given; reading these files takes some tens of microseconds.  Where
 * there is no /proc, there is no room.
 *
 */
#include "postgres.h"

#include "storage/fd.h"

#include "cache.h"

/* A sort's part of the memory that is available; many may run at once. */
#define AVAILABLE_FRACTION	16
/* It gets the room that there is in parts, since others may want it, too. */
#define ROOM_FRACTION		8

/* What the kernel says of memory, in bytes. */
typedef struct FmsMemory
{
	uint64		available;
	uint64		dirty;			/* in the page cache, to be written or being
								 * written */
} FmsMemory;

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

/* The smallest limit of a group and those it is in. */
static uint64
limit_above(const char *mount, const char *group, const char *name)
{
	char		path[MAXPGPATH];
	char		above[MAXPGPATH];
	uint64		limit = PG_UINT64_MAX;

	strlcpy(above, group, sizeof(above));
	for (;;)
	{
		char	   *slash = strrchr(above, '/');
		uint64		here;

		snprintf(path, sizeof(path), "%s%s/%s", mount, above, name);
		here = number_in(path);
		limit = Min(limit, here);
		if (slash == NULL)
			return limit;
		*slash = '\0';
	}
}

/* The memory limit of this process's control group, version 1 or 2. */
static uint64
group_limit_bytes(void)
{
	FILE	   *file = AllocateFile("/proc/self/cgroup", "r");
	char		line[MAXPGPATH];
	uint64		limit = PG_UINT64_MAX;

	if (file == NULL)
		return limit;
	while (fgets(line, sizeof(line), file))
	{
		char	   *group = strrchr(line, ':');
		uint64		here = PG_UINT64_MAX;

		line[strcspn(line, "\n")] = '\0';
		if (group == NULL)
			continue;
		group++;
		if (strncmp(line, "0::", 3) == 0)
			here = limit_above("/sys/fs/cgroup", group, "memory.max");
		else if (strstr(line, ":memory:"))
			here = limit_above("/sys/fs/cgroup/memory", group,
							   "memory.limit_in_bytes");
		limit = Min(limit, here);
	}
	FreeFile(file);
	return limit;
}

uint64
fms_cache_room_bytes(uint64 taken_bytes)
{
	FmsMemory	memory = ask_memory();
	uint64		available = Min(memory.available, group_limit_bytes());
	uint64		background = background_bytes(available);
	uint64		share = available / AVAILABLE_FRACTION;

	if (background <= memory.dirty || share <= taken_bytes)
		return 0;
	return Min(background - memory.dirty, share - taken_bytes);
}

uint64
fms_cache_part_bytes(uint64 room_bytes)
{
	return room_bytes / ROOM_FRACTION;
}
