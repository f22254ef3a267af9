# Checks who includes whom in src/.  The table in src/README.md is read:
#
#   | floor | `folder/` | concept |
#
# A file includes headers of its own folder and of folders on lower floors.
# Files in src/ itself may include all.  Files do not include each other in a
# circle; x.c and x.h count as one.

use strict;
use warnings;

my $dir = shift or die "usage: layers.pl DIRECTORY\n";
my %floor_of;
my %includes;
my $bad = 0;

sub complain
{
	print @_, "\n";
	$bad = 1;
}

# The folder of merge/modes/flash.c is merge.
sub folder { return $_[0] =~ m,^([^/]+)/, ? $1 : '' }
sub stem   { return $_[0] =~ s/\.[ch]$//r }

open my $readme, '<', "$dir/README.md" or die "$dir/README.md: $!\n";
while (my $line = <$readme>)
{
	my ($floor, $folder) = $line =~ m,^\| (\d+) \| `(\w+)/` \|, or next;

	complain "$dir/README.md:$.: there is no $dir/$folder"
	  unless -d "$dir/$folder";
	$floor_of{$folder} = $floor;
}
close $readme;
complain "$dir/README.md has no table of folders" unless %floor_of;

foreach my $path (sort glob("$dir/*.[ch] $dir/*/*.[ch] $dir/*/*/*.[ch]"))
{
	my $file   = substr $path, length($dir) + 1;
	my $folder = folder($file);

	if ($folder ne '' && !defined $floor_of{$folder})
	{
		complain "$path: $folder/ is not in the table of $dir/README.md";
		next;
	}
	open my $source, '<', $path or die "$path: $!\n";
	while (my $line = <$source>)
	{
		my ($header) = $line =~ /^\s*#\s*include\s*"([^"]+)"/ or next;

		next unless -e "$dir/$header";
		my $other = folder($header);

		complain "$path:$.: includes $header of a floor that is not below"
		  if $folder ne '' && $other ne $folder &&
		  ($other eq '' || $floor_of{$other} >= $floor_of{$folder});
		$includes{stem($file)}{stem($header)} = 1
		  unless stem($file) eq stem($header);
	}
	close $source;
}

# Depth first: a file that is met again on the way down closes a circle.
my %seen;

sub descend
{
	my ($file, @way) = @_;

	if (grep { $_ eq $file } @way)
	{
		complain "a circle: ", join(' -> ', @way, $file);
		return;
	}
	return if $seen{$file};
	descend($_, @way, $file) foreach sort keys %{ $includes{$file} };
	$seen{$file} = 1;
	return;
}

descend($_) foreach sort keys %includes;

exit $bad;
