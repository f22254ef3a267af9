# What a sort asks the system for and does not get: descriptors and locked
# memory.  (A kernel that refuses io_uring is in 004_no_uring.pl; the setting
# kernel.io_uring_disabled makes io_uring_setup() fail in the same way, and is
# not touched here: it is the whole machine's.)
#
# A process's limits are changed from outside, while it runs.
#
# Seen to fail with: fms_io_open() not falling back to synchronous I/O.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use FmsFaults;
use FmsTest;
use PostgreSQL::Test::Utils;
use Test::More;

my $bench = FmsFaults->new('refused', "log_line_prefix = '%p '",
	'max_files_per_process = 80');
my $node = $bench->node;
my $check = $bench->check;

# prlimit of util-linux; what the limit was stays as the hard one.
sub limit
{
	my ($pid, $what, $value) = @_;

	system('prlimit', "--pid=$pid", "--$what=$value:") == 0
	  or die "prlimit $what of $pid: $?";
	return;
}

# Leaves a process only so many descriptors that it has not got open.
sub leave_descriptors
{
	my ($pid, $free) = @_;
	my %open = map { (split '/', $_)[-1] => 1 } glob("/proc/$pid/fd/*");
	my $limit = 0;

	$limit++ while $open{$limit} || $free-- > 0;
	limit($pid, 'nofile', $limit);
	return;
}

# ---- descriptors ----------------------------------------------------------------------

foreach my $method (uring_works($node) ? qw(auto io_uring sync) : qw(auto sync))
{
	my $session = $bench->session("SET fmsort.io_method = $method");
	my $pid = $bench->pid_of($session);
	my $before = $bench->holdings($session);
	my %ends;

	# from none at all to enough for all of it
	foreach my $more (0 .. 6)
	{
		leave_descriptors($pid, $more);
		my ($answer, $messages) = $bench->ask($session, $check);
		limit($pid, 'nofile', 1000);

		my $name = "$method, $more descriptors to be had";
		if ($messages eq '')
		{
			is($answer, $bench->right, "$name: sorts right");
			$ends{right}++;
		}
		else
		{
			like( $messages,
				qr/ERROR:  (53000|58030|0A000|53100|XX000): .*(could not (open|create|reopen|set up io_uring)|out of file descriptors).*/,
				"$name: an error that says so");
			unlike($messages, qr/io_uring/, "$name: ... and is not of io_uring")
			  if $method ne 'io_uring';
			$ends{error}++;
		}
		$bench->unharmed($session, $before, $name);
	}
	cmp_ok($ends{right} // 0, '>=', 1, "$method: in the end there are enough");

	# a ring that is refused must not cost the session one of its 80
	if ($method eq 'io_uring')
	{
		leave_descriptors($pid, 0);
		my ($answer, $messages) = $bench->ask($session, "$check " x 60);
		limit($pid, 'nofile', 1000);
		is(scalar(() = $messages =~ /could not set up io_uring: Too many/g),
			60, "$method: sixty refusals");
		$bench->unharmed($session, $before, "$method, sixty refusals");
	}
	$session->quit;
}

# ---- locked memory --------------------------------------------------------------------

# Some kernels charge rings to RLIMIT_MEMLOCK and refuse them then (5.11 and
# 6.18 do, those in between need not).  A sort does without what is refused.
foreach my $limit (0, 256 * 1024)
{
	my $session = $bench->session(
		"SET work_mem = '1MB'; SET fmsort.block_size = '16kB'");
	my $pid = $bench->pid_of($session);
	my $before = $bench->holdings($session);

	limit($pid, 'memlock', $limit);
	my ($answer, $messages) = $bench->ask($session, $check);
	is($answer . $messages,
		$bench->right, "$limit bytes of locked memory: sorts right");
	# the kernel takes a ring apart when it has time
	ok(wait_until(sub { status_kb($pid, 'VmPin') == 0 }),
		"$limit bytes of locked memory: none is held afterwards");
	$bench->unharmed($session, $before, "$limit bytes of locked memory");
	$session->quit;
}

$node->stop;
done_testing();
