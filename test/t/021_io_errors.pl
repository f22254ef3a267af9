# A device that fails: errors, short transfers, blocks that come back wrong,
# completions in another order than the requests; the first transfers and
# those in the middle, by both I/O methods.  faulty_io.c makes them.
#
# A sort either fails with an error that says what happened, or its rows are
# right; and it leaves nothing behind.
#
# Seen to fail with: fms_tape_wait() not trying again what was short,
# interrupted or refused for the moment; fms_tape_check_block() not asking which
# block it has got (a stale one is taken).

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use FmsFaults;
use FmsTest;
use POSIX qw(EAGAIN EINTR EIO ENOMEM ENOSPC);
use Test::More;

my $bench = FmsFaults->new_with_faulty_io('io_errors')
  or plan skip_all => 'FMSORT_FAULTY_IO names no library; see script/test';

# How the sort is to end: an error, or (undef) with the right rows.
my $corrupted = qr/ERROR:  XX001: .*sort temporary file/;
my @cases = (
	[ 'read_error', { value => EIO }, qr/ERROR:  58030: could not read from sort temporary file .*: Input\/output error/ ],
	[ 'read_error', { value => EIO, times => 1000000 }, qr/ERROR:  58030: could not read from sort temporary file .*: Input\/output error/ ],
	[ 'read_error', { value => ENOMEM }, qr/ERROR:  \w+: could not read from sort temporary file .*: Cannot allocate memory/ ],
	[ 'read_error', { value => EAGAIN }, undef, 'io_uring' ],
	[ 'read_error', { value => EINTR }, undef ],
	[ 'write_error', { value => EIO }, qr/ERROR:  58030: could not (write to|extend) sort temporary file .*: Input\/output error/ ],
	[ 'write_error', { value => ENOSPC }, qr/ERROR:  53100: could not (write to|extend) sort temporary file .*: No space left/ ],
	[ 'short_read', {}, undef ],
	[ 'short_read', { times => 1000000 }, qr/ERROR:  XX001: sort temporary file .* is shorter than it should be/ ],
	[ 'lost_write', {}, $corrupted ],
	[ 'torn_write', {}, $corrupted ],
	[ 'stale_read', { times => 5 }, $corrupted ],
	# by itself a sort does not look at every byte
	[ 'flipped_bit', { value => 700 }, $corrupted, undef, 'SET fmsort.checksums = on;' ],
);

# Asks with an order in force.  How many reads a sort makes depends on which of
# them come together, and so on the device: one that ends before the nth has
# suffered nothing, and is asked again for one of its own last ones.
sub ask_spoilt
{
	my ($session, $sql, $order, $nth, %how) = @_;

	foreach (1 .. 5)
	{
		$bench->order($order, nth => $nth, %how);
		my ($answer, $messages) = $bench->ask($session, $sql);
		my ($transfers, $done) = $bench->at_ease;

		return ($answer, $messages, $done) if $done > 0;
		is($answer . $messages, $bench->right, 'not yet spoilt')
		  or last;
		$nth = $transfers > 5 ? $transfers - 5 : 1;
	}
	return ('', '', 0);
}

foreach my $method (uring_works($bench->node) ? qw(io_uring sync) : 'sync')
{
	my $session = $bench->session("SET fmsort.io_method = $method");
	my $check = $bench->check;

	foreach my $case (@cases)
	{
		my ($order, $how, $expected, $only, $settings) = @$case;
		my $sql = ($settings // '') . " $check RESET fmsort.checksums";
		my $transfers;

		next if ($only // '') eq 'io_uring' && $method ne 'io_uring';

		# how many are there?
		$bench->order($order, nth => 1000000000);
		$bench->ask($session, $sql);
		($transfers) = $bench->at_ease;
		die "no transfers for $order" unless $transfers;

		# the very first reads try direct I/O out, or read what is kept
		foreach my $nth (9, int($transfers / 3), $transfers - 5)
		{
			my $name = "$method, $order"
			  . join('', map { ", $_ $how->{$_}" } sort keys %$how)
			  . ", from number $nth of $transfers";
			my $before;

			$before = $bench->holdings($session);
			my ($answer, $messages, $done) =
			  ask_spoilt($session, $sql, $order, $nth, %$how);

			cmp_ok($done, '>=', 1, "$name: has happened");
			if ($expected)
			{
				like($messages, $expected, "$name: is an error");
			}
			else
			{
				is($answer . $messages, $bench->right, "$name: is made good");
			}
			$bench->unharmed($session, $before, $name);
		}
	}

	# The tapes' reads come back newest first.
	if ($method eq 'io_uring')
	{
		foreach my $mode (
			qw(fmsort double_buffering traditional multi_block flash))
		{
			my $before = $bench->holdings($session);

			$bench->order('reorder');
			my ($answer, $messages) =
			  $bench->ask($session, "SET fmsort.mode = $mode; $check");
			my (undef, $done) = $bench->at_ease;
			cmp_ok($done, '>=', 10, "$mode: completions were reordered")
			  if $mode !~ /traditional|multi_block/;
			is($answer . $messages,
				$bench->right, "$mode: completions in another order");
			$session->query_safe('RESET fmsort.mode');
			$bench->unharmed($session, $before, "$mode, another order");
		}
	}
	$session->quit;
}

$bench->node->stop;
done_testing();
