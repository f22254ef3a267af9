# shellcheck shell=bash
# Measures one query under several contenders, by turns, and prints medians.
# Needs common.sh and a cluster (cluster.sh).
#
# Equal memory is what makes the contenders comparable (Table 5 of Lee, Roh,
# Park: External Mergesort for Flash-based Solid State Drives).  With n runs
# and l assist blocks, the merge's input buffer is, for every contender, the
# n blocks of s bytes that the traditional merge has:
#
#   traditional        n      blocks of s
#   double buffering   2n     blocks of s / 2
#   FMsort             n + l  blocks of n s / (n + l)
#
# Blocks are whole sectors of 512 bytes, so FMsort gets a little less.

COMPARE_QUERY=${COMPARE_QUERY:-SELECT * FROM orders ORDER BY o_orderdate}
COMPARE_WORK_MEM=${COMPARE_WORK_MEM:-4MB}
COMPARE_BASE_BLOCK=${BASE_BLOCK:-4096}
COMPARE_RUNS=
COMPARE_ASSIST=0
COMPARE_IO_METHOD=io_uring
COMPARE_DIRECT_IO=on

sql() { psql -X -q -A -t -v ON_ERROR_STOP=1 "$@"; }

# turns FIRST LAST CONTENDER...: a line "round contender" for each turn.  Each
# round starts with another contender, so that none always follows the same.
turns() {
    local first=$1 last=$2 round i
    shift 2

    for ((round = first; round <= last; round++)); do
        for ((i = 0; i < $#; i++)); do
            echo "$round ${*:(round - first + i) % $# + 1:1}"
        done
    done
}

# An SQL function: the median of ratios and its 95 % confidence interval.  The
# interval is one of ranks, which does not assume a normal distribution.
median_function() {
    cat <<'EOF'
CREATE FUNCTION median_of(ratios float8[], OUT median float8, OUT low float8,
  OUT high float8) LANGUAGE sql IMMUTABLE AS
$$
SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY r),
  (array_agg(r ORDER BY r))
    [greatest(1, floor(count(*) / 2.0 - 0.98 * sqrt(count(*))))::int],
  (array_agg(r ORDER BY r))
    [least(count(*), ceil(1 + count(*) / 2.0 + 0.98 * sqrt(count(*))))::int]
FROM unnest(ratios) r
$$;
EOF
}

compare_check() {
    ((COMPARE_BASE_BLOCK >= 1024 && COMPARE_BASE_BLOCK % 1024 == 0)) ||
        die "BASE_BLOCK is $COMPARE_BASE_BLOCK, but has to be a multiple of 1024"
}

# settings MODE BLOCK_SIZE ASSIST_BLOCKS IO_METHOD DIRECT_IO, as SQL
settings() {
    cat <<EOF
SET work_mem = '$COMPARE_WORK_MEM';
SET max_parallel_workers_per_gather = 0;
SET fmsort.mode = '$1';
SET fmsort.block_size = $2;
SET fmsort.assist_blocks = $3;
SET fmsort.io_method = '$4';
SET fmsort.direct_io = '$5';
EOF
}

# The contenders of Table 5 by name: stock, traditional, double_buffering,
# fmsort-L; and fmsort-auto, which chooses for itself.  With blocks of the base
# size, however many: those of Flash mergesort's paper, single_block, multi_block,
# flash, which fill work_mem; fmsort, with COMPARE_ASSIST assist blocks; and
# fmsort-base, with automatic ones.  fmsort-direct is fmsort-auto but for the
# I/O, which is the others'.
contender_settings() {
    local io=("$COMPARE_IO_METHOD" "$COMPARE_DIRECT_IO")
    local s=$COMPARE_BASE_BLOCK n=$COMPARE_RUNS l

    case $1 in
    stock) settings off 0 0 auto auto ;;
    fmsort-auto) settings fmsort 0 0 auto auto ;;
    traditional) settings traditional "$s" 0 "${io[@]}" ;;
    single_block | multi_block | flash) settings "$1" "$s" 0 "${io[@]}" ;;
    fmsort) settings fmsort "$s" "$COMPARE_ASSIST" "${io[@]}" ;;
    fmsort-base) settings fmsort "$s" 0 "${io[@]}" ;;
    fmsort-direct) settings fmsort 0 0 "${io[@]}" ;;
    double_buffering)
        settings double_buffering "$(whole_sectors $((s / 2)))" 0 "${io[@]}"
        ;;
    fmsort-*)
        l=${1#fmsort-}
        settings fmsort "$(whole_sectors $((n * s / (n + l))))" "$l" "${io[@]}"
        ;;
    *) die "no contender '$1'" ;;
    esac
}

whole_sectors() {
    local bytes=$(($1 / 512 * 512))

    echo $((bytes < 512 ? 512 : bytes))
}

