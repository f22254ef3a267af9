# Compares what PostgreSQL's or an extension's tests printed with and without
# fmsort, statement by statement; for script/test core and extensions.
#
#   diff.pl [--accept] ACCEPTED RESULTS ROUND...
#   diff.pl --list ACCEPTED DOCUMENT
#
# RESULTS/ROUND/stock/*.out was printed without fmsort, RESULTS/ROUND/fmsort
# with it; RESULTS/ROUND/sql/*.sql, if there, are the scripts.  Plans are made
# comparable first, see normalise(); in the round "regress-parallel" they are
# left out, since fmsort.parallel is for other plans.  What differs has to stand in
# ACCEPTED/TEST.diff, with a reason; test/core/README.md has the format.
#
# Prints what is wrong, and at last "passed failed", counting a test once for
# each of its rounds.  With --accept, what is new goes into the files, where
# its reason is still to be written, and what did not occur is dropped.
#
# With --list, DOCUMENT's lines between the two marks, which are comments that
# say "list of differences" and "end of list", become a list of all that is
# accepted.

use strict;
use warnings;
use File::Glob ':bsd_glob';

my $no_reason = '# Reason missing.';
my $any_order = '* in any order';

my $option = @ARGV && $ARGV[0] =~ /^--/ ? shift @ARGV : '';
my $accept = $option eq '--accept';
my ($accepted_dir, $results, @rounds) = @ARGV;

sub slurp
{
	my ($path) = @_;
	open(my $file, '<', $path) or die "$path: $!\n";
	my @lines = <$file>;
	close $file;
	s/\s+$// for @lines;
	return @lines;
}

sub spew
{
	my ($path, @lines) = @_;
	open(my $file, '>', $path) or die "$path: $!\n";
	print $file map { "$_\n" } @lines;
	close $file or die "$path: $!\n";
	return;
}

# ---- statements and their output --------------------------------------------

# The lines of a script that psql prints as it reads them: not the empty ones,
# and not the data that follows COPY FROM STDIN.
sub echoed_lines
{
	my @lines = @_;
	my @echoed;
	my $data = 0;

	for my $line (@lines)
	{
		if ($data)
		{
			$data = 0 if $line eq '\.';
			next;
		}
		push @echoed, $line if $line ne '';
		$data = 1 if $line =~ /^\s*copy\b.*\bfrom\s+stdin\b/i;
	}
	return @echoed;
}

# Where psql's output has the script's lines in between: a list of
# { statement => [line...], output => [line...] }.
sub split_by_script
{
	my ($script, @lines) = @_;
	my @echoed = echoed_lines(slurp($script));
	my @parts = ({ statement => [], output => [] });
	my $complete = 1;

	for my $line (@lines)
	{
		if (!@echoed || $line ne $echoed[0])
		{
			push @{ $parts[-1]{output} }, $line;
			$complete = 1;
			next;
		}
		shift @echoed;
		next if $line =~ /^\s*--/;
		push @parts, { statement => [], output => [] } if $complete;
		push @{ $parts[-1]{statement} }, $line;
		$complete = $line =~ /;\s*(?:--.*)?$|^\\|\\g/;
	}
	return @parts;
}

# The isolation tester's output: a permutation counts as one statement.
sub split_by_permutation
{
	my @lines = @_;
	my @parts = ({ statement => [], output => [] });

	for my $line (@lines)
	{
		if ($line =~ /^starting permutation: /)
		{
			push @parts, { statement => [$line], output => [] };
			next;
		}
		push @{ $parts[-1]{output} }, $line;
	}
	return @parts;
}

# ---- making plans comparable ------------------------------------------------

