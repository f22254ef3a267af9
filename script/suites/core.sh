# shellcheck shell=bash
# Runs PostgreSQL's own regression schedule, and its isolation tests of
# EvalPlanQual, with fmsort in every session, and compares statement by
# statement what they print with what they print without fmsort under the same
# settings.  fmsort.parallel is off, so that plans differ in no node; in one more
# round it is on, parallel plans are forced, and plans are not compared.  The
# closing line counts tests, each once for each of its rounds.
#
#   script/test core [--tests NAME,...] [--accept]
#
#   --tests    only these, and what has to run before them
#   --accept   takes every difference there is into test/core/accepted, where
#              a reason is to be written to each (test/core/README.md)
#
# Nothing is installed but packages.  What the tests need of PostgreSQL's
# source comes from where the server's package came from, and stays in
# build/core; PG_SOURCE names an unpacked source to use instead.  All that the
# tests have printed is in build/core/results afterwards.

. "$FMSORT_ROOT/script/lib/server_source.sh"

CORE=$FMSORT_ROOT/build/core
RESULTS=$CORE/results
ACCEPTED=$FMSORT_ROOT/test/core/accepted

# 64 kB makes nearly every sort spill; 4 MB is the default.  "parallel" is 64 kB
# with parallel plans.
ROUNDS=(64kB 4MB parallel)

# The isolation tests in which EvalPlanQual is at work: locks, UPDATE, DELETE
# and MERGE of a row that another transaction has changed meanwhile.  The last
# is ours.
ISOLATION=('eval-plan-qual*' 'merge-*' 'lock-update-*' 'lock-committed-*'
    'update-locked-tuple' 'partition-key-update-*'
    'insert-conflict-do-update*' 'tuplelock-*' 'skip-locked*' 'nowait*'
    'sort-in-epq')

# Plans with as many sorts as there can be.
SORT_OPTIONS='-c enable_hashjoin=off -c enable_nestloop=off
    -c enable_indexscan=off -c enable_indexonlyscan=off
    -c enable_bitmapscan=off -c enable_hashagg=off'

ACCEPT=()
WANTED=()
REGRESS_TESTS=()
ISOLATION_TESTS=()

parse() {
    while (($#)); do
        case $1 in
        --accept) ACCEPT=(--accept) ;;
        --tests)
            IFS=', ' read -ra WANTED <<<"${2:?names are missing}"
            shift
            ;;
        *) die "there is no option '$1'" ;;
        esac
        shift
    done
}

# ---- which tests ------------------------------------------------------------

schedule_file() { echo "$SERVER_SOURCE/src/test/regress/parallel_schedule"; }

# The schedule's tests, in its order.
scheduled() {
    sed -n 's/^test: *//p' "$(schedule_file)" | tr -s ' ' '\n'
}

# Its comments say what needs what: "# join depends on create_misc".
needs_of() {
    sed -n "s/^# $1 depends on //p" "$(schedule_file)" | tr -d ','
}

