# Every SQL example in README.md and docs/*.md, run as it stands, and the files
# of docs/examples.
#
# A fenced block of the language sql is run; blocks without a language are
# shell commands, drawings, configuration or output, and are not.  Each file
# gets a new database mydb with the tables that the examples sort: orders, with
# TPC-H's columns, and big.  Its blocks run in order, each in a session of its
# own, with the extension created.
#
# And every link to a page, a chart or a heading of the documentation leads to
# one, those of docs/*/*.md as well.
#
# The messages that docs/troubleshooting.md explains are those of the reference.
#
# Of the examples, JSON and YAML are well-formed, the collector's queries run
# and return what its metrics name, alerts and dashboard know only these
# metrics, and the seccomp profile allows io_uring.
#
# Every version: every SQL example runs.
#
# Seen to fail with: a column misspelt in docs/operations.md; a block of SQL in
# README.md without its language; a column misspelt in
# docs/examples/fmsort.collector.yml; a metric misspelt in the alerts; a heading
# of docs/troubleshooting.md that says "IO" for "I/O".

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use FmsTest;
use JSON::PP;
use PostgreSQL::Test::Utils;
use Test::More;
use YAML::XS 'Load';

# beside the tests, if they were copied; else at the top of the tree
my ($top) = grep { -e "$_/README.md" } "$FindBin::RealBin/..",
  "$FindBin::RealBin/../..";
my @files = ("$top/README.md", sort glob("$top/docs/*.md"));
my @further = sort glob("$top/docs/*/*.md $top/docs/*/*/*.md");

# as users have it
my $node = fms_node('docs', 'shared_preload_libraries = fmsort',
	'fmsort.min_rows = 100');

