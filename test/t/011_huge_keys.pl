# Keys of almost a gigabyte, the largest value that PostgreSQL allows: a record
# and its first key are larger than palloc() gives without being asked.
#
# FMSORT_LONG=1 runs it: a minute, 8 GB of memory, 6 GB of disk.
#
# Seen to fail with: first keys reserved without MCXT_ALLOC_HUGE ("invalid
# memory alloc request size").

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use FmsTest;
use PostgreSQL::Test::Utils;
use Test::More;

plan skip_all => 'FMSORT_LONG=1 sorts keys of a gigabyte, for a minute'
  unless $ENV{FMSORT_LONG};

my $node = fms_node('huge_keys');
my ($lengths, $method) = split /\n/, $node->safe_psql('postgres', <<'EOT');
SET work_mem = '4MB';
SELECT array_agg(octet_length(t)) FROM (
  SELECT t FROM (
    SELECT repeat('x', 1073741700 - g) COLLATE "C" AS t
    FROM generate_series(1, 2) g OFFSET 0) s
  ORDER BY t) r;
SELECT sort_method FROM fmsort_last_sort();
EOT

is($lengths, '{1073741698,1073741699}', 'the shorter key first');
is($method, 'external merge', '... from disk');

$node->stop;
done_testing();
