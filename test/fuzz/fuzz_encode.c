/* links:  */
/*
 * The key encoder: rows of columns that the fuzzer chooses, in pairs; the
 * order of their keys has to be the order of their values.
 *
 * All of it is the unit test's (test_encode.c): values, comparators and what
 * has to hold.  There chance picks the values; here the fuzzer does, guided by
 * which branches of the encoder it reaches.
 *
 * Seen to fail with: an interval whose rest of a day may be negative.
 */
#define main encode_main
#include "../unit/keys/test_encode.c"
#undef main

int			LLVMFuzzerTestOneInput(const uint8 *bytes, size_t length);

int
LLVMFuzzerTestOneInput(const uint8 *bytes, size_t length)
{
	Column		columns[3];
	Value		a[3];
	Value		b[3];
	int			n;
	int			i;

	shim_feed(bytes, length);
	n = 1 + shim_below(3);
	for (i = 0; i < n; i++)
	{
		columns[i].kind = shim_below(NKINDS);
		columns[i].descending = shim_below(2);
		columns[i].nulls_first = shim_below(2);
		a[i] = some_value(columns[i].kind);
		b[i] = some_other_value(columns[i].kind, &a[i]);
		a[i].is_null = shim_below(8) == 7;
		b[i].is_null = shim_below(8) == 7;
	}
	if (!check_pair(columns, n, a, b))
		abort();
	return 0;
}
