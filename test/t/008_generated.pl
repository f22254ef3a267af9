# Thousands of generated statements, each run with PostgreSQL's sort and with
# ours: all sortable types, collations, directions, nulls, ties, row widths and
# kinds of statements that sort, under all of our settings.  FmsGenerate.pm
# makes them and says how their answers can be compared exactly.
#
#   FMSORT_GEN_CASES   how many cases in all
#   FMSORT_GEN_SEED    repeats a run; every test's name has seed and case
#   FMSORT_GEN_ONLY    with a seed: numbers of the cases to run, "7,123"
#
# A failed test shows the SQL that reproduces it.
#
# Every version: what the planner makes of statements.
#
# Seen to fail with:
#   merge.c, entry.h	ties by the later run; ties against arrival
#   encode.h	-0 below 0; NaNs by their bits
#   keys.c, key_types.c	blanks of bpchar; nulls at the other end; DESC not inverted;
#			an encoding chosen by type; xid8 signed; every key exact
#   compat.h	every collation byte-wise
#   node.c	rescans that do not look at chgParam, or at a larger bound; a bound
#			without OFFSET, with WITH TIES, or wrong for a later group; no
#			scrolling back
#   bound.c	a bound passed through a filter
#   tuples.c	dropping what only the whole key decides; the cutoff one off
#   groups.c	a tuple lost between groups; groups that end between equals
#   a node of presorted input that says that it can go backwards
#   sort.c	no restoring, no rewinding, no clearing before the next use, not
#			knowing that it stands behind the end
#   history.c	checkpoints one off, not copied, or mixed up when thinned out
#   read_order.c	rows before a position skipped that are not among the first
#   group_filter.c	an ICU sort key that is cut off taken for whole
#   plan.c	a WindowAgg with another function; one that is not the top
#   and a backend that crashes

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use FmsGenerate;
use FmsTest;
use POSIX '_exit';
use PostgreSQL::Test::Utils;
use Test::More;

my $seed = $ENV{FMSORT_GEN_SEED} || time ^ $$;
my $wanted_cases = $ENV{FMSORT_GEN_CASES} || 2400;
my @only = split /[\s,]+/, $ENV{FMSORT_GEN_ONLY} // '';

note "seed $seed";

my $node = fms_node('generated', 'statement_timeout = 10min',
	'temp_file_limit = 1GB', 'client_min_messages = error',
	'max_worker_processes = 8', 'max_parallel_workers = 8',
	'unix_socket_permissions = 0700');

# ---- what the server has ----------------------------------------------------

my %has = (
	databases  => [],
	io_methods => uring_works($node) ? [qw(io_uring sync)] : ['sync'],
	direct     => [ grep { $_ ne 'off' } direct_ways($node) ],);

sub rows_of
{
	my ($sql) = @_;

	return split /\n/, $node->safe_psql('postgres', $sql);
}

$has{collations} = [
	rows_of(<<'EOT') ];
SELECT min(quote_ident(collname)) FROM pg_collation
WHERE collencoding IN (-1, 6) AND (collname IN ('default', 'C', 'POSIX',
  'en-x-icu', 'de-x-icu', 'und-x-icu', 'sv-x-icu', 'en_US', 'de_DE')
  OR lower(collname) IN ('c.utf8', 'c.utf-8'))
GROUP BY lower(replace(collname, '-', '')) ORDER BY 1
EOT
$has{nondeterministic} = grep { /icu/ } @{ $has{collations} };

# One database a kind of default collation.
foreach my $database (
	[ c    => "LOCALE 'C'" ],
	[ utf8 => "LOCALE 'C.UTF-8'" ],
	[ icu  => "LOCALE_PROVIDER icu ICU_LOCALE 'de' LOCALE 'C'" ])
{
	my ($name, $locale) = @{$database};
	my $status = $node->psql('postgres',
		"CREATE DATABASE $name TEMPLATE template0 ENCODING 'UTF8' $locale");

	if ($status != 0)
	{
		note "there is no database with $locale";
		next;
	}
	push @{ $has{databases} }, $name;
	$node->safe_psql($name, 'CREATE EXTENSION fmsort; ' . gen_prelude(\%has));
}
note 'collations: ', join(', ', @{ $has{collations} });

# ---- the cases --------------------------------------------------------------

# A batch is what one session does: some worlds of one database.
my $worlds_per_batch = 4;
my $per_world = gen_cases_per_world();
my @numbers = @only ? @only : 0 .. $wanted_cases - 1;
my %cases_of_world;
push @{ $cases_of_world{ int($_ / $per_world) } }, $_ foreach @numbers;

my @batches;
my %open_batch;
foreach my $number (sort { $a <=> $b } keys %cases_of_world)
{
	my $world = gen_world($seed, $number, \%has);
	my $batch = $open_batch{ $world->{db} };

	if (!$batch || $batch->{worlds} >= $worlds_per_batch)
	{
		$batch = { db => $world->{db}, worlds => 0, cases => [] };
		$open_batch{ $world->{db} } = $batch;
		push @batches, $batch;
	}
	$batch->{worlds}++;
	push @{ $batch->{cases} },
	  map { gen_case($seed, $_, $world, \%has) }
	  @{ $cases_of_world{$number} };
}