# Direct I/O through io_uring if this machine has both; else as fmsort finds
# best.  A small external sort finds out.
compare_probe() {
    local error

    if ! error=$(sql -o /dev/null 2>&1 <<EOF
$(settings fmsort 4096 4 "$COMPARE_IO_METHOD" "$COMPARE_DIRECT_IO")
SELECT g FROM generate_series(1, 100000) g ORDER BY -g OFFSET 99999;
EOF
    ); then
        COMPARE_IO_METHOD=auto COMPARE_DIRECT_IO=auto
        say "Direct I/O with io_uring is not to be had here:"
        say "  ${error##*ERROR:  }"
        say "fmsort's modes run with io_method = auto, direct_io = auto."
    fi
}

# The table of results, of fmsort_last_sort()'s columns and some of EXPLAIN's.
compare_table() {
    sql <<EOF
CREATE TABLE measured (
  position int GENERATED ALWAYS AS IDENTITY, contender text, round int,
  total_ms float8, temp_bytes_read bigint, temp_bytes_written bigint,
  sort_method text, merge_passes int, runs bigint, blocks bigint,
  block_size int, assist_blocks int, io_method text, direct_io boolean,
  run_formation_ms float8, input_ms float8, block_order_ms float8,
  merge_ms float8, blocked_ms float8, reads bigint, read_batches bigint,
  writes bigint, bytes_read bigint, bytes_written bigint);
EOF
}

