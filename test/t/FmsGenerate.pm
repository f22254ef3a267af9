package FmsGenerate;

# Generates the cases of 008_generated.pl: worlds, which are tables of some
# rows, and in each world statements that sort them in one of many ways.
#
# A case has two pieces of SQL that must print the same, one for PostgreSQL's
# sort and one for ours.  Everything about case number n of a seed follows from
# those two numbers, and from what the server has to offer (collations, I/O),
# so that it can be made again alone.
#
# Three ways to be exact although PostgreSQL's sort is not stable:
#
#   total	the last key is the row's number: there is one answer only
#   stable	no such key for ours, which must leave ties in order of arrival,
#			but one for PostgreSQL's, whose order is then that of arrival
#   ties	no such key for either: the keys' values must be the same in
#			the same sequence, and what follows a # only if each sort of
#			the statement was ours; PostgreSQL's has the row's number as
#			last key, as in stable
#
# Where even the set of rows depends on ties, or the order is that of a join,
# rows are counted and their hashes added up.

use strict;
use warnings;

use Digest::MD5 'md5_hex';
use Exporter 'import';

our @EXPORT = qw(gen_prelude gen_types gen_world gen_case
  gen_cases_per_world);

my $cases_per_world = 24;

sub gen_cases_per_world { return $cases_per_world }

# ---- chance -----------------------------------------------------------------

# Neighbouring seeds give rand() neighbouring values, so they are hashed.
sub seed_with
{
	srand(hex(substr(md5_hex(join ' ', @_), 0, 8)));
	return;
}

sub pick { return $_[ rand @_ ] }

sub chance { return rand(100) < $_[0] }

sub between
{
	my ($low, $high) = @_;

	return $low + int(rand($high - $low + 1));
}

sub shuffled
{
	my @list = @_;

	foreach my $i (reverse 1 .. $#list)
	{
		my $j = int(rand($i + 1));

		@list[ $i, $j ] = @list[ $j, $i ];
	}
	return @list;
}

# ---- types ------------------------------------------------------------------

# name => [SQL type, the expression of a value, special values or '', flags].
# The value is made from h, a small number, so that equal numbers make equal
# values; x and y are two large random numbers that follow from it.
#
#   text	takes COLLATE; pattern: and ~<~
#   alias	values can be equal and print differently
#   wide	values too long for an index
#   values	how many there are, if few
my %types = (
	int2 => [ 'int2', 'x % 65536 - 32768', '-32768, 32767, 0, -1, 1' ],
	int4 => [
		'int4', 'x % 4294967296 - 2147483648',
		'-2147483648, 2147483647, 0, -1, 1, 256'
	],
	int4_small => [ 'int4', 'x % 200 - 100', '', 'values=200' ],
	int8       => [
		'int8',
		'CASE WHEN y % 2 = 0 THEN x ELSE -x END',
		q{'-9223372036854775808', '9223372036854775807', 0, -1, 1}
	],
	bool   => [ 'bool',   'x % 2 = 0', '', 'values=2' ],
	"char" => [ '"char"', '(x % 256 - 128)::int4', '', 'values=100' ],
	oid    => [
		'oid',
		'x % 4294967296',
		q{'0', '4294967295', '2147483648', '2147483647'}
	],
	float4 => [
		'float4',
		'((x % 2000001 - 1000000) / 997.0 * 10.0 ^ (y % 20 - 10))::float4',
		q{'NaN', - 'NaN'::float4, '-0', '0', '-Infinity', 'Infinity',
		'1e-45', '3.4e38', '-1', '1'},
		'alias'
	],
	float8 => [
		'float8',
		'(x % 2000001 - 1000000) / 997.0::float8 * 10.0::float8 ^
		(y % 40 - 20)::float8',
		q{'NaN', - 'NaN'::float8, '-0', '0', '-Infinity', 'Infinity',
		'5e-324', '1.7e308', '-1', '1'},
		'alias'
	],
	numeric => [
		'numeric',
		'CASE y % 5
		WHEN 0 THEN round((x % 1000)::numeric / 10, (y % 7)::int)
		WHEN 1 THEN x::numeric * y * 10.0 ^ (y % 30)::int
		WHEN 2 THEN -x::numeric / 1000000007
		WHEN 3 THEN round((x % 30 - 15)::numeric, (y % 4)::int)
		ELSE (x % 2000)::numeric / 1000 - 1 END',
		q{'NaN', 'Infinity', '-Infinity', '0', '0.00', '-0.0', '1', '1.0',
		'1.00', '1e1000', '-1e1000', '1e-1000', '-1e-1000', '1e200',
		'9999', '10000', '9999.9999'},
		'alias'
	],
	numeric_scaled => [
		'numeric(20,4)', '(x % 4000000000 - 2000000000)::numeric / 317',
		q{'NaN', '0', '1', '-1'}
	],
	text_words => [
		'text', "word(x) || CASE y % 3 WHEN 0 THEN ''
		WHEN 1 THEN (h % 10)::text ELSE word(y) END", '',
		'text pattern'
	],
	text_short => [
		'text', 'left(md5(h::text), (y % 12)::int)', q{'', 'a', 'A', ' '},
		'text pattern'
	],
	text_prefix => [
		'text',
		q{repeat('common', 4 + 3 * (y % 3)::int) || left(md5(h::text),
		(y % 9)::int)}, '', 'text pattern'
	],
	text_long => [
		'text',
		q{CASE WHEN y % 25 = 0 THEN repeat(md5(h::text), 20 + (h % 150)::int)
		WHEN y % 25 = 1 THEN repeat('long', 700) || md5(h::text)
		ELSE repeat('long', 20) || md5(h::text) END}, '', 'text pattern wide'
	],
	varchar => [
		'varchar(30)',
		"left(word(x) || md5(y::text), 1 + (y % 30)::int)",
		q{'', ' '}, 'text pattern'
	],
	bpchar20 => [
		'char(20)', "left(word(x) || md5(y::text),
		1 + (y % 20)::int)", q{'', 'a', 'a '}, 'text pattern'
	],
	bpchar => [
		'bpchar', "left(word(x) || md5(y::text),
		1 + (y % 9)::int) || repeat(' ', (y % 4)::int)",
		q{'', ' ', 'a', 'a ', 'a  '}, 'text pattern alias'
	],
	name => [
		'name', "left(word(x) || md5(y::text),
		(y % 40)::int)", q{'', 'a', 'A'}, 'text'
	],
	bytea => [
		'bytea',
		q{decode(repeat('00', (y % 35)::int) || left(md5(h::text),
		2 * (y % 12)::int) || repeat('00', (y % 3)::int), 'hex')},
		q{'\x', '\x00', '\x0000', '\xff', '\xff00', '\x00ff'}
	],
	bytea_long => [
		'bytea', q{decode(repeat('00', (y % 3)::int) || repeat(md5(h::text),
		1 + (y % 90)::int), 'hex')}, '', 'wide'
	],
	date => [
		'date',
		q{'2000-01-01'::date + (x % 40001 - 20000)::int},
		q{'infinity', '-infinity', '4713-01-01 BC', '5874897-12-31',
		'2000-01-01', '1999-12-31'}
	],
	time => [
		'time', q{'00:00'::time + make_interval(secs =>
		(x % 86400000)::float8 / 1000)}, q{'00:00', '24:00', '23:59:59.999999'}
	],
	timetz => [
		'timetz',
		q{(to_char(x % 24, 'FM00') || ':' || to_char(x % 60, 'FM00') || '+'
		|| to_char(y % 13, 'FM00') || to_char(15 * (y % 4), ':FM00'))::timetz},
		q{'12:00+00', '13:00+01', '11:00-01', '24:00-08', '00:00+15'}
	],
	timestamp => [
		'timestamp',
		q{'2000-01-01'::timestamp + make_interval(secs =>
		(x % 2000000001 - 1000000000)::float8)},
		q{'infinity', '-infinity', '4713-01-01 BC', '294276-12-31 23:59:59'}
	],
	timestamptz => [
		'timestamptz',
		q{to_timestamp((x % 4000000000)::float8 + (y % 1000) / 1000.0)},
		q{'infinity', '-infinity', 'epoch', '2000-01-01 00:00+01',
		'1999-12-31 23:00+00'}
	],
	interval => [
		'interval',
		q{make_interval(months => (x % 25 - 12)::int,
		days => (y % 721 - 360)::int, secs => (x % 200001 - 100000)::float8)},
		q{'1 mon', '30 days', '720 hours', '-1 mon 30 days', '0',
		'1 day -24 hours', '-1 mon', '-30 days', '1 mon -1 day',
		'178000000 years', '-178000000 years'},
		'alias'
	],
	uuid => [
		'uuid',
		q{CASE y % 3 WHEN 0 THEN ('00000000-0000-0000-0000-'
		|| lpad(to_hex(h), 12, '0'))::uuid ELSE md5(h::text)::uuid END},
		q{'00000000-0000-0000-0000-000000000000',
		'ffffffff-ffff-ffff-ffff-ffffffffffff'}
	],
	inet => [
		'inet',
		q{CASE y % 3 WHEN 0 THEN set_masklen(('2001:db8:' || to_hex(x % 65536)
		|| '::' || to_hex(y % 65536))::inet, (x % 129)::int)
		ELSE set_masklen('0.0.0.0'::inet + x % 4294967296, (y % 33)::int) END},
		q{'10.0.0.1', '10.0.0.1/8', '10.0.0.0/8', '::', '0.0.0.0/0',
		'255.255.255.255', '::ffff:10.0.0.1'}
	],
	cidr => [
		'cidr',
		q{network(set_masklen('0.0.0.0'::inet + x % 4294967296,
		(y % 33)::int))}, q{'10/8', '10.0/16', '::/0', '0/0', '2001:db8::/32'}
	],
	macaddr => [
		'macaddr', q{left(md5(h::text), 12)::macaddr},
		q{'00:00:00:00:00:00', 'ff:ff:ff:ff:ff:ff', '80:00:00:00:00:00'}
	],
	macaddr8 => [
		'macaddr8', q{left(md5(h::text), 16)::macaddr8},
		q{'00:00:00:00:00:00:00:00', 'ff:ff:ff:ff:ff:ff:ff:ff'}
	],
	bit => [ 'bit(13)', '(x % 8192)::int::bit(13)', '', 'values=8192' ],
	varbit => [
		'varbit', 'substring(x::bit(64)::varbit FROM 1 FOR (y % 65)::int)',
		q{'', '0', '00', '1', '10', '100000000', '00000001', '000000010'}
	],
	tid => [
		'tid',
		q{('(' || x % 300 || ',' || 1 + y % 50 || ')')::tid},
		q{'(0,0)', '(4294967295,65535)', '(2147483648,1)'}
	],
	pg_lsn => [
		'pg_lsn', q{'0/0'::pg_lsn + x::numeric},
		q{'0/0', 'FFFFFFFF/FFFFFFFF', '80000000/0', '0/FFFFFFFF'}
	],
	xid8 => [
		'xid8',
		'x::text::xid8',
		q{'0', '18446744073709551615', '9223372036854775808',
		'9223372036854775807'}
	],
	money => [
		'money', '((x % 2000000001 - 1000000000)::numeric / 100)::money',
		q{'-92233720368547758.08', '92233720368547758.07', '0', '-0.01'}
	],
	enum => [
		'mood', q{(enum_range(NULL::mood))[1 + x % 9]}, '', 'values=9'
	],
	int_array => [
		'int4[]',
		q{CASE y % 8 WHEN 0 THEN '{}' WHEN 1 THEN ARRAY[x % 4, NULL]::int4[]
		WHEN 2 THEN ARRAY[[x % 3], [y % 5]]::int4[]
		WHEN 3 THEN '[0:1]={1,2}' WHEN 4 THEN '{1,2}'
		ELSE ARRAY[x % 10 - 5, y % 1000, h % 1000]::int4[] END}
	],
	text_array => [
		'text[]',
		"CASE y % 4 WHEN 0 THEN ARRAY[word(x), NULL]
		WHEN 1 THEN '{}' ELSE ARRAY[word(x), md5(y::text)] END",
		'', 'text'
	],
	numeric_array => [
		'numeric[]', 'ARRAY[round((x % 9)::numeric, (y % 3)::int),
		(y % 100)::numeric / 7]', '', 'alias'
	],
	composite => [
		'pair',
		"ROW(nullif(x % 5, 3), nullif(word(y), 'z'))::pair"
	],
	int_range => [
		'int4range',
		q{CASE y % 6 WHEN 0 THEN 'empty' WHEN 1 THEN
		int4range(NULL, (x % 100)::int) WHEN 2 THEN
		int4range((x % 100)::int, NULL) ELSE int4range((x % 100)::int,
		(x % 100 + y % 20)::int, '[]') END}, q{'(,)', 'empty', '[1,1]'}
	],
	num_range => [
		'numrange', q{numrange(round((x % 10)::numeric, (y % 2)::int),
		(x % 10 + y % 5)::numeric, (ARRAY['[]','[)','(]','()'])[1 + y % 4])},
		'', 'alias'
	],
	int_multirange => [
		'int4multirange',
		'int4multirange(int4range((x % 20)::int, (x % 20 + y % 7)::int),
		int4range(50, (50 + y % 50)::int))', q{'{}', '{(,)}'}
	],
	jsonb => [
		'jsonb',
		q{CASE y % 9 WHEN 0 THEN to_jsonb(x % 50) WHEN 1 THEN
		to_jsonb(md5(h::text)) WHEN 2 THEN jsonb_build_object('a', x % 9)
		WHEN 3 THEN jsonb_build_array(x % 5, y % 5) WHEN 4 THEN
		jsonb_build_object('b', x % 3, 'a', y % 3) WHEN 5 THEN
		to_jsonb(round((x % 5)::numeric, (y % 4)::int)) WHEN 6 THEN
		to_jsonb(x % 2 = 0) ELSE to_jsonb(left(md5(h::text), 3)) END},
		q{'null', '{}', '[]', '1', '1.0', '1.00', '""', '[1]', '[[1]]'},
		'alias'
	],
	tsvector => [
		'tsvector',
		q{('w' || x % 30 || ':' || 1 + y % 9 || ' v' || y % 20 || ':1A')::
		tsvector}, q{'', 'a', 'a:1', 'a:1A'}, 'alias'
	],
	d_int   => [ 'd_int',  'x % 100000', '-1, 0, 1' ],
	d_text  => [ 'd_text', q{left(md5(h::text), (y % 20)::int)}, '', 'text' ],
	d_mood  => [ 'd_mood', q{(enum_range(NULL::mood))[1 + x % 9]}, '',
		'values=9' ],
	d_array => [ 'd_array', 'ARRAY[x % 30, y % 30]' ],
	d_pair  => [ 'd_pair', q{ROW(x % 30, left(md5(h::text), 2))::pair} ],);
