-- Cursors over a sort: read in pieces, held, left open, backward; loops.
SET max_parallel_workers_per_gather = 0;
SET work_mem = '64kB';
SET fmsort.block_size = 1024;

CREATE TABLE q AS SELECT i AS id, (i * 7919) % 1009 AS k, md5(i::text) AS pay
FROM generate_series(1, 5000) i;
ANALYZE q;
CREATE VIEW sorts AS
SELECT sort_number, sort_method, tuples FROM fmsort_last_sort();

\echo in pieces, another sort between them
BEGIN;
DECLARE c NO SCROLL CURSOR FOR SELECT id, k FROM q ORDER BY k;
DECLARE d NO SCROLL CURSOR FOR SELECT id, k FROM q ORDER BY k DESC, pay;
FETCH 3 FROM c;
FETCH 2 FROM d;
MOVE 2000 FROM c;
SELECT count(DISTINCT pay) FROM q;
FETCH 3 FROM c;
MOVE 4900 FROM d;
FETCH 2 FROM d;
FETCH BACKWARD 1 FROM c;
ROLLBACK;

\echo the end is the end
BEGIN;
DECLARE c NO SCROLL CURSOR FOR SELECT id, k FROM q ORDER BY k;
MOVE FORWARD ALL FROM c;
FETCH 1 FROM c;
FETCH 1 FROM c;
CLOSE c;
SELECT * FROM sorts;
COMMIT;

\echo SCROLL: forth and back, from the end, to a place
BEGIN;
DECLARE c SCROLL CURSOR FOR SELECT k, id FROM q ORDER BY k, id;
FETCH 3 FROM c;
FETCH BACKWARD 2 FROM c;
FETCH LAST FROM c;
FETCH PRIOR FROM c;
FETCH ABSOLUTE 2500 FROM c;
FETCH RELATIVE -1000 FROM c;
MOVE FIRST FROM c;
FETCH NEXT FROM c;
FETCH ABSOLUTE -2 FROM c;
COMMIT;

\echo WITH HOLD
BEGIN;
DECLARE h CURSOR WITH HOLD FOR SELECT k, id FROM q ORDER BY k, id;
FETCH 2 FROM h;
COMMIT;
FETCH 2 FROM h;
MOVE 4000 FROM h;
FETCH 2 FROM h;
CLOSE h;
SELECT * FROM pg_ls_tmpdir();

\echo without SCROLL or NO SCROLL it may scroll; ties leave in arrival order
BEGIN;
DECLARE c CURSOR FOR SELECT k, id FROM q WHERE id <= 4000 ORDER BY k;
FETCH 2 FROM c;
FETCH BACKWARD 1 FROM c;
FETCH BACKWARD 1 FROM c;
FETCH NEXT FROM c;
FETCH LAST FROM c;
FETCH NEXT FROM c;
FETCH PRIOR FROM c;
FETCH ABSOLUTE 2000 FROM c;
FETCH RELATIVE -1500 FROM c;
FETCH ABSOLUTE -4000 FROM c;
FETCH PRIOR FROM c;
FETCH PRIOR FROM c;
FETCH NEXT FROM c;
CLOSE c;
COMMIT;
SELECT * FROM sorts;

\echo loops
CREATE FUNCTION order_seen(query text) RETURNS bigint LANGUAGE plpgsql AS
$$
DECLARE
  r record;
  n bigint := 0;
  seen bigint := 0;
BEGIN
  FOR r IN EXECUTE query LOOP
    n := n + 1;
    seen := (seen * 31 + r.id) % 1000000007;
  END LOOP;
  RETURN seen;
END
$$;
SELECT order_seen('SELECT id FROM q WHERE id <= 4500 ORDER BY k');
SELECT * FROM sorts;
SET fmsort.mode = off;
SELECT order_seen('SELECT id FROM q WHERE id <= 4500 ORDER BY k, id');
RESET fmsort.mode;

\echo a loop left early, and one left by an exception that is caught
DO $$
DECLARE
  r record;
  n int := 0;
BEGIN
  FOR r IN SELECT id FROM q ORDER BY k LOOP
    n := n + 1;
    EXIT WHEN n = 1234;
  END LOOP;
  BEGIN
    FOR r IN SELECT id, k FROM q ORDER BY k DESC LOOP
      n := n / (r.k - 500);
    END LOOP;
  EXCEPTION WHEN division_by_zero THEN
    RAISE NOTICE 'caught, n is %', n;
  END;
END
$$;
SELECT * FROM pg_ls_tmpdir();

\echo a loop that commits
CREATE PROCEDURE commits() LANGUAGE plpgsql AS
$$
DECLARE
  r record;
  n int := 0;
BEGIN
  FOR r IN SELECT id FROM q ORDER BY k LOOP
    n := n + 1;
    IF n % 2000 = 0 THEN
      COMMIT;
    END IF;
  END LOOP;
  RAISE NOTICE '% rows', n;
END
$$;
CALL commits();
SELECT * FROM pg_ls_tmpdir();

\echo a refcursor
BEGIN;
CREATE FUNCTION opened() RETURNS refcursor LANGUAGE plpgsql AS
$$
DECLARE
  c NO SCROLL CURSOR FOR SELECT id, k FROM q ORDER BY k;
BEGIN
  c := 'opened';
  OPEN c;
  MOVE FORWARD 10 FROM c;
  RETURN c;
END
$$;
SELECT opened();
FETCH 2 FROM opened;
ROLLBACK;

DROP PROCEDURE commits();
DROP FUNCTION order_seen(text);
DROP VIEW sorts;
DROP TABLE q;
