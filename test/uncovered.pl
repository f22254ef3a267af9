# Compares the lines that were never executed with the reasons given for them.
#
#   perl uncovered.pl COVERAGE.info REASONS
#
# Prints what share was executed, and by file the lines without a reason and the
# reasons without a line.  Fails if there are any of the former.
#
# The reasons' file: a reason stands in the first column, in as many lines as it
# takes; indented lines below say what it is for:
#
#   The kernel refuses this only if ...
#       io_uring.c  open_ring  ereport
#
# that is, a file, a function and, unless all of the function is meant, a piece
# of the line's text.  "*" stands for any file or function.
use strict;
use warnings;

my ($info, $reasons) = @ARGV;
my @entries = read_reasons($reasons);
my ($lines, $hit, %unexplained) = (0, 0);

foreach my $file (read_info($info))
{
	my @text = ('', read_lines($file->{path}));
	my $name = $file->{path} =~ s{.*/}{}r;

	foreach my $line (sort { $a <=> $b } keys %{ $file->{count} })
	{
		$lines++;
		$hit++, next if $file->{count}{$line};
		my $function = function_at($file, $line);

		next if explained($name, $function, $text[$line]);
		push @{ $unexplained{$name} },
		  sprintf('%5d  %-28s %s', $line, $function, $text[$line]);
	}
}

foreach my $name (sort keys %unexplained)
{
	print "$name: executed in no test, and without a reason\n";
	print "$_\n" foreach @{ $unexplained{$name} };
}
foreach my $entry (grep { !$_->{used} } @entries)
{
	print "a reason for what was executed: $entry->{said}\n";
}
my $without = 0;
$without += @$_ foreach values %unexplained;
printf "%d of %d lines executed (%.1f %%), %d with a reason, %d without\n",
  $hit, $lines, 100 * $hit / ($lines || 1), $lines - $hit - $without, $without;
exit($lines == 0 || $without > 0);

sub explained
{
	my ($name, $function, $text) = @_;
	my $found = 0;

	foreach my $entry (@entries)
	{
		next unless $entry->{file} eq '*' || $entry->{file} eq $name;
		next unless $entry->{function} eq '*' || $entry->{function} eq $function;
		next unless index($text, $entry->{piece}) >= 0;
		$found = $entry->{used} = 1;
	}
	return $found;
}

# The last one that begins above.
sub function_at
{
	my ($file, $line) = @_;
	my $function = '';

	foreach my $start (sort { $a <=> $b } keys %{ $file->{functions} })
	{
		last if $start > $line;
		$function = $file->{functions}{$start};
	}
	return $function;
}

sub read_info
{
	my ($path) = @_;
	my (@files, $file);

	foreach (read_lines($path))
	{
		if (/^SF:(.*)/) { $file = { path => $1 }; push @files, $file; }
		elsif (/^FN:(\d+),(?:\d+,)?(\w+)/) { $file->{functions}{$1} = $2; }
		elsif (/^DA:(\d+),(\d+)/) { $file->{count}{$1} += $2; }
	}
	return sort { $a->{path} cmp $b->{path} } @files;
}

sub read_reasons
{
	my ($path) = @_;
	my @found;

	foreach (read_lines($path))
	{
		next unless /^\s+(\S+)\s+(\S+)(?:\s+(\S.*?))?\s*$/;
		push @found,
		  {
			file => $1,
			function => $2,
			piece => $3 // '',
			said => join(' ', $1, $2, $3 // ''),
			used => 0
		  };
	}
	return @found;
}

sub read_lines
{
	my ($path) = @_;

	open my $in, '<', $path or die "$path: $!\n";
	chomp(my @lines = <$in>);
	return @lines;
}
