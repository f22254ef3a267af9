# A database with the extension in it, views, its role's settings, its
# session_preload_libraries and a device profile goes to another cluster: by
# pg_dumpall, and by pg_upgrade.
#
#   FMSORT_UPGRADE_FROM   another server with fmsort, such as
#                         /usr/lib/postgresql/15, from which it also goes here
#
# Every version: pg_dumpall and pg_upgrade.
#
# Seen to fail with: a library that refuses to be loaded by pg_upgrade; profiles
# that are not dumped; profiles of another machine that count.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use FmsFaults;
use FmsTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my ($bindir) = run_command([ 'pg_config', '--bindir' ]);
my $big_sort = "SET work_mem = '64kB'; SELECT count(*) FROM
	(SELECT pay FROM t ORDER BY k OFFSET 1) s;";

# A database with all of it, on this server or on the one installed there.
sub old_cluster
{
	my ($name, $install_path) = @_;
	local $FmsTest::install_path = $install_path;
	my $bench = FmsFaults->new($name);
	my $old = $bench->node;

	$old->safe_psql('postgres', <<'EOT');
CREATE VIEW sorted AS SELECT id, k, pay FROM t ORDER BY k;
CREATE MATERIALIZED VIEW kept AS SELECT id, k FROM t ORDER BY k;
CREATE VIEW watched AS SELECT datname, sorts, bytes_spilled FROM fmsort_stat;
CREATE ROLE sorter LOGIN;
ALTER ROLE sorter SET fmsort.mode = 'double_buffering';
ALTER ROLE sorter SET fmsort.io_method = 'sync';
INSERT INTO fmsort_device_profile (tablespace, host, measured_at, kernel,
  server_version, io_method, seconds, file_bytes)
  SELECT oid, 'another machine', now(), '', '', '', 1, 1 FROM pg_tablespace
  WHERE spcname = 'pg_default';
INSERT INTO fmsort_device_rate SELECT tablespace, 'append', 4096, 8, 1000000000
  FROM fmsort_device_profile;
EOT
	# pg_dumpall leaves out the settings of the database postgres
	$old->safe_psql('postgres', $_)
	  foreach 'CREATE DATABASE shop TEMPLATE postgres',
	  'ALTER DATABASE shop SET fmsort.assist_blocks = 7',
	  "ALTER DATABASE shop SET session_preload_libraries = 'fmsort'";
	return $bench;
}

# A cluster without any of it, not even the library in postgresql.conf.
# pg_upgrade wants data checksums in both clusters or in neither.
sub empty_cluster
{
	my ($name, $old) = @_;
	my $node = PostgreSQL::Test::Cluster->new($name);

	$node->init(no_data_checksums =>
		  $old->safe_psql('postgres', 'SHOW data_checksums') eq 'off');
	$node->append_conf('postgresql.conf',
		"fsync = off\nautovacuum = off\nsynchronize_seqscans = off\nwork_mem = '64kB'\n");
	return $node;
}

# Does it have everything?
sub complete
{
	my ($node, $bench, $name) = @_;

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
	is( $node->safe_psql('shop', 'SELECT host, bytes_per_second FROM
			fmsort_device_profile JOIN fmsort_device_rate USING (tablespace)'),
		'another machine|1000000000', "$name: the device profile");
	my (undef, undef, $err) = $node->psql('shop', $big_sort x 2);
	is(() = $err =~ /WARNING:  device profile of tablespace "pg_default" is ignored/g,
		1, "$name: ... of another machine, is ignored with one WARNING");
	is( $node->safe_psql('shop', 'SELECT fmsort_calibrate_reset();
			SELECT count(*) FROM fmsort_device_rate') =~ s/.*\n//sr,
		'0', "$name: ... and can be deleted");
	is(join(' ', temp_files($node)), '', "$name: no file is left");
	$node->append_conf('postgresql.conf', "shared_preload_libraries = 'fmsort'\n");
	$node->restart;
	$node->safe_psql('shop', $big_sort);
	is($node->safe_psql('shop', "SELECT sorts, bytes_spilled > 0 FROM watched
			WHERE datname = 'shop'"),
		'1|t', "$name: a view of the statistics");
	return;
}

sub moves_from
{
	my ($name, $install_path) = @_;
	my $bench = old_cluster("old_$name", $install_path);
	my $old = $bench->node;
	my $dump = PostgreSQL::Test::Utils::tempdir() . "/$name.sql";
	my $restored = empty_cluster("restored_$name", $old);
	my $upgraded = empty_cluster("upgraded_$name", $old);

	# ---- pg_dumpall ----------------------------------------------------------

	$old->command_ok([ "$bindir/pg_dumpall", '--no-sync', '-f', $dump ],
		"$name: pg_dumpall");
	$restored->start;
	my ($out, $err) =
	  run_command([ 'psql', '-X', '-q', '-f', $dump, '-d',
		  $restored->connstr('postgres') ]);
	is(join("\n", grep { /ERROR/ && !/role .* already exists/ } split /\n/, $err),
		'', "$name: it can be restored without an error");
	complete($restored, $bench, "$name, restored");
	$restored->stop;

	# ---- pg_upgrade ----------------------------------------------------------

	my @upgrade = (
		'pg_upgrade', '--no-sync', '-b', $old->config_data('--bindir'), '-B',
		$bindir, '-d', $old->data_dir, '-D', $upgraded->data_dir, '-s',
		$upgraded->host, '-p', $old->port, '-P', $upgraded->port);

	$old->stop;
	chdir PostgreSQL::Test::Utils::tempdir() or die;
	command_ok([ @upgrade, '--check' ], "$name: pg_upgrade --check");
	command_ok(\@upgrade, "$name: pg_upgrade");
	$upgraded->start;
	complete($upgraded, $bench, "$name, upgraded");
	$upgraded->stop;
	return;
}

moves_from('this_server');
moves_from('older_server', $ENV{FMSORT_UPGRADE_FROM})
  if $ENV{FMSORT_UPGRADE_FROM};

done_testing();
