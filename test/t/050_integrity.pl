# What is on disk is not what was written: always an error, never an answer.
#
# A cursor stands at its first row, so all but the first blocks of each run
# are still to be read.  Then the file is changed under it.
#
# Seen to fail with: fms_block_check() not asking for the checksum (13 of the 15
# changes to blocks go unnoticed); the salt not compared (the block of an
# earlier sort is taken); fms_first_key_file_read() not asking for the checksum
# (the server crashes).

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use FmsTest;
use PostgreSQL::Test::Utils;
use Test::More;

my $BLOCK = 4096;

# FmsBlockHeader of tape/block.h, FmsFirstKeyChunk of order/first_key_file.h
my @HEADER =
  qw(checksum salt magic run number used_bytes continued_bytes records);
my $HEADER_BYTES = 4 * @HEADER;
my $BLOCK_MAGIC = 0x464D5342;
my $COMPRESSED_MAGIC = 0x464D5343;
my $CHUNK_MAGIC = 0x464D5346;

my $node = fms_node('integrity', "work_mem = '64kB'",
	"fmsort.block_size = $BLOCK", 'fmsort.assist_blocks = 1',
	'fmsort.checksums = on');

$node->safe_psql('postgres', <<'EOS');
CREATE TABLE t AS SELECT i AS id, (i::bigint * 7919 % 10007)::int AS k,
  repeat(md5(i::text), 2) AS pay FROM generate_series(1, 20000) i;
ANALYZE t;
EOS

my $right = $node->safe_psql('postgres',
	'SET fmsort.mode = off; SELECT id FROM t ORDER BY k, id');

sub session
{
	my (@settings) = @_;
	my $session = $node->background_psql('postgres', on_error_stop => 0);

	$session->query_safe('\set VERBOSITY verbose');
	$session->query_safe("SET $_") foreach @settings;
	return $session;
}

