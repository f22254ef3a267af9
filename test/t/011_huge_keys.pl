# A key of almost a gigabyte, the largest value that PostgreSQL allows: its
# record and its first key are larger than palloc() gives without being asked.
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

$node->stop;
done_testing();
