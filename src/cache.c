/*-------------------------------------------------------------------------
 *
 * cache.c
 *	  How much a sort may leave in the page cache.
 *
 * A spill that is small beside the memory that is free is best written to
 * the page cache: it is read back and deleted before the kernel has begun to
 * write it to the device.  A large one is written to the device anyway, and
 * pushes others' pages out; past the cache it goes at the device's speed and
 * harms nobody.  The line is drawn at a small part of the memory that is
 * available: what the kernel could give without swapping, or the limit of
 * the control group this process runs in, if that is less (a container's
 * page cache counts against its limit).
 *
 *	  available memory  |##########################################|
 *	  a sort's share    |#|
 *
 * Asked once for each sort that spills; reading these files takes some tens
 * of microseconds.  Where there is no /proc, the share is 0.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "storage/fd.h"

#include "cache.h"

/* A sort's part of what is available; many may run at once. */
#define SHARE_FRACTION	32

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

static uint64
available_bytes(void)
{
	FILE	   *file = AllocateFile("/proc/meminfo", "r");
	unsigned long long kb = 0;
	char		line[256];

	if (file == NULL)
		return 0;
	while (fgets(line, sizeof(line), file))
	{
		if (sscanf(line, "MemAvailable: %llu kB", &kb) == 1)
			break;
	}
	FreeFile(file);
	return (uint64) kb * 1024;
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
fms_cache_share_bytes(void)
{
	uint64		available = available_bytes();
	uint64		limit = group_limit_bytes();

	return Min(available, limit) / SHARE_FRACTION;
}
