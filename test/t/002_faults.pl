# Whatever interrupts a sort, nothing stays behind: no temporary file, no
# descriptor, no io_uring, no buffer; and the session's next sort is right.
#
# Seen to fail with: no MemoryContextRegisterResetCallback() in sort.c (the
# ring stays); fms_io_close() without munmap() (the session grows).

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use FmsTest;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = fms_node('faults', "work_mem = '64kB'", 'fmsort.block_size = 1024', 'fmsort.assist_blocks = 16');

$node->safe_psql('postgres', <<'EOT');
CREATE TABLE t AS SELECT i AS id, (i::bigint * 7919 % 10007)::int AS k,
  repeat(md5(i::text), 2) AS pay FROM generate_series(1, 40000) i;
ANALYZE t;
EOT

# The same rows in the same order, as a number.
my $check = <<'EOT';
SELECT sum((n % 1000003) * id) FROM
  (SELECT row_number() OVER () AS n, id FROM
    (SELECT id, k, pay FROM t ORDER BY k) s) r
EOT
my $right = $node->safe_psql('postgres',
	"SET fmsort.mode = off;\n" . ($check =~ s/ORDER BY k/ORDER BY k, id/r));

sub session
{
	my $session = $node->background_psql('postgres', on_error_stop => 0);

	$session->query_safe('\set VERBOSITY verbose');
	return $session;
}

# Rows, and what went to stderr.
sub ask
{
	my ($session, $sql) = @_;

	$session->{stderr} = '';
	my $answer = $session->query($sql);
	my $messages = $session->{stderr};
	$session->{stderr} = '';
	return ($answer, $messages);
}

sub pid_of
{
	my ($session) = @_;

	return $session->query_safe('SELECT pg_backend_pid()');
}

