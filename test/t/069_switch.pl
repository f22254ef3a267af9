# Turning fmsort off for all sessions, as docs/operations.md says, however the
# library is loaded and from a database that does not load it; and the way out
# when the library's file went before the setting (docs/installing.md).
#
# Every version: ALTER SYSTEM takes settings of libraries that are not loaded
# from 17 on, LOAD makes it work before.
#
# Seen to fail with: LOAD omitted, on 15; fmsort.mode as PGC_BACKEND.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = PostgreSQL::Test::Cluster->new('switch');

$node->init;
$node->start;

# The commands of the page: those in the first block of SQL after its heading.
my ($top) = grep { -e "$_/README.md" } "$FindBin::RealBin/..",
  "$FindBin::RealBin/../..";
my ($off, $on) =
  slurp_file("$top/docs/operations.md") =~
  /^## Turn fmsort off.*?^```sql\n(.*?)^```.*?^To turn fmsort on again.*?^```sql\n(.*?)^```/ms
  or die 'docs/operations.md has lost its commands';
my $plan = 'EXPLAIN (COSTS OFF) SELECT i FROM generate_series(1, 10000) i ORDER BY i';

sub sorts_by
{
	my ($session) = @_;

	return $session->query_safe($plan) =~ /FMSort/ ? 'fmsort' : 'PostgreSQL';
}

# A session reads its configuration when it has been told, before its next
# statement or the one after.
sub becomes
{
	my ($session, $wanted, $name) = @_;
	my $is;

	foreach (1 .. 2000)
	{
		$is = sorts_by($session);
		last if $is eq $wanted;
		select undef, undef, undef, 0.01;
	}
	return is($is, $wanted, $name);
}

my %ways = (
	'shared_preload_libraries' => sub {
		$node->append_conf('postgresql.conf',
			"shared_preload_libraries = 'fmsort'");
		$node->restart;
	},
	'a database\'s session_preload_libraries' => sub {
		$node->append_conf('postgresql.conf', "shared_preload_libraries = ''");
		$node->restart;
		$node->safe_psql('postgres',
			"ALTER DATABASE mydb SET session_preload_libraries = 'fmsort'");
	},
	'LOAD' => sub {
		$node->safe_psql('postgres',
			'ALTER DATABASE mydb RESET session_preload_libraries');
	});

$node->safe_psql('postgres', 'CREATE DATABASE mydb');
foreach my $way (
	'shared_preload_libraries', 'a database\'s session_preload_libraries',
	'LOAD')
{
	$ways{$way}->();
	my $session = $node->background_psql('mydb');

	$session->query_safe(q{LOAD 'fmsort'}) if $way eq 'LOAD';
	is(sorts_by($session), 'fmsort', "$way: fmsort sorts");
	$node->safe_psql('postgres', $off);
	becomes($session, 'PostgreSQL', '... is turned off under a session');
	$node->safe_psql('postgres', $on);
	becomes($session, 'fmsort', '... and on again');
	$session->quit;
}

# ---- the library's file is gone ------------------------------------------------

my $err;

$node->safe_psql('postgres',
	"ALTER DATABASE mydb SET session_preload_libraries = 'fmsort_is_gone'");
isnt($node->psql('mydb', 'SELECT 1', stderr => \$err),
	0, 'nobody connects if the library is gone');
like($err, qr/could not access file "fmsort_is_gone"/, '... and the message');
{
	local $ENV{PGOPTIONS} = '-c session_preload_libraries=';

	$node->safe_psql('mydb',
		'ALTER DATABASE mydb RESET session_preload_libraries');
}
is($node->safe_psql('mydb', 'SELECT 1'), 1, 'a superuser gets in and resets it');

$node->stop;
done_testing();
