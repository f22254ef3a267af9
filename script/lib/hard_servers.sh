# shellcheck shell=bash
# The server that looks harder, and why it is built as it is.  Needs
# server_build.sh.

# With assertions, and told to tell valgrind about its memory contexts: without
# valgrind around it, that costs next to nothing.
server_with_assertions() {
    server_build assert '-Og -fno-omit-frame-pointer' --enable-cassert \
        CPPFLAGS=-DUSE_VALGRIND
}
