# fmsort_calibrate(): whatever goes wrong, a clear error, and nothing stays
# behind; and what it keeps is kept.
#
# Whoever runs this may have prepared file systems; see 003_filesystems.pl, and
#
#   FMSORT_ROFS         a directory on a read-only file system
#   FMSORT_ROFS_SOURCE  the same directory, where it can be written to
#
# Where one is not set, its part is skipped and says so; if CI is set, that is
# a failure.
#
# Seen to fail with: check_place() of probe.c doing nothing; no reset callback of
# probe.c; read_rows() of profile.c waiting for its lock; fmsort_profile_changed()
# without an invalidation; no pg_extension_config_dump() for the rates;
# fms_profile_store() that replaces any profile; a profile found by the name;
# write_profile() without OPERATOR(pg_catalog.=).

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use FmsTest;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = fms_node('calibrate');
my $short = 'seconds => 1, file_bytes => 16777216, keep => false';
my @direct = direct_ways($node);
my $direct = (grep { $_ eq 'on' } @direct) ? 'true' : 'false';

# Output and errors, with SQLSTATEs.
sub run
{
	my ($sql, %options) = @_;
	my ($out, $err);

	$node->psql(
		'postgres', "\\set VERBOSITY verbose\n$sql",
		stdout => \$out,
		stderr => \$err,
		on_error_stop => 0,
		%options);
	return ($out, $err);
}

# A file system that the tests' caller has to make.
sub prepared
{
	my (@variables) = @_;

	return 1 unless grep { !$ENV{$_} } @variables;
	fail("@variables not set, in CI") if $ENV{CI};
	return 0;
}

# ---- errors ------------------------------------------------------------------

my %errors = (
	'no such tablespace' => [
		"SELECT * FROM fmsort_calibrate('nowhere', $short)",
		qr/ERROR:  42704: tablespace "nowhere" does not exist/
	],
	'pg_global' => [
		"SELECT * FROM fmsort_calibrate('pg_global', $short)",
		qr/ERROR:  22023: tablespace "pg_global" cannot hold temporary files/
	],
	'temp_file_limit' => [
		"SET temp_file_limit = '17MB'; SELECT * FROM fmsort_calibrate(
		 file_bytes => 67108864, direct_io => $direct)",
		qr/ERROR:  53400: temporary file size exceeds "?temp_file_limit/
	],
	'statement_timeout' => [
		"SET statement_timeout = '1s'; SELECT * FROM fmsort_calibrate(
		 file_bytes => 16777216, seconds => 600, direct_io => $direct)",
		qr/ERROR:  57014: canceling statement due to statement timeout/
	],
	'a transaction that is read-only' => [
		'SET default_transaction_read_only = on;
		 SELECT * FROM fmsort_calibrate()',
		qr/ERROR:  25006: cannot execute fmsort_calibrate\(\).* read-only/
	],);

foreach my $error (sort keys %errors)
{
	my ($sql, $expected) = @{ $errors{$error} };
	my (undef, $err) = run($sql);

	like($err, $expected, "$error: the error");
	is(join(' ', temp_files($node)), '', "$error: no file stays");
}

# ---- rights -------------------------------------------------------------------

$node->safe_psql('postgres', <<'EOT');
CREATE ROLE nobody LOGIN;
CREATE ROLE operator LOGIN IN ROLE pg_write_server_files;
EOT
my (undef, $err) = run("SET ROLE nobody; SELECT * FROM fmsort_calibrate($short)");
like($err, qr/ERROR:  42501: permission denied for function fmsort_calibrate/,
	'no right: an error');
(undef, $err) = run('SET ROLE nobody; SELECT count(*) FROM fmsort_device_rate');
is($err, '', '... but anybody may look at the profile');
(undef, $err) = run('SET ROLE operator; DELETE FROM fmsort_device_rate');
like($err, qr/ERROR:  42501: permission denied for table/,
	'who may measure need not be allowed to write the tables');

my $there = make_tablespace($node, 'there', $node->basedir);
(undef, $err) =
  run("SET ROLE operator; SELECT * FROM fmsort_calibrate('there', $short,
	direct_io => $direct)");
like($err, qr/ERROR:  42501: permission denied for tablespace there/,
	'no right to create files in the tablespace: an error');

# ---- what is kept ---------------------------------------------------------------

