package FmsFaults;

# A server to be harmed, and the one question that every fault ends with: is
# anything left of it?
#
#   my $bench = FmsFaults->new('name', 'configuration = value', ...);
#   my $session = $bench->session('SET fmsort.io_method = sync');
#   my $before = $bench->holdings($session);
#   ... a fault in that session ...
#   $bench->unharmed($session, $before, 'name of the fault');
#
# unharmed() is one test.  It fails, and says why, unless
#
#   - the server takes a new connection and answers
#   - no file is below any pgsql_tmp
#   - the session has as many descriptors and mappings of every kind as before
#   - the session's next sort spills its full allowance (temp_file_limit lets
#     it have just what it needs, so nothing may be charged any more), gives
#     exactly the rows of the stock sort in that sequence, and adds to
#     pg_stat_database what it always adds

use strict;
use warnings;
no warnings 'portable';    # addresses have 64 bits

use FmsTest;
use PostgreSQL::Test::Utils;
use Test::More;

# What faulty_io.c can be ordered to do, by its number.
my %orders = (
	none => 0,
	read_error => 1,
	write_error => 2,
	short_read => 3,
	short_write => 4,
	torn_write => 5,
	lost_write => 6,
	flipped_bit => 7,
	stale_read => 8,
	reorder => 9,
	no_answer => 10,
	slow_write => 11);

# Of the table t, which is sorted.
our $rows = 20000;

sub new
{
	my ($class, $name, @configuration) = @_;
	my $self = bless {
		node => undef,
		tablespaces => []
	  },
	  $class;

	$self->{node} =
	  fms_node($name, "work_mem = '64kB'", 'fmsort.block_size = 1024',
		'fmsort.assist_blocks = 16', @configuration);
	$self->make_table;
	return $self;
}

# new() with faulty_io.c between fmsort and the kernel.  Returns undef where
# it has not been built; see script/test.
sub new_with_faulty_io
{
	my ($class, $name, @configuration) = @_;
	my $library = $ENV{FMSORT_FAULTY_IO};
	my $orders = PostgreSQL::Test::Utils::tempdir() . "/$name.orders";

	return undef unless $library && -e $library;
	write_orders($orders, 'none', 0, 0, 0);
	local $ENV{LD_PRELOAD} = $library;
	local $ENV{FMSORT_FAULTS} = $orders;
	my $self = $class->new($name, @configuration);
	$self->{orders} = $orders;
	return $self;
}

# Starts the server again after an accident of the postmaster's.  False if it
# does not start yet: some process of the old one may still be there.
sub restart
{
	my ($self) = @_;

	if ($self->{orders})
	{
		local $ENV{LD_PRELOAD} = $ENV{FMSORT_FAULTY_IO};
		local $ENV{FMSORT_FAULTS} = $self->{orders};
		return $self->{node}->start(fail_ok => 1);
	}
	return $self->{node}->start(fail_ok => 1);
}

sub node { return $_[0]->{node}; }

sub make_table
{
	my ($self) = @_;

	$self->{node}->safe_psql('postgres', <<"EOT");
CREATE TABLE t AS SELECT i AS id, (i::bigint * 7919 % 10007)::int AS k,
  repeat(md5(i::text), 2) AS pay FROM generate_series(1, $rows) i;
ANALYZE t;
EOT
	$self->{right} = $self->{node}->safe_psql('postgres',
		'SET fmsort.mode = off; ' . $self->check('k, id'));
	return;
}

# The rows of t in the order of the keys, as a number that says which row came
# when.
sub check
{
	my ($self, $keys) = @_;

	$keys //= 'k';
	return <<"EOT";
SELECT sum(hashint8extended(id, n) % 1000000007 + hashtext(pay)) FROM
  (SELECT row_number() OVER () AS n, id, pay FROM
    (SELECT id, k, pay FROM t ORDER BY $keys) s) r;
EOT
}

sub right { return $_[0]->{right}; }

# ---- sessions ---------------------------------------------------------------------

