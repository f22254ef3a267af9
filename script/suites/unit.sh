# shellcheck shell=bash
# The unit tests: test/unit/FOLDER/test_NAME.c, see the Makefile.
#
#   script/test unit [FOLDER/NAME...]

run() {
    local names=("${@/\//\/test_}") chosen=()

    names=("${names[@]/#/test/unit/}")
    (($# == 0)) || chosen=("UNIT_SOURCES=${names[*]/%/.c}")
    make -s -j "$(nproc)" -C "$FMSORT_ROOT" unit "${chosen[@]}"
}