SKIP:
{
	if ($direct ne 'true')
	{
		fail('direct I/O, in CI') if $ENV{CI};
		skip 'no direct I/O below ' . $node->data_dir, 1;
	}

	$node->safe_psql('postgres', 'GRANT CREATE ON TABLESPACE there TO operator');
	my ($rows) = run("SET ROLE operator; SET temp_tablespaces = '';
		CREATE TEMPORARY TABLE answer AS
		SELECT * FROM fmsort_calibrate('there', file_bytes => 16777216);
		SELECT count(*), count(*) FILTER (WHERE verdict ~ '^[a-z ]+: ')
		FROM answer WHERE measurement = 'round_trip' OR queue_depth > 0;
		SELECT count(*) FROM ((SELECT measurement, block_size, queue_depth,
		     bytes_per_second FROM answer WHERE verdict IS NULL) EXCEPT
		  (SELECT measurement, block_size, queue_depth, bytes_per_second
		   FROM fmsort_device_rate
		   WHERE tablespace = (SELECT oid FROM pg_tablespace
		     WHERE spcname = 'there'))) d;
		SELECT count(*) > 40 FROM fmsort_device_rate;
		SELECT spcname, device <> '', host <> '', kernel <> '', file_bytes, seconds > 0
		FROM fmsort_device_profile JOIN pg_tablespace ON oid = tablespace;");
	is($rows, "10|1\n0\nt\nthere|t|t|t|16777216|t",
		'a complete measurement is kept, whoever took it');
	is(join(' ', temp_files($node, $there)), '', '... and no file stays');

	# it is written as the tables' owner: no operator of a user's may run then
	$node->safe_psql('postgres', <<'EOT');
CREATE SCHEMA evil;
GRANT USAGE ON SCHEMA evil TO operator;
CREATE FUNCTION evil.same(oid, oid) RETURNS boolean LANGUAGE plpgsql AS
  'BEGIN RAISE ''evil''; END';
CREATE OPERATOR evil.= (FUNCTION = evil.same, LEFTARG = oid, RIGHTARG = oid);
EOT
	(undef, $err) = run("SET ROLE operator;
		SET search_path = evil, pg_catalog, public;
		SELECT count(*) FROM fmsort_calibrate('there', file_bytes => 16777216)");
	unlike($err, qr/ERROR/, "a user's operators do not count");
	is($node->safe_psql('postgres',
		'SELECT count(*) FROM fmsort_device_profile'), 1,
		'another measurement takes its place');

	(undef, $err) =
	  run("BEGIN; SELECT count(*) FROM fmsort_calibrate('there', 1, 16777216); ROLLBACK;
		SELECT measured_at FROM fmsort_device_profile");
	is(join(' ', temp_files($node, $there)), '',
		'a transaction that is rolled back leaves no file');

	# one that left points out does not take a profile's place
	my $good = 'SELECT count(*), max(measured_at) FROM fmsort_device_rate,
		fmsort_device_profile';
	my $before = $node->safe_psql('postgres', $good);
	(undef, $err) = run("SELECT count(*) FROM fmsort_calibrate('there', 1,
		4::bigint << 30)");
	is($node->safe_psql('postgres', $good), $before,
		'an incomplete measurement leaves the profile alone');
	like($err, qr/WARNING: .*device profile of tablespace "there" was not replaced/,
		'... and says so');

	# ... but for that of another device
	run('UPDATE fmsort_device_profile SET device = $$another$$');
	# both read the profile, since it is written in between
	my $two_sorts = "SET temp_tablespaces = 'there'; SET work_mem = '64kB';"
	  . 'SELECT count(*) FROM (SELECT g FROM generate_series(1, 50000) g
		ORDER BY -g OFFSET 0) s;
		UPDATE fmsort_device_profile SET kernel = kernel;' x 2;
	(undef, $err) = run($two_sorts);
	is(() = $err =~ /WARNING:  01000: device profile of tablespace "there" is ignored/g,
		1, "another device's profile is ignored with one WARNING");
	(undef, $err) = run("SELECT count(*) FROM fmsort_calibrate('there', 1,
		4::bigint << 30)");
	like($err, qr/NOTICE: .*device profile of tablespace "there" is incomplete/,
		'... and replaced by an incomplete one');
	(undef, $err) = run($two_sorts);
	is($err, '', '... which counts without a word');

	# it belongs to the tablespace, whatever that is called
	my $tuned = "SET temp_tablespaces = '%s'; SET work_mem = '2MB';
	  DO \$\$ BEGIN PERFORM g FROM generate_series(1, 100000) g
	    ORDER BY -g OFFSET 99999; END \$\$;
	  SELECT block_size FROM fmsort_last_sort()";
	$node->safe_psql('postgres', "DELETE FROM fmsort_device_rate;
		INSERT INTO fmsort_device_rate SELECT tablespace, 'random_read', 512 << b,
		  1 << d, (512 << b) * 1000::bigint FROM fmsort_device_profile,
		  generate_series(0, 13) b, generate_series(0, 6) d");
	my $known = $node->safe_psql('postgres', sprintf($tuned, 'there'));
	isnt($known, $node->safe_psql('postgres', sprintf($tuned, '')),
		'sorts go by the profile');
	$node->safe_psql('postgres', 'ALTER TABLESPACE there RENAME TO renamed');
	is($node->safe_psql('postgres', sprintf($tuned, 'renamed')), $known,
		'... of a tablespace that has been renamed, too');
	$node->safe_psql('postgres', 'ALTER TABLESPACE renamed RENAME TO there');

	# another database knows the profile after a dump and a restore
	my $dump = $node->basedir . '/profile.sql';
	$node->command_ok([ 'pg_dump', '--file', $dump, $node->connstr('postgres') ],
		'pg_dump');
	$node->safe_psql('postgres', 'CREATE DATABASE other');
	$node->command_ok([ 'psql', '-X', '-q', '-v', 'ON_ERROR_STOP=1',
		'-f', $dump, $node->connstr('other') ], 'restore');
	my $all = 'SELECT md5(string_agg(r::text, chr(10) ORDER BY r)) FROM
	  fmsort_device_rate r';
	is( $node->safe_psql('other', $all),
		$node->safe_psql('postgres', $all),
		'a dump keeps the profile');
	is( $node->safe_psql('other', 'TABLE fmsort_device_profile'),
		$node->safe_psql('postgres', 'TABLE fmsort_device_profile'),
		'... and how it was taken');
}

# ---- sessions hear of each other's changes -------------------------------------------

{
	my $one = $node->background_psql('postgres');
	my $sort = "SELECT count(*) FROM
	  (SELECT g FROM generate_series(1, 100000) g ORDER BY -g OFFSET 0) s;
	  SELECT block_size FROM fmsort_last_sort()";
	# rates that grow with the block, or fall
	my $profile = sub {
		my ($rate) = @_;

		return "DELETE FROM fmsort_device_profile;
		  INSERT INTO fmsort_device_profile SELECT oid, NULL, NULL, now(),
		    'none', 'none', 'sync', 1, 1 FROM pg_tablespace;
		  INSERT INTO fmsort_device_rate SELECT t.oid, 'random_read', 512 << b, 1 << d,
		    $rate * 1e6 FROM pg_tablespace t, generate_series(0, 13) b,
		    generate_series(0, 6) d;";
	};

	$one->query_safe("SET work_mem = '2MB'; SET fmsort.direct_io = auto");
	$node->safe_psql('postgres', $profile->('1e5 / (512 << b)'));
	my ($small) = $one->query_safe($sort) =~ /(\d+)$/;
	$node->safe_psql('postgres', $profile->('(512 << b) / 1e3'));
	my ($large) = $one->query_safe($sort) =~ /(\d+)$/;
	cmp_ok($small, '<', $large, 'a session hears of another profile');

	# nobody waits for a table that is locked
	my $two = $node->background_psql('postgres');
	$two->query_safe(
		"BEGIN; LOCK TABLE fmsort_device_profile, fmsort_device_rate");
	my ($out, $err) = run("SET lock_timeout = '20s'; SET work_mem = '2MB';
		SELECT count(*) FROM
		(SELECT g FROM generate_series(1, 100000) g ORDER BY -g OFFSET 0) s");
	is("$out$err", '100000', 'a sort does not wait for the profile');
	$two->query_safe('ROLLBACK');
	$two->quit;
	$one->query_safe('DELETE FROM fmsort_device_profile');
	$one->quit;
}

# ---- cancelled and terminated ------------------------------------------------------

foreach my $method (uring_works($node) ? qw(io_uring sync) : 'sync')
{
	my $long = "SET fmsort.io_method = $method; SELECT count(*) FROM
	  fmsort_calibrate('there', 600, 16777216, direct_io => $direct, keep => false)";

	foreach my $way (qw(cancel terminate))
	{
		my $session = $node->background_psql('postgres', on_error_stop => 0);
		my $pid = $session->query_safe('SELECT pg_backend_pid()');

		$session->query_until(qr/started/, "\\echo started\n$long;\n");
		ok(wait_until(sub { scalar temp_files($node, $there) }),
			"$method, $way: there is a file");
		$node->safe_psql('postgres', "SELECT pg_${way}_backend($pid)");
		if ($way eq 'cancel')
		{
			$session->{stderr} = '';
			is($session->query('SELECT 1'), 1, "$method, $way: the session goes on");
			is_deeply(
				backend_state($pid),
				{ io_uring => 0, temporary => 0, rings_mapped => 0 },
				"$method, $way: it holds nothing");
		}
		else
		{
			ok(wait_until(sub { !-e "/proc/$pid" }), "$method, $way: it ends");
		}
		ok(wait_until(sub { !temp_files($node, $there) }),
			"$method, $way: no file stays");
		eval { $session->quit };
	}
}
drop_tablespace($node, 'there', $there);

# ---- file systems ---------------------------------------------------------------------

SKIP:
{
	skip 'FMSORT_RAMFS names no file system without direct I/O', 1
	  unless prepared('FMSORT_RAMFS');
	my $dir = make_tablespace($node, 'undirect', $ENV{FMSORT_RAMFS});
	my ($out, $err) = run("SELECT * FROM fmsort_calibrate('undirect', $short)");

	like($err, qr/ERROR:  0A000: file system of tablespace "undirect" does not support direct I\/O/,
		'no direct I/O: an error');
	like($err, qr/HINT: .*direct_io => false/, '... that says what to do');
	is(join(' ', temp_files($node, $dir)), '', '... and leaves no file');
	($out, $err) = run("SELECT count(*) > 1, bool_and(bytes_per_second > 0) FROM
		fmsort_calibrate('undirect', $short, direct_io => false)");
	is($out, 't|t', 'direct_io => false measures the page cache');
	is(join(' ', temp_files($node, $dir)), '', '... and leaves no file');
	drop_tablespace($node, 'undirect', $dir);
}

SKIP:
{
	skip 'FMSORT_SMALLFS names no small file system', 1
	  unless prepared('FMSORT_SMALLFS');
	my $dir = make_tablespace($node, 'small', $ENV{FMSORT_SMALLFS});

	foreach my $way ('true', 'false')
	{
		my (undef, $err) = run("SELECT * FROM fmsort_calibrate('small',
			file_bytes => 67108864, direct_io => $way)");

		like($err, qr/ERROR:  53100: could not (write|extend).*No space left/,
			"direct_io => $way: a full disk is an error");
		is(join(' ', temp_files($node, $dir)), '', '... that leaves no file');
	}
	drop_tablespace($node, 'small', $dir);
}

SKIP:
{
	skip 'FMSORT_ROFS and FMSORT_ROFS_SOURCE name no read-only file system', 1
	  unless prepared('FMSORT_ROFS', 'FMSORT_ROFS_SOURCE');

	# made where that is possible, then seen through the read-only mount
	my $dir = make_tablespace($node, 'readonly', $ENV{FMSORT_ROFS_SOURCE});
	my $oid = $node->safe_psql('postgres',
		"SELECT oid FROM pg_tablespace WHERE spcname = 'readonly'");
	my $link = $node->data_dir . "/pg_tblspc/$oid";
	my $target = readlink $link;
	my $readonly = "$ENV{FMSORT_ROFS}/fmsort_test_$$";

	unlink $link;
	symlink $readonly, $link or die "$link: $!";
	my (undef, $err) = run("SELECT * FROM fmsort_calibrate('readonly', $short)");
	like($err, qr/ERROR:  \w+: could not create a temporary file in tablespace "readonly": Read-only file system/,
		'a read-only file system is an error, and not measured elsewhere');
	is(join(' ', temp_files($node, $dir)), '', '... that leaves no file');
	unlink $link;
	symlink $target, $link or die "$link: $!";
	drop_tablespace($node, 'readonly', $dir);
}

$node->stop;
done_testing();