# ---- running them -----------------------------------------------------------

# What stays of a case, whatever became of it.
my $clean_up = <<'EOT';
ROLLBACK;
CLOSE ALL;
DEALLOCATE ALL;
DROP TABLE IF EXISTS made;
EOT

# A sort of 7 rows comes before a case's own, so that fmsort_last_sort() does
# not show an earlier case's.
my $marker = <<'EOT';
SELECT FROM (SELECT g FROM generate_series(1, 7) g ORDER BY -g OFFSET 0) m
WHERE g < 0;
EOT

sub script_of
{
	my ($batch) = @_;
	my $script = '';
	my $world = '';

	foreach my $case (@{ $batch->{cases} })
	{
		if ($world ne $case->{world})
		{
			$world = $case->{world};
			$script .= <<EOT;
$world->{sql}\\echo \@arrival $world->{number}
SELECT count(*) FROM (SELECT id, row_number() OVER () AS n FROM $world->{t}) r
WHERE id <> n;
EOT
		}
		$script .= <<EOT;
\\echo \@case $case->{number}
\\set LAST_ERROR_MESSAGE ''
\\set LAST_ERROR_SQLSTATE ''
$case->{reference}\\echo \@error :LAST_ERROR_SQLSTATE :LAST_ERROR_MESSAGE
${clean_up}RESET ALL;
$marker\\echo \@ours
\\set LAST_ERROR_MESSAGE ''
\\set LAST_ERROR_SQLSTATE ''
$case->{ours}\\echo \@error :LAST_ERROR_SQLSTATE :LAST_ERROR_MESSAGE
${clean_up}\\echo \@sorts
SELECT count(*), count(*) FILTER (WHERE sort_method = 'external merge'),
  max(merge_passes), max(tuples), max(runs),
  count(*) FILTER (WHERE sort_method = 'external merge' AND rows_refused > 0),
  sum(blocks_skipped)
FROM fmsort_last_sort();
\\echo \@end
EOT
	}
	return $script;
}

my $directory = PostgreSQL::Test::Utils::tempdir();
my $scripts = 0;

# psql in a process of its own; its number.
sub start_session
{
	my ($batch) = @_;
	my $name = "$directory/" . $scripts++;
	my @command = (
		$node->installed_command('psql'),
		'--no-psqlrc', '--no-align', '--tuples-only', '--quiet',
		'--dbname', $node->connstr($batch->{db}), '--file', "$name.sql");

	PostgreSQL::Test::Utils::append_to_file("$name.sql", script_of($batch));
	$batch->{name} = $name;

	my $pid = fork // die "no process is to be had: $!";

	if ($pid == 0)
	{
		# not die(), which would take the server along
		open STDOUT, '>', "$name.out" or _exit(1);
		open STDERR, '>', "$name.err" or _exit(1);
		exec(@command) or _exit(1);
	}
	return $pid;
}

# Checks the cases that a session has finished and returns the others.
sub finish_session
{
	my ($batch) = @_;
	my $output = slurp_file("$batch->{name}.out");
	my %answers = $output =~ /^\@case (\d+)\n(.*?)^\@end\n/msg;
	my @left;

	while ($output =~ /^\@arrival (\d+)\n(.*)\n/mg)
	{
		is($2, '0', "seed=$seed world=$1: rows arrive in order") if $2 ne '0';
	}
	foreach my $case (@{ $batch->{cases} })
	{
		if (exists $answers{ $case->{number} })
		{
			check($case, $answers{ $case->{number} });
		}
		else
		{
			push @left, $case;
		}
	}
	return @left;
}

my %seen;
my $failures = 0;

sub complain
{
	my ($case, $problem) = @_;
	my $world = $case->{world};

	fail($case->{name});
	diag($problem);
	diag("To repeat: FMSORT_GEN_SEED=$seed FMSORT_GEN_ONLY=$case->{number}");
	if ($failures++ < 3)
	{
		diag("In a database '$world->{db}' of this test:\n",
			'CREATE EXTENSION fmsort;', "\n", gen_prelude(\%has));
	}
	diag($world->{sql}, "\n-- what to expect\n", $case->{reference},
		"\n-- ours\n", $case->{ours})
	  if $failures < 30;
	return;
}

