# A sort stays within work_mem, plus a small constant, whatever its blocks and
# however many of them there are: the backend's largest resident memory, which
# the kernel keeps, says so.
#
# Seen to fail with: arrays that are copied when they grow, so that for a while
# there are two of them.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use FmsTest;
use PostgreSQL::Test::Utils;
use Test::More;

# What any sort may take beside: code paged in, caches, pages of allocators.
my $constant_kb = 1536;

# With direct I/O, what rounds an I/O buffer from 256 kB on up to huge pages.
my $huge_pages_kb = 2048;

# Small shared buffers: those that a backend touches count as its own.
my $node = fms_node('memory', 'shared_buffers = 512kB', 'max_connections = 5');

$node->safe_psql('postgres', <<'EOT');
CREATE TABLE t AS SELECT i AS id, (i::bigint * 7919 % 1000003)::int AS k,
  md5(i::text) AS t, repeat('.', 30) AS pay FROM generate_series(1, 100000) i;
ANALYZE t;
EOT

my $query = 'SELECT count(pay), min(t) FROM
	(SELECT * FROM t ORDER BY k OFFSET 1) s';

plan skip_all => 'the peak of a process\'s memory cannot be reset here'
  unless reset_peak($$);

# By how much the memory grows at its largest in a session that sorts twice:
# what the first sort leaves with the allocator must not be added to.
sub growth_kb
{
	my ($settings) = @_;
	my $session = $node->background_psql('postgres');
	my $pid = $session->query_safe('SELECT pg_backend_pid()');
	my ($before, $growth);

	# everything that is loaded once
	$session->query_safe("SET work_mem = '64kB'; $query");
	reset_peak($pid);
	$before = status_kb($pid, 'VmHWM');
	$session->query_safe("$settings; $query");
	$session->query_safe($query);
	$growth = status_kb($pid, 'VmHWM') - $before;
	$session->quit;
	return $growth;
}

my @modes = map { [ $_, 'auto' ] } qw(fmsort double_buffering traditional
  multi_block flash);
push @modes, [ 'fmsort', 'sync' ], [ 'fmsort', 'auto', 'on' ];

foreach my $work_mem_kb (64, 1024, 6144)
{
	foreach my $blocks ([ 0, 0 ], [ 512, 64 ])
	{
		foreach my $how (@modes)
		{
			my ($block, $assist) = @{$blocks};
			my ($mode, $method, $compression) = (@{$how}, 'off');
			my $growth = growth_kb("SET work_mem = $work_mem_kb;
				SET fmsort.mode = $mode; SET fmsort.io_method = $method;
				SET fmsort.compression = $compression;
				SET fmsort.block_size = $block;
				SET fmsort.assist_blocks = $assist");

			cmp_ok(
				$growth,
				'<=',
				$work_mem_kb + $constant_kb +
				  ($work_mem_kb > 256 ? $huge_pages_kb : 0),
				"$mode, $method, compression $compression, work_mem = "
				  . "${work_mem_kb}kB, block_size = $block: kB");
		}
	}
}

$node->stop;
done_testing();
