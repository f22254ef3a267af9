# 64 sessions that sort at once, by pgbench, while others beside them are
# cancelled, terminated, or meet temp_file_limit.  None of the 64 may fail, get
# a wrong answer, starve, or take more memory than its work_mem and the
# documented constant; in the end nothing is left.  Then thousands of sorts in
# one session, whose memory has to stay as it is.
#
# Normally each session does a few sorts; with FMSORT_DEEP they go on for ten
# minutes (FMSORT_LOAD_SECONDS changes that), and the throughput is compared
# with the stock sort's.  That figure is printed, not judged: a test does not
# depend on time.
#
# Seen to fail with: 300 bytes that each sort leaves in TopMemoryContext.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use FmsFaults;
use FmsTest;
use IPC::Run ();
use PostgreSQL::Test::Utils;
use Test::More;

my $clients = 64;
my $seconds = $ENV{FMSORT_LOAD_SECONDS} // 600;
my $deep = $ENV{FMSORT_DEEP};
my $work_mem_kb = 256;
# What a session has that no sort takes: catalogs, a plan, what the C library
# keeps of freed memory.
my $constant_kb = 1024;

my $bench = FmsFaults->new('load', 'max_connections = 100',
	"work_mem = '${work_mem_kb}kB'", 'fmsort.block_size = 0',
	'fmsort.assist_blocks = 0');
my $node = $bench->node;
my $dir = PostgreSQL::Test::Utils::tempdir();
my $check = $bench->check =~ s/;\s*$//r;

sub script
{
	my ($name, $sql) = @_;

	append_to_file("$dir/$name", $sql =~ s/\s+/ /gr . "\n");
	return "$dir/$name";
}

# An error ends a client of pgbench, and is seen.
my $steady = script('steady',
	"SELECT 1 / (($check) = @{[ $bench->right ]})::int;");
my $limited = script('limited', <<"EOT");
DO \$\$ BEGIN
  SET LOCAL temp_file_limit = 1000; PERFORM ($check);
  RAISE 'temp_file_limit has not been reached';
EXCEPTION WHEN configuration_limit_exceeded THEN NULL;
END \$\$;
EOT

sub pgbench
{
	my ($name, @options) = @_;
	my %run = (name => $name, out => '');

	local $ENV{PGAPPNAME} = $name;
	$run{harness} = IPC::Run::start(
		[
			'pgbench', '--no-vacuum', '-h', $node->host, '-p', $node->port,
			@options, 'postgres'
		],
		'<', \undef, '>&', \$run{out});
	return \%run;
}

# Does it still run?  IPC::Run wants its output to be read.
sub runs
{
	my ($run) = @_;

	return $run->{harness}->pumpable && do
	{
		$run->{harness}->pump_nb;
		$run->{harness}->pumpable;
	};
}

sub finish
{
	my ($run) = @_;

	IPC::Run::finish($run->{harness});
	return $run->{harness}->result(0);
}

sub pids_of
{
	my ($name) = @_;

	return split /\n/, $node->safe_psql('postgres',
		"SELECT pid FROM pg_stat_activity WHERE application_name = '$name'");
}

# Memory of its own, in which there is no file: neither the library nor shared
# memory.
sub own_kb
{
	my ($pid) = @_;
	my $rollup = eval { slurp_file("/proc/$pid/smaps_rollup") } // '';
	my ($kb) = $rollup =~ /^Anonymous:\s+(\d+) kB/m;

	return $kb // 0;
}

# ---- what an idle session has --------------------------------------------------------

# It has done what the others will, with next to no rows.
my $session = $node->background_psql('postgres');
$session->query_safe($check =~ s/FROM t /FROM t WHERE id <= 2 /r)
  foreach 1 .. 6;
my $idle_kb = own_kb($session->query_safe('SELECT pg_backend_pid()'));
$session->quit;
cmp_ok($idle_kb, '>', 0, "a process's memory can be looked at");

# ---- the load ------------------------------------------------------------------------

my $run = pgbench(
	'steady', '-c', $clients, '-j', 2,
	($deep ? ('-T', $seconds) : ('-t', 5)),
	'-f', "$steady\@7", '-f', "$limited\@1",
	'--log', "--log-prefix=$dir/log");
my $victims = undef;
my %faults = (INT => 0, TERM => 0);
my %peak_kb;

