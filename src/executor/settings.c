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

#include "executor/sort_node.h"

FmsOptions	fms_settings = {.cutoff = true,.skips = true};
int			fms_settings_min_rows = 100; /* from there, fmsort is as fast */
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
	GUC_check_errdetail("\"fmsort.block_size\" must be 0 or a multiple of %d bytes between %d and %d.",
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

static void
define_debug(const char *name, const char *description, bool *setting)
{
	DefineCustomBoolVariable(name, description, NULL, setting, *setting,
							 PGC_SUSET, GUC_NOT_IN_SAMPLE | GUC_EXPLAIN,
							 NULL, NULL, NULL);
}

void
fms_settings_define(void)
{
	DefineCustomEnumVariable("fmsort.mode",
							 "Selects how sorts that do not fit into work_mem are merged.",
							 "\"fmsort\" reads blocks ahead in the order in which the merge needs them, \"off\" uses PostgreSQL's own sort; the other values exist for comparison.",
							 (int *) &fms_settings.mode, FMS_MODE_FMSORT,
							 mode_values,
							 PGC_USERSET, GUC_EXPLAIN, NULL, NULL, NULL);
	DefineCustomIntVariable("fmsort.assist_blocks",
							"Sets the number of blocks that a merge reads at once.",
							"0 chooses automatically.",
							(int *) &fms_settings.assist_blocks, 0, 0,
							FMS_ASSIST_MAX_BLOCKS,
							PGC_USERSET, GUC_EXPLAIN, NULL, NULL, NULL);
	DefineCustomIntVariable("fmsort.block_size",
							"Sets the size of the blocks of sorted runs.",
							"A multiple of 512 bytes; 0 chooses automatically.",
							(int *) &fms_settings.block_bytes, 0, 0,
							FMS_BLOCK_MAX_BYTES,
							PGC_USERSET, GUC_EXPLAIN | GUC_UNIT_BYTE,
							check_block_size, NULL, NULL);
	DefineCustomEnumVariable("fmsort.io_method",
							 "Selects the method for I/O on temporary files of sorts.",
							 "\"auto\" uses io_uring if the kernel offers it, else synchronous I/O.",
							 (int *) &fms_settings.io_method, FMS_IO_AUTO,
							 io_method_values,
							 PGC_USERSET, GUC_EXPLAIN, NULL, NULL, NULL);
	DefineCustomEnumVariable("fmsort.direct_io",
							 "Sets whether sorts bypass the page cache.",
							 "\"auto\" decides by the size of the spill, the free memory and the speed of the device; \"on\" raises an error if the file system refuses direct I/O.",
							 (int *) &fms_settings.direct_io, FMS_DIRECT_AUTO,
							 switch_values,
							 PGC_USERSET, GUC_EXPLAIN, NULL, NULL, NULL);
	DefineCustomEnumVariable("fmsort.compression",
							 "Sets whether sorts compress their temporary files.",
							 "\"auto\" compresses if the device is slow and the spill is not expected to stay in memory.",
							 (int *) &fms_settings.compression,
							 FMS_COMPRESS_AUTO, switch_values,
							 PGC_USERSET, GUC_EXPLAIN, NULL, NULL, NULL);
	DefineCustomBoolVariable("fmsort.checksums",
							 "Enables checksums in temporary files of sorts.",
							 "A block whose bytes have changed raises an error.",
							 &fms_settings.checksums, false,
							 PGC_USERSET, GUC_EXPLAIN, NULL, NULL, NULL);
	DefineCustomBoolVariable("fmsort.parallel",
							 "Enables parallel sorts whose runs are merged by the leader.",
							 "If disabled, each worker sorts, and Gather Merge merges the workers' rows.",
							 &fms_settings_parallel, true,
							 PGC_USERSET, GUC_EXPLAIN, NULL, NULL, NULL);
	DefineCustomIntVariable("fmsort.log_min_duration",
							"Sets the minimum execution time above which sorts will be logged.",
							"The time excludes the sort's input and the nodes above it. -1 disables logging, 0 logs all sorts.",
							&fms_settings_log_min_duration_ms, -1, -1, INT_MAX,
							PGC_SUSET, GUC_UNIT_MS, NULL, NULL, NULL);
	DefineCustomIntVariable("fmsort.min_rows",
							"Sets the number of expected rows from which on fmsort replaces a sort.",
							"0 replaces all sorts.",
							&fms_settings_min_rows, 100, 0, INT_MAX,
							PGC_USERSET, GUC_EXPLAIN, NULL, NULL, NULL);
	define_debug("fmsort.debug_cutoff",
				 "Enables refusing rows beyond a LIMIT in sorts that spill.",
				 &fms_settings.cutoff);
	define_debug("fmsort.debug_group_filter",
				 "Enables dropping rows of a group that the node above does not want.",
				 &fms_settings_group_filter);
	define_debug("fmsort.debug_materialize",
				 "Writes a sort's result to disk before it is returned.",
				 &fms_settings.materialize);
	define_debug("fmsort.debug_skip",
				 "Enables passing over the rows of an OFFSET or a MOVE.",
				 &fms_settings.skips);
	MarkGUCPrefixReserved("fmsort");
}

void
fms_settings_snapshot(FmsOptions *options, double expected_bytes)
{
	*options = fms_settings;
	options->memory_bytes = (Size) work_mem * 1024;
	options->expected_bytes = expected_bytes;
}