my @type_names = sort keys %types;

sub gen_types { return @type_names }

sub flag
{
	my ($type, $flag) = @_;
	my $flags = $types{$type}[3] // '';

	return $flags =~ /\b$flag\b(?:=(\d+))?/ ? $1 // 1 : 0;
}

# ---- what every database has ------------------------------------------------

my $prelude = <<'EOT';
CREATE FUNCTION mix(h bigint, salt int) RETURNS bigint
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS
'SELECT hashint8extended(h, salt) & 9223372036854775807';

CREATE FUNCTION word(n bigint) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$ SELECT (
  ARRAY['', ' ', 'a', 'A', 'aa', 'Aa', 'ab', 'a b', 'a-b', 'A B',
   'á', 'Á', 'a' || U&'\0301', 'ä', 'Ä', 'ae', 'b', 'B', 'ß', 'ss', 'SS',
   'z', 'Z', 'zebra', 'İ', 'ı', 'i', 'I', 'ø', 'o', '1', '10', '2', '-1',
   '_', '~', '!', '中', '中文', '🙂', 'co-op', 'coop', 'CO-OP']
  )[1 + n % 43] $$;

CREATE TYPE mood AS ENUM ('m', 'x');
ALTER TYPE mood ADD VALUE 'c' BEFORE 'm';
ALTER TYPE mood ADD VALUE 'a' BEFORE 'c';
ALTER TYPE mood ADD VALUE 'b' BEFORE 'c';
ALTER TYPE mood ADD VALUE 'z' AFTER 'x';
ALTER TYPE mood ADD VALUE 'y' BEFORE 'z';
ALTER TYPE mood ADD VALUE 'n' AFTER 'm';
ALTER TYPE mood ADD VALUE '0' BEFORE 'a';
CREATE TYPE pair AS (a int, b text);
CREATE DOMAIN d_int AS int CHECK (VALUE > -10);
CREATE DOMAIN d_text AS text COLLATE "C";
CREATE DOMAIN d_mood AS mood;
CREATE DOMAIN d_array AS int[];
CREATE DOMAIN d_pair AS pair;

-- int4 as if it were unsigned: an order that is not the type's own
CREATE FUNCTION u_lt(int4, int4) RETURNS bool LANGUAGE internal
IMMUTABLE STRICT PARALLEL SAFE AS 'oidlt';
CREATE FUNCTION u_le(int4, int4) RETURNS bool LANGUAGE internal
IMMUTABLE STRICT PARALLEL SAFE AS 'oidle';
CREATE FUNCTION u_eq(int4, int4) RETURNS bool LANGUAGE internal
IMMUTABLE STRICT PARALLEL SAFE AS 'oideq';
CREATE FUNCTION u_ge(int4, int4) RETURNS bool LANGUAGE internal
IMMUTABLE STRICT PARALLEL SAFE AS 'oidge';
CREATE FUNCTION u_gt(int4, int4) RETURNS bool LANGUAGE internal
IMMUTABLE STRICT PARALLEL SAFE AS 'oidgt';
CREATE FUNCTION u_cmp(int4, int4) RETURNS int4 LANGUAGE internal
IMMUTABLE STRICT PARALLEL SAFE AS 'btoidcmp';
CREATE OPERATOR <% (LEFTARG = int4, RIGHTARG = int4, FUNCTION = u_lt);
CREATE OPERATOR <=% (LEFTARG = int4, RIGHTARG = int4, FUNCTION = u_le);
CREATE OPERATOR =% (LEFTARG = int4, RIGHTARG = int4, FUNCTION = u_eq);
CREATE OPERATOR >=% (LEFTARG = int4, RIGHTARG = int4, FUNCTION = u_ge);
CREATE OPERATOR >% (LEFTARG = int4, RIGHTARG = int4, FUNCTION = u_gt);
CREATE OPERATOR CLASS unsigned_ops FOR TYPE int4 USING btree AS
  OPERATOR 1 <%, OPERATOR 2 <=%, OPERATOR 3 =%, OPERATOR 4 >=%,
  OPERATOR 5 >%, FUNCTION 1 u_cmp(int4, int4);

-- The rows of a cursor through a sequence of movements.
CREATE FUNCTION walk(walked refcursor, moves text[]) RETURNS text
LANGUAGE plpgsql AS
$$
DECLARE
  r record;
  move text;
  n int := 0;
  answer text := '';
BEGIN
  FOREACH move IN ARRAY moves LOOP
    IF move LIKE 'MOVE%' THEN
      EXECUTE format('%s FROM %I', move, walked);
    ELSE
      FOR r IN EXECUTE format('%s FROM %I', move, walked) LOOP
        n := n + 1;
        answer := md5(answer || r::text);
      END LOOP;
    END IF;
    answer := md5(answer || move);
  END LOOP;
  RETURN n || ' ' || answer;
END
$$;

-- What a cursor of PL/pgSQL gives, and refuses, in a sequence of movements.
CREATE FUNCTION refusals(query text, scroll text, moves text[]) RETURNS text
LANGUAGE plpgsql AS
$$
DECLARE
  c refcursor;
  r record;
  move text;
  n int;
  answer text := '';
BEGIN
  IF scroll = 'SCROLL' THEN
    OPEN c SCROLL FOR EXECUTE query;
  ELSIF scroll = 'NO SCROLL' THEN
    OPEN c NO SCROLL FOR EXECUTE query;
  ELSE
    OPEN c FOR EXECUTE query;
  END IF;
  FOREACH move IN ARRAY moves LOOP
    n := coalesce(substring(move from '-?\d+')::int, 1);
    BEGIN
      CASE
        WHEN move LIKE 'FETCH ABSOLUTE%' THEN FETCH ABSOLUTE n FROM c INTO r;
        WHEN move LIKE 'FETCH RELATIVE%' THEN FETCH RELATIVE n FROM c INTO r;
        WHEN move LIKE 'FETCH BACKWARD%' THEN FETCH BACKWARD FROM c INTO r;
        WHEN move LIKE 'FETCH PRIOR' THEN FETCH PRIOR FROM c INTO r;
        WHEN move LIKE 'FETCH FIRST' THEN FETCH FIRST FROM c INTO r;
        WHEN move LIKE 'FETCH LAST' THEN FETCH LAST FROM c INTO r;
        WHEN move LIKE 'MOVE BACKWARD%' THEN MOVE BACKWARD n FROM c;
        WHEN move LIKE 'MOVE ABSOLUTE%' THEN MOVE ABSOLUTE n FROM c;
        WHEN move LIKE 'MOVE PRIOR%' THEN MOVE PRIOR FROM c;
        WHEN move LIKE 'MOVE%' THEN EXECUTE move || ' FROM ' || quote_ident(c::text);
        ELSE FETCH FORWARD FROM c INTO r;
      END CASE;
      answer := answer || ' ' || move || ' ' || coalesce(r::text, 'null') || ' '
        || FOUND;
    EXCEPTION WHEN OTHERS THEN
      answer := answer || ' ' || move || ' told ' || SQLSTATE || ' '
        || replace(SQLERRM, c::text, 'c');
    END;
  END LOOP;
  RETURN answer;
END
$$;
EOT

# has: collations => names as in SQL, nondeterministic => one more or ''.
sub gen_prelude
{
	my ($has) = @_;
	my $sql = $prelude;

	$sql .= <<'EOT' if $has->{nondeterministic};
CREATE COLLATION nocase (provider = icu, locale = 'und-u-ks-level2',
  deterministic = false);
EOT
	foreach my $name (@type_names)
	{
		my ($type, $value, $specials) = @{ $types{$name} };
		my $expression = "($value)";

		$expression =~ s/\bx\b(?!\d)/mix(h, 5)/g;
		$expression =~ s/\by\b(?!\d)/mix(h, 6)/g;
		if ($specials)
		{
			my $count = () = $specials =~ /'[^']*'|(?<![a-z\d])-?\d+/g;

			$expression = "CASE WHEN mix(h, 1) % 10 < 2
  THEN (ARRAY[$specials]::${type}[])[1 + mix(h, 2) % $count]
  ELSE $expression END";
		}
		$sql .= <<EOT;
CREATE FUNCTION g_$name(h bigint) RETURNS $type
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS
\$\$ SELECT ${expression}::${type} \$\$;
EOT
	}
	return $sql;
}

# ---- worlds -----------------------------------------------------------------

my $columns = 5;

# How many rows, mostly enough to spill.
sub row_count
{
	my $kind = rand 100;

	return 0 if $kind < 1;
	return between(1, 2) if $kind < 3;
	return between(3, 30) if $kind < 8;
	return between(100, 900) if $kind < 20;
	return between(900, 2800) if $kind < 90;
	return between(2800, 5000);
}

sub column_sql
{
	my ($column, $salt) = @_;
	my $value = "g_$column->{type}(mix(i, $salt) % $column->{distinct})";

	return $value if !$column->{nulls};
	return "CASE WHEN mix(i, $salt + 1) % 100 >= $column->{nulls} "
	  . "THEN $value END";
}

