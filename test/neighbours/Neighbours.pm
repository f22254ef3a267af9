package Neighbours;

# A server with other extensions, without fmsort and with fmsort loaded before
# them, after them and by the session; and the comparison of what a statement
# does there.

use strict;
use warnings;

use Exporter 'import';
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

our @EXPORT = qw(compare no_accident orders server_in_order start_server);

# Each of these has hooks.
my $neighbours = join ',', qw(timescaledb pg_stat_statements auto_explain
  pg_hint_plan pg_cron pg_partman_bgw);

# shared_preload_libraries and session_preload_libraries of each order
my %libraries = (
	'without fmsort' => [ $neighbours, '' ],
	'fmsort first' => [ "fmsort,$neighbours", '' ],
	'fmsort last' => [ "$neighbours,fmsort", '' ],
	'fmsort by session' => [ $neighbours, 'fmsort' ]);

# The orders with fmsort.
sub orders { return grep { $_ ne 'without fmsort' } sort keys %libraries; }

sub start_server
{
	my ($name, @configuration) = @_;
	my $node = PostgreSQL::Test::Cluster->new($name);

	$node->init;
	$node->append_conf('postgresql.conf', "$_\n") foreach 'fsync = off',
	  'autovacuum = off', 'jit = off', 'max_worker_processes = 20',
	  'restart_after_crash = on', 'synchronize_seqscans = off',
	  'max_parallel_workers_per_gather = 0', 'timescaledb.telemetry_level = off',
	  "cron.database_name = 'postgres'", 'cron.use_background_workers = on',
	  "include = 'order.conf'", @configuration;
	write_order($node, 'without fmsort');
	$node->start;
	return $node;
}

sub write_order
{
	my ($node, $order) = @_;
	my ($shared, $session) = @{ $libraries{$order} };
	my $path = $node->data_dir . '/order.conf';

	unlink $path;
	append_to_file($path, "fmsort.min_rows = 0\n"
		  . "shared_preload_libraries = '$shared'\n"
		  . "session_preload_libraries = '$session'\n");
	return;
}

sub server_in_order
{
	my ($node, $order) = @_;

	$node->stop;
	write_order($node, $order);
	$node->start;
	return;
}

# No process of the server has died since it was made.
sub no_accident
{
	my ($node, $name) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	my @accidents =
	  grep { /PANIC:|TRAP: |was terminated by signal|connection because of crash/ }
	  split /\n/, slurp_file($node->logfile);

	return is(join("\n", @accidents), '', "$name: no accident");
}

# ---- what a statement does -----------------------------------------------------

# Rows in order, or the error: each is an answer.
sub answer
{
	my ($node, $case, $settings) = @_;
	my ($status, $out, $err) = $node->psql('postgres',
		"SET client_min_messages = error; $settings"
		  . ($case->{settings} // '') . "\n$case->{query};",
		on_error_stop => 1);

	return $status == 0 ? $out : "status $status: $out $err";
}

# Its plan, which counts the rows of every node.
sub plan_of
{
	my ($node, $case, $settings) = @_;
	my $how = $case->{only_plan} ? '' : 'ANALYZE, TIMING OFF, BUFFERS OFF,';

	return answer($node,
		{ %$case,
			query => "EXPLAIN ($how COSTS OFF, SUMMARY OFF) $case->{query}" },
		$settings);
}

# A plan as it would be whoever sorts.  Of a sort's method it says whether it
# kept only the rows that a LIMIT asks for; sorts of presorted input say that
# of a group, or not at all.
sub whoever_sorts
{
	my ($plan) = @_;

	$plan =~ s/(Parallel )?Custom Scan \(FMSort\)/Sort/g;
	$plan =~ s/Incremental Sort/Sort/g;
	$plan =~ s/^\s*(Merge Mode|I\/O Method|Worker \d+|(Full-sort|Pre-sorted) Groups):.*\n//gm;
	$plan =~ s/^\s*(Rows Refused|(Rows|Blocks) Skipped):.*\n//gm;
	$plan =~ s/^(\s*Presorted Key:.*\n)\s*Sort Method:.*\n/$1/gm;
	$plan =~ s/Sort Method: top-N.*/Sort Method: top-N/g;
	$plan =~ s/Sort Method: (?!top-N).*/Sort Method: all rows/g;
	$plan =~ s/<\d+>/<oid>/g;
	return $plan;
}

# compare(NODE, CASE...): a case has
#
#   name, query, settings   SQL; its rows must come in a certain order
#   shape       what the plan without fmsort has to have, or the case tests
#               nothing
#   ours        true if a node of ours has to be in the plan
#   only_plan   true if the statement is not to be run
#   no_plan     true if it has none
sub compare
{
	my ($node, @cases) = @_;
	my %expected;

	foreach my $case (@cases)
	{
		$expected{ $case->{name} } = {
			answer => $case->{only_plan} ? '' : answer($node, $case, ''),
			plan => $case->{no_plan} ? '' : plan_of($node, $case, '')
		};
		my $of = $expected{ $case->{name} };

		unlike($of->{answer} . $of->{plan}, qr/status [^0]|ERROR/,
			"$case->{name}: works without fmsort");
		like($of->{plan}, $case->{shape}, "$case->{name}: has that shape")
		  if $case->{shape};
	}
	foreach my $order (orders())
	{
		server_in_order($node, $order);
		foreach my $case (@cases)
		{
			foreach my $mode (qw(off fmsort))
			{
				my $set = "SET fmsort.mode = $mode; ";

				# a session's first statement must be theirs, too
				$set = '' if $mode eq 'fmsort';
				compare_one($node, $case, $set, $expected{ $case->{name} },
					"$order, mode $mode: $case->{name}");
			}
		}
		no_accident($node, $order);
	}
	server_in_order($node, 'without fmsort');
	return;
}

sub compare_one
{
	my ($node, $case, $set, $expected, $name) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 2;

	is(answer($node, $case, $set), $expected->{answer}, "$name: rows")
	  unless $case->{only_plan};
	return if $case->{no_plan};

	# without what makes other plans, or lets a node return fewer rows
	my $plan = plan_of($node, $case, 'SET fmsort.parallel = off;
		SET fmsort.debug_group_filter = off; ' . $set);
	is(whoever_sorts($plan), whoever_sorts($expected->{plan}), "$name: plan");
	like($plan, qr/Custom Scan \(FMSort\)/, "$name: fmsort sorts")
	  if $case->{ours} && $set eq '';
	return;
}

1;
