# pg_hint_plan, HypoPG and pgvector: they decide which plan there is.
#
# Seen to fail with: explain.c that counts the entry of GROUP BY as a table.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use Neighbours;
use Test::More;

my $node = start_server('planning', "work_mem = '64kB'");

$node->safe_psql('postgres', <<'EOT');
SET client_min_messages = warning;
CREATE EXTENSION pg_hint_plan;
CREATE EXTENSION hypopg;
CREATE EXTENSION vector;
CREATE TABLE a AS SELECT i AS id, i::bigint * 7919 % 10007 AS k,
  repeat('a', 50) AS pad FROM generate_series(1, 10000) i;
CREATE TABLE b AS SELECT i AS id, i::bigint * 104729 % 10007 AS k
  FROM generate_series(1, 10000) i;
ALTER TABLE a ADD PRIMARY KEY (id);
CREATE TABLE item AS SELECT i AS id, i % 7 AS kind, ARRAY[i * 79 % 101, i * 107 % 103,
  i * 12 % 107]::vector(3) AS place
FROM generate_series(1, 5000) i;
CREATE TABLE tree AS SELECT * FROM item;
CREATE TABLE list AS SELECT * FROM item;
SELECT setseed(0.5);
CREATE INDEX ON tree USING hnsw (place vector_l2_ops);
CREATE INDEX ON list USING ivfflat (place vector_l2_ops) WITH (lists = 20);
ANALYZE;
EOT

my $join = 'SELECT a.id, b.id FROM a JOIN b ON a.k = b.k ORDER BY a.id, b.id';
my $near = q{place <-> '[50,50,50]'};

my @cases = (
	{
		name => 'hint MergeJoin',
		query => "/*+ MergeJoin(a b) */ $join",
		shape => qr/Merge Join.*Sort.*Sort/s,
		ours => 1
	},
	{
		name => 'hint HashJoin and Leading',
		query => "/*+ HashJoin(a b) Leading((b a)) */ $join",
		shape => qr/Hash Join.*Seq Scan on b.*Hash.*Seq Scan on a/s,
		ours => 1
	},
	{
		name => 'hint NestLoop',
		query => '/*+ NestLoop(a b) */ SELECT a.id, b.id FROM a JOIN b
			ON a.k = b.k WHERE a.id < 50 ORDER BY a.id, b.id',
		shape => qr/Nested Loop/
	},
	{
		name => 'hint SeqScan, so a sort',
		query => '/*+ SeqScan(a) */ SELECT * FROM a ORDER BY id',
		shape => qr/Sort.*Seq Scan/s,
		ours => 1
	},
	{
		name => 'hint IndexScan, so no sort',
		query => '/*+ IndexScan(a) */ SELECT * FROM a ORDER BY id',
		shape => qr/^Index Scan/
	},
	{
		name => 'hint Set',
		query => '/*+ Set(enable_hashagg off) */
			SELECT k % 10, count(*) FROM a GROUP BY 1 ORDER BY 1',
		shape => qr/GroupAggregate.*Sort/s,
		ours => 1
	},
	{
		name => 'hint Rows',
		query => "/*+ Rows(a b #3) */ $join",
		shape => qr/Join/
	},
	{
		name => 'hint Parallel',
		settings => 'SET max_parallel_workers_per_gather = 2;
			SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0;',
		query => '/*+ Parallel(a 2 hard) */ SELECT k, id FROM a ORDER BY k, id',
		only_plan => 1,
		shape => qr/Gather Merge.*Parallel Seq Scan/s
	},
	{
		name => 'a hint in a function',
		settings => 'CREATE FUNCTION pg_temp.joined() RETURNS bigint
			LANGUAGE plpgsql AS $$ BEGIN RETURN (/*+ MergeJoin(a b) */
			SELECT count(*) FROM a JOIN b ON a.k = b.k); END $$;',
		query => 'SELECT pg_temp.joined() FROM generate_series(1, 8)',
		no_plan => 1
	},
	{
		name => 'a hypothetical index spares a sort',
		settings => "SELECT 1 FROM hypopg_create_index(
			'CREATE INDEX ON a (k)');",
		query => 'SELECT * FROM a ORDER BY k LIMIT 10',
		only_plan => 1,
		shape => qr/Index Scan using "<\d+>btree_a_k"/
	},
	{
		name => 'a hypothetical index spares half of a sort',
		settings => "SELECT 1 FROM hypopg_create_index(
			'CREATE INDEX ON a (k)');",
		query => 'SELECT * FROM a ORDER BY k, id LIMIT 10',
		only_plan => 1,
		shape => qr/Sort.*Presorted Key.*<\d+>btree_a_k/s
	},
	{
		name => 'nearest, exactly',
		query => "SELECT id FROM item ORDER BY $near, id LIMIT 10",
		shape => qr/top-N/,
		ours => 1
	},
	{
		name => 'all by distance',
		query => "SELECT id FROM item ORDER BY $near, id",
		shape => qr/Sort/,
		ours => 1
	},
	{
		name => 'vectors in order',
		query => 'SELECT place, id FROM item ORDER BY place DESC, id',
		shape => qr/Sort/,
		ours => 1
	},
	{
		name => 'groups of vectors',
		settings => 'SET enable_hashagg = off;',
		query => 'SELECT place, count(*), min(id) FROM item GROUP BY place
			ORDER BY place',
		shape => qr/GroupAggregate.*Sort/s,
		ours => 1
	},
	{
		name => 'nearest, by HNSW',
		query => "SELECT id FROM tree ORDER BY $near LIMIT 10",
		shape => qr/Index Scan using tree_place_idx/
	},
	{
		name => 'nearest, by IVFFlat',
		settings => 'SET enable_seqscan = off;',
		query => "SELECT id FROM list ORDER BY $near LIMIT 10",
		shape => qr/Index Scan using list_place_idx/
	},
	{
		name => 'nearest, by HNSW and then exactly',
		query => "SELECT id FROM (SELECT id, place FROM tree ORDER BY $near
			LIMIT 30) s ORDER BY place <#> '[50,50,50]', id LIMIT 5",
		shape => qr/top-N.*Index Scan using tree_place_idx/s,
		ours => 1
	},
	{
		name => 'an iterative scan in relaxed order',
		settings => 'SET hnsw.iterative_scan = relaxed_order;
			SET enable_seqscan = off;',
		query => "WITH near AS MATERIALIZED (SELECT id, $near AS far FROM tree
			WHERE kind = 3 ORDER BY far LIMIT 20)
			SELECT id FROM near ORDER BY far + 0, id",
		shape => qr/Sort.*Index Scan using tree_place_idx/s,
		ours => 1
	});

compare($node, @cases);
done_testing();
