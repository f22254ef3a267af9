# shellcheck shell=bash
# script/lint [CHECK...]

run() { "$FMSORT_ROOT/script/lint" "$@"; }
