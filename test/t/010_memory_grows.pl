# A sort asks for memory as its rows need it, not for all of work_mem:
#
#   - many small sorts at once take about what PostgreSQL's take
#   - where the system limits a process's address space or its private writable
#     memory, small sorts work under any work_mem; large ones spill when the
#     system refuses memory
#   - a function that sorts leaves nothing behind for the rest of the query
#   - small sorts use the same memory again and again, without new pages
#   - descriptions of runs do not grow with the number of runs
#
# Seen to fail with: all of work_mem mapped at once (1,500 MB for 500
# sorts; "Failed to map ... bytes of sort memory"); no early merges;
# the plan with our nodes in the context of a SQL function (26 MB); memory
# mapped from 64 kB on (a page fault for each 4 kB of each sort).

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use FmsTest;
use PostgreSQL::Test::Utils;
use Test::More;

my $partitions = 500;

plan skip_all => 'a process\'s memory cannot be looked at here'
  unless defined status_kb($$, 'RssAnon');

# A limit that this process has, or no limit: for those that it starts, too.
sub limit_kb
{
	my ($what, $kb) = @_;
	my $bytes = $kb eq 'unlimited' ? $kb : $kb * 1024;

	system('prlimit', "--pid=$$", "--$what=$bytes:") == 0
	  or die "prlimit --$what: $?";
	return;
}

# ---- many small sorts ----

my $node = fms_node(
	'memory_grows',
	'max_locks_per_transaction = 1000',
	'enable_partitionwise_join = on');

$node->safe_psql('postgres', <<"EOT");
CREATE TABLE parts (d int, k int, t text) PARTITION BY LIST (d);
DO \$\$ BEGIN
  FOR i IN 1..$partitions LOOP
    EXECUTE format('CREATE TABLE parts_%s PARTITION OF parts FOR VALUES IN (%s)', i, i);
  END LOOP;
END \$\$;
INSERT INTO parts SELECT 1 + i % $partitions, (i * 7919) % 100003, md5(i::text)
  FROM generate_series(1, 40 * $partitions) i;
-- so that sorting each of them is cheapest
CREATE INDEX ON parts_1 (k);
ANALYZE parts;
EOT

my $merge_append = 'SELECT d, k FROM parts ORDER BY k LIMIT 10';

# By how much the private memory grows while all sorts are open.
sub open_sorts_kb
{
	my ($mode, $work_mem) = @_;
	my $session = $node->background_psql('postgres');
	my $pid = $session->query_safe('SELECT pg_backend_pid()');
	my ($before, $kb, $rows);

	# what planning and the catalogs take
	$session->query_safe("SET fmsort.mode = $mode; SET work_mem = '$work_mem';
		EXPLAIN $merge_append; BEGIN");
	$before = status_kb($pid, 'RssAnon');
	$session->query_safe("DECLARE c CURSOR FOR $merge_append");
	$rows = $session->query_safe('FETCH ALL FROM c');
	$kb = status_kb($pid, 'RssAnon') - $before;
	$session->quit;
	return ($kb, $rows);
}

my @sorts = $node->safe_psql('postgres',
	"EXPLAIN (COSTS OFF) $merge_append") =~ /FMSort/g;
cmp_ok(scalar @sorts, '>=', $partitions - 1, 'a sort for each partition');

my ($stock_kb, $stock_rows) = open_sorts_kb('off', '64MB');

foreach my $work_mem (qw(64kB 5MB 64MB 64GB))
{
	my ($kb, $rows) = open_sorts_kb('fmsort', $work_mem);

	cmp_ok($kb, '<=', 1.3 * $stock_kb + 1024,
		"$partitions sorts under work_mem = $work_mem: kB");
	is($rows, $stock_rows, "... and right");
}

# ---- many rows ----

$node->safe_psql('postgres', <<'EOT');
CREATE TABLE rows AS SELECT i AS id, (i::bigint * 7919 % 1000003)::int AS k,
  md5(i::text) AS t FROM generate_series(1, 600000) i;
ANALYZE rows;
EOT

# Depends on the sequence of rows, and takes no memory of its own.
my $sum = 'SELECT sum(n * hashtext(t)) FROM (SELECT row_number() OVER () AS n,
	t FROM (SELECT t FROM rows ORDER BY k, t) r) s';

# ---- many calls of a function that sorts ----

