# shellcheck shell=bash
# Runs unit, regress, pgtap and tap on every PostgreSQL that fmsort supports,
# and prints a table.
#
#   script/test matrix [--ci] [VERSION...]      15 16 17 18 19 by default
#
#   --ci            on all but the oldest and the newest only what
#                   script/test --short runs
#   JOBS=2          how many at once
#   DEBIAN_MIRROR   where Debian's packages come from, if not from the default
#
# A version is tested with the server of the Debian release that has it: here
# if this machine runs that release, else in a root directory of its own, made
# by mmdebstrap in build/matrix, which stays there for the next time.  Such a
# root also brings its own compiler, C library, liburing and LZ4.  19 is in
# Debian's experimental: its root is the unstable release with that server.  No
# release of Debian has 16: a package of PyPI has a server, which has no ICU and
# none of what TAP tests need, so only regress and pgtap run there.
#
# The root of the newest also gets the oldest server, from which
# test/t/028_dump_upgrade.pl upgrades.
#
# What a version printed is in build/matrix/VERSION.log.

. "$FMSORT_ROOT/script/lib/root.sh"

VERSIONS=(15 16 17 18 19)
# Every suite runs on these in CI.  They take longest, so they begin.
CI_WHOLE=(15 19)
MATRIX=$FMSORT_ROOT/build/matrix
WHEEL=pgserver==0.1.4

# pgTAP is plain SQL: where a server has no package of it, the one of this
# machine's server will do.
copy_pgtap() {
    mkdir -p "$1" && cp "$(pg_config --sharedir)"/extension/pgtap* "$1"
}

# ---- the server of a Python package -----------------------------------------

wheel_make() {
    local venv=$1 server

    [[ -e $venv/ready ]] && return
    rm -rf "$venv"
    python -m venv "$venv" &&
        "$venv/bin/pip" install --quiet --no-deps "$WHEEL" || return
    server=$(echo "$venv"/lib/python*/site-packages/pgserver/pginstall)
    ln -sr "$server/bin/pg_config" "$venv/pg_config"
    copy_pgtap "$server/share/postgresql/extension" || return
    touch "$venv/ready"
}

# The server's user must get at it, and the tree's build must not be ours,
# which is for another server.  In a process of its own, for the trap.
in_wheel() (
    wheel_make "$MATRIX/wheel" || exit
    work=$(mktemp -d "$FMSORT_TMP/fmsort-wheel.XXXXXX")
    trap 'rm -rf "$work"' EXIT
    trap 'exit 143' INT TERM HUP
    chmod 755 "$work"
    cp -r "$MATRIX/wheel" "$work/wheel"
    root_copy_tree "$work"
    PG_CONFIG=$(readlink -f "$work/wheel/pg_config") \
        "$work/usr/src/fmsort/script/test" regress pgtap
)

# ---- one version ------------------------------------------------------------

# in_root VERSION CODENAME [OPTIONS OF script/test...]
in_root() {
    local version=$1 codename=$2 root=$MATRIX/$2 settings=("PG_MAJOR=$1")
    local oldest=${VERSIONS[0]}
    shift 2

    root_make "$codename" "$root" || return
    [[ $codename != sid ]] ||
        copy_pgtap "$root/usr/share/postgresql/$version/extension" || return
    root_copy_tree "$root" || return
    if [[ $version == "${VERSIONS[-1]}" ]]; then
        root_add_server "$root" "$oldest" || return
        settings+=("FMSORT_UPGRADE_FROM=/usr/lib/postgresql/$oldest")
    fi
    root_test "$root" env "${settings[@]}" /usr/src/fmsort/script/test "$@"
}

# run_version VERSION [OPTIONS OF script/test...]
run_version() {
    local version=$1 codename
    shift
    codename=$(debian_with "$version")

    if [[ $version == 16 ]]; then
        in_wheel
    elif [[ -n $codename && $codename == "$(debian_codename)" ]]; then
        PG_MAJOR=$version "$FMSORT_ROOT/script/test" "$@"
    elif [[ -n $codename ]]; then
        in_root "$version" "$codename" "$@"
    else
        die "there is no PostgreSQL $version to be had:" \
            "known are ${VERSIONS[*]}"
    fi
}

