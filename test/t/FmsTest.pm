package FmsTest;

# What the tests of this directory share: a server with fmsort in every
# session, and looks at what a backend holds.

use strict;
use warnings;

use Exporter 'import';
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

our @EXPORT = qw(fms_node temp_files backend_state connects
  direct_ways drop_tablespace fill_up free_kb make_tablespace reset_peak
  restart_refused status_kb uring_works wait_until);

# Where fms_node()'s server is installed, if it is not the one that is tested.
our $install_path;

# fms_node(NAME, CONFIGURATION...): initialised and running, the extension
# created in the database postgres.
sub fms_node
{
	my ($name, @configuration) = @_;
	my $node =
	  PostgreSQL::Test::Cluster->new($name, install_path => $install_path);

	$node->init;
	$node->append_conf('postgresql.conf', <<EOT);
fsync = off
autovacuum = off
restart_after_crash = on
jit = off
max_connections = 20
shared_buffers = 32MB
synchronize_seqscans = off
max_parallel_workers_per_gather = 0
enable_incremental_sort = off
log_error_verbosity = verbose
session_preload_libraries = 'fmsort'
fmsort.min_rows = 0
EOT
	$node->append_conf('postgresql.conf', "$_\n") foreach @configuration;
	$node->start;
	$node->safe_psql('postgres', 'CREATE EXTENSION fmsort');
	# by itself so small a spill would stay in the page cache
	if (grep { $_ eq 'on' } direct_ways($node))
	{
		$node->append_conf('postgresql.conf', 'fmsort.direct_io = on');
		$node->reload;
	}
	return $node;
}

# Every file below any pgsql_tmp of the cluster, tablespaces given included.
sub temp_files
{
	my ($node, @tablespaces) = @_;
	my @files;

	foreach my $base ($node->data_dir . '/base', @tablespaces)
	{
		push @files, glob("$base/pgsql_tmp/*"),
		  glob("$base/PG_*/pgsql_tmp/*");
	}
	return @files;
}

# What a backend holds that a sort may have left behind: descriptors by
# target, and mappings of io_uring.  A hash that is_deeply() can compare.
# Relation files come and go with fd.c's cache: they do not count.
sub backend_state
{
	my ($pid) = @_;
	my %state = (io_uring => 0, temporary => 0, rings_mapped => 0);

	foreach my $link (glob("/proc/$pid/fd/*"))
	{
		my $target = readlink($link) // next;

		$state{io_uring}++ if $target =~ /io_uring/;
		$state{temporary}++ if $target =~ /pgsql_tmp/;
	}
	if (open my $maps, '<', "/proc/$pid/maps")
	{
		while (my $line = <$maps>)
		{
			$state{rings_mapped}++ if $line =~ /io_uring/;
		}
		close $maps;
	}
	return \%state;
}

# Does the server take connections?
sub connects
{
	my ($node) = @_;
	# psql that cannot connect does not read what it is sent
	my $status = eval { $node->psql('postgres', 'SELECT 1') };

	return defined $status && $status == 0;
}

# Can a backend of this server have an io_uring?  Any other reason for a sort to
# fail is none to leave tests out.
sub uring_works
{
	my ($node) = @_;
	my ($status, undef, $err) =
	  $node->psql('postgres', <<'EOT', on_error_stop => 1);
SET fmsort.io_method = io_uring; SET work_mem = '64kB';
SELECT count(*) FROM (SELECT g FROM generate_series(1, 20000) g
  ORDER BY -g OFFSET 0) s;
EOT
	die "a sort with io_uring fails: $err"
	  if $status != 0 && $err !~ /could not set up io_uring/;
	return $status == 0;
}

# A line of /proc/PID/status.
sub status_kb
{
	my ($pid, $field) = @_;
	my ($kb) = slurp_file("/proc/$pid/status") =~ /^$field:\s+(\d+) kB/m;

	return $kb;
}

# Sets the peak of a process's resident memory to what is resident now.
sub reset_peak
{
	my ($pid) = @_;

	open my $reset, '>', "/proc/$pid/clear_refs" or return 0;
	return defined syswrite $reset, '5';
}

# The values of fmsort.direct_io that work there, with the smallest blocks.
sub direct_ways
{
	my ($node, $settings) = @_;
	my ($status) = $node->psql('postgres', ($settings // '') . <<'EOT');
SET fmsort.direct_io = on; SET fmsort.block_size = 512;
SET work_mem = '64kB';
SELECT count(*) FROM (SELECT g FROM generate_series(1, 20000) g
  ORDER BY -g OFFSET 0) s;
EOT

	return ('auto', 'off', $status == 0 ? 'on' : ());
}

# Starts the server again where the kernel refuses these system calls with that
# errno (test/faults/refuse.c), and with other limits if "limits" says so, in
# words of the shell; without calls and limits as usual.
sub restart_refused
{
	my ($node, %how) = @_;
	my @calls = @{ $how{calls} // [] };
	my $dir = PostgreSQL::Test::Utils::tempdir();
	my ($pg_ctl) = grep { -x } map { "$_/pg_ctl" } split /:/, $ENV{PATH};
	my $command = "'$pg_ctl' \"\$\@\"";

	$command = join(' ', "'$ENV{FMSORT_REFUSE}'", $how{errno} + 0, @calls,
		'--', $command)
	  if @calls;
	open my $script, '>', "$dir/pg_ctl" or die "$dir/pg_ctl: $!";
	print $script "#!/bin/sh\n", $how{limits} // ':', "\nexec $command\n";
	close $script;
	chmod 0755, "$dir/pg_ctl" or die "$dir/pg_ctl: $!";
	local $ENV{PATH} = "$dir:$ENV{PATH}";
	$node->restart;
	return;
}

# Asks until the answer is true or a generous time has passed.
sub wait_until
{
	my ($condition) = @_;
	my $deadline = time + $PostgreSQL::Test::Utils::timeout_default;

	while (!$condition->())
	{
		return 0 if time > $deadline;
		select(undef, undef, undef, 0.02);
	}
	return 1;
}

# A tablespace in a directory of its own, which the server's user may use.
sub make_tablespace
{
	my ($node, $name, $where) = @_;
	my $dir = "$where/fmsort_test_$$";

	mkdir $dir or die "$dir: $!";
	$node->safe_psql('postgres', "CREATE TABLESPACE $name LOCATION '$dir'");
	return $dir;
}

# Free room on the disk of a directory.
sub free_kb
{
	my ($dir) = @_;

	return (split ' ', (split /\n/, `df -Pk $dir`)[1])[3];
}

# Leaves only so much room there, beside a file "ballast".
sub fill_up
{
	my ($dir, $room_kb) = @_;
	my $ballast_kb = free_kb($dir) - $room_kb;

	system('dd', 'if=/dev/zero', "of=$dir/ballast", 'bs=1k',
		"count=$ballast_kb", 'status=none') == 0
	  or die "no ballast of $ballast_kb kB in $dir";
	return;
}

sub drop_tablespace
{
	my ($node, $name, $dir) = @_;

	$node->safe_psql('postgres', "DROP TABLESPACE $name");
	rmdir $dir or diag("$dir is not empty: $!");
	return;
}

1;
