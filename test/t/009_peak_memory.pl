# The largest memory of a backend that sorts millions of rows: at most work_mem
# and 4 MB more than it had when it was idle, whatever work_mem is, in run
# formation and in the merge, I/O buffers and ring included.  And however many
# blocks there are: 512 bytes each and some hundred thousand of them, so that
# their first keys alone take many times the work_mem of 1 MB; with
# FMSORT_LONG=1 there are five million.
#
# Two witnesses: the process's private memory, asked for every few milliseconds
# while the sort runs, and the peak of its resident memory, which the kernel
# keeps and which no short moment escapes.
#
# Seen to fail with: a formation_budget() a tenth above work_mem; first keys that
# never leave memory; a fan-in that does not ask what fits.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use FmsTest;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(sleep time);

my $rows = 5_000_000;
my $blocks = $ENV{FMSORT_LONG} ? $rows : 400_000;
my $constant_kb = 4096;
my $poll_seconds = 0.004;
# Of a session, which ends with an error then.
my $timeout = 10 * $PostgreSQL::Test::Utils::timeout_default;

# Small shared buffers: those that one backend alone touches count as its own.
my $node = fms_node('peak_memory', 'shared_buffers = 1MB',
	'max_connections = 5', 'max_wal_size = 4GB');

# Not generate_series() in FROM: that would keep its rows first.
$node->safe_psql('postgres', <<"EOT");
CREATE UNLOGGED TABLE t AS SELECT i AS id, i * 7919 % 5000011 AS k,
  i % 1000 AS a, -i AS b
FROM (SELECT generate_series(1, ${rows}::int8) AS i OFFSET 0) s;
ANALYZE t;
EOT

# /proc/PID/smaps_rollup: what no other process has.
sub private_kb
{
	my ($pid) = @_;
	my $sum = 0;

	open my $maps, '<', "/proc/$pid/smaps_rollup" or return undef;
	while (my $line = <$maps>)
	{
		$sum += $1 if $line =~ /^Private_\w+:\s+(\d+) kB/;
	}
	return $sum;
}

plan skip_all => 'a process\'s memory cannot be looked at here'
  unless private_kb($$) && reset_peak($$);

# Runs the query; its answer, and the largest private memory on the way.
sub watch
{
	my ($session, $pid, $query) = @_;
	my ($peak, $looks) = (0, 0);

	$session->{stdout} = '';
	$session->{stdin} .= "$query;\n\\echo watched\n";
	while ($session->{stdout} !~ /^watched$/m)
	{
		my $kb = private_kb($pid) // 0;

		$peak = $kb if $kb > $peak;
		$looks++;
		$session->{run}->pump_nb;
		sleep $poll_seconds;
	}
	my ($answer) = $session->{stdout} =~ /^(.*)\n/;
	$session->{stdout} = '';
	return ($answer, $peak, $looks);
}

sub sort_few
{
	my ($session, $settings, $query) = @_;

	$session->query_safe("SET work_mem = '64kB'; $settings; "
		  . ($query =~ s/FEW/id <= 3000/r));
}

# A query has a place for a condition, FEW.  With few rows it pages in and
# caches what is resident, but not the sort's.
sub check
{
	my ($what, $work_mem_kb, $settings, $query, $right) = @_;
	my $session = $node->background_psql('postgres', timeout => $timeout);
	my $pid = $session->query_safe('SELECT pg_backend_pid()');
	my $idle = private_kb($pid);
	my $limit = $work_mem_kb + $constant_kb;
	my $start = time;
	my ($answer, $peak, $looks, $resident);

	sort_few($session, $settings, $query);
	$session->query_safe("SET work_mem = $work_mem_kb");
	reset_peak($pid);
	$resident = status_kb($pid, 'VmHWM');

	($answer, $peak, $looks) =
	  watch($session, $pid, $query =~ s/FEW/id > 0/r);
	$resident = status_kb($pid, 'VmHWM') - $resident;

	is($answer, $right, "$what: right");
	is( $session->query_safe(
			'SELECT sort_method, runs > 1 FROM fmsort_last_sort()'),
		'external merge|t',
		"$what: spills");
	cmp_ok($looks, '>=', 50, "$what: looked at often enough");
	cmp_ok($peak - $idle, '<=', $limit, "$what: private memory, kB");
	cmp_ok($resident, '<=', $limit, "$what: resident memory, kB");
	note $session->query_safe(q{SELECT format('%s runs, %s passes, %s blocks'
		' of %s, %s assist blocks, %s, direct I/O %s', runs, merge_passes,
		blocks, block_size, assist_blocks, io_method, direct_io)
		FROM fmsort_last_sort()});
	note sprintf '%s: work_mem %d kB, private +%d kB on %d, resident'
	  . ' +%d kB, %d looks, %.1f s', $what, $work_mem_kb, $peak - $idle,
	  $idle, $resident, $looks, time - $start;
	$session->quit;
}

# What is above the sort takes no memory of its own.
my $narrow = 'SELECT count(id + a + b) FROM
	(SELECT * FROM t WHERE FEW ORDER BY k OFFSET 1) s';

# One row a block.
my $wide = "SELECT count(pay) FROM (SELECT k, repeat('.', 300) AS pay FROM t
	WHERE FEW AND id <= $blocks ORDER BY k OFFSET 1) s";
my $wide_long_key = $wide =~ s/BY k/BY md5(k::text) COLLATE "C"/r;

# A page of the server's code that no other process uses at the time counts as
# private.  So that this says nothing, another process uses them all the time.
my $other = $node->background_psql('postgres', timeout => $timeout);
sort_few($other, 'SET fmsort.mode = fmsort', $_)
  foreach $narrow, $wide_long_key;

foreach my $work_mem_mb (1, 4, 64, 256)
{
	check("work_mem = ${work_mem_mb}MB",
		$work_mem_mb * 1024, 'SET fmsort.mode = fmsort', $narrow, $rows - 1);
}
foreach my $mode (qw(double_buffering traditional multi_block flash))
{
	check("work_mem = 4MB, $mode", 4096, "SET fmsort.mode = $mode", $narrow,
		$rows - 1);
}

# More runs than blocks of this size fit.
check('large blocks', 1024,
	'SET fmsort.block_size = 65536; SET fmsort.assist_blocks = 2',
	$narrow =~ s/FEW/FEW AND id <= 1000000/r, 999_999);

check("$blocks blocks", 1024, 'SET fmsort.block_size = 512', $wide,
	$blocks - 1);
check("$blocks blocks, long keys", 1024, 'SET fmsort.block_size = 512',
	$wide_long_key, $blocks - 1);
check("$blocks blocks, long keys, flash", 1024,
	'SET fmsort.mode = flash; SET fmsort.block_size = 512',
	$wide_long_key, $blocks - 1);

$other->quit;
$node->stop;
done_testing();
