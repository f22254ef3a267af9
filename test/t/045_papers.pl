# The papers' experiments (make bench-papers), with hardly any data: does every
# command run to its end, and leave the figures that it says?
#
# Seen to fail with: a column misspelt in the SQL of test/bench/papers/fmsort; a
# panel of test/bench/papers/joins without rows; a CSV file begun anew by every
# run.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use PostgreSQL::Test::Utils;
use Test::More;

# beside the tests, if they were copied; else the tree that they are in
my ($top) = grep { -e "$_/test/bench/papers/run" }
  "$FindBin::RealBin/../project", "$FindBin::RealBin/../..";
my $papers = "$top/test/bench/papers";
my $out = PostgreSQL::Test::Utils::tempdir();

my @missing = grep { system("command -v $_ >/dev/null") != 0 }
  qw(fio gnuplot jq python3);
if (@missing)
{
	fail("there is no @missing") if $ENV{CI};
	plan skip_all => "there is no @missing" unless $ENV{CI};
}

my @environment = ('TINY=1', 'INSTALLED=1', "OUT=$out", 'SEED=7');

sub paper
{
	my ($name) = @_;
	my ($said, $complained);
	my $status = IPC::Run::run([ 'env', @environment, "$papers/$name" ],
		'>', \$said, '2>', \$complained);

	ok($status, "$name: runs to its end")
	  or diag($said, $complained);
	return $said;
}

# Rows of a CSV file, without its head.
sub rows
{
	my ($file) = @_;
	my @lines = grep { !/^#/ } split /\n/, slurp_file($file);

	return scalar(@lines) - 1;
}

foreach my $name (qw(fmsort flash-mergesort activesort joins device))
{
	next unless -x "$papers/$name";

	my $said = paper($name);
	my @csv = glob("$out/$name*.csv");
	my @svg = glob("$out/$name*.svg");
	my %before = map { $_ => rows($_) } @csv;

	cmp_ok(scalar(@csv), '>=', 1, "$name: left a CSV file");
	cmp_ok($before{$_}, '>=', 1, "$name: with rows") foreach @csv;
	like(slurp_file($csv[0]), qr/^# seed: 7$/m, "$name: its seed is there");
	like(slurp_file($csv[0]), qr/^# kernel: \S/m, "$name: and its kernel");
	cmp_ok(scalar(@svg), '>=', 1, "$name: drew a chart");
	like(slurp_file($_), qr/<\/svg>\s*$/, "$name: which is complete")
	  foreach @svg;

	$said = paper($name);
	like($said, qr/measured already/, "$name: again, it measures nothing");
	is(rows($_), $before{$_}, "$name: and adds nothing") foreach @csv;
}

done_testing();
