# A key of almost a gigabyte, the largest value that PostgreSQL allows: its
# record and its first key are larger than palloc() gives without being asked.
# A row of more than a gigabyte is refused as PostgreSQL's sort refuses it.
# Takes 5 GB of memory and 3 GB of disk.
#
# Seen to fail with: memory reserved without MCXT_ALLOC_HUGE in record.h,
# first_key_store.c, first_key_reader.c or leaf.c.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use FmsTest;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = fms_node('huge_keys');
my ($lengths, $method) = split /\n/, $node->safe_psql('postgres', <<'EOT');
SET work_mem = '64kB';
SELECT array_agg(octet_length(t)) FROM (
  SELECT t FROM (
    SELECT repeat('x', n) COLLATE "C" AS t
    FROM unnest('{1073741799, 1}'::int[]) AS n OFFSET 0) s
  ORDER BY t) r;
SELECT sort_method FROM fmsort_last_sort();
EOT

is($lengths, '{1,1073741799}', 'the short key first');
is($method, 'external merge', '... from disk');

# a byte more than palloc() gives, in a row that is not stored yet
my $query = <<'EOT';
SELECT length(t) FROM (SELECT repeat('t', 536870000 + 0 * a) AS t,
  repeat('u', 536871808 + 0 * a) AS u FROM generate_series(1, 1) a
  ORDER BY a OFFSET 0) s WHERE length(u) > 0
EOT
foreach my $mode (qw(off fmsort))
{
	my (undef, undef, $error) =
	  $node->psql('postgres', "SET fmsort.mode = $mode; $query");

	like($error, qr/invalid memory alloc request size|tuple is too big/,
		"a row of more than a gigabyte is refused: $mode");
}

$node->stop;
done_testing();
