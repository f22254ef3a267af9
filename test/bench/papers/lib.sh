# shellcheck shell=bash
# What the papers' experiments share: a throw-away cluster with fmsort, data,
# CSV files that are appended to as rows are measured, progress, charts.
#
# A script of this directory is one paper.  It sources this file and has this
# shape:
#
#   . "$(dirname "$0")/lib.sh"
#
#   cells()    { printf '%s\t' WEIGHT DATA RUNS CONTENDER ROUND; echo; ... }
#   measure()  { papers_sort "$3"                  # fills SORT[...]
#                csv_row "$@" "${SORT[merge_ms]}"; }
#
#   papers_fact scale "$SF"                        # for the CSV's head
#   papers_start 4000 "name = 'value'"...          # MB that the disk must have
#   papers_orders 1                                # table orders_1
#   csv_open paper "data,runs,contender,round" "merge_ms"
#   cells | papers_measure measure
#   papers_chart figure-6 --x runs --series contender --y merge_ms ...
#
# papers_start SPACE_MB [SERVER_SETTING...]
#     Checks the space below FMSORT_TMP, builds and installs, starts a cluster
#     that is removed on the way out, however that is.  The extension is
#     created; sql() of compare.sh runs SQL in it.
# papers_fact NAME VALUE
#     A line of the heads of the CSV files opened afterwards; the hardware, the
#     kernel, the versions and the commit are there by themselves.
# papers_orders SCALE, papers_customer SCALE
#     Loads TPC-H's table in this cluster unless it is there; its name is what
#     papers_table orders SCALE prints.
# csv_open NAME KEYS VALUES
#     $OUT/NAME.csv with these columns (comma separated).  A file that is there
#     with the same head goes on, and rows whose keys are in it are not measured
#     again; one with another head (other hardware, versions, settings) is put
#     aside into build/benchmarks, and FRESH=1 puts it aside in any case.
# csv_there NAME
#     False if it is to be drawn and is not there; says so.
# csv_has KEY..., csv_row KEY... VALUE...
#     Is that row there?  Appends one.  No value may contain a comma.
# papers_measure COMMAND [PREPARE]
#     Reads cells, a line each: WEIGHT KEY..., tab-separated; WEIGHT is what
#     the cell costs beside the others, in any unit.  Runs COMMAND KEY... for
#     those that are not in the CSV file, with a line of progress and the
#     estimated end.  COMMAND appends the row.  PREPARE KEY... comes before it
#     and before BEFORE_EACH: it loads what the cell needs.
# papers_sort CONTENDER
#     One sort of COMPARE_QUERY under COMPARE_WORK_MEM as that contender of
#     compare.sh; the columns of its table "measured" are then in SORT.
# papers_drive NAME COMMAND
#     $OUT/NAME.csv: MB/s that the drive alone makes of random direct reads, by
#     fio, for the cells that COMMAND prints: 1, block bytes, how many at once.
# papers_size FULL QUICK TINY
#     One of the three, by the settings below: for defaults.
# papers_panels "DATA..."
#     The options of papers_chart for a panel a data set, a line each.
# papers_chart NAME OPTION...
#     $OUT/NAME.svg from the CSV file that is open; options: report.py.
#
# Settings that every script has:
#
#   OUT=build/benchmarks/papers   where CSV and SVG go
#                                 (build/benchmarks/papers-quick if QUICK=1)
#   REPEAT=3                      rounds; charts show medians
#   QUICK=1                       smaller data and grids
#   TINY=1                        hardly any, not TPC-H's: are the commands in
#                                 order?
#   INSTALLED=1                   as things are: nothing is set up or built
#   FRESH=1                       measures everything again
#   DRAW=1                        tables and charts of the CSV files that are there:
#                                 measures nothing and needs no server
#   SEED=42                       of everything random
#   BEFORE_EACH='command'         is run before each measurement: to wait until
#                                 a machine is idle, or to drop caches

