# shellcheck shell=bash
# Figure 5 on drives that write no faster than the paper's, which this one is
# held to: run formation and the block read order of Data A, 100 runs.  Sourced
# by fmsort.
#
# One per cent of run formation is a fixed share of a time that drives differ
# in.  270 and 550 MB/s are the paper's two drives.  0 is the same device, a
# file system in a file (throttle.sh), as fast as it is.

. "$PAPERS_ROOT/test/bench/devices/throttle.sh"

RATES=${RATES-$(papers_size "0 550 270" 270 "")}
PACED_ROUNDS=$(papers_size 5 3 1)
PACED_CONTENDERS="fmsort-8 fmsort-32"

paced_cells() {
    local round rate base contender

    for ((round = 1; round <= PACED_ROUNDS; round++)); do
        for rate in $RATES; do
            for base in $BASE_BLOCKS; do
                for contender in $PACED_CONTENDERS; do
                    printf '%s\t' 1 "$rate" "$base" "$contender" "$round"
                    echo
                done
            done
        done
    done
}

paced_prepare() {
    prepare A
    throttle_limit $(($1 * 1000000)) 0
}

# measure_paced MB_PER_S BASE_BLOCK CONTENDER ROUND
measure_paced() {
    sort_cell A "$2" 100 "$3"
    csv_row "$@" "${SORT[runs]}" "${SORT[block_size]}" "${SORT[blocks]}" \
        "${SORT[run_formation_ms]}" "${SORT[block_order_ms]}"
}

paced_device() {
    local directory=$THROTTLE_DIR/slow/spills

    mkdir "$directory" &&
        chown "$(stat -c %U "$CLUSTER_DIR/data")" "$directory" &&
        sql -c "CREATE TABLESPACE paced LOCATION '$directory'" \
            -c "ALTER SYSTEM SET temp_tablespaces = 'paced'" \
            -c "SELECT pg_reload_conf()" >/dev/null
}

paced_done() {
    throttle_limit 0 0
    sql -c "ALTER SYSTEM RESET temp_tablespaces" \
        -c "SELECT pg_reload_conf()" -c "DROP TABLESPACE paced" >/dev/null
}

# Says why if it cannot be done here.
paced_possible() {
    if [[ -z $RATES ]]; then
        say "Not measured: no rates."
    elif ((EUID != 0)) || ! throttle_find; then
        say "Not measured: only root can throttle a device, and by a blkio" \
            "controller of cgroup version 1."
    else
        return 0
    fi
    return 1
}

paced() {
    headline "Figure 5, writes held to the rates of the paper's drives"
    csv_there fmsort-paced || return 0
    if ((!DRAW)); then
        paced_possible || return 0
        throttle_begin "$(papers_size 2048 1024 512)"
        step "Making a tablespace on it" paced_device
    fi
    csv_open fmsort-paced mb_per_s,base_block,contender,round \
        runs_formed,block_size,blocks,run_formation_ms,block_order_ms
    paced_cells | papers_measure measure_paced paced_prepare
    ((DRAW)) || step "Removing it" paced_done
    python "$PAPERS_DIR/paced_claims.py" "$CSV"
}
