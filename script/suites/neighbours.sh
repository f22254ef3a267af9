# shellcheck shell=bash
# Runs fmsort beside other extensions, in three orders of loading, and compares
# with what they do without fmsort: test/neighbours, and script/test extensions.
#
#   script/test neighbours [test/neighbours/NAME.pl...]
#
#   DEBIAN_MIRROR   where Debian's packages come from, if not from the default
#
# The server is PostgreSQL 18, which has Debian packages of all of them, in a
# root directory of its own in build/neighbours, which stays for the next time.

. "$FMSORT_ROOT/script/lib/root.sh"

SERVER=18
ROOT=$FMSORT_ROOT/build/neighbours

run() {
    local tests=("$@")

    ((${#tests[@]})) || tests=(test/neighbours/*.pl extensions)
    needs_root
    step "Making a root directory with PostgreSQL $SERVER" \
        root_make "$(debian_with "$SERVER")" "$ROOT"
    step "Copying the tree" root_copy_tree "$ROOT"
    # shellcheck disable=SC2016 # expanded by the shell inside
    root_test "$ROOT" bash -c 'cd /usr/src/fmsort && script/setup neighbours &&
        script/test tap "$@"' bash "${tests[@]}"
}
