# shellcheck shell=bash
# Shards: servers beside the throw-away cluster, each with a part of TPC-H's
# orders.  The cluster has a table over them (orders) and one of its own with
# all rows (orders_here).  Needs common.sh, cluster.sh, tpch.sh and compare.sh.

SHARDS=${SHARDS:-2}

# SQL of the contenders: all rows on one server, then the shards under
# PostgreSQL's Merge Append and under fmsort's node.
shards_contender() {
    case $1 in
    one_server) echo "SET search_path = here;" ;;
    merge_append) echo "SET enable_async_append = off;" ;;
    fmsort_merge) echo "SET enable_async_append = on;" ;;
    *) die "no contender '$1'" ;;
    esac
}

shards_query() {
    case $1 in
    limit) echo "SELECT * FROM orders ORDER BY o_comment LIMIT 1000" ;;
    offset)
        echo "SELECT * FROM orders ORDER BY o_comment" \
            "OFFSET ${2:-100000} LIMIT 10"
        ;;
    filter)
        echo "SELECT count(*) FROM (SELECT * FROM orders" \
            "WHERE o_comment LIKE '%special%requests%'" \
            "ORDER BY o_comment OFFSET 0) x"
        ;;
    count)
        echo "SELECT count(*) FROM (SELECT * FROM orders ORDER BY o_comment" \
            "OFFSET 0) x"
        ;;
    all) echo "SELECT * FROM orders ORDER BY o_comment" ;;
    *) die "no query '$1'" ;;
    esac
}

on_shard() { sql -p $((5432 + $1)) "${@:2}"; }

shard_create() {
    server_create "shard$1" "shard$1.log" "port = $((5432 + $1))" \
        "session_preload_libraries = 'fmsort'" "log_timezone = UTC" \
        "log_line_prefix = '%m '" 'log_min_duration_statement = 100' \
        'max_parallel_workers_per_gather = 0' "${@:2}"
}

# shards_start ['name = value'...]: after cluster_start
shards_start() {
    local i

    at_exit shards_stop
    for ((i = 1; i <= SHARDS; i++)); do
        step "Starting shard $i" shard_create "$i" "$@"
    done
}

shards_stop() {
    local i

    [[ ${KEEP:-0} != 1 ]] || return 0
    for ((i = 1; i <= SHARDS; i++)); do
        server_stop "shard$i"
    done
}

# shard_load NUMBER SCALE_FACTOR: the orders whose key leaves that remainder
shard_load() {
    on_shard "$1" -c "CREATE EXTENSION fmsort" \
        -c "$(tpch_definition orders)" &&
        "$TPCH_VENV/bin/tpchgen-cli" tbl --scale-factor "$2" \
            --tables orders --num-threads 1 --stdout --quiet |
        awk -F '|' -v n="$SHARDS" -v i="$1" \
            '$1 % n == i % n { sub(/\|$/, ""); print }' |
            on_shard "$1" -c "COPY orders FROM STDIN (DELIMITER '|')" \
                -c "VACUUM (ANALYZE, FREEZE) orders"
}

# shards_load SCALE_FACTOR FETCH_SIZE
shards_load() {
    local i

    for ((i = 1; i <= SHARDS; i++)); do
        step "Loading shard $i" shard_load "$i" "$1"
    done
    step "Collecting statistics of the foreign tables" shards_define "$2"
    step "Loading all orders into one server" shards_load_here
}

shards_define() {
    local i

    sql <<SQL
CREATE EXTENSION postgres_fdw;
$(tpch_definition orders) PARTITION BY LIST ((o_orderkey % $SHARDS));
SQL
    for ((i = 1; i <= SHARDS; i++)); do
        sql <<SQL
CREATE SERVER shard$i FOREIGN DATA WRAPPER postgres_fdw OPTIONS (
  host '$CLUSTER_DIR', port '$((5432 + i))', async_capable 'true',
  fetch_size '$1');
CREATE USER MAPPING FOR CURRENT_USER SERVER shard$i;
CREATE FOREIGN TABLE orders_$i PARTITION OF orders
  FOR VALUES IN ($((i % SHARDS))) SERVER shard$i OPTIONS (table_name 'orders');
SQL
    done
    sql -c "ANALYZE orders"
}

shards_load_here() {
    sql <<'SQL'
CREATE SCHEMA here;
CREATE TABLE here.orders AS SELECT * FROM public.orders;
VACUUM (ANALYZE, FREEZE) here.orders;
CREATE TABLE measured (query text, fetch_size int, contender text, round int,
  ms float8);
SQL
}

shards_set_fetch_size() {
    local i

    for ((i = 1; i <= SHARDS; i++)); do
        sql -c "ALTER SERVER shard$i OPTIONS (SET fetch_size '$1')"
    done
}

# shards_measure QUERY FETCH_SIZE REPEAT CONTENDER...: by turns; round 0 warms up
shards_measure() {
    local query=$1 fetch_size=$2 repeat=$3 round contender
    shift 3

    shards_set_fetch_size "$fetch_size" || return
    while read -r round contender; do
        sql -c "$(shards_contender "$contender")" \
            -c "EXPLAIN (ANALYZE, TIMING OFF, SUMMARY ON) $(shards_query "$query")" |
            sed -n "s/^Execution Time: \(.*\) ms/$query\t$fetch_size\t$contender\t$round\t\1/p"
    done < <(turns 0 "$repeat" "$@") >"$CLUSTER_DIR/figures" || return
    sql -c "COPY measured FROM STDIN" <"$CLUSTER_DIR/figures"
}

# SQL: a line for each query and fetch_size
shards_figures() {
    cat <<'SQL'
SELECT query, fetch_size, round(one) AS one_server_ms,
  round(merge_append) AS merge_append_ms, round(fmsort) AS fmsort_merge_ms,
  round((merge_append / fmsort)::numeric, 2) AS ratio
FROM (SELECT query, fetch_size,
    percentile_cont(0.5) WITHIN GROUP (ORDER BY ms)
      FILTER (WHERE contender = 'one_server') AS one,
    percentile_cont(0.5) WITHIN GROUP (ORDER BY ms)
      FILTER (WHERE contender = 'merge_append') AS merge_append,
    percentile_cont(0.5) WITHIN GROUP (ORDER BY ms)
      FILTER (WHERE contender = 'fmsort_merge') AS fmsort
  FROM measured WHERE round > 0 GROUP BY query, fetch_size) medians
ORDER BY
  array_position(ARRAY['limit', 'offset', 'filter', 'count', 'all'], query),
  fetch_size
SQL
}

# When each shard executed its longest statement since its log was emptied.
shards_busy() {
    local i

    for ((i = 1; i <= SHARDS; i++)); do
        awk -v shard="$i" '
            / LOG:  duration: / {
                split($2, time, ":")
                ended = time[1] * 3600 + time[2] * 60 + time[3]
                for (f = 1; f <= NF && $f != "duration:"; f++);
                if ($(f + 1) > longest) {
                    longest = $(f + 1); end = ended; what = $(f + 4)
                }
            }
            END {
                printf "shard %d: %s from %.3f s to %.3f s\n", shard, what,
                    end - longest / 1000, end
            }' "$CLUSTER_DIR/shard$i.log"
    done
}

shards_forget_log() {
    local i

    for ((i = 1; i <= SHARDS; i++)); do
        : >"$CLUSTER_DIR/shard$i.log"
    done
}
