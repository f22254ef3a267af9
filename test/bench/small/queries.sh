# shellcheck shell=bash
# The small sorts that pgbench runs, and their tables, made from orders.  Needs
# compare.sh.
#
# All rows but the last are skipped, so that sending them does not hide what
# the sort takes.

# shellcheck disable=SC2034 # for the scripts
SMALL_QUERIES=("1000 rows" "10 rows" "LIMIT 10 of 1 M rows")

small_query() {
    case $1 in
    "1000 rows")
        echo "SELECT * FROM orders_1000 ORDER BY o_orderdate OFFSET 999;"
        ;;
    "10 rows")
        echo "SELECT * FROM orders_10 ORDER BY o_orderdate OFFSET 9;"
        ;;
    *)
        echo "SELECT * FROM orders_million ORDER BY o_totalprice LIMIT 10;"
        ;;
    esac
}

small_tables() {
    sql <<'SQL'
CREATE TABLE orders_10 AS SELECT * FROM orders LIMIT 10;
CREATE TABLE orders_1000 AS SELECT * FROM orders LIMIT 1000;
CREATE TABLE orders_million AS
  SELECT o.*
  FROM generate_series(1, (SELECT 1000000 / count(*) + 1 FROM orders)),
    orders o
  LIMIT 1000000;
VACUUM (ANALYZE, FREEZE) orders_10, orders_1000, orders_million;
SQL
}