# Everything that a backend has open except relations and the log, by name.
sub open_files
{
	my ($pid) = @_;
	my @links = map { readlink($_) // () } glob("/proc/$pid/fd/*");

	return join ' ', sort map { s/\d{3,}/N/gr }
	  grep { !m{/(base|global|pg_wal|pg_xact)/\d} } @links;
}

# Starts a statement that will be waiting in pg_sleep(), and waits for that.
sub start_and_sleep
{
	my ($session, $sql) = @_;
	my $pid = pid_of($session);

	$session->query_until(qr/started/, "\\echo started\n$sql;\n");
	wait_until(
		sub {
			$node->safe_psql('postgres',
				"SELECT wait_event = 'PgSleep' FROM pg_stat_activity
				 WHERE pid = $pid") eq 't';
		})
	  or die "the statement never went to sleep: $sql";
	return $pid;
}

# A row near the end of the input sleeps, errs: while runs are being formed.
my $sleep_in_formation = <<'EOT';
SELECT count(pay) FROM (SELECT id, k, pay || CASE id WHEN 39000 THEN
  (pg_sleep(600))::text ELSE '' END AS pay FROM t ORDER BY k) s
EOT

# The parent of the sort sleeps, errs, at some row: in the middle of the merge.
my $sleep_in_merge = <<'EOT';
SELECT count(CASE WHEN k = 5000 THEN pg_sleep(600)::text ELSE pay END)
FROM (SELECT id, k, pay FROM t ORDER BY k) s
EOT

# What a sort of several passes takes: so many kB of runs, and of the file in the
# end, which is little more, as a pass writes where it has read.
my $passes = 'SET fmsort.block_size = 16384; SET fmsort.assist_blocks = 1;';
my ($runs_kb, $file_kb) = split /\|/,
  (split /\n/, $node->safe_psql('postgres', "$passes $check;
	SELECT blocks * block_size / 1024, bytes_spilled / 1024
	FROM fmsort_last_sort()"))[1];
cmp_ok($file_kb, '>', $runs_kb + 16, 'a merge pass needs room of its own');
my $between_kb = int(($runs_kb + $file_kb) / 2);

# ---- faults: SQL, and the message that has to come -----------------------------

my %faults = (
	'temp_file_limit' => [
		"SET temp_file_limit = '1MB'; $check; RESET temp_file_limit",
		qr/ERROR:  53400: temporary file size exceeds "?temp_file_limit/
	],
	'temp_file_limit in a merge pass' => [
		"SET temp_file_limit = $between_kb; $passes $check;
		 RESET temp_file_limit; RESET fmsort.block_size;
		 RESET fmsort.assist_blocks",
		qr/ERROR:  53400: temporary file size exceeds "?temp_file_limit/
	],
	'statement_timeout in formation' => [
		"SET statement_timeout = '500ms'; $sleep_in_formation;
		 RESET statement_timeout",
		qr/ERROR:  57014: canceling statement due to statement timeout/
	],
	'statement_timeout in the merge' => [
		"SET statement_timeout = '900ms'; $sleep_in_merge;
		 RESET statement_timeout",
		qr/ERROR:  57014: canceling statement due to statement timeout/
	],
	'an error in the input' => [
		'SELECT sum(x) FROM
		   (SELECT 1 / (id - 39000) AS x, pay FROM t ORDER BY k) s
		   WHERE pay IS NOT NULL',
		qr/ERROR:  22012: division by zero/
	],
	'an error in the parent' => [
		'SELECT sum(1 / (k - 5000)) FROM
		   (SELECT k, pay FROM t ORDER BY k) s WHERE pay IS NOT NULL',
		qr/ERROR:  22012: division by zero/
	],
	'an error in a merge join above two sorts' => [
		'SET enable_hashjoin = off; SET enable_nestloop = off;
		 SELECT sum(1 / (a.k - 5000)) FROM t a JOIN t b USING (k)
		   WHERE a.pay <= b.pay;
		 RESET enable_hashjoin; RESET enable_nestloop',
		qr/ERROR:  22012: division by zero/
	],
	'a subtransaction that aborts with a cursor open' => [
		'BEGIN; SAVEPOINT a;
		 DECLARE c NO SCROLL CURSOR FOR SELECT id, pay FROM t ORDER BY k;
		 MOVE 15000 FROM c; ROLLBACK TO a; COMMIT',
		qr/^$/
	],
	'a transaction that aborts with cursors open' => [
		'BEGIN;
		 DECLARE c NO SCROLL CURSOR FOR SELECT id, pay FROM t ORDER BY k;
		 DECLARE d NO SCROLL CURSOR FOR SELECT id, pay FROM t ORDER BY k DESC;
		 MOVE 1 FROM c; MOVE 15000 FROM d; MOVE 9000 FROM c; ROLLBACK',
		qr/^$/
	],
	'an exception caught in a loop over a cursor' => [
		q{DO $$ DECLARE r record; BEGIN
		    FOR r IN SELECT k, pay FROM t ORDER BY k LOOP
		      PERFORM 1 / (r.k - 5000);
		    END LOOP;
		  EXCEPTION WHEN division_by_zero THEN NULL;
		  END $$},
		qr/^$/
	],);

foreach my $method (uring_works($node) ? qw(io_uring sync) : 'sync')
{
	my $session = session();
	my $pid = pid_of($session);

	ask($session, "SET fmsort.io_method = '$method'");
	# once in peace, so that everything that is loaded once is loaded
	my ($answer) = ask($session, $check);
	is($answer, $right, "$method: undisturbed");

	foreach my $fault (sort keys %faults)
	{
		my ($sql, $expected) = @{ $faults{$fault} };

		ask($session, $sql);
		my $before = open_files($pid);
		my (undef, $messages) = ask($session, $sql);

		like($messages, $expected, "$method, $fault: happens");
		is(join(' ', temp_files($node)), '',
			"$method, $fault: no temporary file");
		is_deeply(
			backend_state($pid),
			{ io_uring => 0, temporary => 0, rings_mapped => 0 },
			"$method, $fault: no ring, no temporary file open");
		is(open_files($pid), $before, "$method, $fault: the same descriptors");
		($answer) = ask($session, $check);
		is($answer, $right, "$method, $fault: the next sort is right");
	}

	# Buffers are mapped, and large here, so that a forgotten one is seen.
	foreach my $fault ('an error in the input', 'an error in the parent',
		'a subtransaction that aborts with a cursor open')
	{
		my ($sql) = @{ $faults{$fault} };

		ask($session, "SET work_mem = '2MB'; SET fmsort.block_size = '256kB';
			SET fmsort.assist_blocks = 64");
		ask($session, $sql) foreach 1 .. 3;
		my $before = status_kb($pid, 'VmSize');
		ask($session, $sql) foreach 1 .. 6;
		my $grown = status_kb($pid, 'VmSize') - $before;
		cmp_ok($grown, '<', 1024, "$method, $fault: no mapping stays (kB)");
		ask($session, 'RESET work_mem; RESET fmsort.block_size;
			RESET fmsort.assist_blocks');
	}

	# ---- faults from outside ------------------------------------------------

	foreach my $place ([ 'formation', $sleep_in_formation ],
		[ 'the merge', $sleep_in_merge ])
	{
		my ($where, $sql) = @{$place};
		my $before = open_files($pid);

		start_and_sleep($session, $sql);
		isnt(join(' ', temp_files($node)), '',
			"$method, cancel in $where: there was a temporary file");
		is(backend_state($pid)->{io_uring}, $method eq 'io_uring' ? 1 : 0,
			"$method, cancel in $where: there was a ring, or none");
		$node->safe_psql('postgres', "SELECT pg_cancel_backend($pid)");
		my (undef, $messages) = ask($session, 'SELECT 1');
		like($messages, qr/ERROR:  57014: canceling statement due to user/,
			"$method, cancel in $where: happens");
		is(join(' ', temp_files($node)), '',
			"$method, cancel in $where: no temporary file");
		is(open_files($pid), $before,
			"$method, cancel in $where: the same descriptors");
		($answer) = ask($session, $check);
		is($answer, $right,
			"$method, cancel in $where: the next sort is right");

		my $victim = session();
		ask($victim, "SET fmsort.io_method = '$method'");
		my $victim_pid = start_and_sleep($victim, $sql);
		$node->safe_psql('postgres', "SELECT pg_terminate_backend($victim_pid)");
		ok(wait_until(sub { !-e "/proc/$victim_pid" }),
			"$method, terminated in $where: it ends");
		is(join(' ', temp_files($node)), '',
			"$method, terminated in $where: no temporary file");
		eval { $victim->quit };
	}

	# ---- cursors ---------------------------------------------------------------

	ask($session, 'BEGIN; DECLARE c NO SCROLL CURSOR FOR SELECT id FROM t ORDER BY k');
	ask($session, 'MOVE 12345 FROM c');
	is(scalar(grep { /pgsql_tmp/ } temp_files($node)) > 0,
		1, "$method: an open cursor has its file");
	ask($session, 'CLOSE c');
	is(join(' ', temp_files($node)), '',
		"$method: closing a cursor in mid-merge leaves no file");
	is(backend_state($pid)->{io_uring}, 0, "$method: and no ring");
	ask($session, 'COMMIT');

	# first read inside of a subtransaction that aborts, read on after it
	ask($session, 'BEGIN; DECLARE c NO SCROLL CURSOR FOR SELECT id FROM t ORDER BY k');
	ask($session, 'SAVEPOINT a; MOVE 20000 FROM c; ROLLBACK TO a');
	($answer) = ask($session, 'FETCH 3 FROM c');
	is( $answer,
		$node->safe_psql('postgres',
			'SET fmsort.mode = off;
			 SELECT id FROM t ORDER BY k, id OFFSET 20000 LIMIT 3'),
		"$method: a cursor outlives the subtransaction that began to read it");
	ask($session, 'COMMIT');
	is(join(' ', temp_files($node)), '', "$method: and leaves no file");

	$session->quit;
}

# ---- few descriptors: fd.c closes the tapes under the sorts ---------------------

{
	my $few = fms_node('few', "work_mem = '64kB'",
		'max_files_per_process = 80', 'fmsort.block_size = 512');
	my $cursors = 60;
	my $sql = "BEGIN;\n";

	$few->safe_psql('postgres', <<'EOT');
CREATE TABLE t AS SELECT i AS id, (i::bigint * 7919 % 10007)::int AS k,
  repeat(md5(i::text), 2) AS pay FROM generate_series(1, 6000) i;
EOT
	$sql .= "DECLARE c$_ NO SCROLL CURSOR FOR SELECT id, pay FROM t ORDER BY k + $_;\n"
	  foreach 1 .. $cursors;
	foreach my $round (1 .. 3)
	{
		$sql .= "MOVE 1700 FROM c$_;\n" foreach 1 .. $cursors;
	}
	$sql .= "FETCH 1 FROM c$_;\n" foreach 1 .. $cursors;
	my ($status, $out, $err) =
	  $few->psql('postgres', $sql, on_error_die => 0);
	my $expected = $few->safe_psql('postgres', 'SET fmsort.mode = off;
		SELECT id, pay FROM t ORDER BY k, id OFFSET 5100 LIMIT 1');

	is($err, '', "$cursors sorts at once with 80 descriptors");
	is($out, join("\n", ($expected) x $cursors), '... go on where they were');
	ok(wait_until(sub { !temp_files($few) }), '... and leave no file');
	$few->stop;
}

# ---- a backend that is killed: the server cleans up when it restarts -------------

{
	my $victim = session();
	my $pid = start_and_sleep($victim, $sleep_in_merge);

	kill 'KILL', $pid;
	ok(wait_until(sub { !-e "/proc/$pid" && connects($node) }),
		'the server comes back after a backend was killed in the merge');
	is(join(' ', temp_files($node)), '', '... without its temporary file');
	is($node->safe_psql('postgres', $check), $right,
		'... and sorts right');
	eval { $victim->quit };
}

$node->stop;
done_testing();
