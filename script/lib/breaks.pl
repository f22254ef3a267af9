# Reads test/breaks/breaks.txt, whose head says what stands in it.
#
#   breaks.pl list ROOT                names, one a line
#   breaks.pl show ROOT NAME FIELD     one field of a break
#   breaks.pl apply ROOT NAME          breaks a file, prints its name; what it
#                                      was is in FILE.sound then
#   breaks.pl check ROOT               fails if a text is not there exactly once

use strict;
use warnings;

my ($command, $root, $name, $field) = @ARGV;
my (@names, %breaks);

sub slurp
{
	my ($path) = @_;

	open my $file, '<', $path or die "$path: $!\n";
	local $/ = undef;
	return scalar <$file>;
}

sub spew
{
	my ($path, $text) = @_;

	open my $file, '>', $path or die "$path: $!\n";
	print $file $text;
	close $file or die "$path: $!\n";
	return;
}

my $last;

foreach my $line (split /\n/, slurp("$root/test/breaks/breaks.txt"))
{
	next if $line =~ /^#/;
	if ($line =~ /^=== (\S+)$/)
	{
		die "$1 stands there twice\n" if $breaks{$1};
		push @names, $1;
		$breaks{$1} = {};
	}
	elsif ($line =~ /^(promise|test|find|replace):\s*(.*)/)
	{
		$last = $1;
		$breaks{ $names[-1] }{$last} = $2;
	}
	elsif ($line =~ /^\t(.*)/) { $breaks{ $names[-1] }{$last} .= "\n$1" }
	elsif ($line ne '')        { die "neither a field nor indented: $line\n" }
}

# The files that may be broken.
my %text = map { $_ => slurp($_) } glob("$root/src/*.[ch] $root/src/*/*.[ch]"
	  . " $root/src/*/*/*.[ch] $root/fmsort--*.sql");

# Where it is: [file, offset, length]...  Any white space is as good as any other.
sub places
{
	my ($break) = @_;
	my $pattern = join '\s+', map { quotemeta } split ' ', $break->{find};
	my @places;

	foreach my $path (sort keys %text)
	{
		push @places, [ $path, $-[0], $+[0] - $-[0] ]
		  while $text{$path} =~ /$pattern/g;
	}
	return @places;
}

if ($command eq 'list') { print "$_\n" foreach @names }
elsif ($command eq 'check')
{
	my $bad = 0;

	foreach (@names)
	{
		my @places = places($breaks{$_});

		foreach my $needed (qw(promise test find replace))
		{
			die "$_ has no $needed\n" unless defined $breaks{$_}{$needed};
		}
		next if @places == 1;
		print "$_: its text is there ", scalar @places, " times\n";
		$bad = 1;
	}
	exit $bad;
}
else
{
	my $break = $breaks{ $name // '' }
	  or die "there is no break '$name'\n";

	if ($command eq 'show') { print "$break->{$field}\n" }
	elsif ($command eq 'apply')
	{
		my @places = places($break);

		die "$name: its text is there ", scalar @places, " times\n"
		  unless @places == 1;
		my ($path, $offset, $length) = @{ $places[0] };

		spew("$path.sound", $text{$path});
		substr $text{$path}, $offset, $length, $break->{replace};
		spew($path, $text{$path});
		print substr($path, length($root) + 1), "\n";
	}
	else { die "there is no command '$command'\n" }
}
