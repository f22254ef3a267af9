# One query, many ways to sort it: whatever the mode, the sizes, the I/O and
# the memory, the same rows have to come in the same sequence, ties included.
# The reference is PostgreSQL's own sort with the arrival number as last key.
#
# Every pair of values of two factors is covered, then come random cases.
#   FMSORT_DIFF_CASES   how many cases in all (at least the pairs)
#   FMSORT_DIFF_SEED    repeats a run; every test's name has the seed
#
# Seen to fail with: leaf_before() of merge.c breaking ties by the later run;
# compare_entries() of formation.c without the offset; double_next() leaving
# out a block; read_order.c counting a chain as one block; keys.c calling every key
# exact; fms_run_append() of run.c leaving a bundle open while a record too
# large for it is written.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use FmsTest;
use PostgreSQL::Test::Utils;
use Test::More;

my $seed = $ENV{FMSORT_DIFF_SEED} || time ^ $$;
my $wanted_cases = $ENV{FMSORT_DIFF_CASES} || 800;

srand($seed);
note "seed $seed";

my $node = fms_node('differential', 'statement_timeout = 120s',
	'temp_file_limit = 1GB');
my $uring = uring_works($node);

# ---- the rows --------------------------------------------------------------
# narrow: many rows with nothing but keys.  mixed: payloads of 1 byte to
# 300 kB, made below the sort so that they are sorted in line, half of them
# incompressible.

$node->safe_psql('postgres', <<'EOT');
CREATE FUNCTION noise(n int, salt int) RETURNS text LANGUAGE sql IMMUTABLE AS
$$ SELECT left(string_agg(sha512((salt::text || '/' || i)::bytea)::text, ''), n)
   FROM generate_series(0, n / 130) i $$;

-- a linear congruence: the same values in every run, unlike random()
CREATE FUNCTION scatter(i int, m int) RETURNS int LANGUAGE sql IMMUTABLE AS
$$ SELECT ((i::bigint * 1103515245 + 12345) % 2147483648 / 7 % m)::int $$;

CREATE TABLE rows (kind text, id int, k_random int, k_float float8,
  k_equal int, k_two int, k_steps int, k_text text, k_null int,
  k_numeric numeric, k_uuid uuid, k_bytea bytea, pay text);

INSERT INTO rows
SELECT k.kind, i, scatter(i, 5000),
  CASE i % 50 WHEN 0 THEN 'NaN' WHEN 1 THEN '-0' WHEN 2 THEN 0
    WHEN 3 THEN '-Infinity' ELSE scatter(i, 900) / 7.0 - 50 END,
  42, i % 2,
  -(i / 700) * 1000 + scatter(i, 700),
  repeat('common', 17) || lpad(scatter(i, 700)::text, 1 + i % 9, 'x'),
  nullif(scatter(i, 11), 3),
  scatter(i, 3000) / 10.0,
  ('00000000-0000-0000-0000-' || lpad((i % 3)::text, 12, '0'))::uuid,
  decode(repeat('00', i % 40) || lpad(to_hex(scatter(i, 250)), 2, '0'), 'hex'),
  CASE k.kind WHEN 'mixed' THEN
    CASE WHEN i % 900 = 451 THEN noise(300000, i)
      WHEN i % 130 = 17 THEN noise(9000 + i, i)
      WHEN i % 100 = 1 THEN repeat('y', 20000 + i)
      WHEN i % 7 = 0 THEN noise(300 + scatter(i, 900), i)
      ELSE repeat('z', 1 + i % 40) END
  END
FROM (VALUES ('narrow', 24000), ('mixed', 4000)) k(kind, n),
  generate_series(1, n) i;

-- unlike INSERT, this never looks for room in earlier pages
CREATE TABLE narrow AS SELECT * FROM rows WHERE kind = 'narrow' ORDER BY id;
CREATE TABLE mixed AS SELECT * FROM rows WHERE kind = 'mixed' ORDER BY id;
DROP TABLE rows;
ANALYZE narrow, mixed;
EOT

foreach my $table (qw(narrow mixed))
{
	is( $node->safe_psql(
			'postgres', "SELECT count(*) FROM (SELECT id, lag(id) OVER ()
			AS before FROM $table) r WHERE id <> before + 1"),
		'0', "rows of $table arrive in the order of their numbers");
}

my %columns = (
	narrow => 'id, k_random, k_null, k_two',
	mixed  => "id, k_random, k_null, pay || '' AS pay");
my %digest = (
	narrow => "id || ',' || coalesce(k_null, -1)",
	mixed  => "id || md5(pay)");
my $icu = $node->safe_psql('postgres',
	q{SELECT quote_ident(collname) FROM pg_collation
	  WHERE collname = 'und-x-icu'});

