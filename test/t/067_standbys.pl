# Servers that follow another one, and processes that are nobody's session:
# sorts on a hot standby, in a cursor that a promotion finds open, in an
# autovacuum worker and in a subscription; a device's profile that comes from
# another machine.
#
# Every version: replication.
#
# Seen to fail with: read_profile_row() of profile.c asking for no host;
# fmsort_calibrate() without PreventCommandIfReadOnly().

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use FmsTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $primary = PostgreSQL::Test::Cluster->new('primary');

$primary->init(allows_streaming => 'logical');
$primary->append_conf('postgresql.conf', <<'EOT');
shared_preload_libraries = 'fmsort'
work_mem = '256kB'
max_parallel_workers_per_gather = 0
jit = off
autovacuum_naptime = 1s
autovacuum_vacuum_cost_delay = 0
log_autovacuum_min_duration = 0
EOT
$primary->start;
$primary->safe_psql('postgres', <<'EOT');
CREATE EXTENSION fmsort;
CREATE TABLE t AS SELECT i AS id, (i::bigint * 7919 % 100003)::int AS k,
  md5(i::text) AS pay FROM generate_series(1, 50000) i;
ANALYZE t;
EOT

my $query = <<'EOT';
SELECT md5(string_agg(id || pay, '')) FROM
  (SELECT id, k, pay FROM t ORDER BY k, id) s;
EOT
my $right = $primary->safe_psql('postgres', "SET fmsort.mode = off; $query");

# ---- the profile, of this machine and of another one -------------------------------

$primary->safe_psql('postgres', 'SELECT count(*) FROM fmsort_calibrate(
	seconds => 1, file_bytes => 16777216)')
  if grep { $_ eq 'on' } direct_ways($primary);
$primary->safe_psql('postgres', <<'EOT');
DELETE FROM fmsort_device_rate; DELETE FROM fmsort_device_profile;
INSERT INTO fmsort_device_profile (tablespace, host, measured_at, kernel,
  server_version, io_method, seconds, file_bytes)
  SELECT oid, 'another machine', now(), '', '', '', 1, 1 FROM pg_tablespace
  WHERE spcname = 'pg_default';
INSERT INTO fmsort_device_rate SELECT oid, p, 4096, 8, 1000000000 FROM pg_tablespace,
  unnest('{append,random_read}'::text[]) p WHERE spcname = 'pg_default';
EOT

my $why = "SET fmsort.direct_io = auto; $query
	SELECT coalesce(decision, '') FROM fmsort_last_sort()";
my $by_profile = qr/\(500 MB\/s there and back, by its profile\)/;

unlike($primary->safe_psql('postgres', $why), qr/by its profile/,
	'a profile of another machine counts for nothing');
$primary->safe_psql('postgres',
	'UPDATE fmsort_device_profile SET host = NULL');
like($primary->safe_psql('postgres', $why), $by_profile,
	'... one of any machine does');

# By a dump into another database, whose profile it becomes.
my $dump = PostgreSQL::Test::Utils::tempdir() . '/dump.sql';

$primary->command_ok(
	[ 'pg_dump', '--file', $dump, $primary->connstr('postgres') ],
	'pg_dump');
$primary->safe_psql('postgres', 'CREATE DATABASE restored');
$primary->command_ok(
	[ 'psql', '-X', '-q', '-v', 'ON_ERROR_STOP=1', '-o', '/dev/null', '-f',
		$dump, $primary->connstr('restored') ],
	'... and restored');
like($primary->safe_psql('restored', $why), $by_profile,
	'... the profile is there');

# ---- a hot standby -------------------------------------------------------------------

$primary->backup('backup');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($primary, 'backup', has_streaming => 1);
$standby->start;
$primary->wait_for_catchup($standby, 'replay',
	$primary->lsn('insert'));

foreach my $mode (qw(fmsort traditional off))
{
	is($standby->safe_psql('postgres', "SET fmsort.mode = $mode; $query"),
		$right, "on a standby, mode $mode: right");
}
like($standby->safe_psql('postgres', $why), $by_profile,
	'... by the profile of the primary');