# The two tables of world w: t<w>, and s<w> with other rows of the same kind.
# id is the number in order of arrival, j some row's number.
sub gen_world
{
	my ($seed, $number, $has) = @_;

	# all worlds of a seed take their types from one sequence
	seed_with($seed, 'types', int($number * $columns / @type_names));
	my @order = shuffled(@type_names);
	seed_with($seed, 'types', 1 + int($number * $columns / @type_names));
	push @order, shuffled(@type_names);
	my $first = $number * $columns % @type_names;
	my @types = @order[ $first .. $first + $columns - 1 ];

	seed_with($seed, 'world', $number);
	my $rows = row_count();
	my %world = (
		number => $number,
		rows   => $rows,
		others => int($rows / pick(2, 3, 10)),
		db     => $has->{databases}[ $number % @{ $has->{databases} } ],
		t      => "t$number",
		s      => "s$number",);
	my %distinct = (
		unique => 10 * $rows + 1,
		some   => int($rows / 8) + 1,
		few    => 5,
		two    => 2,
		equal  => 1);
	my @distinct = shuffled('unique', 'some', 'few',
		pick('two', 'few', 'some'), pick('equal', 'unique', 'some'));

	foreach my $i (0 .. $columns - 1)
	{
		push @{ $world{columns} },
		  {
			name     => 'k' . ($i + 1),
			type     => $types[$i],
			distinct => $distinct{ $distinct[$i] },
			nulls    => pick(0, 0, 0, 0, 10, 10, 50, chance(20) ? 100 : 0),
		  };
	}

	# what sorts carry beside the keys
	my $payload = pick(
		"''",
		"repeat('.', (mix(i, 90) % 40)::int)",
		"repeat('.', (mix(i, 90) % 40)::int)",
		'repeat(md5(i::text), (mix(i, 90) % 12)::int)',
		"CASE WHEN i % 97 = 5 THEN repeat('y', 20000 + i) ELSE 'short' END",
		"CASE WHEN i % 61 = 7 THEN (SELECT string_agg(md5(i || '/' || n), '')
	 FROM generate_series(1, 80 + i % 150) n) ELSE left(md5(i::text), i % 32)
	 END",
		'NULL::text');
	my $input = pick('i', 'i', 'k1, i', 'k1 DESC, i', 'k2, k3, i',
		'i % 7, k1, i', 'i / 100 DESC, k1, i');
	$world{input} = $input =~ s/, /+/gr;

	my $modulus = $rows || 1;
	my @sql;
	foreach my $table (qw(t s))
	{
		my $salt = $table eq 't' ? 100 : 500;
		my $n = $table eq 't' ? $rows : $world{others};
		my $made = join ",\n  ", map {
			column_sql($world{columns}[$_], $salt + 10 * $_)
			  . " AS $world{columns}[$_]{name}"
		} 0 .. $columns - 1;
		my $names = join ', ', map { $_->{name} } @{ $world{columns} };

		push @sql, <<EOT;
DROP TABLE IF EXISTS $world{$table};
CREATE UNLOGGED TABLE $world{$table} AS
SELECT (row_number() OVER ())::int AS id, j, $names, pay FROM (
 SELECT i, (1 + mix(i, $salt + 5) % $modulus)::int AS j,
  $made,
  $payload AS pay
 FROM generate_series(1, $n) i ORDER BY $input) rows;
ANALYZE $world{$table};
EOT
	}

	# an index that gives a first key's order
	my @narrow = grep { !flag($_->{type}, 'wide') } @{ $world{columns} };
	$world{indexed} = pick(@narrow);
	# A plain index on bpchar whose blanks at the end differ fails an assertion
	# of the server's own, which takes equal ones for identical ones.
	push @sql, $world{indexed}{type} eq 'bpchar'
	  ? "CREATE INDEX ON $world{t} ($world{indexed}{name}) INCLUDE (id);\n"
	  : ("CREATE INDEX ON $world{t} ($world{indexed}{name});\n",
		"CREATE INDEX ON $world{t} ($world{indexed}{name}, id);\n");
	$world{sql} = join '', "RESET ALL;\nSET fmsort.mode = off;\n", @sql;
	return \%world;
}

# ---- keys -------------------------------------------------------------------

# One ORDER BY item of a column: { sql, column, canonical }.
sub make_key
{
	my ($column, $has) = @_;
	my $type = $column->{type};
	my $sql = $column->{name};
	my $alias = flag($type, 'alias');
	my $operator = '';
	# operators for a domain over an enum and the like are not found
	my $using = $type !~ /^d_(?:mood|array|pair)/ && chance(12);

	if (chance(6) && $type =~ /^(?:int|d_int|oid|money)/
		&& $type !~ /_/)
	{
		$sql = $type eq 'int4' || $type eq 'int8' ? "($sql % 10)"
		  : "($sql IS NULL)";
		return { sql => $sql, column => $column, alias => 0, expr => $sql };
	}
	if (flag($type, 'text'))
	{
		my @collations = @{ $has->{collations} };

		if (chance(5) && flag($type, 'pattern'))
		{
			$sql = "lower($sql)";
			$alias = 1;
		}
		if (flag($type, 'pattern') && chance(10))
		{
			$operator = pick('~<~', '~>~');
		}
		elsif ($has->{nondeterministic} && chance(12))
		{
			$sql .= ' COLLATE nocase';
			$alias = 1;
		}
		elsif (chance(70))
		{
			$sql .= ' COLLATE ' . pick(@collations);
		}
	}
	elsif ($type =~ /^int4/ && chance(15))
	{
		$operator = pick('<%', '>%');
	}
	$operator = pick('<', '>') if !$operator && $using;

	my $expression = $sql;

	$sql .= $operator ? " USING $operator" : pick('', '', ' ASC', ' DESC',
		' DESC');
	$sql .= pick('', '', '', ' NULLS FIRST', ' NULLS LAST');
	return {
		sql    => $sql,
		column => $column,
		alias  => $alias,
		expr   => $expression
	};
}

