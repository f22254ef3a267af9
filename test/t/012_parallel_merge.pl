# Parallel sorts whose workers form runs that the leader merges: the same rows
# as PostgreSQL's, however many participants there are; nothing left behind by
# whatever goes wrong; all numbers counted once.
#
# Ties of different participants have no order, so keys are compared in
# sequence, and rows as a set.
#
# Every version: the executor starts and asks the workers.
#
# The small file systems are those of 020_no_room.pl.  Without them their part is
# skipped and says so.
#
# Seen to fail with: share.c deleting the files too early; runs that are not
# moved to their file's addresses; the leader's runs only; nulls of workers left
# out; bounds that do not reach workers; a rescan that keeps the old share; ids
# of runs that are not unique; a leader that keeps the segment after an error.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use FmsTest;
use JSON::PP;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = fms_node('parallel_merge', "work_mem = '128kB'",
	'max_parallel_workers_per_gather = 2', 'max_worker_processes = 8',
	'parallel_setup_cost = 0', 'parallel_tuple_cost = 0',
	'min_parallel_table_scan_size = 0', 'log_temp_files = 0',
	"log_line_prefix = '%p %b '", 'max_files_per_process = 64',
	"shared_preload_libraries = 'fmsort'");

$node->safe_psql('postgres', <<'EOT');
CREATE TABLE t AS SELECT i AS id, (i::bigint * 7919 % 10007)::int AS k,
  CASE i % 2 WHEN 0 THEN md5((i % 500)::text)
    ELSE upper(md5((i % 500)::text)) END AS t, repeat('.', 60) AS pay,
  nullif(i % 50, 7) AS n
FROM generate_series(1, 60000) i;
CREATE TABLE few AS SELECT i AS id, i % 7 AS k FROM generate_series(1, 20) i;
ANALYZE;
EOT

my $both = 'SET parallel_leader_participation = off;';

sub answer
{
	my ($sql) = @_;

	return $node->safe_psql('postgres', $sql);
}