my %keys = (
	random          => 'k_random',
	sorted          => 'id',
	reversed        => 'id DESC',
	equal           => 'k_equal',
	two_values      => 'k_two',
	two_values_desc => 'k_two DESC',
	disjoint_runs   => 'k_steps',
	prefix_c        => 'k_text COLLATE "C"',
	prefix_default  => 'k_text',
	nulls_first     => 'k_null NULLS FIRST',
	nulls_last_desc => 'k_null DESC NULLS LAST',
	two_keys        => 'k_two, k_random DESC',
	text_int        => 'k_text COLLATE "C" DESC, k_random',
	text_numeric    => 'k_null, k_numeric DESC, k_text COLLATE "C"',
	float           => 'k_float DESC',
	numeric         => 'k_numeric',
	long_fixed      => 'k_uuid, k_float, k_uuid DESC, k_null',
	bytea           => 'k_bytea, k_two DESC',);
$keys{prefix_icu} = "k_text COLLATE $icu" if $icu;

# The payload as key: up to 300 kB of key.
my %wide_keys = (wide_c => 'pay COLLATE "C"', wide_default => 'pay DESC');

# ---- the cases ---------------------------------------------------------------

my %factors = (
	mode   => [
		qw(fmsort double_buffering traditional multi_block flash)
	],
	block  => [ 512, 2560, 4096, 16384, 65536, 262144, 0 ],
	assist => [ 1, 3, 8, 64, 0 ],
	io     => $uring ? [qw(io_uring sync)] : ['sync'],
	direct => [ direct_ways($node) ],
	compression => [qw(auto on off)],
	memory => [qw(64kB 256kB 1MB 4MB 64MB 1GB)],
	table  => [qw(narrow mixed)],
	keys   => [ sort(keys %keys, keys %wide_keys) ],);
my @names = sort keys %factors;

sub random_case
{
	my %case = map { $_ => $factors{$_}[ rand @{ $factors{$_} } ] } @names;

	return \%case;
}

sub settle
{
	my ($case) = @_;

	$case->{table} = 'mixed' if $wide_keys{ $case->{keys} };
	return $case;
}