# Is the node of this line of a plan one with presorted keys?  Its fields are
# the lines up to the next node.
sub is_presorted
{
	my ($lines, $i) = @_;

	while (++$i <= $#$lines && $lines->[$i] !~ /^ *->  |^\(\d+ rows?\)$/)
	{
		return 1 if $lines->[$i] =~ /^ *Presorted Key: /;
	}
	return 0;
}

# A line as the server's node would have it.
sub node_line
{
	my ($lines, $i) = @_;
	my $line = $lines->[$i];

	if ($line =~ /Custom Scan \(FMSort\)/)
	{
		my $node = is_presorted($lines, $i) ? 'Incremental Sort' : 'Sort';
		$line =~ s/(?:Parallel )?Custom Scan \(FMSort\)/$node/;
	}
	return $line;
}

# A line of a plan, or nothing if the line says how a sort went.
sub plan_line
{
	my ($line) = @_;

	return () if $line =~ m{^[ ]*(?:Worker[ ]\d+:[ ][ ])?(?:
		Sort[ ]Method: | (?:Full-sort|Pre-sorted)[ ]Groups: |
		Rows[ ](?:Refused|Skipped): | Blocks[ ]Skipped: | Duplicates[ ]Dropped: |
		Merge[ ]Mode:[ ]\S+[ ][ ]Runs: |
		I/O[ ]Method:[ ]\S+[ ][ ]Direct[ ]I/O: |
		Run[ ]Formation[ ]Time:[ ].*[ ][ ]Input[ ]Time: |
		Decision:[ ] )}x;
	return ($line);
}

# What FMSort's node in JSON has, and Sort's has not.
my $own_properties = join '|', 'Custom Plan Provider', 'Merge Mode', 'Runs',
	'Merge Passes', 'Blocks', 'Block Size', 'Assist Blocks', 'I/O Method',
	'Direct I/O', 'Run Formation Time', 'Input Time', 'Block Order Time',
	'Merge Time', 'Blocked Time', 'Groups', 'Rows Refused', 'Rows Skipped',
	'Blocks Skipped', 'Duplicates Dropped', 'Decision';

# A plan in JSON, one property a line: makes the nodes Sorts, in place.
sub json_nodes
{
	my ($lines) = @_;

	for (my $i = $#$lines; $i >= 0; $i--)
	{
		next unless $lines->[$i] =~ /^( *)"Custom Plan Provider": "FMSort"/;
		my $indent = length $1;
		my $inside = qr/^ {$indent}/;
		my ($first, $last) = ($i, $i);

		$first-- while $first > 0 && $lines->[ $first - 1 ] =~ $inside;
		$last++ while $last < $#$lines && $lines->[ $last + 1 ] =~ $inside;
		my @node = grep { !/^ {$indent}"(?:$own_properties)":/ }
			grep { !(/^ {$indent}"Sort Workers": / .. /^ {$indent}\]/) }
			@$lines[ $first .. $last ];
		my $type = (grep { /^ {$indent}"Presorted Key":/ } @node)
			? 'Incremental Sort' : 'Sort';

		for (@node)
		{
			s/^( {$indent}"Node Type": )"Custom Scan"/$1"$type"/;
			s/^( {$indent}"Parallel Aware": )true/$1false/;
		}
		splice @$lines, $first, $last - $first + 1, @node;
		$i = $first;
	}
	return;
}

# Names of nodes are also changed where a test prints a plan in a form of its own.
# Only a table of one column can be a plan.  Its width follows its widest line,
# so these go: "+" at the ends of lines and blanks before it, the blanks that
# centre the title, the number of dashes.
sub normalise
{
	my @lines = map { node_line(\@_, $_) } 0 .. $#_;
	my @result;
	my $dropped;    # how many lines of this table; undefined: not in one

	return @lines unless grep { /^-+$/ } @lines;
	json_nodes(\@lines);
	for my $i (0 .. $#lines)
	{
		my $line = $lines[$i];

		if (!defined $dropped)
		{
			$line =~ s/^ +// if $i < $#lines && $lines[ $i + 1 ] =~ /^-+$/;
			($line, $dropped) = ('---', 0) if $i > 0 && $line =~ /^-+$/;
			push @result, $line;
			next;
		}
		if ($line =~ /^(?:\((\d+) rows?\))?$/)
		{
			$line = '(' . ($1 - $dropped) . ' rows)' if $dropped && $1;
			undef $dropped;
			push @result, $line;
			next;
		}
		my @kept = plan_line($line);
		$dropped++ unless @kept;
		s/ *\+$// for @kept;
		push @result, @kept;
	}
	return @result;
}

# ---- differences ------------------------------------------------------------

# What diff says about two lists of lines, without line numbers.
sub diff
{
	my ($old, $new) = @_;
	my @files = ("$results/.old", "$results/.new");
	my @lines;

	spew($files[0], @$old);
	spew($files[1], @$new);
	open(my $diff, '-|', 'diff', '-U2', @files) or die "diff: $!\n";
	@lines = <$diff>;
	close $diff;
	die "diff failed\n" if $? >> 8 != 1;
	unlink @files;

	splice @lines, 0, 3;
	s/^@@ .*/.../, s/\s+$// for @lines;
	pop @lines while $lines[-1] eq '';
	return @lines;
}

sub is_permutation
{
	my ($old, $new) = @_;
	return join("\n", sort @$old) eq join("\n", sort @$new);
}

sub parts_of
{
	my ($round, $test, $side) = @_;
	my @lines = slurp("$results/$round/$side/$test.out");
	my $script = "$results/$round/sql/$test.sql";

	return -e $script ? split_by_script($script, @lines)
		: split_by_permutation(@lines);
}

sub prints_plan
{
	my ($part) = @_;
	return grep { /explain|EXPLAIN/ } @{ $part->{statement} };
}

# The statements of a test that differ: a list of { statement => [line...],
# hunk => [line...], permutation => yes or no }; undef if there is no output.
sub differences
{
	my ($round, $test) = @_;
	my @result;

	for my $side (qw(stock fmsort))
	{
		return undef unless -s "$results/$round/$side/$test.out";
	}
	my @stock = parts_of($round, $test, 'stock');
	my @fmsort = parts_of($round, $test, 'fmsort');
	my $none = { statement => ['(no more statements)'], output => [] };

	while (@stock || @fmsort)
	{
		my $stock = shift @stock // $none;
		my $fmsort = shift @fmsort // $none;
		my @old = ((map { "@@ $_" } @{ $stock->{statement} }),
			normalise(@{ $stock->{output} }));
		my @new = ((map { "@@ $_" } @{ $fmsort->{statement} }),
			normalise(@{ $fmsort->{output} }));

		next if join("\n", @old) eq join("\n", @new);
		next if $round =~ /parallel$/ && prints_plan($stock);
		push @result, {
			statement => $stock->{statement},
			hunk => [ diff(\@old, \@new) ],
			permutation => is_permutation(\@old, \@new)
		};
	}
	return \@result;
}

# ---- what is accepted -------------------------------------------------------

# One entry after the other: lines with "#" are the reason, lines with "@@" the
# statement, what follows is the difference.
sub read_accepted
{
	my ($test) = @_;
	my $path = "$accepted_dir/$test.diff";
	my @accepted;
	my $part = 'hunk';

	return () unless -e $path;
	for my $line (slurp($path))
	{
		my $before = $part;

		$part = $line =~ /^#/ ? 'reason'
			: $part ne 'hunk' && $line =~ /^@@/ ? 'statement' : 'hunk';
		push @accepted, { reason => [], statement => [], hunk => [] }
			if $part eq 'reason' && $before ne 'reason';
		die "$path: '$line' comes before any reason\n" unless @accepted;
		$line =~ s/^@@ // if $part eq 'statement';
		push @{ $accepted[-1]{$part} }, $line;
	}
	for my $entry (@accepted)
	{
		my $hunk = $entry->{hunk};
		pop @$hunk while @$hunk && $hunk->[-1] eq '';
	}
	return @accepted;
}

sub write_accepted
{
	my ($test, @accepted) = @_;
	my $path = "$accepted_dir/$test.diff";
	my @lines;

	for my $entry (@accepted)
	{
		push @lines, '' if @lines;
		push @lines, @{ $entry->{reason} },
			(map { "@@ $_" } @{ $entry->{statement} }), @{ $entry->{hunk} };
	}
	unlink $path;
	spew($path, @lines) if @lines;
	return;
}

# The entry that accepts a difference, or undef.
sub accepting
{
	my ($difference, @accepted) = @_;

	for my $entry (@accepted)
	{
		next if "@{ $entry->{statement} }" ne "@{ $difference->{statement} }";
		return $entry if "@{ $entry->{hunk} }" eq $any_order
			&& $difference->{permutation};
		return $entry
			if join("\n", @{ $entry->{hunk} })
			eq join("\n", @{ $difference->{hunk} });
	}
	return undef;
}

# ---- all tests --------------------------------------------------------------

my ($passed, $failed, $unseen) = (0, 0, 0);

sub complain
{
	my ($where, $what, @lines) = @_;

	print "\n$where: $what\n", map { "  $_\n" } @lines;
	return;
}

# Checks a test in one round; returns the entries that had to accept something.
sub check_round
{
	my ($round, $test, $accepted) = @_;
	my $differences = differences($round, $test);
	my $good = defined $differences;
	my @used;

	complain("$round: $test", 'one of the two runs printed nothing')
		unless $good;
	for my $difference (@{ $differences // [] })
	{
		my $entry = accepting($difference, @$accepted);

		if (!$entry && $accept)
		{
			$entry = { %$difference, reason => [$no_reason] };
			push @$accepted, $entry;
		}
		push @used, $entry if $entry;
		next if $entry && "@{ $entry->{reason} }" ne $no_reason;
		complain("$round: $test",
			$entry ? 'this wants a reason' : 'not accepted',
			@{ $difference->{statement} }, @{ $difference->{hunk} });
		$good = 0;
	}
	$good ? $passed++ : $failed++;
	return @used;
}

sub check
{
	my ($test, @where) = @_;
	my @accepted = read_accepted($test);
	my (@used, %seen);

	push @used, check_round($_, $test, \@accepted) for @where;
	@used = grep { !$seen{$_}++ } @used;
	$unseen += grep { !$seen{$_} && "@{ $_->{hunk} }" ne $any_order }
		@accepted;
	return unless $accept;
	# what may come in any order does not always come in another one
	push @used, grep { !$seen{$_} && "@{ $_->{hunk} }" eq $any_order }
		@accepted;
	write_accepted($test, @used);
	return;
}

sub check_all
{
	my %rounds_of;

	for my $round (@rounds)
	{
		my %tests = map { m{([^/]+)\.out$} ? ($1 => 1) : () }
			glob "$results/$round/{stock,fmsort}/*.out";

		push @{ $rounds_of{$_} }, $round for keys %tests;
	}
	check($_, @{ $rounds_of{$_} }) for sort keys %rounds_of;
	print "\n$unseen of the accepted differences did not occur",
		$accept ? " and have been dropped.\n" : "; --accept drops these.\n"
		if $unseen;
	print "$passed $failed\n";
	return;
}

# ---- the list for those who read no diffs -----------------------------------

sub one_line
{
	my $text = join ' ', @_;

	$text =~ s/\s+/ /g;
	return $text;
}

# The tests, their reasons, and the statements that have them.
sub list_of
{
	my @lines;

	for my $path (sort glob "$accepted_dir/*.diff")
	{
		my ($test) = $path =~ m{([^/]+)\.diff$};
		my (%statements, @reasons);

		for my $entry (read_accepted($test))
		{
			my $reason = one_line(map { /^# ?(.*)/ } @{ $entry->{reason} });

			push @reasons, $reason unless $statements{$reason};
			push @{ $statements{$reason} }, one_line(@{ $entry->{statement} });
		}
		for my $reason (@reasons)
		{
			my %seen;

			push @lines, '', "`$test`: $reason", '';
			push @lines, map { "- `$_`" }
				grep { !$seen{$_}++ } @{ $statements{$reason} };
		}
	}
	return @lines;
}

sub list_into
{
	my ($document) = @_;
	my @lines = slurp($document);
	my $mark = qr/^<!-- (?:list of differences|end of list)/;
	my ($first, $last) = grep { $lines[$_] =~ $mark } 0 .. $#lines;

	die "$document: no marks\n" unless defined $last;
	splice @lines, $first + 1, $last - $first - 1, list_of(), '';
	spew($document, @lines);
	return;
}

if ($option eq '--list' && defined $results)
{
	list_into($results);
}
elsif (@rounds)
{
	check_all();
}
else
{
	die "usage: diff.pl [--accept] ACCEPTED RESULTS ROUND...\n",
		"       diff.pl --list ACCEPTED DOCUMENT\n";
}
