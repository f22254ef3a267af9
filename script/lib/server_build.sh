# shellcheck shell=bash
# Servers that look harder, built from the source of the one that is installed,
# in build/server/NAME.  Needs common.sh and server_source.sh.
#
# After server_build, PG_CONFIG and PATH point to that server, and PG_SOURCE to
# its source, so that every script that is run then uses it.

# server_build NAME "CFLAGS" OPTION...: builds it unless that has been done with
# the same source, flags, options and commands.
server_build() {
    local name=$1 flags=$2 prefix wanted
    shift 2

    prefix=$FMSORT_ROOT/build/server/$name
    server_source_all
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
