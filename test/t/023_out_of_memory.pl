# No memory: the address space of a backend is limited while it runs, to so
# little more than it has that a sort cannot get what work_mem promises.
#
# Limits go up in steps from nothing to plenty, so the refusal comes in every
# phase: at the first tuples, when the spill begins, when buffers are mapped,
# in the middle of the merge.  Each sort ends with an error or is right, and
# leaves nothing behind.
#
# Seen to fail with: fms_io_map() not looking whether there was memory (the
# server crashes); fms_io_close() without munmap().

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use FmsFaults;
use FmsTest;
use PostgreSQL::Test::Utils;
use Test::More;

my $bench = FmsFaults->new('out_of_memory');
my $node = $bench->node;

sub limit_kb
{
	my ($pid, $kb) = @_;
	my $bytes = $kb eq 'unlimited' ? $kb : $kb * 1024;

	system('prlimit', "--pid=$pid", "--as=$bytes:") == 0
	  or die "prlimit of $pid: $?";
	return;
}

foreach my $method (uring_works($node) ? qw(io_uring sync) : 'sync')
{
	foreach my $mode (qw(fmsort traditional flash))
	{
		# first keys, sort and assist blocks: a good deal of everything
		my $session = $bench->session("SET work_mem = '1MB';
			SET fmsort.io_method = $method; SET fmsort.mode = $mode;
			SET fmsort.block_size = '16kB'");
		my $pid = $bench->pid_of($session);
		my $check = $bench->check;
		my $before = $bench->holdings($session);
		my %ends = (error => 0, right => 0);

		foreach my $more_kb (map { 96 * $_ } 0 .. 30)
		{
			my $name = "$mode, $method, $more_kb kB to be had";

			limit_kb($pid, status_kb($pid, 'VmSize') + $more_kb);
			my ($answer, $messages) = $bench->ask($session, $check);
			limit_kb($pid, 'unlimited');

			$ends{ $messages eq '' ? 'right' : 'error' }++;
			if ($messages eq '')
			{
				is($answer, $bench->right, "$name: sorts right");
			}
			else
			{
				like($messages,
					qr/ERROR:  (53200: out of memory|0A000: could not set up io_uring: Cannot allocate memory)/,
					"$name: an error that says so");
			}
			is(join("\n", $bench->harm($session, undef)),
				'', "$name: nothing is left of it")
			  if $more_kb % 384 == 0;
		}
		cmp_ok($ends{error}, '>=', 1, "$mode, $method: it did run out");
		cmp_ok($ends{right}, '>=', 1, "$mode, $method: ... not always");
		# the allocator may have taken some address space elsewhere
		my $after = $bench->holdings($session);
		cmp_ok(
			$after->{anonymous_kb} - $before->{anonymous_kb},
			'<=', 512, "$mode, $method: ... and no mapping stays (kB)");
		$session->quit;
	}
}

$node->stop;
done_testing();
