# shellcheck shell=bash
# The two servers that look harder, and why they are built as they are.  Needs
# server_build.sh.

# With assertions, and told to tell valgrind about its memory contexts: without
# valgrind around it, that costs next to nothing.
server_with_assertions() {
    server_build assert '-Og -fno-omit-frame-pointer' --enable-cassert \
        CPPFLAGS=-DUSE_VALGRIND
}
