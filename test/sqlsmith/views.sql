-- sqlsmith itself orders nothing but windows: the views that it selects from do.

CREATE VIEW by_exact AS SELECT * FROM numbers ORDER BY exact DESC, real4;
CREATE VIEW by_text AS SELECT * FROM texts ORDER BY long_prefix, bytewise DESC;
CREATE VIEW by_nulls AS SELECT * FROM times ORDER BY day NULLS FIRST, span DESC;
CREATE VIEW by_oddity AS SELECT * FROM oddities
  ORDER BY j, feeling DESC, u, some_bits;
CREATE VIEW by_composite AS SELECT * FROM composites
  ORDER BY p, many DESC, strings, ints_between;
CREATE VIEW by_body AS SELECT * FROM wide ORDER BY dull DESC, body;
CREATE VIEW by_few AS SELECT * FROM few_values ORDER BY nothing, three, even;
CREATE VIEW by_nothing AS SELECT * FROM no_rows ORDER BY t, id;
CREATE VIEW by_part AS SELECT * FROM parts ORDER BY k, t;
CREATE VIEW twice AS SELECT * FROM (SELECT id, k, t, row_number() OVER
  (ORDER BY t DESC) AS n FROM by_part) s ORDER BY k + n, id;
CREATE VIEW first_ones AS SELECT * FROM numbers ORDER BY small, exact LIMIT 40;
CREATE VIEW first_ties AS SELECT * FROM texts ORDER BY letter
  FETCH FIRST 10 ROWS WITH TIES;
CREATE VIEW later_ones AS SELECT * FROM times ORDER BY span OFFSET 100;
CREATE VIEW distincts AS SELECT DISTINCT ON (few) few, id, padded, bytes
  FROM texts ORDER BY few, padded DESC;
CREATE VIEW moods AS SELECT DISTINCT feeling, some_bits, net FROM oddities;
CREATE VIEW ranks AS SELECT id, rank() OVER w AS r, sum(large) OVER w AS s,
  lag(exact) OVER (PARTITION BY share ORDER BY real8) AS before
  FROM numbers WINDOW w AS (PARTITION BY flag ORDER BY cash);
CREATE VIEW sums AS SELECT few, letter, count(*) AS n, max(long_prefix) AS last,
  string_agg(padded, ',' ORDER BY bytes) AS all_of_them,
  count(DISTINCT bytewise) AS different FROM texts GROUP BY few, letter;
CREATE VIEW cubes AS SELECT three, even, nothing, count(*) AS n, max(id) AS last
  FROM few_values GROUP BY CUBE (three, even, nothing);
CREATE VIEW unions AS SELECT id, few::text AS t FROM texts
  UNION SELECT id, t FROM parts;
CREATE VIEW alls AS (SELECT id, k, t FROM parts ORDER BY t) UNION ALL
  (SELECT id, number_id, bytewise FROM texts ORDER BY letter, few);
CREATE VIEW rests AS SELECT k FROM parts EXCEPT SELECT id FROM wide;
CREATE VIEW commons AS SELECT t FROM parts INTERSECT SELECT bytewise FROM texts;
CREATE VIEW joined AS SELECT n.id, n.exact, t.long_prefix, d.span
  FROM numbers n JOIN texts t ON t.number_id = n.id
  LEFT JOIN times d ON d.text_id = t.id ORDER BY d.stamp;
CREATE VIEW outer_joined AS SELECT a.id, a.u, b.t FROM oddities a
  FULL JOIN parts b ON a.id = b.k;
CREATE VIEW laterals AS SELECT w.id, s.t FROM wide w, LATERAL (SELECT t FROM
  (SELECT t, k FROM parts ORDER BY k OFFSET 1) p WHERE p.k > w.k LIMIT 2) s;

-- Sorts that a caller leaves in the middle, by a cursor, an error, a timeout.
CREATE FUNCTION left_early(n int) RETURNS text LANGUAGE plpgsql AS $$
DECLARE r record;
BEGIN
  FOR r IN SELECT t FROM parts ORDER BY t OFFSET 1 LOOP
    n := n - 1;
    IF n < 0 OR n > 1000 THEN RETURN r.t; END IF;
  END LOOP;
  RETURN 'all';
END $$;
CREATE FUNCTION failed_within(n int) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
  RETURN (SELECT count(1 / (id - abs(n) % 3000)) FROM
    (SELECT id FROM texts ORDER BY bytes OFFSET 1) s);
EXCEPTION WHEN division_by_zero THEN RETURN 'failed';
END $$;
CREATE FUNCTION back_and_forth(n int) RETURNS int LANGUAGE plpgsql AS $$
DECLARE c SCROLL CURSOR FOR SELECT id FROM times ORDER BY clock_tz, stamp; r int;
BEGIN
  OPEN c;
  MOVE FORWARD 500 IN c;
  FETCH RELATIVE -7 FROM c INTO r;
  FETCH LAST FROM c INTO r;
  RETURN r;
END $$;
CREATE FUNCTION median(int) RETURNS float8 LANGUAGE sql AS
  'SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY real8) FROM by_exact
   WHERE id > $1';
