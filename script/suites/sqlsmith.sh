# shellcheck shell=bash
# Random statements against sorts: sqlsmith, as long as wanted, with fmsort in
# every session, little work_mem and planner settings under which most of what
# can be sorted is.  Results are not looked at; what happens to the server is:
#
#   - no process of it may crash, panic or fail an assertion
#   - no internal error (and none for want of memory, files or disk) may come
#     that PostgreSQL's own sort does not give for the same statement
#   - a backend that is idle holds no temporary file, ring, mapping or memory
#     of a sort, and nothing lies around in the end
#
#   script/test sqlsmith            MINUTES=10, SEED=number, KEEP=1
#
# What is found goes to build/log/sqlsmith, statements included.  The same
# seed gives other statements where timeouts fall differently.

MINUTES=${MINUTES:-10}
SEED=${SEED:-$RANDOM}
SAMPLE_TRIES=60
FAILED=0
FOUND=$FMSORT_ROOT/build/log/sqlsmith

# A leg is one run of sqlsmith.  Legs take turns at these settings; each is
# that of a role of its own, so that the log names it.
LEG_SECONDS=30
HASHLESS="enable_hashagg=off enable_hashjoin=off"
PARALLEL="max_parallel_workers_per_gather=2 parallel_setup_cost=0
    parallel_tuple_cost=0"
SETTINGS=(
    "fmsort.block_size=0"
    "$HASHLESS"
    "$HASHLESS enable_nestloop=off fmsort.block_size=512
        fmsort.assist_blocks=1"
    "$HASHLESS enable_material=off fmsort.mode=double_buffering
        fmsort.io_method=sync"
    "$HASHLESS enable_indexscan=off fmsort.mode=traditional
        fmsort.direct_io=off"
    "$HASHLESS $PARALLEL"
)

# What caches and the allocator explain of a session's memory; the shared buffers
# that it touches alone are in it, hence few.
IDLE_PRIVATE_MAX_KB=262144

sql() { psql -X -q -A -t -v ON_ERROR_STOP=1 "$@"; }

# ---- the database -----------------------------------------------------------

# Parallel plans are for our tables only: sqlsmith begins with thousands of
# questions to the catalog.
allow_workers() {
    sql -d smith -F ' ' -c "SELECT 'ALTER TABLE', oid::regclass,
        'SET (parallel_workers = 2);' FROM pg_class
        WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace" |
        sql -d smith -f -
}

make_roles() {
    local i setting

    for i in "${!SETTINGS[@]}"; do
        echo "CREATE ROLE smith$i LOGIN; GRANT everybody TO smith$i;"
        for setting in ${SETTINGS[i]}; do
            echo "ALTER ROLE smith$i SET ${setting/=/ = };"
        done
    done | sql -d smith -c 'CREATE ROLE everybody' \
        -c 'GRANT ALL ON SCHEMA public TO everybody' \
        -c 'GRANT ALL ON ALL TABLES IN SCHEMA public TO everybody' -f -
}

make_database() {
    sql -c 'CREATE DATABASE smith' &&
        sql -d smith -f "$FMSORT_ROOT/test/sqlsmith/tables.sql" &&
        allow_workers &&
        sql -d smith -f "$FMSORT_ROOT/test/sqlsmith/views.sql" &&
        make_roles && sql -d smith -c 'VACUUM ANALYZE'
}

# ---- sqlsmith ---------------------------------------------------------------

# The backend that serves it, if that is not busy.
idle_backend() {
    sql -c "SELECT pid FROM pg_stat_activity WHERE usename = '$1'
        AND application_name = 'sqlsmith::dut' AND state <> 'active'" \
        2>/dev/null || true
}

# runuser stops with what it runs: the whole process group has to go on.
go_on() { kill -CONT 0; }

# hold ROLE SQLSMITH: stops sqlsmith where its backend is idle, prints
# that.  A backend whose result waits to be read never is: try again.
hold() {
    local backend tries

    for tries in {1..10}; do
        kill -STOP "$2" 2>/dev/null || return 0
        for _ in {1..15}; do
            sleep 0.1
            backend=$(idle_backend "$1")
            if [[ -n $backend ]]; then
                echo "$backend"
                return
            fi
        done
        go_on
        sleep "0.$tries"
    done
}

# What the idle backend holds, as a line: leg, temporary files, rings, private
# memory in kB.  Its memory contexts go to the log.
look_at() {
    local leg=$1 pid=$2 files rings private links

    links=$(find "/proc/$pid/fd" -type l -printf '%l\n' 2>/dev/null)
    files=$( (printf '%s\n' "$links" | grep pgsql_tmp
        find "$CLUSTER_DIR/data/base/pgsql_tmp" -name "pgsql_tmp$pid.*" \
            2>/dev/null) | wc -l)
    rings=$( (printf '%s\n' "$links"; cat "/proc/$pid/maps") |
        grep -c io_uring) || true
    private=$(awk '/^Private/ { kb += $2 } END { print kb + 0 }' \
        "/proc/$pid/smaps_rollup")
    echo "$leg $files $rings $private" >>"$CLUSTER_DIR/looks"
    sql -o /dev/null -c "SELECT pg_log_backend_memory_contexts($pid)"
    sleep 0.5
}

