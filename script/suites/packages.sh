# shellcheck shell=bash
# Installs the packages as a user would, in a root directory of Debian that has
# nothing yet, with the commands of docs/installing.md, and sorts with each.
# Counts these ways of installing.

. "$FMSORT_ROOT/script/lib/root.sh"

ROOT=$FMSORT_ROOT/build/packages/root
PASSED=0 FAILED=0

# The first block of code after <!-- run: NAME -->.
commands() {
    awk -v name="<!-- run: $1 -->" '
        $0 == name { found = 1; next }
        found && /^```/ { if (inside) exit; inside = 1; next }
        inside { print; some = 1 }
        END { exit !some }' "$FMSORT_ROOT/docs/installing.md"
}

# Versions there are examples.
shell_commands() {
    local text
    text=$(commands "$1") || return

    echo 'set -eux; export DEBIAN_FRONTEND=noninteractive'
    sed "s/-15/-$MAJOR/g; s/_0\.1\.0-/_$(version)-/; s/_amd64/_$ARCH/
        s/fmsort-0\.1\.0/fmsort-$(version)/" <<<"$text"
}

fresh_root() {
    rm -rf --one-file-system "$ROOT"
    root_make "$(debian_codename)" "$ROOT" || return
    root_copy_tree "$ROOT"
    cp "$FMSORT_ROOT"/build/deb/*.deb "$FMSORT_ROOT"/build/dist/*.zip \
        "$ROOT/srv"
    # no server but those that we start
    mkdir -p "$ROOT/etc/postgresql-common/createcluster.d"
    echo 'create_main_cluster = false' \
        >"$ROOT/etc/postgresql-common/createcluster.d/none.conf"
    # shellcheck disable=SC2016 # expanded by the shell inside
    root_run "$ROOT" sh -c 'apt-get -q update && DEBIAN_FRONTEND=noninteractive \
        apt-get -q install -y --no-install-recommends "$0" procps' \
        "postgresql-$MAJOR"
}

# in_root DIRECTORY NAME: the commands of that name, there
in_root() {
    shell_commands "$2" >"$ROOT/srv/$2.sh" || return
    # shellcheck disable=SC2016 # expanded by the shell inside
    root_run "$ROOT" sh -c 'cd "$0" && sh -e "$1"' "$1" "/srv/$2.sh"
}

# Is what is installed what the user hopes for?
sorts() {
    commands database >"$ROOT/srv/database.sql" &&
        commands database-remove >"$ROOT/srv/database-remove.sql" &&
        commands upgrade >"$ROOT/srv/upgrade.sql" || return
    cat >"$ROOT/srv/sorts.sh" <<'END'
set -eux
psql='psql -X -v ON_ERROR_STOP=1 -d mydb'
createdb mydb
$psql -f /srv/database.sql -f /srv/upgrade.sql
$psql -c 'CREATE TABLE t AS SELECT md5(i::text) AS t
    FROM generate_series(1, 300000) i; ANALYZE t'
$psql -At -c "EXPLAIN ANALYZE SELECT t FROM t ORDER BY t" >/tmp/plan
cat /tmp/plan
grep -F 'Custom Scan (FMSort)' /tmp/plan
grep -F 'Sort Method: external merge' /tmp/plan
[ "$($psql -At -c 'SELECT count(*) FILTER (WHERE before > t), count(*)
    FROM (SELECT t, lag(t) OVER () AS before
        FROM (SELECT t FROM t ORDER BY t OFFSET 0) s) s')" = '0|300000' ]
$psql -f /srv/database-remove.sql
END
    root_run "$ROOT" pg_virtualenv -v "$MAJOR" sh /srv/sorts.sh
}

# No file may be left of it, or the next way would test this one.
gone() {
    local left
    left=$(find "$ROOT/usr" -path "$ROOT/usr/src" -prune -o \
        -name 'fmsort*' -print)

    [[ -z $left ]] || {
        echo "$left"
        return 1
    }
}

by_deb() {
    in_root /srv deb && sorts && in_root /srv deb-remove && gone
}

by_source() {
    gone && in_root /usr/src/fmsort source && sorts &&
        root_run "$ROOT" make -C /usr/src/fmsort uninstall && gone
}

by_pgxn() {
    gone && in_root /srv pgxn && sorts
}

try() {
    if attempt "$@"; then
        PASSED=$((PASSED + 1))
    else
        FAILED=$((FAILED + 1))
        {
            echo "failed: $1"
            tail -n 15 "$FMSORT_LOG"
        } | failures
    fi
}

run() {
    needs_root
    "$FMSORT_ROOT/script/deb"
    "$FMSORT_ROOT/script/dist"
    MAJOR=$(pg_config --version | sed 's/^[^0-9]*\([0-9]*\).*/\1/')
    ARCH=$(dpkg --print-architecture)
    step "Making a root directory with PostgreSQL $MAJOR" fresh_root
    try "Debian package: install, sort, remove" by_deb
    try "Source: build, install, sort, remove" by_source
    try "PGXN's archive: install, sort" by_pgxn
    rm -rf --one-file-system "$ROOT"
    tally "$PASSED" "$FAILED"
    ((FAILED == 0))
}
