# docs/reference.md has everything that a user can name: every setting, with
# its values, default, range, unit and context, every function with its
# arguments and columns, every view and table with its columns.  What there is,
# the server says.  And it has every message of the source.
#
# Names count as documented where they stand in `backquotes`, in the part about
# the function or table they belong to.
#
# Seen to fail with: an errmsg() or a RAISE that is in no table of messages;
# another default of a setting.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use FmsTest;
use PostgreSQL::Test::Utils;
use Test::More;

# beside the tests, if they were copied; else at the top of the tree
my ($top) = grep { -e "$_/README.md" } "$FindBin::RealBin/..",
  "$FindBin::RealBin/../..";
my ($source) = grep { -e "$_/fmsort.control" } "$top/project", $top;
my $reference = slurp_file("$top/docs/reference.md");

# what is in `backquotes`, word by word, of a piece of text without its
# fenced blocks
sub words
{
	my ($text) = @_;
	my %words;

	$text =~ s/^```.*?^```$//gms;
	foreach my $quoted ($text =~ /`([^`]+)`/g)
	{
		$words{$_} = 1 foreach $quoted =~ /[\w.]+/g;
	}
	return \%words;
}

# The parts by what is named in their headings.
my %part_of;
foreach my $part (split /^(?=## )/m, $reference)
{
	my ($heading) = $part =~ /\A## (.*)/ or next;

	$part_of{$_} .= $part foreach keys %{ words($heading) };
}
my $anywhere = words($reference);

my $node = fms_node('reference');

sub ask { return split /\n/, $node->safe_psql('postgres', $_[0]) }

my $members = q{(SELECT classid, objid FROM pg_depend
  JOIN pg_extension e ON refobjid = e.oid
  WHERE refclassid = 'pg_extension'::regclass AND extname = 'fmsort'
  AND deptype = 'e') d};

# ---- settings --------------------------------------------------------------------

my @settings = ask(q{SELECT name || '|' ||
	coalesce(array_to_string(enumvals, ' '), '')
	FROM pg_settings
	WHERE name LIKE 'fmsort.%' AND name NOT LIKE 'fmsort.debug%'});
cmp_ok(scalar(@settings), '>', 5, 'the server has settings of fmsort');
foreach my $setting (@settings)
{
	my ($name, $values) = split /\|/, $setting, -1;

	ok($anywhere->{$name}, "$name");
	ok($anywhere->{$_}, "$name = $_") foreach split / /, $values;
}

# its row in the table of settings
foreach my $row (ask(q{SELECT name, boot_val, min_val, max_val, unit,
	CASE context WHEN 'user' THEN 'user' ELSE 'superuser' END
	FROM pg_settings WHERE name LIKE 'fmsort.%'}))
{
	my ($name, $default, $min, $max, $unit, $context) = split /\|/, $row, -1;
	my ($is, $range, $in, $by) = $reference =~
	  /^\| \[`\Q$name\E`\]\(#\w+\) \| (.*?) \| (.*?) \| (.*?) ?\| (\w+) \|$/m;

	is(($is // '') =~ s/`//gr, $default, "$name: its default");
	like($range // '', qr/^$min\b.* \Q$max\E$/, "$name: its range")
	  if $min ne '';
	is($in, { B => 'bytes', ms => 'ms' }->{$unit}, "$name: its unit")
	  if $unit ne '';
	is($by, $context, "$name: its context");
}

# ---- messages ---------------------------------------------------------------------

# Those of C, and those of SQL but for one that its function catches.
my %messages;
foreach my $file (glob("$source/src/*.[ch] $source/src/*/*.[ch] $source/src/*/*/*.[ch]"))
{
	foreach my $text (slurp_file($file) =~ /\berrmsg\(\s*"((?:[^"\\]|\\.)*)"/g)
	{
		$text =~ s/\\(.)/$1/g;
		$text =~ s/%(?:[-0-9.*]*(?:ll|z)?[a-zA-Z])/…/g;
		$messages{$text} = $file;
	}
}
foreach my $file (glob("$source/fmsort--*.sql"))
{
	foreach my $text (slurp_file($file) =~ /\bRAISE \w+ '((?:[^']|'')*)'/g)
	{
		$messages{ $text =~ s/%/…/gr } = $file unless $text eq 'roll back';
	}
}
cmp_ok(scalar(keys %messages), '>', 40, 'the source has messages');
my ($table) = $reference =~ /^## Messages$(.*)/ms;
my %documented = map { $_ => 1 } map { split /; / }
  ($table // '') =~ /^\| (.*?) \| /gm;
foreach my $message (sort keys %messages)
{
	ok($documented{$message}, "documented: $message")
	  or diag($messages{$message});
}

# ---- functions, views, tables ------------------------------------------------------

my @objects = ask(qq{
	SELECT proname, unnest(coalesce(proargnames, '{}'))
	FROM pg_proc p JOIN $members
	  ON d.objid = p.oid AND d.classid = 'pg_proc'::regclass
	WHERE prorettype <> 'trigger'::regtype AND NOT EXISTS (
	  SELECT FROM pg_class c WHERE c.relname = p.proname)
	UNION SELECT relname, attname
	FROM pg_class c JOIN $members
	  ON d.objid = c.oid AND d.classid = 'pg_class'::regclass
	  JOIN pg_attribute a ON attrelid = c.oid AND attnum > 0
	WHERE relkind IN ('r', 'v')
	UNION SELECT proname, proname
	FROM pg_proc p JOIN $members
	  ON d.objid = p.oid AND d.classid = 'pg_proc'::regclass
	WHERE prorettype <> 'trigger'::regtype
	ORDER BY 1, 2});
cmp_ok(scalar(@objects), '>', 100, 'the extension has names to be documented');

my %names_of;
foreach my $object (@objects)
{
	my ($where, $name) = split /\|/, $object;

	push @{ $names_of{$where} }, $name;
}
foreach my $where (sort keys %names_of)
{
	my $words = $part_of{$where} ? words($part_of{$where}) : $anywhere;
	my @missing = grep { !$words->{$_} } @{ $names_of{$where} };

	is("@missing", '', "$where: every name");
}

# ---- comments, and the planner's estimates -------------------------------------------

is(join("\n", ask(qq{
	SELECT pg_describe_object(classid, objid, 0) FROM $members
	WHERE classid IN ('pg_proc'::regclass, 'pg_class'::regclass) AND
	  coalesce(obj_description(objid, (SELECT relname FROM pg_class
	    WHERE oid = classid)), '') !~ '^[^\n]{1,79}\$'})),
	'', 'every function, view and table has a comment of one line');
is(join("\n", ask(qq{
	SELECT p.oid::regprocedure FROM pg_proc p JOIN $members
	  ON d.objid = p.oid AND d.classid = 'pg_proc'::regclass
	WHERE proretset AND prorows = 1000})),
	'', 'functions that return sets have an estimate of their rows');

$node->stop;
done_testing();