PAPERS_DIR=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
PAPERS_ROOT=${PAPERS_DIR%/test/bench/*}
. "$PAPERS_ROOT/script/lib/common.sh"
. "$PAPERS_ROOT/script/lib/cluster.sh"
. "$PAPERS_ROOT/script/lib/tpch.sh"
. "$PAPERS_ROOT/test/bench/fio.sh"
. "$PAPERS_ROOT/script/lib/compare.sh"

QUICK=${QUICK:-0}
TINY=${TINY:-0}
((!TINY)) || QUICK=1
SEED=${SEED:-42}
DRAW=${DRAW:-0}
if ((QUICK)); then
    OUT=${OUT:-$PAPERS_ROOT/build/benchmarks/papers-quick}
    REPEAT=${REPEAT:-1}
fi
OUT=${OUT:-$PAPERS_ROOT/build/benchmarks/papers}
REPEAT=${REPEAT:-3}
BEFORE_EACH=${BEFORE_EACH:-}
# Nothing is left up.
KEEP=0
COMPARE_WORK_MEM=4MB

# shellcheck disable=SC2034 # for the scripts
declare -A SORT
FACTS=
CSV=
CSV_KEYS=0
# Its rows' keys, each with commas between.
declare -A CSV_ROWS

papers_size() {
    if ((TINY)); then
        echo "$3"
    elif ((QUICK)); then
        echo "$2"
    else
        echo "$1"
    fi
}

# ---- the cluster ------------------------------------------------------------

papers_fact() { FACTS+="# $1: ${*:2}"$'\n'; }

papers_space() {
    local free
    free=$(df --output=avail -m "$FMSORT_TMP" | tail -n 1)

    ((free >= $1)) || die "$FMSORT_TMP has $free MB free and this needs" \
        "$1 MB: FMSORT_TMP names another directory"
}

papers_start() {
    local space=$1
    shift

    mkdir -p "$OUT"
    if ((DRAW)); then
        CLUSTER_DIR=$(mktemp -d)
        at_exit cluster_remove
        return
    fi
    papers_space "$space"
    if [[ ${INSTALLED:-0} == 1 ]]; then
        log_to "$OUT/${0##*/}.log"
    else
        "$PAPERS_ROOT/script/setup" demo bench
        log_to "$PAPERS_ROOT/build/log/papers-${0##*/}.log"
        step "Building and installing" build_and_install
    fi
    cluster_start "session_preload_libraries = 'fmsort'" \
        "max_parallel_workers_per_gather = 0" "$@"
    sql -c "CREATE EXTENSION fmsort"
    compare_probe
    compare_table
}

papers_table_exists() {
    [[ $(sql -c "SELECT to_regclass('$1') IS NOT NULL") == t ]]
}

# papers_table TABLE SCALE: its name; a scale may be 0.5
papers_table() { echo "$1_${2//./_}"; }

papers_tpch() {
    papers_table_exists "$(papers_table "$1" "$2")" ||
        step "Loading $1 at scale $2" papers_tpch_load "$1" "$2"
}

papers_tpch_load() {
    local load=tpch_load

    ((!TINY)) || load=papers_tiny_load
    "$load" "$1" "$2" &&
        sql -c "ALTER TABLE $1 RENAME TO $(papers_table "$1" "$2")"
}

# The same columns without the generator.
papers_tiny_load() {
    local rows
    rows=$(awk "BEGIN { print 150000 * $2 }")

    tpch_definition "$1" | sql
    if [[ $1 == customer ]]; then
        sql <<EOF
INSERT INTO customer SELECT i, 'Customer', md5(i::text), i % 25, '25-989-741',
  i % 9999, 'BUILDING', md5(i::text) || md5(i::text)
FROM generate_series(1, $rows) i;
EOF
    else
        sql <<EOF
INSERT INTO orders SELECT i, 1 + i * 7919 % $rows, 'O', i % 99999,
  date '1992-01-01' + i * 7919 % 2406, '1-URGENT', 'Clerk#000000001', 0,
  md5(i::text)
FROM generate_series(1, $rows * 10) i;
EOF
    fi
    sql -c "VACUUM (ANALYZE, FREEZE) $1"
}

papers_orders() { papers_tpch orders "$1"; }
papers_customer() { papers_tpch customer "$1"; }

# ---- CSV --------------------------------------------------------------------

# The date is that of the beginning.
papers_head() {
    cat <<EOF
# experiment: $1
$(csv_environment)
# io_method: $COMPARE_IO_METHOD, direct_io: $COMPARE_DIRECT_IO
# seed: $SEED
EOF
    printf '%s' "$FACTS"
}

same_head() {
    diff <(grep -v '^# date:' <<<"$1") \
        <(sed -n '/^#/p' "$CSV" | grep -v '^# date:')
}

