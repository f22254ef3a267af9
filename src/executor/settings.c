/*-------------------------------------------------------------------------
 *
 * settings.c
 *	  The fmsort.* settings.
 *
 * Any user may set them, since none lets a session exceed work_mem or
 * temp_file_limit.  Only a superuser may set what goes to the server log and
 * what only a developer needs.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <limits.h>

#include "miscadmin.h"
#include "utils/guc.h"

#include "executor/settings.h"

FmsOptions	fms_settings = {.cutoff = true,.skips = true};
bool		fms_settings_parallel = true;
bool		fms_settings_group_filter = true;
int			fms_settings_log_min_duration_ms = -1;

#define SETTING_VALUE(choice, name)	{name, choice, false},

static const struct config_enum_entry mode_values[] = {
	FMS_MODES(SETTING_VALUE)
	/* as the paper on Flash mergesort calls it */
	{"single_block", FMS_MODE_TRADITIONAL, false},
	{NULL, 0, false}
};

static const struct config_enum_entry io_method_values[] = {
	FMS_IO_METHODS(SETTING_VALUE)
	{NULL, 0, false}
};

/* Both FmsDirectChoice and FmsCompressChoice. */
static const struct config_enum_entry switch_values[] = {
	{"auto", FMS_DIRECT_AUTO, false},
	{"on", FMS_DIRECT_ON, false},
	{"off", FMS_DIRECT_OFF, false},
	{"true", FMS_DIRECT_ON, true},
	{"false", FMS_DIRECT_OFF, true},
	{"yes", FMS_DIRECT_ON, true},
	{"no", FMS_DIRECT_OFF, true},
	{"1", FMS_DIRECT_ON, true},
	{"0", FMS_DIRECT_OFF, true},
	{NULL, 0, false}
};

StaticAssertDecl((int) FMS_COMPRESS_AUTO == (int) FMS_DIRECT_AUTO &&
				 (int) FMS_COMPRESS_ON == (int) FMS_DIRECT_ON &&
				 (int) FMS_COMPRESS_OFF == (int) FMS_DIRECT_OFF,
				 "settings that are automatic, on or off have the same values");

static bool
check_block_size(int *value, void **extra, GucSource source)
{
	int			below = *value - *value % FMS_BLOCK_QUANTUM_BYTES;

	if (*value == below)
		return true;
	GUC_check_errdetail("fmsort.block_size must be 0 (automatic) or a multiple of %d bytes from %d to %d.",
						FMS_BLOCK_QUANTUM_BYTES, FMS_BLOCK_MIN_BYTES,
						FMS_BLOCK_MAX_BYTES);
	if (below < FMS_BLOCK_MIN_BYTES)
		GUC_check_errhint("The nearest valid size is %d.",
						  FMS_BLOCK_MIN_BYTES);
	else
		GUC_check_errhint("The nearest valid sizes are %d and %d.",
						  below, below + FMS_BLOCK_QUANTUM_BYTES);
	return false;
}

