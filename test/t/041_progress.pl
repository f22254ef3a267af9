# fmsort_progress: a sort watched from another session.  Nothing here goes by
# time: the sort is held at gates (advisory locks that its input, or its
# comparator, waits for) or is read by a cursor, and is looked at there.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use FmsTest;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = fms_node(
	'progress', 'shared_preload_libraries = fmsort',
	'max_worker_processes = 8', "work_mem = '4MB'",
	'parallel_setup_cost = 0', 'parallel_tuple_cost = 0',
	'min_parallel_table_scan_size = 0');
my $rows = 5_000_000;
my $gates = 5;

$node->safe_psql('postgres', <<'EOT');
CREATE ROLE plain LOGIN;
CREATE ROLE monitor LOGIN IN ROLE pg_monitor;
CREATE FUNCTION gate(n int) RETURNS int LANGUAGE plpgsql PARALLEL SAFE AS
$$
BEGIN
  PERFORM pg_advisory_lock(n), pg_advisory_unlock(n);
  RETURN n;
END
$$;
CREATE TABLE t AS SELECT i AS id, i / 100 AS g, repeat('.', 400) AS pay
FROM generate_series(1, 3000) i;
CREATE INDEX ON t (g);
ANALYZE t;
EOT

my $watch = $node->background_psql('postgres');
my $keeper = $node->background_psql('postgres');
my $session = $node->background_psql('postgres', on_error_stop => 0);
my $pid = $session->query_safe('SELECT pg_backend_pid()');

