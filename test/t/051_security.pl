# What a sort must not give away: files that others may read, bytes of other
# data in them, a superuser's rights to functions that somebody planted; and
# memory beyond work_mem to whoever asks for it.
#
# Seen to fail with: tuples copied without zeroing the last word of their
# record, in formation.c; "concat_ws(" and "format(" unqualified in the
# extension's script; fits() of sizing.c always true.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use FmsTest;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = fms_node('security', "work_mem = '256kB'");

$node->safe_psql('postgres', <<'EOS');
CREATE ROLE plain LOGIN;
CREATE TABLE secrets AS SELECT i AS id, repeat('~', 60 + i % 40) AS s
  FROM generate_series(1, 8000) i;
CREATE TABLE t AS SELECT i AS id, (i::bigint * 7919 % 10007)::int AS k,
  repeat('.', i % 61) AS pay FROM generate_series(1, 60000) i;
GRANT SELECT ON t TO plain;
ANALYZE;
EOS

sub session
{
	my (@settings) = @_;
	my $session = $node->background_psql('postgres', on_error_stop => 0);

	$session->query_safe("SET $_") foreach @settings;
	return $session;
}

# ---- who may read the files --------------------------------------------------

{
	my $session = session('fmsort.block_size = 512');

	$session->query_safe('BEGIN; DECLARE c NO SCROLL CURSOR FOR
		SELECT * FROM t ORDER BY k; MOVE 1 FROM c');
	my @files = temp_files($node);
	my ($directory) = $files[0] =~ m{^(.*)/};

	cmp_ok(scalar @files, '>=', 2, 'blocks and the block read order are files');
	is(join(' ', map { sprintf '%04o', (stat $_)[2] & 07777 } @files),
		join(' ', ('0600') x @files), 'which only the server may read');
	is(sprintf('%04o', (stat $directory)[2] & 07777),
		'0700', 'in a directory that only the server may enter');
	$session->quit;
}

# ---- what is in them ----------------------------------------------------------

# All temporary files of a sort that comes after one of secrets, in the same
# process and the same memory.
sub written_after_secrets
{
	my (@settings) = @_;
	my $session = session(@settings);
	my $bytes = '';

	$session->query_safe('SELECT count(*) FROM
		(SELECT s FROM secrets ORDER BY s, id OFFSET 1) x') foreach 1 .. 3;
	# in memory, too: small sorts use memory that the process has used
	$session->query_safe('SELECT count(*) FROM
		(SELECT s FROM secrets WHERE id < 200 ORDER BY s, id OFFSET 1) x');
	$session->query_safe('BEGIN; DECLARE c NO SCROLL CURSOR FOR
		SELECT pay, id FROM t ORDER BY k, pay; MOVE 1 FROM c');
	$bytes .= slurp_file($_) foreach temp_files($node);
	$session->query_safe('COMMIT');
	$session->quit;
	return $bytes;
}

foreach my $block (0, 512, 2560, 65536)
{
	foreach my $method (uring_works($node) ? qw(io_uring sync) : 'sync')
	{
		my $bytes = written_after_secrets("fmsort.block_size = $block",
			"fmsort.io_method = $method");

		cmp_ok(length $bytes, '>', 1_000_000, "block size $block, $method: "
			  . 'a megabyte was written');
		is(index($bytes, '~~~'), -1,
			'... and nothing of what was sorted before');
		# freed memory of a server with assertions, of a test of the C library
		is(index($bytes, "\x7f" x 4), -1, '... nor of memory that was freed');
	}
}

# ---- hostile names, where CREATE EXTENSION will find them -----------------------

$node->safe_psql('postgres', <<'EOS');
CREATE DATABASE planted;
EOS
$node->safe_psql('planted', <<'EOS');
GRANT CREATE ON SCHEMA public TO plain;
CREATE TABLE caught (what text);
GRANT INSERT ON caught TO PUBLIC;
EOS

# Of every name that the script could use unqualified, one that fits better.
$node->safe_psql('planted', <<'EOS', extra_params => [ '-U', 'plain' ]);
CREATE FUNCTION public.catch(what text) RETURNS void LANGUAGE plpgsql AS
  $$ BEGIN INSERT INTO public.caught
     VALUES (what || ' as ' || current_user); END $$;
CREATE FUNCTION public.concat_ws(text, text, text, text) RETURNS text
  LANGUAGE plpgsql AS
  $$ BEGIN PERFORM public.catch('concat_ws'); RETURN ''; END $$;
CREATE FUNCTION public.concat_ws(text, text, text) RETURNS text
  LANGUAGE plpgsql AS
  $$ BEGIN PERFORM public.catch('concat_ws'); RETURN ''; END $$;
CREATE FUNCTION public.string_to_array(text, varchar) RETURNS text[]
  LANGUAGE plpgsql AS
  $$ BEGIN PERFORM public.catch('string_to_array'); RETURN '{}'; END $$;
CREATE FUNCTION public.unnest(text[]) RETURNS SETOF text LANGUAGE plpgsql AS
  $$ BEGIN PERFORM public.catch('unnest'); END $$;
CREATE FUNCTION public.format(text, name, text) RETURNS text
  LANGUAGE plpgsql AS
  $$ BEGIN PERFORM public.catch('format'); RETURN ''; END $$;
CREATE FUNCTION public.btrim(text, varchar) RETURNS text LANGUAGE plpgsql AS
  $$ BEGIN PERFORM public.catch('btrim'); RETURN ''; END $$;
CREATE FUNCTION public.quote_literal(varchar) RETURNS text
  LANGUAGE plpgsql AS
  $$ BEGIN PERFORM public.catch('quote_literal'); RETURN ''; END $$;
CREATE FUNCTION public.set_config(text, text, boolean) RETURNS text
  LANGUAGE plpgsql AS
  $$ BEGIN PERFORM public.catch('set_config'); RETURN ''; END $$;
CREATE FUNCTION public.tilde(text, varchar) RETURNS boolean
  LANGUAGE plpgsql AS
  $$ BEGIN PERFORM public.catch('~'); RETURN false; END $$;
CREATE OPERATOR public.~ (leftarg = text, rightarg = varchar,
  function = public.tilde);
CREATE OPERATOR public.= (leftarg = text, rightarg = varchar,
  function = public.tilde);
CREATE OPERATOR public.<> (leftarg = text, rightarg = varchar,
  function = public.tilde);
CREATE FUNCTION public.current_setting(text) RETURNS text
  LANGUAGE plpgsql AS
  $$ BEGIN PERFORM public.catch('current_setting'); RETURN ''; END $$;
CREATE FUNCTION public.round(numeric, int) RETURNS numeric
  LANGUAGE plpgsql AS
  $$ BEGIN PERFORM public.catch('round'); RETURN 1; END $$;
CREATE FUNCTION public.cardinality(text[]) RETURNS int
  LANGUAGE plpgsql AS
  $$ BEGIN PERFORM public.catch('cardinality'); RETURN 1; END $$;
CREATE FUNCTION public.number(int, int) RETURNS int LANGUAGE plpgsql AS
  $$ BEGIN PERFORM public.catch('number'); RETURN 1; END $$;
CREATE FUNCTION public.ratio(float8, float8) RETURNS float8
  LANGUAGE plpgsql AS
  $$ BEGIN PERFORM public.catch('ratio'); RETURN 1; END $$;
CREATE FUNCTION public.same(bigint, int) RETURNS boolean LANGUAGE plpgsql AS
  $$ BEGIN PERFORM public.catch('same'); RETURN true; END $$;
CREATE FUNCTION public.joined(text, text) RETURNS text LANGUAGE plpgsql AS
  $$ BEGIN PERFORM public.catch('||'); RETURN ''; END $$;
CREATE OPERATOR public.+ (leftarg = int, rightarg = int,
  function = public.number);
CREATE OPERATOR public./ (leftarg = int, rightarg = int,
  function = public.number);
CREATE OPERATOR public./ (leftarg = float8, rightarg = float8,
  function = public.ratio);
CREATE OPERATOR public.= (leftarg = bigint, rightarg = int,
  function = public.same);
CREATE OPERATOR public.|| (leftarg = text, rightarg = text,
  function = public.joined);
CREATE DOMAIN public.text AS pg_catalog.text;
CREATE FUNCTION public.fmsort_last_sort() RETURNS int LANGUAGE plpgsql AS
  $$ BEGIN PERFORM public.catch('fmsort_last_sort'); RETURN 1; END $$;
EOS

# sessions without the library get the notice, and so run all of the script
my ($status, undef, $err) = $node->psql('planted',
	"SET search_path = public, pg_catalog; CREATE EXTENSION fmsort",
	on_error_stop => 0);
like($err, qr/function "fmsort_last_sort" already exists/,
	'a function of its name that another role has made is not taken over');
$node->safe_psql('planted', 'DROP FUNCTION public.fmsort_last_sort()');
$node->safe_psql('planted', <<'EOS');
SET session_preload_libraries = ''; SET search_path = public, pg_catalog;
CREATE EXTENSION fmsort
EOS
is($node->safe_psql('planted', 'SELECT string_agg(what, $$, $$) FROM caught'),
	'', 'CREATE EXTENSION calls nothing that others have made');
$node->safe_psql('planted', <<'EOS');
SET search_path = public, pg_catalog;
SELECT fmsort_compare('SELECT 1'), fmsort_compare_merges('SELECT 1');
EOS
is($node->safe_psql('planted', 'SELECT string_agg(what, $$, $$) FROM caught'),
	'', '... nor do fmsort_compare() and fmsort_compare_merges()');

# ---- memory ---------------------------------------------------------------------

SKIP:
{
	my $why = "the peak of a process's memory cannot be reset here";

	if (!reset_peak($$))
	{
		die "$why\n" if ($ENV{CI} // '') eq 'true';
		skip $why, 3;
	}
	foreach my $mode (qw(fmsort double_buffering traditional))
	{
		my $session = $node->background_psql('postgres',
			extra_params => [ '-U', 'plain' ]);
		my $pid = $session->query_safe('SELECT pg_backend_pid()');
		my $sort = 'SELECT count(pay) FROM
			(SELECT * FROM t ORDER BY k OFFSET 1) s';

		$session->query_safe("SET fmsort.mode = $mode; $sort");
		reset_peak($pid);
		my $before = status_kb($pid, 'VmHWM');
		$session->query_safe("SET fmsort.assist_blocks = 1024;
			SET fmsort.block_size = '4MB'; $sort");
		cmp_ok(status_kb($pid, 'VmHWM') - $before,
			'<', 256 + 4096,
			"$mode: 1024 blocks of 4 MB asked for, work_mem is 256 kB: kB");
		$session->quit;
	}
}

$node->stop;
done_testing();
