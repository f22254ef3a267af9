# Beside an extension that decides by the types of plan nodes
# (test/faults/neighbour.c), in each order of loading: it sees PostgreSQL's
# plans, its children stay as they are, and fmsort.mode counts when a statement
# starts.
#
#   FMSORT_NEIGHBOUR   the neighbour's library, without .so
#
# Seen to fail with: Sorts replaced in planner_hook, or below custom nodes.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use FmsTest;
use PostgreSQL::Test::Utils;
use Test::More;

my $neighbour = $ENV{FMSORT_NEIGHBOUR}
  or plan skip_all => 'FMSORT_NEIGHBOUR names no library';
my $node = fms_node('neighbour', "shared_preload_libraries = 'fmsort'",
	'max_worker_processes = 8');
my $version = $node->safe_psql('postgres',
	"SELECT current_setting('server_version_num')::int / 10000");

$node->safe_psql('postgres', <<'EOT');
CREATE TABLE t AS SELECT i AS id, (i::bigint * 7919 % 10007)::int AS k
FROM generate_series(1, 20000) i;
ANALYZE t;
EOT

sub lines
{
	my ($query) = @_;
	return $node->safe_psql('postgres', $query);
}

foreach my $order ("fmsort, $neighbour", "$neighbour, fmsort")
{
	my $name = $order =~ /^fmsort/ ? 'fmsort first' : 'fmsort last';

	$node->append_conf('postgresql.conf', "session_preload_libraries = '$order'");
	$node->reload;

	like(lines('EXPLAIN SELECT * FROM t ORDER BY k'),
		qr/^Custom Scan \(FMSort\)/, "$name: its planner hook sees a Sort");
	like(
		lines("SET enable_hashagg = off; EXPLAIN SELECT k, count(*) FROM t
			WHERE id > (SELECT min(id) FROM (SELECT id FROM t ORDER BY k LIMIT 1) x)
			GROUP BY k"),
		qr/FMSort.*FMSort/s,
		"$name: below an Agg and in an InitPlan, too");
	is( lines("SET work_mem = '64kB';
			SELECT md5(string_agg(id::text, ',')) FROM (SELECT id FROM t ORDER BY k, id) x"),
		lines("SET fmsort.mode = off;
			SELECT md5(string_agg(id::text, ',')) FROM (SELECT id FROM t ORDER BY k, id) x"),
		"$name: the same rows");

	# ---- a child of its node -------------------------------------------------

	my $wrapped = "SET neighbour.wrap = on; SET neighbour.bound = 5;";

	is(lines("$wrapped SELECT id FROM t ORDER BY k, id LIMIT 3"),
		lines('SELECT id FROM t ORDER BY k, id LIMIT 3'),
		"$name: the child of its node is a Sort");
	like(
		lines("$wrapped SET work_mem = '64kB';
			EXPLAIN (ANALYZE, COSTS OFF) SELECT * FROM t ORDER BY k LIMIT 5"),
		qr/Custom Scan \(Neighbour\).*Sort Method: top-N heapsort/s,
		"$name: the child of its node obeys its bound");
	lines('SELECT fmsort_stat_reset()');
	lines("$wrapped EXPLAIN SELECT id FROM t ORDER BY k");
	lines("$wrapped SELECT id FROM t ORDER BY k LIMIT 1");
	is(lines("SELECT left_to_server, left_to_extensions FROM fmsort_stat
			WHERE datname = 'postgres'"),
		'0|1', "$name: a Sort that stays is counted each time it starts");
  SKIP:
	{
		# EXPLAIN calls no hook for a node before 18
		last SKIP if $version < 18;
		foreach my $format ('TEXT', 'JSON', 'XML', 'YAML')
		{
			like(
				lines("$wrapped EXPLAIN (VERBOSE, FORMAT $format)
					SELECT * FROM t ORDER BY k"),
				qr/Sort.Left.to.PostgreSQL.*below a node of another extension, Custom Scan \(Neighbour\)/s,
				"$name: EXPLAIN VERBOSE says why, $format");
		}
		unlike(
			lines("$wrapped EXPLAIN SELECT * FROM t ORDER BY k"),
			qr/Left to/,
			"$name: EXPLAIN without VERBOSE does not");
		like(
			lines('SET fmsort.min_rows = 100; EXPLAIN (VERBOSE)
				SELECT * FROM (VALUES (2), (1)) v (k) ORDER BY k'),
			qr/Left to PostgreSQL: the planner expects fewer rows than fmsort\.min_rows/,
			"$name: EXPLAIN VERBOSE says it of small sorts");
		like(
			lines('SET enable_hashagg = off; EXPLAIN (VERBOSE) SELECT k, id
				FROM t GROUP BY GROUPING SETS ((k), (id))'),
			qr/Left to PostgreSQL: second and later grouping sets/,
			"$name: EXPLAIN VERBOSE says it of grouping sets");
	}

	# ---- fmsort.mode counts when a statement starts ----------------------------

	is( lines("SET plan_cache_mode = force_generic_plan;
			PREPARE p(int) AS SELECT id FROM t WHERE id > \$1 ORDER BY k, id LIMIT 1;
			EXECUTE p(0);
			CREATE TEMP TABLE planned AS
			  SELECT current_setting('neighbour.plans')::int AS plans;
			SET fmsort.mode = off; EXECUTE p(0);
			SET fmsort.mode = fmsort; EXECUTE p(0);
			SET fmsort.mode = off; EXECUTE p(0);
			SELECT current_setting('neighbour.plans')::int - plans FROM planned"),
		"10007\n10007\n10007\n10007\n2",
		"$name: another mode needs no new plan");
	is( lines("SET plan_cache_mode = force_generic_plan;
			CREATE FUNCTION pg_temp.node(sql text) RETURNS text LANGUAGE plpgsql AS
			'DECLARE line text; BEGIN EXECUTE sql INTO line; RETURN line; END';
			PREPARE p AS SELECT id FROM t ORDER BY k;
			SELECT pg_temp.node('EXPLAIN (COSTS OFF) EXECUTE p');
			SET fmsort.mode = off;
			SELECT pg_temp.node('EXPLAIN (COSTS OFF) EXECUTE p');
			SET fmsort.mode = flash;
			SELECT pg_temp.node('EXPLAIN (COSTS OFF) EXECUTE p')"),
		"Custom Scan (FMSort)\nSort\nCustom Scan (FMSort)",
		"$name: a cached plan follows fmsort.mode");
}

# ---- statements inside functions that run in a parallel worker -----------------

$node->safe_psql('postgres', <<'EOT');
CREATE FUNCTION node_in_worker() RETURNS text LANGUAGE plpgsql PARALLEL SAFE AS
$$
DECLARE
  line text;
BEGIN
  EXECUTE 'EXPLAIN (COSTS OFF) SELECT id FROM t ORDER BY k' INTO line;
  RETURN line || ' in ' || backend_type FROM pg_stat_activity
    WHERE pid = pg_backend_pid();
END
$$;
EOT
my $forced = $version < 16 ? 'force_parallel_mode' : 'debug_parallel_query';
ok( wait_until(
		sub {
			lines("SET $forced = on; SET max_parallel_workers_per_gather = 2;
				SELECT node_in_worker() FROM t LIMIT 1") eq
			  'Custom Scan (FMSort) in parallel worker';
		}),
	'statements inside functions in a worker are rewritten');

done_testing();