# one VERSION [OPTIONS OF script/test...]: leaves VERSION.log and VERSION.tally,
# with the seconds that all of it took.
one() {
    local log=$MATRIX/$1.log start=$SECONDS status=0
    export FMSORT_TALLY=$MATRIX/$1.tally

    : >"$FMSORT_TALLY"
    await run_version "$@" >"$log" 2>&1 || status=$?
    # It may have failed before the first test.
    if ((status != 0)) && ! grep -q '^!' "$FMSORT_TALLY"; then
        tail -n 12 "$log" | failures >/dev/null
        echo "+ 0 1 0" >>"$FMSORT_TALLY"
    fi
    echo "seconds $((SECONDS - start))" >>"$FMSORT_TALLY"
    say "PostgreSQL $1: $(tail -n 1 "$log"), $((SECONDS - start)) s"
}

# ---- all of them ------------------------------------------------------------

# ci_schedule VERSION...: what is to be run, a line a version, in this order
ci_schedule() {
    local version

    for version; do
        [[ " ${CI_WHOLE[*]} " != *" $version "* ]] || echo "$version"
    done
    for version; do
        [[ " ${CI_WHOLE[*]} " == *" $version "* ]] || echo "$version --short"
    done
}

# cells VERSION: server, counts and seconds of all and of each suite
cells() {
    local log=$MATRIX/$1.log suite

    sed -n 's/^Testing with PostgreSQL \([^ ]*\).*/\1/p' "$log" | head -n 1 |
        grep . || echo -
    count_tally "$MATRIX/$1.tally"
    sed -n 's/^seconds //p' "$MATRIX/$1.tally"
    for suite in unit regress pgtap tap; do
        awk -v suite="$suite" '$1 == suite && NF == 5 { seconds = $5 }
            END { print seconds == "" ? "-" : seconds }' "$log"
    done
}

table() {
    local row='%-9s %-10s %8s %8s %8s %8s %8s %8s %8s %8s\n' version

    # shellcheck disable=SC2059 # a row's format
    printf "\n$row" version server passed failed skipped seconds unit regress \
        pgtap tap
    for version; do
        # shellcheck disable=SC2046,SC2059 # words of a row
        printf "$row" "$version" $(cells "$version")
    done
    say
}

run() {
    local versions=() plan version failed=() count counts

    if [[ ${1:-} == --one ]]; then
        one "${@:2}"
        return
    fi
    versions=("$@")
    [[ ${1:-} != --ci ]] || versions=("${@:2}")
    ((${#versions[@]})) || versions=("${VERSIONS[@]}")
    plan=$(printf '%s\n' "${versions[@]}")
    [[ ${1:-} != --ci ]] || plan=$(ci_schedule "${versions[@]}")
    needs_root
    mkdir -p "$MATRIX"
    rm -f "$MATRIX"/*.{log,tally}
    say "Testing with PostgreSQL ${versions[*]}, ${JOBS:-2} at once" \
        "(the first time, this also makes root directories)."
    await xargs -P "${JOBS:-2}" -L 1 "$FMSORT_ROOT/script/test" --one matrix --one \
        <<<"$plan" || true
    table "${versions[@]}"
    for version in "${versions[@]}"; do
        read -r _ count _ < <(count_tally "$MATRIX/$version.tally")
        ((count == 0)) || failed+=("$version")
    done
    for version in "${failed[@]}"; do
        headline "PostgreSQL $version, the end of $MATRIX/$version.log"
        tail -n 100 "$MATRIX/$version.log"
    done
    for version in "${failed[@]}"; do
        sed -n "s/^! /$version: /p" "$MATRIX/$version.tally" |
            head -n $((20 / ${#failed[@]})) | failures
    done
    read -ra counts < <(count_tally "$MATRIX"/*.tally)
    tally "${counts[@]}"
    ((counts[1] == 0 && counts[0] > 0))
}
