# shellcheck shell=bash
# Servers that look harder, built from the source of the one that is installed,
# in build/server/NAME, and the short suite that runs on them.  Needs common.sh
# and cluster.sh.
#
# After server_build, PG_CONFIG and PATH point to that server, and PG_SOURCE to
# its source, so that every script that is run then uses it.

. "${BASH_SOURCE[0]%/*}/server_source.sh"

# server_build NAME "CFLAGS" OPTION...: builds it unless that has been done with
# the same source, flags, options and commands.
server_build() {
    local name=$1 flags=$2 prefix wanted
    shift 2

    prefix=$FMSORT_ROOT/build/server/$name
    server_source "$FMSORT_ROOT/build/server" configure
    wanted=$(printf '%s\n' "$(<"$SERVER_SOURCE/version")" "$flags" "$@" \
        "$(declare -f server_make)")
    if [[ ! -e $prefix/built || $(<"$prefix/built") != "$wanted" ]]; then
        step "Building a server ($name), some minutes" \
            server_make "$prefix" "$flags" "$@"
        printf '%s\n' "$wanted" >"$prefix/built"
    fi
    server_is_readable "$prefix"
    export PG_SOURCE=$SERVER_SOURCE PG_CONFIG=$prefix/bin/pg_config
    export PATH=$prefix/bin:$PATH
}

# The documentation is not built, nor what would need more libraries than the
# tests do.  A step's command has no set -e, hence the chain.
server_make() (
    prefix=$1 flags=$2
    shift 2
    rm -rf "$prefix" "$prefix.work"
    mkdir -p "$prefix.work" &&
        cd "$prefix.work" &&
        "$SERVER_SOURCE/configure" --prefix="$prefix" --enable-debug \
            --enable-tap-tests --with-icu --with-libxml --without-readline \
            CFLAGS="$flags" "$@" &&
        make -s -j "$(nproc)" -C src all &&
        make -s -j "$(nproc)" -C contrib all &&
        make -s -C src install &&
        make -s -C contrib install &&
        server_add_pgtap "$prefix" &&
        cd / &&
        rm -rf "$prefix.work"
)

# pgTAP is SQL only, so Debian's serves every server of that major version.
server_add_pgtap() {
    local extensions

    extensions=$(/usr/lib/postgresql/"${PG_MAJOR:-15}"/bin/pg_config \
        --sharedir)/extension
    cp "$extensions"/pgtap* "$1/share/extension/" 2>/dev/null ||
        cp "$extensions"/pgtap* "$1/share/postgresql/extension/"
}

# The server's user starts it, which is not who builds it if that is root.
server_is_readable() {
    ((EUID != 0)) || runuser -u postgres -- test -x "$1/bin/postgres" ||
        die "the user postgres cannot reach $1: give that user a way" \
            "through the directories above, or move the repository"
}

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

# short_suite ['name = value'...]: test/hard/short.sql on a throw-away cluster,
# which is stopped afterwards, so that whoever watches it has said everything.
short_suite() {
    local out=$FMSORT_ROOT/build/log/short.out status=0

    PGCTLTIMEOUT=600 cluster_start "session_preload_libraries = 'fmsort'" \
        'fmsort.min_rows = 0' "$@"
    psql -q -c 'CREATE EXTENSION fmsort'
    await psql -q -f "$FMSORT_ROOT/test/hard/short.sql" >"$out" || status=$?
    as_server_user "$(pg_config --bindir)/pg_ctl" stop --silent --mode=fast \
        --timeout=600 --pgdata="$CLUSTER_DIR/data"
    grep '^f |' "$out" | failures || true
    tally "$(grep -c '^t |' "$out")" \
        $(($(grep -c '^f |' "$out") + (status != 0)))
}

# found NUMBER LOG...: counts what a tool has found as failures, and shows it
found() {
    local count=$1
    shift

    ((count == 0)) || head -n 40 "$@" | head -n 60 | failures
    tally 0 "$count"
}
