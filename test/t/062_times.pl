# Times that add up, by a clock that jumps (jumping_clock.c): each process sees
# what it would see if it lost its processor for 200 ms, again and again, mostly
# while a sort times a call.
#
# Seen to fail with: samples that stand for 64 calls without a bound (before
# clock.h divided measured time); merge time with the block order's in it.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use FmsTest;
use JSON::PP;
use Test::More;

my $clock = $ENV{FMSORT_JUMPING_CLOCK};

plan skip_all => 'FMSORT_JUMPING_CLOCK names no library; see script/test'
  unless $clock && -e $clock;

my $node = fms_node('times');

$node->safe_psql('postgres', <<'EOT');
CREATE TABLE t AS SELECT i AS id, i / 50 AS g,
  (i::bigint * 7919 % 10007)::int AS k, repeat('.', 50) AS pay
FROM generate_series(1, 20000) i;
CREATE INDEX ON t (g);
VACUUM ANALYZE t;
EOT

my %sorts = (
	'external' => [ "SET work_mem = '256kB'", 'SELECT * FROM t ORDER BY k' ],
	'several passes' => [
		"SET work_mem = '64kB'; SET fmsort.block_size = 8192",
		'SELECT * FROM t ORDER BY k'
	],
	'compressed' => [
		"SET work_mem = '256kB'; SET fmsort.compression = on",
		'SELECT * FROM t ORDER BY k'
	],
	'in memory' => [ "SET work_mem = '64MB'", 'SELECT * FROM t ORDER BY k' ],
	'top-N' => [ "SET work_mem = '64MB'", 'SELECT * FROM t ORDER BY k LIMIT 3000' ],
	'groups' => [
		"SET work_mem = '64kB'; SET enable_incremental_sort = on;
		 SET enable_seqscan = off", 'SELECT * FROM t ORDER BY g, k, pay'
	],
	'a few rows' => [
		"SET work_mem = '64kB'", 'SELECT * FROM t WHERE id < 30 ORDER BY k'
	]);

my $add_up = <<'EOT';
SELECT string_agg(format('%s: %s', sort_method, s), E'\n') FROM fmsort_last_sort() s
WHERE NOT (input_time >= 0 AND input_time <= run_formation_time
  AND blocked_time >= 0 AND blocked_time <= merge_time AND block_order_time >= 0)
EOT

sub node_of
{
	my ($plan) = @_;

	return $plan if ($plan->{'Custom Plan Provider'} // '') eq 'FMSort';
	foreach my $child (@{ $plan->{Plans} // [] })
	{
		my $found = node_of($child);

		return $found if $found;
	}
	return undef;
}

foreach my $every (3, 5, 17)
{
	local $ENV{LD_PRELOAD} = $clock;
	local $ENV{FMSORT_JUMPS} = "$every 200000";

	$node->restart;
	foreach my $name (sort keys %sorts)
	{
		my ($set, $sort) = @{ $sorts{$name} };

		is( $node->safe_psql('postgres',
				"$set; SELECT count(*) FROM ($sort OFFSET 0) s; $add_up") =~
			  s/^\d+\n?//r,
			'',
			"every $every, $name: the parts are no more than the whole");

		my $json = $node->safe_psql('postgres',
			"$set; EXPLAIN (ANALYZE, FORMAT JSON) $sort");
		my $plan = node_of(decode_json($json)->[0]{Plan});
		my $parts = $plan->{'Run Formation Time'} +
		  ($plan->{'Block Order Time'} // 0) + ($plan->{'Merge Time'} // 0);

		cmp_ok($parts, '<=', $plan->{'Actual Total Time'} + 0.01,
			'... nor more than the node');
		cmp_ok($plan->{'Input Time'}, '<=', $plan->{'Run Formation Time'},
			'... and in EXPLAIN');
		cmp_ok($plan->{'Blocked Time'} // 0, '<=', $plan->{'Merge Time'} // 0,
			'... both of them');
	}
	is( $node->safe_psql('postgres', <<'EOT'),
SET work_mem = '256kB';
SELECT string_agg(c::text, E'\n')
FROM fmsort_compare_merges(
  'SELECT *, rank() OVER (ORDER BY k) FROM t ORDER BY id',
  '{traditional,fmsort,flash}', 4) c
WHERE run_formation_time + merge_time > total_time + 0.2
  OR blocked_time > merge_time;
EOT
		'',
		"every $every: fmsort_compare_merges(), nor more than the query");
}

$node->stop;
done_testing();
