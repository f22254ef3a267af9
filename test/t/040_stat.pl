# fmsort_stat: what the sorts of a database have done, counted once each,
# whoever did it and however the session ends; and who may reset it.
#
#   FMSORT_RAMFS     a directory on a file system without direct I/O, see
#                    003_filesystems.pl
#
# Every version: shared memory, and plans that are counted.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use FmsTest;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = fms_node('stat', 'parallel_setup_cost = 0',
	'parallel_tuple_cost = 0', 'min_parallel_table_scan_size = 0',
	'max_worker_processes = 8');

$node->safe_psql('postgres', <<'EOT');
CREATE TABLE t AS SELECT i AS id, (i::bigint * 7919 % 10007)::int AS k,
  repeat('.', 50) AS pay FROM generate_series(1, 50000) i;
ANALYZE t;
CREATE ROLE plain LOGIN;
CREATE DATABASE other;
EOT
$node->safe_psql('other', 'CREATE EXTENSION fmsort');

# ---- without shared memory -----------------------------------------------------

foreach my $what ('SELECT * FROM fmsort_stat', 'SELECT fmsort_stat_reset()',
	'SELECT * FROM fmsort_progress')
{
	my $err;

	$node->psql('postgres', "\\set VERBOSITY verbose\n$what",
		stderr => \$err);
	like(
		$err,
		qr/ERROR:  55000: fmsort must be loaded via "shared_preload_libraries"/,
		"$what: says what to do");
}

# with another library that has the same hooks
$node->append_conf('postgresql.conf',
	"shared_preload_libraries = 'pg_stat_statements, fmsort'");
