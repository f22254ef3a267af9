# shellcheck shell=bash
# What every script needs: where things are, how to speak, how to run a step.
# To be sourced, by scripts that have set -euo pipefail.

FMSORT_ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
FMSORT_TMP=${FMSORT_TMP:-/var/tmp}
FMSORT_LOG=

# The server's user reads what we build and copy, whatever the caller's umask.
umask 022

# A make that called us has its own options and job server; the makes that we
# call start afresh (variables set on its command line are in the environment).
unset MAKEFLAGS MFLAGS MAKELEVEL MAKEOVERRIDES

say() { printf '%s\n' "$*"; }
headline() { printf '\n== %s\n' "$*"; }
die() {
    printf '%s: %s\n' "${0##*/}" "$*" >&2
    ! is_suite_running || echo "! $*" >>"$FMSORT_TALLY"
    exit 1
}

# ---- what a suite tells script/test, in the file that FMSORT_TALLY names -----

is_suite_running() { [[ -n ${FMSORT_TALLY:-} ]]; }

# tally PASSED FAILED [SKIPPED]: the closing line of a suite
tally() {
    local passed=$1 failed=$2 skipped=${3:-0}

    ! is_suite_running || echo "+ $passed $failed $skipped" >>"$FMSORT_TALLY"
    if ((skipped)); then
        say "$passed passed, $failed failed, $skipped skipped"
    else
        say "$passed passed, $failed failed"
    fi
}

# count_tally FILE...: passed, failed and skipped of tallies
count_tally() {
    awk '$1 == "+" { passed += $2; failed += $3; skipped += $4 }
        END { print passed + 0, failed + 0, skipped + 0 }' "$@"
}

# Passes on lines that say what failed.
failures() {
    local line

    while IFS= read -r line; do
        say "$line"
        ! is_suite_running || printf '! %s\n' "$line" >>"$FMSORT_TALLY"
    done
}

# -----------------------------------------------------------------------------

version() {
    sed -n "s/^default_version = '\(.*\)'/\1/p" "$FMSORT_ROOT/fmsort.control"
}

# Debian's newest server here, or the one of PG_MAJOR.
debian_pg_config() {
    compgen -G "/usr/lib/postgresql/${PG_MAJOR:-*}/bin/pg_config" |
        sort | tail -n 1 || true
}

# Like the Makefile: the server the user chose, else Debian's, else the PATH's.
pg_config() {
    local tool=${PG_CONFIG:-}

    [[ -n $tool ]] || tool=$(debian_pg_config)
    [[ -n $tool ]] || tool=$(type -P pg_config) ||
        die "no pg_config found; 'script/setup build' installs one"
    "$tool" "$@"
}

# Debian's Python: one earlier in the PATH may lack venv.
python() {
    local tool=/usr/bin/python3

    [[ -x $tool ]] || tool=python3
    "$tool" "$@"
}

# What to do on the way out, last registered first, however we leave.
ON_EXIT=()
JOB=

at_exit() { ON_EXIT+=("$1"); }

leave() {
    local status=$? i

    trap '' INT TERM HUP
    if [[ -n $JOB ]]; then
        kill -- "-$JOB" 2>/dev/null || true
        wait "$JOB" 2>/dev/null || true
    fi
    for ((i = ${#ON_EXIT[@]} - 1; i >= 0; i--)); do
        "${ON_EXIT[i]}" || true
    done
    exit "$status"
}

trap leave EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM

# Runs a command as a process group of its own and waits for it.  In the
# foreground it would hold back our traps until it ended; this way a signal to
# us is acted on at once, and leave() can end all that the command started.
await() {
    local status=0

    set -m
    "$@" <&0 &
    JOB=$!
    set +m
    wait "$JOB" || status=$?
    JOB=
    return "$status"
}

# Long output goes here; a step that fails shows the end of it.
log_to() {
    FMSORT_LOG=$1
    mkdir -p "$(dirname "$1")"
    : >"$1"
}

# attempt "Building" command...: one line, its time or that it failed; its
# output goes to the log.
attempt() {
    local title=$1 start=$SECONDS
    shift

    printf '%-58s' "$title ..."
    printf '\n## %s\n' "$title" >>"$FMSORT_LOG"
    if await "$@" >>"$FMSORT_LOG" 2>&1; then
        printf '%4d s\n' $((SECONDS - start))
    else
        say "failed"
        return 1
    fi
}

# step "Building" command...: an attempt that has to succeed.
step() {
    attempt "$@" && return
    say
    tail -n 40 "$FMSORT_LOG" | failures
    die "that step failed; all it said is in $FMSORT_LOG"
}

# copy_tree DIRECTORY: the tree as it is here, without what was made from it,
# readable to every user.
copy_tree() {
    mkdir -p "$1"
    tar -C "$FMSORT_ROOT" -c --exclude=./build --exclude=./.git \
        --exclude='*.o' --exclude='*.d' --exclude='*.so' --mode=u+w,go=rX . |
        tar -C "$1" -x --no-same-owner
}

build_and_install() {
    make -s -C "$FMSORT_ROOT" "$@" && install_extension "$@"
}

# Without the rights to install, what is installed must be what was built.
install_extension() {
    local libdir sharedir
    libdir=$(pg_config --pkglibdir)
    sharedir=$(pg_config --sharedir)/extension

    if [[ -w $libdir && -w $sharedir ]]; then
        make -s -C "$FMSORT_ROOT" install "$@"
        return
    fi
    (cd "$FMSORT_ROOT" && cmp fmsort.so "$libdir/fmsort.so" &&
        cmp fmsort.control "$sharedir/fmsort.control" &&
        for script in fmsort--*.sql; do
            cmp "$script" "$sharedir/$script" || exit
        done) ||
        die "you may not write to $libdir; install it first:" \
            "sudo make install $*"
}

# The tests run with warnings as errors and with assertions.
with_assertions() {
    say "Testing with $(pg_config --version)"
    step "Building with assertions" build_and_install WERROR=1 ASSERT=1
}
