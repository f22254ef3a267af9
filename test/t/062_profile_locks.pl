# A sort that spills reads the device's profile in the middle of a user's
# transaction.  It leaves no lock there, neither on the tables nor a predicate
# lock, so it is no reason for a serialization failure.
#
# Seen to fail with: a profile that is scanned with an MVCC snapshot.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use FmsTest;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = fms_node('locks');

$node->safe_psql('postgres', <<'EOT');
CREATE TABLE noted (x int);
INSERT INTO fmsort_device_profile SELECT oid, NULL, NULL, now(), 'none',
  'none', 'sync', 1, 1 FROM pg_tablespace;
INSERT INTO fmsort_device_rate SELECT t.oid, 'random_read', 512 << b,
  1 << d, (512 << b) * 1000::bigint
  FROM pg_tablespace t, generate_series(0, 13) b, generate_series(0, 6) d;
EOT

my $sort = "SELECT count(*) FROM (SELECT g FROM generate_series(1, 100000) g
  ORDER BY -g OFFSET 0) s";
# on a table of ours, an index of one, or a toast table of one
my $locks = "SELECT count(*) FROM pg_locks l JOIN pg_class c ON c.oid = l.relation
  WHERE pid = pg_backend_pid() AND relname ~ 'fmsort'";

foreach my $level ('READ COMMITTED', 'REPEATABLE READ', 'SERIALIZABLE')
{
	my $session = $node->background_psql('postgres');

	$session->query_safe("SET work_mem = '2MB'; BEGIN ISOLATION LEVEL $level");
	$session->query_safe($sort);
	is($session->query_safe(
			'SELECT block_size > 65536 FROM fmsort_last_sort()'), 't',
		"$level: a sort has read the profile");
	is($session->query_safe($locks), '0', '... and left no lock');
	$session->query_safe('COMMIT');
	$session->quit;
}

# Each reads what the other writes, if the sort's reading counts.
{
	my $one = $node->background_psql('postgres', on_error_stop => 0);

	$one->query_safe("SET work_mem = '2MB'; BEGIN ISOLATION LEVEL SERIALIZABLE");
	$one->query_safe($sort);
	$one->query_safe('INSERT INTO noted VALUES (1)');
	my ($status, undef, $err) = $node->psql('postgres',
		'BEGIN ISOLATION LEVEL SERIALIZABLE;
		 SELECT count(*) FROM noted;
		 UPDATE fmsort_device_rate SET bytes_per_second = bytes_per_second + 1;
		 COMMIT');
	is($err, '', 'another transaction writes the profile');
	$one->query('COMMIT');
	is($node->safe_psql('postgres', 'TABLE noted'), '1',
		'... and that is no serialization failure');
	$one->quit;
}

# Parallel workers read it as well.
is( $node->safe_psql('postgres', "SET parallel_setup_cost = 0;
		SET parallel_tuple_cost = 0; SET min_parallel_table_scan_size = 0;
		CREATE TABLE p AS SELECT g, repeat('x', 50) AS t
		  FROM generate_series(1, 200000) g;
		ANALYZE p; SET work_mem = '1MB';
		BEGIN ISOLATION LEVEL SERIALIZABLE;
		SELECT count(t) FROM (SELECT * FROM p ORDER BY -g OFFSET 0) s;
		$locks"),
	"200000\n0", 'parallel workers: no lock stays');

$node->stop;
done_testing();