# 1 to 4 keys.  want: mode, and columns to choose from.
sub make_order
{
	my ($world, $has, %want) = @_;
	my @columns = shuffled(@{ $want{columns} // $world->{columns} });
	my $count = pick(1, 1, 1, 2, 2, 3, 4);
	my @keys;
	my $mode = $want{mode};

	@columns = grep { !flag($_->{type}, 'alias') } @columns
	  if $mode eq 'ties';
	@columns = $world->{columns}[0] if !@columns;
	$count = @columns if $count > @columns;
	@keys = map { make_key($columns[$_], $has) } 0 .. $count - 1;

	# two columns as one key of no named type
	if ($mode ne 'ties' && $count >= 2 && chance(4))
	{
		@keys = (
			{
				sql => "ROW($columns[0]{name}, $columns[1]{name})"
				  . pick('', ' DESC'),
				column => $columns[0],
				alias  => 1,
				expr   => "ROW($columns[0]{name}, $columns[1]{name})",
			});
	}
	$mode = 'total' if $mode eq 'ties' && grep { $_->{alias} } @keys;

	my $by = join ', ', map { $_->{sql} } @keys;
	my $total = pick('id', 'id', 'id', 'id DESC');
	my %names = map { $_->{column}{name} => 1 } @keys;

	$names{ $columns[1]{name} } = 1 if $keys[0]{sql} =~ /^ROW/;
	my $more = pick(map { $_->{name} } @{ $world->{columns} });

	$names{$more} = 1 if chance(30);
	return {
		mode => $mode,
		by   => $by,
		# for the reference, and for ours
		reference => $mode eq 'total' ? "$by, $total" : "$by, id",
		ours      => $mode eq 'total' ? "$by, $total" : $by,
		keys      => \@keys,
		values    => join(', ', map { $_->{expr} } @keys),
		columns   => [ sort keys %names ],
	};
}

# ---- pieces of statements ---------------------------------------------------

# Every sort in the plan must be one: no indexes, no hashing, no parallelism.
my $only_sorts = <<'EOT';
SET enable_indexscan = off;
SET enable_indexonlyscan = off;
SET enable_bitmapscan = off;
EOT
my $no_hash = <<'EOT';
SET enable_hashagg = off;
SET enable_hashjoin = off;
EOT
my $parallel = <<'EOT';
SET max_parallel_workers_per_gather = 2;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
EOT

# Rows in their sequence, as one line.
sub digest
{
	my ($query, @values) = @_;
	my $row = join ', ', @values;

	return "SELECT count(*), md5(string_agg(ROW($row)::text, ' '))\n"
	  . "FROM ($query) q;\n";
}

# Rows in any sequence.
sub multiset
{
	my ($query, @values) = @_;
	my $row = join ', ', @values;

	return "SELECT count(*), sum(hashtextextended(ROW($row)::text, 0)::"
	  . "numeric)\nFROM ($query) q;\n";
}

# With ties: the keys, which the query calls key_values, and after # all.
sub digest_with_ties
{
	my ($query, $order, @values) = @_;
	my $row = join ', ', @values;

	return digest($query, @values) if $order->{mode} eq 'total';
	return "SELECT count(*) || ' ' || count(DISTINCT id) || ' ' ||\n"
	  . " md5(string_agg(ROW(key_values)::text, ' ')) || ' #' ||\n"
	  . " md5(string_agg(ROW($row)::text, ' '))\nFROM ($query) q;\n";
}

# What a query selects, and what a digest shows of it.
sub select_list
{
	my ($order, $with_pay) = @_;
	my $pay = $with_pay ? pick('pay', "pay || '' AS pay") : undef;
	my @list = ('id', @{ $order->{columns} }, $pay // ());
	my @shown = ('id', @{ $order->{columns} }, $pay ? 'md5(pay)' : ());

	return (join(', ', @list), @shown);
}

# Some of the rows.
sub condition
{
	my ($world) = @_;
	my $m = int($world->{rows} * 0.9);

	return pick('', '', '', '', " WHERE id <= $m", ' WHERE id % 3 <> 1',
		' WHERE k1 IS NOT NULL');
}

# A place where our side changes settings: see settle_shakes().
my $shake = "--shake\n";

# ---- kinds of statements ----------------------------------------------------

# Each gets a world and what the server has, and returns a hash:
#
#   order		what make_order() gave
#   sql			a function that makes statements from ORDER BY's list; the
#				second argument says whether they are for our side
#   plan		settings for both sides
#   sorts		with ties: how many of our sorts mean that all were ours
#   keeps_on	our side may not change to mode off in between
#   may_raise	an error is right, if both sides raise it
#	set			settings of our side that are not left to chance
my %kinds;

$kinds{plain} = sub {
	my ($world, $has) = @_;
	my $order = make_order($world, $has, mode => pick('total', 'stable'));
	my ($list, @shown) = select_list($order, chance(60));
	my $where = condition($world);

	return {
		order => $order,
		sql   => sub {
			digest("SELECT $list FROM $world->{t}$where ORDER BY $_[0] "
				  . 'OFFSET 0', @shown);
		}
	};
};

# The sorted column alone: a by-value one has rows that are words.
my $words = qr/^(?:int\d|int4_small|bool|"?char"?|oid|date|time|timestamp|
	timestamptz|pg_lsn|xid8|money|d_int)$/x;

$kinds{alone} = sub {
	my ($world, $has) = @_;
	my @columns = grep { !flag($_->{type}, 'alias') } @{ $world->{columns} };
	my @narrow = grep { $_->{type} =~ $words } @columns;
	my $column = pick(
		@narrow ? @narrow
		: { name => 'j', type => 'int4', distinct => 1 + $world->{rows} },
		chance(15) ? @columns : ());
	my $v = $column->{name};
	my $by = $v
	  . (
		$column->{type} eq 'int4' && chance(15) ? pick(' USING <%', ' USING >%')
		: pick('', ' DESC')) . pick('', ' NULLS FIRST', ' NULLS LAST');
	my $order = {
		mode      => 'total',
		by        => $by,
		reference => $by,
		ours      => $by,
		keys => [ { sql => $by, column => $column, alias => 0, expr => $v } ],
		values  => $v,
		columns => [$v],
	};
	# enough of them to spill, although words are small
	my $from = $world->{t} . pick('', ', generate_series(1, 8)');
	my ($t, $s) = join_sizes($world, $column, 6000);
	my $limit = pick(
		'OFFSET 0',
		'OFFSET ' . between(1, 1 + $world->{rows}),
		'LIMIT ' . between(0, 20),
		'LIMIT ' . between(0, 2 * $world->{rows}));
	my $scroll = pick('SCROLL', 'SCROLL', 'NO SCROLL', '');
	my @moves = map { "'$_'" }
	  movements($world->{rows}, $scroll eq 'NO SCROLL', between(3, 9));
	my $plan = $only_sorts . $no_hash;
	my @queries = (
		"SELECT $v FROM $from ORDER BY $by OFFSET 0",
		"SELECT $v FROM $from ORDER BY $by $limit",
		"SELECT DISTINCT $v FROM $from ORDER BY $by",
		# rescans, with and without other rows
		"SELECT x.$v FROM generate_series(1, 3) g LEFT JOIN\n"
		  . " (SELECT $v FROM $from ORDER BY $by OFFSET 0) x ON true",
		"SELECT x.$v FROM generate_series(1, 3) g, LATERAL (SELECT $v FROM"
		  . " $from\n WHERE id % 3 <> g ORDER BY $by $limit) x");

	# marks
	push @queries,
	  "SELECT a.$v FROM (SELECT $v FROM $world->{t} WHERE id <= $t) a JOIN\n"
	  . " (SELECT $v FROM $world->{s} WHERE id <= $s) b USING ($v)"
	  . " ORDER BY $by OFFSET 0"
	  if $column->{type} ne 'd_mood';
	if (chance(30))
	{
		my $sql =
		    "BEGIN;\nDECLARE c $scroll CURSOR FOR\n"
		  . " SELECT $v FROM $from ORDER BY $by;\n"
		  . "SELECT walk('c', ARRAY["
		  . join(', ', @moves)
		  . "]);\n${shake}SELECT walk('c', ARRAY["
		  . join(', ', reverse @moves)
		  . "]);\nCLOSE c;\nCOMMIT;\n";

		return { order => $order, plan => $plan, sql => sub { $sql } };
	}
	$plan .= chance(15) ? $parallel
	  : "SET enable_nestloop = off;\nSET enable_material = off;\n";
	my $query = pick(@queries);

	return {
		order => $order,
		plan  => $plan,
		sql   => sub { digest($query, $v) }
	};
};

# Rows that go straight from the sort to the client, or to a table.
$kinds{client} = sub {
	my ($world, $has) = @_;
	my $order = make_order($world, $has, mode => pick('total', 'stable'));
	my $k = $order->{columns}[0];
	my $query =
	  "SELECT id, md5($k\::text) FROM $world->{t} WHERE id <= 400 ORDER BY";
	# carried, but not shown; never compared, id being unique
	my $pay = $order->{mode} eq 'total' ? ', pay' : '';
	my $how = pick(
		sub { "$query $_[0]$pay;\n" },
		sub { "COPY ($query $_[0]$pay) TO STDOUT;\n" },
		sub {
			"\\set FETCH_COUNT 37\n$query $_[0]$pay;\n"
			  . "\\unset FETCH_COUNT\n";
		});

	return { order => $order, sql => $how };
};

$kinds{create_table} = sub {
	my ($world, $has) = @_;
	my $order = make_order($world, $has, mode => pick('total', 'stable'));
	my ($list, @shown) = select_list($order, chance(60));
	my $where = condition($world);
	my $create = pick(
		sub { "CREATE TEMP TABLE made AS $_[0];\n" },
		sub {
			"CREATE TEMP TABLE made AS SELECT * FROM $world->{t} LIMIT 0;\n"
			  . "ALTER TABLE made ADD n serial;\n"
			  . 'INSERT INTO made(id, '
			  . join(', ', @{ $order->{columns} })
			  . ', pay) '
			  . $_[0] =~ s/^SELECT .*? FROM/"SELECT id, " . join(', ',
				@{ $order->{columns} }) . ', pay FROM'/er
			  . ";\n";
		});

	return {
		order => $order,
		sql   => sub {
			my $made =
			  $create->("SELECT $list FROM $world->{t}$where ORDER BY $_[0]");
			my $from = $made =~ /serial/ ? 'made ORDER BY n' : 'made';

			return $made
			  . digest("SELECT * FROM $from OFFSET 0", @shown)
			  . "DROP TABLE made;\n";
		}
	};
};

$kinds{limit} = sub {
	my ($world, $has) = @_;
	my $order =
	  make_order($world, $has, mode => pick('total', 'total', 'ties'));
	my ($list, @shown) = select_list($order, chance(50));
	my $n = $world->{rows};
	my $where = condition($world);
	my $limit = pick(
		'LIMIT ' . between(0, 20),
		'LIMIT ' . between(0, 1 + int($n / 3)),
		'LIMIT ' . between(0, 2 * $n),
		'LIMIT ' . between(0, $n) . ' OFFSET ' . between(0, $n),
		'LIMIT ' . between(1, 50) . ' OFFSET ' . between(int($n / 3), $n),
		'LIMIT 10 OFFSET (SELECT count(*) / 2 FROM ' . $world->{t} . ')',
		'OFFSET ' . between(1, 1 + $n),
		'OFFSET NULL LIMIT 9',
		'LIMIT NULL',
		'LIMIT NULL OFFSET ' . between(0, 9),
		'LIMIT (SELECT count(*) / 4 FROM ' . $world->{s} . ')',
		'FETCH FIRST ROW ONLY',
		'LIMIT ' . between(0, $n) . ' OFFSET 1',
		'LIMIT -1');
	my $query = sub {
		"SELECT $list, ROW($order->{values}) AS key_values\n"
		  . "FROM $world->{t}$where ORDER BY $_[0] $limit";
	};

	# a subquery passes the limit on if nothing is filtered
	if (chance(20))
	{
		my $bounded = $query;
		my $outer = pick('', 'WHERE id % 5 <> 0 ') . 'LIMIT '
		  . between(1, 50);

		# which rows of a tie there are must not matter
		$outer =~ s/WHERE .* LIMIT/LIMIT/ if $order->{mode} eq 'ties';
		$query = sub { "SELECT * FROM (" . $bounded->(@_) . ") b $outer" };
	}
	return {
		order     => $order,
		sorts     => 1,
		may_raise => $limit eq 'LIMIT -1',
		sql       => sub { digest_with_ties($query->(@_), $order, @shown) }
	};
};

# Limits whose rows do not fit into memory: what the sort has written tells it
# which rows to refuse.
$kinds{bound} = sub {
	my ($world, $has) = @_;
	my $shape = pick(qw(plain plain plain append rescan cursor incremental
	  parallel));
	# ties of several inputs, and those of presorted input, come in any order
	my $order = make_order($world, $has,
		mode => $shape eq 'plain' ? pick('total', 'ties') : 'total');
	my ($list, @shown) = select_list($order, chance(30));
	my $t = $world->{t};
	my $n = $world->{rows};
	my $limit = between(int($n / 8), int($n / 2));
	my $offset = pick('', '', ' OFFSET ' . between(0, int($n / 4)));
	my $plan = $only_sorts . $no_hash;
	my $by = '';
	my $sql = sub {
		digest_with_ties("SELECT $list, ROW($order->{values}) AS key_values\n"
			  . "FROM $t ORDER BY $by$_[0] LIMIT $limit$offset",
			$order, @shown);
	};

	if ($shape eq 'append')
	{
		$sql = sub {
			digest("SELECT * FROM (SELECT 1 AS src, $list FROM $t UNION ALL"
				  . " SELECT 2, $list FROM $world->{s}) u\n"
				  . "ORDER BY $_[0], src LIMIT $limit$offset", 'src', @shown);
		};
	}
	elsif ($shape eq 'rescan')
	{
		my $limits = join ', ', map { "($_)" }
		  (int($limit / 4), $limit, int($limit / 2), 2 * $limit);

		$plan .= "SET enable_material = off;\nSET enable_memoize = off;\n";
		$sql = sub {
			digest("SELECT o.n, y.v, y.id FROM (VALUES $limits) o(n)\n"
				  . " CROSS JOIN LATERAL (SELECT v.v, x.id FROM (VALUES (1),"
				  . " (2)) v(v)\n  LEFT JOIN (SELECT id FROM $t ORDER BY"
				  . " $_[0] LIMIT o.n) x ON true) y", qw(n v id));
		};
	}
	elsif ($shape eq 'cursor')
	{
		my $moves = join ', ', map { "'$_'" } movements($limit, 0, 8);

		$sql = sub {
			"BEGIN;\nDECLARE c SCROLL CURSOR FOR\n SELECT $list FROM $t"
			  . " ORDER BY $_[0] LIMIT $limit$offset;\n"
			  . "SELECT walk('c', ARRAY[$moves]);\nCLOSE c;\nCOMMIT;\n";
		};
	}
	elsif ($shape eq 'incremental')
	{
		$plan = "SET enable_incremental_sort = on;\nSET enable_seqscan = off;\n";
		$by = "$world->{indexed}{name}, ";
	}
	elsif ($shape eq 'parallel')
	{
		$plan .= $parallel
		  . 'SET parallel_leader_participation = '
		  . pick('on', 'off') . ";\n";
	}
	return {
		order => $order,
		sorts => 1,
		plan  => $plan,
		sql   => $sql,
		set   => {
			work_mem              => pick(qw(64kB 64kB 64kB 100kB)),
			'fmsort.debug_cutoff' => pick('on', 'on', 'on', 'on', 'off')
		},
	};
};

# All peers of the last row: ties decide the order only, not the rows.
$kinds{with_ties} = sub {
	my ($world, $has) = @_;
	my $order = make_order($world, $has, mode => 'stable');
	my ($list, @shown) = select_list($order, chance(30));
	my $n = between(1, 1 + int($world->{rows} / 2));
	my $offset = pick('', '', 'OFFSET ' . between(0, 30) . ' ',
		'OFFSET ' . between(0, $world->{rows}) . ' ');

	$offset = '' if $offset && chance(50);
	$order->{reference} = $order->{ours};
	return {
		order => $order,
		sql   => sub {
			# with an OFFSET, which peers are left out is open
			my $q = "SELECT $list FROM $world->{t} ORDER BY $_[0] $offset"
			  . "FETCH FIRST $n ROWS WITH TIES";

			return $offset ? "SELECT count(*) FROM ($q) q;\n"
			  : multiset($q, @shown);
		}
	};
};

$kinds{limit_append} = sub {
	my ($world, $has) = @_;
	my $order = make_order($world, $has, mode => 'total');
	my $column = $world->{indexed}{name};
	my $merge = chance(40);

	# with the indexed column first, Append can be MergeAppend
	$order->{columns} = [$column] if $merge;

	my ($list, @shown) = select_list($order, chance(30));
	my $limit = pick('OFFSET 0', 'LIMIT ' . between(1, 100),
		'LIMIT ' . between(1, 1 + $world->{rows}),
		'LIMIT 30 OFFSET ' . between(0, 500));
	my $inner_limits = chance(50);

	return {
		order => $order,
		plan  => $merge ? "SET enable_seqscan = off;\n" : $only_sorts,
		sql   => sub {
			my $by = $merge ? "$column, id" : $_[0];
			my @parts = ("SELECT 1 AS src, $list FROM $world->{t}",
				"SELECT 2, $list FROM $world->{s}");

			@parts = ("($parts[0] ORDER BY $by LIMIT 200)",
				"($parts[1] ORDER BY $by LIMIT 50)")
			  if $inner_limits;
			return digest(
				'SELECT * FROM (' . join("\n UNION ALL ", @parts) . ') u'
				  . "\n ORDER BY $by, src $limit",
				'src', @shown);
		}
	};
};

sub movements
{
	my ($n, $forward, $count) = @_;
	my @moves;

	foreach (1 .. $count)
	{
		my $small = between(1, 12);
		my $large = between(1, 1 + $n);

		push @moves, $forward
		  ? pick("FETCH $small", "FETCH FORWARD $small", 'FETCH NEXT',
			"MOVE $small", "FETCH $large", "MOVE FORWARD $large",
			'FETCH RELATIVE 1', 'FETCH FORWARD ' . int($n / 10 + 1),
			"FETCH RELATIVE $large", "MOVE RELATIVE $large")
		  : pick(
			"FETCH FORWARD $small",
			"FETCH BACKWARD $small",
			"FETCH BACKWARD $large",
			"FETCH FORWARD $large",
			"FETCH ABSOLUTE $large",
			"FETCH ABSOLUTE -$large",
			"FETCH ABSOLUTE $small",
			'FETCH ABSOLUTE 0',
			"FETCH RELATIVE $small",
			"FETCH RELATIVE -$small",
			'FETCH RELATIVE ' . ($large - int($n / 2)),
			'FETCH FIRST',
			'FETCH LAST',
			'FETCH PRIOR',
			'FETCH NEXT',
			'FETCH RELATIVE 0',
			"MOVE $large",
			"MOVE BACKWARD $large",
			"MOVE ABSOLUTE $large",
			"MOVE RELATIVE $large",
			'MOVE BACKWARD ALL',
			'MOVE FORWARD ALL',
			'MOVE LAST',
			'MOVE PRIOR',
			chance(30) ? 'FETCH BACKWARD ALL' : 'FETCH PRIOR',
			chance(30) ? 'FETCH FORWARD ALL' : 'FETCH NEXT');
	}
	return @moves;
}

$kinds{cursor} = sub {
	my ($world, $has) = @_;
	my $order =
	  make_order($world, $has, mode => pick('total', 'total', 'ties'));
	my $n = $world->{rows} < 900 ? $world->{rows} : between(50, 900);
	my $scroll = pick('SCROLL', 'SCROLL', 'NO SCROLL', '');
	my $hold = chance(25) ? ' WITH HOLD' : '';
	my @moves = movements($n, $scroll eq 'NO SCROLL', between(4, 14));
	my $commit = $hold ? int(rand @moves) : -1;
	my $savepoint = !$hold && chance(30) ? int(rand @moves) : -1;
	my $release = pick('RELEASE', 'ROLLBACK TO');
	my $limit = pick('', '', '', ' LIMIT ' . between(0, 2 * $n));
	my @body;

	foreach my $i (0 .. $#moves)
	{
		push @body, "SAVEPOINT here;\n" if $i == $savepoint;
		push @body, "$moves[$i] FROM c;\n";
		push @body, "COMMIT;\n" if $i == $commit;
		push @body, $shake if chance(15);
		push @body, "$release here;\n"
		  if $savepoint >= 0 && $i == ($savepoint + 2 < @moves
			? $savepoint + 2 : $#moves);
	}
	return {
		order => $order,
		sorts => 1,
		sql   => sub {
			# carried, but not shown; never compared, id being unique
			my $pay = $order->{mode} eq 'total' ? ', pay' : '';
			my $shown = $order->{mode} eq 'total' ? 'id'
			  : "md5(ROW($order->{values})::text) || ' #' || id";

			return "BEGIN;\nDECLARE c $scroll CURSOR$hold FOR\n"
			  . " SELECT $shown FROM $world->{t} WHERE id <= $n\n"
			  . " ORDER BY $_[0]$pay$limit;\n"
			  . join('', @body)
			  . "CLOSE c;\nCOMMIT;\n";
		}
	};
};

# Larger cursors, whose rows stay on the server.
$kinds{walk} = sub {
	my ($world, $has) = @_;
	my $order = make_order($world, $has, mode => 'total');
	my ($list, @shown) = select_list($order, chance(50));
	my $where = condition($world);
	my $scroll = pick('SCROLL', 'SCROLL', 'NO SCROLL', '');
	my $plan = $only_sorts;
	my $by = '';

	# an Incremental Sort below the cursor
	if (chance(15))
	{
		$plan = "SET enable_incremental_sort = on;\n"
		  . "SET enable_seqscan = off;\n";
		$by = "$world->{indexed}{name}, ";
		$scroll = pick('SCROLL', 'NO SCROLL');
	}
	my @moves = map { "'$_'" }
	  movements($world->{rows}, $scroll eq 'NO SCROLL', between(3, 9));

	return {
		order => $order,
		plan  => $plan,
		sql   => sub {
			return "BEGIN;\nDECLARE c $scroll CURSOR FOR\n"
			  . " SELECT $list FROM $world->{t}$where ORDER BY $by$_[0];\n"
			  . "SELECT walk('c', ARRAY["
			  . join(', ', @moves)
			  . "]);\n${shake}SELECT walk('c', ARRAY["
			  . join(', ', reverse @moves)
			  . "]);\nCLOSE c;\nCOMMIT;\n";
		}
	};
};

# What a cursor must refuse depends on the plan below it.  So: each kind of plan
# below each kind of cursor, moved in every way; after each movement stands what
# it was told.  What cannot go backwards says so; what can gives the same rows.
my %cursor_plans = (
	sort => [ '', 'SELECT id FROM t ORDER BY %s' ],
	alone => [ '', 'SELECT nullif(j % 9, 3) FROM t ORDER BY 1' ],
	limit => [ '', 'SELECT id FROM t ORDER BY %s LIMIT %d' ],
	offset => [ '', 'SELECT id FROM t ORDER BY %s OFFSET 3' ],
	incremental => [ 'i', 'SELECT id FROM t ORDER BY first, %s' ],
	incremental_limit =>
	  [ 'i', 'SELECT id FROM t ORDER BY first, %s LIMIT %d' ],
	incremental_subquery => [
		'i', 'SELECT * FROM (SELECT id FROM t ORDER BY first, %s OFFSET 0) s'
		  . ' WHERE id %% 5 <> 1'
	],
	incremental_result =>
	  [ 'i', 'SELECT id + 1, random() < 2 FROM t ORDER BY first, %s' ],
	incremental_append => [
		'i', '(SELECT id FROM t ORDER BY first, %s OFFSET 0) UNION ALL'
		  . ' SELECT -1'
	],
	material => [
		'', 'SELECT x.id FROM generate_series(1, 2) g LEFT JOIN (SELECT id'
		  . ' FROM t ORDER BY %s OFFSET 0) x ON true ORDER BY g'
	],
	unique => [ 'h', 'SELECT DISTINCT ON (id %% 50) id FROM t'
		  . ' ORDER BY id %% 50, %s' ],
	group => [ 'h', 'SELECT id, count(*) FROM t GROUP BY id'
		  . ' ORDER BY id / 3, id' ],
	window => [ 'h', 'SELECT id, row_number() OVER (ORDER BY %s) FROM t'
		  . ' ORDER BY 2' ],
	gather_merge => [ 'p', 'SELECT id FROM t ORDER BY %s' ],
	gather_merge_limit => [ 'p', 'SELECT id FROM t ORDER BY %s LIMIT %d' ],
	append => [ '', '(SELECT id FROM t ORDER BY %s OFFSET 0) UNION ALL'
		  . ' (SELECT id FROM t ORDER BY id)' ],
	merge_append => [
		'', 'SELECT id FROM (SELECT id FROM t UNION ALL'
		  . ' (SELECT j FROM t ORDER BY j OFFSET 0)) u ORDER BY id'
	],
	merge_join => [ 'm', 'SELECT a.id, b.id FROM t a JOIN t b ON a.j = b.id'
		  . ' ORDER BY a.j, a.id' ],
	set_operation => [ 'h', 'SELECT id FROM t INTERSECT SELECT j FROM t'
		  . ' ORDER BY 1' ],
	subquery => [
		'', 'SELECT * FROM (SELECT id FROM t ORDER BY %s OFFSET 0) s'
		  . ' WHERE id %% 5 <> 1'
	],
	cte => [ '', 'WITH c AS MATERIALIZED (SELECT id FROM t ORDER BY %s)'
		  . ' SELECT id FROM c' ],
	sorted_cte => [ '', 'WITH c AS MATERIALIZED (SELECT id FROM t)'
		  . ' SELECT id FROM c ORDER BY id %% 7, id' ],
	result => [ '', 'SELECT id + 1, random() < 2 FROM t ORDER BY %s' ],
	set_returning =>
	  [ '', 'SELECT id, generate_series(1, 2) FROM t ORDER BY %s' ],
	locks => [ '', 'SELECT id FROM t ORDER BY %s FOR UPDATE' ],
	subplan => [ '', 'SELECT id, (SELECT max(x.id) FROM (SELECT id FROM t'
		  . ' ORDER BY %s LIMIT 7) x) FROM t ORDER BY id %% 5, id' ],);

my %cursor_settings = (
	i => "SET enable_incremental_sort = on;\nSET enable_seqscan = off;\n",
	h => $no_hash,
	m => "${no_hash}SET enable_nestloop = off;\n",
	p => "SET parallel_leader_participation = off;\n$parallel",);

$kinds{refusal} = sub {
	my ($world, $has) = @_;
	my $order = make_order($world, $has, mode => 'total');
	my $n = $world->{rows} < 700 ? $world->{rows} : between(50, 700);
	my $shape = pick(sort keys %cursor_plans);
	my ($how, $query) = @{ $cursor_plans{$shape} };
	my $scroll = pick('', '', 'SCROLL', 'NO SCROLL');
	my $hold = $shape ne 'locks' && chance(25) ? ' WITH HOLD' : '';
	my @moves = movements($n, chance(15), between(3, 8));
	my $commit = $hold ? between(0, $#moves) : -1;
	my $limit = between(1, $n + 1);

	$query =~ s/\bfirst\b/$world->{indexed}{name}/g;
	$query =~ s/\bFROM t\b/FROM (SELECT * FROM $world->{t} WHERE id <= $n) t/g
	  if $how ne 'i' && $shape ne 'locks';
	$query =~ s/\bFROM t\b/FROM $world->{t}/g;
	$query =~ s/\) t ([ab]) /) $1 /g;
	$query =~ s/ JOIN t b / JOIN $world->{t} b /;
	my $statement = sub {
		# carried, but not shown; never compared, id being unique
		my $by = $_[0]
		  . ($shape =~ /^(?:sort|limit|incremental)$/ ? ', pay' : '');

		return $query =~ s/%([sd%])/{ s => $by, d => $limit, '%' => '%' }->{$1}/egr;
	};
	my $settings = ($how eq 'i' ? '' : $only_sorts)
	  . ($cursor_settings{$how} // '');

	# by PL/pgSQL, which opens and moves cursors its own way
	if (!$hold && $shape ne 'locks' && chance(25))
	{
		return {
			order     => $order,
			plan      => $settings,
			may_raise => 1,
			shape     => "$shape by PL/pgSQL, $scroll",
			sql       => sub {
				"SELECT refusals(\$q\$" . $statement->($_[0]) . "\$q\$, '$scroll',"
				  . "\n ARRAY[" . join(', ', map { "'$_'" } @moves) . "]);\n";
			}
		};
	}
	return {
		order     => $order,
		plan      => $settings,
		may_raise => 1,
		shape     => "$shape, $scroll$hold",
		sql       => sub {
			my $told = "\\echo \@told :SQLSTATE\n"
			  . "\\if :ERROR\n\\echo :LAST_ERROR_MESSAGE\n\\endif\n";

			return "\\set ON_ERROR_ROLLBACK on\nBEGIN;\n"
			  . "DECLARE c $scroll CURSOR$hold FOR\n "
			  . $statement->($_[0]) . ";\n$told"
			  . join('', map {
				"$moves[$_] FROM c;\n$told" . ($_ == $commit ? "COMMIT;\n" : '')
			  } 0 .. $#moves)
			  . "CLOSE c;\nCOMMIT;\n\\set ON_ERROR_ROLLBACK off\n";
		}
	};
};

# How many rows of each table may be joined without too many results.
sub join_sizes
{
	my ($world, $column, $most) = @_;
	my $values = flag($column->{type}, 'values') || 100;
	my $distinct = $column->{distinct} < $values ? $column->{distinct}
	  : $values;
	my $room = $most * $distinct;
	my ($t, $s) = ($world->{rows}, $world->{others});

	while ($t * $s > $room && $t > 1)
	{
		$t = int($t * 0.7);
		$s = int($s * 0.9) + 1;
	}
	return ($t, $s);
}

# = and IN do not see the enum below a domain.
sub joinable
{
	my ($column) = @_;

	return $column->{name} . ($column->{type} eq 'd_mood' ? '::mood' : '');
}

sub join_condition
{
	my ($column, $has) = @_;
	my $collate = '';
	my $name = joinable($column);

	if (flag($column->{type}, 'text') && chance(60))
	{
		$collate = ' COLLATE '
		  . pick(@{ $has->{collations} },
			$has->{nondeterministic} ? 'nocase' : ());
	}
	return "a.$name = b.$name$collate";
}

$kinds{merge_join} = sub {
	my ($world, $has) = @_;
	my $order = make_order($world, $has, mode => 'total');
	my $column = pick(@{ $world->{columns} });
	my ($t, $s) = join_sizes($world, $column, 6000);
	my $kind = pick('JOIN', 'JOIN', 'JOIN', 'LEFT JOIN', 'RIGHT JOIN',
		'FULL JOIN');
	my $on = join_condition($column, $has);
	my $second = pick(@{ $world->{columns} });
	my ($left, $right) = ($world->{t}, $world->{s});

	$on .= ' AND ' . join_condition($second, $has) if chance(15);
	# a condition the join tests itself, and which skips matches
	$on .= ' AND a.id % 3 <> b.id % 3' if $kind !~ /FULL/ && chance(25);
	($left, $right, $t, $s) = ($right, $left, $s, $t) if chance(30);
	if (chance(15))
	{
		$right = $left;
		($t, $s) = join_sizes({ %{$world}, others => $world->{rows} },
			$column, 6000);
	}

	my $query =
	    "SELECT a.id AS a, b.id AS b, md5(a.pay) AS p, md5(b.pay) AS q\n"
	  . " FROM (SELECT * FROM $left WHERE id <= $t) a $kind\n"
	  . " (SELECT * FROM $right WHERE id <= $s) b ON $on";

	$query =~ s/, md5\(a\.pay\) AS p, md5\(b\.pay\) AS q// if chance(40);

	my @shown = $query =~ /AS q/ ? qw(a b p q) : qw(a b);
	my $sorted = chance(50);

	return {
		order => $order,
		plan  => $only_sorts . $no_hash . "SET enable_nestloop = off;\n"
		  . pick('', "SET enable_material = off;\n"),
		sql => sub {
			$sorted ? digest("$query ORDER BY a, b OFFSET 0", @shown)
			  : multiset("$query OFFSET 0", @shown);
		}
	};
};

$kinds{semi_join} = sub {
	my ($world, $has) = @_;
	my $order = make_order($world, $has, mode => 'total');
	my $column = pick(@{ $world->{columns} });
	my ($t, $s) = join_sizes($world, $column, 60000);
	my $not = pick('', 'NOT ');
	my $on = join_condition($column, $has);
	my $name = joinable($column);
	my $where = pick(
		"${not}EXISTS (SELECT FROM $world->{s} b WHERE $on"
		  . pick('', ' AND b.id % 4 <> a.id % 4')
		  . " AND b.id <= $s)",
		"$name IN (SELECT $name FROM $world->{s} WHERE id <= $s)");

	return {
		order => $order,
		plan  => "$only_sorts$no_hash" . "SET enable_nestloop = off;\n",
		sql   => sub {
			digest("SELECT id FROM $world->{t} a WHERE id <= $t AND $where"
				  . "\n ORDER BY $_[0] OFFSET 0", 'id');
		}
	};
};

$kinds{window} = sub {
	my ($world, $has) = @_;
	my $order = make_order($world, $has, mode => 'total');
	my $second = make_order($world, $has, mode => 'total');
	my $partition = pick('', "PARTITION BY $world->{columns}[2]{name} ",
		'PARTITION BY id % 3 ', 'PARTITION BY j % 2, id % 2 ');
	my $frame = pick('', ' ROWS BETWEEN 3 PRECEDING AND 2 FOLLOWING',
		' ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING');
	my $peers = chance(40);
	my $many = chance(40)
	  ? ', lag(id, 3) OVER v AS l, first_value(id) OVER v AS f'
	  : ", 0 AS l, 0 AS f";

	$frame = ' ROWS BETWEEN 3 PRECEDING AND 2 FOLLOWING'
	  if $frame =~ /UNBOUNDED/ && $world->{rows} > 800;

	return {
		order => $order,
		plan  => $only_sorts . $no_hash,
		sql   => sub {
			# what peers share does not depend on ties
			my $values = $peers
			  ? "rank() OVER w AS n, dense_rank() OVER w AS s"
			  : "row_number() OVER w AS n, sum(id) OVER (w$frame) AS s";
			my $by = $peers ? $order->{by} : $_[0];

			return multiset(
				"SELECT id, $values$many\n FROM $world->{t}\n"
				  . " WINDOW w AS (${partition}ORDER BY $by),\n"
				  . "  v AS (ORDER BY $second->{reference})",
				qw(id n s l f));
		}
	};
};

# Inner sides of nested loops: rescanned with and without changed parameters,
# read partly, under limits that change.
$kinds{lateral} = sub {
	my ($world, $has) = @_;
	my $order = make_order($world, $has, mode => 'total');
	my $m = $world->{rows} > 1200 ? between(300, 1200) : $world->{rows};
	my $outer = between(3, 12);
	my $t = $world->{t};
	my $inner = pick(
		# a parameter in the input
		sub {
			"SELECT i.id, pay FROM $t i WHERE i.id <= $m\n"
			  . "  AND i.id % (2 + o.id % 3) = 0 ORDER BY $_[0]";
		},
		# none: the result is rewound
		sub { "SELECT i.id, pay FROM $t i WHERE i.id <= $m ORDER BY $_[0]" },
		# one that changes now and then only
		sub {
			"SELECT i.id, pay FROM $t i WHERE i.id <= $m\n"
			  . "  AND i.j % 3 <> o.id / 3 ORDER BY $_[0]";
		},
		# not the sort's but its parent's
		sub {
			"SELECT * FROM (SELECT i.id, pay FROM $t i WHERE i.id <= $m\n"
			  . "   ORDER BY $_[0] OFFSET 0) x WHERE x.id % 7 <> o.id % 7";
		});
	my $limit = pick('OFFSET 0', 'OFFSET 0', 'LIMIT ' . between(1, 20),
		'LIMIT o.id * 3', 'LIMIT nullif(o.id * 5 % 20, 5)',
		'OFFSET o.id LIMIT 10', "LIMIT $m",
		'LIMIT CASE WHEN o.id % 2 = 0 THEN 5 END');
	my $kind = pick('CROSS JOIN LATERAL', 'LEFT JOIN LATERAL');
	my $material = pick('off', 'off', 'on');
	my $number = pick('0', 'row_number() OVER ()');

	return {
		order => $order,
		plan  => "$only_sorts${no_hash}SET enable_mergejoin = off;\n"
		  . "SET enable_material = $material;\n"
		  . 'SET enable_memoize = ' . pick('off', 'off', 'on') . ";\n",
		sql => sub {
			my $inside = $inner->($_[0]) . " $limit";
			my $on = $kind =~ /LEFT/ ? ' ON x.id % 5 <> 2' : '';
			my $query =
			    "SELECT o.id AS o, x.id, md5(x.pay) AS p, x.n\n"
			  . " FROM generate_series(1, $outer) o(id)\n"
			  . " $kind (SELECT *, $number AS n FROM ($inside) y) x$on";

			# without a parameter, either side may be the outer one
			return $inside =~ /\bo\.id\b/ ? digest($query, qw(o id p n))
			  : multiset($query, qw(o id p n));
		}
	};
};

# A sort that is rewound while its limit changes: the limit depends on a loop
# further out than the one that asks for the rows again.
$kinds{limit_rescan} = sub {
	my ($world, $has) = @_;
	my $order = make_order($world, $has, mode => 'total');
	my $m = $world->{rows} > 1500 ? between(300, 1500) : $world->{rows};
	my $limit = pick('LIMIT o.n', 'LIMIT 40 - o.n', 'LIMIT nullif(o.n, 9)',
		'LIMIT 10 OFFSET o.n', "LIMIT o.n * $m / 40", 'LIMIT 37 % o.n',
		"LIMIT 10 OFFSET o.n * $m / 40",
		'OFFSET o.n LIMIT CASE WHEN o.n % 2 = 0 THEN 5 END');
	my $outer = join ', ', map { "($_)" } shuffled(2, 9, 30, 8, 33, 17);
	my $pay = pick('', '', ', pay');

	return {
		order => $order,
		plan  => "$only_sorts${no_hash}SET enable_mergejoin = off;\n"
		  . "SET enable_material = off;\nSET enable_memoize = off;\n",
		sql => sub {
			digest(
				"SELECT o.n, x.v, x.id FROM (VALUES $outer) o(n)\n"
				  . " CROSS JOIN LATERAL (SELECT y.*, v.v\n"
				  . "  FROM (VALUES (1), (2)) v(v) LEFT JOIN (SELECT id$pay\n"
				  . "   FROM $world->{t} WHERE id <= $m\n"
				  . "   ORDER BY $_[0] $limit) y ON true) x",
				qw(n v id));
		}
	};
};

# Subqueries that are run once a row.
$kinds{subplan} = sub {
	my ($world, $has) = @_;
	my $order = make_order($world, $has, mode => 'total');
	my $m = $world->{rows} > 900 ? between(200, 900) : $world->{rows};
	my $outer = between(3, 15);
	my $t = $world->{t};
	my $value = pick(
		sub {
			"(SELECT id FROM $t i WHERE i.id <= $m AND i.j % 4 <> o.id % 4"
			  . " ORDER BY $_[0] LIMIT 1 OFFSET o.id * 2)";
		},
		sub {
			"ARRAY(SELECT id FROM $t i WHERE i.id <= $m"
			  . " ORDER BY $_[0], o.id OFFSET o.id)";
		},
		sub {
			"ARRAY(SELECT id FROM (SELECT id FROM $t i WHERE i.id <= $m"
			  . " ORDER BY $_[0] OFFSET 0) x WHERE x.id > o.id * 9 LIMIT 5)";
		},
		sub {
			"EXISTS (SELECT FROM (SELECT id FROM $t i WHERE i.id <= $m"
			  . " ORDER BY $_[0] LIMIT 40) x WHERE x.id = o.id * 7)";
		},
		sub {
			"o.id * 3 = ANY (SELECT id FROM $t i WHERE i.id <= $m"
			  . " ORDER BY $_[0] LIMIT 100 + o.id)";
		},
		sub {
			"o.id * 3 < ALL (SELECT id FROM $t i WHERE i.id <= $m"
			  . " AND i.id > o.id ORDER BY $_[0] LIMIT 10)";
		});

	return {
		order => $order,
		plan  => $only_sorts . $no_hash,
		sql   => sub {
			"SELECT o.id, md5(ROW("
			  . $value->($_[0])
			  . ")::text) FROM generate_series(1, $outer) o(id);\n";
		}
	};
};

# A merge join that is an inner side itself: marks, restores and rescans.
$kinds{join_rescan} = sub {
	my ($world, $has) = @_;
	my $order = make_order($world, $has, mode => 'total');
	my $column = pick(@{ $world->{columns} });
	my ($t, $s) = join_sizes($world, $column, 4000);
	my $on = join_condition($column, $has);
	my $parameter = pick('', ' AND a.id % 3 <> o.id % 3');
	my $limit = pick('OFFSET 0', 'OFFSET 0', 'LIMIT 7', 'LIMIT o.id * 20');

	# which rows a limit leaves is open without an order
	$limit = "ORDER BY a.id, b.id $limit" if $limit =~ /LIMIT/;
	return {
		order => $order,
		plan  => "$only_sorts${no_hash}SET enable_nestloop = off;\n"
		  . "SET enable_material = off;\nSET enable_memoize = off;\n",
		sql => sub {
			multiset(
				"SELECT o.id AS o, x.* FROM generate_series(1, 4) o(id)\n"
				  . " CROSS JOIN LATERAL (SELECT a.id AS a, b.id AS b\n"
				  . "  FROM $world->{t} a JOIN $world->{s} b ON $on\n"
				  . "  WHERE a.id <= $t AND b.id <= $s$parameter $limit) x",
				qw(o a b));
		}
	};
};

$kinds{recursive} = sub {
	my ($world, $has) = @_;
	my $order = make_order($world, $has, mode => 'total');
	my $m = $world->{rows} > 700 ? between(200, 700) : $world->{rows};
	my $t = $world->{t};
	my $steps = between(3, 6);
	my $query = pick(
		sub {
			"WITH RECURSIVE r(n, id) AS (\n"
			  . " SELECT 0, 1 UNION ALL SELECT n + 1, x.id\n"
			  . " FROM r, LATERAL (SELECT i.id FROM $t i WHERE i.id <= $m\n"
			  . "  AND i.id % 5 <> r.id % 5 ORDER BY $_[0] LIMIT 2) x\n"
			  . " WHERE n < $steps) SELECT n, id FROM r";
		},
		sub {
			"WITH RECURSIVE r(n, id) AS (\n"
			  . " SELECT 0, id FROM $t WHERE id <= 9 UNION\n"
			  . " SELECT 1, i.j FROM r JOIN $t i ON i.id = r.id)\n"
			  . " SELECT n, id FROM r";
		},
		sub {
			"WITH RECURSIVE r(n, id) AS (\n"
			  . " (SELECT 0, id FROM $t WHERE id <= $m ORDER BY $_[0]\n"
			  . "  LIMIT 60)\n"
			  . " UNION ALL SELECT n + 1, x.id FROM (SELECT n, id,\n"
			  . "   row_number() OVER (ORDER BY id % 7, id) AS p FROM r) x\n"
			  . " WHERE p % 2 = 0 AND n < $steps) SELECT n, id FROM r";
		});

	return {
		order => $order,
		plan  => "$only_sorts${no_hash}SET enable_nestloop = "
		  . pick('on', 'off') . ";\nSET enable_material = off;\n",
		sql => sub { multiset($query->($_[0]), qw(n id)) }
	};
};

$kinds{parallel} = sub {
	my ($world, $has) = @_;
	my $order = make_order($world, $has, mode => 'total');
	my ($list, @shown) = select_list($order, chance(50));
	my $column = $world->{columns}[0];
	my ($t, $s) = join_sizes($world, $column, 6000);
	my $on = join_condition($column, $has);
	my $query = pick(
		sub {
			digest("SELECT $list FROM $world->{t} ORDER BY $_[0] OFFSET 0",
				@shown);
		},
		sub {
			digest("SELECT $list FROM $world->{t} ORDER BY $_[0] LIMIT 77",
				@shown);
		},
		sub {
			multiset("SELECT id, row_number() OVER (ORDER BY $_[0]) AS n"
				  . " FROM $world->{t}", qw(id n));
		},
		sub {
			multiset(
				"SELECT a.id AS a, b.id AS b FROM $world->{t} a\n"
				  . " JOIN $world->{s} b ON $on AND a.id <= $t\n"
				  . " AND b.id <= $s", qw(a b));
		},
		sub {
			digest(
				"SELECT j, count(*) AS n, min(id) AS m FROM $world->{t}\n"
				  . " GROUP BY j ORDER BY j OFFSET 0", qw(j n m));
		},
		sub {
			multiset("SELECT DISTINCT j % 100 AS j FROM $world->{t}", 'j');
		});

	return {
		order => $order,
		plan  => "$only_sorts$no_hash${parallel}SET enable_nestloop = off;\n"
		  . 'SET parallel_leader_participation = ' . pick('on', 'off') . ";\n",
		sql => $query
	};
};

# The index gives the order of a first key.
$kinds{incremental} = sub {
	my ($world, $has) = @_;
	my $order = make_order($world, $has, mode => 'total');
	my ($list, @shown) = select_list($order, chance(50));
	my $first = $world->{indexed}{name} . pick('', '', ' DESC');
	my $t = $world->{t};
	my $limit = pick('OFFSET 0', 'OFFSET 0', 'LIMIT ' . between(1, 60),
		'LIMIT ' . between(1, 1 + $world->{rows}),
		'OFFSET ' . between(1, 1 + $world->{rows}));
	my $query = pick(
		sub {
			digest("SELECT $list FROM $t ORDER BY $first, $_[0] $limit",
				@shown);
		},
		sub {
			digest("SELECT $list FROM $t ORDER BY $first, $_[0] $limit",
				@shown);
		},
		sub {
			multiset(
				"SELECT id, row_number() OVER (PARTITION BY\n"
				  . " $world->{indexed}{name} ORDER BY $_[0]) AS n FROM $t",
				qw(id n));
		},
		sub {
			digest(
				"SELECT o.id AS o, x.id FROM generate_series(1, 4) o(id),\n"
				  . " LATERAL (SELECT id FROM $t WHERE id % 2 <> o.id % 2\n"
				  . "  ORDER BY $first, $_[0] LIMIT o.id * 30) x", qw(o id));
		},
		sub {
			digest(
				"SELECT o.id AS o, x.id FROM generate_series(1, 3) o(id),\n"
				  . " LATERAL (SELECT id FROM (SELECT id FROM $t\n"
				  . "  ORDER BY $first, $_[0] OFFSET 0) y\n"
				  . "  WHERE y.id % 3 <> o.id LIMIT 400) x", qw(o id));
		});

	return {
		order => $order,
		plan  => "SET enable_incremental_sort = on;\n"
		  . "SET enable_seqscan = off;\nSET enable_material = off;\n",
		sql => $query
	};
};

$kinds{distinct} = sub {
	my ($world, $has) = @_;
	my $t = $world->{t};
	my $order = make_order($world, $has, mode => 'stable');
	my %used = map { $_ => 1 } $order->{values} =~ /\bk\d\b/g;
	my @others = grep { !$used{ $_->{name} } } @{ $world->{columns} };
	my $rest =
	  make_order($world, $has, mode => 'total', columns => \@others);
	my ($list, @shown) = select_list($order, 0);
	my $keys = $order->{values};
	my $plan = $only_sorts . $no_hash;
	my $what = int(rand 4);

	# of equal rows the first one stays: by arrival, in ours
	if ($what == 0 && @{ $order->{keys} } == 1)
	{
		return {
			order => $order,
			plan  => $plan,
			sql   => sub {
				my ($by, $ours) = @_;
				my $head = $ours ? 'SELECT DISTINCT' :
				  "SELECT DISTINCT ON ($keys)";

				return digest("$head $keys AS v FROM $t ORDER BY"
					  . " $by OFFSET 0", 'v');
			}
		};
	}
	if ($what <= 1)
	{
		return {
			order => $order,
			plan  => $plan,
			sql   => sub {
				digest("SELECT DISTINCT ON ($keys) $list FROM $t"
					  . " ORDER BY $_[0] OFFSET 0", @shown);
			}
		};
	}
	$order->{reference} = $order->{ours};
	$order->{mode} = 'total';
	return {
		order => $order,
		plan  => $plan,
		sql   => $what == 2
		? sub { "SELECT count(*) FROM (SELECT DISTINCT $keys FROM $t) q;\n" }
		: sub {
			digest(
				"SELECT DISTINCT ON ($keys) id FROM $t\n"
				  . " ORDER BY $order->{by}, $rest->{reference}", 'id');
		}
	};
};

$kinds{group} = sub {
	my ($world, $has) = @_;
	my $t = $world->{t};
	my $order = make_order($world, $has, mode => 'total');
	my $values = $order->{values};
	my $first = $order->{keys}[0]{expr};
	my $having = pick('', '', ' HAVING count(*) > 1');
	my $sets = pick('GROUPING SETS ((j % 9), (id % 4), (j % 9, id % 4), ())',
		"GROUPING SETS (($first), (id % 4), ())",
		"ROLLUP (id % 4, j % 5, $first)",
		"CUBE (id % 3, $first)");
	my $query = pick(
		sub {
			digest(
				"SELECT count(*) AS n, min(id) AS a, max(id) AS b FROM $t\n"
				  . " GROUP BY $values$having ORDER BY $order->{by}",
				qw(n a b));
		},
		sub {
			multiset(
				"SELECT count(*) AS n, min(id) AS a, max(id) AS b FROM $t\n"
				  . " GROUP BY $values$having", qw(n a b));
		},
		sub {
			multiset(
				"SELECT count(*) AS n, min(id) AS a, sum(j) AS b FROM $t\n"
				  . " GROUP BY $sets", qw(n a b));
		},
		sub {
			digest(
				"SELECT count(DISTINCT j % 50) AS n, array_agg(id ORDER BY\n"
				  . "  id % 7, id) AS a FROM $t GROUP BY $values\n"
				  . " ORDER BY min(id)", qw(n a));
		});

	return { order => $order, plan => $only_sorts . $no_hash, sql => $query };
};

# The first rows of each group: the sort drops the others, or must not.
$kinds{rows_a_group} = sub {
	my ($world, $has) = @_;
	my $t = $world->{t};
	my $order = make_order($world, $has, mode => 'stable');
	my @parts = (shuffled(map { $_->{name} } @{ $world->{columns} }))
	  [ 0 .. pick(0, 0, 0, 1) ];
	my $parts = join ', ', @parts;
	my $partition = chance(90) ? "PARTITION BY $parts" : '';
	my $k = pick(1, 1, 1, 2, 3, 10);
	my $test = pick("n <= $k", "n <= $k", "n < $k", "$k >= n", 'n = 1',
		"n BETWEEN 1 AND $k");
	my $condition = pick('id % (2 + o % 3) = 0', 'id <= 300');
	my $row_number = "row_number() OVER ($partition ORDER BY";
	my $rank = pick(qw(rank dense_rank)) . "() OVER ($partition ORDER BY";
	my $query = pick((
			sub {
				multiset(
					"SELECT * FROM (SELECT id, $row_number $_[0]) AS n FROM"
					  . " $t) x\n WHERE $test", qw(id n));
			}) x 3, (
			sub {
				multiset(
					"SELECT * FROM (SELECT id, $rank $order->{by}) AS n FROM"
					  . " $t) x\n WHERE $test", qw(id n));
			}) x 3,
		# another function looks at all rows
		sub {
			multiset(
				"SELECT * FROM (SELECT id, $row_number $_[0]) AS n,\n"
				  . "  count(*) OVER ($partition ORDER BY $_[0]\n"
				  . '  ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING) AS c'
				  . "\n FROM $t WHERE id <= 500) x WHERE $test", qw(id n c));
		},
		sub {
			multiset(
				"SELECT * FROM (SELECT id, $rank $order->{by}) AS n,\n"
				  . "  sum(id) OVER (PARTITION BY id % 3) AS c FROM $t) x\n"
				  . " WHERE $test", qw(id n c));
		},
		sub {
			multiset("SELECT min(id) AS n FROM (SELECT id, $parts FROM $t) x\n"
				  . " GROUP BY $parts", 'n')
			  . "SELECT count(*) FROM (SELECT 1 FROM $t GROUP BY $parts) x;\n";
		},
		# read again, with and without other parameters; a column of DISTINCT ON
		# must not come once more with another operator
		sub {
			my $by = $_[0] =~ s/ USING [^\s,]+//gr;

			multiset(
				"SELECT o, id FROM generate_series(1, 7) o, LATERAL\n"
				  . " (SELECT DISTINCT ON ($parts) id FROM $t\n"
				  . "  WHERE $condition ORDER BY $parts, $by) x", qw(o id));
		});

	return {
		order => $order,
		plan  => $only_sorts . $no_hash . "SET enable_material = off;\n",
		sql   => $query
	};
};

$kinds{set_operation} = sub {
	my ($world, $has) = @_;
	# one of equal values is left, and which one is open
	my @columns = grep { !flag($_->{type}, 'alias') } @{ $world->{columns} };
	my @names = map { $_->{name} } @columns;
	my $order = make_order($world, $has, mode => 'total');
	my $operation = pick('INTERSECT', 'INTERSECT ALL', 'EXCEPT', 'EXCEPT ALL',
		'UNION', 'UNION ALL');
	my @values = (@names ? pick(@names) : (), 'j % 60 AS j');

	push @values, pick(@names) if @names && chance(40);
	@values = ('id % 500 AS id', @values) if chance(30);

	my $list = join ', ', @values;
	my @shown = map { /AS (\w+)/ ? $1 : $_ } @values;
	my %seen;
	my @by = grep { !$seen{$_}++ } @shown;

	if (@by < @shown)
	{
		@values = ('j', $by[0] // 'id');
		@values = ('j', 'id % 100 AS id') if $values[1] =~ /^j/;
		$list = join ', ', @values;
		@shown = map { /AS (\w+)/ ? $1 : $_ } @values;
	}

	return {
		order => $order,
		plan  => $only_sorts . $no_hash,
		sql   => sub {
			multiset(
				"SELECT $list FROM $world->{t} $operation"
				  . " SELECT $list FROM $world->{s}", @shown);
		}
	};
};

$kinds{plpgsql} = sub {
	my ($world, $has) = @_;
	my $order = make_order($world, $has, mode => pick('total', 'stable'));
	my $second = make_order($world, $has, mode => 'total');
	my $t = $world->{t};
	my $stop = pick(5, 60, int($world->{rows} / 2), 2 * $world->{rows} + 1);
	my $columns = join ', ', 'id', @{ $order->{columns} };
	my $body = pick(
		# a loop that is left early
		sub {
			"FOR r IN SELECT $columns, md5(pay) FROM $t ORDER BY $_[0] LOOP\n"
			  . "  n := n + 1; a := md5(a || r::text);\n"
			  . "  EXIT WHEN n >= stop;\n END LOOP;";
		},
		# one within the other
		sub {
			"FOR r IN SELECT id FROM $t ORDER BY $_[0] LOOP\n"
			  . "  FOR q IN SELECT id FROM $t WHERE id % 3 <> r.id % 3\n"
			  . "    ORDER BY $second->{reference} LOOP\n"
			  . "    n := n + 1; a := md5(a || q::text || r::text);\n"
			  . "    EXIT WHEN n % 23 = 0;\n  END LOOP;\n"
			  . "  EXIT WHEN n >= 200 OR n >= stop;\n END LOOP;";
		},
		# subtransactions that come and go, and errors in other statements
		sub {
			"FOR r IN SELECT $columns, md5(pay) FROM $t ORDER BY $_[0] LOOP\n"
			  . "  n := n + 1; a := md5(a || r::text);\n"
			  . "  IF n % 40 = 0 THEN BEGIN\n"
			  . "    PERFORM 1 / (x - 150) FROM (SELECT id AS x FROM $t\n"
			  . "     WHERE id <= 160 ORDER BY id DESC) y WHERE x > n % 170;\n"
			  . "   EXCEPTION WHEN division_by_zero THEN a := md5(a); END;\n"
			  . "  END IF;\n  EXIT WHEN n >= stop;\n END LOOP;";
		},
		# a cursor variable
		sub {
			"OPEN c SCROLL FOR SELECT $columns FROM $t ORDER BY $_[0], 1;\n"
			  . " LOOP FETCH c INTO r; EXIT WHEN NOT FOUND OR n >= stop;\n"
			  . "  n := n + 1; a := md5(a || r::text);\n"
			  . "  IF n % 50 = 0 THEN MOVE BACKWARD 20 IN c; n := n + 7;\n"
			  . "   FETCH LAST FROM c INTO r; a := md5(a || r::text);\n"
			  . "   MOVE ABSOLUTE n IN c; END IF;\n"
			  . " END LOOP; CLOSE c;";
		},
		# all rows at once
		sub {
			"a := (SELECT md5(string_agg(s::text, ' ')) FROM (SELECT\n"
			  . "  $columns FROM $t WHERE id <> stop ORDER BY $_[0] OFFSET 0)"
			  . " s);";
		});

	return {
		order    => $order,
		keeps_on => $order->{mode} eq 'stable',
		sql      => sub {
			"CREATE OR REPLACE FUNCTION pg_temp.f(stop int) RETURNS text\n"
			  . "LANGUAGE plpgsql AS \$\$\nDECLARE r record; q record;"
			  . " c refcursor; n int := 0; a text := '';\nBEGIN\n "
			  . $body->($_[0])
			  . "\n RETURN n || ' ' || a;\nEND\n\$\$;\n"
			  . "SELECT pg_temp.f($stop);\n${shake}SELECT pg_temp.f($stop);\n"
			  . "SELECT pg_temp.f(3);\n";
		}
	};
};

$kinds{prepared} = sub {
	my ($world, $has) = @_;
	my $limited = chance(50);
	my $order = make_order($world, $has,
		mode => $limited ? 'total' : pick('total', 'stable'));
	my ($list, @shown) = select_list($order, chance(40));
	my $end = $limited ? pick('LIMIT $2', 'LIMIT $2 OFFSET $1', 'OFFSET $2')
	  : 'OFFSET 0';
	my @calls =
	  map { sprintf "EXECUTE q(%s, %s);\n$shake", between(2, 9), $_ }
	  shuffled(between(0, 9), between(0, 1 + $world->{rows}), 'NULL',
		chance(50) ? 100000 : between(1, 99), between(0, 50), 7);

	splice @calls, between(2, 6);
	return {
		order => $order,
		plan  => $only_sorts
		  . 'SET plan_cache_mode = '
		  . pick('auto', 'auto', 'force_generic_plan', 'force_custom_plan')
		  . ";\n",
		keeps_on => $order->{mode} eq 'stable',
		sql      => sub {
			my $query = digest(
				"SELECT $list FROM $world->{t}\n WHERE id % \$1 <> 1 AND"
				  . " id IS DISTINCT FROM \$2 ORDER BY $_[0] $end",
				@shown);

			return "PREPARE q(int, int) AS\n$query"
			  . join('', @calls)
			  . "DEALLOCATE q;\n";
		}
	};
};

# A sorted result that is read more than once, by other statements, or from
# rows that a statement returns.
$kinds{other} = sub {
	my ($world, $has) = @_;
	my $order = make_order($world, $has, mode => 'total');
	my ($list, @shown) = select_list($order, chance(40));
	my $t = $world->{t};
	my $m = $world->{rows} > 500 ? 500 : $world->{rows};
	my $names = join ', ', @{ $order->{columns} };
	my $query = pick(
		sub {
			"WITH c AS MATERIALIZED (SELECT $list FROM $t ORDER BY $_[0])\n"
			  . digest('SELECT * FROM c', @shown)
			  . "WITH c AS MATERIALIZED (SELECT id FROM $t ORDER BY $_[0])\n"
			  . "SELECT (SELECT md5(string_agg(id::text, ' ')) FROM c),\n"
			  . " (SELECT string_agg(id::text, ' ') FROM (SELECT id FROM c"
			  . " LIMIT 9) x);\n";
		},
		sub {
			my $by = $_[0];

			return "WITH c AS NOT MATERIALIZED\n"
			  . " (SELECT id FROM $t ORDER BY $by OFFSET 3)\n"
			  . "SELECT count(*), sum(a.id) FROM c a JOIN c b USING (id);\n";
		},
		sub {
			"BEGIN;\n"
			  . digest(
				"SELECT id, $names FROM $t WHERE id <= $m ORDER BY $_[0]"
				  . ' FOR UPDATE', 'id', @{ $order->{columns} })
			  . "ROLLBACK;\n";
		},
		sub {
			"BEGIN;\nWITH d AS (DELETE FROM $t WHERE id <= $m AND id % 3 = 0\n"
			  . " RETURNING *)\n"
			  . digest("SELECT $list FROM d ORDER BY $_[0] OFFSET 0", @shown)
			  . "ROLLBACK;\n";
		},
		sub {
			"BEGIN;\nUPDATE $t SET j = x.n FROM (SELECT id, row_number() OVER"
			  . "\n (ORDER BY $_[0]) AS n FROM $t WHERE id <= $m) x\n"
			  . " WHERE $t.id = x.id;\n"
			  . multiset("SELECT id, j FROM $t", qw(id j))
			  . "ROLLBACK;\n";
		},
		sub {
			digest(
				"SELECT $list FROM $t TABLESAMPLE BERNOULLI (60) REPEATABLE"
				  . " (3) ORDER BY $_[0] OFFSET 0", @shown);
		},
		sub {
			digest(
				"SELECT id, generate_series(1, 1 + id % 3) AS g FROM $t\n"
				  . " ORDER BY $_[0]", qw(id g));
		},
		sub {
			digest(
				"SELECT id, $t AS whole FROM $t ORDER BY $_[0] OFFSET 0",
				'id', 'md5(whole::text)');
		},
		sub {
			my $q = "SELECT id FROM $t ORDER BY $_[0]";

			return "\\o /dev/null\nEXPLAIN (ANALYZE, VERBOSE)\n"
			  . "SELECT count(*) FROM ($q OFFSET 0) q;\n\\o\n"
			  . digest("$q OFFSET 0", 'id');
		});

	return {
		order => $order,
		plan  => $only_sorts
		  . pick('', $no_hash . "SET enable_nestloop = off;\n"),
		sql => $query
	};
};

# How often each kind comes.
my %shares = (
	plain         => 6,
	alone         => 6,
	client        => 2,
	create_table  => 2,
	limit         => 5,
	bound         => 6,
	with_ties     => 1,
	limit_append  => 2,
	cursor        => 5,
	walk          => 3,
	refusal       => 6,
	merge_join    => 5,
	semi_join     => 1,
	window        => 3,
	lateral       => 4,
	subplan       => 2,
	limit_rescan  => 2,
	join_rescan   => 2,
	recursive     => 2,
	parallel      => 2,
	incremental   => 4,
	distinct      => 3,
	group         => 2,
	rows_a_group  => 5,
	set_operation => 2,
	plpgsql       => 3,
	prepared      => 3,
	other         => 3,);
my @slots = map { ($_) x $shares{$_} } sort keys %shares;

# ---- settings ---------------------------------------------------------------

sub settings
{
	my ($has) = @_;
	my %choice = (
		'fmsort.mode' =>
		  pick(qw(fmsort fmsort double_buffering traditional multi_block
			  flash)),
		work_mem => pick(
			qw(64kB 64kB 64kB 64kB 64kB 64kB 100kB 128kB 256kB 1MB 4MB)),
		'fmsort.block_size'    => pick(0, 0, 512, 1024, 8192),
		'fmsort.assist_blocks' => pick(0, 0, 1, 2, 5, 16, 64),
		'fmsort.compression'   => pick(qw(auto off on on)),
		'fmsort.checksums'     => pick(qw(off off on)),
		'fmsort.io_method'     => pick(@{ $has->{io_methods} }),
		'fmsort.direct_io'     => pick(@{ $has->{direct} }, 'off', 'off'),
		'fmsort.parallel'      => pick(qw(on on off)),);

	return \%choice;
}

sub settings_sql
{
	my ($settings) = @_;

	return join '',
	  map { "SET $_ = '$settings->{$_}';\n" } sort keys %{$settings};
}

# Settings that change between statements, on our side only.
sub settle_shakes
{
	my ($sql, $has, $keeps_on) = @_;

	$sql =~ s{--shake\n}{
		my $settings = settings($has);
		my @names = shuffled(sort keys %{$settings});

		$settings->{'fmsort.mode'} = 'off' if !$keeps_on && chance(25);
		splice @names, between(1, 3);
		chance(70) ? settings_sql({ map { $_ => $settings->{$_} } @names })
			: ''
	}ge;
	return $sql;
}

# ---- a case -----------------------------------------------------------------

# number, world, name, kind, mode, settings, sorts; reference and ours: SQL.
sub gen_case
{
	my ($seed, $number, $world, $has) = @_;

	# the kinds of a seed come in turns
	seed_with($seed, 'kinds', int($number / @slots));
	my $kind = (shuffled(@slots))[ $number % @slots ];

	seed_with($seed, 'case', $number);
	my $case = $kinds{$kind}->($world, $has);
	my $order = $case->{order};
	my $settings = { %{ settings($has) }, %{ $case->{set} // {} } };
	my $plan = $case->{plan} // $only_sorts;
	my $reference = $case->{sql}->($order->{reference}, 0);
	my $ours = $case->{sql}->($order->{ours}, 1);

	$case->{number} = $number;
	$case->{world} = $world;
	$case->{kind} = $kind;
	$case->{settings} = $settings;
	$case->{reference} =
	    "RESET ALL;\nSET fmsort.mode = off;\nSET work_mem = '64MB';\n"
	  . $plan
	  . $reference =~ s/--shake\n//gr;
	$case->{ours} = "RESET ALL;\n"
	  . settings_sql($settings)
	  . $plan
	  . settle_shakes($ours, $has, $case->{keeps_on});
	$case->{name} = join ' ', "seed=$seed", "case=$number", "$kind:",
	  $order->{mode}, "rows=$world->{rows}", "input=$world->{input}",
	  "db=$world->{db}",
	  (map { s/^fmsort\.//r . "=$settings->{$_}" } sort keys %{$settings}),
	  ($case->{shape} ? "cursor=$case->{shape}" : ()),
	  'types=' . join('+', map { $_->{column}{type} } @{ $order->{keys} }),
	  "by=$order->{by}" =~ s/\s+/ /gr;
	return $case;
}

1;
