# Reads that are in flight and are not answered (faulty_io.c lets them read a
# FIFO that nobody writes to), and what ends the sort then: a cancel, a
# terminate, kill -9 of the backend, of the postmaster, of both.
#
# While requests are in flight the kernel may write into the sort's buffers, so
# nobody may have that memory before they are answered.  A killed process needs
# no such care: the kernel looks after it.
#
# Seen to fail with: drain() of io.c that does not wait; one that an interrupt
# ends.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use FmsFaults;
use FmsTest;
use PostgreSQL::Test::Utils;
use Test::More;

my $bench = FmsFaults->new_with_faulty_io('killed')
  or plan skip_all => 'FMSORT_FAULTY_IO names no library; see script/test';
my $node = $bench->node;

plan skip_all => 'without io_uring nothing is ever in flight'
  unless uring_works($node);

# A process that nobody reaps would exist for ever, below.
die 'process 1 does not reap orphans; run this by script/test'
  unless orphans_are_reaped();

my $check = $bench->check;

# How many reads there are, so that they can be stopped at any of them.
$bench->order('no_answer', nth => 1000000000);
$node->safe_psql('postgres', $check);
my ($reads) = $bench->at_ease;

my %places = (
	'an intermediate pass' => int($reads / 10),
	'the last merge' => $reads - 200);

sub orphans_are_reaped
{
	local $PostgreSQL::Test::Utils::timeout_default = 10;
	my ($orphan) = `sh -c 'sleep 0.1 >/dev/null 2>&1 & echo \$!'` =~ /(\d+)/;

	return wait_until(sub { !-e "/proc/$orphan" });
}

# Does it wait for a read that is not answered, and not for one before that?
sub stands_still
{
	my ($pid) = @_;
	my @before = $bench->orders_done;
	my $waits;

	return 0 if $before[1] == 0;
	$waits = $node->safe_psql('postgres', "SELECT lower(wait_event) = 'buffileread'
		FROM pg_stat_activity WHERE pid = $pid");
	select(undef, undef, undef, 0.2);
	return $waits eq 't' && "@before" eq join ' ', $bench->orders_done;
}

# A session whose reads from the nth on are in flight.
sub stop_at
{
	my ($nth) = @_;
	my $session = $bench->session('SET fmsort.io_method = io_uring');
	my $before = $bench->holdings($session);
	my $answers = $bench->hold_answers;
	my $pid;

	$bench->order('no_answer', nth => $nth, times => 1000000);
	$pid = $bench->pid_of($session);
	$bench->start($session, $check);
	wait_until(sub { stands_still($pid) }) or die 'the reads are answered';
	return ($session, $before, $answers, $pid);
}

# ---- cancel and terminate --------------------------------------------------------------

foreach my $where (sort keys %places)
{
	my ($session, $before, $answers, $pid) = stop_at($places{$where});
	my $name = "cancel in $where";

	my $held = $bench->holdings_of($pid);
	my $log_start = -s $node->logfile;

	is($held->{fd_io_uring}, 1, "$name: reads are in flight");
	kill 'INT', $pid;
	ok( wait_until(
			sub {
				slurp_file($node->logfile, $log_start) =~
				  /canceling statement due to user request/;
			}),
		"$name: the backend has seen it");
	# It cleans up now.  However long that takes, what the kernel may write to
	# has to stay, whoever grows impatient; the longer we look, the surer a
	# mistake is seen.
	foreach (1 .. 6)
	{
		select(undef, undef, undef, 0.05);
		kill 'INT', $pid;
	}
	my $now = $bench->holdings_of($pid);
	is_deeply(
		[ @$now{qw(fd_io_uring map_io_uring)} ],
		[ @$held{qw(fd_io_uring map_io_uring)} ],
		"$name: nothing is given back till the reads are answered");
	$bench->at_ease;
	close $answers;
	my (undef, $messages) = $bench->answer($session);
	like($messages, qr/ERROR:  57014: canceling statement due to user request/,
		"$name: the message, once the reads are answered");
	$bench->unharmed($session, $before, $name);
	$session->quit;

	$name = "terminate in $where";
	($session, $before, $answers, $pid) = stop_at($places{$where});
	kill 'TERM', $pid;
	$bench->at_ease;
	close $answers;
	ok(wait_until(sub { !-e "/proc/$pid" }), "$name: the backend ends");
	$bench->unharmed(undef, undef, $name);
	eval { $session->quit };
}

# ---- kill -9 ---------------------------------------------------------------------------

sub sorts_right
{
	my ($name) = @_;
	my $session = $bench->session;
	my $before;

	$before = $bench->holdings($session);
	$bench->unharmed($session, $before, $name);
	$session->quit;
	return;
}

foreach my $where (sort keys %places)
{
	my ($session, $before, $answers, $pid) = stop_at($places{$where});
	my $name = "kill -9 of a backend in $where";

	isnt(join(' ', temp_files($node)), '', "$name: there is a file");
	kill 'KILL', $pid;
	# its reads were answered by nobody, and still it ends
	ok(wait_until(sub { !-e "/proc/$pid" }), "$name: it ends");
	$bench->at_ease;
	close $answers;
	ok(wait_until(sub { connects($node) }), "$name: the server comes back");
	sorts_right($name);
	eval { $session->quit };
}

foreach my $where (sort keys %places)
{
	my ($session, $before, $answers, $pid) = stop_at($places{$where});
	my $name = "kill -9 of the postmaster in $where";

	$node->kill9;
	# a backend waiting for the device finds out when it is answered
	$bench->at_ease;
	close $answers;
	ok(wait_until(sub { !-e "/proc/$pid" }), "$name: the backend ends, too");
	eval { $session->quit };
	ok(wait_until(sub { $bench->restart }), "$name: the server starts again");
	sorts_right($name);

	($session, $before, $answers, $pid) = stop_at($places{$where});
	$name = "kill -9 of the postmaster and the backend in $where";
	$node->kill9;
	kill 'KILL', $pid;
	ok(wait_until(sub { !-e "/proc/$pid" }), "$name: it ends");
	isnt(join(' ', temp_files($node)), '', "$name: the file is there");
	$bench->at_ease;
	close $answers;
	eval { $session->quit };
	ok(wait_until(sub { $bench->restart }), "$name: the server starts again");
	sorts_right($name);
}

$node->stop;
done_testing();
