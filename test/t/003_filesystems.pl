# Temporary tablespaces where direct I/O does not work, and where the disk is
# full.  Whoever runs this may have prepared such file systems, owned by the
# user that runs the servers:
#
#   FMSORT_RAMFS     a directory on a file system without direct I/O (ramfs)
#   FMSORT_SMALLFS   a directory on a file system of its own of about 16 MB
#
# Where one is not set, its part is skipped and says so.
#
# Seen to fail with: open_direct() of tape.c not probing before it opens;
# passes that write behind all that is there; the last merge making holes.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use FmsTest;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = fms_node('filesystems');

$node->safe_psql('postgres', <<'EOT');
CREATE TABLE t AS SELECT i AS id, (i::bigint * 7919 % 100003)::int AS k,
  repeat(md5(i::text), 4) AS pay FROM generate_series(1, 150000) i;
ANALYZE t;
EOT

# A small sort and one that is larger than the small file system.
my $small = 't WHERE id <= 20000';
my $medium = 't WHERE id <= 36000';
my $large = 't';
my @methods = uring_works($node) ? qw(io_uring sync) : ('sync');

sub query
{
	my ($from, $tie_break) = @_;

	return <<EOT;
SELECT sum((n % 1000003) * id + length(pay)) FROM
  (SELECT row_number() OVER () AS n, id, pay FROM
    (SELECT id, k, pay FROM $from ORDER BY k$tie_break) s) r;
EOT
}
my %right = map {
	$_ => $node->safe_psql('postgres',
		'SET fmsort.mode = off;' . query($_, ', id'))
} $small, $medium, $large;

# Output, error output and how the sort's I/O was done.
sub sort_there
{
	my ($tablespace, $from, $settings) = @_;
	my ($out, $err);

	$node->psql(
		'postgres', "\\set VERBOSITY verbose
SET work_mem = '256kB'; SET temp_tablespaces = $tablespace; $settings
" . query($from, '') . '
SELECT direct_io, sort_method, bytes_spilled / 1000000, bytes_written / 1024
  FROM fmsort_last_sort()
',
		stdout => \$out,
		stderr => \$err,
		on_error_stop => 0);
	return ($out, $err);
}

# ---- a file system without direct I/O ---------------------------------------------

SKIP:
{
	skip 'FMSORT_RAMFS names no file system without direct I/O', 1
	  unless $ENV{FMSORT_RAMFS};

	my $dir = make_tablespace($node, 'undirect', $ENV{FMSORT_RAMFS});

	foreach my $method (@methods)
	{
		my $set = "SET fmsort.io_method = $method; SET fmsort.direct_io =";
		my ($out, $err) = sort_there('undirect', $small, "$set on;");

		like($err, qr/ERROR:  0A000: direct I\/O is not possible/,
			"$method, direct_io = on: an error");
		like($err, qr/HINT: .*fmsort\.direct_io.*temp_tablespaces/,
			"$method, ... that says what to do");
		is(join(' ', temp_files($node, $dir)), '',
			"$method, ... and leaves no file");

		foreach my $direct (qw(auto off))
		{
			($out, $err) = sort_there('undirect', $small, "$set $direct;");
			is($err, '', "$method, direct_io = $direct: works");
			like($out, qr/^\Q$right{$small}\E\nf\|external merge\|[1-9]/,
				"$method, ... sorts there, and right, without direct I/O");
			is(join(' ', temp_files($node, $dir)), '',
				"$method, ... and leaves no file");
		}
	}
	drop_tablespace($node, 'undirect', $dir);
}

# ---- a full disk ----------------------------------------------------------------------

SKIP:
{
	skip 'FMSORT_SMALLFS names no small file system', 1
	  unless $ENV{FMSORT_SMALLFS};

	my $dir = make_tablespace($node, 'small', $ENV{FMSORT_SMALLFS});

	foreach my $method (@methods)
	{
		foreach my $direct (direct_ways($node, "SET temp_tablespaces = small;"))
		{
			my $name = "$method, direct_io = $direct";
			my $set = "SET fmsort.io_method = $method;
				SET fmsort.direct_io = $direct;";
			my $before;

			# the first sort makes the directory of temporary files
			my ($out, $err) = sort_there('small', $small, $set);
			like($out, qr/^\Q$right{$small}\E\n/, "$name: what fits is sorted");
			is($err, '', "$name: ... without complaint");
			$before = free_kb($dir);

			($out, $err) = sort_there('small', $large, $set);
			like($err, qr/ERROR:  53100: could not (write|extend).*No space left/,
				"$name: a full disk is an error");
			is(join(' ', temp_files($node, $dir)), '',
				"$name: ... that leaves no file");
			is(free_kb($dir), $before, "$name: ... nor anything else");

			($out, $err) = sort_there('small', $small, $set);
			like($out, qr/^\Q$right{$small}\E\n/,
				"$name: ... and the next sort is right");

			# several passes write more than there is room for, bit by bit
			($out, $err) = sort_there('small', $medium,
				"$set SET work_mem = '64kB'; SET fmsort.block_size = '8kB';");
			is($err, '', "$name: several passes need the room of one");
			like($out, qr/^\Q$right{$medium}\E\n/, "$name: ... and are right");
			my ($written) = $out =~ /\|(\d+)$/;
			cmp_ok($written, '>', $before,
				"$name: ... having written more kB than there is room for");
		}
	}
	drop_tablespace($node, 'small', $dir);
}

# Elsewhere there is room.
my ($out, $err) = sort_there("''", $large, '');
like($out, qr/^\Q$right{$large}\E\n/, 'the same sort with room for it');
is($err, '', '... without complaint');

# ---- what the last merge has read -----------------------------------------------------

# It keeps its space till the file goes: making holes would hold up the reads.
sub allocated
{
	my $blocks = 0;

	$blocks += (stat $_)[12] foreach temp_files($node);
	return $blocks;
}

foreach my $direct (direct_ways($node))
{
	my $session = $node->background_psql('postgres');
	my $before;

	$session->query_safe("SET work_mem = '1MB';
		SET fmsort.direct_io = $direct; BEGIN;
		DECLARE c NO SCROLL CURSOR FOR SELECT id, pay FROM t ORDER BY k;
		FETCH 1 FROM c");
	$before = allocated();
	cmp_ok($before, '>', 20000, "direct_io = $direct: the sort has a file");
	$session->query_safe('MOVE 149000 FROM c');
	cmp_ok(allocated(), '>=', $before,
		"direct_io = $direct: ... that is whole till the last merge is over");
	$session->quit;
}

$node->stop;
done_testing();
