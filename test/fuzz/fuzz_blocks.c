/* links: order/ merge/ merge/modes/ */
/* links: formation/cutoff formation/run tape/compressed_chunk */
/* links: tape/packed_record */
/* links: tape/write_buffer */
/* links: tape/block tape/tape tape/temp_file tape/space io/ */
/*
 * The block reader: runs are written as a sort writes them, then the fuzzer
 * changes what is on disk, then they are merged.  Whatever the bytes: an
 * error, or records that lie in the memory they claim; never a crash.
 *
 *	  records --> run.c, write_buffer.c, tape.c --> file --> changes
 *	                                            |
 *	 read, byte by byte <-- merge.c, merge/modes, pool.c, tape.c
 *
 * Some runs are compressed: then what is changed is mostly LZ4's.  Others have
 * packed records.
 *
 * A change may be sealed again, as if it had been written: without that no
 * fuzzer would get past the checksum, and with fmsort.checksums off nothing
 * but the checks behind it is left.  What was not changed must come back
 * whole and in order, also by a merge that is begun again in the middle.
 *
 * The file is one in memory, and fd.c's few functions are made for it here.
 *
 * Seen to fail with: take_record() of merge.c not holding key_bytes against
 * the record's size; assemble() without a limit to the record, or to a piece
 * of it; stand_in() not asking whether there is a first key.
 */
#include "postgres.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "commands/tablespace.h"
#include "executor/instrument.h"
#include "storage/bufmgr.h"
#include "storage/fd.h"

#include "merge/merge.h"
#include "no_filter.h"
#include "shim.h"
#include "tape/block.h"

#define MAX_RUNS	6
#define MAX_RECORDS 300
#define MAX_TUPLE	3000
#define KEY_OFFSET	MAXALIGN(SizeofMinimalTupleHeader)
#define MAX_CHANGES 8

int			LLVMFuzzerTestOneInput(const uint8 *bytes, size_t length);

/* ---- a small fd.c ---- */

#define MAX_FILES	8

/* Temporary tablespaces: 0, one, or stripes in several. */
static int	ntablespaces = 0;
Oid			MyDatabaseTableSpace = 1663;

static int	descriptors[MAX_FILES + 1];
static int	nfiles = 0;
static uint32 wait_event;
uint32	   *my_wait_event_info = &wait_event;
BufferUsage pgBufferUsage;
bool		track_io_timing = false;

void
PrepareTempTablespaces(void)
{
}

int
GetTempTablespaces(Oid *tablespaces, int numSpaces)
{
	int			n = Min(ntablespaces, numSpaces);

	for (int i = 0; i < n; i++)
		tablespaces[i] = 20000 + i;
	return n;
}

File
OpenTemporaryFile(bool interXact)
{
	if (nfiles == MAX_FILES)
		abort();
	descriptors[++nfiles] = memfd_create("fmsort", 0);
	return nfiles;
}

char *
FilePathName(File file)
{
	return "memory";
}

int
FileGetRawDesc(File file)
{
	return descriptors[file];
}

int
FileWrite(File file, char *buffer, int amount, off_t offset,
		  uint32 wait_event_info)
{
	return pwrite(descriptors[file], buffer, amount, offset);
}

int
FileTruncate(File file, off_t offset, uint32 wait_event_info)
{
	return ftruncate(descriptors[file], offset);
}

off_t
FileSize(File file)
{
	return lseek(descriptors[file], 0, SEEK_END);
}

void
FileClose(File file)
{
}

static void
close_files(void)
{
	while (nfiles > 0)
		close(descriptors[nfiles--]);
	shim_files_open = 0;
}

bool
IsInParallelMode(void)
{
	return false;
}

/* never called without other processes */
File
FileSetCreate(FileSet *files, const char *name)
{
	abort();
}

File
FileSetOpen(FileSet *files, const char *name, int mode)
{
	abort();
}

/* never called without direct I/O */
File
PathNameOpenTemporaryFile(const char *path, int mode)
{
	abort();
}

int
OpenTransientFile(const char *path, int flags)
{
	abort();
}

int
CloseTransientFile(int fd)
{
	abort();
}

/* ---- a small keys.c: eight bytes that decide ---- */

int
fms_keys_compare_rest(FmsKeys *keys, const FmsRecord *a, const FmsRecord *b)
{
	return 0;
}

int
fms_keys_compare_columns(FmsKeys *keys, const FmsRecord *a,
						 const FmsRecord *b, int equal)
{
	return 0;
}

bool
fms_keys_prefix_decides(const FmsKeys *keys)
{
	return false;
}

const FmsWordType *
fms_keys_word_type(const FmsKeys *keys)
{
	return NULL;
}