void
fms_settings_define(void)
{
	DefineCustomEnumVariable("fmsort.mode",
							 "How sorts that do not fit into work_mem are merged.",
							 "\"fmsort\" reads blocks ahead in the exact order in which they are needed, \"double_buffering\" reads one block ahead per run, \"traditional\" reads none ahead; \"single_block\", \"multi_block\" and \"flash\" are there to compare with; \"off\" uses PostgreSQL's own sort.",
							 (int *) &fms_settings.mode, FMS_MODE_FMSORT,
							 mode_values,
							 PGC_USERSET, GUC_EXPLAIN, NULL, NULL, NULL);
	DefineCustomIntVariable("fmsort.assist_blocks",
							"Number of assist blocks: how many blocks a merge reads at once.",
							"0 chooses automatically.",
							(int *) &fms_settings.assist_blocks, 0, 0,
							FMS_ASSIST_MAX_BLOCKS,
							PGC_USERSET, GUC_EXPLAIN, NULL, NULL, NULL);
	DefineCustomIntVariable("fmsort.block_size",
							"Size of the blocks that sorted runs are written and read in.",
							"A multiple of 512 bytes; 0 chooses automatically.",
							(int *) &fms_settings.block_bytes, 0, 0,
							FMS_BLOCK_MAX_BYTES,
							PGC_USERSET, GUC_EXPLAIN | GUC_UNIT_BYTE,
							check_block_size, NULL, NULL);
	DefineCustomEnumVariable("fmsort.io_method",
							 "How sorts read and write temporary files.",
							 "\"auto\" uses io_uring where the kernel offers it, else synchronous I/O.",
							 (int *) &fms_settings.io_method, FMS_IO_AUTO,
							 io_method_values,
							 PGC_USERSET, GUC_EXPLAIN, NULL, NULL, NULL);
	DefineCustomEnumVariable("fmsort.direct_io",
							 "Whether sorts bypass the page cache.",
							 "\"auto\" goes by the size of the spill, the free memory and the speed of the device; \"on\" raises an error where the file system does not allow it.",
							 (int *) &fms_settings.direct_io, FMS_DIRECT_AUTO,
							 switch_values,
							 PGC_USERSET, GUC_EXPLAIN, NULL, NULL, NULL);
	DefineCustomEnumVariable("fmsort.compression",
							 "Whether sorts compress what they write to disk.",
							 "\"auto\" does where the device is slow and the spill is not expected to stay in memory.",
							 (int *) &fms_settings.compression,
							 FMS_COMPRESS_AUTO, switch_values,
							 PGC_USERSET, GUC_EXPLAIN, NULL, NULL, NULL);
	DefineCustomBoolVariable("fmsort.checksums",
							 "Whether the blocks that sorts write carry checksums.",
							 "Bytes that storage has changed are an error then. That a block is the one asked for is checked in any case.",
							 &fms_settings.checksums, false,
							 PGC_USERSET, GUC_EXPLAIN, NULL, NULL, NULL);
	DefineCustomBoolVariable("fmsort.parallel",
							 "Whether a sort in parallel workers is merged in the leader.",
							 "The workers then write sorted runs to temporary files, which the leader merges. Otherwise each worker sorts, and Gather Merge gets its rows one by one.",
							 &fms_settings_parallel, true,
							 PGC_USERSET, GUC_EXPLAIN, NULL, NULL, NULL);
	DefineCustomIntVariable("fmsort.log_min_duration",
							"Sorts that take longer than this are logged, each in one line.",
							"A sort's own time counts, without its input's and its parent's. 0 logs all sorts, -1 none.",
							&fms_settings_log_min_duration_ms, -1, -1, INT_MAX,
							PGC_SUSET, GUC_UNIT_MS, NULL, NULL, NULL);
	DefineCustomBoolVariable("fmsort.debug_cutoff",
							 "Whether sorts that spill refuse rows beyond a LIMIT.",
							 "\"off\" is there to compare with.",
							 &fms_settings.cutoff, true,
							 PGC_SUSET, GUC_NOT_IN_SAMPLE | GUC_EXPLAIN,
							 NULL, NULL, NULL);
	DefineCustomBoolVariable("fmsort.debug_group_filter",
							 "Whether sorts drop rows of a group that their parent does not want.",
							 "\"off\" is there to compare with.",
							 &fms_settings_group_filter, true,
							 PGC_SUSET, GUC_NOT_IN_SAMPLE | GUC_EXPLAIN,
							 NULL, NULL, NULL);
	DefineCustomBoolVariable("fmsort.debug_materialize",
							 "Whether sorts that spill write their result to disk before they return it.",
							 "It doubles what they write and read: for comparison only.",
							 &fms_settings.materialize, false,
							 PGC_SUSET, GUC_NOT_IN_SAMPLE | GUC_EXPLAIN,
							 NULL, NULL, NULL);
	DefineCustomBoolVariable("fmsort.debug_skip",
							 "Whether sorts pass over the rows of an OFFSET or a MOVE.",
							 "\"off\" is there to compare with.",
							 &fms_settings.skips, true,
							 PGC_SUSET, GUC_NOT_IN_SAMPLE | GUC_EXPLAIN,
							 NULL, NULL, NULL);
	MarkGUCPrefixReserved("fmsort");
}

void
fms_settings_snapshot(FmsOptions *options, double expected_bytes)
{
	*options = fms_settings;
	options->memory_bytes = (Size) work_mem * 1024;
	options->expected_bytes = expected_bytes;
}
