# A kernel that refuses a part of what fast I/O needs, each by itself, as system
# call filters, old kernels and limits do: the server runs under the program
# refuse (test/faults/refuse.c).  Sorts are right, and the log says why, once.
#
#   FMSORT_REFUSE   that program; where it is not set, all is skipped
#
# Seen to fail with: ring_try_out() of io_uring.c asking nothing; was_refused()
# of tape.c without ECANCELED; is_to_explain() of io.c not asking the others, or
# not asking for workers.

use strict;
use warnings;

use Errno qw(EACCES ENOMEM ENOSYS EOPNOTSUPP EPERM);
use FindBin;
use lib $FindBin::RealBin;
use FmsTest;
use PostgreSQL::Test::Utils;
use Test::More;

plan skip_all => 'FMSORT_REFUSE names no refuse; script/test makes it'
  unless $ENV{FMSORT_REFUSE};

my $node = fms_node(
	'io_refused',
	"work_mem = '64kB'",
	"log_line_prefix = '%p %b '",
	"shared_preload_libraries = 'fmsort'",
	'max_parallel_workers = 4',
	'parallel_setup_cost = 0',
	'parallel_tuple_cost = 0',
	'min_parallel_table_scan_size = 0');
$node->restart;

$node->safe_psql('postgres', <<'EOT');
CREATE TABLE t AS SELECT i AS id, (i::bigint * 7919 % 10007)::int AS k,
  md5(i::text) AS pay FROM generate_series(1, 5000) i;
ANALYZE t;
EOT

my $query = <<'EOT';
SELECT md5(string_agg(id || pay, '')) FROM
  (SELECT id, k, pay FROM t ORDER BY k, id) s;
EOT
my $right = $node->safe_psql('postgres', "SET fmsort.mode = off; $query");
my $uring = uring_works($node);
my @direct = direct_ways($node);

# Answer and errors.
sub ask
{
	my ($sql) = @_;
	my ($out, $err);

	$node->psql(
		'postgres', "\\set VERBOSITY verbose\n$sql",
		stdout => \$out,
		stderr => \$err,
		on_error_stop => 0);
	return ($out, $err);
}

my $explanation = qr/fmsort uses synchronous I\/O because io_uring is not/;

sub lines_since
{
	my ($from) = @_;

	return grep { /$explanation/ }
	  split /\n/, slurp_file($node->logfile, $from);
}

# ---- each call, each answer ----------------------------------------------------------

# without: is there no io_uring then?
my @situations = (
	map({ { calls => ['io_uring_setup'], errno => $_, without => 1 } }
		EPERM, ENOSYS, ENOMEM, EACCES),
	map({ { calls => ['io_uring_enter'], errno => $_, without => 1 } }
		EPERM, ENOSYS, EACCES),
	map({ { calls => ['io_uring_register'], errno => $_ } } EPERM, ENOMEM),
	{
		calls => [qw(io_uring_setup io_uring_enter io_uring_register)],
		errno => EPERM,
		without => 1
	},
	{ calls => [qw(fallocate)], errno => EOPNOTSUPP },
	{ calls => [qw(madvise)], errno => ENOSYS },
	{ limits => 'ulimit -l 0', maybe => 1 },
	{ limits => 'ulimit -l 64', maybe => 1 });

foreach my $situation (@situations)
{
	my $name = $situation->{limits}
	  // join(', ', @{ $situation->{calls} }) . " fail with $situation->{errno}";
	my $from = -s $node->logfile;

	restart_refused($node, %$situation);
	foreach my $direct (@direct)
	{
		my ($out, $err) = ask("SET fmsort.direct_io = $direct; $query
			SET fmsort.mode = flash; $query
			SELECT io_method FROM fmsort_last_sort()");
		# with both settings automatic, a small spill sets up no ring
		my $method = !$uring || $situation->{without} || $direct eq 'auto' ? 'sync' :
		  $situation->{maybe} ? '(io_uring|sync)' : 'io_uring';

		is($err, '', "$name, direct_io = $direct: no error");
		like($out, qr/^$right\n$right\n$method$/,
			"$name, direct_io = $direct: right, by what there is");
	}
	is(scalar(lines_since($from)), 1, "$name: one line in the log")
	  if $situation->{without};
	cmp_ok(scalar(lines_since($from)), '<=', 1, "$name: no more than that")
	  if !$situation->{without};

	my ($out, $err) = ask("SET fmsort.io_method = io_uring; $query
		RESET fmsort.io_method; $query");
	if ($err eq '')
	{
		ok(!$situation->{without} && $out eq "$right\n$right",
			"$name, io_uring: right");
	}
	else
	{
		like($err, qr/ERROR:  0A000: could not set up io_uring/,
			"$name, io_uring: an error");
		like($err, qr/HINT:  .*fmsort\.io_method.*auto/, '... with a hint');
		is($out, $right, '... and the next sort is right');
	}
	is(join(' ', temp_files($node)), '', "$name: no file is left");
}

# ---- who says it ---------------------------------------------------------------------

my $parallel = "SET max_parallel_workers_per_gather = 4; $query $query $query";

my $from = -s $node->logfile;
restart_refused($node, calls => ['io_uring_setup'], errno => EPERM);
my ($out, $err) = ask($parallel);
is($out, join("\n", ($right) x 3), 'in parallel: right');
ask($query) foreach 1, 2;
is(scalar(lines_since($from)), 1,
	'one line for all sessions and workers of a server');

$from = -s $node->logfile;
$node->append_conf('postgresql.conf', "shared_preload_libraries = ''");
restart_refused($node, calls => ['io_uring_setup'], errno => EPERM);
($out, $err) = ask($parallel);
is($out, join("\n", ($right) x 3), 'without shared memory: right');
is(scalar(grep { /parallel worker/ } lines_since($from)),
	0, '... and workers say nothing');
cmp_ok(scalar(lines_since($from)), '<=', 1, '... nor a session twice');
ask("SET max_parallel_workers_per_gather = 0; $query $query") foreach 1, 2;
cmp_ok(scalar(lines_since($from)), '>=', 2, '... but each session once');

# ---- no workers for the ring ---------------------------------------------------------

# What the kernel cannot do at once it hands to workers, which count as
# processes of the server's user.  If it may have none, requests are cancelled.
restart_refused($node);
SKIP:
{
	skip 'io_uring is not to be had', 2 unless $uring;

	my $session = $node->background_psql('postgres', on_error_stop => 0);
	my $large = <<'EOT';
SELECT md5(string_agg(left(pay, 40), '')) FROM
  (SELECT -g AS k, repeat(md5(g::text), 8) AS pay
     FROM generate_series(1, 100000) g ORDER BY 1) s
EOT
	my $expected =
	  $node->safe_psql('postgres', "SET fmsort.mode = off; $large");

	$session->query_safe("SET fmsort.io_method = io_uring;
		SET fmsort.direct_io = off; SET fmsort.compression = off;
		SET work_mem = '1MB'");
	system('prlimit', '--nproc=1:',
		'--pid=' . $session->query_safe('SELECT pg_backend_pid()')) == 0
	  or die "prlimit: $?";
	$session->{stderr} = '';
	is($session->query($large), $expected, 'no process for a ring: right');
	is($session->{stderr}, '', '... without complaint');
	$session->quit;
}

$node->stop;
done_testing();
