# shellcheck shell=bash
# test/pgtap/*.sql, one after the other, in one database.
#
#   script/test pgtap [test/pgtap/NAME.sql...]

run() {
    local files=("$@") status=0

    ((${#files[@]})) || files=("$FMSORT_ROOT"/test/pgtap/*.sql)
    with_assertions
    cluster_start
    createdb fmsort_pgtap
    psql -q -d fmsort_pgtap -c 'CREATE EXTENSION pgtap' \
        -c 'CREATE EXTENSION fmsort'
    PGOPTIONS='-c session_preload_libraries=fmsort -c fmsort.min_rows=0' \
        PERL5LIB=$FMSORT_ROOT/script/lib await pg_prove --merge \
        --dbname fmsort_pgtap --harness TapTally --nocolor --timer \
        "${files[@]}" || status=$?
    ((status == 0)) ||
        cp "$CLUSTER_DIR/server.log" "$FMSORT_ROOT/build/log/server.log"
    return "$status"
}