# leg NUMBER SECONDS: ends on its own only if sqlsmith does.
leg() {
    local leg=$1 end=$((SECONDS + $2)) role=smith$((${1} % ${#SETTINGS[@]}))
    local pid backend options=(--seed=$((SEED + $1)))

    # Where the settings are the usual ones, PostgreSQL's catalog takes part.
    [[ $role == smith0 ]] || options+=(--exclude-catalog)
    rm -f "$CLUSTER_DIR/sqlsmith.pid"
    # shellcheck disable=SC2016 # expanded by sh
    as_server_user sh -c 'echo $$ >sqlsmith.pid; exec sqlsmith "$@"' sh \
        --target="host=$PGHOST port=$PGPORT user=$role dbname=smith" \
        "${options[@]}" >"$CLUSTER_DIR/sqlsmith.out" 2>&1 &
    while ((SECONDS < end)) && [[ -n $(jobs -r) ]]; do
        sleep 0.5
    done
    if [[ -z $(jobs -r) ]]; then
        say "sqlsmith ended before its time, saying:"
        tail -n 5 "$CLUSTER_DIR/sqlsmith.out"
        echo "$leg" >>"$CLUSTER_DIR/ended"
        return
    fi
    pid=$(cat "$CLUSTER_DIR/sqlsmith.pid")
    backend=$(hold "$role" "$pid")
    [[ -z $backend ]] || look_at "$leg" "$backend"
    kill -KILL "$pid" 2>/dev/null || true
    go_on
    wait
}

# As many legs of about LEG_SECONDS as fill the time, each setting as often.
run_legs() {
    local total=$((MINUTES * 60)) rounds count seconds i

    rounds=$((total / LEG_SECONDS / ${#SETTINGS[@]}))
    ((rounds > 0)) || rounds=1
    count=$((rounds * ${#SETTINGS[@]}))
    seconds=$((total / count))
    say "$count runs of sqlsmith, $seconds s each, from seed $SEED on"
    for ((i = 0; i < count; i++)); do
        await leg "$i" "$seconds"
    done
}

# ---- what came of it --------------------------------------------------------

load_log() {
    sql -v log="$CLUSTER_DIR/data/log/server.json" \
        -f "$FMSORT_ROOT/test/sqlsmith/log.sql"
}

save_logs() {
    gzip -1 <"$CLUSTER_DIR/data/log/server.json" >"$FOUND/server.json.gz"
    cp "$CLUSTER_DIR/server.log" "$FOUND/server.stderr"
    cat "$CLUSTER_DIR/data/log/server.log" >>"$FOUND/server.stderr"
    say "Statements and the server's log are in $FOUND."
}

wait_for_server() {
    for _ in {1..60}; do
        ! sql -o /dev/null -c 'SELECT 1' 2>/dev/null || return 0
        sleep 0.5
    done
    save_logs
    die "the server does not come back"
}

# outcome ROLE MODE FILE: the SQLSTATE that the statement gives, crash or none.
outcome() {
    local said status=0

    said=$({
        [[ -z $2 ]] || echo "SET fmsort.mode = $2;"
        echo "SET statement_timeout = '20s';"
        printf '\\o /dev/null\nBEGIN;\n'
        cat "$3"
        printf ';\nROLLBACK;\n'
    } | sql -U "$1" -d smith -v VERBOSITY=sqlstate 2>&1) || status=$?
    if ((status == 0)); then
        echo none
    elif [[ $said =~ (ERROR|FATAL):\ \ ([0-9A-Z]{5}) ]]; then
        echo "${BASH_REMATCH[2]}"
    else
        echo crash
        wait_for_server
    fi
}

# What the statement comes to with PostgreSQL's sort.  Many a statement takes
# a random sample of its tables, and errs on some rows only: then it is asked
# until it errs likewise, or often enough.
stock_outcome() {
    local role=$1 state=$2 statement=$3 tries=1 stock

    ! grep -qi 'tablesample' "$statement" || tries=$SAMPLE_TRIES
    while ((tries-- > 0)); do
        stock=$(outcome "$role" off "$statement")
        [[ $stock != "$state" ]] || break
    done
    echo "$stock"
}

# What PostgreSQL's sort gives as well is not our fault; prints the others.
judge_suspects() {
    local id state role stock again statement

    while IFS='|' read -r id state role <&3; do
        statement=$FOUND/$state-$id.sql
        sql -c "SELECT statement FROM suspects WHERE id = $id" >"$statement"
        stock=$(stock_outcome "$role" "$state" "$statement")
        if [[ $stock == "$state" ]]; then
            rm -f "$statement"
            echo "$state" >>"$CLUSTER_DIR/stock"
            continue
        fi
        again=$(outcome "$role" "" "$statement")
        failures <<<"$state, again: $again, with fmsort.mode = off: $stock; as \
$role: $(xargs <<<"${SETTINGS[${role#smith}]}")"
        sql -c "SELECT '  ' || message || coalesce(' (' || place || ')', '')
            FROM suspects WHERE id = $id"
        say "  $statement"
        FAILED=$((FAILED + 1))
    done 3< <(sql -F '|' -c 'SELECT id, state, role FROM suspects ORDER BY id')
    [[ ! -e $CLUSTER_DIR/stock ]] ||
        say "Statements whose error PostgreSQL's sort gives as well:" \
            "$(sort "$CLUSTER_DIR/stock" | uniq -c | xargs)"
}

# fail_if COMMAND...: each line that it prints is a failure.
fail_if() {
    local line

    while IFS= read -r line; do
        failures <<<"$line"
        FAILED=$((FAILED + 1))
    done < <("$@")
}

crashes() {
    grep -hE 'TRAP: |PANIC' "$CLUSTER_DIR/server.log" \
        "$CLUSTER_DIR"/data/log/server.log || true
    # those whose statement is known are suspects
    sql -c "SELECT severity || ': ' || message FROM log
        WHERE severity = 'PANIC' OR message ~ 'was terminated by signal'
          AND detail NOT LIKE 'Failed process was running: %'
        ORDER BY id"
}

leftovers() {
    local files

    sql -c "SELECT DISTINCT 'left behind: ' || message FROM log
        WHERE severity = 'WARNING' AND message ~ 'leak|still referenced'"
    sql -c "SELECT 'left behind: ' || count(*) || ' memory contexts: ' || name
        FROM log, substring(message FROM '^level: [0-9]+; (fmsort[^:]*):') name
        WHERE name IS NOT NULL GROUP BY name"
    awk -v max="$IDLE_PRIVATE_MAX_KB" '
        $2 { print "left behind in run " $1 ": " $2 " temporary files" }
        $3 { print "left behind in run " $1 ": an io_uring" }
        $4 > max { print "run " $1 " ended with " $4 " kB of memory" }' \
        "$CLUSTER_DIR/looks"
    files=$(find "$CLUSTER_DIR/data/base/pgsql_tmp" -type f 2>/dev/null |
        wc -l)
    ((files == 0)) || echo "left behind in the end: $files temporary files"
}

# A test that tested nothing has not passed.
did_nothing() {
    sql -c "SELECT 'no statement spilled as ' || rolname FROM pg_roles
        WHERE rolname LIKE 'smith%' AND rolname NOT IN
          (SELECT role FROM done WHERE spilled) ORDER BY rolname"
    [[ -s $CLUSTER_DIR/looks ]] || echo "no backend was ever seen idle"
    [[ ! -s $CLUSTER_DIR/ended ]] ||
        sed 's/.*/run & of sqlsmith ended early/' "$CLUSTER_DIR/ended"
}

describe() {
    sql -F ' ' <<EOF
SELECT lpad(n::text, 7), what FROM (SELECT count(*) AS done,
  count(*) FILTER (WHERE sorted) AS sorted,
  count(*) FILTER (WHERE spilled) AS spilled FROM done) d,
  (SELECT count(*) AS failed FROM errors) e,
  LATERAL (VALUES (done + failed, 'statements'),
    (done, 'came to their end'), (sorted, 'of these used FMSort'),
    (spilled, 'of these spilled'), (failed, 'gave errors:')) v (n, what);
SELECT lpad(count(*)::text, 9), state, left(min(message), 60)
FROM errors GROUP BY state ORDER BY count(*) DESC, state;
EOF
    awk '{ if ($4 > most) most = $4 } END { printf "%7d idle backends seen, " \
        "with at most %d kB of their own\n", NR, most }' "$CLUSTER_DIR/looks"
}

report() {
    local statements

    wait_for_server
    touch "$CLUSTER_DIR/looks"
    step "Reading the server's log" load_log
    describe
    fail_if crashes
    fail_if leftovers
    fail_if did_nothing
    judge_suspects
    statements=$(sql -c 'SELECT (SELECT count(*) FROM done) +
        (SELECT count(*) FROM errors)')
    ((FAILED == 0)) || save_logs
    tally "$statements" "$FAILED"
    ((FAILED == 0))
}

run() {
    local settings

    [[ $MINUTES =~ ^[1-9][0-9]*$ ]] || die "MINUTES=$MINUTES is no number"
    rm -rf "$FOUND"
    mkdir -p "$FOUND"
    with_assertions
    mapfile -t settings <"$FMSORT_ROOT/test/sqlsmith/server.conf"
    cluster_start "${settings[@]}"
    step "Making tables, views and roles" make_database
    run_legs
    report
}
