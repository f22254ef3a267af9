/*-------------------------------------------------------------------------
 *
 * free_memory.c
 *	  How much memory the page cache may use for a spill.
 *
 * A container's page cache counts against the limit of its control group, so
 * the group with the least available memory decides.  The kernel begins to
 * write dirty pages at vm.dirty_background_ratio of the available memory: of
 * the machine's, or of the group's with control groups of version 2.
 *
 * Files are open for the length of a call.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "storage/fd.h"

#include "device/free_memory.h"

typedef struct Memory
{
	uint64		available_bytes;
	uint64		dirty_bytes;	/* waiting to be written, or being written */
} Memory;

/* The kernel's names: files in a directory, and entries of the file stat. */
typedef struct Names
{
	const char *mount;
	const char *limit;
	const char *usage;
	const char *stat;
	const char *entries[4];		/* two available, two dirty */
} Names;

static const Names machine_names = {
	"/proc", NULL, NULL, "meminfo",
	{"MemAvailable", "", "Dirty", "Writeback"}
};

static const Names version_1_names = {
	"/sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes",
	"memory.stat",
	{"total_inactive_file", "total_active_file",
	"total_dirty", "total_writeback"}
};

static const Names version_2_names = {
	"/sys/fs/cgroup", "memory.max", "memory.current", "memory.stat",
	{"inactive_file", "active_file", "file_dirty", "file_writeback"}
};

static FILE *
open_file(const char *directory, const char *name)
{
	char		path[MAXPGPATH];

	snprintf(path, sizeof(path), "%s/%s", directory, name);
	return AllocateFile(path, "r");
}

/* The number in a file of directory; PG_UINT64_MAX if there is none. */
static uint64
read_number(const char *directory, const char *name)
{
	FILE	   *file = open_file(directory, name);
	unsigned long long number;

	if (file == NULL || fscanf(file, "%llu", &number) != 1)
		number = PG_UINT64_MAX;
	if (file)
		FreeFile(file);
	return number;
}

/* Of a group: its page cache. */
static Memory
read_stat(const Names *names, const char *directory)
{
	FILE	   *file = open_file(directory, names->stat);
	Memory		memory = {0, 0};
	unsigned long long number;
	char		line[256];
	char		name[64];

	if (file == NULL)
		return memory;
	while (fgets(line, sizeof(line), file))
	{
		if (sscanf(line, "%63[^: ]%*[: ]%llu", name, &number) != 2)
			continue;
		if (strstr(line, " kB"))
			number *= 1024;
		for (int i = 0; i < (int) lengthof(names->entries); i++)
		{
			if (strcmp(name, names->entries[i]) == 0)
				*(i < 2 ? &memory.available_bytes :
				  &memory.dirty_bytes) += number;
		}
	}
	FreeFile(file);
	return memory;
}

/*
 * The memory of a group or one that it is in, whichever has the least
 * available; `most` if none has less.
 */
static Memory
read_groups(const Names *names, const char *group, Memory most)
{
	Memory		least = most;
	char		directory[MAXPGPATH];

	snprintf(directory, sizeof(directory), "%s%s", names->mount, group);
	while (strlen(directory) >= strlen(names->mount))
	{
		uint64		limit = read_number(directory, names->limit);
		uint64		usage = read_number(directory, names->usage);

		if (limit < least.available_bytes)
		{
			Memory		memory = read_stat(names, directory);

			if (usage < limit)
				memory.available_bytes += limit - usage;
			memory.available_bytes = Min(memory.available_bytes, limit);
			if (memory.available_bytes < least.available_bytes)
				least = memory;
		}
		*strrchr(directory, '/') = '\0';
	}
	return least;
}

/* Bytes that may become dirty before the kernel begins to write. */
static uint64
writeback_bytes(Memory memory)
{
	uint64		bytes = read_number("/proc/sys/vm", "dirty_background_bytes");
	uint64		ratio = read_number("/proc/sys/vm", "dirty_background_ratio");

	if (bytes == 0 || bytes == PG_UINT64_MAX)
		bytes = ratio <= 100 ? memory.available_bytes / 100 * ratio : 0;
	return bytes - Min(bytes, memory.dirty_bytes);
}

FmsFreeMemory
fms_free_memory(void)
{
	Memory		machine = read_stat(&machine_names, machine_names.mount);
	Memory		least = machine;
	Memory		dirtied = machine;	/* where the kernel counts dirty pages */
	FILE	   *file = AllocateFile("/proc/self/cgroup", "r");
	char		line[MAXPGPATH];

	while (file && fgets(line, sizeof(line), file))
	{
		char	   *group = strchr(line, '/');

		line[strcspn(line, "\n")] = '\0';
		if (strncmp(line, "0::", 3) == 0)
			dirtied = read_groups(&version_2_names, group, machine);
		else if (group && strstr(line, ":memory:"))
			least = read_groups(&version_1_names, group, machine);
	}
	if (file)
		FreeFile(file);
	if (dirtied.available_bytes < least.available_bytes)
		least = dirtied;
	return (FmsFreeMemory) {
		.machine_bytes = machine.available_bytes,
		.available_bytes = least.available_bytes,
		.dirty_bytes = least.dirty_bytes,
		.writeback_bytes = writeback_bytes(dirtied)
	};
}
