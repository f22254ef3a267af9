# EXPLAIN in text, JSON, XML and YAML: every field of docs/reference.md is there
# in each, with the same value, for the node and for its workers; the documents
# are well-formed; and EXPLAIN (SETTINGS) names what was set.
#
# Every version: what EXPLAIN prints.

use strict;
use warnings;

use CPAN::Meta::YAML;
use FindBin;
use lib $FindBin::RealBin;
use FmsTest;
use JSON::PP;
use PostgreSQL::Test::Utils;
use Test::More;
use YAML::XS 'Load';

my $node = fms_node('explain', 'parallel_setup_cost = 0',
	'parallel_tuple_cost = 0', 'min_parallel_table_scan_size = 0',
	'max_worker_processes = 8', "work_mem = '128kB'");

$node->safe_psql('postgres', <<'EOT');
CREATE TABLE t AS SELECT i AS id, (i::bigint * 7919 % 10007)::int AS k,
  i / 100 AS g, repeat('.', 50) AS pay FROM generate_series(1, 30000) i;
CREATE INDEX ON t (g);
ANALYZE t;
EOT

$YAML::XS::Boolean = 'JSON::PP';

# The fields, and a pattern for their values.
my $count = qr/\d+/;
my $ms = qr/\d+(?:\.\d+)?/;
my %always = ('Sort Key' => undef);
my %analyzed = (
	'Sort Method' => qr/in-memory|top-N|external merge/,
	'Sort Space Used' => $count,
	'Sort Space Type' => qr/Memory|Disk/);
my %timed = ('Run Formation Time' => $ms, 'Input Time' => $ms);
my %external = (
	'Merge Mode' => qr/fmsort/,
	'Runs' => $count,
	'Merge Passes' => $count,
	'Blocks' => $count,
	'Block Size' => $count,
	'Assist Blocks' => $count,
	'I/O Method' => qr/io_uring|sync/,
	'Direct I/O' => qr/true|false/);
my %external_timed = (
	'Block Order Time' => $ms,
	'Merge Time' => $ms,
	'Blocked Time' => $ms);

sub plan_as
{
	my ($format, $settings, $query, $options) = @_;

	return $node->safe_psql('postgres',
		"$settings EXPLAIN (ANALYZE, FORMAT $format$options) $query");
}

# ---- the documents, as hashes of the sort's fields -------------------------------

sub of_json
{
	return find_sort(decode_json($_[0])->[0]{Plan});
}

sub of_yaml
{
	return find_sort(Load($_[0])->[0]{Plan});
}

