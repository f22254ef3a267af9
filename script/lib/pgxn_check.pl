# Is a zip what PGXN takes?  Its META.json has what the specification of
# PGXN's META, version 1.0.0, requires, in the form it requires, and the files
# that it names are in the archive, below one directory.
#
#   perl pgxn_check.pl ARCHIVE.zip NAME-VERSION

use strict;
use warnings;

use JSON::PP;

my ($zip, $name) = @ARGV;
my @wrong;
my $semver = qr/^\d+\.\d+\.\d+(?:-[A-Za-z][0-9A-Za-z-]*)?$/;
my $term = qr/^[^\s\/\\\x00-\x1f\x7f]{2,}$/;
my %licenses = map { $_ => 1 } qw(agpl_3 apache_1_1 apache_2_0 artistic_1
  artistic_2 bsd freebsd gfdl_1_2 gfdl_1_3 gpl_1 gpl_2 gpl_3 lgpl_2_1 lgpl_3_0
  mit mozilla_1_0 mozilla_1_1 openssl perl_5 postgresql qpl_1_0 ssleay sun
  zlib open_source restricted unrestricted unknown);
my %phases = map { $_ => 1 } qw(configure build test runtime develop);
my %relations = map { $_ => 1 } qw(requires recommends suggests conflicts);

sub wrong { push @wrong, join ' ', @_; return }

sub is_text { my ($value) = @_; return defined $value && !ref $value && $value =~ /\S/ }

my %files = map { $_ => 1 } split /\n/, qx(unzip -Z1 "$zip");
my $meta = eval { decode_json(scalar qx(unzip -p "$zip" "$name/META.json")) }
  or die "$zip: no $name/META.json that can be read: $@\n";

wrong "$_ is not below $name/" foreach grep { !m{^\Q$name\E/} } sort keys %files;

foreach my $field (qw(name version abstract maintainer license))
{
	my @values = ref $meta->{$field} eq 'ARRAY' ? @{ $meta->{$field} } : $meta->{$field};

	@values = keys %{ $meta->{$field} } if ref $meta->{$field} eq 'HASH';
	wrong "$field is missing" unless @values && !grep { !is_text($_) } @values;
}
wrong "name: $meta->{name}" unless $meta->{name} =~ $term;
wrong "version: $meta->{version}" unless $meta->{version} =~ $semver;
wrong "the archive is $name, META.json says $meta->{name}-$meta->{version}"
  unless $name eq "$meta->{name}-$meta->{version}";
unless (ref $meta->{license} eq 'HASH')
{
	foreach my $license (ref $meta->{license} ? @{ $meta->{license} } : $meta->{license})
	{
		wrong "license: $license" unless $licenses{$license};
	}
}
wrong 'release_status' unless ($meta->{release_status} // 'stable') =~ /^(?:stable|testing|unstable)$/;
wrong 'meta-spec: version' unless ($meta->{'meta-spec'}{version} // '') eq '1.0.0';
wrong 'meta-spec: url' unless ($meta->{'meta-spec'}{url} // '') =~ m{^https?://(?:www\.)?pgxn\.org/meta/spec\.txt$};

wrong 'provides is missing' unless ref $meta->{provides} eq 'HASH' && %{ $meta->{provides} };
foreach my $extension (sort keys %{ $meta->{provides} })
{
	my $provided = $meta->{provides}{$extension};

	wrong "provides: $extension" unless $extension =~ $term;
	wrong "$extension: version" unless ($provided->{version} // '') =~ $semver;
	wrong "$extension: file" unless is_text($provided->{file});
	foreach my $file (grep { defined } @$provided{qw(file docfile)})
	{
		wrong "$file is not in the archive" unless $files{"$name/$file"};
	}
}
foreach my $phase (sort keys %{ $meta->{prereqs} // {} })
{
	wrong "prereqs: $phase" unless $phases{$phase};
	foreach my $relation (sort keys %{ $meta->{prereqs}{$phase} })
	{
		wrong "prereqs: $relation" unless $relations{$relation};
		foreach my $version (values %{ $meta->{prereqs}{$phase}{$relation} })
		{
			wrong "prereqs: version $version" unless $version eq '0' || $version =~ /^(?:[<>=!]=? *)?\d+\.\d+\.\d+/;
		}
	}
}
foreach my $tag (@{ $meta->{tags} // [] })
{
	wrong "tag: $tag" unless length $tag <= 255 && $tag !~ m{[/\\\x00-\x1f]};
}

print "$zip: $_\n" foreach @wrong;
exit(@wrong ? 1 : 0);
