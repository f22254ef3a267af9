# shellcheck shell=bash
# The automatic settings against a grid of settings, in one cell: one device,
# one state of the page cache, one work_mem.  Needs common.sh, cluster.sh,
# tpch.sh and compare.sh.
#
# First every point of the grid runs once, or GRID_SCREENING times (screening).
# The fastest of many noisy figures is fast by luck as well, so the best
# GRID_FINALISTS run again with those that are to be judged, by turns, GRID_REPEAT
# rounds, and only these count (final).  One of them is there twice, so that
# chance can be seen: while it makes up more than GRID_CHANCE per cent, of that
# one or of what is judged, there are further rounds, GRID_MOST at the most.
# GRID_BRIEF are far enough from the others for GRID_REPEAT rounds to tell.
# Results go, a line a query, to GRID_RESULTS; report.py reads them.  A cell that
# is in there already is not measured again.
#
# A query pays for what the one before it has left.  Of free memory: a virtual
# machine's host takes away what nobody uses, and whoever needs it then waits for
# it, maybe for as long as it sorts.  So each round has another order.  And of the
# page cache, where memory is short: in the stages that GRID_SETTLE names that is
# its own kind, which runs first without being counted.
#
# GRID_COLD: the kernel forgets the table before each query, and nothing else.
# To empty the whole page cache would have each query wait for programs and
# catalogs, too, that no sort has to do with.  A virtual machine's kernel looks
# every two seconds for free memory to give to its host; if that happened to be
# what the table has just left, reading it again would take three times as long.
# So for GRID_QUIET seconds nothing is freed, and the next look is after it.
#
# Contenders:
#
#   stock       PostgreSQL's sort
#   unknown     automatic settings, the device has not been measured
#   known       automatic, with the profile that grid_calibrate measured
#   times10     automatic, with that profile ten times too fast
#   tenth       automatic, with that profile ten times too slow
#   B/L/D       block size, assist blocks, direct I/O as set
#   B/L/D/C     likewise, and compression as set
#   again:B/..  the same once more: what the two differ by is chance

GRID_REPORT=$FMSORT_ROOT/test/bench/devices/report.py
GRID_RESULTS=
GRID_REPEAT=${REPEAT:-3}
GRID_MOST=${MOST:-$GRID_REPEAT}
GRID_CHANCE=${CHANCE:-2}
GRID_SCREENING=${SCREENING:-1}
GRID_FINALISTS=${FINALISTS:-2}
GRID_BRIEF="stock times10 tenth"
GRID_KEY=
GRID_COLD=0
GRID_QUIET=2.5
GRID_CALIBRATION=
GRID_CALIBRATED_ROUNDS=${CALIBRATED_ROUNDS:-3}
GRID_SETTLE=
GRID_POINTS=()

# grid_report COMMAND...: the arithmetic, see report.py
grid_report() { python "$GRID_REPORT" "$GRID_RESULTS" "$@"; }

# grid_begin FILE: results go there; with RESUME=1, to those that it has
grid_begin() {
    GRID_RESULTS=$1
    mkdir -p "${1%/*}"
    [[ ${RESUME:-0} == 1 ]] || rm -f "$1"
}

# grid_points BLOCKS ASSISTS DIRECTS...: every combination.  More than three
# lists: what is in the fourth, too.
grid_points() {
    local list value point points=('')

    for list in "$@"; do
        GRID_POINTS=()
        for point in "${points[@]}"; do
            for value in $list; do
                GRID_POINTS+=("${point:+$point/}$value")
            done
        done
        points=("${GRID_POINTS[@]}")
    done
}

# grid_calibrate SECONDS SIZE_MB: measures the device, and keeps the profile
# where it can be taken from again.
grid_calibrate() {
    sql -o /dev/null <<EOF
SET client_min_messages = warning;
DROP TABLE IF EXISTS true_profile, true_rate;
SELECT count(*) FROM fmsort_calibrate(seconds => $1, file_bytes => $2 * 1048576::bigint);
CREATE TABLE true_profile AS TABLE fmsort_device_profile;
CREATE TABLE true_rate AS TABLE fmsort_device_rate;
EOF
}

