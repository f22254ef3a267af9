# shellcheck shell=bash
# Runs every suite with a build that counts how often each line of src/ is
# executed, and fails if a line that never was has no reason in test/uncovered.
#
# What was counted is in build/coverage/fmsort.info, and with GENHTML=1 as pages
# to be read in build/coverage/html.  A backend that is killed counts nothing.
# Afterwards the next build starts afresh.

COVERAGE=$FMSORT_ROOT/build/coverage
INFO=$COVERAGE/fmsort.info

# Counts are written by whoever ran the code, the server's user among them, into
# a tree of its own below this directory (GCOV_PREFIX).
counting() {
    rm -rf "$COVERAGE"
    forget
    mkdir -p "$COVERAGE/counts$FMSORT_ROOT/src"
    chmod 1777 "$COVERAGE/counts$FMSORT_ROOT/src"
    export GCOV_PREFIX=$COVERAGE/counts
    # Optimised lines cannot be told apart.
    export PROFILE='-Og -fno-inline --coverage'
    at_exit forget
}

# Of objects make sees itself that its options have changed.
forget() {
    rm -rf "$FMSORT_ROOT/build/unit"
    find "$FMSORT_ROOT/src" -name '*.gcno' -delete
}

# gcov wants what the compiler noted beside what was counted.
gather() {
    local counts=$COVERAGE/counts$FMSORT_ROOT

    [[ -d $counts ]] || die "nothing has been counted"
    (cd "$FMSORT_ROOT" &&
        find src build/unit -name '*.gcno' -exec cp --parents {} "$counts" \;)
    lcov --quiet --capture --directory "$counts" --output-file "$INFO.all" \
        --base-directory "$FMSORT_ROOT" --ignore-errors gcov,source &&
        lcov --quiet --extract "$INFO.all" "$FMSORT_ROOT/src/*" \
            --output-file "$INFO"
}

run() {
    local status=0

    counting
    await "$FMSORT_ROOT/script/test" || status=1
    step "Gathering what was counted" gather
    if [[ ${GENHTML:-0} == 1 ]]; then
        step "Making pages of it" genhtml --quiet "$INFO" \
            --output-directory "$COVERAGE/html"
    fi
    perl "$FMSORT_ROOT/test/uncovered.pl" "$INFO" "$FMSORT_ROOT/test/uncovered" |
        tail -n 40 >"$COVERAGE/report" || status=1
    if ((status)); then failures; else cat; fi <"$COVERAGE/report"
    return "$status"
}