sub find_sort
{
	my ($plan) = @_;

	return $plan if ($plan->{'Custom Plan Provider'} // '') eq 'FMSort';
	foreach my $child (@{ $plan->{Plans} // [] })
	{
		my $found = find_sort($child);

		return $found if $found;
	}
	return undef;
}

# PostgreSQL's own parser says whether it is well-formed.
sub of_xml
{
	my ($document, @fields) = @_;
	my ($sort) = $document =~
	  m{<Custom-Plan-Provider>FMSort</Custom-Plan-Provider>(.*)}s;
	my %found;

	is( $node->safe_psql('postgres', "SELECT xml_is_well_formed_document(
			\$document\$$document\$document\$)"),
		't',
		'XML is well-formed');
	foreach my $field (@fields)
	{
		my $tag = $field =~ s/[^A-Za-z0-9_.-]/-/gr;

		($found{$field}) = $sort =~ m{<\Q$tag\E>(.*?)</\Q$tag\E>}s;
	}
	return \%found;
}

# ---- every field in every format -------------------------------------------------

sub check_fields
{
	my ($name, $settings, $query, $fields, $absent) = @_;
	my @names = sort(keys %$fields, keys %$absent);
	my $options = $settings =~ /timing off/ ? ', TIMING OFF' : '';
	my %documents = (
		JSON => of_json(plan_as('JSON', $settings, $query, $options)),
		YAML => of_yaml(plan_as('YAML', $settings, $query, $options)),
		XML => of_xml(plan_as('XML', $settings, $query, $options), @names));
	my $text = plan_as('TEXT', $settings, $query, $options);

	foreach my $format (sort keys %documents)
	{
		my $found = $documents{$format};
		my @wrong = grep {
			my $value = $found->{$_};

			$value = $value ? 'true' : 'false' if JSON::PP::is_bool($value);
			!defined $value
			  || defined $fields->{$_} && $value !~ /^$fields->{$_}$/
		} sort keys %$fields;

		is(join(', ', @wrong), '', "$name, $format: all fields");
		is(join(', ', grep { defined $found->{$_} } sort keys %$absent),
			'', "$name, $format: ... and no others");
	}
	my @missing = grep {
		my $value = $fields->{$_};
		my $unit = / Time$/ ? ' ms' : '';

		$_ !~ /^Sort Space/
		  && $text !~ (defined $value ? qr/\b\Q$_\E: $value$unit/ : qr/\Q$_\E: /)
	} sort keys %$fields;
	is(join(', ', @missing), '', "$name, text: all fields");
	like($text, qr/(Memory|Disk): \d+kB/, "$name, text: space");
	is(join(', ', grep { $text =~ /\Q$_\E: / } sort keys %$absent),
		'', "$name, text: ... and no others");
}

my $sorted = 'SELECT * FROM t ORDER BY k';

check_fields('external', '', $sorted,
	{ %always, %analyzed, %timed, %external, %external_timed },
	{ 'Compression' => undef, 'Duplicates Dropped' => undef });
check_fields(
	'one row a group', '',
	'SELECT DISTINCT ON (k) * FROM t ORDER BY k',
	{   %always, %analyzed, %timed, %external, %external_timed,
		'Duplicates Dropped' => $count
	},
	{});
check_fields('compressed', 'SET fmsort.compression = on;', $sorted,
	{   %always, %analyzed, %timed, %external, %external_timed,
		'Compression' => qr/[1-9]\.\d+/
	},
	{});
check_fields('external, timing off', "/* timing off */", $sorted,
	{ %always, %analyzed, %external }, { %timed, %external_timed });
check_fields(
	'in memory', "SET work_mem = '64MB';",
	$sorted, { %always, %analyzed, %timed },
	{ %external, %external_timed });
check_fields(
	'presorted',
	'SET enable_incremental_sort = on; SET enable_seqscan = off;',
	'SELECT * FROM t ORDER BY g, k',
	{   %always, %analyzed, %timed,
		'Presorted Key' => undef,
		'Groups' => $count
	},
	{});

# ---- workers ---------------------------------------------------------------------

my $parallel = 'SET fmsort.parallel = off;
	SET max_parallel_workers_per_gather = 2;
	SET parallel_leader_participation = off;';
my %worker = (%analyzed, %timed, %external, %external_timed);

# A worker may not be had for want of a slot, or find no rows left: ask until
# both have spilled.
sub explain_workers
{
	my ($format) = @_;
	my $document;

	wait_until(
		sub {
			$document = plan_as($format, $parallel, $sorted, '');
			return $document =~ /Workers.Launched["<>: ]*2/ &&
			  (() = $document =~ /external merge/g) >= 2;
		}) or die 'two workers are not to be had';
	return $document;
}

foreach my $format (qw(JSON YAML))
{
	my $document = explain_workers($format);
	my $sort = $format eq 'JSON' ? of_json($document) : of_yaml($document);
	my $workers = $sort->{'Sort Workers'};

	is(scalar(@{ $workers // [] }), 2, "$format: two workers");
	foreach my $worker (@{ $workers // [] })
	{
		is(join(', ', grep { !defined $worker->{$_} } sort keys %worker),
			'', "$format: all fields of worker $worker->{'Worker Number'}");
	}
}
my $xml = explain_workers('XML');
is( $node->safe_psql('postgres', "SELECT array_length(xpath(
		'//e:Sort-Workers/e:Worker[e:Sort-Method and e:Runs and e:Merge-Time
		  and e:I-O-Method]', \$xml\$$xml\$xml\$::xml,
		ARRAY[ARRAY['e', 'http://www.postgresql.org/2009/explain']]), 1)"),
	2,
	'XML: two workers');
my $text = explain_workers('TEXT');
foreach my $number (0, 1)
{
	my @missing =
	  grep { $text !~ /Worker $number: .*\Q$_\E: / }
	  grep { !/^Sort Space/ } sort keys %worker;

	is(join(', ', @missing), '', "text: all fields of worker $number");
}

# ---- settings --------------------------------------------------------------------

my %settings = (
	'fmsort.mode' => 'traditional',
	'fmsort.assist_blocks' => '7',
	'fmsort.block_size' => '4kB',
	'fmsort.io_method' => 'sync',
	'fmsort.direct_io' => 'off',
	'fmsort.compression' => 'on');
my $set = join ' ', map { "SET $_ = '$settings{$_}';" } sort keys %settings;
my $shown = decode_json(
	plan_as('JSON', $set, $sorted, ', SETTINGS'))->[0]{Settings};

is_deeply({ map { $_ => $shown->{$_} } keys %settings },
	\%settings, 'EXPLAIN (SETTINGS) names what was set');

$node->stop;
done_testing();