# The running sort, or undef; and how many rows there are.
sub look
{
	my ($asker) = @_;
	my @names = qw(phase percent tuples_done tuples_total runs runs_left
	  blocks_done blocks_total work_mem_bytes merge_mode block_size
	  assist_blocks io_method presorted datname usename seconds);
	my ($row) = split /\n/, ($asker // $watch)->query_safe(<<"EOT");
SELECT phase, percent, tuples_done, tuples_total, runs, runs_left,
  blocks_done, blocks_total, work_mem_bytes, merge_mode, block_size, assist_blocks, io_method,
  presorted, datname, usename,
  estimated_end_time >= start_time AND start_time <= clock_timestamp()
FROM fmsort_progress WHERE pid = $pid
EOT
	my %look;

	return undef unless defined $row && $row ne '';
	@look{@names} = split /\|/, $row, -1;
	return \%look;
}

sub sorts_running
{
	return $watch->query_safe('SELECT count(*) FROM fmsort_progress');
}

sub waits_at
{
	my ($gate) = @_;

	return $watch->query_safe(
		"SELECT count(*) > 0 FROM pg_locks WHERE locktype = 'advisory'
		 AND objid = $gate AND NOT granted") eq 't';
}

sub is_idle
{
	return $watch->query_safe("SELECT state LIKE 'idle%'
		FROM pg_stat_activity WHERE pid = $pid") eq 't';
}

sub close_gate { $keeper->query_safe("SELECT pg_advisory_lock($_[0])") }
sub open_gate { $keeper->query_safe("SELECT pg_advisory_unlock($_[0])") }

# Starts a statement without waiting for its end.
sub start
{
	my ($sql) = @_;

	$session->query_until(qr/started/, "\\echo started\n$sql;\n");
}

sub ascends
{
	my ($name, @percent) = @_;
	my @back = grep { $percent[$_] < $percent[ $_ - 1 ] } 1 .. $#percent;

	is(scalar(@back), 0, "$name: never goes back")
	  or diag(join ' ', @percent);
}

# ---- 5 M rows, from 0 to 100 % -------------------------------------------------

my @percent;

close_gate($_) foreach 1 .. $gates;
$session->query_safe("BEGIN; SET LOCAL work_mem = '16MB';
	SET LOCAL fmsort.assist_blocks = 6;
	DECLARE c NO SCROLL CURSOR FOR SELECT * FROM
	  (SELECT g, CASE WHEN g % ($rows / $gates) = 0
	     THEN gate(g / ($rows / $gates)) END
	   FROM generate_series(1, $rows) g OFFSET 0) s ORDER BY -g");
is(look(), undef, 'a cursor that has not been asked: no sort');
start('FETCH 1 FROM c');
foreach my $gate (1 .. $gates)
{
	wait_until(sub { waits_at($gate) }) or die "nobody at gate $gate";
	my $look = look();

	is($look->{phase}, 'run formation', "gate $gate: run formation");
	# not every row is announced
	my $missing = $gate * $rows / $gates - 1 - $look->{tuples_done};
	ok($missing >= 0 && $missing < 1024, '... how many rows have come in')
	  or diag($missing);
	is($look->{seconds}, 't', '... begun in the past, ending after that');
	push @percent, $look->{percent};
	if ($gate == 1)
	{
		is( "@$look{qw(tuples_total work_mem_bytes merge_mode presorted
			datname)}",
			"$rows 16777216 fmsort f postgres",
			'... what is expected, and the settings in force');
		cmp_ok($look->{runs}, '>', 1, '... runs have been written');
		is("$look->{blocks_done}$look->{blocks_total}",
			'', '... no merge has begun');
	}
	# by the planner's guess, which is right
	cmp_ok(abs($look->{percent} - 75 * $gate / $gates),
		'<', 5, "... $look->{percent} %");
	open_gate($gate);
}
wait_until(\&is_idle) or die 'the sort never ended';
$session->query_safe('SELECT 1');

my $first = look();
is("$first->{phase} $first->{assist_blocks}",
	'last merge 6', 'the last merge; now the assist blocks are known');
cmp_ok($first->{percent}, '>=', 75, '... which begins at three quarters');
cmp_ok($first->{percent}, '<', 80, '... and not much later');
push @percent, $first->{percent};
foreach my $tenth (1 .. 9)
{
	$session->query_safe('MOVE ' . $rows / 10 . ' FROM c');
	my $look = look();

	cmp_ok(abs($look->{percent} - 75 - 2.5 * $tenth),
		'<', 2.5, "$tenth tenths read: $look->{percent} %");
	is($look->{blocks_total}, $first->{blocks_total},
		'... of as many blocks as before');
	push @percent, $look->{percent};
}
$session->query_safe('MOVE ALL FROM c');
my $last = look();
is($last->{percent}, 100, 'at the end: 100 %');
is($last->{blocks_done}, $last->{blocks_total}, '... and all blocks');
push @percent, $last->{percent};
ascends('5 M rows', @percent);
$session->query_safe('COMMIT');
is(sorts_running(), 0, 'the row goes with the sort');

# ---- a guess that is too low ---------------------------------------------------

@percent = ();
close_gate($_) foreach 1 .. $gates;
$session->query_safe('CREATE FUNCTION more() RETURNS SETOF int LANGUAGE sql
	ROWS 1000 AS \'SELECT generate_series(1, 5000)\'');
$session->query_safe('SET work_mem = \'64kB\'; BEGIN;
	DECLARE c NO SCROLL CURSOR FOR SELECT * FROM (SELECT g, CASE
	WHEN g % 1000 = 0 THEN gate(g / 1000) END FROM more() g OFFSET 0) s
	ORDER BY -g');
start('FETCH 1 FROM c');
foreach my $gate (1 .. $gates)
{
	wait_until(sub { waits_at($gate) }) or die "nobody at gate $gate";
	push @percent, look()->{percent};
	open_gate($gate);
}
wait_until(\&is_idle) or die 'the sort never ended';
$session->query_safe('SELECT 1');
cmp_ok($percent[-1], '<', 75, 'five times as many rows as expected: not done');
push @percent, look()->{percent};
ascends('too low a guess', @percent);
$session->query_safe('COMMIT');

# ---- several passes: held at comparisons ---------------------------------------

$session->query_safe(<<'EOT');
CREATE FUNCTION gated(a int, b int) RETURNS int LANGUAGE plpgsql AS
$$
BEGIN
  IF a % 250 = 0 AND a <> b THEN
    PERFORM gate(100);
  END IF;
  RETURN btint4cmp(a, b);
END
$$;
CREATE OPERATOR <<<< (LEFTARG = int, RIGHTARG = int, FUNCTION = int4lt);
CREATE OPERATOR <<<= (LEFTARG = int, RIGHTARG = int, FUNCTION = int4le);
CREATE OPERATOR ==== (LEFTARG = int, RIGHTARG = int, FUNCTION = int4eq);
CREATE OPERATOR >>>= (LEFTARG = int, RIGHTARG = int, FUNCTION = int4ge);
CREATE OPERATOR >>>> (LEFTARG = int, RIGHTARG = int, FUNCTION = int4gt);
CREATE OPERATOR CLASS gated FOR TYPE int USING btree AS
  OPERATOR 1 <<<<, OPERATOR 2 <<<=, OPERATOR 3 ====, OPERATOR 4 >>>=,
  OPERATOR 5 >>>>, FUNCTION 1 gated(int, int);
EOT
@percent = ();
my %phases;
my %runs_left;

close_gate(100);
$session->query_safe('SET work_mem = \'64kB\'; SET fmsort.block_size = 16384;
	BEGIN; DECLARE c NO SCROLL CURSOR FOR
	SELECT (id * 7919) % 3001 AS k, pay FROM t ORDER BY 1 USING <<<<');
start('FETCH 1 FROM c');
wait_until(sub { waits_at(100) }) or die 'nobody at the gate';
while (1)
{
	wait_until(sub { waits_at(100) || is_idle() })
	  or die 'neither at the gate nor done';
	my $look = look();

	push @percent, $look->{percent};
	$phases{ $look->{phase} } = 1;
	$runs_left{ $look->{runs_left} } = 1
	  if $look->{phase} eq 'intermediate merge';
	last if is_idle();
	# The one who waits comes before us.  Both in one statement: between two,
	# the sort would find the gate open, as often as it came by.
	$keeper->query_safe(
		'SELECT pg_advisory_unlock(100), pg_advisory_lock(100)');
}
open_gate(100);
is( join(', ', sort keys %phases),
	'intermediate merge, last merge, run formation',
	'several passes: all phases seen');
cmp_ok(scalar(keys %runs_left), '>', 1, '... runs become fewer');
ascends('several passes', @percent);
my @in_passes = grep { $_ > 75 && $_ < 87.5 } @percent;
cmp_ok(scalar(@in_passes), '>', 1,
	'... intermediate merges lie below seven eighths');
$session->query_safe('SELECT 1; MOVE ALL FROM c');
is(look()->{percent}, 100, '... 100 % at the end');
$session->query_safe('COMMIT; RESET fmsort.block_size');

# ---- in memory; group by group -------------------------------------------------

$session->query_safe("SET work_mem = '64MB'; BEGIN;
	DECLARE c NO SCROLL CURSOR FOR SELECT * FROM t ORDER BY id % 7;
	FETCH 1 FROM c");
my $look = look();
is("$look->{phase} $look->{percent} $look->{block_size}",
	'reading from memory 100 ', 'a sort in memory');
$session->query_safe('COMMIT');

@percent = ();
$session->query_safe("SET enable_incremental_sort = on;
	SET enable_seqscan = off; BEGIN;
	DECLARE c NO SCROLL CURSOR FOR SELECT * FROM t ORDER BY g, pay, id DESC");
foreach my $piece (1 .. 29)
{
	$session->query_safe('MOVE 100 FROM c');
	$look = look();
	push @percent, $look->{percent};
	cmp_ok($look->{tuples_done}, '>=', 100 * $piece, "group $piece");
}
is($look->{presorted}, 't', 'presorted input');
ascends('presorted', @percent);
cmp_ok($percent[5], '<', 40, '... begins low');
$session->query_safe('MOVE ALL FROM c');
is(look()->{percent}, 100, '... and ends at 100 %');
$session->query_safe('COMMIT; RESET ALL');

# ---- who may see what ------------------------------------------------------------

$session->query_safe('BEGIN;
	DECLARE c CURSOR FOR SELECT * FROM t ORDER BY pay, id; FETCH 1 FROM c');
foreach my $case ([ 'plain', 0 ], [ 'monitor', 1 ])
{
	my ($role, $sees) = @$case;

	is( $node->safe_psql(
			'postgres',
			'SELECT count(*) FROM fmsort_progress',
			extra_params => [ '-U', $role ]),
		$sees,
		"$role sees $sees sorts of another user");
}

# ---- more sorts than places --------------------------------------------------------

foreach my $i (1 .. 9)
{
	$session->query_safe("DECLARE c$i CURSOR FOR
		SELECT * FROM t ORDER BY pay, id + $i; FETCH 1 FROM c$i");
}
is(sorts_running(), 8, 'ten sorts in a session: eight are shown');
is($session->query_safe('FETCH 1 FROM c9') =~ /^2\|/ ? 1 : 0,
	1, '... and all work');
$session->query_safe('CLOSE c9');
is(sorts_running(), 8, '... and one that is not shown ends alone');

# ---- however it ends -----------------------------------------------------------------

$session->query_safe('SAVEPOINT s; CLOSE c1;
	DECLARE d CURSOR FOR SELECT * FROM t ORDER BY pay, -id; FETCH 1 FROM d');
$session->query('SELECT 1/0');
$session->{stderr} = '';
$session->query_safe('ROLLBACK TO s');
# the place that c1 had is free again
is(sorts_running(), 7, 'an error in a subtransaction ends its sorts only');
$session->query('SELECT 1/0');
$session->{stderr} = '';
$session->query_safe('ROLLBACK');
is(sorts_running(), 0, 'an error ends them all');

$session->query_safe('BEGIN;
	DECLARE c CURSOR FOR SELECT * FROM t ORDER BY pay, id; FETCH 1 FROM c');
is(sorts_running(), 1, 'a sort');
$node->safe_psql('postgres', "SELECT pg_terminate_backend($pid)");
ok(wait_until(sub { sorts_running() == 0 }),
	'... whose session is terminated: no row');

# ---- workers -------------------------------------------------------------------------

$session = $node->background_psql('postgres');
$pid = $session->query_safe('SELECT pg_backend_pid()');
close_gate(7);
$session->query_safe('SET max_parallel_workers_per_gather = 2;
	SET fmsort.parallel = off');
start('SELECT id FROM t WHERE id % 1000 <> 0 OR gate(7) > 0 ORDER BY pay, id');
ok( wait_until(
		sub {
			$watch->query_safe("SELECT count(*) > 0 FROM fmsort_progress
				WHERE leader_pid = $pid AND pid <> $pid") eq 't';
		}),
	'workers have rows of their own, and a leader');
open_gate(7);
wait_until(\&is_idle) or die 'the query never ended';
ok(wait_until(sub { sorts_running() == 0 }), '... and are gone with it');
$session->query_safe('SELECT 1');

# A parallel sort has one row.  The participant that gets the last row waits at
# the gate; then all others have put in what they got.
$keeper->query_safe('CREATE TABLE wide AS SELECT i AS id, i % 1000 AS k
	FROM generate_series(1, 400000) i; ANALYZE wide');
$session->query_safe('RESET fmsort.parallel');
foreach my $leader (qw(on off))
{
	close_gate(7);
	start("SET parallel_leader_participation = $leader;
		SELECT id FROM wide WHERE id < 400000 OR gate(7) > 0 ORDER BY k, id");
	ok( wait_until(
			sub {
				my $look = look();

				return waits_at(7) && $look && $look->{tuples_done} > 390000;
			}),
		'a parallel sort counts the tuples of all participants');
	my $look = look();
	cmp_ok($look->{percent}, '>', 60, '... and the part that is done');
	cmp_ok($look->{percent}, '<=', 75, '... of run formation');
	is(sorts_running(), 1, '... in one row');
	open_gate(7);
	wait_until(\&is_idle) or die 'the query never ended';
	$session->query_safe('SELECT 1');
}

$_->quit foreach $session, $watch, $keeper;
$node->stop;
done_testing();
