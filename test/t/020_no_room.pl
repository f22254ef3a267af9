# No room for a sort's files: a full disk and temp_file_limit, each while runs
# are being formed and in an intermediate pass of the merge.
#
# The disks are a small ext4 and a small tmpfs, which whoever runs this has
# made (see 003_filesystems.pl): FMSORT_SMALLFS, FMSORT_SMALLTMPFS.  Without
# them their part is skipped and says so.
#
# Which phase it is does not hang on chance: the sort is run once with all the
# room it wants, to learn what run formation writes and what it writes in all;
# then it gets less of either.  A pass writes where it has read, so all that it
# takes beside the runs is what it has read some of, but has not read through.
#
# Seen to fail with: reserve() of tape.c writing to the file without fd.c's
# knowledge (temp_file_limit is not reached).

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use FmsFaults;
use FmsTest;
use PostgreSQL::Test::Utils;
use Test::More;

my $bench = FmsFaults->new('no_room');
my $node = $bench->node;
my $check = $bench->check;

# What fmsort_last_sort() says of it: so many kB of runs, so many of the file in
# the end, so many written.
my ($runs_kb, $all_kb, $written_kb, $passes) = split /\|/,
  (split /\n/, $node->safe_psql('postgres', "$check
	SELECT blocks * block_size / 1024, bytes_spilled / 1024,
	  bytes_written / 1024, merge_passes
	FROM fmsort_last_sort()"))[1];
cmp_ok($passes, '>', 1, 'the sort has an intermediate pass');
cmp_ok($written_kb, '>', $runs_kb * 1.4, '... that writes a good part of it');
cmp_ok($all_kb, '<', $runs_kb * 1.1 + 1024, '... where it has read');

my %room_kb = (
	'run formation' => int($runs_kb * 0.6),
	'an intermediate pass' => int(($runs_kb + $all_kb) / 2));
my @methods = uring_works($node) ? qw(io_uring sync) : ('sync');

# ---- temp_file_limit ------------------------------------------------------------------

foreach my $method (@methods)
{
	my $session = $bench->session("SET fmsort.io_method = $method");

	foreach my $phase (sort keys %room_kb)
	{
		my $name = "$method, temp_file_limit in $phase";

		$bench->fault_ok(
			$session,
			"SET temp_file_limit = $room_kb{$phase}; $check
			 RESET temp_file_limit",
			qr/ERROR:  53400: temporary file size exceeds "?temp_file_limit"? \($room_kb{$phase}kB\)/,
			$name);
	}

	# again and again: nothing of the allowance may get lost
	my $before = $bench->holdings($session);
	my (undef, $messages) = $bench->ask($session,
		join(' ', map { "SET temp_file_limit = $_; $check" }
			  (values %room_kb) x 10) . ' RESET temp_file_limit');
	is(scalar(() = $messages =~ /ERROR:  53400/g),
		20, "$method, twenty of them happen");
	$bench->unharmed($session, $before, "$method, twenty of them");
	$session->quit;
}

# ---- full disks -----------------------------------------------------------------------

foreach my $disk ([ 'ext4', $ENV{FMSORT_SMALLFS} ],
	[ 'tmpfs', $ENV{FMSORT_SMALLTMPFS} ])
{
	my ($kind, $mount) = @$disk;

  SKIP:
	{
		skip "no small $kind is to be had", 1 unless $mount;

		my $dir = "$mount/no_room_$$";
		mkdir $dir or die "$dir: $!";
		$node->safe_psql('postgres', "CREATE TABLESPACE $kind LOCATION '$dir'");
		push @{ $bench->{tablespaces} }, $dir;

		foreach my $method (@methods)
		{
			foreach my $direct (
				direct_ways($node, "SET temp_tablespaces = $kind;"))
			{
				my $session =
				  $bench->session("SET temp_tablespaces = $kind;
					SET fmsort.io_method = $method;
					SET fmsort.direct_io = $direct");

				foreach my $phase (sort keys %room_kb)
				{
					my $name = "$kind, $method, direct_io = $direct, $phase";
					my $before = $bench->holdings($session);
					my $free = free_kb($dir);

					fill_up($mount, $room_kb{$phase});
					my (undef, $messages) = $bench->ask($session, $check);
					like( $messages,
						qr/ERROR:  53100: could not (write to|extend) .*: No space left on device/,
						"$name: the message");
					unlink "$mount/ballast" or die "$mount/ballast: $!";
					is(free_kb($dir), $free, "$name: the room is free again");
					$bench->unharmed($session, $before, $name);
				}
				$session->quit;
			}
		}
		pop @{ $bench->{tablespaces} };
		$node->safe_psql('postgres', "DROP TABLESPACE $kind");
		rmdir $dir;
	}
}

$node->stop;
done_testing();
