# FMSort in parallel workers, below Gather Merge.  There the order of ties is
# not defined, so what is checked is the order of the keys and the set of rows.
#
# Every version: the executor starts and asks the workers.
#
# Seen to fail with: custom_private of node.c without the collations; workers
# that do not report (report() in node.c empty).

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use FmsTest;
use JSON::PP;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = fms_node('parallel', "work_mem = '128kB'",
	'max_parallel_workers_per_gather = 2', 'max_worker_processes = 8',
	'parallel_setup_cost = 0', 'parallel_tuple_cost = 0',
	'min_parallel_table_scan_size = 0', 'fmsort.parallel = off',
	'log_temp_files = 0',
	'log_min_messages = debug1', "log_line_prefix = '%p %b '");

$node->safe_psql('postgres', <<'EOT');
CREATE TABLE t AS SELECT i AS id, (i::bigint * 7919 % 10007)::int AS k,
  CASE i % 2 WHEN 0 THEN md5((i % 500)::text)
    ELSE upper(md5((i % 500)::text)) END AS t, repeat('.', 60) AS pay
FROM generate_series(1, 60000) i;
ANALYZE t;
EOT

# The Gather Merge.  A worker may not be had for want of a slot: ask until both
# were there.
sub explain_with_workers
{
	my ($settings, $query) = @_;
	my $plan;

	wait_until(
		sub {
			my $json = $node->safe_psql('postgres',
				"$settings EXPLAIN (ANALYZE, VERBOSE, FORMAT JSON) $query");

			$plan = decode_json($json)->[0]{Plan};
			$plan = $plan->{Plans}[0] if $plan->{'Node Type'} eq 'Limit';
			return ($plan->{'Workers Launched'} // 0) == 2;
		}) or die 'two workers are not to be had';
	return $plan;
}

foreach my $method (uring_works($node) ? qw(io_uring sync) : 'sync')
{
	foreach my $mode (qw(fmsort double_buffering traditional flash))
	{
		my $name = "$mode, $method";
		my $settings = "SET fmsort.mode = $mode;
			SET fmsort.io_method = $method; SET fmsort.block_size = 1024;
			SET parallel_leader_participation = off;";
		my $log_start = -s $node->logfile;
		my $plan =
		  explain_with_workers($settings, 'SELECT * FROM t ORDER BY k, t');
		my $log = slurp_file($node->logfile, $log_start);

		is($plan->{'Node Type'}, 'Gather Merge', "$name: a parallel plan");
		is($plan->{Plans}[0]{'Custom Plan Provider'},
			'FMSort', "$name: ... with FMSort below it");
		is($plan->{Plans}[0]{'Actual Rows'} * $plan->{Plans}[0]{'Actual Loops'},
			60000, "$name: ... that sorts all rows");

		my %spilled = map { $_ => 1 }
		  $log =~ /^(\d+) parallel worker LOG:  .*temporary file: path/mg;
		cmp_ok(scalar(keys %spilled), '>=', 2,
			"$name: both workers have spilled");

		my $workers = $plan->{Plans}[0]{'Sort Workers'} // [];
		is(scalar(@$workers), 2, "$name: EXPLAIN has a report of each");
		is_deeply([ map { $_->{'Worker Number'} } @$workers ],
			[ 0, 1 ], "$name: ... by its number");
		is((grep { $_->{'Sort Method'} eq 'external merge'
					&& $_->{Runs} > 1
					&& $_->{Blocks} > $_->{Runs}
					&& $_->{'Merge Mode'} eq $mode
					&& $_->{'I/O Method'} eq $method
					&& $_->{'Merge Time'} > 0 } @$workers),
			2, "$name: ... that tells how it sorted");
		# with the leader not taking part there is nothing else to tell
		ok(!exists $plan->{Plans}[0]{'Sort Method'},
			"$name: ... and the leader did not");

		# not the same as by C: there all upper case comes first
		foreach my $keys ('k', 'k DESC, t COLLATE "C"', 't, k DESC',
			't COLLATE "und-x-icu"')
		{
			my $sql = <<EOT;
$settings
SELECT count(*), sum(id), sum(length(pay)), md5(string_agg(k || t, '')) FROM
  (SELECT * FROM t ORDER BY $keys, k, t OFFSET 0) s;
EOT
			is($node->safe_psql('postgres', $sql),
				$node->safe_psql('postgres',
					"$sql" =~ s/SET fmsort\.mode = \w+/SET fmsort.mode = off/r),
				"$name: by $keys: the same rows in the order of the keys");
		}
	}
}

# A LIMIT's bound reaches the workers, and what they report is complete even
# though it ends them early.
{
	my $plan = explain_with_workers(
		'SET parallel_leader_participation = off;',
		'SELECT * FROM t ORDER BY t, k LIMIT 7');
	my $sort = $plan->{Plans}[0];

	is($plan->{'Node Type'}, 'Gather Merge', 'LIMIT: a parallel plan');
	# one of them may have got next to no rows, and sorted those in memory
	my @methods = map { $_->{'Sort Method'} } @{ $sort->{'Sort Workers'} };
	is((grep { $_ eq 'top-N' || $_ eq 'in-memory' } @methods),
		2, 'LIMIT: each worker keeps only what is wanted');
	ok((grep { $_ eq 'top-N' } @methods), 'LIMIT: ... and drops the rest');
	ok( wait_until(
			sub {
				$node->safe_psql('postgres', <<'EOT') eq "7\n2|60000|0";
SET parallel_leader_participation = off;
SELECT count(*) FROM (SELECT * FROM t ORDER BY t, k LIMIT 7) s;
SELECT count(*), sum(tuples),
  count(*) FILTER (WHERE sort_method = 'external merge')
FROM fmsort_last_sort();
EOT
			}),
		'LIMIT: fmsort_last_sort() has a row a worker');
}

# The leader sorts, too.
is( $node->safe_psql('postgres',
		'SELECT count(*), sum(id) FROM (SELECT * FROM t ORDER BY k OFFSET 0) s'),
	'60000|1800030000',
	'with the leader taking part');

# Other parents of a parallel sort.
foreach my $query (
	'SELECT count(*), sum(n) FROM (SELECT k, count(*) AS n FROM t
	 GROUP BY k) s',
	'SELECT count(*), sum(a.id) FROM t a JOIN t b ON a.id = b.id',
	'SELECT count(*) FROM (SELECT DISTINCT t FROM t) s')
{
	my $set = 'SET enable_hashagg = off; SET enable_hashjoin = off;
		SET enable_nestloop = off; SET fmsort.mode =';

	is( $node->safe_psql('postgres', "$set fmsort; $query"),
		$node->safe_psql('postgres', "$set off; $query"),
		'the same answer: ' . $query =~ s/\s+/ /gr);
}

