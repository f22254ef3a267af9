# shellcheck shell=bash
# Fuzzes what reads bytes that nobody vouches for, with libFuzzer, the address
# sanitizer and the undefined behaviour sanitizer.
#
#   script/test fuzz [NAME...]      some of test/fuzz/fuzz_NAME.c
#   script/test fuzz NAME FILE      one input again, from build/fuzz/NAME
#   FUZZ_SECONDS=60                 for each
#
# What is found stays in build/fuzz/NAME, one file an input; so does the
# corpus, which the next time goes on from.  No server is needed: the targets
# are built like the unit tests, with their shim.

FUZZ_SECONDS=${FUZZ_SECONDS:-60}
FUZZ=$FMSORT_ROOT/build/fuzz
FAILED=0

targets() {
    local file

    for file in "$FMSORT_ROOT"/test/fuzz/fuzz_*.c; do
        file=${file##*/fuzz_}
        echo "${file%.c}"
    done
}

# The inputs are what a generator takes its choices from, so random bytes of
# different lengths are a start: the fuzzer finds the choices that matter.
make_seeds() {
    local dir=$1 i

    mkdir -p "$dir"
    for ((i = 1; i <= 32; i++)); do
        [[ -e $dir/seed-$i ]] ||
            perl -e 'srand shift; print map chr(rand 256), 1 .. shift' \
                "$i" $((i * i * 2)) >"$dir/seed-$i"
    done
}

run_target() {
    local name=$1 dir=$FUZZ/$1 log=$FUZZ/$1/log status=0 runs

    make_seeds "$dir/corpus"
    printf '%-58s' "Fuzzing $name for $FUZZ_SECONDS s ..."
    await "$FUZZ/fuzz_$name" -max_total_time="$FUZZ_SECONDS" -max_len=8192 \
        -timeout=60 -rss_limit_mb=4096 -print_final_stats=1 \
        -artifact_prefix="$dir/" "$dir/corpus" >"$log" 2>&1 || status=$?
    runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
    if ((status == 0)); then
        say "$runs inputs, $(find "$dir/corpus" -type f | wc -l) kept"
    else
        say "failed"
        tail -n 40 "$log" | failures
        FAILED=$((FAILED + 1))
    fi
}

run() {
    local names=("$@") name

    mkdir -p "$FUZZ"
    make -s -C "$FMSORT_ROOT" fuzz-programs
    if (($# == 2)) && [[ -f $2 ]]; then
        await "$FUZZ/fuzz_$1" "$2"
        tally 1 0
        return
    fi
    ((${#names[@]})) || mapfile -t names < <(targets)
    for name in "${names[@]}"; do
        run_target "$name"
    done
    tally $((${#names[@]} - FAILED)) "$FAILED"
    ((FAILED == 0))
}