# The plan from its first FMSort on, with two workers: one may not be had for
# want of a slot.
sub plan_of
{
	my ($settings, $query, $workers) = @_;
	my $plan;

	$workers //= 2;
	wait_until(
		sub {
			$plan = decode_json(
				answer("$settings EXPLAIN (ANALYZE, VERBOSE, BUFFERS,
					FORMAT JSON) $query"))->[0]{Plan};
			$plan = $plan->{Plans}[0]
			  while ($plan->{'Custom Plan Provider'} // '') ne 'FMSort'
			  && $plan->{Plans};
			my $gather = $plan->{Plans}[0];
			return ($gather->{'Workers Launched'} // 0) == $workers;
		}) or die 'two workers are not to be had';
	return $plan;
}

# The keys in sequence, and the rows as a set: with fmsort and without.
sub same
{
	my ($settings, $from, $keys, $name, $columns) = @_;
	my $sql = "SELECT count(*), md5(string_agg(keys, ',')),
		sum(hashtextextended(whole, 0)) FROM (SELECT ROW($keys)::text AS keys,
		s::text AS whole FROM (SELECT " . ($columns // '*') .
		" FROM $from OFFSET 0) s) r";

	is( answer("$settings $sql"),
		answer("SET fmsort.mode = off;
			SET max_parallel_workers_per_gather = 0; $sql"),
		$name);
	return;
}

# ---- the plan ----------------------------------------------------------------------

my @methods = uring_works($node) ? qw(io_uring sync) : 'sync';

foreach my $method (@methods)
{
	foreach my $mode (qw(fmsort double_buffering traditional multi_block flash))
	{
		my $settings = "SET fmsort.mode = $mode;
			SET fmsort.io_method = $method; SET fmsort.block_size = 1024;";
		my $name = "$mode, $method";
		my $plan = plan_of("$both $settings", 'SELECT * FROM t ORDER BY k, t');
		my $gather = $plan->{Plans}[0];
		my $runs = $gather->{Plans}[0];
		my $parts = $runs->{Participants};

		is( join(' ', $gather->{'Node Type'}, $runs->{'Custom Plan Provider'},
				$gather->{'Actual Rows'} + 0, $runs->{'Actual Rows'} + 0,
				$plan->{'Actual Rows'} + 0),
			'Gather FMSort Runs 0 0 60000',
			"$name: no row goes through Gather");
		is( join(' ', map { $_->{'Worker Number'} } @{$parts}),
			'0 1', "$name: EXPLAIN has both workers");
		is($parts->[0]{Rows} + $parts->[1]{Rows},
			60000, "$name: ... and all rows");
		ok( $parts->[0]{Runs} > 1
			  && $parts->[0]{Runs} + $parts->[1]{Runs} <= $plan->{Runs}
			  && $parts->[0]{'Run Formation Time'} > 0,
			"$name: ... and their runs");
		same($settings, 't ORDER BY k, t', 'k, t', "$name: the same rows");
		same("$both $settings", 't ORDER BY t DESC, k', 't, k',
			"$name: ... without the leader's");
	}
}

foreach my $compression (qw(on off))
{
	my $settings = "SET fmsort.compression = $compression;
		SET fmsort.checksums = on; SET work_mem = '1MB';";

	same($settings, "t ORDER BY $_", s/ DESC//r, "compression $compression: $_")
	  foreach 'k DESC, t COLLATE "C"', 't, k DESC', 't COLLATE "und-x-icu"';
}

# ---- any number of participants --------------------------------------------------

foreach my $workers (0, 1, 2, 4, 8)
{
	same("SET max_parallel_workers_per_gather = 8;
		SET max_parallel_workers = $workers;
		ALTER TABLE t SET (parallel_workers = 8);",
		't ORDER BY k', 'k', "$workers workers can start");
	same("SET max_parallel_workers_per_gather = 8;
		SET max_parallel_workers = $workers; $both",
		't ORDER BY k', 'k', '... without the leader');
}
answer('ALTER TABLE t RESET (parallel_workers)');
same('', "$_ ORDER BY k", 'k', "$_: fewer rows than participants")
  foreach 'few', '(SELECT * FROM t WHERE id < 0) s', '(SELECT * FROM t WHERE
  id = 5) s';

# words, of which nulls are only counted
foreach my $order ('n', 'n NULLS FIRST', 'n DESC', 'n DESC NULLS LAST')
{
	same($_, "t ORDER BY $order", 'n', "words: $order $_", 'n')
	  foreach '', $both, "SET work_mem = '8MB';";
}

# A statement with more sorts than the server has segments.
{
	my $branch = '(SELECT id FROM few ORDER BY k OFFSET 0)';

	answer('ALTER TABLE few SET (parallel_workers = 1)');
	is( answer("SET enable_parallel_append = off; SELECT count(*), sum(id) FROM ("
			  . join(' UNION ALL ', ($branch) x 250) . ') s'),
		'5000|52500',
		'no shared memory: the leader alone');
}

# ---- parents, and what stands between --------------------------------------------

my $sorts = 'SET enable_hashagg = off; SET enable_hashjoin = off;
	SET enable_nestloop = off;';

foreach my $query (
	'SELECT count(*), sum(a.id) FROM t a JOIN t b ON a.id = b.id',
	'SELECT count(*), sum(r) FROM (SELECT rank() OVER (ORDER BY k) AS r FROM t)
	  s',
	'SELECT count(*), sum(n) FROM (SELECT k, count(*) AS n FROM t GROUP BY k) s',
	'SELECT count(*) FROM (SELECT DISTINCT t, k FROM t) s',
	'WITH s AS MATERIALIZED (SELECT * FROM t ORDER BY k, id)
	  SELECT count(*), sum(id) FROM s',
	'SELECT id FROM few WHERE id > (SELECT k FROM t ORDER BY k DESC, t LIMIT 1
	  OFFSET 1) - 10000 ORDER BY id',
	'SELECT count(*), min(id) FROM (SELECT id, random() < 2 AS r FROM t
	  WHERE k > (SELECT min(k) + 3 FROM few) ORDER BY k OFFSET 0) s WHERE r',
	'SELECT sum(v) FROM (VALUES (1), (2), (3)) x(i),
	  LATERAL (SELECT sum(k) AS v FROM (SELECT k FROM t ORDER BY k DESC
		LIMIT 5 + x.i) s) y',
	'SELECT count(*), sum(s.k) FROM (VALUES (1), (2), (3)) x(i),
	  (SELECT k FROM t ORDER BY k LIMIT 50 OFFSET 1) s')
{
	my $stock = 'SET fmsort.mode = off; SET max_parallel_workers_per_gather = 0;';
	my $name = $query =~ s/\s+/ /gr;

	# rescans, if the other tables are small
	my $nested = $query =~ /VALUES/ ? 'SET enable_material = off;
		SET enable_mergejoin = off; SET enable_nestloop = on;' : '';

	foreach my $more ($nested, $both)
	{
		is(answer("$sorts $more $query"), answer("$sorts $stock $query"), $name);
	}
}
foreach my $command ('CREATE TABLE made AS', 'CREATE MATERIALIZED VIEW seen AS')
{
	answer("$command SELECT * FROM t ORDER BY k, id");
}
is( answer('REFRESH MATERIALIZED VIEW seen;
	SELECT count(*), sum(id) FROM seen; SELECT count(*), sum(id) FROM made'),
	"60000|1800030000\n60000|1800030000",
	'CREATE TABLE AS, REFRESH');

# ---- executions ------------------------------------------------------------------

{
	my $session = $node->background_psql('postgres');
	my $first = 'SELECT count(*), sum(id), (array_agg(k))[1:3] FROM
		(SELECT * FROM t WHERE k >= $1 ORDER BY k OFFSET 0) s';

	$session->query_safe("SET plan_cache_mode = force_generic_plan;
		PREPARE p (int) AS $first");
	foreach my $set ('', 'SET fmsort.parallel = off', 'RESET fmsort.parallel',
		'SET fmsort.mode = off', 'RESET fmsort.mode',
		'SET max_parallel_workers = 0', 'RESET max_parallel_workers')
	{
		$session->query_safe($set) if $set;
		is( $session->query_safe('EXECUTE p(9990)'),
			answer('SET fmsort.mode = off; ' . $first =~ s/\$1/9990/r),
			"prepared: $set");
	}
	$session->query_safe('BEGIN ISOLATION LEVEL SERIALIZABLE');
	is($session->query_safe('EXECUTE p(0)') =~ s/\|\{.*//r,
		'60000|1800030000', 'SERIALIZABLE');
	$session->query_safe('DECLARE c CURSOR FOR SELECT k FROM t ORDER BY k');
	is($session->query_safe('FETCH 2 FROM c') =~ s/\n/ /r,
		'0 0', 'a cursor, without workers');
	$session->query_safe('COMMIT');
	$session->quit;
}

# ---- LIMIT -----------------------------------------------------------------------

{
	my $plan = plan_of($both, 'SELECT * FROM t ORDER BY k, id LIMIT 7 OFFSET 2');
	my $written = 0;

	$written += $_->{'Bytes Written'}
	  foreach @{ $plan->{Plans}[0]{Plans}[0]{Participants} };
	cmp_ok($written, '<', 30000, 'LIMIT: workers write what is wanted only');
}
same($_, '(SELECT * FROM t ORDER BY k, id LIMIT 300 OFFSET 10) l', 'k, id',
	"LIMIT $_")
  foreach '', $both, "SET work_mem = '64kB';";
same($_, '(SELECT * FROM t ORDER BY k, id LIMIT 300 OFFSET 50000) l', 'k, id',
	"OFFSET $_")
  foreach '', $both, "SET work_mem = '64kB';";

# ---- numbers that count once -----------------------------------------------------

{
	my $session = $node->background_psql('postgres');
	my $plan;
	my ($from, $total, $log, %files);

	# one pass: what is written twice is in BUFFERS twice
	$session->query_safe("SET work_mem = '1MB'");
	wait_until(
		sub {
			# what was counted before shall not arrive after the reset
			return 0 if $session->query_safe("SELECT count(*)
				FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND
				  backend_type IN ('client backend', 'parallel worker')") > 0;
			$session->query_safe('SELECT pg_stat_force_next_flush()');
			$from = -s $node->logfile;
			$session->query_safe('SELECT pg_stat_reset(); SELECT fmsort_stat_reset()');
			$plan = decode_json(
				$session->query_safe('EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON)
					SELECT * FROM t ORDER BY k'))->[0]{Plan};
			return $plan->{Plans}[0]{'Workers Launched'} == 2;
		}) or die 'two workers are not to be had';
	is($session->query_safe('SELECT count(*), sum(tuples), max(runs) FROM
			fmsort_last_sort()'), "1|60000|$plan->{Runs}",
		'fmsort_last_sort() has the sort once');
	$session->quit;
	ok( wait_until(
			sub {
				answer('SELECT sorts, sorts_external, tuples FROM fmsort_stat
					WHERE datname = current_database()') eq '1|1|60000';
			}),
		'fmsort_stat has it once');

	$log = slurp_file($node->logfile, $from);
	while ($log =~ /temporary file: path "(.*?)", size (\d+)/g)
	{
		ok(!$files{$1}++, 'a file is logged once');
		$total += $2;
	}
	cmp_ok($total, '>=', 1024 * ($plan->{'Sort Space Used'} - 10),
		'log_temp_files has all that was written');
	ok( wait_until(
			sub {
				answer('SELECT temp_files, temp_bytes FROM pg_stat_database
					WHERE datname = current_database()') eq
				  scalar(keys %files) . "|$total";
			}),
		'... and pg_stat_database');
	cmp_ok(
		abs($plan->{'Temp Written Blocks'} - $total / 8192),
		'<', 20, '... and BUFFERS');
}

# ---- what goes wrong ---------------------------------------------------------------

# Directories of temporary tablespaces.
my @places;

sub nothing_left
{
	my ($name) = @_;

	ok(wait_until(sub { !temp_files($node, @places) }),
		"$name: no file is left")
	  or diag join ' ', temp_files($node, @places);
	return;
}

sub fails
{
	my ($sql, $like, $name) = @_;
	my ($status, $out, $err) = $node->psql('postgres', $sql);

	like($err, $like, $name);
	nothing_left($name);
	return;
}

my $divided = 'SELECT sum(x) FROM (SELECT k, 1 / (id - 59000) AS x FROM t
	ORDER BY k OFFSET 0) s';

fails("$both $divided", qr/division by zero/, 'an error in a worker');
fails('SET max_parallel_workers = 0;' . $divided,
	qr/division by zero/, 'an error in the leader');
fails('SELECT sum(1 / (length(pay) - 60 + (k - 5000))) FROM
	(SELECT * FROM t ORDER BY k OFFSET 0) s', qr/division by zero/,
	'an error above the merge');
is(answer("SET temp_file_limit = '20MB';
	SELECT count(*) FROM (SELECT * FROM t ORDER BY k OFFSET 0) s"),
	60000, 'a temp_file_limit that suffices');

# What a session holds: descriptors, rings, segments of shared memory.
sub held
{
	my ($pid) = @_;
	my %segments = map { $_ => 1 }
	  slurp_file("/proc/$pid/maps") =~ m{(/dev/shm/PostgreSQL\.\d+)}g;

	return { %{ backend_state($pid) }, segments => scalar keys %segments };
}

# A session whose workers fail while they write, after a sort that does not; at
# ease is what lets it sort again.
sub worker_fails
{
	my ($settings, $fault, $at_ease, $like, $name) = @_;
	my $session = $node->background_psql('postgres', on_error_stop => 0);
	my $pid = $session->query_safe('SELECT pg_backend_pid()');
	my $sort = 'SELECT count(pay), sum(id) FROM
		(SELECT * FROM t ORDER BY k OFFSET 0) s';
	my $before;

	$session->query_safe("$both $settings");
	is($session->query_safe($sort), '60000|1800030000', "$name: before");
	$before = held($pid);
	$fault->($session);
	wait_until(
		sub {
			$session->{stderr} = '';
			$session->query($sort);
			return $session->{stderr} =~ /parallel worker/;
		});
	like($session->{stderr}, qr/ERROR: .*$like.*parallel worker/s,
		"$name: a worker's error");
	$session->{stderr} = '';
	nothing_left($name);
	is_deeply(held($pid), $before, '... nor a descriptor, ring or segment');
	$at_ease->($session);
	is($session->query_safe($sort), '60000|1800030000',
		'... and the next sort works');
	$session->quit;
	return;
}

worker_fails('', sub { $_[0]->query_safe("SET temp_file_limit = '300kB'") },
	sub { $_[0]->query_safe('RESET temp_file_limit') },
	qr/temporary file size exceeds/, 'temp_file_limit');

# All rows of a late page sleep, so a worker is certain to have spilled.
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
			$worker = answer(<<'EOT');
SELECT pid FROM pg_stat_activity
WHERE backend_type = 'parallel worker' AND wait_event = 'PgSleep' LIMIT 1
EOT
			return $worker ne '';
		}) or die 'no worker went to sleep';
	return ($session, $worker);
}

{
	my ($session, $worker) = sort_until_a_worker_sleeps();
	my $leader = answer("SELECT leader_pid FROM pg_stat_activity
		WHERE pid = $worker");

	isnt(join(' ', temp_files($node)), '', 'a worker has spilled');
	answer("SELECT pg_terminate_backend($worker)");
	$session->{stderr} = '';
	is($session->query('SELECT 1'), '1',
		'a worker that is terminated does not end the session');
	like($session->{stderr}, qr/terminating (connection|background worker)/,
		'... whose query fails');
	nothing_left('a worker was terminated');
	is_deeply(
		backend_state($leader),
		{ io_uring => backend_state($leader)->{io_uring}, temporary => 0,
			rings_mapped => backend_state($leader)->{rings_mapped} },
		'... nor a descriptor');
	$session->quit;

	($session, $worker) = sort_until_a_worker_sleeps();
	$leader = answer("SELECT leader_pid FROM pg_stat_activity
		WHERE pid = $worker");
	answer("SELECT pg_cancel_backend($leader)");
	$session->{stderr} = '';
	is($session->query('SELECT 1'), '1', 'a cancel');
	like($session->{stderr}, qr/canceling statement/, '... ends the query');
	nothing_left('a cancel');
	$session->quit;

	($session, $worker) = sort_until_a_worker_sleeps();
	kill 'KILL', $worker;
	ok(wait_until(sub { !-e "/proc/$worker" && connects($node) }),
		'the server comes back after a worker was killed');
	eval { $session->quit };
	nothing_left('a worker was killed');
}

# ---- full disks, after the crash, whose recovery would want their tablespaces ---------

foreach my $disk ([ 'ext4', $ENV{FMSORT_SMALLFS} ],
	[ 'tmpfs', $ENV{FMSORT_SMALLTMPFS} ])
{
	my ($kind, $mount) = @$disk;

  SKIP:
	{
		skip "no small $kind is to be had", 1 unless $mount;

		my $dir = make_tablespace($node, $kind, $mount);
		my $free;

		@places = ($dir);
		foreach my $method (@methods)
		{
			worker_fails(
				"SET temp_tablespaces = $kind; SET fmsort.direct_io = auto;
				 SET fmsort.io_method = $method",
				sub {
					$free = free_kb($dir);
					fill_up($mount, 1500);
				},
				sub {
					unlink "$mount/ballast" or die "$mount/ballast: $!";
					is(free_kb($dir), $free, '... the room is free again');
				},
				qr/could not (write to|extend) .*: No space left on device/,
				"$kind is full, $method");
		}
		@places = ();
		drop_tablespace($node, $kind, $dir);
	}
}

# ---- several temp tablespaces ------------------------------------------------------

{
	@places = map { make_tablespace($node, "space$_",
			PostgreSQL::Test::Utils::tempdir()) } 1, 2;

	same("SET temp_tablespaces = space1, space2; $_", 't ORDER BY k, id',
		'k, id', "two temp tablespaces $_")
	  foreach '', $both;
	nothing_left('two temp tablespaces');
}

$node->stop;
done_testing();
