# A temporary tablespace on a device of 4096-byte sectors, which takes no direct
# transfer that is aligned to less.  Whoever runs this may have prepared it, owned
# by the user that runs the servers:
#
#   FMSORT_SECTORS   a directory on a file system on such a device
#
# Seen to fail with: the alignment being looked for in a hole of the file; with
# serves() of io_direct.c saying 512.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use FmsTest;
use PostgreSQL::Test::Utils;
use Test::More;

plan skip_all => 'FMSORT_SECTORS names no file system on 4096-byte sectors'
  unless $ENV{FMSORT_SECTORS};

my $node = fms_node('sectors', "work_mem = '128kB'");
my $dir = make_tablespace($node, 'sectors', $ENV{FMSORT_SECTORS});

# The planner expects so many rows that "auto" goes past the page cache at once.
$node->safe_psql('postgres', <<'EOT');
CREATE TABLE t AS SELECT i AS id, (i::bigint * 7919 % 10007)::int AS k,
  md5(i::text) AS pay FROM generate_series(1, 20000) i;
ANALYZE t;
CREATE FUNCTION one() RETURNS SETOF int LANGUAGE plpgsql ROWS 1e15
  AS 'BEGIN RETURN NEXT 1; END';
EOT

my $query = <<'EOT';
SELECT md5(string_agg(id || pay, '')) FROM
  (SELECT id, k, pay FROM t, one() ORDER BY k) s;
EOT
my $right = $node->safe_psql('postgres',
	'SET fmsort.mode = off;' . $query =~ s/ORDER BY k/ORDER BY k, id/r);

sub sort_there
{
	my ($settings) = @_;
	my ($out, $err);

	$node->psql(
		'postgres', "\\set VERBOSITY verbose
SET temp_tablespaces = sectors; RESET fmsort.direct_io; $settings
$query SELECT direct_io, block_size FROM fmsort_last_sort()",
		stdout => \$out,
		stderr => \$err,
		on_error_stop => 0);
	return ($out, $err);
}

sub holds_everywhere
{
	my ($how, @methods) = @_;

	foreach my $method (@methods)
	{
		foreach my $bytes (512, 2048, 4096, 6144, 8192)
		{
			my $name = "$how, $method, blocks of $bytes";
			my $set = "SET fmsort.io_method = $method;
				SET fmsort.block_size = $bytes;";
			my $possible = $bytes % 4096 == 0 ? 't' : 'f';

			my ($out, $err) = sort_there("$set SET fmsort.direct_io = auto;");
			is($err, '', "$name, auto: no error");
			# without asynchronous reads the page cache reads ahead
			my $direct = $method eq 'sync' ? 'f' : $possible;
			is($out, "$right\n$direct|$bytes",
				"$name, auto: right, and past the page cache if that can be");

			($out, $err) = sort_there("$set SET fmsort.direct_io = on;");
			if ($possible eq 't')
			{
				is($err, '', "$name, on: no error");
				is($out, "$right\nt|$bytes", "$name, on: right");
			}
			else
			{
				like($err,
					qr/ERROR:  0A000: direct I\/O is not possible .* blocks of $bytes bytes/,
					"$name, on: an error");
				like($err, qr/DETAIL: .*multiples of 4096 bytes/,
					"$name, on: ... that says why");
				like($err, qr/HINT: .*fmsort\.direct_io.*multiple of 4096/,
					"$name, on: ... and what to do");
			}
		}
	}
	is(join(' ', temp_files($node, $dir)), '', "$how: no file is left");
	return;
}

my @methods = uring_works($node) ? qw(io_uring sync) : ('sync');
holds_everywhere('as the device demands', @methods);

# ---- an automatic size that is small -------------------------------------------------

my $many = 'SET fmsort.assist_blocks = 64;';
foreach my $mode (qw(fmsort flash))
{
	my ($out, $err) = sort_there("SET fmsort.mode = $mode; $many
		SET fmsort.direct_io = auto;");
	is($err, '', "$mode, 64 assist blocks: no error");
	like($out, qr/^$right\n[tf]\|/, "$mode, 64 assist blocks: right");

	($out, $err) = sort_there("SET fmsort.mode = $mode;
		SET fmsort.direct_io = on;");
	is($err, '', "$mode, all automatic but direct I/O: no error");
	like($out, qr/^$right\nt\|/, "$mode, all automatic: right, with direct I/O");
}

# half of it, and half of that, are no multiples of 4096
my ($out, $err) = sort_there('SET fmsort.direct_io = on;
	SET fmsort.block_size = 20480;');
is($err, '', 'a size that does not fit: no error');
like($out, qr/^$right\nt\|(4096|8192)$/, '... but one that fits, of whole sectors');

(undef, $err) = sort_there("$many SET fmsort.direct_io = on;");
like($err, qr/HINT: .*raise work_mem or lower fmsort\.assist_blocks/,
	'64 assist blocks, on: the error says what to do');

# ---- measuring the device ------------------------------------------------------------

$node->psql('postgres', "SET client_min_messages = warning;
	SELECT count(*) FROM fmsort_calibrate('sectors', 2, 16777216) \\g /dev/null
	SELECT measurement, min(block_size), max(block_size) > 4096
	FROM fmsort_device_rate WHERE measurement <> 'append'
	GROUP BY 1 ORDER BY 1",
	stdout => \$out, stderr => \$err);
is($err, '', 'calibrating: no error');
is($out, "random_read|4096|t\nrandom_write|4096|t\nsequential_read|4096|t\nsequential_write|4096|t",
	'... of the sizes that the device takes');

drop_tablespace($node, 'sectors', $dir);
$node->stop;
done_testing();
