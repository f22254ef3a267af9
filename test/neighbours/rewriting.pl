# What administrators rewrite in order: pg_repack with --order-by, CREATE TABLE AS
# ... ORDER BY, REFRESH of an ordered materialized view.
#
# Seen to fail with: fmsort.mode = off.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use Neighbours;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = start_server(
	'rewriting', "work_mem = '64kB'",
	"maintenance_work_mem = '1MB'",
	'auto_explain.log_min_duration = 0',
	'auto_explain.log_analyze = on');

$node->safe_psql('postgres', <<'EOT');
CREATE EXTENSION pg_repack;
CREATE TABLE t AS SELECT i AS id, i::bigint * 7919 % 10007 AS k,
  repeat('t', 80) AS pad FROM generate_series(1, 20000) i;
CREATE MATERIALIZED VIEW seen AS SELECT * FROM t ORDER BY k, id;
EOT

# The tables' rows as they lie there afterwards, and the nodes that sorted them on
# disk.
sub rewritten
{
	my ($order) = @_;
	my $log_start = -s $node->logfile;

	$node->safe_psql('postgres', <<'EOT');
DROP TABLE IF EXISTS made, packed;
CREATE TABLE packed AS SELECT * FROM t;
ALTER TABLE packed ADD PRIMARY KEY (id);
CREATE TABLE made AS SELECT * FROM t ORDER BY k, id;
REFRESH MATERIALIZED VIEW seen;
EOT
	$node->command_ok(
		[ 'pg_repack', '-d', 'postgres', '-t', 'packed', '-o', 'k, id' ],
		"$order: pg_repack");
	my @nodes = slurp_file($node->logfile, $log_start) =~
	  /(\w+)\)?  \(cost.*\n\s+Sort Key: (?:\w+\.)?k, (?:\w+\.)?id\n\s+Sort Method: external/g;

	return (
		$node->safe_psql('postgres', join ' UNION ALL ', map {
			"SELECT md5(string_agg(id::text, ',' ORDER BY ctid)) FROM $_"
		} qw(made seen packed)), "@nodes");
}

my ($rows, $nodes) = rewritten('without fmsort');
is($nodes, 'Sort Sort Sort', 'without fmsort: three sorts');
like($rows, qr/^(\w+)\n\g1\n\g1$/, 'without fmsort: rows are in the same order');
foreach my $order (orders())
{
	server_in_order($node, $order);
	is_deeply([ rewritten($order) ], [ $rows, 'FMSort FMSort FMSort' ],
		"$order: fmsort sorts, and rows lie as without it");
	no_accident($node, $order);
}

$node->stop;
done_testing();