sub pairs_of
{
	my ($case) = @_;
	my @pairs;

	foreach my $i (0 .. $#names - 1)
	{
		push @pairs, map { "$names[$i]=$case->{$names[$i]} "
			  . "$names[$_]=$case->{$names[$_]}" } $i + 1 .. $#names;
	}
	return @pairs;
}

my @cases;
my %open;
foreach my $i (0 .. $#names - 1)
{
	foreach my $j ($i + 1 .. $#names)
	{
		foreach my $x (@{ $factors{ $names[$i] } })
		{
			foreach my $y (@{ $factors{ $names[$j] } })
			{
				my %pair = ($names[$i] => $x, $names[$j] => $y);

				next
				  if ($pair{table} // '') eq 'narrow'
				  && $wide_keys{ $pair{keys} // '' };
				$open{"$names[$i]=$x $names[$j]=$y"} = \%pair;
			}
		}
	}
}

# Greedy: of some random cases that have a pair still missing, the one with
# the most.
while (%open)
{
	my ($some) = sort keys %open;
	my ($best, $best_count) = (undef, -1);

	foreach (1 .. 25)
	{
		my $case = settle({ %{ random_case() }, %{ $open{$some} } });
		my $count = grep { $open{$_} } pairs_of($case);

		($best, $best_count) = ($case, $count) if $count > $best_count;
	}
	delete @open{ pairs_of($best) };
	push @cases, $best;
}
my $pairwise = @cases;
push @cases, settle(random_case()) while @cases < $wanted_cases;

sub name_of
{
	my ($case) = @_;

	return join ' ', "seed=$seed", map { "$_=$case->{$_}" } @names;
}

# ---- what to expect ----------------------------------------------------------

sub query
{
	my ($table, $keys, $tie_break) = @_;

	return <<EOT;
SELECT md5(string_agg($digest{$table}, ' ')) FROM
  (SELECT $columns{$table} FROM $table ORDER BY $keys$tie_break) s;
EOT
}

my %all_keys = (%keys, %wide_keys);
my %expected;
{
	my $script = "SET fmsort.mode = off; SET work_mem = '64MB';\n";
	my @wanted;

	foreach my $table (qw(narrow mixed))
	{
		foreach my $key (sort keys %all_keys)
		{
			next if $table eq 'narrow' && $wide_keys{$key};
			push @wanted, "$table $key";
			$script .= query($table, $all_keys{$key}, ', id');
		}
	}
	my @lines = split /\n/, $node->safe_psql('postgres', $script);
	@expected{@wanted} = @lines;
	is(scalar(@lines), scalar(@wanted), 'every query has a reference');
}

# ---- the cases, one session a memory setting and table ----------------------

# A session that dies takes the rest of its cases with it, so another one goes
# on behind the case that killed it.
sub run_cases
{
	my @todo = @_;

	while (@todo)
	{
		my $script = '';
		my $number = 0;

		foreach my $case (@todo)
		{
			$script .= <<EOT . query($case->{table}, $all_keys{ $case->{keys} }, '');
SET fmsort.mode = '$case->{mode}';
SET fmsort.block_size = $case->{block};
SET fmsort.assist_blocks = $case->{assist};
SET fmsort.io_method = '$case->{io}';
SET fmsort.direct_io = '$case->{direct}';
SET fmsort.compression = '$case->{compression}';
SET work_mem = '$case->{memory}';
\\echo case $number
EOT
			$script .= <<'EOT';
SELECT 'sort', merge_mode, coalesce(io_method, '-'), block_size, assist_blocks,
  runs, merge_passes, tuples, sort_method, coalesce(compression > 1.2, false)
FROM fmsort_last_sort();
EOT
			$number++;
		}

		my ($out, $err) = ('', '');
		# psql that cannot connect does not read the script
		eval {
			$node->psql('postgres', $script, stdout => \$out, stderr => \$err);
		};
		my @answers = split /^case \d+(?:\n|\z)/m, $out, -1;
		shift @answers;
		# a session that did not get anywhere: its first case is to blame
		push @answers, '' unless @answers;
		my @messages = grep { /ERROR|server closed|FATAL|PANIC/ }
		  split /\n/, "$err\n$@";

		check(shift @todo, shift @answers, \@messages) while @answers;
		wait_until(sub { connects($node) }) or BAIL_OUT('the server is gone')
		  if @todo;
	}
	return;
}

my %seen;

# By itself a sort compresses only where nothing of it was set and there is some
# memory; then it goes by how fast the device is seen to take what is written,
# and a busy one may well be slow.
sub may_be_compressed
{
	my ($case) = @_;

	return 1 if $case->{compression} eq 'on';
	return $case->{compression} eq 'auto' && $case->{mode} eq 'fmsort' &&
	  $case->{direct} ne 'off' && !$case->{block} && $case->{memory} !~ /kB$/;
}

sub check
{
	my ($case, $answer, $messages) = @_;
	my ($digest, @sorts) = split /\n/, $answer;
	my $name = name_of($case);
	my @problems;

	$digest //= '';
	push @problems, "other rows or another order"
	  if $digest ne $expected{"$case->{table} $case->{keys}"};
	push @problems, 'not one sort but: ' . join(', ', @sorts) if @sorts != 1;
	if (@sorts == 1)
	{
		my (undef, $mode, $io, $block, $assist, $runs, $passes, $tuples,
			$method, $compressed) = split /\|/, $sorts[0];
		my $external = $method eq 'external merge';

		$seen{$method}++;
		$seen{"$passes passes"}++ if $external;
		$seen{'compressed'}++ if $compressed eq 't';
		push @problems, 'compressed'
		  if $compressed eq 't' && !may_be_compressed($case);
		push @problems, "merged by $mode" if $external && $mode ne $case->{mode};
		push @problems, "I/O by $io" if $external && $io ne $case->{io};
		push @problems, "blocks of $block"
		  if $external && $case->{block} && $block > $case->{block};
		push @problems, "$tuples tuples"
		  if $tuples != ($case->{table} eq 'narrow' ? 24000 : 4000);
		push @problems, 'not external'
		  if $case->{memory} =~ /^(64kB|256kB|1MB)$/ && !$external;
		push @problems, 'external' if $case->{memory} eq '1GB' && $external;
	}
	ok(!@problems, $name)
	  or diag(join '; ', @problems, @{$messages} ? $messages->[0] : ());
	return;
}

my %batches;
push @{ $batches{"$_->{memory} $_->{table}"} }, $_ foreach @cases;
run_cases(@{ $batches{$_} }) foreach sort keys %batches;
note "$pairwise cases for all pairs, then random ones; $_: $seen{$_}"
  foreach sort keys %seen;
ok($seen{'external merge'} && $seen{'in-memory'},
	'sorts in memory and external ones were among them');
ok($seen{'2 passes'}, 'merges of several passes were among them');
ok($seen{'compressed'}, 'spills that compression made smaller were among them');
is(join(' ', temp_files($node)), '', 'no temporary file is left');

# ---- the stock sort: the same rows, an equally valid order -------------------

foreach my $table (qw(narrow mixed))
{
	foreach my $key (sort keys %all_keys)
	{
		next if $table eq 'narrow' && $wide_keys{$key};

		# Rows numbered by the one sort, seen in the order of the other: peers
		# may change places, groups of peers may not.
		my $sql = <<EOT;
SET work_mem = '256kB';
SET fmsort.mode = MODE;
SELECT md5(string_agg(peers || ':' || n, ' ' ORDER BY peers))
FROM (SELECT peers, count(*) || '/' || sum(hashint4(id)) AS n FROM
  (SELECT id, rank() OVER (ORDER BY $all_keys{$key}) AS peers
   FROM $table) r GROUP BY peers) g;
EOT
		my %digest_of = map {
			$_ => $node->safe_psql('postgres', $sql =~ s/MODE/$_/r)
		} qw(off fmsort);
		is($digest_of{fmsort}, $digest_of{off},
			"$table by $key: the stock sort's groups of peers");
	}
}

$node->stop;
done_testing();
