# Checks src/LAYERS: a line is a floor, the top floor first:
#
#   name file file ...
#
# A file (x.c, x.h, or x for both) may include headers of its own floor and of
# the floors below it, and every file has to be on some floor.

use strict;
use warnings;

my $dir = shift or die "usage: layers.pl DIRECTORY\n";
my %floor_of;
my $floors = 0;
my $bad    = 0;

sub complain
{
	print @_, "\n";
	$bad = 1;
}

sub floor_of
{
	my ($file) = @_;
	my $stem = $file =~ s/\.[ch]$//r;

	return $floor_of{$file} // $floor_of{$stem} // $floor_of{"$stem.c"}
	  // $floor_of{"$stem.h"};
}

open my $layers, '<', "$dir/LAYERS" or die "$dir/LAYERS: $!\n";
while (my $line = <$layers>)
{
	$line =~ s/#.*//;
	my ($name, @files) = split ' ', $line;

	next unless defined $name;
	$floors++;
	foreach my $file (@files)
	{
		complain "$dir/LAYERS:$.: $file stands on two floors"
		  if defined $floor_of{$file};
		complain "$dir/LAYERS:$.: there is no $dir/$file"
		  unless grep { -e "$dir/$_" } $file, "$file.c", "$file.h";
		$floor_of{$file} = $floors;
	}
}
close $layers;

foreach my $path (sort glob "$dir/*.[ch]")
{
	my $file  = $path =~ s,.*/,,r;
	my $floor = floor_of($file);

	if (!defined $floor)
	{
		complain "$path stands on no floor of $dir/LAYERS";
		next;
	}
	open my $source, '<', $path or die "$path: $!\n";
	while (my $line = <$source>)
	{
		my ($header) = $line =~ /^\s*#\s*include\s*"([^"]+)"/ or next;

		next unless -e "$dir/$header";
		my $other = floor_of($header) // next;
		complain "$path:$.: includes $header from a floor above"
		  if $other < $floor;
	}
	close $source;
}

exit $bad;