# The fenced blocks of a file: line, language, text.
sub blocks_of
{
	my ($file) = @_;
	my @blocks;
	my $block;
	my $number = 0;

	foreach my $line (split /\n/, slurp_file($file))
	{
		$number++;
		if ($line =~ /^```(\w*)\s*$/)
		{
			if ($block)
			{
				push @blocks, $block;
				undef $block;
			}
			else
			{
				$block =
				  { line => $number, language => $1, text => '' };
			}
		}
		elsif ($block)
		{
			$block->{text} .= "$line\n";
		}
	}
	die "$file: a block does not end" if $block;
	return @blocks;
}

# The anchors of a page: its headings, as GitHub makes anchors of them.
sub anchors_of
{
	my ($file) = @_;
	my %anchors;

	foreach my $heading (slurp_file($file) =~ /^#+ (.*)$/mg)
	{
		my $anchor = lc $heading =~ s/[^\w\s-]//gr;

		$anchors{ $anchor =~ s/\s/-/gr } = 1;
	}
	return \%anchors;
}

# Links out of the documentation are not followed: a copy of the tests has
# only README.md and docs beside it.
sub check_links
{
	my ($file, $name) = @_;
	my ($dir) = $file =~ m{(.*)/};
	my @broken;

	foreach my $link (slurp_file($file) =~ m{\]\((?!https?:)([^)]+)\)}g)
	{
		my ($path, $anchor) = $link =~ /^([^#]*)#?(.*)$/;
		my $target = $path eq '' ? $file : "$dir/$path";

		next
		  if $path =~ m{^(?:\.\./)*(?:src|test|script)/}
		  || $path =~ m{^(?:\.\./)*(?!README)[A-Z]+(?:\.md)?$};
		push @broken, $link
		  if !-e $target ||
		  ($anchor ne '' && !anchors_of($target)->{$anchor});
	}
	is("@broken", '', "$name: links lead somewhere");
	return;
}

sub new_database
{
	$node->safe_psql('postgres', 'ALTER SYSTEM RESET ALL');
	$node->reload;
	$node->safe_psql('postgres', 'DROP DATABASE IF EXISTS mydb');
	$node->safe_psql('postgres', 'CREATE DATABASE mydb');
	$node->safe_psql('mydb', <<'EOT');
CREATE TABLE orders AS SELECT i AS o_orderkey, i % 1500 AS o_custkey,
  'O'::char(1) AS o_orderstatus, (i * 7919 % 100003)::numeric / 100 AS
  o_totalprice, date '1992-01-01' + (i * 7919 % 2406) AS o_orderdate,
  '1-URGENT'::char(15) AS o_orderpriority, 'Clerk'::char(15) AS o_clerk,
  0 AS o_shippriority, md5(i::text)::varchar(79) AS o_comment
FROM generate_series(1, 20000) i;
CREATE TABLE big AS SELECT i % 100 AS a, md5(i::text) AS b
FROM generate_series(1, 20000) i;
ANALYZE orders, big;
EOT
}

check_links($_, s/.*\.\.\///r) foreach @further;

my $run = 0;

foreach my $file (@files)
{
	my $name = $file =~ s/.*\.\.\///r;

	check_links($file, $name);
	new_database();
	foreach my $block (blocks_of($file))
	{
		my $where = "$name:$block->{line}";
		my $err;

		if ($block->{language} ne 'sql')
		{
			unlike(
				$block->{text},
				qr/\A\s*(SELECT|SET|RESET|CREATE|ALTER|DROP|EXPLAIN|GRANT)\b/,
				"$where: is no SQL");
			next;
		}
		$node->safe_psql('mydb',
			$block->{text} =~ /CREATE EXTENSION fmsort/
			? 'DROP EXTENSION IF EXISTS fmsort'
			: 'CREATE EXTENSION IF NOT EXISTS fmsort');
		my $status = $node->psql('mydb', $block->{text}, stderr => \$err);

		is($status, 0, "$where: runs");
		unlike($err, qr/^\S*(WARNING|ERROR):/m, "$where: ... without complaint");
		$run++;
	}
}
cmp_ok($run, '>=', 15, "$run examples were found and run");

# ---- the messages that docs/troubleshooting.md explains -----------------------

# Headings in lower case are messages: of fmsort, which the reference has, or
# of PostgreSQL.  What stands before the first ellipsis has to be there.
my $reference = slurp_file("$top/docs/reference.md");
my @strange = grep { index($reference, s/….*//r) < 0 }
  grep {
	!/^(?:could\ not\ (?:access\ file|load\ library)
		|incompatible\ library|unrecognized\ configuration)/x
  } slurp_file("$top/docs/troubleshooting.md") =~ /^### ([a-z].*)$/mg;

is("@strange", '', 'headings of docs/troubleshooting.md are messages');

# ---- docs/examples -----------------------------------------------------------

my $examples = "$top/docs/examples";
my $seccomp = decode_json(slurp_file("$examples/fmsort-seccomp.json"));
my %allowed = map { $_ => 1 }
  map { @{ $_->{names} } }
  grep { $_->{action} eq 'SCMP_ACT_ALLOW' && !$_->{args} }
  @{ $seccomp->{syscalls} };

ok($allowed{"io_uring_$_"}, "the seccomp profile allows io_uring_$_")
  foreach qw(setup enter register);
ok(!$allowed{mount}, '... and not mount');
like(
	Load(slurp_file("$examples/kubernetes.yaml"))
	  ->{spec}{securityContext}{seccompProfile}{localhostProfile},
	qr/^fmsort-seccomp\.json$/,
	'the pod names the profile');

my $collector = Load(slurp_file("$examples/fmsort.collector.yml"));
my %query = map { $_->{query_name} => $_->{query} } @{ $collector->{queries} };
my %metric;

foreach my $metric (@{ $collector->{metrics} })
{
	my $name = $metric->{metric_name};
	my $wanted = join ', ', @{ $metric->{key_labels} }, @{ $metric->{values} };

	$metric{$name} = 1;
	cmp_ok(
		$node->safe_psql('mydb',
			"SELECT count(*) FROM (SELECT $wanted FROM "
			  . "($query{ $metric->{query_ref} }) q) r"),
		'>', 0, "$name: its query runs");
}

my @texts = (
	(   map { $_->{expr} }
		map { @{ $_->{rules} } }
		@{ Load(slurp_file("$examples/fmsort-alerts.yml"))->{groups} }),
	slurp_file("$examples/fmsort-dashboard.json"));
my @unknown = grep { !$metric{$_} }
  map { /\b(fmsort_\w+)/g } @texts;

is("@unknown", '', 'alerts and dashboard name metrics of the collector');
ok(decode_json($texts[-1])->{panels}, 'the dashboard is JSON');

$node->stop;
done_testing();
