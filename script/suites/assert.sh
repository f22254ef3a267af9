# shellcheck shell=bash
# Builds a server with assertions from the source of the one installed, and
# runs PostgreSQL's own tests and ours on it, fmsort built with assertions, too.
#
# The server's assertions find what ours cannot: a memory context that was
# written past its end, freed memory that is used (it is filled with 0x7F), a
# lock or a pin that stays, a plan tree that no core code would have made.

. "$FMSORT_ROOT/script/lib/server_build.sh"

run() {
    server_with_assertions
    await "$FMSORT_ROOT/script/test" core unit regress pgtap tap
}
