# Comparators of users' own: one that throws, ones that contradict themselves,
# one that runs SQL which sorts and spills itself.
#
# A contradictory one defines no order, but the sort ends without an error and
# gives each row once, as PostgreSQL's does.
#
# Seen to fail with: uring_close() closing the ring that another sort uses (the
# server crashes); fmsort_next() not looking which run the next block is of; an
# error where the merge demands another block than the order's next one.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use FmsFaults;
use FmsTest;
use Test::More;

my $bench = FmsFaults->new('comparators', 'fmsort.assist_blocks = 4');
my $node = $bench->node;

# The operators call whatever way() is at the moment; calls are counted.
$node->safe_psql('postgres', <<'EOT');
CREATE SEQUENCE calls CACHE 1;
CREATE FUNCTION way(a int, b int) RETURNS int LANGUAGE plpgsql
  AS 'BEGIN RETURN sign(a - b); END';
CREATE FUNCTION odd_compare(a int, b int) RETURNS int LANGUAGE plpgsql
  AS 'BEGIN RETURN way(a, b); END';
CREATE FUNCTION odd_lt(a int, b int) RETURNS bool LANGUAGE sql
  AS 'SELECT way(a, b) < 0';
CREATE FUNCTION odd_le(a int, b int) RETURNS bool LANGUAGE sql
  AS 'SELECT way(a, b) <= 0';
CREATE FUNCTION odd_eq(a int, b int) RETURNS bool LANGUAGE sql
  AS 'SELECT way(a, b) = 0';
CREATE FUNCTION odd_ge(a int, b int) RETURNS bool LANGUAGE sql
  AS 'SELECT way(a, b) >= 0';
CREATE FUNCTION odd_gt(a int, b int) RETURNS bool LANGUAGE sql
  AS 'SELECT way(a, b) > 0';
CREATE OPERATOR <# (LEFTARG = int, RIGHTARG = int, FUNCTION = odd_lt);
CREATE OPERATOR <=# (LEFTARG = int, RIGHTARG = int, FUNCTION = odd_le);
CREATE OPERATOR =# (LEFTARG = int, RIGHTARG = int, FUNCTION = odd_eq);
CREATE OPERATOR >=# (LEFTARG = int, RIGHTARG = int, FUNCTION = odd_ge);
CREATE OPERATOR ># (LEFTARG = int, RIGHTARG = int, FUNCTION = odd_gt);
CREATE OPERATOR CLASS odd_ops FOR TYPE int USING btree AS
  OPERATOR 1 <#, OPERATOR 2 <=#, OPERATOR 3 =#, OPERATOR 4 >=#, OPERATOR 5 >#,
  FUNCTION 1 odd_compare(int, int);
EOT