is( $standby->safe_psql('postgres',
		"$query SELECT sort_method FROM fmsort_last_sort()"),
	"$right\nexternal merge", '... sorted on disk');

my ($status, undef, $err) = $standby->psql('postgres',
	'SELECT count(*) FROM fmsort_calibrate(seconds => 1, file_bytes => 16777216)');
isnt($status, 0, '... and fmsort_calibrate() keeps nothing there');
like($err, qr/read-only|recovery/, '... and says why');

# ---- promotion -----------------------------------------------------------------------

my $session = $standby->background_psql('postgres');
$session->query_safe("BEGIN; SET LOCAL cursor_tuple_fraction = 1;
	DECLARE c CURSOR FOR SELECT id FROM t ORDER BY k, id");
my $first = $session->query_safe('FETCH 20000 FROM c');
$standby->promote;
my $rest = $session->query_safe('FETCH ALL FROM c');
$session->query_safe('COMMIT');
is( "$first\n$rest",
	$primary->safe_psql('postgres',
		'SET fmsort.mode = off; SELECT id FROM t ORDER BY k, id'),
	'a cursor that a promotion finds open: right');
is($session->query_safe($query), $right, '... and the session goes on');
$standby->safe_psql('postgres',
	'CREATE TABLE sorted AS SELECT * FROM t ORDER BY pay');
is($standby->safe_psql('postgres', 'SELECT count(*) FROM sorted'),
	'50000', '... and writes');
$session->quit;
is(join(' ', temp_files($standby)), '', 'no file is left');
$standby->stop;

# ---- autovacuum and a subscription -----------------------------------------------------

# Has fmsort sorted anything?
sub sorts
{
	my ($node) = @_;

	return $node->safe_psql('postgres',
		"SELECT sum(sorts) > 0 FROM fmsort_stat WHERE datname = 'postgres'");
}

# A sort within an index's expression runs in whatever process needs it.
my $subscriber = fms_node('subscriber', "work_mem = '64kB'",
	"shared_preload_libraries = 'fmsort'");

foreach my $node ($primary, $subscriber)
{
	$node->safe_psql('postgres', <<'EOT');
CREATE FUNCTION heavy(int) RETURNS bigint LANGUAGE sql IMMUTABLE AS
  'SELECT sum(g) FROM (SELECT g FROM generate_series(1, 3000 + $1 % 2) g
     ORDER BY -g OFFSET 1) s';
CREATE TABLE r (i int PRIMARY KEY);
CREATE INDEX ON r (heavy(i));
EOT
}
$primary->safe_psql('postgres', 'CREATE PUBLICATION p FOR TABLE r');
$subscriber->safe_psql('postgres', "CREATE SUBSCRIPTION s CONNECTION '"
	  . $primary->connstr . " dbname=postgres' PUBLICATION p");
$subscriber->wait_for_subscription_sync($primary, 's');
$_->safe_psql('postgres', 'SELECT fmsort_stat_reset()')
  foreach $primary, $subscriber;
$primary->safe_psql('postgres', "SET fmsort.mode = off;
	INSERT INTO r SELECT generate_series(1, 200)");
$primary->wait_for_catchup('s');
is($subscriber->safe_psql('postgres', 'SELECT count(*) FROM r'),
	'200', 'a subscription applies rows whose index sorts');
is(sorts($subscriber), 't', '... by fmsort');
unlike(slurp_file($subscriber->logfile), qr/ERROR/, '... without an error');

ok( wait_until(
		sub {
			$primary->safe_psql('postgres', "SELECT autoanalyze_count > 0
				FROM pg_stat_user_tables WHERE relname = 'r'") eq 't';
		}),
	'autovacuum analyzes them');
is(sorts($primary), 't', '... and fmsort sorts for it');
unlike(slurp_file($primary->logfile),
	qr/ERROR.*\n.*automatic analyze|automatic analyze.*ERROR/,
	'... without an error');

$subscriber->safe_psql('postgres', 'DROP SUBSCRIPTION s');
$subscriber->stop;
$primary->stop;
done_testing();
