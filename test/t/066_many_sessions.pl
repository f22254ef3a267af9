# Sessions that have sorted keep little: at most 64 kB of private memory beyond
# what sessions keep that have never loaded fmsort, and no ring.
#
#   FMSORT_SESSIONS   how many of each kind; 10, or 1000 for an hour's patience
#
# Seen to fail with: uring_close() keeping the ring; fms_piece_free() freeing
# nothing; a session that trims only after its first sort in memory.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use FmsTest;
use Test::More;

my $sessions = $ENV{FMSORT_SESSIONS} // 10;
my $most_kb = 64;

plan skip_all => 'a process\'s memory cannot be looked at here'
  unless defined status_kb($$, 'RssAnon');

my $node = fms_node('many_sessions', 'max_connections = ' . ($sessions + 20));

$node->safe_psql('postgres', <<'EOT');
CREATE TABLE t AS SELECT (i::bigint * 7919 % 100003)::int AS k,
  md5(i::text) AS pay FROM generate_series(1, 50000) i;
ANALYZE t;
EOT

# In memory, on disk by both ways, within a cursor, a small spill.
my $sorts = join ' ', map { "$_; " } (
	'SELECT count(*) FROM (SELECT * FROM t WHERE k < 1000 ORDER BY k) s',
	'SELECT count(pay) FROM (SELECT * FROM t ORDER BY k OFFSET 1) s',
	'SELECT count(pay) FROM (SELECT * FROM t ORDER BY pay, k OFFSET 1) s',
	'BEGIN', 'DECLARE c SCROLL CURSOR FOR SELECT * FROM t ORDER BY pay',
	'MOVE 40000 IN c', 'MOVE BACKWARD 30000 IN c', 'COMMIT',
	q{SELECT set_config('work_mem', '64kB', false)},
	'SELECT count(pay) FROM (SELECT * FROM t WHERE k < 4000 ORDER BY pay OFFSET 1) s',
	'RESET work_mem');
my $direct = join '; ', map { "SET fmsort.direct_io = $_; $sorts" }
  direct_ways($node);

my $spill =
  'SELECT count(pay) FROM (SELECT * FROM t ORDER BY pay, k OFFSET 1) s';

# The mean of what n idle sessions have after these statements, in kB.
sub mean_kb
{
	my ($n, $options, $statements) = @_;
	my @sessions;
	my $sum = 0;

	local $ENV{PGOPTIONS} = $options;
	foreach (1 .. $n)
	{
		my $session = $node->background_psql('postgres');

		$session->query_safe($statements);
		push @sessions,
		  [ $session, $session->query_safe('SELECT pg_backend_pid()') ];
	}
	foreach (@sessions)
	{
		my ($session, $pid) = @$_;

		$sum += status_kb($pid, 'RssAnon');
		is_deeply(
			backend_state($pid),
			{ io_uring => 0, temporary => 0, rings_mapped => 0 },
			'nothing is open');
	}
	$_->[0]->quit foreach @sessions;
	return $sum / $n;
}

# each way once, as often as the other has
my $ways = () = $direct =~ /SET fms/g;

foreach (
	[ '256kB', $spill, $spill ],
	map { [ $_, $sorts x $ways, $direct ] } '256kB', '1MB', '4MB')
{
	my ($work_mem, $for_stock, $for_us) = @$_;
	my $options = "-c work_mem=$work_mem";
	my $stock = mean_kb($sessions, "$options -c session_preload_libraries=",
		$for_stock);
	my $ours = mean_kb($sessions, $options, $for_us);

	cmp_ok($ours - $stock, '<=', $most_kb,
		sprintf('work_mem %s, %d sessions: %.0f kB each, without fmsort %.0f',
			$work_mem, $sessions, $ours, $stock));
}

$node->stop;
done_testing();