# Finds n by a traditional merge.
compare_find_runs() {
    COMPARE_RUNS=1
    compare_measure traditional 0
    COMPARE_RUNS=$(sql -c "SELECT coalesce(runs, 0) FROM measured
        WHERE sort_method IS NOT NULL ORDER BY position DESC LIMIT 1")
    [[ -n $COMPARE_RUNS ]] || die "fmsort_last_sort() knows no sort:" \
        "the query was not sorted by fmsort"
    ((COMPARE_RUNS > 1)) || die "the query fits in work_mem" \
        "($COMPARE_WORK_MEM): nothing to merge; use a larger SF"
}

compare_prepare() {
    compare_table
    compare_find_runs
}

# compare_measure CONTENDER ROUND: one run, one row.  The first column of
# EXPLAIN has a name that no psql variable can have, so it goes by a file.
compare_measure() {
    local plan=$CLUSTER_DIR/plan.json

    await sql <<EOF
$(contender_settings "$1")
\\o $plan
EXPLAIN (ANALYZE, TIMING OFF, SUMMARY ON, BUFFERS, FORMAT JSON)
$COMPARE_QUERY;
\\o
\\set plan \`cat $plan\`
INSERT INTO measured (contender, round, total_ms, temp_bytes_read,
  temp_bytes_written, sort_method, merge_passes, runs, blocks, block_size,
  assist_blocks, io_method, direct_io, run_formation_ms, input_ms,
  block_order_ms, merge_ms, blocked_ms, reads, read_batches, writes,
  bytes_read, bytes_written)
SELECT '$1', $2, (plan ->> 'Execution Time')::float8,
  (plan -> 'Plan' ->> 'Temp Read Blocks')::bigint * 8192,
  (plan -> 'Plan' ->> 'Temp Written Blocks')::bigint * 8192,
  s.sort_method, s.merge_passes, s.runs, s.blocks, s.block_size,
  s.assist_blocks, s.io_method, s.direct_io, s.run_formation_time,
  s.input_time, s.block_order_time, s.merge_time, s.blocked_time, s.reads, s.read_batches,
  s.writes, s.bytes_read, s.bytes_written
FROM (SELECT :'plan'::json -> 0 AS plan) e
  LEFT JOIN fmsort_last_sort() s ON '$1' <> 'stock';
EOF
}

# compare_rounds REPEAT CONTENDER...: every round runs each contender once,
# starting with another one, so that none always follows the same other.
# What was measured before is forgotten.
compare_rounds() {
    local repeat=$1 round i count start=$SECONDS
    shift
    count=$#

    sql -c "TRUNCATE measured"
    for ((round = 1; round <= repeat; round++)); do
        printf 'Round %d of %d:' "$round" "$repeat"
        for ((i = 0; i < count; i++)); do
            local contender=${*:(round - 1 + i) % count + 1:1}

            printf ' %s' "$contender"
            compare_measure "$contender" "$round"
        done
        printf ' (%d s)\n' $((SECONDS - start))
        start=$SECONDS
    done
}

# A view of the medians, in the order the contenders are named.
compare_medians() {
    local names

    printf -v names "'%s'," "$@"
    sql <<EOF
SET client_min_messages = warning;
DROP VIEW IF EXISTS medians;
CREATE VIEW medians AS
SELECT array_position(ARRAY[${names%,}], contender) AS place, contender,
  max(block_size) AS block_size, max(runs) AS runs,
  max(merge_passes) AS merge_passes,
  max(CASE contender
      WHEN 'traditional' THEN runs
      WHEN 'double_buffering' THEN 2 * runs
      ELSE runs + assist_blocks END * block_size) / 1024 AS buffer_kb,
  percentile_cont(0.5) WITHIN GROUP (ORDER BY merge_ms) AS merge_ms,
  percentile_cont(0.5) WITHIN GROUP (ORDER BY blocked_ms) AS blocked_ms
FROM measured
GROUP BY contender;
EOF
}

# print_query SQL: as an aligned table, a dash where nothing is known
print_query() {
    psql -X -q -v ON_ERROR_STOP=1 -P null=- -P footer=off -P border=0 \
        -c "$1"
}

# The merges of the contenders; "traditional" and "double_buffering" are among
# them.
compare_print() {
    compare_medians "$@"
    print_query "
SELECT contender AS \"merge\", runs, block_size AS \"block\",
  buffer_kb AS \"memory kB\", round(merge_ms::numeric, 1) AS \"merge ms\",
  round(blocked_ms::numeric, 1) AS \"wait ms\",
  round((t.ms / merge_ms)::numeric, 2) AS \"x traditional\",
  round((d.ms / merge_ms)::numeric, 2) AS \"x double\"
FROM medians,
  (SELECT merge_ms AS ms FROM medians WHERE contender = 'traditional') t,
  (SELECT merge_ms AS ms FROM medians WHERE contender = 'double_buffering') d
ORDER BY place"
    compare_warn
}

# The contenders are comparable only if each merged once, with the same buffer.
compare_warn() {
    local equal_kb=$((COMPARE_RUNS * COMPARE_BASE_BLOCK / 1024))

    sql <<EOF
SELECT 'Note: ' || contender || ' took ' || merge_passes || ' merge passes.'
FROM medians WHERE merge_passes > 1 ORDER BY place;
SELECT 'Note: ' || contender || ' formed ' || runs || ' runs and so merged'
  || ' with ' || buffer_kb || ' kB, not $equal_kb.'
FROM medians WHERE buffer_kb > 1.1 * $equal_kb ORDER BY place;
EOF
}

# What a reader must know to judge the numbers.
compare_describe() {
    say "Query:      $COMPARE_QUERY"
    say "work_mem:   $COMPARE_WORK_MEM, which makes $COMPARE_RUNS runs"
    say "Base block: $COMPARE_BASE_BLOCK bytes, so an input buffer of" \
        "$((COMPARE_RUNS * COMPARE_BASE_BLOCK / 1024)) kB for the merge"
    say "fmsort:     io_method = $COMPARE_IO_METHOD," \
        "direct_io = $COMPARE_DIRECT_IO"
    say "Disk:       $(disk_below "$CLUSTER_DIR")"
    say "Memory:     $(($(meminfo MemAvailable) / 1024)) MB free, for" \
        "$(sql -c "SELECT pg_size_pretty(pg_table_size('orders'))") of orders"
}

# Of which sources: the last commit that changed any, "+" if they have been
# changed since, nothing where git does not know.  Results of different ones
# must not come into one file.
source_state() {
    local commit

    commit=$(git -C "$FMSORT_ROOT" log -1 --format=%h -- src 2>/dev/null) ||
        return 0
    [[ $commit ]] || return 0
    git -C "$FMSORT_ROOT" diff --quiet HEAD -- src || commit+=+
    printf ' (sources: %s)' "$commit"
}

# For the head of a CSV file: a line "# name: value" each.
csv_environment() {
    cat <<EOF
# date: $(date -u +%Y-%m-%d)
# fmsort: $(version)$(source_state)
# PostgreSQL: $(sql -c "SHOW server_version")
# kernel: $(uname -r)
# processor: $(lscpu | sed -n 's/^Model name: *//p' | head -n 1), $(nproc) cores
# memory: $(($(meminfo MemTotal) / 1024)) MB
# disk: $(disk_below "$CLUSTER_DIR")
# shared_buffers: $(sql -c "SHOW shared_buffers")
EOF
}

meminfo() { sed -n "s/^$1: *\([0-9]*\) kB/\1/p" /proc/meminfo; }

# The device below a directory and how far the kernel reads ahead on it.
disk_below() {
    local sys name fs ahead=

    # In a chroot, df may not find the mount.
    fs=$(df --output=fstype "$1" | tail -n 1)
    sys=/sys/dev/block/$(stat -c '%Hd:%Ld' "$1")
    if [[ -e $sys ]]; then
        sys=$(readlink -f "$sys")
        name=${sys##*/}
        # A partition has the queue of its disk.
        [[ -e $sys/queue ]] || sys=${sys%/*}
        ahead=$(cat "$sys/queue/read_ahead_kb" 2>/dev/null || true)
    fi
    say "${name:-unknown} (file system ${fs/#-/unknown})," \
        "read_ahead_kb ${ahead:-unknown}"
}
