# A server in a control group with less memory than work_mem: a sort spills
# before the kernel ends the server, and is right.
#
#   FMSORT_MEMORY_GROUP   the directory of an empty control group that this user
#                         may limit and enter; where it is not set, all is
#                         skipped
#
# Seen to fail with: has_room() of piece.c asking nobody (the backend is
# killed); read_groups() of free_memory.c looking at no group.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use FmsTest;
use PostgreSQL::Test::Utils;
use Test::More;

my $limit_mb = 400;

sub write_to
{
	my ($path, $text) = @_;

	open my $file, '>', $path or return 0;
	return defined syswrite($file, $text);
}

my $group = $ENV{FMSORT_MEMORY_GROUP}
  or plan skip_all => 'FMSORT_MEMORY_GROUP names no group that limits memory';
my $limit_file = "$group/memory.limit_in_bytes";

$limit_file = "$group/memory.max" unless -e $limit_file;
write_to($limit_file, $limit_mb * 1024 * 1024)
  or plan skip_all => "the group's memory cannot be limited: $!";
my $node = fms_node('containers', 'shared_buffers = 16MB');

# With keys of 40 bytes, about 500 MB of rows.
my $query = <<'EOT';
SELECT count(*), bool_and(t >= before) FROM (
  SELECT t, lag(t) OVER () AS before FROM (
    SELECT md5(g::text) || repeat('x', 100) AS t
    FROM (SELECT generate_series(1, 2500000) AS g) g ORDER BY t) s) o;
EOT

foreach my $work_mem ('1GB', '64GB')
{
	my $session = $node->background_psql('postgres', on_error_stop => 0);

	write_to("$group/cgroup.procs",
		$session->query_safe('SELECT pg_backend_pid()'))
	  or BAIL_OUT("no process can enter $group: $!");
	is( $session->query("SET work_mem = '$work_mem';
			SET fmsort.compression = off; $query"),
		'2500000|t', "work_mem = $work_mem, $limit_mb MB: right");
	is( $session->query("SELECT sort_method, merge_passes
			FROM fmsort_last_sort()"),
		'external merge|1', '... on disk, in one pass');
	is( $session->query('SELECT count(*) FROM (SELECT g FROM
			generate_series(1, 20000) g ORDER BY -g) s'),
		'20000', '... and a small sort');
	is($session->query('SELECT sort_method FROM fmsort_last_sort()'),
		'in-memory', '... in memory');
	$session->quit;
}

$node->stop;
done_testing();
