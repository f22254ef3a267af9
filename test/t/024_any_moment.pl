# A sort may be interrupted at any moment: cancelled, out of time, terminated.
# Moments are drawn at random, from the time that the same statement takes
# undisturbed, so they fall into every phase; then it is asked what is left
# (FmsFaults.pm).  A statement that was quicker than its moment has to have the
# right answer.
#
# No verdict depends on when exactly a moment was: whichever it is, nothing may
# be left, and every answer has to be right.
#
#   FMSORT_MOMENTS=n    so many moments; 150, or 2400 with FMSORT_DEEP
#   FMSORT_SEED=n       others than usual; the seed is printed
#
# Few descriptors are to be had, so one that is lost a moment is soon missed.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use FmsFaults;
use FmsTest;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(sleep time);

my $moments = $ENV{FMSORT_MOMENTS} // ($ENV{FMSORT_DEEP} ? 2400 : 150);
my $seed = $ENV{FMSORT_SEED} // 20240229;

srand($seed);
diag("$moments moments, seed $seed");

# Small, so that many moments take little time; and still in two passes.
$FmsFaults::rows = 6000;
my $bench = FmsFaults->new('any_moment', 'max_files_per_process = 80',
	'fmsort.block_size = 4096', 'fmsort.assist_blocks = 4',
	'parallel_setup_cost = 0', 'parallel_tuple_cost = 0',
	'min_parallel_table_scan_size = 0', 'max_worker_processes = 8');
my $node = $bench->node;
my $check = $bench->check;

# What is interrupted: one sort, and what goes about one in other ways.  The
# answer is the stock sort's.
my %statements = (
	'one sort' => $check,
	'in pieces of 16 kB' => "SET fmsort.block_size = '16kB'; $check
		RESET fmsort.block_size",
	'a merge join with duplicates' =>
	  'SET enable_hashjoin = off; SET enable_nestloop = off;
	   SET enable_material = off;
	   SELECT count(*), sum(a.id - b.id) FROM t a JOIN t b USING (k)
	   WHERE a.pay <> b.pay;
	   RESET enable_hashjoin; RESET enable_nestloop; RESET enable_material',
	'there and back in a cursor' =>
	  'BEGIN; DECLARE c SCROLL CURSOR FOR SELECT id, pay FROM t ORDER BY k, id;
	   MOVE 4500 FROM c; MOVE BACKWARD 1800 FROM c; FETCH 1 FROM c;
	   MOVE ABSOLUTE 100 FROM c; FETCH BACKWARD 1 FROM c; ROLLBACK',
	'caught in a function' =>
	  'DO $$ DECLARE n bigint; BEGIN
	     FOR i IN 1 .. 3 LOOP
	       BEGIN
	         SELECT sum(1 / (id - 5700)) INTO n FROM
	           (SELECT id, pay FROM t ORDER BY k OFFSET 0) s;
	       EXCEPTION WHEN division_by_zero THEN NULL;
	       END;
	     END LOOP;
	   END $$',
	'in parallel workers' =>
	  'SET max_parallel_workers_per_gather = 2;
	   SELECT count(*), sum(id), min(pay), sum(hashtext(pay)) FROM
	     (SELECT * FROM t ORDER BY k, id OFFSET 0) s;
	   RESET max_parallel_workers_per_gather');
my %rights = map { $_ => $node->safe_psql('postgres',
	"SET fmsort.mode = off; " . $statements{$_} =~ s/ORDER BY k\)/ORDER BY k, id)/r) }
  keys %statements;

my @ways = map {
	my $method = $_;
	map { "SET fmsort.io_method = $method; SET fmsort.mode = $_" }
	  qw(fmsort fmsort double_buffering traditional multi_block flash)
} uring_works($node) ? qw(io_uring io_uring sync) : 'sync';
push @ways, map { "$_; SET fmsort.direct_io = off" } @ways;

cmp_ok((split /\n/, $node->safe_psql('postgres', "$check
	SELECT max(merge_passes) FROM fmsort_last_sort()"))[1],
	'>', 1, 'the sort has an intermediate pass');

my %tally;
my $failed = 0;

# One moment.  Returns the session, or undef if it is gone.
sub interrupt
{
	my ($session, $what, $how, $seconds) = @_;
	my $pid = $bench->pid_of($session);
	my $name = sprintf '%s: %s after %.1f ms', $what, $how, $seconds * 1000;
	my $before = $bench->holdings($session);
	my ($answer, $messages);

	if ($how eq 'timeout')
	{
		my $ms = int($seconds * 1000) + 1;

		($answer, $messages) = $bench->ask($session,
			"SET statement_timeout = $ms; $statements{$what};
			 RESET statement_timeout");
	}
	else
	{
		$bench->start($session, $statements{$what});
		sleep $seconds;
		kill $how eq 'cancel' ? 'INT' : 'TERM', $pid;
		if ($how eq 'terminate')
		{
			wait_until(sub { !-e "/proc/$pid" })
			  or return lost($name, 'the backend does not end');
			eval { $session->quit };
			$session = undef;
			($answer, $messages) = ($rights{$what}, '');
			$tally{terminated}++;
		}
		else
		{
			($answer, $messages) = $bench->answer($session);
		}
	}
	if ($session)
	{
		my $interrupted = $messages =~ /57014: canceling statement/;

		$tally{ $interrupted ? 'interrupted' : 'too late' }++;
		$bench->ask($session, 'ROLLBACK; RESET enable_hashjoin;
			RESET enable_nestloop; RESET enable_material;
			RESET fmsort.block_size; RESET statement_timeout;
			RESET max_parallel_workers_per_gather');
		return lost($name, "answer: $answer, not $rights{$what}; $messages")
		  if !$interrupted
		  && ($answer ne $rights{$what} || $messages =~ /ERROR/);
		return lost($name, "another error: $messages")
		  if $messages =~ /ERROR:  (?!57014|25P02|34000)/;
	}
	my @harm = $bench->harm($session, $session ? $before : undef);
	return lost($name, @harm) if @harm;
	return $session;
}

sub lost
{
	my ($name, @why) = @_;

	diag(join "\n  ", $name, @why);
	$failed++;
	return undef;
}

my $session;
my $way;
my %undisturbed;

foreach my $moment (1 .. $moments)
{
	if (!$session || $moment % 20 == 1)
	{
		$session->quit if $session;
		$way = $ways[ int rand @ways ];
		$session = $bench->session($way);
	}

	my $what = (sort keys %statements)[ int rand keys %statements ];
	my $how = (qw(cancel cancel cancel timeout timeout terminate))[ int rand 6 ];

	# Others' load makes it slower and faster: measured again now and then.
	if (!$undisturbed{$what} || rand() < 0.05)
	{
		my $start = time;
		my ($answer) = $bench->ask($session, $statements{$what});

		is($answer, $rights{$what}, "$way: $what, undisturbed")
		  if !$undisturbed{$what};
		$undisturbed{$what} = time - $start;
	}
	$session =
	  interrupt($session, $what, $how, rand($undisturbed{$what} * 1.05));
}
$session->quit if $session;

is($failed, 0, "$moments moments (seed $seed): nothing lost, nothing left");
diag(join ', ', map { "$tally{$_} $_" } sort keys %tally);
cmp_ok($tally{interrupted} // 0,
	'>', $moments / 10, 'a good part of them was interrupted');

$node->stop;
done_testing();