my $rows = 6000;
# each row's share of the sum shows that it came, and came once
my $odd = <<"EOT";
SELECT count(*), sum(hashint8(id)::bigint) FROM
  (SELECT id, k, pay FROM t WHERE id <= $rows ORDER BY k USING <# OFFSET 0) s;
EOT
my $all = $node->safe_psql('postgres', "SELECT count(*), sum(hashint8(id)::bigint)
  FROM t WHERE id <= $rows");

sub compare_by
{
	my ($session, $body) = @_;

	$session->query_safe("CREATE OR REPLACE FUNCTION way(a int, b int)
		RETURNS int LANGUAGE plpgsql AS \$\$ $body \$\$;
		SELECT setval('calls', 1)");
	return;
}

my @methods = uring_works($node) ? qw(io_uring sync) : ('sync');

foreach my $method (@methods)
{
	my $session = $bench->session("SET fmsort.io_method = $method");

	# ---- throws ------------------------------------------------------------------

	# how many calls are there?
	compare_by($session, q{BEGIN PERFORM nextval('calls');
		RETURN sign(a - b); END});
	my ($answer) = $bench->ask($session, "$odd");
	is($answer, $all, "$method: one in order");
	my $calls = $session->query_safe('SELECT last_value FROM calls');
	like(
		$session->query_safe('SELECT runs > 1, merge_passes, sort_method
			FROM fmsort_last_sort() ORDER BY sort_number LIMIT 1'),
		qr/^t\|\d+\|external merge$/, "$method: ... spills");

	foreach my $tenth (1, 4, 7, 9)
	{
		my $at = int($calls * $tenth / 10);

		compare_by($session, "BEGIN IF nextval('calls') = $at THEN
			RETURN 1 / (a - a); END IF; RETURN sign(a - b); END");
		$bench->fault_ok($session, $odd, qr/ERROR:  22012: division by zero/,
			"$method: throws at call $at of $calls");
	}

	# ---- contradicts itself --------------------------------------------------------

	my %contradictions = (
		'always less' => 'BEGIN RETURN -1; END',
		'always greater' => 'BEGIN RETURN 1; END',
		'always equal' => 'BEGIN RETURN 0; END',
		'as it likes' => 'BEGIN RETURN (hashint8(a * 65536::bigint + b) % 2); END',
		'another time, another answer' => 'BEGIN RETURN floor(random() * 3) - 1; END',
		'round in a circle' => 'BEGIN RETURN CASE WHEN a = b THEN 0
			WHEN (a - b + 30000) % 3 = 1 THEN 1 ELSE -1 END; END',
		'another order half-way' => "BEGIN RETURN CASE WHEN nextval('calls') >
			$calls / 2 THEN sign(b - a) ELSE sign(a - b) END; END");

	# how blocks are read makes no difference to the other modes
	foreach my $mode ('fmsort', 'flash',
		$method eq 'sync' ? () : qw(double_buffering traditional multi_block))
	{
		foreach my $way (sort keys %contradictions)
		{
			my $name = "$method, $mode: $way";
			my $before;

			compare_by($session, $contradictions{$way});
			$before = $bench->holdings($session);
			my ($rows, $messages) = $bench->ask($session,
				"SELECT setseed(0.5) \\g /dev/null
				 SET fmsort.mode = $mode; $odd RESET fmsort.mode");
			is($rows . $messages, $all, "$name: each row once");
			$bench->unharmed($session, $before, $name);
		}
	}

	# ---- runs SQL that sorts ---------------------------------------------------------

	my $inner = 'SELECT sum(hashint8extended(id, n) %% 1000000007) %s FROM
		(SELECT row_number() OVER () AS n, id FROM
		  (SELECT id, k, pay FROM t WHERE id <= 1500 ORDER BY %s) s) r';
	my $inner_right = $node->safe_psql('postgres',
		'SET fmsort.mode = off; ' . sprintf($inner, '', 'k, id'));
	compare_by($session, 'DECLARE found numeric; BEGIN
		IF nextval(\'calls\') % 500 = 0 THEN '
		  . sprintf($inner, 'INTO found', 'k') . ";
		  IF found <> $inner_right THEN RAISE 'the inner sort is wrong'; END IF;
		END IF; RETURN sign(a - b); END");
	my $outer = $bench->check =~ s/FROM t ORDER BY k/FROM t WHERE id <= $rows ORDER BY k USING <#/r;
	my $outer_right = $node->safe_psql('postgres', 'SET fmsort.mode = off; '
		. $bench->check('k, id') =~ s/FROM t /FROM t WHERE id <= $rows /r);
	my $before = $bench->holdings($session);
	my ($rows, $messages) = $bench->ask($session, $outer);
	is($rows . $messages, $outer_right,
		"$method: a comparator that sorts and spills: both are right");
	cmp_ok($session->query_safe('SELECT last_value FROM calls'),
		'>', 500 * 20, "$method: ... which it did more than 20 times");
	$bench->unharmed($session, $before, "$method: sorts in a comparator");

	# ... and is interrupted in there, while the outer one's reads are in flight
	compare_by($session, "DECLARE found numeric; BEGIN
		IF nextval('calls') > $calls * 9 / 10 THEN
		  SELECT sum(1 / (id - 700)) INTO found FROM
		    (SELECT id, pay FROM t WHERE id <= 1500 ORDER BY k) s;
		END IF; RETURN sign(a - b); END");
	$bench->fault_ok($session, $odd, qr/ERROR:  22012: division by zero/,
		"$method: an error in the sort of a comparator");
	compare_by($session, "DECLARE found numeric; BEGIN
		IF nextval('calls') % 1000 = 0 THEN
		  BEGIN
		    SELECT sum(1 / (id - 700)) INTO found FROM
		      (SELECT id, pay FROM t WHERE id <= 1500 ORDER BY k) s;
		  EXCEPTION WHEN division_by_zero THEN NULL;
		  END;
		END IF; RETURN sign(a - b); END");
	$before = $bench->holdings($session);
	($rows, $messages) = $bench->ask($session, $outer);
	is($rows . $messages, $outer_right,
		"$method: errors in a comparator's sorts that it catches");
	$bench->unharmed($session, $before, "$method: and so often");
	$session->quit;
}

$node->stop;
done_testing();
