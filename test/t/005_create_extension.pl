# CREATE EXTENSION alone sorts in its own session only: it says so, and what to
# do about it; and what it says works.
#
# Every version: extensions and their notices are the server's.
#
# Seen to fail with: the notice raised while CREATE EXTENSION silences notices.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $explain = 'EXPLAIN (COSTS OFF) SELECT * FROM pg_class ORDER BY relpages';

# Output and messages of one session.
sub run_session
{
	my ($node, $database, $sql) = @_;
	my ($out, $err);

	$node->psql(
		$database, $sql,
		stdout => \$out,
		stderr => \$err,
		on_error_stop => 0);
	return ($out, $err);
}

sub sorts_with
{
	my ($node, $database) = @_;
	my ($out) = run_session($node, $database, $explain);

	return $out =~ /Custom Scan \(FMSort\)/ ? 'FMSort' : 'Sort';
}

my $node = PostgreSQL::Test::Cluster->new('create');
$node->init;
$node->append_conf('postgresql.conf',
	"fsync = off\nautovacuum = off\nfmsort.min_rows = 0\n");
$node->start;

# ---- nothing is preloaded ---------------------------------------------------------

foreach my $database ('plain', 'An "odd" name')
{
	my $quoted = '"' . $database =~ s/"/""/gr . '"';
	my ($out, $err);

	$node->safe_psql('postgres', "CREATE DATABASE $quoted");
	is(sorts_with($node, $database), 'Sort', "$database: before");

	($out, $err) = run_session($node, $database, "CREATE EXTENSION fmsort;
		$explain; SELECT count(*) FROM fmsort_last_sort()");
	like($err, qr/^psql:.*NOTICE:  fmsort runs the sorts of this session only$/m,
		"$database: a notice");
	like($out, qr/FMSort/, "$database: ... which is true of this session");
	is(sorts_with($node, $database), 'Sort',
		"$database: ... and of other ones");

	my ($command) = $err =~ /^HINT:.*: (ALTER DATABASE .*;)$/m;
	is($command,
		'ALTER DATABASE '
		  . ($quoted eq '"plain"' ? 'plain' : $quoted)
		  . " SET session_preload_libraries = 'fmsort';",
		"$database: the hint names a command");
	(undef, $err) = run_session($node, $database, $command);
	is($err, '', "$database: ... that can be run");
	is(sorts_with($node, $database), 'FMSort', "$database: ... and works");
	is(sorts_with($node, 'postgres'), 'Sort',
		"$database: ... in this database only");

	# ---- and again, with the library there ---------------------------------------
	(undef, $err) = run_session($node, $database, 'DROP EXTENSION fmsort');
	is($err, '', "$database: the extension can be dropped");
	is(sorts_with($node, $database), 'FMSort',
		"$database: ... the library is still loaded");
	(undef, $err) = run_session($node, $database, 'CREATE EXTENSION fmsort');
	is($err, '', "$database: created again, it has nothing to say");
}

# ---- a list that is there already --------------------------------------------------

{
	my ($out, $err);

	$node->safe_psql('postgres', q{CREATE DATABASE listed;
		ALTER DATABASE listed
		SET session_preload_libraries = 'auto_explain', '$libdir/passwordcheck'});
	(undef, $err) = run_session($node, 'listed', 'CREATE EXTENSION fmsort');
	my ($command) = $err =~ /^HINT:.*: (ALTER DATABASE .*;)$/m;
	(undef, $err) = run_session($node, 'listed', $command // '');
	is($err, '', 'with a list: the command can be run');
	($out, $err) = run_session($node, 'listed',
		"SHOW session_preload_libraries; $explain;
		SHOW auto_explain.log_min_duration");
	is($err, '', '... and sessions begin without complaint');
	like($out, qr/auto_explain.*passwordcheck.*fmsort/,
		'... the list keeps its members');
	like($out, qr/FMSort/, '... and has a new one');
	like($out, qr/^-1$/m, '... the others are loaded, too');
}

# ---- a schema of its own ---------------------------------------------------------------

{
	$node->safe_psql('postgres', 'CREATE DATABASE elsewhere');
	my ($out, $err) = run_session($node, 'elsewhere',
		'CREATE SCHEMA s; CREATE EXTENSION fmsort SCHEMA s;
		SELECT count(*) FROM (SELECT * FROM pg_class ORDER BY relpages) c;
		SELECT count(*) FROM s.fmsort_last_sort(); DROP SCHEMA s CASCADE');
	unlike($err, qr/ERROR/, 'in a schema of its own');
	like($out, qr/^1$/m, '... its functions work');

	# in sessions that do not load the library otherwise
	$node->safe_psql('elsewhere',
		'CREATE SCHEMA s; CREATE EXTENSION fmsort SCHEMA s');
	($out, $err) = run_session($node, 'elsewhere', <<'EOT');
SELECT mode, sort_method
FROM s.fmsort_compare('SELECT * FROM pg_class ORDER BY relpages');
EOT
	is("$out$err", "postgres|quicksort\nfmsort|in-memory",
		'fmsort_compare() loads the library');
	($out, $err) = run_session($node, 'elsewhere', <<'EOT');
SELECT mode, runs > 1 FROM s.fmsort_compare_merges(
  'SELECT * FROM generate_series(1, 1000000) g ORDER BY -g');
EOT
	is("$out$err", "traditional|t\ndouble_buffering|t\nfmsort|t",
		'... and so does fmsort_compare_merges()');
}

# ---- preloaded: nothing to say ------------------------------------------------------------

foreach my $setting ('session_preload_libraries', 'shared_preload_libraries')
{
	$node->append_conf('postgresql.conf', "$setting = 'fmsort'\n");
	$node->restart;
	$node->safe_psql('postgres', 'CREATE DATABASE preloaded');
	my (undef, $err) =
	  run_session($node, 'preloaded', 'CREATE EXTENSION fmsort');
	is($err, '', "$setting: CREATE EXTENSION says nothing");
	is(sorts_with($node, 'preloaded'), 'FMSort', "$setting: it sorts");
	$node->safe_psql('postgres', 'DROP DATABASE preloaded');
	$node->append_conf('postgresql.conf', "$setting = ''\n");
}

# ---- the server's tools ---------------------------------------------------------------------

$node->restart;
my $dump = $node->basedir . '/plain.sql';
$node->command_ok(
	[ 'pg_dump', '-f', $dump, '-d', $node->connstr('plain') ],
	'a database with the extension can be dumped');
$node->safe_psql('postgres', 'CREATE DATABASE restored');
$node->command_ok(
	[ 'psql', '-X', '-q', '-v', 'ON_ERROR_STOP=1', '-f', $dump, '-d',
		$node->connstr('restored') ],
	'... and restored');

$node->stop;
done_testing();
