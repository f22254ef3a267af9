# fmsort.log_min_duration: one line in the log for a slow sort, none for a fast
# one, and for nobody but a superuser to say.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use FmsTest;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = fms_node('slow_log');

$node->safe_psql('postgres', <<'EOT');
CREATE ROLE plain LOGIN;
CREATE TABLE t AS SELECT i AS id, (i::bigint * 7919 % 10007)::int AS k,
  repeat('.', 50) AS pay FROM generate_series(1, 30000) i;
ANALYZE t;
EOT

# The lines about sorts that a statement makes.
sub logged
{
	my ($sql, @params) = @_;
	my $start = -s $node->logfile;
	my $err;

	$node->psql('postgres', $sql, stderr => \$err, extra_params => \@params);
	is($err, '', 'the client is told nothing');
	return grep { /LOG:  .*\bsort: \d/ }
	  split /\n/, slurp_file($node->logfile, $start);
}

my $sort = 'SELECT count(*) FROM (SELECT * FROM t ORDER BY k OFFSET 0) s';
my $number = qr/\d+\.\d+ ms/;

is(scalar(logged($sort)), 0, 'by default nothing is logged');
is(scalar(logged("SET fmsort.log_min_duration = '1h'; $sort")),
	0, 'nor if it was fast');

my @lines = logged("SET work_mem = '256kB'; SET fmsort.direct_io = auto;
	SET fmsort.log_min_duration = 0; $sort");
is(scalar(@lines), 1, 'an external sort: one line');
like(
	$lines[0],
	qr/sort: $number  Sort Method: external merge  Sort Space Used: \d+ kB  Sort Space Type: Disk  Rows: 30000  Merge Mode: fmsort  Runs: \d+  Merge Passes: 1  work_mem for One Pass: \d+ kB  work_mem in Memory: \d+ kB  Blocks: \d+ .*  Run Formation Time: $number  Input Time: $number  Block Order Time: $number  Merge Time: $number  Blocked Time: $number  Decision: .*page cache/,
	'... with all that helps to tune it');

@lines = logged("SET work_mem = '64MB'; SET fmsort.log_min_duration = 0; $sort");
is(scalar(@lines), 1, 'a sort in memory: one line');
like(
	$lines[0],
	qr/sort: $number  Sort Method: in-memory  Sort Space Used: \d+ kB  Sort Space Type: Memory  Rows: 30000  Run Formation Time: $number  Input Time: $number$/,
	'... a shorter one');

is( scalar(
		logged(
			"SET fmsort.log_min_duration = 0;
			 SELECT count(*) FROM generate_series(1, 3) g, LATERAL
			   (SELECT * FROM t WHERE id < g + 100 ORDER BY k OFFSET 0) s")),
	3,
	'a sort that is run three times: three lines');

# An input that takes its time: that is not the sort's.
@lines = logged(
	"SET fmsort.log_min_duration = 0; SELECT count(*) FROM (SELECT * FROM
	   (SELECT g, pg_sleep(CASE g WHEN 1 THEN 0.3 ELSE 0 END)::text
	    FROM generate_series(1, 3) g OFFSET 0) i ORDER BY -g OFFSET 0) s");
my ($own, $formation, $input) =
  $lines[0] =~ /sort: ([\d.]+) ms.*Formation Time: ([\d.]+) ms  Input Time: ([\d.]+) ms/;
cmp_ok($input, '>=', 300, 'a slow input');
cmp_ok(abs($formation - $input - $own),
	'<', 0.01, '... does not count as the sort\'s own time');

my $err;
$node->psql(
	'postgres', "\\set VERBOSITY verbose\nSET fmsort.log_min_duration = 0",
	stderr       => \$err,
	extra_params => [ '-U', 'plain' ]);
like($err, qr/ERROR:  42501: permission denied to set parameter/,
	'not for everybody to set');
$node->safe_psql('postgres', 'ALTER ROLE plain SET fmsort.log_min_duration = 0;
	GRANT SELECT ON t TO plain');
is(scalar(logged($sort, '-U', 'plain')),
	1, '... but for a superuser to set for anybody');

$node->stop;
done_testing();
