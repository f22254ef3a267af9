# A database with the extension in it, its view, its role's settings and its
# session_preload_libraries, goes to another cluster: by pg_dumpall, and by
# pg_upgrade.
#
# Every version: pg_dumpall and pg_upgrade.
#
# Seen to fail with: a library that refuses to be loaded by pg_upgrade.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use FmsFaults;
use FmsTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $bench = FmsFaults->new('old');
my $old = $bench->node;

$old->safe_psql('postgres', <<'EOT');
CREATE VIEW sorted AS SELECT id, k, pay FROM t ORDER BY k;
CREATE MATERIALIZED VIEW kept AS SELECT id, k FROM t ORDER BY k;
CREATE ROLE sorter LOGIN;
ALTER ROLE sorter SET fmsort.mode = 'double_buffering';
ALTER ROLE sorter SET fmsort.io_method = 'sync';
EOT
# pg_dumpall leaves out the settings of the database postgres
$old->safe_psql('postgres', $_)
  foreach 'CREATE DATABASE shop TEMPLATE postgres',
  'ALTER DATABASE shop SET fmsort.assist_blocks = 7',
  "ALTER DATABASE shop SET session_preload_libraries = 'fmsort'";

# A cluster without any of it, not even the library in postgresql.conf.
sub empty_cluster
{
	my ($name) = @_;
	my $node = PostgreSQL::Test::Cluster->new($name);

	$node->init;
	$node->append_conf('postgresql.conf',
		"fsync = off\nautovacuum = off\nsynchronize_seqscans = off\nwork_mem = '64kB'\n");
	return $node;
}

# Does it have everything?
sub complete
{
	my ($node, $name) = @_;

	is($node->safe_psql('shop', $bench->check),
		$bench->right, "$name: sorts right");
	is( $node->safe_psql('shop', "SELECT id FROM sorted; SELECT sort_method
			FROM fmsort_last_sort() WHERE sort_number = 1") =~ s/.*\n//sr,
		'external merge',
		"$name: ... by FMSort, loaded by itself");
	is($node->safe_psql('shop', 'SHOW fmsort.assist_blocks'),
		'7', "$name: the database's setting");
	is( $node->safe_psql('shop', 'SHOW fmsort.mode; SHOW fmsort.io_method',
			extra_params => [ '-U', 'sorter' ]),
		"double_buffering\nsync",
		"$name: a role's settings");
	is( $node->safe_psql('shop', "SELECT extversion FROM pg_extension
			WHERE extname = 'fmsort'"),
		$node->safe_psql('shop', "SELECT default_version
			FROM pg_available_extensions WHERE name = 'fmsort'"),
		"$name: the extension");
	is( $node->safe_psql('shop', 'REFRESH MATERIALIZED VIEW kept;
			SELECT count(*) FROM kept'),
		'20000',
		"$name: a materialised view");
	is(join(' ', temp_files($node)), '', "$name: no file is left");
	return;
}

my ($oldbin) = run_command([ 'pg_config', '--bindir' ]);
my $dump = PostgreSQL::Test::Utils::tempdir() . '/all.sql';

# ---- pg_dumpall ------------------------------------------------------------------------

{
	my $new = empty_cluster('restored');

	$old->command_ok([ 'pg_dumpall', '--no-sync', '-f', $dump ],
		'pg_dumpall');
	$new->start;
	my ($out, $err) =
	  run_command([ 'psql', '-X', '-q', '-f', $dump, '-d',
		  $new->connstr('postgres') ]);
	is(join("\n", grep { /ERROR/ && !/role .* already exists/ } split /\n/, $err),
		'', 'it can be restored without an error');
	complete($new, 'restored');
	$new->stop;
}

# ---- pg_upgrade ------------------------------------------------------------------------

{
	my $new = empty_cluster('upgraded');
	my @upgrade = (
		'pg_upgrade', '--no-sync', '-b', $oldbin, '-B', $oldbin, '-d',
		$old->data_dir, '-D', $new->data_dir, '-s', $new->host, '-p',
		$old->port, '-P', $new->port);

	$old->stop;
	chdir PostgreSQL::Test::Utils::tempdir() or die;
	command_ok([ @upgrade, '--check' ], 'pg_upgrade --check');
	command_ok(\@upgrade, 'pg_upgrade');
	$new->start;
	complete($new, 'upgraded');
	$new->stop;
}

done_testing();
