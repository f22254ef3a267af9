# Merge Append over foreign tables: the shards sort at the same time, the rows
# are those of PostgreSQL's Merge Append, and a shard that fails, a cancel and a
# subtransaction that aborts leave connections that work.
#
# Every version: the asynchronous interface of foreign scans.
#
# Seen to fail with: a request under way when a cursor's FETCH ends; a shard that
# asks for its next batch while others wait for the connection; rows kept in the
# wrapper's slot while the next batch is fetched.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use FmsTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

# Rows of the table, on all shards together.
my $rows = 4000;

my $node = fms_node('coordinator', "work_mem = '4MB'");
my $extension = '$libdir/postgres_fdw';
$node->psql('postgres', "LOAD '$extension'") == 0
  or plan skip_all => 'this server has no postgres_fdw';
# built by script/test
my $other = $ENV{FMSORT_OTHER_VERSION}
  or plan skip_all => 'FMSORT_OTHER_VERSION names no library; see script/test';
my @shards = map {
	fms_node("shard$_", "log_line_prefix = '%m '", 'log_timezone = UTC',
		'log_min_duration_statement = 300')
} 1 .. 4;
# one with another version of fmsort, one without
$shards[2]->append_conf('postgresql.conf', "session_preload_libraries = '$other'");
$shards[3]->append_conf('postgresql.conf', "session_preload_libraries = ''");
$_->reload foreach @shards;

sub ask
{
	my ($sql, @options) = @_;

	return $node->safe_psql('postgres', $sql, @options);
}

# Does the same with and without our node?
sub same
{
	my ($name, $sql, $settings, $plan) = @_;

	$settings //= '';
	my $merge_append =
	  ask("SET enable_async_append = off; $settings $sql");
	is(ask("$settings $sql"), $merge_append, "$name: the rows");
	like(ask("$settings EXPLAIN (COSTS OFF) $sql"),
		$plan // qr/FMSort Merge.*Async Foreign Scan.*Async Foreign Scan/s,
		"$name: the plan");
	return;
}

# The server that partition $i of $n is on; 6 partitions have two servers.
sub server_of
{
	my ($i, $n) = @_;

	return $n == 6 ? $i % 2 + 1 : $i;
}

