# A kernel that refuses io_uring, as most container runtimes do: a system call
# filter on this very process, and so on the server that it starts.
#
# Seen to fail with: explain_fallback() of io.c forgetting that it has spoken.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use FmsTest;
use POSIX ();
use PostgreSQL::Test::Utils;
use Test::More;

# Its numbers, from the kernel's headers; io_uring_setup has one everywhere.
my %prctl_of = (x86_64 => 157, aarch64 => 167, riscv64 => 167);
my $machine = (POSIX::uname())[4];
my $io_uring_setup = 425;

plan skip_all => "the number of prctl() on $machine is not known here"
  unless $prctl_of{$machine};

# Load the number of the system call; if it is that one, refuse; else allow.
my $filter = pack('SCCL' x 4,
	0x20, 0, 0, 0,
	0x15, 0, 1, $io_uring_setup,
	0x06, 0, 0, 0x00050000 | POSIX::EPERM(),
	0x06, 0, 0, 0x7fff0000);
my $program = pack('S x6 P', 4, $filter);

# PR_SET_NO_NEW_PRIVS, then PR_SET_SECCOMP with SECCOMP_MODE_FILTER
if (   syscall($prctl_of{$machine}, 38, 1, 0, 0, 0) != 0
	|| syscall($prctl_of{$machine}, 22, 2, $program, 0, 0) != 0)
{
	plan skip_all => "no system call filter is to be had: $!";
}

my $node = fms_node('no_uring', "work_mem = '64kB'",
	"log_line_prefix = '%p '");

$node->safe_psql('postgres', <<'EOT');
CREATE TABLE t AS SELECT i AS id, (i::bigint * 7919 % 10007)::int AS k,
  md5(i::text) AS pay FROM generate_series(1, 30000) i;
ANALYZE t;
EOT

my $query = <<'EOT';
SELECT md5(string_agg(id || pay, '')) FROM
  (SELECT id, k, pay FROM t ORDER BY k) s;
EOT
my $right = $node->safe_psql('postgres',
	'SET fmsort.mode = off;' . $query =~ s/ORDER BY k/ORDER BY k, id/r);
my $how = 'SELECT pg_backend_pid(), io_method, sort_method
FROM fmsort_last_sort();';

# ---- auto: falls back ------------------------------------------------------------

my $log_start = -s $node->logfile;
my ($out, $err) = ('', '');
my @pids;

foreach my $session (1, 2)
{
	$node->psql(
		'postgres', "$query $how $query $query $how",
		stdout => \$out,
		stderr => \$err);
	my @lines = split /\n/, $out;
	is_deeply(
		[ @lines[ 0, 2, 3 ] ],
		[ ($right) x 3 ],
		"session $session: auto sorts right");
	like($lines[4], qr/^\d+\|sync\|external merge$/,
		"session $session: ... with synchronous I/O");
	is($err, '', "session $session: ... and the client is told nothing");
	push @pids, $lines[1] =~ /^(\d+)/;
}

my $log = slurp_file($node->logfile, $log_start);
foreach my $pid (@pids)
{
	my @lines = $log =~
	  /^$pid LOG:  .*fmsort uses synchronous I\/O because io_uring is not available: Operation not permitted/mg;

	is(scalar(@lines), 1, 'the log says so once a process');
	like($log, qr/^$pid HINT:  .*fmsort\.io_method/m, '... with a hint');
}

# ---- every mode, and both ways to the file ----------------------------------------

foreach my $mode (qw(fmsort double_buffering traditional multi_block
	flash))
{
	foreach my $direct (direct_ways($node))
	{
		($out) = $node->safe_psql('postgres', "SET fmsort.mode = $mode;
			SET fmsort.direct_io = $direct; SET fmsort.block_size = 1024;
			$query");
		is($out, $right, "$mode, direct_io = $direct: the same rows");
	}
}

# ---- io_uring: an error that says what to do ---------------------------------------

$node->psql(
	'postgres', "\\set VERBOSITY verbose
SET fmsort.io_method = io_uring;
$query
SELECT 'the session goes on';
RESET fmsort.io_method;
$query",
	stdout => \$out,
	stderr => \$err,
	on_error_stop => 0);
like($err,
	qr/ERROR:  0A000: could not set up io_uring: Operation not permitted/,
	'io_method = io_uring: an error');
like($err, qr/HINT:  .*fmsort\.io_method.*auto/, '... with a hint');
is($out, "the session goes on\n$right", '... and the next sort is right');
is(join(' ', temp_files($node)), '', 'no temporary file is left');

# ---- sync: nothing to say ---------------------------------------------------------

$log_start = -s $node->logfile;
is($node->safe_psql('postgres', "SET fmsort.io_method = sync; $query"),
	$right, 'io_method = sync: sorts right');
unlike(slurp_file($node->logfile, $log_start), qr/io_uring/,
	'... and the log says nothing');

# Only sorts that spill need any of this.
is( $node->safe_psql('postgres',
		"SET work_mem = '64MB'; SET fmsort.io_method = io_uring; $query"),
	$right,
	'a sort in memory does not care');

$node->stop;
done_testing();