/* The tuple's bytes behind its header are the key. */
void
fms_keys_encode_tuple(FmsKeys *keys, MinimalTuple tuple, Size tuple_bytes,
					  FmsKeyImage *image)
{
	memset(image, 0, sizeof(*image));
	image->record.key_bytes = FMS_PREFIX_BYTES;
	image->record.flags = FMS_RECORD_EXACT;
	memcpy(image->bytes, (char *) tuple + KEY_OFFSET,
		   Min(sizeof(uint64), tuple_bytes - KEY_OFFSET));
}

const FmsRecord *
fms_keys_make_first_key(FmsKeys *keys, const FmsRecord *record)
{
	static union
	{
		FmsRecord	record;
		char		bytes[sizeof(FmsRecord) + 2 * sizeof(uint64)];
	}			first_key;

	memcpy(&first_key, record, sizeof(FmsRecord) + sizeof(uint64));
	first_key.record.tuple_bytes = 0;
	first_key.record.flags = FMS_RECORD_EXACT | FMS_RECORD_FIRST_KEY;
	return &first_key.record;
}

/* ---- runs ---- */

static const FmsMode *const modes[] = {
	&fms_mode_fmsort, &fms_mode_double_buffering, &fms_mode_traditional,
	&fms_mode_multi_block, &fms_mode_flash
};
static const uint32 block_sizes[] = {512, 1024, 4096, 16384};

static FmsIo io;
static uint64 counts[1 + FMS_NCOUNTERS];
static FmsCounters *counters = (FmsCounters *) counts;
static FmsMergePlan plan;
static FmsRun runs[MAX_RUNS];
static FmsRun *run_list[MAX_RUNS];
static int	nruns;
static int	nrecords;			/* written */
static uint64 sum_of_keys;		/* likewise */
static bool changed;

static void
write_run(FmsRunWriter *writer, FmsRun *run, int id)
{
	static union
	{
		FmsRecord	record;
		char		bytes[3 * sizeof(uint64) + KEY_OFFSET +
						  MAX_TUPLE + MAXIMUM_ALIGNOF];
	}			space;
	int			n = shim_below(MAX_RECORDS);
	uint64		key = 0;
	int			i;

	fms_run_begin(writer, run, id, shim_below(2), NULL);
	for (i = 0; i < n; i++)
	{
		uint64		ordered;
		uint32		tuple = sizeof(uint64) +
			(shim_below(16) ? shim_below(64) : shim_below(MAX_TUPLE));

		key += shim_below(4);
		ordered = pg_hton64(key);
		memset(&space, 0, sizeof(space));
		space.record.tuple_bytes = KEY_OFFSET + tuple;
		space.record.key_bytes = fms_key_room(sizeof(key));
		space.record.flags = FMS_RECORD_EXACT;
		memcpy(fms_record_key(&space.record), &ordered, sizeof(ordered));
		memcpy((char *) fms_record_tuple(&space.record) + KEY_OFFSET, &ordered,
			   sizeof(ordered));
		fms_run_append(writer, &space.record);
		nrecords++;
		sum_of_keys += key;
	}
	fms_run_finish(writer);
}

static void
write_runs(bool checksums, Size share_bytes)
{
	FmsRunWriter *writer;
	int			i;

	plan.mode = modes[shim_below(lengthof(modes))];
	plan.block_bytes = block_sizes[shim_below(lengthof(block_sizes))];
	plan.assist_blocks = 1 + shim_below(8);
	plan.assist_first = 1 + shim_below(plan.assist_blocks);
	plan.frees = shim_below(2);
	plan.io = &io;
	plan.counters = counters;
	ntablespaces = shim_below(4);
	plan.tape = fms_tape_open(&io, plan.block_bytes, checksums, NULL,
							  counters);
	plan.first_keys = fms_first_keys_create(NULL, counters, share_bytes,
											NULL);
	writer = fms_run_writer_create(plan.tape, plan.first_keys,
								   plan.mode->order,
								   plan.mode->order != FMS_ORDER_BY_LAST_KEYS,
								   65536);
	nruns = 1 + shim_below(MAX_RUNS);
	nrecords = 0;
	sum_of_keys = 0;
	for (i = 0; i < nruns; i++)
	{
		write_run(writer, &runs[i], i);
		run_list[i] = &runs[i];
	}
	fms_run_writer_destroy(writer);
}

/* ---- changes ---- */

static uint32
interesting_word(void)
{
	static const uint32 words[] = {
		0, 1, 7, 8, 9, 16, 24, 31, 32, 33, 40, 48, 512, 0x7FFFFFFF,
		0x80000000, 0xFFFFFFF8, 0xFFFFFFFF
	};

	return shim_below(4) ? words[shim_below(lengthof(words))] :
		(uint32) shim_random();
}

