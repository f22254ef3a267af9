# pg_stat_statements and auto_explain watch statements; pg_partman and pg_cron
# run some of their own, in background workers.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/../t", $FindBin::RealBin;
use FmsTest;
use Neighbours;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = start_server('watching', "work_mem = '64kB'",
	'auto_explain.log_min_duration = 0', 'auto_explain.log_analyze = on',
	'auto_explain.log_nested_statements = on', 'auto_explain.log_timing = off');

$node->safe_psql('postgres', <<'EOT');
SET client_min_messages = warning;
CREATE EXTENSION pg_stat_statements;
CREATE SCHEMA partman;
CREATE EXTENSION pg_partman SCHEMA partman;
CREATE EXTENSION pg_cron;
CREATE TABLE t AS SELECT i AS id, i::bigint * 7919 % 10007 AS k
  FROM generate_series(1, 10000) i;
CREATE TABLE done (k bigint, place bigint);
CREATE TABLE event (day date NOT NULL, k bigint) PARTITION BY RANGE (day);
SELECT partman.create_parent('public.event', 'day', '1 month',
  p_start_partition => '2026-01-01');
INSERT INTO event SELECT date '2026-01-01' + (i % 90), i::bigint * 7919 % 10007
  FROM generate_series(1, 5000) i;
ANALYZE;
CREATE FUNCTION sorted() RETURNS bigint LANGUAGE plpgsql AS
$$BEGIN RETURN (SELECT sum(n * k) FROM (SELECT k, row_number() OVER (ORDER BY k,
  id) AS n FROM t) s); END$$;
EOT

compare(
	$node,
	{
		name => 'partitions of pg_partman',
		query => 'SELECT day, k FROM event ORDER BY k, day',
		shape => qr/Append/
	},
	{
		name => 'its upkeep',
		settings => 'BEGIN;',
		query => "SELECT partman.run_maintenance('public.event')",
		no_plan => 1
	});

# What was counted for the statement, and what was written of it into the log.
sub watched
{
	my ($name) = @_;
	my ($log_start, $counted);

	$node->safe_psql('postgres', 'SELECT pg_stat_statements_reset()');
	$log_start = -s $node->logfile;
	$node->safe_psql('postgres', 'SELECT k, id FROM t ORDER BY k, id');
	$node->safe_psql('postgres', 'SELECT sorted()');
	$counted = $node->safe_psql('postgres', q{
		SELECT queryid, calls, rows, temp_blks_written > 0,
		  total_exec_time > 0 FROM pg_stat_statements
		WHERE query = 'SELECT k, id FROM t ORDER BY k, id'});
	my @logged = slurp_file($node->logfile, $log_start) =~
	  /(Sort|FMSort)\)? .*\n\s+Sort Key: k, id\n\s+Sort Method: external merge/g;
	my @nested = slurp_file($node->logfile, $log_start) =~
	  /Query Text: \(SELECT sum\(n \* k\).*?Sort Key: t\.k, t\.id\n\s+Sort Method/gs;

	return "$counted, logged " . @logged . ', nested ' . @nested;
}

# pg_cron's job, in a background worker.
sub run_job
{
	my ($name) = @_;

	$node->safe_psql('postgres', q{TRUNCATE done;
		SELECT cron.schedule('sorting', '1 second', 'INSERT INTO done SELECT k,
		  row_number() OVER (ORDER BY k, id) FROM t')});
	ok( wait_until(
			sub {
				$node->safe_psql('postgres', 'SELECT count(*) >= 10000 FROM done')
				  eq 't';
			}),
		"$name: pg_cron's job runs");
	$node->safe_psql('postgres', q{SELECT cron.unschedule('sorting')});
	is( $node->safe_psql('postgres', 'SELECT count(*) FROM done d
		WHERE place <> (SELECT count(*) FROM t WHERE t.k <= d.k) AND k < 500'),
		0, "$name: in order");
	return;
}

my $expected = watched('without fmsort');
like($expected, qr/^-?\d+\|1\|10000\|t\|t, logged 1, nested 1$/,
	'without fmsort: the statements are watched');
foreach my $order (orders())
{
	server_in_order($node, $order);
	is(watched($order), $expected, "$order: the statements are watched");
	run_job($order);
	no_accident($node, $order);
}

$node->stop;
done_testing();