srand(7);
while (runs($run))
{
	if (!$victims || !runs($victims))
	{
		finish($victims) if $victims;
		$victims = pgbench('victims', '-c', 8, '-T', 20, '-f', $steady);
	}
	foreach my $pid (pids_of('victims'))
	{
		my $signal = rand() < 0.7 ? 'INT' : 'TERM';

		next if rand() > 0.2;
		$faults{$signal} += kill $signal, $pid;
	}
	foreach my $pid (pids_of('steady'))
	{
		my $kb = own_kb($pid);
		$peak_kb{$pid} = $kb if $kb > ($peak_kb{$pid} // 0);
	}
	select(undef, undef, undef, rand 0.3);
}

my $status = finish($run);
kill 'TERM', pids_of('victims');
finish($victims) if $victims;

my ($done) = $run->{out} =~ /transactions actually processed: (\d+)/;
my ($bad) = $run->{out} =~ /number of failed transactions: (\d+)/;
is($status, 0, "$clients sessions: none was ended by an error")
  or diag($run->{out});
is($bad, 0, '... and no statement failed');
diag("$done sorts, beside them $faults{INT} cancels, $faults{TERM} terminates");
cmp_ok($faults{INT}, '>=', 1, 'others were cancelled beside them');
cmp_ok($faults{TERM}, '>=', 1, '... and terminated');

my %sorts_of;
foreach my $file (glob "$dir/log.*")
{
	$sorts_of{ (split ' ')[0] }++ foreach split /\n/, slurp_file($file);
}
my @sorts = sort { $a <=> $b } values %sorts_of;
is(scalar(@sorts), $clients, 'every session got its sorts done');
cmp_ok($sorts[0] * 4, '>=', $sorts[-1],
	"... about as many as the others ($sorts[0] to $sorts[-1])")
  if $deep;

my $sum_kb = 0;
$sum_kb += $_ - $idle_kb foreach values %peak_kb;
my ($largest_kb) = sort { $b <=> $a } values %peak_kb;
cmp_ok(scalar(keys %peak_kb), '>=', $clients / 2,
	'the memory of most was looked at');
cmp_ok($largest_kb - $idle_kb, '<=', $work_mem_kb + $constant_kb,
	'memory of the largest one beyond an idle one (kB)');
diag("memory beyond idle: $sum_kb kB in all, at most "
	  . ($largest_kb - $idle_kb) . " kB; idle $idle_kb kB");

$session = $bench->session;
my $before = $bench->holdings($session);
ok(wait_until(sub { !pids_of('steady') && !pids_of('victims') }),
	'all of them have left');
$bench->unharmed($session, $before, 'the load');

# ---- one session, thousands of sorts -----------------------------------------------------

# Spilling ones of 1500 rows, in blocks so small that there are many, and a
# few that fail.
my $thousand = q{DO $$ DECLARE n bigint; BEGIN
  FOR i IN 1 .. 1000 LOOP
    BEGIN
      SELECT sum(1 / (id - 1000 - i % 500 * 10)) INTO n FROM
        (SELECT id, pay FROM t WHERE id <= 1500 ORDER BY k OFFSET 0) s;
    EXCEPTION WHEN division_by_zero THEN NULL;
    END;
  END LOOP;
END $$};
my $pid = $bench->pid_of($session);

$session->query_safe("SET work_mem = '64kB'; $thousand");
my $first_kb = own_kb($pid);
$session->query_safe($thousand) foreach 1 .. ($deep ? 20 : 3);
cmp_ok(own_kb($pid) - $first_kb,
	'<=', 256, 'thousands of sorts: memory stays as it is (kB)');
$session->query_safe('RESET work_mem');
$bench->unharmed($session, $before, 'thousands of sorts');
$session->quit;

# ---- throughput ------------------------------------------------------------------------

if ($deep)
{
	my %tps;

	foreach my $round (1 .. 9)
	{
		foreach my $mode ('fmsort', 'off')
		{
			# as users have it: where such spills go is not given
			local $ENV{PGOPTIONS} =
			  "-c fmsort.mode=$mode -c fmsort.direct_io=auto";
			my $measured = pgbench('throughput', '-c', $clients, '-j', 2,
				'-T', 5, '-f',
				script("any.$mode.$round", 'SELECT count(pay) FROM
					(SELECT id, k, pay FROM t ORDER BY k OFFSET 0) s;'));

			finish($measured);
			push @{ $tps{$mode} }, $measured->{out} =~ /^tps = ([\d.]+)/m;
		}
	}
	my %median = map { $_ => (sort { $a <=> $b } @{ $tps{$_} })[4] } keys %tps;
	diag(sprintf '%d sessions: %.1f sorts a second, the stock sort %.1f',
		$clients, @median{ 'fmsort', 'off' });
}

$node->stop;
done_testing();