/* A block: a word of it becomes another one; it may be sealed again. */
static void
change_block(void)
{
	const FmsRun *run = &runs[shim_below(nruns)];
	static union
	{
		FmsBlockHeader header;
		char		bytes[16384];
	}			block;
	FmsIoRequest place;
	int			fd;
	uint32		at;
	uint32		word = interesting_word();
	bool		checksum_again = shim_below(4) > 0;

	if (run->nblocks == 0)
		return;
	fms_tape_locate(plan.tape, &place,
					fms_run_block_address(run, shim_below(run->nblocks),
										  plan.block_bytes));
	fd = descriptors[plan.tape->files[place.file].file];
	/* the file may have been cut off before */
	if (pread(fd, block.bytes, plan.block_bytes, place.offset_bytes) !=
		(ssize_t) plan.block_bytes)
		return;

	/* headers of the block, its first record or chunk are worth the most */
	at = shim_below(2) ? 4 * shim_below(sizeof(FmsBlockHeader) / 4 + 4) :
		shim_below(plan.block_bytes - sizeof(word));
	memcpy(block.bytes + at, &word, sizeof(word));
	if (checksum_again)
		fms_checksum_set(&block.header.checksum, plan.block_bytes,
						 plan.tape->salt, plan.tape->checksums);
	if (pwrite(fd, block.bytes, plan.block_bytes, place.offset_bytes) !=
		(ssize_t) plan.block_bytes)
		abort();
	changed = true;
}

/* Any byte of any file, or its end. */
static void
change_file(void)
{
	int			file = 1 + shim_below(nfiles);
	off_t		size = FileSize(file);
	uint8		byte = shim_random();

	if (size == 0)
		return;
	if (shim_below(16) == 15)
	{
		if (ftruncate(descriptors[file], shim_below(size)) != 0)
			abort();
	}
	else if (pwrite(descriptors[file], &byte, 1, shim_below(size)) != 1)
		abort();
	changed = true;
}

/* Any byte of the first keys on disk. */
static void
change_first_keys(void)
{
	Size		count;
	char	   *bytes = shim_file_bytes(&count);

	if (bytes == NULL)
		return;
	bytes[shim_below(count)] = shim_random();
	changed = true;
}

/* ---- reading them back ---- */

/* Reads all of a record, which must lie in memory, and returns its key. */
static uint64
read_record(const FmsRecord *record)
{
	volatile const char *bytes = (const char *) record;
	char		all = 0;
	uint32		i;

	for (i = 0; i < fms_record_bytes(record); i++)
		all ^= bytes[i];
	(void) all;
	if (!fms_record_is_sane(record))
		abort();
	return fms_record_prefix(record);
}

static void
merge_runs(void)
{
	FmsMerge   *merge = fms_merge_begin(&plan, nruns, run_list, NULL);
	/* what has given its space back cannot be read again */
	int			again = plan.frees ? -1 : (int) shim_below(200);
	const FmsRecord *record;
	uint64		last = 0;
	uint64		sum = 0;
	int			count = 0;

	while ((record = fms_merge_next(merge)) != NULL)
	{
		uint64		key = read_record(record);

		if (!changed && key < last)
			abort();
		last = key;
		sum += key;
		if (++count == again)
		{
			FmsPosition from[MAX_RUNS + 1];

			fms_merge_tell(merge, from);
			fms_merge_end(merge);
			merge = fms_merge_begin(&plan, nruns, run_list, from);
		}
	}
	fms_merge_end(merge);
	if (!changed && (count != nrecords || sum != sum_of_keys))
		abort();
}

static void
scenario(void)
{
	bool		checksums = shim_below(2);
	/* first keys in memory, or in their file */
	Size		share_bytes = shim_below(2) ? 1 << 20 : 0;
	int			changes;

	write_runs(checksums, share_bytes);
	for (changes = shim_below(MAX_CHANGES); changes > 0; changes--)
	{
		if (shim_below(4))
			change_block();
		else if (shim_below(2))
			change_file();
		else
			change_first_keys();
	}
	merge_runs();
	fms_first_keys_destroy(plan.first_keys);
	fms_tape_close(plan.tape);
}

int
LLVMFuzzerTestOneInput(const uint8 *bytes, size_t length)
{
	bool		raised;

	shim_feed(bytes, length);
	changed = false;
	fms_io_open(&io, FMS_IO_SYNC);
	raised = SHIM_CATCH(scenario());
	if (raised && !changed)
		abort();
	/* in the order of the server's clean-up: the channel, the memory */
	fms_io_close(&io);
	shim_forget_raised();
	close_files();
	return 0;
}