# with_needs NAME...: these, what they need, and what every test may need
with_needs() {
    local -A chosen=()
    local queue=("$@" test_setup create_index) name need

    while ((${#queue[@]})); do
        name=${queue[0]}
        queue=("${queue[@]:1}")
        [[ -z ${chosen[$name]:-} ]] || continue
        chosen[$name]=1
        for need in $(needs_of "$name"); do
            queue+=("$need")
        done
    done
    while read -r name; do
        [[ -z ${chosen[$name]:-} ]] || echo "$name"
    done < <(scheduled)
}

spec_names() {
    local file

    for file in "$SERVER_SOURCE"/src/test/isolation/specs/*.spec \
        "$FMSORT_ROOT"/test/core/specs/*.spec; do
        basename "$file" .spec
    done
}

isolation_tests() {
    local name pattern

    while read -r name; do
        for pattern in "${ISOLATION[@]}"; do
            # shellcheck disable=SC2053 # it is a pattern
            [[ $name != $pattern ]] || echo "$name"
        done
    done < <(spec_names)
}

choose_tests() {
    local name regress=()

    if ((${#WANTED[@]} == 0)); then
        mapfile -t REGRESS_TESTS < <(scheduled)
        mapfile -t ISOLATION_TESTS < <(isolation_tests)
        return
    fi
    for name in "${WANTED[@]}"; do
        if scheduled | grep -xF -- "$name" >/dev/null; then
            regress+=("$name")
        elif spec_names | grep -xF -- "$name" >/dev/null; then
            ISOLATION_TESTS+=("$name")
        else
            die "there is no test '$name', neither in the regression" \
                "schedule nor among the isolation tests"
        fi
    done
    ((${#regress[@]} == 0)) ||
        mapfile -t REGRESS_TESTS < <(with_needs "${regress[@]}")
}

# ---- what they need ---------------------------------------------------------

# The modules that the tests load, for the installed server.
build_modules() {
    local modules=$CORE/modules

    mkdir -p "$modules"
    cp "$SERVER_SOURCE/src/test/regress/regress.c" \
        "$SERVER_SOURCE"/contrib/spi/{autoinc,refint}.c "$modules"
    cat >"$modules/Makefile" <<'END'
MODULES = regress autoinc refint
PG_CPPFLAGS = -DREFINT_VERBOSE
override with_llvm := no
include $(PGXS)
END
    make -s -C "$modules" PGXS="$(pg_config --pgxs)"
}

# A copy for the server's user, who may not get at ours; and one that nobody
# changes meanwhile.
copy_input() {
    local work=$CLUSTER_DIR/core spec

    mkdir -p "$work/lib" "$work/out"
    cp -r "$SERVER_SOURCE"/src/test/{regress,isolation} "$work"
    cp "$CORE"/modules/*.so "$work/lib"
    cp "$FMSORT_ROOT/fmsort.so" "$work/lib"
    for spec in "$FMSORT_ROOT"/test/core/specs/*.spec; do
        cp "$spec" "$work/isolation/specs"
        # pg_regress wants something to compare with
        : >"$work/isolation/expected/$(basename "$spec" .spec).out"
    done
    if ((${#WANTED[@]})); then
        printf 'test: %s\n' "${REGRESS_TESTS[@]}" \
            >"$work/regress/parallel_schedule"
    fi
    give_to_server_user -R "$work"
}

# ---- a server for one side of a comparison ----------------------------------

# The setting that forces parallel plans.  It had another name before 16.
forced_parallel() {
    if [[ $(pg_config --version) == "PostgreSQL 15."* ]]; then
        echo force_parallel_mode
    else
        echo debug_parallel_query
    fi
}

# cluster_start is for a server as it is used; this one is like pg_regress
# makes them.  Nothing may happen at a time of its own choice.
server_start() {
    local side=$1 round=$2 work_mem=$2 parallel=off settings=() bin
    bin=$(pg_config --bindir)

    if [[ $round == parallel ]]; then
        work_mem=64kB parallel=on
        settings=("$(forced_parallel) = regress")
    fi

    rm -rf "$CLUSTER_DIR/data" "$CLUSTER_DIR/server.log"
    as_server_user "$bin/initdb" --pgdata="$CLUSTER_DIR/data" --auth=trust \
        --username="$CLUSTER_USER" --no-locale --encoding=UTF8 --no-sync
    cluster_configure "work_mem = $work_mem" 'synchronous_commit = on' \
        'wal_level = replica' 'max_connections = 60' \
        'max_prepared_transactions = 2' "${settings[@]}" \
        >>"$CLUSTER_DIR/data/postgresql.conf"
    [[ $side == stock ]] || printf '%s\n' \
        "session_preload_libraries = '$CLUSTER_DIR/core/lib/fmsort.so'" \
        "fmsort.parallel = $parallel" 'fmsort.min_rows = 0' \
        >>"$CLUSTER_DIR/data/postgresql.conf"
    as_server_user "$bin/pg_ctl" start --wait --silent \
        --pgdata="$CLUSTER_DIR/data" --log="$CLUSTER_DIR/server.log"
}

server_stop() {
    as_server_user "$(pg_config --bindir)/pg_ctl" stop --silent --mode=fast \
        --pgdata="$CLUSTER_DIR/data"
    ! grep -E 'PANIC:|TRAP: |was terminated by signal' \
        "$CLUSTER_DIR/server.log"
}

# driver regress|isolation ROUND SIDE OPTIONS... [-- TESTS...]: runs pg_regress
# or its sister; keeps what the tests printed.  Whether that is what is
# expected is of no interest.
driver() {
    local kind=$1 round=$2 side=$3 status=0 program=pg_regress
    local work=$CLUSTER_DIR/core results=$RESULTS/$2/$3
    shift 3

    [[ $kind == regress ]] || program=pg_isolation_regress
    rm -rf "$work"/out/*
    as_server_user timeout --foreground 1200 \
        "$(dirname "$(pg_config --pgxs)")/../test/$kind/$program" \
        --host="$CLUSTER_DIR" --port=5432 --user="$CLUSTER_USER" \
        --bindir="$(pg_config --bindir)" --dlpath="$work/lib" \
        --inputdir="$work/$kind" --outputdir="$work/out" \
        --max-concurrent-tests=20 "$@" || status=$?
    mkdir -p "$results"
    cp "$work"/out/results/*.out "$results"
    cp "$CLUSTER_DIR/server.log" "$results/server.log"
    ((status <= 1))
}

run_regress() {
    driver regress "$1" "$2" \
        --schedule="$CLUSTER_DIR/core/regress/parallel_schedule"
}

# run_isolation ROUND SIDE [SERVER_OPTIONS]
run_isolation() {
    PGOPTIONS=${3:-} driver isolation "$1" "$2" "${ISOLATION_TESTS[@]}"
}

# What goes wrong here does not keep the sides from being compared.
run_side() {
    local side=$1 round=$2

    server_start "$side" "$round" || return
    {
        ((${#REGRESS_TESTS[@]} == 0)) ||
            run_regress "regress-$round" "$side" ||
            echo "The regression tests could not be run to their end."
        if [[ $round == 4MB ]] && ((${#ISOLATION_TESTS[@]})); then
            run_isolation isolation "$side" &&
                run_isolation isolation-sorts "$side" "$SORT_OPTIONS" ||
                echo "The isolation tests could not be run to their end."
        fi
        server_stop || echo "The server has had an accident, see above."
    } >"$CLUSTER_DIR/side.log" 2>&1
    cat "$CLUSTER_DIR/side.log"
    grep -E '^The .*\.$' "$CLUSTER_DIR/side.log" |
        sed "s/^/$side, $round: /" >>"$RESULTS/broken" || true
}

run_all() {
    local round side

    for round in "${ROUNDS[@]}"; do
        # Isolation tests alone run in one of them only.
        ((${#REGRESS_TESTS[@]})) || [[ $round == 4MB ]] || continue
        for side in stock fmsort; do
            step "Running with ${round/%B/B of work_mem}, $side" \
                run_side "$side" "$round"
        done
    done
}

# ---- the verdict ------------------------------------------------------------

# A round in which no plan had our node has not tested it.
check_node() {
    local round

    ((${#WANTED[@]} == 0)) || return 0
    for round in "$@"; do
        grep -rqF 'Custom Scan (FMSort)' "$RESULTS/$round/fmsort" ||
            echo "No plan had an FMSort node in $round." >>"$RESULTS/broken"
    done
}

verdict() {
    local rounds=() round passed failed broken

    for round in "$RESULTS"/*/; do
        round=$(basename "$round")
        rounds+=("$round")
        [[ $round != regress-* ]] ||
            cp -r "$SERVER_SOURCE/src/test/regress/sql" "$RESULTS/$round"
    done
    check_node "${rounds[@]}"
    perl "$FMSORT_ROOT/test/core/diff.pl" "${ACCEPT[@]}" "$ACCEPTED" "$RESULTS" \
        "${rounds[@]}" >"$RESULTS/report"
    ((${#ACCEPT[@]} == 0)) || perl "$FMSORT_ROOT/test/core/diff.pl" --list \
        "$ACCEPTED" "$FMSORT_ROOT/docs/internals/core-tests.md"
    head -n -1 "$RESULTS/report" | grep . | failures || true
    read -r passed failed < <(tail -n 1 "$RESULTS/report")
    broken=$(wc -l <"$RESULTS/broken")
    failures <"$RESULTS/broken"
    say "Rounds: ${rounds[*]}; what was printed is in $RESULTS."
    tally "$passed" $((failed + broken))
    ((failed + broken == 0 && passed > 0))
}

run() {
    parse "$@"
    server_source "$CORE/source" src/test/regress/parallel_schedule \
        '*/src/test/regress' '*/src/test/isolation' '*/contrib/spi'
    choose_tests
    step "Building what the tests load" build_modules
    step "Building with assertions" make -s -C "$FMSORT_ROOT" WERROR=1 \
        ASSERT=1
    cluster_make_dir
    step "Copying the tests to $CLUSTER_DIR" copy_input
    rm -rf "$RESULTS"
    mkdir -p "$RESULTS" "$ACCEPTED"
    : >"$RESULTS/broken"
    run_all
    verdict
}