csv_put_aside() {
    local aside=$PAPERS_ROOT/build/benchmarks/${CSV##*/}.before

    mkdir -p "${aside%/*}"
    mv "$CSV" "$aside"
    say "$1: what was there is now ${aside#"$PAPERS_ROOT/"}"
}

csv_open() {
    local head keys=$2

    CSV=$OUT/$1.csv
    CSV_ROWS=()
    CSV_KEYS=$(tr -cd , <<<"$keys" | wc -c)
    CSV_KEYS=$((CSV_KEYS + 1))
    if ((DRAW)); then
        [[ -e $CSV ]] || die "there is no $CSV"
        return
    fi
    head=$(papers_head "$1")
    if [[ -e $CSV && ${FRESH:-0} == 1 ]]; then
        csv_put_aside "FRESH=1"
    elif [[ -e $CSV ]] && ! same_head "$head"; then
        csv_put_aside "$1.csv is of other circumstances (above)"
    fi
    if [[ ! -e $CSV ]]; then
        printf '%s\n%s\n' "$head" "$keys,$3" >"$CSV"
        return
    fi
    while IFS= read -r keys; do CSV_ROWS[$keys]=1; done < <(
        sed '/^#/d' "$CSV" | tail -n +2 | cut -d , -f "1-$CSV_KEYS")
}

# csv_there NAME: for what older results do not have; drawn if it is there.
csv_there() {
    ((!DRAW)) || [[ -e $OUT/$1.csv ]] && return
    say "Not measured: there is no $1.csv."
    return 1
}

csv_has() {
    local IFS=,

    [[ -n ${CSV_ROWS["$*"]:-} ]]
}

csv_row() {
    local IFS=,

    printf '%s\n' "$*" >>"$CSV"
    CSV_ROWS["${*:1:CSV_KEYS}"]=1
}

# ---- measuring --------------------------------------------------------------

papers_clock() { awk '{ print int($1 * 1000) }' /proc/uptime; }

# papers_end SECONDS_SO_FAR DONE TOTAL: when it will be over, by weight
papers_end() {
    local left
    left=$(awk "BEGIN { print int($1 * ($3 - $2) / $2 + 0.5) }")

    echo "$((left / 60)) min left, until about $(date -d "$left seconds" +%H:%M)"
}

papers_measure() {
    local weight line=0 start took total=0 done=0 cell
    local cells=() fields

    if ((DRAW)); then
        cat >/dev/null
        return
    fi
    while IFS=$'\t' read -ra fields; do
        csv_has "${fields[@]:1}" && continue
        cells+=("$(printf '%s\t' "${fields[@]}")")
        total=$(awk "BEGIN { print $total + ${fields[0]} }")
    done
    ((${#cells[@]})) || say "${CSV##*/}: everything was measured already." \
        "FRESH=1 measures it again."
    start=$SECONDS
    for cell in "${cells[@]}"; do
        IFS=$'\t' read -ra fields <<<"$cell"
        line=$((line + 1))
        weight=${fields[0]}
        [[ -z ${2:-} ]] || "$2" "${fields[@]:1}"
        [[ -z $BEFORE_EACH ]] || await bash -c "$BEFORE_EACH"
        took=$(papers_clock)
        "$1" "${fields[@]:1}"
        took=$(($(papers_clock) - took))
        done=$(awk "BEGIN { print $done + $weight }")
        printf '%4d of %d  %-48s %6d ms  %s\n' "$line" "${#cells[@]}" \
            "$(tr '\t' ' ' <<<"${cell#*$'\t'}")" "$took" \
            "$(papers_end $((SECONDS - start + 1)) "$done" "$total")"
    done
}

papers_sort() {
    local name value

    compare_measure "$1" 0
    SORT=()
    # shellcheck disable=SC2034
    while IFS=' ' read -r name value; do SORT[$name]=$value; done < <(
        sql -c "SELECT key || ' ' || value FROM json_each_text(
            (SELECT to_json(m) FROM measured m
             ORDER BY position DESC LIMIT 1))")
}

DRIVE_FILE_MB=512

drive_file() { echo "$CLUSTER_DIR/fio.data"; }

papers_drive_prepare() {
    [[ -e $(drive_file) ]] || fio_file "$(drive_file)" "$DRIVE_FILE_MB"
}

# A second for each.
papers_drive_cell() {
    local rate
    rate=$(fio_rate "$(drive_file)" "$DRIVE_FILE_MB" randread "$1" "$2" 1s)

    csv_row "$1" "$2" "$rate"
}

papers_drive() {
    headline "The drive alone, fio"
    if ((!DRAW)); then
        fio_buffers
        papers_fact fio "$FIO_MEMORY"
    fi
    csv_open "$1" block_bytes,queue_depth mb_per_s
    "$2" | papers_measure papers_drive_cell papers_drive_prepare
}

# ---- charts -----------------------------------------------------------------

papers_report() { python "$PAPERS_DIR/report.py" "$1" "$CSV" "${@:2}"; }

papers_panels() {
    local data

    for data in $1; do
        printf '%s\n' --panel "Data $data: data=$data"
    done
}

papers_chart() {
    local svg=$OUT/$1.svg

    papers_report chart "${@:2}" >"$CLUSTER_DIR/chart.gp"
    gnuplot "$CLUSTER_DIR/chart.gp" >"$svg"
    say "Drawn: ${svg#"$PAPERS_ROOT/"}"
}
