# A profile of the device that is wrong: what it changes, and that the sort finds
# out.  Nothing here is measured: the profiles are far from any device, and the
# device that is slower than its profile is made by faulty_io.c, which can only
# be slower still.
#
# Seen to fail with: fms_spill_policy_observe() doing nothing; a slow device given
# next to no room; transfer_file() of tape.c that knows no way back; resolve()
# of it that opens each file once.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use FmsTest;
use FmsFaults;
use List::Util qw(shuffle);
use Test::More;

my $bench =
  FmsFaults->new_with_faulty_io('falsified', 'max_files_per_process = 80');

if (!$bench)
{
	fail('FMSORT_FAULTY_IO, in CI') if $ENV{CI};
	plan skip_all => 'FMSORT_FAULTY_IO names no faulty_io.so; script/test makes it';
}

my $node = $bench->node;

if (!grep { $_ eq 'on' } direct_ways($node))
{
	fail('direct I/O, in CI') if $ENV{CI};
	plan skip_all => 'no direct I/O below ' . $node->data_dir;
}

# A profile in which reads and writes of every kind have that rate.
sub profile
{
	my ($mb) = @_;

	$node->safe_psql('postgres', <<"EOT");
DELETE FROM fmsort_device_profile;
INSERT INTO fmsort_device_profile SELECT oid, NULL, NULL, now(), 'none',
  'none', 'io_uring', 1, 1 FROM pg_tablespace;
INSERT INTO fmsort_device_rate SELECT t.oid, p, 512 << b, 1 << d,
  $mb * 1000000::bigint
  FROM pg_tablespace t, generate_series(0, 13) b, generate_series(0, 6) d,
  unnest('{random_read,append}'::text[]) p;
EOT
	return;
}

my $settings = "SET fmsort.direct_io = auto; SET fmsort.block_size = 0;
  SET fmsort.assist_blocks = 0; SET work_mem = '1MB';";

# So many rows, from all over the input; 167 bytes each on tape.
sub shuffled
{
	my ($rows) = @_;

	return "SELECT g, repeat(md5(g::text), 4) AS pay
	  FROM generate_series(1, $rows) g ORDER BY g::bigint * 7919 % 1000003";
}

# Direct I/O or not, and why, of some 25 MB
sub chosen
{
	my ($more, $rows) = @_;
	my $query = shuffled($rows // 150000);

	return $node->safe_psql('postgres', <<"EOT");
$settings
$more;
DO \$do\$ BEGIN PERFORM count(pay) FROM ($query OFFSET 0) q; END \$do\$;
SELECT direct_io, tuples, decision FROM fmsort_last_sort();
EOT
}

# without asynchronous reads, sorts go through the page cache in any case
my $uring = 'SET fmsort.io_method = io_uring';

profile(3);
my $slow = chosen($uring);
like($slow, qr/^f\|150000\|.*page cache: memory had room for the spill \(\d+ MB\/s there and back, by its profile\)/,
	'a profile that is far too slow: the page cache, as long as there is memory');

# Who expects so much as memory cannot hold compresses it for such a device.
my $much = $node->safe_psql('postgres', <<"EOT");
CREATE FUNCTION pg_temp.rows() RETURNS SETOF int LANGUAGE sql ROWS 1e9 AS
  'SELECT generate_series(1, 60000)';
$settings $uring;
DO \$do\$ BEGIN PERFORM count(pay) FROM (SELECT g, repeat(md5(g::text), 4) AS pay
  FROM pg_temp.rows() g ORDER BY g::bigint * 7919 % 1000003 OFFSET 0) q;
END \$do\$;
SELECT compression > 2, decision FROM fmsort_last_sort();
EOT
like($much, qr/^t\|.*compression: the device is slow, and memory had not enough room/,
	'... and compressed, where more is expected than memory can hold');
unlike($slow, qr/compression/, '... but not where it can');

profile(100000);
my $fast = chosen($uring);
like($fast, qr/^t\|150000\|.*direct I\/O(, then page cache)?: (the device is faster than the page cache \(50000 MB\/s there and back, by its profile\)|[^;]*as this sort has seen)/,
	'a profile that is far too fast: direct I/O, until the device is seen');

# 4 kB in 400 us: 10 MB/s
$bench->order('slow_write', value => 400, times => 1000000000);
my $seen = chosen($uring);
like($seen, qr/^t\|150000\|.*direct I\/O, then page cache: memory had room for the spill \(\d+ MB\/s there and back, as this sort has seen\)/,
	'... on a device that is slow: it finds out, and goes to the page cache');
$bench->order('none');

# the answers are the same
my $rows = "$settings SELECT md5(string_agg(id::text, ',')) FROM
  (SELECT id FROM t ORDER BY k, pay, id OFFSET 0) s";
my $right = $node->safe_psql('postgres', "SET fmsort.mode = off; $rows");

foreach my $mb (3, 100000)
{
	profile($mb);
	is($node->safe_psql('postgres', "$rows"), $right, "$mb MB/s: the same rows");
}
$bench->order('slow_write', value => 100, times => 1000000000);
is($node->safe_psql('postgres', "$uring; $rows"), $right,
	'from one to the other: the same rows');

# Many such sorts at once, with fewer descriptors than files: fd.c closes one
# file of a sort when it opens the other.
{
	my $sorts = 40;
	my $rows = 40000;
	my $moved = 12000;
	my $sql = "$settings $uring; BEGIN;\n";

	like(chosen($uring, $rows), qr/^t\|$rows\|.*direct I\/O, then page cache/,
		'a smaller sort goes from one to the other, too');
	$sql .= "DECLARE c$_ NO SCROLL CURSOR FOR " . shuffled($rows) . ";\n"
	  foreach 1 .. $sorts;
	# by turns, it would always be the same file that goes
	srand(1);
	$sql .= 'MOVE ' . $moved / 12 . " FROM c$_;\n"
	  foreach shuffle((1 .. $sorts) x 12);
	$sql .= "FETCH 1 FROM c$_;\n" foreach 1 .. $sorts;
	$sql .= 'COMMIT;';
	my ($status, $out, $err) =
	  $node->psql('postgres', $sql, on_error_die => 0);
	my $next = $node->safe_psql('postgres', 'SET fmsort.mode = off;
	  SELECT g FROM (' . shuffled($rows) . " OFFSET $moved LIMIT 1) s");

	is($err, '', "$sorts of them at once with 80 descriptors");
	is_deeply([ $out =~ /^(\d+)\|/mg ], [ ($next) x $sorts ],
		'... go on where they were');
}
is(join(' ', temp_files($node)), '', 'no file stays');

$node->stop;
done_testing();
