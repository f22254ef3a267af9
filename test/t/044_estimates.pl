# The planner's guesses are no promise: an input of 1e100 rows or of wide
# columns is sorted as it comes, and what is shown of the guess is a number
# that there is.
#
# Seen to fail with: progress.c casting the expected rows and the time left to
# 64 bits (-9223372036854775808 rows, an end before the beginning).

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use FmsTest;
use Test::More;

my $node = fms_node('estimates', 'shared_preload_libraries = fmsort',
	"work_mem = '64kB'");

$node->safe_psql('postgres', <<'EOT');
CREATE FUNCTION many(n int) RETURNS SETOF int LANGUAGE sql ROWS 1000000000
AS 'SELECT generate_series(1, n)';
CREATE FUNCTION wide(n int) RETURNS TABLE (i int, t text) LANGUAGE plpgsql
ROWS 1000000000 AS $$
BEGIN
  RETURN QUERY SELECT g, repeat('.', 300) FROM generate_series(1, n) g;
END
$$;
EOT

my $others = join ', ', map { "many(1) m$_" } 1 .. 12;
my $from = "FROM wide(3000) w, $others";

like(
	$node->safe_psql('postgres', "EXPLAIN SELECT * $from ORDER BY w.t, -w.i"),
	qr/FMSort.* rows=\d{90,} /, 'an estimate of 1e100 rows');

# ---- the sort itself ---------------------------------------------------------

foreach my $settings (
	'',
	'SET fmsort.direct_io = on;',
	'SET fmsort.compression = auto;',
	"SET work_mem = '4MB';",
	'SET fmsort.mode = flash;')
{
	is( $node->safe_psql(
			'postgres', "$settings
			SELECT count(*), md5(string_agg(i::text, ' ')) FROM
			  (SELECT w.i, w.t $from ORDER BY w.t, -w.i OFFSET 0) s"),
		$node->safe_psql(
			'postgres', "SET fmsort.mode = off;
			SELECT count(*), md5(string_agg(i::text, ' ')) FROM
			  (SELECT w.i, w.t $from ORDER BY w.t, -w.i OFFSET 0) s"),
		"sorted: $settings");
}

# ---- progress ----------------------------------------------------------------

my $session = $node->background_psql('postgres');
my $pid = $session->query_safe('SELECT pg_backend_pid()');

sub look
{
	return $node->safe_psql('postgres', "SELECT phase,
		tuples_done, tuples_total, percent BETWEEN 0 AND 100,
		estimated_end_time IS NULL OR estimated_end_time >= start_time,
		start_time <= now()
		FROM fmsort_progress WHERE pid = $pid");
}

$session->query_safe("BEGIN; DECLARE c NO SCROLL CURSOR FOR
	SELECT w.i, w.t $from ORDER BY w.t, -w.i; FETCH 1 FROM c");
is(look(), 'last merge|3000|9223372036854775807|t|t|t',
	'progress of the last merge');
$session->query_safe('ROLLBACK');

# while rows come in: the input looks at its own sort
$node->safe_psql('postgres', "CREATE FUNCTION seen(i int) RETURNS text
	LANGUAGE plpgsql AS \$\$
	BEGIN
	  RETURN (SELECT concat_ws('|', phase, tuples_total,
	      percent BETWEEN 0 AND 100,
	      estimated_end_time IS NULL OR estimated_end_time >= start_time)
	    FROM fmsort_progress WHERE pid = pg_backend_pid() LIMIT 1);
	END \$\$");
is( $session->query_safe(
		"SELECT DISTINCT seen FROM (SELECT w.i, w.t, CASE WHEN i % 500 = 0
		   THEN seen(i) END AS seen $from ORDER BY w.t, seen, -w.i OFFSET 0) s
		 WHERE seen IS NOT NULL"),
	'run formation|9223372036854775807|t|t', 'progress of run formation');
$session->quit;

$node->stop;
done_testing();