$node->restart;
$node->safe_psql('postgres', 'CREATE EXTENSION pg_stat_statements;
	SELECT count(*) FROM (SELECT * FROM t ORDER BY k OFFSET 0) s');
cmp_ok($node->safe_psql('postgres',
		q{SELECT sum(calls) FROM pg_stat_statements
		  WHERE query LIKE '%ORDER BY k OFFSET%'}),
	'>', 0, 'a library loaded before sees the same queries');

# ---- what is counted -----------------------------------------------------------

my $columns = 'sorts, sorts_in_memory, sorts_top_n, sorts_external, tuples,
  bytes_spilled, bytes_read, bytes_written, runs, merge_passes,
  sorts_multi_pass, blocks, reads, read_batches, writes, spills_avoided,
  bytes_kept > 0, duplicates_dropped, io_uring_refused, block_size_lowered,
  left_to_server';
my @sums = qw(sorts sorts_in_memory sorts_top_n sorts_external tuples
  bytes_spilled bytes_read bytes_written runs merge_passes sorts_multi_pass
  blocks reads read_batches writes spills_avoided any_kept duplicates_dropped
  io_uring_refused block_size_lowered left_to_server);

sub reset_stat
{
	$node->safe_psql('postgres', 'SELECT fmsort_stat_reset()');
}

sub stat_of
{
	my ($database) = @_;
	my $row = $node->safe_psql('postgres',
		"SELECT $columns FROM fmsort_stat WHERE datname = '$database'");
	my %stat;

	@stat{@sums} = split /\|/, $row;
	return \%stat;
}

my $in_memory = "SET work_mem = '64MB';
SELECT count(*) FROM (SELECT * FROM t ORDER BY k OFFSET 0) s;";
my $top_n = "SET work_mem = '1MB';
SELECT count(*) FROM (SELECT * FROM t ORDER BY k LIMIT 10) s;";
my $small_top_n = "SET work_mem = '64MB';
SELECT count(*) FROM (SELECT * FROM t ORDER BY k LIMIT 10) s;";
my $external = "SET work_mem = '512kB'; SET fmsort.block_size = 2048;
SELECT count(*) FROM (SELECT * FROM t ORDER BY k OFFSET 0) s;";
my $groups = "SET work_mem = '64kB';
SELECT count(*) FROM (SELECT DISTINCT ON (id / 3) * FROM t) s;";
my $several_passes = "SET work_mem = '64kB'; SET fmsort.block_size = 8192;
SELECT count(*) FROM (SELECT * FROM t ORDER BY k OFFSET 0) s;";

reset_stat();
$node->safe_psql('postgres', $in_memory);
$node->safe_psql('postgres', $top_n);
$node->safe_psql('postgres', $small_top_n);
my $stat = stat_of('postgres');
is( join(' ',
		@$stat{
			qw(sorts sorts_in_memory sorts_top_n sorts_external
			  tuples spills_avoided bytes_spilled)
		}),
	'3 1 2 0 150000 1 0',
	'in memory, and two top-N of which one would have spilled');

# the same numbers as the session itself has of each
reset_stat();
my %sum;
foreach my $query ($external, $several_passes, $groups)
{
	my @last = split /\|/, $node->safe_psql('postgres', $query . <<'EOT') =~ s/.*\n//sr;
SELECT tuples, bytes_spilled, bytes_read, bytes_written, runs, merge_passes,
  blocks, reads, read_batches, writes, duplicates_dropped
FROM fmsort_last_sort()
EOT
	foreach my $name (
		qw(tuples bytes_spilled bytes_read bytes_written runs
		merge_passes blocks reads read_batches writes duplicates_dropped))
	{
		$sum{$name} += shift @last;
	}
}
$stat = stat_of('postgres');
is_deeply({ map { $_ => $stat->{$_} } keys %sum },
	\%sum, 'external sorts: what fmsort_last_sort() says of each, added up');
is($stat->{sorts_external}, 3, '... three of them');
cmp_ok($stat->{sorts_multi_pass}, '>', 0, '... one with more than one pass');
cmp_ok($stat->{duplicates_dropped}, '>', 0, '... one of groups');

# ---- fall-backs ----------------------------------------------------------------

reset_stat();
$node->safe_psql('postgres', "SET work_mem = '64kB';
	SET fmsort.block_size = '4MB';
	SELECT count(*) FROM (SELECT * FROM t ORDER BY k OFFSET 0) s");
is(stat_of('postgres')->{block_size_lowered},
	1, 'a block size that work_mem does not hold');
reset_stat();
$node->safe_psql('postgres', "SET enable_hashagg = off;
	SELECT k, id, count(*) FROM t GROUP BY GROUPING SETS ((k), (id), (pay))");
is(stat_of('postgres')->{left_to_server},
	2, 'sorts of later grouping sets');

SKIP:
{
	my $ramfs = $ENV{FMSORT_RAMFS};

	if (!$ramfs)
	{
		die 'FMSORT_RAMFS is not set' if $ENV{CI};
		skip 'FMSORT_RAMFS is not set', 1;
	}
	my $dir = "$ramfs/fmsort_stat_$$";

	mkdir $dir or die "$dir: $!";
	$node->safe_psql('postgres', "CREATE TABLESPACE ram LOCATION '$dir'");
	reset_stat();
	# more than a 32nd of any memory, by the planner's guess
	$node->safe_psql('postgres', "SET temp_tablespaces = ram;
		SET work_mem = '64kB'; SET fmsort.direct_io = auto;
		SELECT count(*) FROM (SELECT repeat('.', 10000)::char(10000) AS pay
		  FROM generate_series(1, 300) a, generate_series(1, 10) b
		  ORDER BY a OFFSET 0) s;
		CREATE FUNCTION many() RETURNS SETOF int LANGUAGE sql ROWS 1e12
		AS 'SELECT generate_series(1, 20000)';
		SELECT count(*) FROM (SELECT * FROM many() g ORDER BY -g OFFSET 0) s");
	is( $node->safe_psql('postgres',
			"SELECT direct_io_refused FROM fmsort_stat
			 WHERE datname = 'postgres'"),
		1,
		'a file system that refuses direct I/O; not a small spill');
	$node->safe_psql('postgres', 'DROP TABLESPACE ram; DROP FUNCTION many()');
	rmdir $dir;
}

# ---- once each, whoever did it ---------------------------------------------------

sub sorts_of_workers
{
	my $plan;

	wait_until(
		sub {
			reset_stat();
			$plan = $node->safe_psql('postgres', "SET work_mem = '64MB';
				SET max_parallel_workers_per_gather = 2;
				SET fmsort.parallel = off;
				SET parallel_leader_participation = off;
				EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF)
				SELECT * FROM t ORDER BY k");
			return $plan =~ /Workers Launched: 2/;
		}) or die 'two workers are not to be had';
	return $plan;
}

like(sorts_of_workers(), qr/Gather Merge/, 'a parallel plan');
$stat = stat_of('postgres');
is("$stat->{sorts} $stat->{tuples}", '2 50000', 'workers count what they do');

reset_stat();
$node->safe_psql('other',
	'SELECT count(*) FROM (SELECT i FROM generate_series(1, 99) i ORDER BY -i OFFSET 0) s');
is(stat_of('other')->{tuples}, 99, 'every database by itself');
is(stat_of('postgres')->{tuples} // 0, 0, '... and not in another one');

reset_stat();
my $err;
$node->psql('postgres',
	'SELECT 1 / (k - 5000) FROM (SELECT k FROM t ORDER BY k OFFSET 0) s',
	stderr => \$err);
like($err, qr/division by zero/, 'a query that fails');
is(stat_of('postgres')->{sorts}, 0, '... is not counted');

# ---- when it is to be seen -------------------------------------------------------

my $session = $node->background_psql('postgres');

reset_stat();
$session->query_safe('SET enable_seqscan = off; SET max_parallel_workers = 0;
	CREATE INDEX ON t (id); BEGIN;
	SELECT count(*) FROM generate_series(1, 210) a,
	  LATERAL (SELECT k FROM t WHERE id < a % 5 ORDER BY k OFFSET 0) s');
is(stat_of('postgres')->{sorts}, 0, 'sorts wait for the commit');
is( $session->query_safe("SELECT sorts FROM fmsort_stat
	WHERE datname = 'postgres'"),
	210,
	'... but not for the session itself');
$session->query_safe('SELECT count(*) FROM (SELECT 1 ORDER BY random()) s;
	COMMIT');
is(stat_of('postgres')->{sorts}, 211, '... and then others see them');
$session->query_safe('BEGIN;
	SELECT count(*) FROM (SELECT k FROM t ORDER BY k OFFSET 0) s');
$session->quit;
ok(wait_until(sub { stat_of('postgres')->{sorts} == 212 }),
	'a session that ends leaves its numbers behind');

# ---- who may -----------------------------------------------------------------------

is( $node->safe_psql(
		'postgres',
		"SELECT sorts FROM fmsort_stat WHERE datname = 'postgres'",
		extra_params => [ '-U', 'plain' ]),
	212,
	'everybody may look');
$node->psql(
	'postgres', "\\set VERBOSITY verbose\nSELECT fmsort_stat_reset()",
	stderr       => \$err,
	extra_params => [ '-U', 'plain' ]);
like($err, qr/ERROR:  42501: permission denied/, '... but not reset');
$node->safe_psql('postgres',
	'GRANT EXECUTE ON FUNCTION fmsort_stat_reset() TO plain');
$node->safe_psql(
	'postgres',
	'SELECT fmsort_stat_reset()',
	extra_params => [ '-U', 'plain' ]);
is(stat_of('postgres')->{sorts}, 0, '... unless allowed to');

$node->stop;
done_testing();
