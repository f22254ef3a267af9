# shellcheck shell=bash
# make installcheck on a throw-away cluster.
#
#   script/test regress [NAME...]     some of sql/NAME.sql

# pg_regress prints "ok" and "FAILED" until 15, TAP since 16.
run() {
    local status=0 chosen=() out=$FMSORT_ROOT/build/log/regress.out
    local ok='^(test .*|  *[^ ]+ *)\.\.\. *' diffs=build/regress/regression.diffs

    (($# == 0)) || chosen=("REGRESS=$*")
    with_assertions
    cluster_start
    await make -s -C "$FMSORT_ROOT" installcheck "${chosen[@]}" 2>&1 | tee "$out" || status=$?
    grep -E "${ok}FAILED|^not ok " "$out" | failures || true
    if ((status != 0)); then
        cp "$CLUSTER_DIR/server.log" "$FMSORT_ROOT/build/log/server.log"
        head -n 300 "$FMSORT_ROOT/$diffs" 2>/dev/null | failures
    fi
    tally "$(grep -cE "${ok}ok|^ok " "$out")" \
        "$(grep -cE "${ok}FAILED|^not ok " "$out")"
    return "$status"
}
