# TimescaleDB: its nodes look for Sort nodes among their children, and hand a
# LIMIT on to them.
#
# Seen to fail with: Sorts below ChunkAppend and ModifyHypertable that are
# replaced, so that no LIMIT reaches them.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use Neighbours;
use Test::More;

my $node = start_server('timescaledb', "work_mem = '64kB'");

# One chunk of c has indexes, the other is sorted where their order is wanted.  The indexes of h are as TimescaleDB makes them.
$node->safe_psql('postgres', <<'EOT');
SET client_min_messages = warning;
SET timezone = 'UTC';
CREATE EXTENSION timescaledb;
CREATE TABLE c (time timestamptz NOT NULL, dev int, v float8, pad text);
SELECT create_hypertable('c', 'time', create_default_indexes => false,
  chunk_time_interval => interval '21 days');
INSERT INTO c SELECT timestamptz '2026-01-01' + i * interval '3 minutes',
  i % 5, i::bigint * 7919 % 20011, repeat('p', 60)
FROM generate_series(1, 20000) i;
SELECT format('CREATE INDEX ON %s (%s)', (SELECT min(chunk::text)
  FROM show_chunks('c') chunk), columns)
FROM unnest(ARRAY['v, time', 'time, v', 'time DESC, v']) columns \gexec
CREATE TABLE h (time timestamptz NOT NULL, dev int, v float8);
SELECT create_hypertable('h', 'time', chunk_time_interval => interval '7 days');
INSERT INTO h SELECT time, dev, v FROM c;
ANALYZE c; ANALYZE h;
ALTER DATABASE postgres SET timezone = 'UTC';
EOT

# Known when the statement starts, not when it is planned.
my $ever = q{time > now() - interval '100 years'};
my $late = q{time > now() - (now() - timestamptz '2026-01-25')};
my $append = 'SET timescaledb.enable_chunk_append = off;';

my @cases = (
	{
		name => 'ChunkAppend hands a LIMIT on',
		query => "SELECT time, dev, v FROM c WHERE $ever
			ORDER BY time DESC, v LIMIT 5",
		shape => qr/ChunkAppend.*Sort Method: top-N/s
	},
	{
		name => 'ChunkAppend, generic plan',
		settings => "SET plan_cache_mode = force_generic_plan;
			PREPARE p AS SELECT time, v FROM c WHERE $ever
			ORDER BY time DESC, v LIMIT \$1;",
		query => 'EXECUTE p(7)',
		shape => qr/ChunkAppend/
	},
	{
		name => 'ChunkAppend excludes a chunk',
		query => "SELECT time, v FROM c WHERE $late ORDER BY time, v LIMIT 3",
		shape => qr/ChunkAppend.*Chunks excluded during startup: 1.*top-N/s
	},
	{
		name => 'ChunkAppend in a loop',
		settings => 'SET enable_hashjoin = off; SET enable_mergejoin = off;',
		query => "SELECT d, l.time, l.v FROM generate_series(0, 4) d,
			LATERAL (SELECT time, v FROM c WHERE c.dev = d AND $ever
			  ORDER BY time DESC, v LIMIT 2) l ORDER BY d, l.time DESC",
		shape => qr/ChunkAppend/
	},
	{
		name => 'ConstraintAwareAppend, a LIMIT over a merge',
		settings => $append,
		query => "SELECT v, time FROM c WHERE $ever ORDER BY v, time LIMIT 5",
		shape => qr/ConstraintAwareAppend.*Merge Append.*Sort Key/s
	},
	{
		name => 'ConstraintAwareAppend excludes a chunk',
		settings => $append,
		query => "SELECT v, time FROM c WHERE $late ORDER BY v, time",
		shape => qr/ConstraintAwareAppend.*Chunks excluded during startup: 1/s
	},
	{
		name => 'ConstraintAwareAppend, only planned',
		settings => $append,
		query => "SELECT * FROM c WHERE $ever ORDER BY v",
		only_plan => 1,
		shape => qr/ConstraintAwareAppend/
	},
	{
		name => 'a Sort above ChunkAppend',
		query => "SELECT dev, v, time FROM h WHERE $ever
			ORDER BY dev, v, time",
		shape => qr/Sort.*ChunkAppend/s,
		ours => 1
	},
	{
		name => 'a LIMIT above that',
		query => "SELECT dev, v, time FROM h WHERE $ever
			ORDER BY dev, v, time LIMIT 10",
		shape => qr/top-N.*ChunkAppend/s,
		ours => 1
	},
	{
		name => 'time_bucket() in groups',
		settings => 'SET enable_hashagg = off;',
		query => "SELECT time_bucket('1 day', time) AS day, dev, count(*),
			first(v, time), last(v, time) FROM h GROUP BY 1, 2 ORDER BY 1, 2",
		shape => qr/GroupAggregate.*Sort/s,
		ours => 1
	},
	{
		name => 'the first row of each',
		query => 'SELECT DISTINCT ON (dev) dev, time, v FROM h
			ORDER BY dev, time DESC',
		shape => qr/Unique.*Sort/s,
		ours => 1
	},
	{
		name => 'a window',
		query => 'SELECT time, v - lag(v) OVER (PARTITION BY dev ORDER BY v,
			time) FROM h ORDER BY time',
		shape => qr/WindowAgg.*Sort/s,
		ours => 1
	},
	{
		name => 'a merge join of hypertables',
		settings => 'SET enable_hashjoin = off; SET enable_nestloop = off;',
		query => 'SELECT count(*), sum(c.v) FROM c JOIN h USING (v, dev)',
		shape => qr/Merge Join.*Sort/s,
		ours => 1
	},
	{
		name => 'rows inserted in order',
		settings => 'BEGIN;',
		query => 'INSERT INTO h SELECT time + interval \'1 year\', dev, v FROM c
			ORDER BY v, time RETURNING v',
		shape => qr/Insert on h.*Sort/s
	},
	{
		name => 'rows updated by a sorted list',
		settings => 'BEGIN;',
		query => 'WITH w AS (UPDATE h SET v = -v WHERE time IN (SELECT time FROM c
			ORDER BY v, time LIMIT 20) RETURNING v) SELECT v FROM w ORDER BY v',
		shape => qr/Update on h.*top-N/s
	},
	{
		name => 'a cursor that goes back',
		settings => "BEGIN; DECLARE s SCROLL CURSOR FOR SELECT v, time FROM h
			WHERE $ever ORDER BY v, time;",
		query => 'FETCH LAST FROM s; FETCH BACKWARD 5 FROM s; FETCH FIRST FROM s',
		no_plan => 1
	},
	{
		name => 'in a function',
		settings => "CREATE FUNCTION pg_temp.lowest(n int) RETURNS SETOF float8
			LANGUAGE plpgsql AS \$\$ BEGIN RETURN QUERY SELECT v FROM c
			WHERE $ever ORDER BY v, time LIMIT n; END \$\$;",
		query => 'SELECT pg_temp.lowest(n) FROM generate_series(1, 20) n',
		no_plan => 1
	},
	{
		name => 'with workers',
		settings => 'SET max_parallel_workers_per_gather = 2;
			SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0;
			SET min_parallel_table_scan_size = 0;',
		query => "SELECT v, time, dev FROM c WHERE $ever ORDER BY v, time, dev",
		no_plan => 1
	});

compare($node, @cases);
done_testing();