# A cursor at its first row; the temporary files.
sub open_cursor
{
	my ($session, $order) = @_;

	$session->{stderr} = '';
	$session->query("BEGIN; DECLARE c NO SCROLL CURSOR FOR
		SELECT id FROM t ORDER BY $order; FETCH 1 FROM c");
	return temp_files($node);
}

# The rest of it: rows, and what went to stderr.
sub read_on
{
	my ($session) = @_;
	my $rows = $session->query('FETCH ALL FROM c');
	my $messages = $session->{stderr};

	$session->query('ROLLBACK');
	$session->{stderr} = '';
	return ($rows, $messages);
}

sub read_at
{
	my ($file, $offset, $length) = @_;
	my $bytes;

	open my $in, '<:raw', $file or die "$file: $!";
	sysseek $in, $offset, 0;
	sysread $in, $bytes, $length;
	return $bytes;
}

sub write_at
{
	my ($file, $offset, $bytes) = @_;

	open my $out, '+<:raw', $file or die "$file: $!";
	sysseek $out, $offset, 0;
	die "$file: $!" unless syswrite($out, $bytes) == length $bytes;
	close $out or die "$file: $!";
}

sub flip
{
	my ($file, $offset) = @_;

	write_at($file, $offset, read_at($file, $offset, 1) ^ "\x10");
}

# The blocks of a tape, as hashes; the tape is the file that begins with one.
sub blocks_of
{
	my (@files) = @_;

	foreach my $file (@files)
	{
		my @blocks;

		for (my $at = 0; $at < -s $file; $at += $BLOCK)
		{
			my %block = (file => $file, offset => $at);

			@block{@HEADER} =
			  unpack('L' . @HEADER, read_at($file, $at, $HEADER_BYTES));
			push @blocks, \%block
			  if $block{magic} == $BLOCK_MAGIC
			  || $block{magic} == $COMPRESSED_MAGIC;
		}
		return @blocks if @blocks;
	}
	die "no blocks in @files";
}

# The last block of some run, with some padding: nobody has read it.
sub unread_block
{
	my @blocks = blocks_of(@_);
	my ($last) = sort { $b->{number} <=> $a->{number} }
	  grep { $BLOCK - $_->{used_bytes} > 8 } @blocks;

	return $last;
}

# The last chunk of first keys: nobody has read it.
sub unread_chunk
{
	my %victim = (number => -1);

	foreach my $file (@_)
	{
		my $bytes = read_at($file, 0, -s $file);
		my $magic = pack('L', $CHUNK_MAGIC);

		while ($bytes =~ /\Q$magic\E/g)
		{
			my $at = $-[0] - 8;
			my ($number, undef, $used) = unpack('L3', substr($bytes, $at + 12));

			%victim = (
				file => $file,
				offset => $at,
				number => $number,
				used => $used) if $number > $victim{number};
		}
	}
	die 'no block read order on disk' unless $victim{file};
	return \%victim;
}

my $CORRUPTED = qr/ERROR:  XX001: (?:sort temporary file "[^"]+"|block read order in sort temporary file) is corrupted\n/;

# changes(SESSION, NAME, HOW, EXPECTED): opens a cursor, changes its file, and
# looks for the error.
sub noticed
{
	my ($session, $name, $change, $order) = @_;
	my @files = open_cursor($session, $order // 'k');

	$change->(@files);
	my (undef, $messages) = read_on($session);
	like($messages, $CORRUPTED, "$name: is an error");
	is(join(' ', temp_files($node)), '', "$name: leaves no file");
	return $messages;
}

my %ways = (
	'sync, buffered' => [ 'fmsort.io_method = sync', 'fmsort.direct_io = off' ],
);
$ways{'io_uring, buffered'} =
  [ 'fmsort.io_method = io_uring', 'fmsort.direct_io = off' ]
  if uring_works($node);
$ways{'sync, direct'} =
  [ 'fmsort.io_method = sync', 'fmsort.direct_io = on' ]
  if grep { $_ eq 'on' } direct_ways($node);

my $size;

foreach my $way (sort keys %ways)
{
	my $session = session(@{ $ways{$way} });

	# ---- what is not changed is not an error ----------------------------------

	my @files = open_cursor($session, 'k');
	my $block = unread_block(@files);
	my $bytes = read_at($block->{file}, $block->{offset}, $BLOCK);
	flip($block->{file}, $block->{offset} + 100);
	write_at($block->{file}, $block->{offset}, $bytes);
	my ($rows, $messages) = read_on($session);
	is($messages, '', "$way: a bit flipped back is no error");
	is($rows, join("\n", (split /\n/, $right)[ 1 .. 19999 ]),
		"$way: and the rows are right");

	# ---- one bit of a block --------------------------------------------------

	my %bytes = map { ("its field $HEADER[$_]" => 4 * $_) } 0 .. $#HEADER;
	$bytes{'its first record'} = $HEADER_BYTES;
	$bytes{'the key of its first record'} = $HEADER_BYTES + 8;
	$bytes{'the tuple of its first record'} = $HEADER_BYTES + 24;
	$bytes{'its middle'} = $BLOCK / 2;
	$bytes{'its last byte'} = $BLOCK - 1;
	foreach my $byte (sort keys %bytes)
	{
		noticed($session, "$way: a bit in $byte",
			sub {
				my $victim = unread_block(@_);
				flip($victim->{file}, $victim->{offset} + $bytes{$byte});
			});
	}
	noticed($session, "$way: a bit in the first byte of the padding",
		sub {
			my $victim = unread_block(@_);
			flip($victim->{file}, $victim->{offset} + $victim->{used_bytes});
		});

	# ---- whole blocks, intact but not the ones that were asked for ------------

	$messages = noticed(
		$session,
		"$way: two blocks swapped",
		sub {
			my ($a, $b) = (sort { $b->{number} <=> $a->{number} }
				  blocks_of(@_))[ 0, 1 ];
			my $saved = read_at($a->{file}, $a->{offset}, $BLOCK);
			write_at($a->{file}, $a->{offset},
				read_at($b->{file}, $b->{offset}, $BLOCK));
			write_at($b->{file}, $b->{offset}, $saved);
		});
	like($messages,
		qr/DETAIL:  Expected block \d+ of run \d+, found block \d+ of run \d+/,
		"$way: two blocks swapped: says which");

	noticed($session, "$way: a block that was never written",
		sub {
			my $victim = unread_block(@_);
			write_at($victim->{file}, $victim->{offset}, "\0" x $BLOCK);
		});

	# the same query again makes the same blocks, but for the salt
	my $old = unread_block(open_cursor($session, 'k'));
	$bytes = read_at($old->{file}, $old->{offset}, $BLOCK);
	read_on($session);
	my $same;
	$messages = noticed(
		$session,
		"$way: the block of an earlier sort",
		sub {
			my $victim = unread_block(@_);
			$same = substr($bytes, 8) eq
			  read_at($victim->{file}, $victim->{offset} + 8, $BLOCK - 8);
			write_at($victim->{file}, $victim->{offset}, $bytes);
		});
	ok($same, "$way: which differs in the checksum only");

	# ---- a file that ends too early -------------------------------------------

	@files = open_cursor($session, 'k');
	$block = unread_block(@files);
	truncate $block->{file}, $block->{offset} + 512;
	(undef, $messages) = read_on($session);
	like($messages,
		qr/ERROR:  XX001: sort temporary file "[^"]+" is shorter than it should be\n/,
		"$way: a file cut off is an error");

	# ---- the block read order, where it is on disk ----------------------------

	# long keys and small blocks make a long order
	$session->query('SET fmsort.block_size = 512');
	my %places = (
		(map { my $at = $_; ("byte $at" => sub { $at }) }
			  0, 4, 8, 12, 16, 20, 24, 28, 40),
		'its middle' => sub { int($_[0] / 2) },
		'its last byte' => sub { $_[0] - 1 });
	foreach my $place (sort keys %places)
	{
		noticed($session, "$way: a bit of the block read order, $place",
			sub {
				my $victim = unread_chunk(@_);

				flip($victim->{file}, $victim->{offset} +
					$places{$place}->($victim->{used}));
			},
			'pay');
	}
	$messages = noticed(
		$session,
		"$way: a block read order cut off",
		sub {
			my $victim = unread_chunk(@_);

			truncate $victim->{file}, $victim->{offset} + 16;
		},
		'pay');
	like($messages,
		qr/DETAIL:  The block read order's chunk \d+ is wrong: number \d+, magic \w+\./,
		"$way: a block read order cut off: says where");
	$session->query("SET fmsort.block_size = $BLOCK");

	# ---- the session goes on ----------------------------------------------------

	is($session->query('SELECT id FROM t ORDER BY k'),
		$right, "$way: the next sort is right");
	$session->quit;
}

# ---- without checksums, a block still has to be the right one ----------------------

{
	my $session = session('fmsort.checksums = off', 'fmsort.direct_io = off');
	my $bytes;

	foreach my $field (qw(checksum salt magic run number))
	{
		noticed($session, "no checksums: a bit in its field $field",
			sub {
				my $victim = unread_block(@_);
				my ($i) = grep { $HEADER[$_] eq $field } 0 .. $#HEADER;
				flip($victim->{file}, $victim->{offset} + 4 * $i);
			});
	}
	noticed($session, 'no checksums: a block that was never written',
		sub {
			my $victim = unread_block(@_);
			write_at($victim->{file}, $victim->{offset}, "\0" x $BLOCK);
		});
	my $old = unread_block(open_cursor($session, 'k'));
	$bytes = read_at($old->{file}, $old->{offset}, $BLOCK);
	read_on($session);
	noticed($session, 'no checksums: the block of an earlier sort',
		sub {
			my $victim = unread_block(@_);
			write_at($victim->{file}, $victim->{offset}, $bytes);
		});

	my $victim = unread_block(open_cursor($session, 'k'));
	flip($victim->{file}, $victim->{offset} + $BLOCK - 1);
	my ($rows, $messages) = read_on($session);
	is("$messages|$rows", '|' . join("\n", (split /\n/, $right)[ 1 .. 19999 ]),
		'no checksums: nobody looks at the padding');
	is($session->query('SELECT id FROM t ORDER BY k'),
		$right, 'no checksums: the next sort is right');
	$session->quit;
}

# ---- compressed blocks --------------------------------------------------------------

{
	my $session = session('fmsort.compression = on', 'fmsort.direct_io = off');
	my @files = open_cursor($session, 'k');
	my ($rows, $messages);

	is( scalar(grep { $_->{magic} != $COMPRESSED_MAGIC } blocks_of(@files)),
		0, 'compressed: all blocks are');
	($rows, $messages) = read_on($session);
	is("$messages|$rows", '|' . join("\n", (split /\n/, $right)[ 1 .. 19999 ]),
		'compressed: the rows are right');
	foreach my $at (0, 12, $HEADER_BYTES, $HEADER_BYTES + 2,
		$HEADER_BYTES + 4, $HEADER_BYTES + 8, 1000)
	{
		noticed($session, "compressed: a bit, byte $at",
			sub {
				my $victim = unread_block(@_);
				flip($victim->{file}, $victim->{offset} + $at);
			});
	}

	# a chunk that claims to be longer, without a checksum that says so
	$session->query_safe('SET fmsort.checksums = off');
	@files = open_cursor($session, 'k');
	my $victim = unread_block(@files);
	write_at($victim->{file}, $victim->{offset} + $HEADER_BYTES + 2, "\xFF\xFF");
	(undef, $messages) = read_on($session);
	like($messages,
		qr/ERROR:  XX001: sort temporary file contains an invalid record\n/,
		'compressed, no checksums: a chunk of a size that it cannot have');
	is($session->query('SELECT id FROM t ORDER BY k'),
		$right, 'compressed: the next sort is right');
	$session->quit;
}

# ---- every mode checks checksums, and a merge pass does --------------------------

foreach my $mode (qw(fmsort double_buffering traditional multi_block
	flash))
{
	my $session = session("fmsort.mode = $mode", 'fmsort.direct_io = off');

	noticed($session, "mode $mode: a bit",
		sub {
			my $victim = unread_block(@_);
			flip($victim->{file}, $victim->{offset} + 1000);
		});
	$session->quit;
}

$node->stop;
done_testing();
