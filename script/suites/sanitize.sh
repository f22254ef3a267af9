# shellcheck shell=bash
# Builds a server and fmsort with the compiler's sanitizers for addresses and
# for undefined behaviour, and runs on it the short suite (test/hard/short.sql)
# and those of our suites that make sense there.
#
# Left out are the tests of memory, which the sanitizers take for themselves
# (007, 009, 023), and of what comes between fmsort and the kernel by
# LD_PRELOAD (020 to 025, 061), where they would have to be first.  The unit tests
# are built with both sanitizers anyway.  Leaks are not looked for: a process of
# the server's leaves its memory to the system when it ends, and what a sort
# leaves in a session is what 007 looks at.
#
# Undefined behaviour in the server's own files is printed and is no error; in
# fmsort's it is.

. "$FMSORT_ROOT/script/lib/server_build.sh"

FOUND=$FMSORT_ROOT/build/log/sanitize
TAPS=(test/t/{001_differential,002_faults,006_parallel,008_generated}.pl
    test/t/{026_comparators,027_transactions,040_stat,041_progress}.pl
    test/t/{042_slow_log,043_explain_formats,060_calibrate}.pl)

# One process's findings are a file each, which the server's user writes.
listen() {
    rm -rf "$FOUND"
    mkdir -p "$FOUND"
    chmod 1777 "$FOUND"
    # The server takes the address of a local variable for its stack's depth,
    # which a stack of the sanitizer's would move.
    export ASAN_OPTIONS=detect_leaks=0:detect_stack_use_after_return=0
    ASAN_OPTIONS+=:abort_on_error=1:log_path=$FOUND/addresses
    export UBSAN_OPTIONS=print_stacktrace=1:log_path=$FOUND/behaviour
}

# A report on fmsort: whatever the first finds, of the second what lies in its
# files, whose paths are not the server's.
reports() {
    cat "$FOUND"/* 2>/dev/null |
        grep -cE "AddressSanitizer|^src/[a-z_/]+\.[ch]:.* runtime error" || true
}

run() {
    local status=0

    listen
    server_with_sanitizers
    with_assertions
    short_suite
    await "$FMSORT_ROOT/script/test" regress pgtap tap "${TAPS[@]}" || status=1
    compgen -G "$FOUND/*" >/dev/null || : >"$FOUND/nothing"
    found "$(reports)" "$FOUND"/*
    return "$status"
}