# A table of n partitions, each a foreign table.
sub create_sharded
{
	my ($table, $n, $remote, $options) = @_;

	ask("CREATE TABLE $table (id int, k int, c text COLLATE \"C\", pad text)
		PARTITION BY LIST ((id % $n))");
	foreach my $i (1 .. $n)
	{
		my $server = server_of($i, $n);
		my $part = $i % $n;
		my $name = "${remote}_${n}_$part";

		$shards[ $server - 1 ]->safe_psql('postgres',
			$remote eq 't' ? <<"EOT" :
CREATE TABLE $name AS SELECT i AS id, (i::bigint * 7919 % 101)::int AS k,
  CASE WHEN i % 50 > 0 THEN md5(i::text) END AS c, repeat('x', i % 300) AS pad
FROM generate_series(1, $rows) i WHERE i % $n = $part;
ANALYZE $name
EOT
			"CREATE VIEW $name AS SELECT t.* FROM t_${n}_$part t, pg_sleep(1)");
		ask("CREATE FOREIGN TABLE ${table}_$i PARTITION OF $table
			FOR VALUES IN ($part) SERVER s$server
			OPTIONS (table_name '$name' $options)");
	}
	ask("ANALYZE $table") if $remote eq 't';
	return;
}

sub set_fetch_size
{
	my ($size) = @_;

	ask("ALTER SERVER s$_ OPTIONS (SET fetch_size '$size')") foreach 1 .. 4;
	return;
}

ask('CREATE EXTENSION postgres_fdw');
foreach my $i (1 .. 4)
{
	my $shard = $shards[ $i - 1 ];

	ask('CREATE SERVER s' . $i . ' FOREIGN DATA WRAPPER postgres_fdw OPTIONS (host '
		  . "'" . $shard->host . "', port '" . $shard->port
		  . "', dbname 'postgres', async_capable 'true', fetch_size '100')");
	ask("CREATE USER MAPPING FOR CURRENT_USER SERVER s$i");
}
create_sharded('two', 2, 't', '');
create_sharded('four', 4, 't', '');
create_sharded('six', 6, 't', '');
create_sharded('slow', 2, 'slow', '');

like($shards[2]->safe_psql('postgres', 'EXPLAIN SELECT * FROM t_4_3 ORDER BY k'),
	qr/FMSort/, 'the other version sorts');
unlike($shards[3]->safe_psql('postgres', 'EXPLAIN SELECT * FROM t_4_0 ORDER BY k'),
	qr/FMSort/, 'the shard without fmsort does not');

# ---- the rows -------------------------------------------------------------------

foreach my $fetch_size (1, 7, 100, 10000)
{
	set_fetch_size($fetch_size);
	foreach my $table (qw(two four six))
	{
		next if $fetch_size == 1 && $table ne 'six';
		same("$table, fetch_size $fetch_size",
			"SELECT md5(string_agg(x::text, ',')) FROM
			(SELECT * FROM $table ORDER BY k DESC, c NULLS FIRST, id OFFSET 0) x",
			"SET work_mem = '64kB';");
	}
}
set_fetch_size(50);
same('LIMIT and OFFSET', 'SELECT id, c FROM four ORDER BY c, id LIMIT 100 OFFSET 333');
same('an OFFSET beyond the end', "SELECT id FROM four ORDER BY id OFFSET $rows");
same('LIMIT 0', 'SELECT id FROM four ORDER BY id LIMIT 0');
same('no rows', 'SELECT id FROM four WHERE k < 0 ORDER BY id', 'SET enable_sort = off;');
same('a condition of this server',
	'SELECT id FROM four WHERE id % 7 = random()::int * 0 ORDER BY id LIMIT 50',
	'SET enable_sort = off;');
same('expressions', 'SELECT id + 1, k * 2, tableoid::regclass FROM two ORDER BY k, id LIMIT 77');
same('columns that are not returned', 'SELECT pad FROM two ORDER BY k, id');
same('a row larger than the buffers',
	"SELECT md5(string_agg(x::text, ',')) FROM (SELECT id, repeat(c, 4000) FROM two
	ORDER BY id OFFSET 0) x", "SET work_mem = '64kB';");
is( ask("SELECT bool_and(shard >= previous) FROM (SELECT shard,
		lag(shard) OVER (PARTITION BY k ORDER BY n) AS previous FROM (
		SELECT k, shard, row_number() OVER () AS n FROM (
		SELECT k, tableoid AS shard FROM two ORDER BY k OFFSET 0) a) b) c"),
	ask("SELECT (SELECT tableoid FROM two WHERE id % 2 = 0 LIMIT 1) <
		(SELECT tableoid FROM two WHERE id % 2 = 1 LIMIT 1)") eq 't' ? 't' : 'f',
	'of equal rows, the first child\'s go first');

# ---- other plans ----------------------------------------------------------------

same('a merge join of two merges on the same connections',
	'SELECT count(*), sum(a.id) FROM six a JOIN (SELECT * FROM six ORDER BY id
	OFFSET 0) b USING (id)',
	'SET enable_hashjoin = off; SET enable_nestloop = off;');
same('a merge join ended early',
	'SELECT count(*) FROM (SELECT * FROM four WHERE id < 20 ORDER BY id OFFSET 0) a
	JOIN (SELECT * FROM two ORDER BY id OFFSET 0) b USING (id)',
	'SET enable_hashjoin = off; SET enable_nestloop = off; SET enable_sort = off;');
same('a rescan with a parameter',
	'SELECT g, x.id FROM generate_series(1, 9) g, LATERAL
	(SELECT id FROM six WHERE k >= g ORDER BY id LIMIT 60) x');
same('a rescan without a parameter',
	'SELECT g, x.id FROM generate_series(60, 1, -7) g, LATERAL
	(SELECT id FROM six ORDER BY id LIMIT g) x');
same('a rescan after all rows',
	'SELECT g, count(x.id), min(id) FROM generate_series(1, 3) g, LATERAL
	(SELECT id FROM six ORDER BY id LIMIT 10000 * g) x GROUP BY g ORDER BY g');
same('a join in the shards',
	'SELECT a.id, b.c FROM two a JOIN two b ON a.id = b.id AND a.id % 2 = b.id % 2
	ORDER BY a.id LIMIT 100',
	'SET enable_partitionwise_join = on; SET enable_hashjoin = off;
	SET enable_nestloop = off; SET enable_mergejoin = off; SET enable_sort = off;');
same('a partition-wise aggregate',
	'SELECT id % 2, k, count(*) FROM two GROUP BY id % 2, k ORDER BY k, 1',
	'SET enable_partitionwise_aggregate = on; SET enable_sort = off;',
	qr/FMSort Merge.*Async.*Async|Merge Append.*GroupAggregate/s);
same('a grouping of merged rows',
	'SELECT k, count(*), max(c) FROM four GROUP BY k ORDER BY k',
	'SET enable_hashagg = off;');
same('a query of another table on the connection for each row',
	'SELECT id, (SELECT max(id) FROM two b WHERE b.k = a.k) FROM six a
	ORDER BY id LIMIT 250');

# with a partition of this server, whose sort gets the LIMIT
ask("CREATE TABLE mixed (id int, k int, c text, pad text) PARTITION BY LIST ((id % 3));
	CREATE FOREIGN TABLE mixed_1 PARTITION OF mixed FOR VALUES IN (1) SERVER s1
	OPTIONS (table_name 't_4_1');
	CREATE TABLE mixed_2 PARTITION OF mixed FOR VALUES IN (2);
	INSERT INTO mixed SELECT i, i % 97, md5(i::text) FROM generate_series(2, 90000, 3) i;
	ANALYZE mixed");
my $mixed = 'SELECT id FROM mixed ORDER BY k, id LIMIT 50';
same('one partition here', $mixed, '', qr/FMSort Merge.*Async Foreign Scan.*FMSort/s);
like(ask("EXPLAIN (ANALYZE) $mixed"), qr/Sort Method: top-N/,
	'one partition here: its sort gets the LIMIT');

# ---- cursors and transactions ---------------------------------------------------

# in the subtransaction, each shard's batch of 50 rows ends
is( ask("BEGIN; DECLARE c NO SCROLL CURSOR FOR SELECT id FROM six ORDER BY id;
		FETCH 500 FROM c; SAVEPOINT a;
		SELECT count(*) FROM six WHERE id = 1 AND k < 0;
		FETCH 310 FROM c; ROLLBACK TO a; FETCH 1000 FROM c; COMMIT"),
	join("\n", 1 .. 500, 0, 501 .. 1810),
	'a cursor read in a subtransaction that aborts');
is( ask("BEGIN; DECLARE c CURSOR WITH HOLD FOR SELECT id FROM six ORDER BY id;
		FETCH 10 FROM c; COMMIT; MOVE 380 FROM c; FETCH 10 FROM c"),
	join("\n", 1 .. 10, 391 .. 400),
	'a cursor WITH HOLD');
my (undef, undef, $refused) = $node->psql('postgres',
	'BEGIN; DECLARE c CURSOR FOR SELECT id FROM two ORDER BY id;
	FETCH 3 FROM c; FETCH BACKWARD 1 FROM c');
like($refused, qr/cursor can only scan forward/, 'going backward is refused');
is( ask('BEGIN; DECLARE c SCROLL CURSOR FOR SELECT id FROM two ORDER BY id;
		FETCH 3 FROM c; FETCH BACKWARD 2 FROM c'),
	join("\n", 1 .. 3, 2, 1),
	'a cursor that can go back');
is( ask("DO \$\$ DECLARE r record; n int := 0; BEGIN
		FOR r IN SELECT id FROM six ORDER BY id LOOP
		  n := n + 1;
		  IF n % 100 = 0 THEN
		    BEGIN PERFORM 1 / (count(*) - count(*)) FROM six WHERE id < 100;
		    EXCEPTION WHEN division_by_zero THEN NULL; END;
		  END IF;
		  IF r.id <> n THEN RAISE 'row % is %', n, r.id; END IF;
		END LOOP;
		CREATE TEMP TABLE result AS SELECT n;
		END \$\$; TABLE result"),
	$rows,
	'a loop with subtransactions that abort on the same connections');
is( ask("PREPARE p (int) AS SELECT id FROM two WHERE k >= \$1 ORDER BY id LIMIT 3;
		SET plan_cache_mode = force_generic_plan;
		EXECUTE p (0); SET fmsort.mode = off; EXECUTE p (0); RESET fmsort.mode;
		EXECUTE p (0)"),
	join("\n", (1, 2, 3) x 3),
	'a prepared statement');

# ---- what stays Merge Append ----------------------------------------------------

my $plain = 'EXPLAIN (COSTS OFF) SELECT id FROM two ORDER BY id';
my $stays = qr/^Merge Append(?!.*Async)/s;

like(ask("SET enable_async_append = off; $plain"), $stays, 'enable_async_append is off');
like(ask("SET fmsort.mode = off; $plain"), $stays, 'fmsort.mode is off');
like(ask("$plain FOR UPDATE"), qr/Merge Append(?!.*Async)/s, 'the statement locks rows');
ask("ALTER FOREIGN TABLE two_1 OPTIONS (ADD async_capable 'false')");
like(ask($plain), qr/FMSort Merge(?!.*Async.*Async).*Async/s, 'the option of one table is off');
same('with one table that is not asynchronous', 'SELECT id FROM two ORDER BY id',
	'', qr/FMSort Merge/);
ask("ALTER FOREIGN TABLE two_2 OPTIONS (ADD async_capable 'false')");
like(ask($plain), $stays, 'the options of both tables are off');
ask("ALTER FOREIGN TABLE two_$_ OPTIONS (DROP async_capable)") foreach 1, 2;

# ---- EXPLAIN --------------------------------------------------------------------

# a batch does not fit into the memory of a shard
set_fetch_size(400);
my $explained = ask("SET work_mem = '128kB'; EXPLAIN (ANALYZE, FORMAT JSON)
	SELECT * FROM four ORDER BY id");
my ($ahead) = $explained =~ /"Read-Ahead Memory": (\d+)/;

like($explained, qr/"Shard Wait Times": \[("s\d [\d.]+ ms"(, )?){4}\]/,
	'EXPLAIN: how long each shard was waited for');
set_fetch_size(50);
# a shard may have one row more, and a block of memory
ok($ahead > 0 && $ahead <= 128 + 4 * 9, 'EXPLAIN: rows read ahead are within work_mem')
  or diag($ahead);
unlike(ask('EXPLAIN (ANALYZE, TIMING OFF) SELECT * FROM two ORDER BY id'),
	qr/Wait Times/, 'EXPLAIN: no times without TIMING');
like(ask('EXPLAIN (VERBOSE) SELECT id, c FROM two ORDER BY c COLLATE "C" DESC, k LIMIT 1'),
	qr/Output: two.id, two.c, two.c, two.k\n\s+Sort Key: two.c( COLLATE "C")? DESC, two.k/,
	'EXPLAIN: the sort keys');

# ---- at the same time -----------------------------------------------------------

# When the last FETCH of at least 300 ms began and ended, in seconds of the day.
sub last_fetch
{
	my ($shard) = @_;
	my $log = slurp_file($shard->logfile);
	my @times;

	while ($log =~ /(\d+):(\d+):([\d.]+) UTC LOG: .*duration: ([\d.]+) ms/g)
	{
		my $end = $1 * 3600 + $2 * 60 + $3;

		push @times, [ $end - $4 / 1000, $end ];
	}
	return @{ $times[-1] // [ 0, 0 ] };
}

sub overlap
{
	my @first = last_fetch($shards[0]);
	my @second = last_fetch($shards[1]);

	return $first[0] < $second[1] && $second[0] < $first[1] ? 1 : 0;
}

my $slow = 'SELECT id FROM slow ORDER BY id LIMIT 5';

is(ask($slow), join("\n", 1 .. 5), 'slow shards: the rows');
is(overlap(), 1, 'slow shards work at the same time');
ask("SET enable_async_append = off; $slow");
is(overlap(), 0, "with Merge Append they do not");
my ($least) = sort { $a <=> $b } ask("EXPLAIN (ANALYZE) $slow") =~ /s\d ([\d.]+) ms/g;
cmp_ok($least, '>', 500, 'EXPLAIN: each was waited for');

# ---- what goes wrong ------------------------------------------------------------

# Waits until a shard executes a statement of another session.
sub busy
{
	my ($shard, $what) = @_;

	return $shard->safe_psql('postgres', "SELECT count(*) FROM pg_stat_activity
		WHERE state = 'active' AND query LIKE '$what%' AND pid <> pg_backend_pid()");
}

my $session = $node->background_psql('postgres', on_error_stop => 0);

# A statement in that session, to be disturbed; returns what psql complains of.
sub disturbed
{
	my ($sql, $disturb) = @_;

	$session->{stderr} = '';
	$session->{stdin} .= "$sql;\n";
	$session->{run}->pump_nb;
	wait_until(sub {
			$session->{run}->pump_nb;
			return busy($shards[0], 'FETCH') && busy($shards[1], 'FETCH');
		}) or return 'the shards never worked';
	$disturb->();
	$session->query('SELECT 1');
	return $session->{stderr};
}

# Nothing runs on the shards any more, and the session can go on.
sub goes_on
{
	my ($name) = @_;

	ok( wait_until(sub { !busy($shards[0], 'FETCH') && !busy($shards[1], 'FETCH') }),
		"$name: the shards stop");
	is($session->query('SELECT id FROM two ORDER BY id LIMIT 3'),
		"1\n2\n3", "$name: the session goes on");
	return;
}

$shards[$_]->safe_psql('postgres', "CREATE OR REPLACE VIEW slow_2_" . ($_ + 1) % 2 .
	" AS SELECT t.* FROM t_2_" . ($_ + 1) % 2 . " t, pg_sleep(60)") foreach 0, 1;

my $begun = time;
my $pid = $session->query('SELECT pg_backend_pid()');

like(disturbed($slow, sub { ask("SELECT pg_cancel_backend($pid)") }),
	qr/canceling statement due to user request/, 'a cancel: the message');
goes_on('a cancel');
like(disturbed($slow, sub {
			$shards[1]->safe_psql('postgres', "SELECT pg_terminate_backend(pid)
				FROM pg_stat_activity WHERE query LIKE 'FETCH%'");
		}),
	qr/terminating connection due to administrator command/,
	'a shard\'s backend that ends: the message');
goes_on('a shard\'s backend that ends');
like(disturbed($slow, sub { $shards[1]->stop('immediate') }),
	qr/terminat|closed the connection|could not/, 'a shard that is killed: the message');
$shards[1]->start;
goes_on('a shard that is killed');
$session->query('BEGIN; SAVEPOINT a');
like(disturbed($slow, sub { ask("SELECT pg_cancel_backend($pid)") }),
	qr/canceling statement/, 'a cancel in a subtransaction: the message');
$session->query('ROLLBACK TO a');
goes_on('a cancel in a subtransaction');
$session->query('COMMIT');
$shards[0]->safe_psql('postgres',
	'CREATE OR REPLACE VIEW slow_2_1 AS SELECT t.id, t.k / (t.id - t.id) AS k, c, pad FROM t_2_1 t');
$session->{stderr} = '';
$session->query($slow =~ s/id FROM/id, k FROM/r);
like($session->{stderr}, qr/division by zero.*remote SQL command/s,
	'an error of one shard: the message');
goes_on('an error of one shard');
cmp_ok(time - $begun, '<', 55, 'nothing waited for a shard\'s end');
$session->quit;

done_testing();