# An error in a worker, in the middle of its merge, and one in the leader.
foreach my $query (
	'SELECT sum(1 / (length(pay) - 60 + (k - 5000))) FROM
	 (SELECT * FROM t ORDER BY k OFFSET 0) s',
	'SELECT sum(x) FROM (SELECT k, 1 / (id - 59000) AS x FROM t
	 ORDER BY k OFFSET 0) s')
{
	my ($status, $out, $err) = $node->psql('postgres', $query);

	like($err, qr/division by zero/, 'an error: ' . $query =~ s/\s+/ /gr);
	ok(wait_until(sub { !temp_files($node) }), '... leaves no file');
}

# Workers that die while they sort: one is told to, one is killed.  All rows of
# a late page sleep, so a worker is certain to have spilled by then.
sub sort_until_a_worker_sleeps
{
	my $session = $node->background_psql('postgres', on_error_stop => 0);
	my $worker;

	$session->query_until(qr/started/, <<'EOT');
SET parallel_leader_participation = off;
\echo started
SELECT count(pay) FROM (SELECT * FROM t
  WHERE id NOT BETWEEN 50000 AND 50100 OR pg_sleep(600) IS NOT NULL
  ORDER BY k OFFSET 0) s;
EOT
	wait_until(
		sub {
			$worker = $node->safe_psql('postgres', <<'EOT');
SELECT pid FROM pg_stat_activity
WHERE backend_type = 'parallel worker' AND wait_event = 'PgSleep' LIMIT 1
EOT
			return $worker ne '';
		}) or die 'no worker went to sleep';
	return ($session, $worker);
}

{
	my ($session, $worker) = sort_until_a_worker_sleeps();

	isnt(join(' ', temp_files($node)), '', 'a worker has spilled');
	$node->safe_psql('postgres', "SELECT pg_terminate_backend($worker)");
	$session->{stderr} = '';
	is($session->query('SELECT 1'), '1',
		'a worker that is terminated does not end the session');
	like($session->{stderr}, qr/terminating (connection|background worker)/,
		'... whose query fails');
	ok(wait_until(sub { !temp_files($node) }), '... and leaves no file');
	$session->quit;

	($session, $worker) = sort_until_a_worker_sleeps();
	kill 'KILL', $worker;
	ok(wait_until(sub { !-e "/proc/$worker" && connects($node) }),
		'the server comes back after a worker was killed');
	eval { $session->quit };
	ok(wait_until(sub { !temp_files($node) }), '... and no file is left');
	is( $node->safe_psql('postgres',
			'SELECT count(*), sum(id) FROM
			 (SELECT * FROM t ORDER BY k OFFSET 0) s'),
		'60000|1800030000',
		'... and the next sort is right');
}

$node->stop;
done_testing();
