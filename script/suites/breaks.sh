# shellcheck shell=bash
# Breaks the code in one place after the other, and expects a test to fail: a
# test that cannot fail proves nothing.  What to break is in
# test/breaks/breaks.txt.
#
#   script/test breaks [NAME...]
#
# A copy of the tree is broken and tested.  A test has to pass as it is before it
# is used.  What the tests said is in build/log/breaks.  Afterwards the sound
# library is installed again, with assertions.

LOGS=$FMSORT_ROOT/build/log/breaks
# A break may make a test hang.
LIMIT_S=900
COPY=
SOUND=
PASSED=0 FAILED=0

breaks() { perl "$FMSORT_ROOT/script/lib/breaks.pl" "$1" "${@:2}"; }

# Objects come along, so that only what is broken has to be compiled.
make_copy() {
    COPY=$(mktemp -d "$FMSORT_TMP/fmsort-breaks.XXXXXX")
    at_exit remove_copy
    chmod 755 "$COPY"
    tar -C "$FMSORT_ROOT" -c --exclude=./build/log --exclude=./build/matrix \
        --exclude=./build/server --exclude=./.git . |
        tar -C "$COPY" -x --no-same-owner
    mkdir -p "$LOGS"
}

remove_copy() {
    rm -rf "$COPY"
    make -s -C "$FMSORT_ROOT" WERROR=1 ASSERT=1 install >/dev/null 2>&1 || true
}

# run_test LOG WORD...: settings (NAME=VALUE) and arguments of script/test
run_test() {
    local log=$1 settings=()
    shift

    while [[ $1 == [A-Z]*=* ]]; do
        settings+=("$1")
        shift
    done
    await timeout --kill-after=60 "$LIMIT_S" \
        env -u CI -u FMSORT_TALLY "${settings[@]}" \
        "$COPY/script/test" "$@" >"$log" 2>&1 </dev/null
}

# Did the test run, and find something?  One that was ended hung.
verdict() {
    local status=$1 log=$2

    if ((status == 124 || status == 137)); then
        echo "hangs"
    elif ((status == 0)); then
        echo "passes"
    elif grep -qE '^[1-9][0-9]* passed, [1-9]' "$log" ||
        grep -qE '^[a-z]+: .*(not ok |: exit status )|^test .* FAILED' "$log"; then
        echo "fails"
    else
        echo "does not run"
    fi
}

break_one() {
    local name=$1 log=$LOGS/$1.log status=0 said file test

    read -ra test <<<"$(breaks show "$COPY" "$name" test)"
    file=$(breaks apply "$COPY" "$name")
    run_test "$log" "${test[@]}" || status=$?
    said=$(verdict "$status" "$log")
    printf '%-34s %-38s %s\n' "$name" "${test[*]}" "$said"
    if [[ $said == fails || $said == hangs ]]; then
        PASSED=$((PASSED + 1))
    else
        FAILED=$((FAILED + 1))
        failures <<<"$name: ${test[*]} $said; the log is $log" >/dev/null
    fi
    mv "$COPY/$file.sound" "$COPY/$file"
    touch "$COPY/$file"
}

# sound TEST: does it pass as it is?  Or else failing says nothing.
sound() {
    local words start=$SECONDS

    [[ $SOUND != *"<$1>"* ]] || return 0
    SOUND+="<$1>"
    read -ra words <<<"$1"
    if run_test "$LOGS/sound.log" "${words[@]}"; then
        printf 'As it is, %s passes (%d s)\n' "$1" $((SECONDS - start))
        return
    fi
    FAILED=$((FAILED + 1))
    failures <<<"As it is, $1 does not pass:"
    tail -n 12 "$LOGS/sound.log" | failures
}

run() {
    local names=("$@") name

    ((${#names[@]})) || mapfile -t names < <(breaks list "$FMSORT_ROOT")
    step "Building" make -s -C "$FMSORT_ROOT" WERROR=1 ASSERT=1
    make_copy
    for name in "${names[@]}"; do
        sound "$(breaks show "$COPY" "$name" test)"
        break_one "$name"
    done
    tally "$PASSED" "$FAILED"
    ((FAILED == 0))
}
