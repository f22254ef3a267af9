# A library that is replaced under a session by one whose counters have other
# fields: parallel workers load that, and share memory with the session.
#
# Seen to fail with: join_shared() of node.c not looking at the size of the
# counters.

use strict;
use warnings;

use File::Copy;
use FindBin;
use lib $FindBin::RealBin;
use FmsTest;
use JSON::PP;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $other = $ENV{FMSORT_OTHER_COUNTERS};

plan skip_all => 'FMSORT_OTHER_COUNTERS names no library; see script/test'
  unless $other && -e $other;

my $pkglibdir = (run_command([ 'pg_config', '--pkglibdir' ]))[0];
my $library = PostgreSQL::Test::Utils::tempdir() . '/fmsort.so';

sub install
{
	my ($file) = @_;

	copy($file, "$library.new") or die "$library: $!";
	rename "$library.new", $library or die "$library: $!";
}

install("$pkglibdir/fmsort.so");

# not fms_node(): the extension's functions would load the other file, too
my $node = PostgreSQL::Test::Cluster->new('another_library');

$node->init;
$node->append_conf('postgresql.conf', <<"EOT");
fsync = off
autovacuum = off
session_preload_libraries = '$library'
fmsort.min_rows = 0
parallel_setup_cost = 0
parallel_tuple_cost = 0
min_parallel_table_scan_size = 0
max_worker_processes = 8
parallel_leader_participation = off
EOT
$node->start;

$node->safe_psql('postgres', 'CREATE TABLE t AS SELECT i AS id,
	(i * 7919 % 10007) AS k, repeat(md5(i::text), 2) AS pay
	FROM generate_series(1, 20000) i; ANALYZE t');

my $session = $node->background_psql('postgres', on_error_stop => 0);

$session->query_safe("SET work_mem = '64kB'");
$session->query_safe('SET max_parallel_workers_per_gather = 2;
	SET fmsort.parallel = off');

# The Gather Merge, once two workers were to be had.
sub plan_with_workers
{
	my $plan;

	wait_until(
		sub {
			$plan = decode_json($session->query_safe(
					'EXPLAIN (ANALYZE, FORMAT JSON) SELECT * FROM t ORDER BY k'
				))->[0]{Plan};
			return ($plan->{'Workers Launched'} // 0) == 2;
		}) or die 'two workers are not to be had';
	return $plan;
}

my $sum = 'SELECT sum(id), count(*) FROM (SELECT * FROM t ORDER BY k OFFSET 0) s';
my $right = $session->query_safe($sum);
my $sort = plan_with_workers()->{Plans}[0];

is($sort->{'Custom Plan Provider'}, 'FMSort', 'a parallel plan');
is(scalar(@{ $sort->{'Sort Workers'} // [] }),
	2, 'the same library: both workers report');

install($other);
is($session->query_safe($sum), $right, 'other counters: the answer is right');
$sort = plan_with_workers()->{Plans}[0];
is($sort->{'Actual Rows'} * $sort->{'Actual Loops'},
	20000, '... the workers sort');
is_deeply($sort->{'Sort Workers'} // [],
	[], '... and what they would report is left out');

# Without a Gather Merge the workers have nothing that the leader understands.
$session->query_safe('RESET fmsort.parallel');
$session->{stderr} = '';
$session->query($sum);
like($session->{stderr}, qr/this plan was made by another version of fmsort/,
	'... and a parallel sort is an error that says so');

$session->quit;
$node->stop;
done_testing();
