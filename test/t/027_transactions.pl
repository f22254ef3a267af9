# Transactions, cursors and plans that outlive what they were made in: a
# subtransaction that aborts, a cursor WITH HOLD at COMMIT, DROP EXTENSION, and
# the library's file gone or another one, each under live cursors and cached
# plans.
#
# Every version: cached plans, cursors and resource owners.
#
# Seen to fail with: begin_node() of node.c asking for the extension; asking for
# the library's file; files that belong to the subtransaction they were made in.

use strict;
use warnings;

use File::Copy;
use FindBin;
use lib $FindBin::RealBin;
use FmsFaults;
use FmsTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $bench = FmsFaults->new('transactions');
my $node = $bench->node;
my @methods = uring_works($node) ? qw(io_uring sync) : ('sync');

# Rows of the stock sort, from .. to.
sub rows_right
{
	my ($from, $count) = @_;

	return $node->safe_psql('postgres', "SET fmsort.mode = off;
		SELECT id FROM t ORDER BY k, id OFFSET $from LIMIT $count");
}

# SQL, what it has to print, and what it has to complain of.
sub leaves_nothing
{
	my ($session, $name, $sql, $right, $message) = @_;
	my $before;

	$before = $bench->holdings($session);
	my ($rows, $messages) = $bench->ask($session, $sql);
	is($rows, $right, "$name: the rows");
	like($messages, $message // qr/^$/, "$name: the messages");
	return $bench->unharmed($session, $before, $name);
}

foreach my $method (@methods)
{
	# through the page cache, too
	my $direct = $method eq 'sync' ? 'SET fmsort.direct_io = off' : '';
	my $session =
	  $bench->session("SET fmsort.io_method = $method; $direct");
	my $cursor = 'CURSOR %s FOR SELECT id FROM t ORDER BY k';
	my $plain = sprintf($cursor, '');
	my $held = sprintf($cursor, 'WITH HOLD');

	# ---- subtransactions --------------------------------------------------------

	leaves_nothing(
		$session,
		"$method, read before, within and after a subtransaction that aborts",
		"BEGIN; DECLARE c NO SCROLL $plain; MOVE 5000 FROM c;
		 SAVEPOINT a; MOVE 5000 FROM c; SELECT 1 / (id - id) FROM t;
		 ROLLBACK TO a; FETCH 5 FROM c; COMMIT",
		rows_right(10000, 5),
		qr/division by zero(?!.*ERROR:)/s);
	leaves_nothing(
		$session,
		"$method, sorted in a subtransaction that aborts",
		"BEGIN; DECLARE c NO SCROLL $plain; SAVEPOINT a; MOVE 5000 FROM c;
		 SELECT 1 / (id - id) FROM t; ROLLBACK TO a;
		 MOVE 9000 FROM c; FETCH 5 FROM c; COMMIT",
		rows_right(14000, 5),
		qr/division by zero(?!.*ERROR:)/s);
	leaves_nothing(
		$session,
		"$method, declared in a subtransaction that aborts",
		"BEGIN; SAVEPOINT a; DECLARE c NO SCROLL $plain; MOVE 15000 FROM c;
		 ROLLBACK TO a; FETCH 5 FROM c; ROLLBACK",
		'',
		qr/ERROR:  34000: cursor "c" does not exist/);
	leaves_nothing(
		$session,
		"$method, one aborts in the middle of another's cursor, a hundred times",
		q{DO $$ DECLARE c refcursor; n int := 0; r record; BEGIN
		    FOR r IN SELECT id FROM t ORDER BY k LOOP
		      n := n + 1;
		      IF n % 200 = 0 THEN
		        BEGIN
		          OPEN c FOR SELECT 1 / (id - 300) FROM t WHERE id <= 1200
		            ORDER BY pay, k;
		          MOVE 1200 FROM c;
		        EXCEPTION WHEN division_by_zero THEN n := n + 0;
		        END;
		      END IF;
		    END LOOP;
		    IF n <> 20000 THEN RAISE 'only % rows', n; END IF;
		  END $$},
		'');

	# ---- WITH HOLD -----------------------------------------------------------------

	leaves_nothing($session, "$method, WITH HOLD",
		"BEGIN; DECLARE c $held; MOVE 7000 FROM c; COMMIT; FETCH 3 FROM c;
		 MOVE 2000 FROM c; FETCH 3 FROM c; CLOSE c",
		rows_right(7000, 3) . "\n" . rows_right(9003, 3));
	$session->query_safe("BEGIN; DECLARE c $held; MOVE 7000 FROM c; COMMIT");
	is($bench->holdings($session)->{fd_io_uring},
		0, "$method, WITH HOLD: after COMMIT the sort is over");
	$session->query_safe('CLOSE c');
	leaves_nothing(
		$session,
		"$method, WITH HOLD and an error at COMMIT",
		'BEGIN; DECLARE c CURSOR WITH HOLD FOR SELECT 1 / (k - 9000) FROM
		   (SELECT k, pay FROM t ORDER BY k OFFSET 0) s;
		 MOVE 10 FROM c; COMMIT; FETCH 1 FROM c',
		'',
		qr/division by zero.*cursor "c" does not exist/s);
	leaves_nothing(
		$session,
		"$method, WITH HOLD and more than temp_file_limit at COMMIT",
		"BEGIN; SET LOCAL temp_file_limit = '1MB';
		 DECLARE c CURSOR WITH HOLD FOR SELECT * FROM t ORDER BY k;
		 COMMIT",
		'',
		qr/ERROR:  53400: temporary file size exceeds/);

	# ---- DROP EXTENSION --------------------------------------------------------------

	# Our own session's plans and cursors, then those of another one's.  The
	# library stays loaded: only its functions are gone.
	my $check = $bench->check;
	leaves_nothing(
		$session,
		"$method, DROP EXTENSION with a cached plan and a cursor open",
		"PREPARE p AS $check EXECUTE p; EXECUTE p;
		 BEGIN; DECLARE c NO SCROLL $plain; MOVE 9000 FROM c;
		 DROP EXTENSION fmsort;
		 FETCH 2 FROM c; EXECUTE p; COMMIT; EXECUTE p;
		 CREATE EXTENSION fmsort; EXECUTE p; DEALLOCATE p",
		join("\n",
			$bench->right, $bench->right, rows_right(9000, 2),
			($bench->right) x 3));
	$session->query_safe("PREPARE p AS $check EXECUTE p");
	$session->query_safe("BEGIN; DECLARE c NO SCROLL $plain; MOVE 9000 FROM c");
	$node->safe_psql('postgres', 'DROP EXTENSION fmsort');
	my ($rows) = $bench->ask($session, 'FETCH 2 FROM c; COMMIT; EXECUTE p');
	is($rows, rows_right(9000, 2) . "\n" . $bench->right,
		"$method, DROP EXTENSION elsewhere: cursor and plan go on");
	$node->safe_psql('postgres', 'CREATE EXTENSION fmsort');
	$session->query_safe('DEALLOCATE p');
	$session->quit;
}
$node->stop;

# ---- the library's file ------------------------------------------------------------------

# A server of its own that loads a copy which we may do with as we like.
my $dir = PostgreSQL::Test::Utils::tempdir();
my $library = "$dir/fmsort.so";
my ($pkglibdir) = run_command([ 'pg_config', '--pkglibdir' ]);

copy("$pkglibdir/fmsort.so", $library) or die "$library: $!";
$node = PostgreSQL::Test::Cluster->new('library');
$node->init;
$node->append_conf('postgresql.conf', <<"EOT");
fsync = off
autovacuum = off
session_preload_libraries = '$library'
fmsort.min_rows = 0
work_mem = '64kB'
parallel_setup_cost = 0
parallel_tuple_cost = 0
min_parallel_table_scan_size = 0
max_parallel_workers_per_gather = 0
EOT
$node->start;
$node->safe_psql('postgres', 'CREATE TABLE t AS SELECT i AS id,
	(i * 7919 % 10007) AS k, repeat(md5(i::text), 2) AS pay
	FROM generate_series(1, 20000) i; ANALYZE t');

my $sum = 'SELECT sum(n % 1009 * k), count(*) FROM (SELECT k,
	row_number() OVER () AS n FROM (SELECT k, pay FROM t ORDER BY k) s) r';
my $right = $node->safe_psql('postgres', "SET fmsort.mode = off; $sum");
my $session = $node->background_psql('postgres', on_error_stop => 0);

sub answer
{
	my ($sql) = @_;

	$session->{stderr} = '';
	my $rows = $session->query($sql);
	return ($rows, $session->{stderr});
}

$session->query_safe("PREPARE p AS $sum; EXECUTE p; LOAD '$library'");
like($session->query_safe('EXPLAIN EXECUTE p'),
	qr/Custom Scan \(FMSort\)/, 'library: it is loaded from there');
$session->query_safe('BEGIN; DECLARE c NO SCROLL CURSOR FOR
	SELECT k FROM t ORDER BY k; MOVE 10000 FROM c');
unlink $library or die "$library: $!";

my ($rows, $err) = answer('FETCH 1 FROM c; COMMIT; EXECUTE p');
like($rows, qr/^\d+\n\Q$right\E$/, 'library removed: cursor and plan go on');
is($err, '', '... without complaint');
($rows, $err) = answer('SET max_parallel_workers_per_gather = 2;
	SELECT count(*) FROM (SELECT k FROM t ORDER BY k OFFSET 0) s');
like($err, qr/could not access file/, '... parallel workers cannot have it');
is((answer('SET max_parallel_workers_per_gather = 0; EXECUTE p'))[0],
	$right, '... and the session goes on');
ok(!connects($node), '... and new ones cannot begin, as the setting says');

# As installing does it: another file under the same name.
copy("$pkglibdir/fmsort.so", "$library.new") or die "$library: $!";
rename "$library.new", $library or die "$library: $!";
is((answer('EXECUTE p'))[0], $right, 'library replaced: the plan goes on');
is( (answer('SET max_parallel_workers_per_gather = 2;
	SELECT count(*) FROM (SELECT k FROM t ORDER BY k OFFSET 0) s'))[0],
	'20000', '... and parallel workers load the new one');
is($node->safe_psql('postgres', $sum), $right, '... as do new sessions');

# ... and a library of another version, whose plans are not ours.
SKIP:
{
	my $other = $ENV{FMSORT_OTHER_VERSION};

	skip 'FMSORT_OTHER_VERSION names no library; see script/test', 3
	  unless $other && -e $other;
	copy($other, "$library.new") or die "$library: $!";
	rename "$library.new", $library or die "$library: $!";
	($rows, $err) = answer('\set VERBOSITY verbose
		SELECT count(*) FROM (SELECT k FROM t ORDER BY k OFFSET 0) s');
	like($err, qr/ERROR:  55000: this plan was made by another version of fmsort.*HINT:  Connect again/s,
		"another version: its workers do not take this session's plans");
	is((answer('SET max_parallel_workers_per_gather = 0; EXECUTE p'))[0],
		$right, '... and the session goes on without them');
	is($node->safe_psql('postgres', $sum), $right, '... as do new sessions');
}
$session->quit;
is(join(' ', temp_files($node)), '', '... and no file is left');

$node->stop;
done_testing();
