# shellcheck shell=bash
# test/t/*.pl: tests that start servers of their own.
#
#   script/test tap [--short] [test/t/NAME.pl...]
#
#   --short   only those that say in front "# Every version: WHY"

. "$FMSORT_ROOT/script/lib/filesystems.sh"
. "$FMSORT_ROOT/script/lib/memory_cgroup.sh"

# What the tests put beside fmsort, made of test/faults.
FAULTS=(faulty_io.so jumping_clock.so neighbour.so reaper refuse)

# They run as the server's user, on a copy that this user can read, and write
# where it may write.  Benchmarks and sources lie in it as in the project.
make_copy() {
    local tap=$1

    mkdir -p "$tap/tmp" "$tap/project/test"
    cp -r "$FMSORT_ROOT"/test/{t,neighbours} "$FMSORT_ROOT/docs" \
        "$FMSORT_ROOT"/{*.md,LICENSE} "${FAULTS[@]/#/$FMSORT_ROOT/build/}" \
        "$FMSORT_ROOT/script/lib/TapTally.pm" "$tap"
    cp -r "$FMSORT_ROOT/script" "$FMSORT_ROOT/fmsort.control" "$tap/project"
    cp -r "$FMSORT_ROOT/test/bench" "$tap/project/test"
    (cd "$FMSORT_ROOT" && cp --parents fmsort--*.sql src/*.c src/*/*.[ch] \
        src/*/*/*.[ch] "$tap/project")
    give_to_server_user -R "$tap"
}

# TESTDIR is for 15, TESTDATADIR and TESTLOGDIR are for later versions.
prove_as_server_user() {
    local tap=$1 pgxs
    pgxs=$(dirname "$(pg_config --pgxs)")/..
    shift

    # shellcheck disable=SC2016 # expanded in the directory of the tests
    as_server_user env TESTDIR="$tap" TESTDATADIR="$tap/tmp_check" \
        TESTLOGDIR="$tap/tmp_check/log" TMPDIR="$tap/tmp" LANG=C.UTF-8 \
        PERL5LIB="$tap:$pgxs/test/perl" \
        PG_REGRESS="$pgxs/test/regress/pg_regress" \
        FMSORT_FAULTY_IO="$tap/faulty_io.so" FMSORT_REFUSE="$tap/refuse" \
        FMSORT_OTHER_VERSION="$tap/fmsort_other.so" \
        FMSORT_OTHER_COUNTERS="$tap/fmsort_counters.so" \
        FMSORT_JUMPING_CLOCK="$tap/jumping_clock.so" \
        FMSORT_NEIGHBOUR="$tap/neighbour" \
        sh -c 'cd "$TESTDIR" && exec ./reaper prove --harness TapTally \
            --merge --timer --nocolor "$@"' sh "$@"
}

run() {
    local files=("$@") status=0 log=$FMSORT_ROOT/build/log/tap tap

    ((${#files[@]})) || files=("$FMSORT_ROOT"/test/t/*.pl)
    [[ ${1:-} != --short ]] || mapfile -t files < <(
        grep -lE '^# Every version: ' "$FMSORT_ROOT"/test/t/*.pl)
    files=("${files[@]##*test/}")
    # the two that are made of all of src/ take long
    ! (cd "$FMSORT_ROOT/test" && grep -q FMSORT_OTHER_VERSION "${files[@]}") ||
        FAULTS+=(fmsort_other.so)
    ! (cd "$FMSORT_ROOT/test" && grep -q FMSORT_OTHER_COUNTERS "${files[@]}") ||
        FAULTS+=(fmsort_counters.so)
    with_assertions
    step "Building what makes faults" make -s -C "$FMSORT_ROOT" WERROR=1 \
        ASSERT=1 "${FAULTS[@]/#/build/}"
    cluster_make_dir
    PATH=$(pg_config --bindir):$PATH
    filesystems_mount >>"$FMSORT_LOG" 2>&1
    memory_cgroup_give
    tap=$CLUSTER_DIR/tap
    make_copy "$tap"
    await prove_as_server_user "$tap" "${files[@]}" || status=$?
    if ((status != 0)) && [[ -d $tap/tmp_check/log ]]; then
        rm -rf "$log"
        cp -r "$tap/tmp_check/log" "$log"
        say "What the tests and their servers said is in $log."
    fi
    return "$status"
}