# A SQL function keeps one memory context for all calls of a query.
{
	my $session = $node->background_psql('postgres');
	my $pid = $session->query_safe('SELECT pg_backend_pid()');
	my $calls = 'SELECT sum(least_after(i)) FROM generate_series(1, 20000) i';
	my $kb;

	$session->query_safe("CREATE FUNCTION pg_temp.least_after(i int)
		RETURNS int LANGUAGE sql VOLATILE AS
		'SELECT id FROM rows WHERE id < 4 ORDER BY t, i LIMIT 1';
		CREATE INDEX ON rows (id); SET jit = off");
	$calls =~ s/least_after/pg_temp.least_after/;
	$session->query_safe($calls =~ s/20000/100/r);
	reset_peak($pid);
	$kb = status_kb($pid, 'VmHWM');
	$session->query_safe($calls);
	cmp_ok(status_kb($pid, 'VmHWM') - $kb, '<=', 2048,
		'20,000 calls of a function take no memory each, kB');
	$session->quit;
}

# ---- page faults ----

{
	my $session = $node->background_psql('postgres');
	my %sorts = (
		'of 10,000 rows' => 'SELECT * FROM few ORDER BY k OFFSET 0',
		'of three rows, 1,000 times' => 'SELECT g, x FROM
			generate_series(1, 1000) g, LATERAL (SELECT x FROM
			(VALUES (g % 7), (g % 5), (g % 3)) v(x) ORDER BY x OFFSET 0) l');

	$session->query_safe('SET work_mem = \'4MB\';
		CREATE TEMP TABLE few AS SELECT * FROM rows WHERE id <= 10000;
		ANALYZE few');
	foreach my $sort (sort keys %sorts)
	{
		# field 10 of /proc/PID/stat: page faults of the process so far
		my $faults = "SELECT sum((string_to_array(
			pg_read_file('/proc/self/stat'), ' '))[10]::bigint)";
		my $ten = "DO \$\$ BEGIN FOR i IN 1..10 LOOP
			PERFORM count(*) FROM ($sorts{$sort}) s; END LOOP; END \$\$";
		my $before;

		$session->query_safe($ten);
		$before = $session->query_safe($faults);
		$session->query_safe($ten);
		cmp_ok($session->query_safe($faults) - $before, '<=', 200,
			"ten sorts $sort: page faults");
	}
	$session->quit;
}

# ---- descriptions of runs ----

# The sort's memory besides its buffers, while its last merge is under way: it
# keeps what it needed most.  1,300 runs would take 200 kB and more.
my ($spill_kb, $runs) = split /\|/, (split /\n/, $node->safe_psql('postgres',
	"SET work_mem = '64kB'; BEGIN;
	 DECLARE c CURSOR FOR SELECT * FROM rows ORDER BY k, t; FETCH 1 FROM c;
	 CREATE TEMP TABLE held AS SELECT sum(total_bytes) / 1024 AS kb
	   FROM pg_backend_memory_contexts WHERE name = 'fmsort spill';
	 CLOSE c;
	 SELECT held.kb::int, s.runs FROM held, fmsort_last_sort() s;
	 COMMIT"))[-1];
cmp_ok($runs, '>', 1000, 'a sort of many runs');
cmp_ok($spill_kb, '<=', 128, '... holds few descriptions of them at once, kB');

# ---- a server with little memory ----

# What a limit counts, in /proc/PID/status.  RLIMIT_DATA counts what strict
# overcommit does: private writable mappings when they are made.
my %limits = (as => 'VmSize', data => 'VmData');

foreach my $limit (sort keys %limits)
{
	my $idle_kb = $node->safe_psql('postgres', "SELECT (regexp_match(
		pg_read_file('/proc/self/status'), '$limits{$limit}:\\s+(\\d+)'))[1]");

	$node->stop;
	limit_kb($limit, $idle_kb + 60 * 1024);
	$node->start;
	limit_kb($limit, 'unlimited');
	foreach my $work_mem (qw(1GB 64GB))
	{
		sorts_and_spills($limit, $work_mem, $_) foreach qw(fmsort traditional flash);
	}
	$node->restart;
}

# 1 MB is sorted in memory; of 100 MB the limit refuses so much that they spill.
sub sorts_and_spills
{
	my ($limit, $work_mem, $mode) = @_;
	my $name = "limit of $limit, $mode, work_mem = $work_mem";
	my %sorts = (
		'in-memory' => $sum =~ s/FROM rows/FROM rows WHERE id <= 8000/r,
		'external merge' => $sum);

	foreach my $method (sort keys %sorts)
	{
		my $right = $node->safe_psql('postgres',
			"SET fmsort.mode = off; $sorts{$method}");
		my ($status, $out, $err) = $node->psql('postgres',
			"SET work_mem = '$work_mem'; SET fmsort.mode = $mode;
			 $sorts{$method};
			 SELECT sort_method FROM fmsort_last_sort()");

		is($err, '', "$name: no error");
		is($out, "$right\n$method", "... right, $method");
	}
	return;
}

$node->stop;
done_testing();
