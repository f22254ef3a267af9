# shellcheck shell=bash
# The servers that look harder, why they are built as they are, and the short
# suite that runs on them.  Needs cluster.sh and server_build.sh.

# With assertions, and told to tell valgrind about its memory contexts: without
# valgrind around it, that costs next to nothing.
server_with_assertions() {
    server_build assert '-Og -fno-omit-frame-pointer' --enable-cassert \
        CPPFLAGS=-DUSE_VALGRIND
}

# With both sanitizers of the compiler's; frame pointers make their stacks
# readable.  fmsort gets the same options by way of pg_config.
server_with_sanitizers() {
    server_build sanitize \
        '-O1 -fno-omit-frame-pointer -fsanitize=address,undefined' \
        --enable-cassert
}

SHORT_PASSED=0
SHORT_FAILED=0

# short_suite ['name = value'...]: test/hard/short.sql on a throw-away cluster,
# which is stopped afterwards, so that whoever watches it has said everything.
short_suite() {
    local out=$FMSORT_ROOT/build/log/short.out status=0

    PGCTLTIMEOUT=600 cluster_start "session_preload_libraries = 'fmsort'" "$@"
    psql -q -c 'CREATE EXTENSION fmsort'
    await psql -q -f "$FMSORT_ROOT/test/hard/short.sql" >"$out" || status=$?
    as_server_user "$(pg_config --bindir)/pg_ctl" stop --silent --mode=fast \
        --timeout=600 --pgdata="$CLUSTER_DIR/data"
    SHORT_PASSED=$(grep -c '^t |' "$out") || true
    SHORT_FAILED=$(($(grep -c '^f |' "$out" || true) + (status != 0)))
    ((SHORT_PASSED > 0)) || SHORT_FAILED=$((SHORT_FAILED + 1))
}
