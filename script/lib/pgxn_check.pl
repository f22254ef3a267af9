# Is a zip what PGXN takes?  Its META.json has what the specification of PGXN's
# META, version 1.0.0, requires, and the files that it names are in the archive,
# below one directory.
#
#   perl pgxn_check.pl ARCHIVE.zip NAME-VERSION

use strict;
use warnings;

use JSON::PP;

my ($zip, $name) = @ARGV;
my @wrong;
my $semver = qr/^\d+\.\d+\.\d+(?:-[A-Za-z][0-9A-Za-z-]*)?$/;

sub wrong_unless
{
	my ($right, @what) = @_;

	push @wrong, "@what" unless $right;
	return;
}

my %files = map { $_ => 1 } split /\n/, qx(unzip -Z1 "$zip");
my $meta = eval { decode_json(scalar qx(unzip -p "$zip" "$name/META.json")) }
  or die "$zip: no $name/META.json that can be read: $@\n";

wrong_unless(m{^\Q$name\E/}, "$_ is not below $name/") foreach sort keys %files;
wrong_unless($meta->{$_}, "$_ is missing")
  foreach qw(name version abstract maintainer license provides);
wrong_unless($name eq "$meta->{name}-$meta->{version}",
	"the archive is $name, META.json says $meta->{name}-$meta->{version}");
wrong_unless($meta->{version} =~ $semver, "version: $meta->{version}");
wrong_unless($meta->{license} eq 'postgresql', "license: $meta->{license}");
wrong_unless($meta->{release_status} =~ /^(?:stable|testing|unstable)$/,
	"release_status: $meta->{release_status}") if $meta->{release_status};
wrong_unless($meta->{'meta-spec'}{version} eq '1.0.0', 'meta-spec: version');
wrong_unless($meta->{'meta-spec'}{url} =~ m{^https?://pgxn\.org/meta/spec\.txt$},
	'meta-spec: url');
wrong_unless(($_ // '') =~ m{^https://[^/]+/}, 'resources: an address')
  foreach $meta->{resources}{homepage}, $meta->{resources}{bugtracker}{web},
  @{ $meta->{resources}{repository} }{qw(url web)};
wrong_unless($meta->{resources}{repository}{type}, 'resources: repository: type');
foreach my $extension (sort keys %{ $meta->{provides} })
{
	my $provided = $meta->{provides}{$extension};

	wrong_unless($provided->{version} =~ $semver, "$extension: version");
	wrong_unless(defined $_ && $files{"$name/$_"},
		$_ // 'file', 'is not in the archive')
	  foreach $provided->{file}, grep { defined } $provided->{docfile};
}
foreach my $phase (values %{ $meta->{prereqs} // {} })
{
	foreach my $wanted (map { values %$_ } values %$phase)
	{
		wrong_unless($wanted =~ /^(?:0$|(?:[<>=!]=? *)?\d+\.\d+\.\d+)/,
			"prereqs: version $wanted");
	}
}

print "$zip: $_\n" foreach @wrong;
exit(@wrong ? 1 : 0);
