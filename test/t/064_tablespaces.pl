# Several temporary tablespaces: a sort has a file with stripes in each, and
# the device that it reckons with is what they make together.
#
# Seen to fail with: fms_tape_in_row() without limit; fms_tape_trim() trimming
# the first file only; read_devices() of profile.c taking the first one.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use FmsTest;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = fms_node('tablespaces', "work_mem = '1MB'",
	'log_temp_files = 0');
my $where = PostgreSQL::Test::Utils::tempdir();
my %dir = map { $_ => make_tablespace($node, $_, "$where/" . mkdir_of($_)) }
  qw(one two three);

sub mkdir_of
{
	mkdir "$where/$_[0]" or die "$where/$_[0]: $!";
	return $_[0];
}

$node->safe_psql('postgres', <<'EOT');
CREATE TABLE t AS SELECT i AS id, (i::bigint * 7919 % 100003)::int AS k,
  repeat(md5(i::text), 3) AS pay FROM generate_series(1, 60000) i;
ANALYZE t;
EOT

my $query = <<'EOT';
SELECT md5(string_agg(id || left(pay, 9), '')) FROM
  (SELECT id, k, pay FROM t ORDER BY k, id) s;
EOT
my $right = $node->safe_psql('postgres', "SET fmsort.mode = off; $query");

# Bytes of the sorts' files in a tablespace.
sub bytes_in
{
	my ($name) = @_;
	my $sum = 0;

	$sum += -s foreach glob("$dir{$name}/PG_*/pgsql_tmp/*");
	return $sum;
}

# ---- the same rows, wherever they lie ------------------------------------------------

foreach my $direct (direct_ways($node))
{
	foreach my $mode (qw(fmsort double_buffering traditional multi_block flash))
	{
		foreach my $block (0, 512, 4096, 65536)
		{
			is( $node->safe_psql('postgres', <<EOT), $right,
SET temp_tablespaces = one, two, three;
SET fmsort.direct_io = $direct; SET fmsort.mode = $mode;
SET fmsort.block_size = $block;
$query
EOT
				"$mode, direct_io = $direct, block_size = $block");
		}
	}
}
foreach my $method (uring_works($node) ? qw(io_uring sync) : 'sync')
{
	# several passes: free extents are written again
	my ($sorted, $passes) = split /\n/,
	  $node->safe_psql('postgres', <<EOT);
SET temp_tablespaces = one, two; SET fmsort.io_method = $method;
SET work_mem = '256kB'; SET fmsort.block_size = '16kB';
$query SELECT merge_passes > 1 FROM fmsort_last_sort();
EOT
	is($sorted, $right, "$method: several passes");
	is($passes, 't', '... these are');
}

# ---- the files -----------------------------------------------------------------------

my $session = $node->background_psql('postgres');
$session->query_safe(<<'EOT');
SET temp_tablespaces = one, two;
BEGIN;
DECLARE c CURSOR FOR SELECT * FROM t ORDER BY k, id;
FETCH 1 FROM c;
EOT
my @bytes = map { bytes_in($_) } qw(one two);
cmp_ok(abs($bytes[0] - $bytes[1]), '<=', 128 * 1024,
	"half in each: @bytes");
cmp_ok($bytes[0] + $bytes[1], '>', 4 * 1000 * 1000, 'both hold a spill');
$session->query_safe('COMMIT');
is(bytes_in('one') + bytes_in('two'), 0, 'none is left');
$session->quit;

my ($status, undef, $err) = $node->psql('postgres', <<EOT);
SET temp_tablespaces = one, two; SET temp_file_limit = '3MB'; $query
EOT
like($err, qr/temporary file size exceeds "?temp_file_limit/,
	'temp_file_limit counts all of them');
is(bytes_in('one') + bytes_in('two'), 0, 'none is left');

# ---- the device ----------------------------------------------------------------------

sub profile
{
	my ($name, $mb) = @_;

	$node->safe_psql('postgres', <<EOT);
INSERT INTO fmsort_device_profile (tablespace, measured_at, kernel,
  server_version, io_method, seconds, file_bytes)
  SELECT oid, now(), '', '', '', 1, 1 FROM pg_tablespace
  WHERE spcname = '$name';
INSERT INTO fmsort_device_rate (tablespace, measurement, block_size, queue_depth,
  bytes_per_second)
  SELECT oid, p, 4096, 8, $mb * 1000000 FROM pg_tablespace,
    unnest('{append,random_read}'::text[]) p WHERE spcname = '$name';
EOT
	return;
}

sub why
{
	my ($tablespaces) = @_;

	return (split /\n/, $node->safe_psql('postgres', <<EOT))[-1];
SET temp_tablespaces = $tablespaces; SET fmsort.direct_io = auto; $query
SELECT decision FROM fmsort_last_sort();
EOT
}

profile('one', 1000);
profile('two', 1600);
like(why('one'), qr/\(500 MB\/s there and back, by its profile\)/,
	'one tablespace: its profile');
like(why('two'), qr/\(800 MB\/s/, '... that of another one');
like(why('two, one'), qr/\(1000 MB\/s/, 'two: twice the slower one');
unlike(why('two, three'), qr/by its profile/, 'one without a profile: none');

$node->stop;
done_testing();
