# Every version of the extension that is installed can be updated to the
# default one, and then is what a fresh installation of that is: definitions,
# privileges and comments of all its objects, as pg_dump --binary-upgrade
# prints them, which dumps an extension's members.
#
# The names of the scripts say which versions there were, so a new release needs
# no change here: fmsort--OLD--NEW.sql joins the tree.
#
# Every version: pg_dump and the catalogs.
# A database that has not been updated yet gets an error that says so.
#
# Seen to fail with: an update script that leaves out a comment, that makes a
# function with another cost, that forgets to add a function; a version
# without an update script.

use strict;
use warnings;

use FindBin;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = PostgreSQL::Test::Cluster->new('upgrade');
$node->init;
$node->append_conf('postgresql.conf',
	"fsync = off\nautovacuum = off\nsession_preload_libraries = 'fmsort'\n"
	  . "fmsort.min_rows = 0\n");
$node->start;

# What is in a database, without OIDs, which are others in each, and without
# the random key that newer pg_dumps protect their output with.
sub objects
{
	my ($database) = @_;
	my ($out, $err) = run_command(
		[
			'pg_dump', '--binary-upgrade', '--schema-only',
			'-d', $node->connstr($database)
		]);

	BAIL_OUT("pg_dump: $err") unless $out =~ /ALTER EXTENSION fmsort ADD/;
	return join "\n",
	  map { s/'\d+'::pg_catalog\.oid/OID/gr =~ s/ROW\(\d+/ROW(OID/gr
	  =~ s/'\{\d+(,\d+)*\}'/OIDs/gr =~ s/oid = '\d+'/OID/gr
	  =~ s/relfrozenxid = '\d+'/XID/gr }
	  grep { !/^\\(un)?restrict / && !/^--/ && !/^$/ && !/binary_upgrade_set_next/ }
	  split /\n/, $out;
}

# database(NAME, SQL...): a new one, in which these are run
sub database
{
	my ($name, @sql) = @_;

	$node->safe_psql('postgres', qq{CREATE DATABASE "$name"});
	$node->safe_psql($name, $_) foreach @sql;
	return $name;
}

my $default = $node->safe_psql('postgres',
	q{SELECT default_version FROM pg_available_extensions
	  WHERE name = 'fmsort'});
# beside the tests, if they were copied; else at the top of the tree
my ($top) = grep { -e "$_/fmsort.control" } "$FindBin::RealBin/../project",
  "$FindBin::RealBin/../..";
my %named = map { $_ => 1 } map { /(?<=--)(\d[\d.]*\d)/g } glob("$top/fmsort--*.sql");
my @versions = sort keys %named;

note 'versions: ', join ', ', @versions;
ok((grep { $_ eq $default } @versions), "the default version $default exists");

my $fresh = objects(database('fresh', 'CREATE EXTENSION fmsort'));

# ---- the comparison sees what it is for ----------------------------------------

is(objects(database('again', 'CREATE EXTENSION fmsort')),
	$fresh, 'two fresh installations are the same');
my $number = 0;
foreach my $difference (
	'COMMENT ON FUNCTION fmsort_last_sort() IS NULL',
	'ALTER FUNCTION fmsort_last_sort() COST 7',
	'REVOKE ALL ON FUNCTION fmsort_last_sort() FROM PUBLIC',
	'ALTER EXTENSION fmsort DROP FUNCTION fmsort_last_sort();
	 DROP FUNCTION fmsort_last_sort()',
	'CREATE TABLE more (i int); ALTER EXTENSION fmsort ADD TABLE more')
{
	# something else has to be left of it for objects() to see
	isnt(
		objects(
			database(
				'tampered_' . $number++, 'CREATE EXTENSION fmsort',
				'CREATE VIEW left_over AS SELECT 1;
				 ALTER EXTENSION fmsort ADD VIEW left_over;', $difference)),
		objects(
			database(
				'tampered_' . $number++, 'CREATE EXTENSION fmsort',
				'CREATE VIEW left_over AS SELECT 1;
				 ALTER EXTENSION fmsort ADD VIEW left_over;')),
		"seen: $difference");
}

# ---- from every version ----------------------------------------------------------

foreach my $version (@versions)
{
	my $database = "from_$version";
	my $path = $node->safe_psql('postgres', qq{
		SELECT path FROM pg_extension_update_paths('fmsort')
		WHERE source = '$version' AND target = '$default'});

	unless ($version eq $default || $path ne '')
	{
		fail("$version: there is an update script to $default");
		next;
	}
	database($database, qq{CREATE EXTENSION fmsort VERSION '$version'},
		'ALTER EXTENSION fmsort UPDATE');
	is($node->safe_psql($database,
			q{SELECT extversion FROM pg_extension WHERE extname = 'fmsort'}),
		$default, "$version: updated to $default");
	is(objects($database), $fresh,
		"$version: then it is what a fresh installation is");
	is($node->safe_psql($database,
			'SELECT count(*) FROM (SELECT relname FROM pg_class
			 ORDER BY relpages, relname OFFSET 0) c;
			 SELECT sort_method FROM fmsort_last_sort()') =~ s/^\d+\n//r,
		'in-memory', "$version: then it works");
}

# ---- before the update: the new library with the old definitions ------------------

foreach my $version (grep { $_ eq '0.1.0' } @versions)
{
	my $database = database("old_$version",
		qq{CREATE EXTENSION fmsort VERSION '$version'});
	my $try = sub {
		my (undef, undef, $err) = $node->psql($database,
			"\\set VERBOSITY verbose\n$_[0]", on_error_stop => 0);

		return $err;
	};

	foreach my $call (q{fmsort_recommend('4MB', 1000000)},
		q{fmsort_compare('SELECT 1')}, 'fmsort_last_sort()',
		'fmsort_calibrate(seconds => 1, size_mb => 16)')
	{
		like($try->("SELECT count(*) FROM (SELECT relpages FROM pg_class
				ORDER BY 1 OFFSET 0) c; SELECT * FROM $call"),
			qr/ERROR:  55000: .*\nHINT:  Run ALTER EXTENSION fmsort UPDATE/,
			"$version, not updated: $call says what to do");
	}
	is($try->("INSERT INTO fmsort_device_profile SELECT 'pg_default', now(),
			'x', 'x', 'x', 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1;
			SET work_mem = '64kB'; SELECT count(*) FROM
			(SELECT g FROM generate_series(1, 50000) g ORDER BY -g OFFSET 0) s"),
		'', "$version, not updated: sorts go on without a profile");

	# ---- a user's objects that depend on the old ones -------------------------------
	foreach my $used ('fmsort_last_sort()', 'fmsort_stat',
		'fmsort_device_profile')
	{
		$node->safe_psql($database, "CREATE VIEW mine AS SELECT * FROM $used");
		like($try->('ALTER EXTENSION fmsort UPDATE'),
			qr/ERROR:  2BP01: cannot drop .*\nDETAIL:  view mine depends on/,
			"$version, a view on $used: the update names the view");
		is($node->safe_psql($database, "SELECT extversion FROM pg_extension
				WHERE extname = 'fmsort'; DROP VIEW mine"),
			$version, '... and changes nothing');
	}
	is($try->('ALTER EXTENSION fmsort UPDATE'), '', "$version: then it is updated");
	is($node->safe_psql($database, 'SELECT array_agg(c::regclass ORDER BY 1)
			FROM pg_extension, unnest(extconfig) c WHERE extname = $$fmsort$$'),
		$node->safe_psql('fresh', 'SELECT array_agg(c::regclass ORDER BY 1)
			FROM pg_extension, unnest(extconfig) c WHERE extname = $$fmsort$$'),
		"$version: and dumps the tables that it has");
}

$node->stop;
done_testing();
