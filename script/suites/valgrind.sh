# shellcheck shell=bash
# Runs a short suite (test/hard/short.sql) with every process of the server
# under valgrind, and fails if it found anything: memory that is used before
# it was written, after it was freed or past its end, and bytes written to disk
# that nobody has set.
#
# The server is the one with assertions, built so that valgrind knows its memory
# contexts.  I/O is synchronous: what the kernel writes through an io_uring
# valgrind does not see, and would take for memory that was never written.

. "$FMSORT_ROOT/script/lib/server_build.sh"

FOUND=$FMSORT_ROOT/build/log/valgrind

# What pg_ctl starts in the server's place.
write_wrapper() {
    cat >"$1" <<END
#!/bin/sh
exec valgrind --quiet --leak-check=no --trace-children=yes \\
    --suppressions="$SERVER_SOURCE/src/tools/valgrind.supp" \\
    --log-file="$2/%p.log" "$(pg_config --bindir)/postgres" "\$@"
END
    chmod 755 "$1"
}

run() {
    server_with_assertions
    with_assertions
    rm -rf "$FOUND"
    mkdir -p "$FOUND"
    pick_server_user
    give_to_server_user "$FOUND"
    CLUSTER_POSTGRES=$FMSORT_ROOT/build/postgres-in-valgrind
    write_wrapper "$CLUSTER_POSTGRES" "$FOUND"
    short_suite 'fmsort.io_method = sync' "backtrace_functions = ''"
    found "$(cat "$FOUND"/*.log | grep -c '^==[0-9]*== [A-Z]')" "$FOUND"/*.log
}