sub session
{
	my ($self, $settings) = @_;
	my $session =
	  $self->{node}->background_psql('postgres', on_error_stop => 0);

	$session->query_safe('\set VERBOSITY verbose');
	$session->query_safe($settings) if $settings;
	$self->{about}{$session} = { settings => $settings // '' };
	# what is loaded and allocated once
	$self->sort_within($session, 65536) foreach 1, 2;
	$self->allowance($session);
	return $session;
}

# Rows, and what went to stderr.
sub ask
{
	my ($self, $session, $sql) = @_;

	$session->{stderr} = '';
	my $answer = $session->query($sql);
	my $messages = $session->{stderr};
	$session->{stderr} = '';
	return ($answer, $messages);
}

sub pid_of
{
	my ($self, $session) = @_;

	return $self->{about}{$session}{pid} //=
	  $session->query_safe('SELECT pg_backend_pid()');
}

# Sends a statement and does not wait for it; answer() does.
sub start
{
	my ($self, $session, $sql) = @_;

	$session->{stderr} = '';
	# a quick one's answer may come together with that word
	$self->{about}{$session}{early} =
	  $session->query_until(qr/started/, "\\echo started\n$sql;\n") =~
	  s/.*?started\n?//sr;
	return;
}

# What came back since start().
sub answer
{
	my ($self, $session) = @_;
	my $answer =
	  $self->{about}{$session}{early} . "\n" . $session->query('\echo');
	my $messages = $session->{stderr};

	$session->{stderr} = '';
	$answer =~ s/\A\s+|\s+\z//g;
	return ($answer, $messages);
}

# Starts a statement and waits until it waits for that.
sub start_and_wait
{
	my ($self, $session, $sql, $wait_event) = @_;
	my $pid = $self->pid_of($session);

	$self->start($session, $sql);
	wait_until(
		sub {
			$self->{node}->safe_psql('postgres',
				"SELECT wait_event = '$wait_event' FROM pg_stat_activity
				 WHERE pid = $pid") eq 't';
		}) or die "the statement never waited for $wait_event: $sql";
	return $pid;
}

# ---- what a session holds ---------------------------------------------------------

# Its descriptors and mappings by kind.  Left out are relation files and logs,
# which come and go with fd.c's cache; the heap, which the memory tests look at;
# and dynamic shared memory, where the server keeps its statistics.  Under an
# address sanitizer all of the heap is mappings without a name.
sub holdings
{
	my ($self, $session) = @_;

	return $self->holdings_of($self->pid_of($session));
}

sub holdings_of
{
	my ($self, $pid) = @_;
	my %held = (fd_io_uring => 0, fd_temporary => 0, map_io_uring => 0);

	foreach my $link (glob("/proc/$pid/fd/*"))
	{
		my $target = readlink($link) // next;

		$held{fd_temporary}++ if $target =~ /pgsql_tmp/;
		next if $target =~ m{^/};
		$target =~ s/\[?\d*\]?( \(deleted\))?$//;
		$target =~ s/^anon_inode:\[?//;
		$held{"fd_$target"}++;
	}
	foreach my $line (split /\n/, slurp_file("/proc/$pid/maps"))
	{
		my ($from, $to, $path) =
		  $line =~ /^(\w+)-(\w+) \S+ \S+ \S+ \d+ *(.*)$/;

		if ($path =~ /io_uring/) { $held{map_io_uring}++; }
		elsif ($path =~ /pgsql_tmp/) { $held{map_temporary}++; }
		elsif ($path =~ /^$/ && !$ENV{ASAN_OPTIONS}) { $held{anonymous_kb} += (hex($to) - hex($from)) / 1024; }
		elsif ($path =~ /\.so/) { $held{"map_$path"}++; }
	}
	return \%held;
}

# Where two of them differ.
sub differences
{
	my ($before, $after) = @_;
	my %kinds = map { $_ => 1 } keys %$before, keys %$after;

	return map { "$_: " . ($before->{$_} // 0) . ' -> ' . ($after->{$_} // 0) }
	  grep { ($before->{$_} // 0) != ($after->{$_} // 0) } sort keys %kinds;
}

# ---- is anything left? ---------------------------------------------------------------

# Sorts under that temp_file_limit.  Returns the answer, the messages, and what
# the sort adds to pg_stat_database.
sub sort_within
{
	my ($self, $session, $kb) = @_;
	my $check = $self->check;
	# sessions that end count what they wrote when they do
	my $alone = q{DO $$ BEGIN
		WHILE (SELECT count(*) FROM pg_stat_activity WHERE backend_type =
			   'client backend' AND datname = current_database()) > 1 LOOP
		  PERFORM pg_stat_clear_snapshot(), pg_sleep(0.005);
		END LOOP;
	  END $$};
	my $count = "SELECT pg_stat_force_next_flush();
		SELECT 'bytes ' || temp_bytes FROM pg_stat_database
		WHERE datname = current_database();";
	my ($rows, $messages) = $self->ask($session, "$alone; $count
		SET temp_file_limit = $kb; $check RESET temp_file_limit; $count");
	my ($before, $answer, $after) =
	  $rows =~ /^\nbytes (\d+)\n(.*)\n\nbytes (\d+)$/s
	  or return ($rows, $messages, -1);

	return ($answer, $messages, $after - $before);
}

# What an undisturbed sort of this session writes: the temp_file_limit that it
# just does not reach, in kB, and what it adds to pg_stat_database.
sub allowance
{
	my ($self, $session) = @_;

	$self->{allowances}{ $self->{about}{$session}{settings} } //= do
	{
		my ($low, $high) = (0, 65536);
		my (undef, undef, $bytes) = $self->sort_within($session, $high);

		# the least limit that lets it pass
		while ($high - $low > 32)
		{
			my $middle = ($low + $high) >> 1;
			my ($answer) = $self->sort_within($session, $middle);

			if ($answer eq $self->{right}) { $high = $middle; }
			else { $low = $middle; }
		}
		{ kb => $high, bytes => $bytes };
	};
	return $self->{allowances}{ $self->{about}{$session}{settings} };
}

# Everything that is wrong after a fault, as lines of text.  The session is
# left out if it has not survived, what it holds if there is nothing to compare
# that with.
sub harm
{
	my ($self, $session, $before) = @_;
	my @places = ($self->{node}, @{ $self->{tablespaces} });
	my @harm;

	push @harm, 'the server takes no connection'
	  unless connects($self->{node});
	wait_until(sub { !temp_files(@places) }) or push @harm,
	  temp_files(@places);
	return @harm unless $session;

	my $allowance = $self->allowance($session);
	push @harm, differences($before, $self->holdings($session)) if $before;
	my ($answer, $messages, $bytes) =
	  $self->sort_within($session, $allowance->{kb});
	push @harm, "the next sort gives '$answer', not '$self->{right}'"
	  if $answer ne $self->{right};
	push @harm, "the next sort says $messages" if $messages ne '';
	push @harm, "pg_stat_database: $allowance->{bytes} -> $bytes bytes"
	  if $bytes != $allowance->{bytes};
	push @harm, differences($before, $self->holdings($session)) if $before;
	return @harm;
}

sub unharmed
{
	my ($self, $session, $before, $name) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;

	return is(join("\n", $self->harm($session, $before)),
		'', "$name: nothing is left of it");
}

# A fault that is an SQL script: it happens, with that message, and leaves
# nothing.
sub fault_ok
{
	my ($self, $session, $sql, $message, $name) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	my $before = $self->holdings($session);

	my ($answer, $messages) = $self->ask($session, $sql);
	like($messages, $message, "$name: the message");
	return $self->unharmed($session, $before, $name);
}

# ---- orders to faulty_io.c ------------------------------------------------------------

sub write_orders
{
	my ($path, $fault, $nth, $times, $value) = @_;
	my $mode = -e $path ? '+<' : '>';

	die "no such order: $fault" unless exists $orders{$fault};
	# the order itself last: by then the rest is there
	open my $out, $mode, $path or die "$path: $!";
	binmode $out;
	syswrite $out, pack('L', 0);
	syswrite $out, pack('L5', $nth, $times, $value, 0, 0);
	sysseek $out, 0, 0;
	syswrite $out, pack('L', $orders{$fault});
	close $out;
	return;
}

# From the nth transfer on so many; value is an errno or a byte's position.
sub order
{
	my ($self, $fault, %how) = @_;

	write_orders(
		$self->{orders}, $fault,
		$how{nth} // 1, $how{times} // 1, $how{value} // 0);
	return;
}

# How many transfers of that kind there were since, and how many faults have
# been made.
sub orders_done
{
	my ($self) = @_;

	return (unpack('L6', slurp_file($self->{orders})))[ 4, 5 ];
}

# Takes orders back; returns the same.
sub at_ease
{
	my ($self) = @_;
	my @done = $self->orders_done;

	write_orders($self->{orders}, 'none', 0, 0, 0);
	return @done;
}

# Reads ordered with no_answer are in flight until the file handle returned is
# closed.
sub hold_answers
{
	my ($self) = @_;
	my $path = "$self->{orders}.fifo";

	if (!-p $path)
	{
		system('mkfifo', $path) == 0 or die "mkfifo $path: $?";
	}
	open my $end, '+<', $path or die "$path: $!";
	return $end;
}

1;
