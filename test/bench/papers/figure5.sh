# shellcheck shell=bash
# Figure 5 as the paper has it: run formation of a traditional mergesort and of
# FMsort, in blocks of 4 kB, whatever the number of runs.  Sourced by fmsort.
#
# The merges of Figures 6 and 7 have equal memory instead, of which FMsort makes
# smaller blocks, and so more of them, the fewer runs there are.

FIGURE5_BLOCK=4096
FIGURE5_CONTENDERS="traditional fmsort-base"

# Whoever comes first in a round comes second in the next.
figure5_cells() {
    local round data runs i all
    read -ra all <<<"$FIGURE5_CONTENDERS"

    for ((round = 1; round <= REPEAT; round++)); do
        for data in ${DATASETS//D/}; do
            for runs in $(runs_of "$data"); do
                for i in 0 1; do
                    set -- "${all[(i + round - 1) % 2]}"
                    printf '%s\t' "$(weight "$data" "$FIGURE5_BLOCK" "$1")" \
                        "$data" "$runs" "$1" "$round"
                    echo
                done
            done
        done
    done
}

# measure_figure5 DATA RUNS CONTENDER ROUND
measure_figure5() {
    sort_cell "$1" "$FIGURE5_BLOCK" "$2" "$3"
    csv_row "$@" "${SORT[runs]}" "${SORT[block_size]}" "${SORT[blocks]}" \
        "${SORT[run_formation_ms]}" "${SORT[block_order_ms]}"
}

figure5() {
    local panels
    mapfile -t panels < <(papers_panels "${DATASETS//D/}")

    headline "Figure 5, run formation in blocks of 4 kB"
    ((${#panels[@]})) && csv_there fmsort-formation || return 0
    csv_open fmsort-formation data,runs,contender,round \
        runs_formed,block_size,blocks,run_formation_ms,block_order_ms
    figure5_cells | papers_measure measure_figure5 prepare
    papers_chart fmsort-figure-5 --x runs --scale 0.001 --kind bars \
        --xlabel "number of runs" --ylabel seconds "${panels[@]}" \
        --y run_formation_ms-block_order_ms,run_formation_ms \
        --where "contender=fmsort-base" \
        --title "Figure 5: run formation, without and with the block read order"
    python "$PAPERS_DIR/figure5_claims.py" "$CSV"
}