# SQL that puts the contender's profile in place
grid_profile() {
    local factor

    echo "DELETE FROM fmsort_device_profile;"
    case $1 in
    known | */*/*) factor=1 ;;
    times10) factor=10 ;;
    tenth) factor=0.1 ;;
    *) return 0 ;;
    esac
    cat <<EOF
INSERT INTO fmsort_device_profile TABLE true_profile;
INSERT INTO fmsort_device_rate
SELECT tablespace, measurement, block_size, queue_depth,
  bytes_per_second * $factor
FROM true_rate;
EOF
}

# SQL that sets the contender's settings
grid_contender() {
    local block assist direct compression

    case $1 in
    stock) settings off 0 0 auto auto ;;
    */*/*)
        IFS=/ read -r block assist direct compression <<<"${1#again:}"
        settings fmsort "$block" "$assist" auto "$direct"
        [[ -z $compression ]] ||
            echo "SET fmsort.compression = $compression;"
        ;;
    *) settings fmsort 0 0 auto auto ;;
    esac
}

# The table is on disk, and in the page cache no longer.
grid_forget_table() {
    local path file

    path=$(sql -c "SELECT current_setting('data_directory') || '/'
        || pg_relation_filepath('orders')") && sync && sleep "$GRID_QUIET" ||
        return
    for file in "$path"*; do
        dd if="$file" iflag=nocache count=0 status=none || return
    done
}

# grid_settle WORK_MEM CONTENDER: leaves the page cache as that contender does
grid_settle() {
    sql -o /dev/null <<EOF
$(COMPARE_WORK_MEM=$1MB grid_contender "$2")
SET jit = off;
EXPLAIN (ANALYZE, TIMING OFF) SELECT * FROM orders ORDER BY $GRID_KEY;
EOF
}

# grid_measure STAGE CELL WORK_MEM CONTENDER ROUND: one query, one line.
grid_measure() {
    local plan=$CLUSTER_DIR/plan.json

    # A session of its own, so that the query finds the profile as all do.
    grid_profile "$4" | sql || return
    if ((GRID_COLD)); then
        grid_forget_table || return
    fi
    if [[ " $GRID_SETTLE " == *" $1 "* ]]; then
        grid_settle "$3" "$4" || return
    fi
    sql >"$plan" <<EOF || return
$(COMPARE_WORK_MEM=$3MB grid_contender "$4")
SET jit = off;
\\echo {"plan":
EXPLAIN (ANALYZE, TIMING OFF, SUMMARY ON, FORMAT JSON)
SELECT * FROM orders ORDER BY $GRID_KEY;
\\echo , "sorts":
SELECT coalesce(json_agg(s), '[]') FROM fmsort_last_sort() s;
\\echo }
EOF
    grid_report add "$1" "$2" "$GRID_KEY" "$3" "$4" "$5" "$plan"
}

# grid_round STAGE CELL WORK_MEM ROUND CONTENDER...: every round in another order
grid_round() {
    local stage=$1 cell=$2 mem=$3 round=$4 contender
    shift 4

    for contender in $(grid_shuffle "$cell $mem $round" "$@"); do
        grid_measure "$stage" "$cell" "$mem" "$contender" "$round" || return
    done
}

# With GRID_CALIBRATION (seconds and MB of grid_calibrate) the device is measured
# every now and then, so that no contender is judged by minutes that are over, or
# by one calibration.
grid_calibrate_again() {
    # shellcheck disable=SC2086 # words
    [[ -z $GRID_CALIBRATION ]] || grid_calibrate $GRID_CALIBRATION
}

# grid_screen CELL WORK_MEM: every point of the grid
grid_screen() {
    local round

    for ((round = 1; round <= GRID_SCREENING; round++)); do
        grid_calibrate_again || return
        grid_round screening "$1" "$2" "$round" "${GRID_POINTS[@]}" || return
    done
}

# grid_judge CELL WORK_MEM CONTENDER...: as many rounds as it takes
grid_judge() {
    local cell=$1 mem=$2 round contender lasting=()
    shift 2

    for contender in "$@"; do
        [[ " $GRID_BRIEF " == *" $contender "* ]] || lasting+=("$contender")
    done
    for ((round = 1; round <= GRID_MOST; round++)); do
        (((round - 1) % GRID_CALIBRATED_ROUNDS)) || grid_calibrate_again ||
            return
        ((round <= GRID_REPEAT)) || set -- "${lasting[@]}"
        grid_round final "$cell" "$mem" "$round" "$@" || return
        ((round < GRID_REPEAT)) ||
            ! grid_report settled "$cell" "$GRID_KEY" "$mem" "$GRID_CHANCE" \
                "${lasting[@]}" || break
    done
}

# grid_shuffle SEED WORD...: the same order each time it is asked
grid_shuffle() {
    printf '%s\n' "${@:2}" | while read -r word; do
        printf '%s\t%s\n' "$(sha256sum <<<"$1 $word")" "$word"
    done | sort | cut -f 2
}

grid_both_stages() {
    local cell=$1 mem=$2 best
    shift 2

    # A warm-up, which counts nowhere.
    grid_measure warm-up "$cell" "$mem" stock 0 &&
        grid_screen "$cell" "$mem" || return
    best=$(grid_report best "$cell" "$GRID_KEY" "$mem" "$GRID_FINALISTS") ||
        return
    # shellcheck disable=SC2086 # words
    grid_judge "$cell" "$mem" "$@" $best "again:${best%% *}"
}

# grid_cell CELL WORK_MEM CONTENDER...: these are judged.
grid_cell() {
    if grid_report has "$1" "$GRID_KEY" "$2" "$GRID_REPEAT"; then
        say "$1, $2 MB: measured already"
        return
    fi
    step "$1, $2 MB" grid_both_stages "$@"
}

# What a reader of the figures must know.
grid_describe() {
    grid_report environment fmsort "$(version)$(source_state)"
    grid_report environment PostgreSQL "$(sql -c "SHOW server_version")"
    grid_report environment kernel "$(uname -r)"
    grid_report environment cores "$(nproc)"
    grid_report environment memory "$(($(meminfo MemTotal) / 1024)) MB"
    grid_report environment disk "$(disk_below "$CLUSTER_DIR")"
    grid_report environment orders "$(sql -c "SELECT count(*) || ' rows, '
        || pg_size_pretty(pg_table_size('orders')) FROM orders")"
    grid_report environment rounds \
        "$GRID_REPEAT to $GRID_MOST, after $GRID_SCREENING of screening"
}

# grid_publish NAME: tables, and NAME.csv and .svg in OUT
grid_publish() {
    mkdir -p "$OUT"
    grid_report tables
    grid_report csv >"$OUT/$1.csv"
    python "$FMSORT_ROOT/script/charts.py" "$OUT"
    say
    say "The figures are in ${OUT#"$FMSORT_ROOT/"}/$1.csv, a chart in $1.svg."
}
