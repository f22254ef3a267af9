# shellcheck shell=bash
# Runs the regression tests of other extensions on a server without fmsort and
# on one with it, and compares what they print as script/test core does: only
# the names of plan nodes may differ.
#
#   script/test extensions [EXTENSION...]
#
# The tests come with the sources of the packages, from the archive that has
# the packages; those of contrib, with the server's.  An extension that is not
# installed, or has no source in the archive, counts as skipped.  Sources stay in
# build/extensions, what the tests print in build/extensions/results.  What else
# may differ stands in test/neighbours/accepted, in the format of
# test/core/README.md.
#
# Left out are TimescaleDB, whose tests need a build of their own and hours, and
# pg_partman, whose tests depend on the date.

. "$FMSORT_ROOT/script/lib/server_source.sh"

EXTENSIONS=$FMSORT_ROOT/build/extensions
RESULTS=$EXTENSIONS/results
# name, library to preload ("-": none), arguments for make
SUITES='
btree_gin           -
btree_gist          -
citext              -
cube                -
hstore              -
intarray            -
isn                 -
ltree               -
pg_stat_statements  pg_stat_statements  NO_INSTALLCHECK=
pg_trgm             -
postgres_fdw        -
seg                 -
tablefunc           -
cron                pg_cron  REGRESS_OPTS=--dbname=contrib_regression
hypopg              -
pg-hint-plan        pg_hint_plan
pgvector            -
'

# The directory with an extension's source; nothing if there is none.
source_of() {
    local name=$1 major package version

    if [[ -d $SERVER_SOURCE/contrib/$name ]]; then
        echo "$SERVER_SOURCE/contrib/$name"
        return
    fi
    major=$(pg_config --version | grep -o '[0-9]*' | head -n 1)
    version=$(dpkg-query -W -f '${source:Package} ${source:Version}' \
        "postgresql-$major-$name" 2>>"$FMSORT_LOG") || return 0
    read -r package version <<<"$version"
    [[ -e $EXTENSIONS/$package-$version/version ]] ||
        source_get "$package" "$version" "$EXTENSIONS/$package-$version" '*' \
            >>"$FMSORT_LOG" 2>&1 || return 0
    echo "$EXTENSIONS/$package-$version"
}

# run_side NAME stock|fmsort LIBRARY [ARGUMENT FOR make...]: keeps what the tests
# print.  Whether they expect that is of no interest.
run_side() {
    local name=$1 side=$2 library=${3#-} work=$CLUSTER_DIR/$1 data=$1-$2
    local settings=("wal_level = replica" "max_wal_senders = 5"
        "shared_preload_libraries = '$library'")
    shift 3

    [[ $side == stock ]] ||
        settings+=("session_preload_libraries = 'fmsort'"
            "fmsort.min_rows = 0")
    [[ $library != pg_cron ]] ||
        settings+=("cron.database_name = 'contrib_regression'")
    server_create "$data" "$data.log" "${settings[@]}" || return
    as_server_user env PGHOST="$CLUSTER_DIR" PGUSER="$CLUSTER_USER" \
        timeout 300 make -s -C "$work" installcheck USE_PGXS=1 \
        PG_CONFIG="$(pg_config --bindir)/pg_config" "$@" || true
    server_stop "$data"
    mkdir -p "$RESULTS/$name/$side"
    find "$work" -path '*/results/*.out' \
        -exec mv -t "$RESULTS/$name/$side" {} +
    ! grep -E 'PANIC:|TRAP: |was terminated by signal' \
        "$CLUSTER_DIR/$data.log"
}

# run_both SOURCE NAME LIBRARY [ARGUMENT FOR make...], on a copy for the server's
# user, who writes results into it.
run_both() {
    local name=$2

    cp -r "$1" "$CLUSTER_DIR/$name" &&
        give_to_server_user -R "$CLUSTER_DIR/$name" &&
        run_side "$name" stock "${@:3}" &&
        run_side "$name" fmsort "${@:3}" &&
        mkdir "$RESULTS/$name/sql" &&
        find "$CLUSTER_DIR/$name" -path '*/sql/*.sql' \
            -exec cp -t "$RESULTS/$name/sql" {} +
}

run() {
    local wanted=" $* " name library arguments source ran=()
    local passed failed skipped=0 broken=0

    with_assertions
    server_source "$EXTENSIONS/source" contrib/hstore '*/contrib'
    cluster_make_dir
    rm -rf "$RESULTS"
    mkdir -p "$RESULTS"
    while read -r name library arguments <&3; do
        [[ -n $name && ($# == 0 || $wanted == *" $name "*) ]] || continue
        source=$(source_of "$name")
        if [[ -z $source ]]; then
            say "$name is not installed, or the archive has no source of it."
            skipped=$((skipped + 1))
            continue
        fi
        # shellcheck disable=SC2086 # words
        attempt "Running the tests of $name" run_both "$source" "$name" \
            "$library" $arguments || broken=$((broken + 1))
        ran+=("$name")
    done 3<<<"$SUITES"
    grep -rqF 'Custom Scan (FMSort)' "$RESULTS"/*/fmsort ||
        die "no plan had an FMSort node"
    perl "$FMSORT_ROOT/test/core/diff.pl" \
        "$FMSORT_ROOT/test/neighbours/accepted" "$RESULTS" "${ran[@]}" \
        >"$RESULTS/report"
    head -n -1 "$RESULTS/report" | grep . | failures || true
    read -r passed failed < <(tail -n 1 "$RESULTS/report")
    tally "$passed" $((failed + broken)) "$skipped"
    ((failed + broken == 0 && passed > 0))
}