# The beginnings of two texts that differ, from where they do.
sub difference
{
	my ($reference, $ours) = @_;
	my @reference = split /\n/, $reference;
	my @ours = split /\n/, $ours;
	my $line = 0;

	$line++
	  while ($line < @reference
		&& $line < @ours
		&& $reference[$line] eq $ours[$line]);
	return sprintf "line %d of %d and %d:\n%s\n%s", $line + 1,
	  scalar(@reference), scalar(@ours),
	  map { substr($_ // '(no line)', 0, 300) } $reference[$line],
	  $ours[$line];
}

sub check
{
	my ($case, $answer) = @_;
	my ($reference, $reference_error, $ours, $error, $sorts) = $answer =~
	  /\A(.*)^\@error (.*?)\n\@ours\n(.*)^\@error (.*?)\n\@sorts\n(.*)\n\z/ms
	  or return complain($case, "an answer of no known form:\n$answer");
	my ($count, $external, $passes, $tuples, $runs, $refused, $skipped) =
	  split /\|/, $sorts;
	my $settings = $case->{settings};

	s/^ $// foreach $reference_error, $error;
	$seen{cases}++;
	$seen{"$case->{kind}: cases"}++;
	# nothing but the sort that came before
	($count, $external) = (0, 0)
	  if $count == 1 && $external == 0 && $tuples == 7;
	if ($count)
	{
		$seen{"$case->{kind}: ours"}++;
		$seen{ours}++;
	}
	if ($external)
	{
		my $mode = $settings->{'fmsort.mode'};

		$seen{"$case->{kind}: external"}++;
		$seen{external}++;
		$seen{"$mode $settings->{'fmsort.io_method'}"}++;
		$seen{passes}++ if $passes > 1;
		$seen{"$case->{kind}: rows refused"}++ if $refused;
		$seen{"skipped in $mode"}++ if $skipped;
		$seen{$_}++
		  foreach map { "type $_->{column}{type}" } @{ $case->{order}{keys} };
	}

	return complain($case, "an error: $error") if $error ne $reference_error;
	return complain($case, "an error in both: $error")
	  if $error && !$case->{may_raise};
	if ($case->{order}{mode} eq 'ties' && $count < ($case->{sorts} // 1))
	{
		s/ #.*$//mg foreach $reference, $ours;
	}
	return complain($case, 'other rows or another order: '
		  . difference($reference, $ours)) if $reference ne $ours;
	$seen{empty}++ if $ours !~ /\S/;
	$seen{refused}++ if $ours =~ /told 55000/;
	pass($case->{name});
	return;
}

# Two sessions at a time.  A server that crashes ends both, so what they leave
# behind is done later, one after the other.
my @waiting = @batches;
my @left;
my %running;
while (@waiting || %running)
{
	while (@waiting && keys %running < 2)
	{
		my $batch = shift @waiting;

		$running{ start_session($batch) } = $batch;
	}
	my $pid = wait;
	my $batch = delete $running{$pid} or die "no session has ended: $pid";
	my @cases = finish_session($batch);

	push @left, { %{$batch}, cases => \@cases } if @cases;
}

# The first case of each may have ended its session.
my $deaths = 0;
while (my $batch = shift @left)
{
	my ($suspect, @cases) = @{ $batch->{cases} };

	wait_until(sub { connects($node) }) or BAIL_OUT('the server is gone');
	foreach my $cases ([$suspect], \@cases)
	{
		my $next = { %{$batch}, cases => $cases };

		next if !@{$cases};
		waitpid(start_session($next), 0);

		my @unfinished = finish_session($next);

		if (!@unfinished)
		{
			diag("A session died in case $suspect->{number}, but now it runs.")
			  if $cases != \@cases;
			next;
		}
		if ($cases == \@cases)
		{
			unshift @left, { %{$batch}, cases => \@unfinished };
		}
		else
		{
			complain($suspect,
				'the session died: ' . slurp_file("$next->{name}.err"));
			$deaths++;
			wait_until(sub { connects($node) })
			  or BAIL_OUT('the server is gone');
		}
	}
	last if $deaths > 10;
}
ok(!@left, 'no more than 10 sessions died');

# ---- are these tests of anything? -------------------------------------------

note "$_: $seen{$_}" foreach sort keys %seen;

sub at_least
{
	my ($what, $share, $of) = @_;
	my $count = $seen{$what} // 0;

	cmp_ok($count, '>=', $share * $of, "enough cases: $what ($count of $of)");
	return;
}

SKIP:
{
	skip 'few cases say little about all', 1 if @numbers < 2000;
	at_least('ours', 0.5, $seen{cases});
	at_least('external', 0.25, $seen{cases});
	at_least('passes', 0.05, $seen{cases});
	foreach my $method (@{ $has{io_methods} })
	{
		at_least("$_ $method", 0.01, $seen{cases})
		  foreach qw(fmsort double_buffering traditional multi_block flash);
	}
	# some 20 and 10 of 2,400: one, since five would be too many once in 35 runs
	at_least("skipped in $_", 0.0004, $seen{cases}) foreach qw(fmsort flash);
	at_least('refused', 0.15, $seen{'refusal: cases'});
	at_least('refusal: ours', 0.5, $seen{'refusal: cases'});
	at_least('bound: rows refused', 0.15, $seen{'bound: cases'});
	foreach my $kind (qw(plain create_table distinct group plpgsql
		set_operation window))
	{
		at_least("$kind: ours", 0.5, $seen{"$kind: cases"});
		at_least("$kind: external", 0.15, $seen{"$kind: cases"});
	}
	is(join(' ', grep { !$seen{"type $_"} } gen_types()),
		'', 'every type was a key of an external sort');
}

is(join(' ', temp_files($node)), '', 'no temporary file is left');
is( join("\n", slurp_file($node->logfile) =~
		  /^.*(?:PANIC|TRAP:|was terminated by).*/mg),
	'', 'no backend crashed');
$node->stop;
done_testing();
