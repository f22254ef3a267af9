# shellcheck shell=bash
# Installs fmsort as a user would, with the commands of the documentation, in
# root directories of Debian 12 and 13 that have nothing yet, and sorts with it:
# the Debian package, also over that of 0.1.0, on both; the RPM package on 12; the
# sources, PGXN's archive and the Dockerfile on 13.  Counts these ways.
#
#   script/test packages [CODENAME...]      bookworm trixie by default
#
# What is printed for a release is in build/log/packages-CODENAME.log.

. "$FMSORT_ROOT/script/lib/root.sh"

PACKAGES=$FMSORT_ROOT/build/packages
# The last commit of 0.1.0.
OLD_COMMIT=af5141c5a9ad776ddfbc806c3925c3b94df47b59
ROOT=
MAJOR=
PASSED=0 FAILED=0

# The first block of code after <!-- run: NAME --> in the documentation.
commands() {
    awk -v name="<!-- run: $1 -->" '
        $0 == name { found = 1; next }
        found && /^```/ { if (inside) exit; inside = 1; next }
        inside { print; some = 1 }
        END { exit !some }' "$FMSORT_ROOT"/README.md "$FMSORT_ROOT"/docs/*.md
}

# PGXS takes this from the environment: what is built here is not measured, and
# compiles in a third of the time.
QUICKLY=COPT=-O0

# Versions there are examples.
shell_commands() {
    local text
    text=$(commands "$1") || return

    echo "set -eux; export DEBIAN_FRONTEND=noninteractive $QUICKLY"
    sed -E "s/-1[5-9]/-$MAJOR/g; s/_[0-9]+\.[0-9]+\.[0-9]+-/_$(version)-/g
        s/_amd64/_$(dpkg --print-architecture)/g
        s/fmsort-[0-9]+\.[0-9]+\.[0-9]+/fmsort-$(version)/g" <<<"$text"
}

# ---- what is installed -------------------------------------------------------

# The sources of 0.1.0, in DIRECTORY/fmsort-0.1.0.  A shallow checkout gets them
# from where it came from.
old_source() {
    local git=(git -C "$FMSORT_ROOT" -c "safe.directory=$FMSORT_ROOT")

    "${git[@]}" cat-file -e "$OLD_COMMIT" ||
        "${git[@]}" fetch --quiet --depth=1 origin "$OLD_COMMIT" || {
        echo "git has the sources of 0.1.0 in its history, which is not here"
        return 1
    }
    mkdir -p "$1/fmsort-0.1.0" &&
        "${git[@]}" archive "$OLD_COMMIT" | tar -x -C "$1/fmsort-0.1.0"
}

# build_here DIRECTORY [--unchecked]: the packages of this version and of 0.1.0,
# whose sources are in DIRECTORY, into DIRECTORY, on the release that they are
# for.
build_here() {
    "$FMSORT_ROOT/script/deb" "${@:2}" &&
        cp "$FMSORT_ROOT"/build/deb/*.deb "$1" &&
        cd "$1/fmsort-0.1.0" && pg_buildext updatecontrol &&
        DEB_BUILD_OPTIONS=nocheck dpkg-buildpackage --build=binary \
            --build-profiles=nocheck --unsigned-changes
}

# build_packages CODENAME: into PACKAGES/CODENAME.  For another release than
# this machine's they are built in the root directory of the suite "matrix", and
# what lintian says of them is known from here.
build_packages() {
    local target=$PACKAGES/$1 root=$FMSORT_ROOT/build/matrix/$1

    rm -rf --one-file-system "$target"
    if [[ $1 == "$(debian_codename)" ]]; then
        old_source "$target" && (build_here "$target")
        return
    fi
    root_make "$1" "$root" && root_copy_tree "$root" || return
    rm -rf "$root/srv/packages"
    # shellcheck disable=SC2016 # expanded by the shell inside
    old_source "$root/srv/packages" &&
        root_run "$root" bash -euc 'cd /usr/src/fmsort
            . script/lib/common.sh
            . script/suites/packages.sh
            build_here "$0" --unchecked' /srv/packages &&
        mv "$root/srv/packages" "$target"
}

fresh_root() {
    rm -rf --one-file-system "$ROOT"
    root_make "$1" "$ROOT" || return
    root_copy_tree "$ROOT"
    cp "$PACKAGES/$1"/*.deb "$ROOT/srv"
    # no server but those that we start
    mkdir -p "$ROOT/etc/postgresql-common/createcluster.d"
    echo 'create_main_cluster = false' \
        >"$ROOT/etc/postgresql-common/createcluster.d/none.conf"
    # shellcheck disable=SC2016 # expanded by the shell inside
    root_run "$ROOT" sh -c 'apt-get -q update && DEBIAN_FRONTEND=noninteractive \
        apt-get -q install -y --no-install-recommends "$0" procps' \
        "postgresql-$MAJOR"
}

# ---- in the root directory ---------------------------------------------------

# in_root DIRECTORY NAME: the commands of that name, there
in_root() {
    shell_commands "$2" >"$ROOT/srv/$2.sh" || return
    # shellcheck disable=SC2016 # expanded by the shell inside
    root_run "$ROOT" sh -c 'cd "$0" && sh -e "$1"' "$1" "/srv/$2.sh"
}

# in_cluster: runs the script that it is given in a cluster of the root's server,
# with a table.  There, sorts fails unless fmsort sorts a new session's query,
# and rightly.  Both releases run at once, and pg_virtualenv's servers listen on
# loopback: each has a port of its own.
in_cluster() {
    local name

    for name in database database-remove upgrade; do
        commands "$name" >"$ROOT/srv/$name.sql" || return
    done
    {
        cat <<'END'
set -eux
psql='psql -X -A -t -v ON_ERROR_STOP=1 -d mydb'
sorts()
{
    $psql -c "EXPLAIN ANALYZE SELECT t FROM t ORDER BY t" >/tmp/plan
    cat /tmp/plan
    grep -F 'Custom Scan (FMSort)' /tmp/plan
    grep -F 'Sort Method: external merge' /tmp/plan
    [ "$($psql -c 'SELECT count(*) FILTER (WHERE before > t), count(*)
        FROM (SELECT t, lag(t) OVER () AS before
            FROM (SELECT t FROM t ORDER BY t OFFSET 0) s) s')" = '0|300000' ]
}
createdb mydb
$psql -c 'CREATE TABLE t AS SELECT md5(i::text) AS t
    FROM generate_series(1, 300000) i' -c 'ANALYZE t'
END
        cat
    } >"$ROOT/srv/cluster.sh"
    root_run "$ROOT" pg_virtualenv -v "$MAJOR" -c "--port=54$MAJOR" \
        sh /srv/cluster.sh
}

# Is what is installed what the user hopes for?
sorts() {
    in_cluster <<'END'
$psql -f /srv/database.sql
sorts
$psql -f /srv/database-remove.sql
END
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

# A session that has 0.1.0 loaded goes on sorting with it, new sessions have the
# new library, first with the old objects, then with the new ones.
by_upgrade() {
    # shellcheck disable=SC2016 # expanded by the shell inside
    gone && root_run "$ROOT" sh -c \
        'apt-get -q install -y "/srv/postgresql-$0-fmsort_0.1.0-1_$1.deb"' \
        "$MAJOR" "$(dpkg --print-architecture)" &&
        shell_commands deb >"$ROOT/srv/deb.sh" || return
    in_cluster <<END || return
version() { \$psql -c "SELECT extversion FROM pg_extension WHERE extname = 'fmsort'"; }
old_session_sorts()
{
    echo "CREATE TABLE sorted_\$1 AS SELECT count(*)
        FROM (SELECT t FROM t ORDER BY t OFFSET 0) s;" >&3
    timeout 60 sh -c "until \$psql -c 'TABLE sorted_\$1' 2>/dev/null |
        grep -x 300000; do sleep 0.2; done"
}
\$psql -f /srv/database.sql
[ "\$(version)" = 0.1.0 ]
mkfifo /tmp/old_session
\$psql </tmp/old_session &
exec 3>/tmp/old_session
# its workers would load the new library
echo 'SET max_parallel_workers_per_gather = 0;' >&3
old_session_sorts before
(cd /srv && sh -e deb.sh)
old_session_sorts after
sorts
\$psql -f /srv/upgrade.sql
[ "\$(version)" = $(version) ]
sorts
\$psql -c "SELECT * FROM fmsort_compare('SELECT t FROM t ORDER BY t')"
old_session_sorts later
exec 3>&-
wait
\$psql -f /srv/database-remove.sql
END
    in_root /srv deb-remove && gone
}

by_source() {
    gone && in_root /usr/src/fmsort source && sorts &&
        root_run "$ROOT" make -C /usr/src/fmsort uninstall && gone
}

by_pgxn() {
    gone && cp "$FMSORT_ROOT"/build/dist/*.zip "$ROOT/srv" &&
        in_root /srv pgxn && sorts &&
        root_run "$ROOT" make -C /usr/src/fmsort uninstall && gone
}

by_rpm() {
    local archive=$PACKAGES/rpm.cpio

    gone && env "$QUICKLY" PG_MAJOR="$MAJOR" "$FMSORT_ROOT/script/rpm" &&
        rpm2cpio "$FMSORT_ROOT"/build/rpm/*/fmsort_*.rpm >"$archive" &&
        cpio -idm --no-absolute-filenames -D "$ROOT" <"$archive" &&
        sorts || return
    cpio -t <"$archive" | sed -n "s,^\./,$ROOT/,p" | xargs -d '\n' rm -rf && gone
}

# The Dockerfile's commands as a script: both stages run in one root.
dockerfile_commands() {
    echo "set -eux; export DEBIAN_FRONTEND=noninteractive $QUICKLY"
    echo "export PG_MAJOR=$MAJOR"
    sed -e ':join' -e '/\\$/ { N; s/\\\n//; b join' -e '}' \
        "$FMSORT_ROOT/Dockerfile" | sed -nE -e 's/^RUN //p' \
        -e 's/^WORKDIR /cd /p' -e 's,^COPY --from=[^ ]* (.*) /$,cp -a \1/. /,p'
}

# As in the image "postgres", initdb's sample of the configuration is outside of
# its version's directory, and a new database gets what a directory's scripts say.
by_dockerfile() {
    gone && dockerfile_commands >"$ROOT/srv/docker.sh" || return
    cat >"$ROOT/srv/image.sh" <<'END'
set -eux
bin=$1 sample=$2/postgresql.conf.sample data=/tmp/image
mv "$sample" /usr/share/postgresql/
ln -s ../postgresql.conf.sample "$sample"
mkdir /docker-entrypoint-initdb.d
sh -e /srv/docker.sh
as_postgres() { (cd /tmp && runuser -u postgres -- "$@"); }
query() { as_postgres psql -X -v ON_ERROR_STOP=1 -h /tmp -d postgres "$@"; }
as_postgres "$bin/initdb" -D "$data"
as_postgres "$bin/pg_ctl" start -w -D "$data" -l /tmp/image.log \
    -o '-k /tmp -c listen_addresses='
trap 'as_postgres "$bin/pg_ctl" stop -m immediate -D "$data"' EXIT
for file in /docker-entrypoint-initdb.d/*.sql; do query -f "$file"; done
query -c 'EXPLAIN ANALYZE SELECT i FROM generate_series(1, 300000) i ORDER BY -i' |
    grep -F 'Custom Scan (FMSort)'
query -c 'SELECT * FROM fmsort_progress'
query -c 'SELECT * FROM fmsort_stat' | grep -F '(1 row)'
END
    root_run "$ROOT" sh /srv/image.sh "/usr/lib/postgresql/$MAJOR/bin" \
        "/usr/share/postgresql/$MAJOR"
}

# ---- one release -------------------------------------------------------------

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

# release CODENAME
release() {
    MAJOR=$(debian_server "$1")
    ROOT=$PACKAGES/$1-root
    log_to "$FMSORT_ROOT/build/log/packages-$1.log"
    step "Building packages: $(version), and 0.1.0" build_packages "$1"
    step "Making a root directory with PostgreSQL $MAJOR" fresh_root "$1"
    try "Debian package: install, sort, remove" by_deb
    try "Debian package: install 0.1.0, upgrade, sort, remove" by_upgrade
    # The others once each, so that both releases take equally long.
    case $1 in
    bookworm)
        try "RPM package: build, unpack, sort, remove" by_rpm
        ;;
    trixie)
        try "Source: build, install, sort, remove" by_source
        try "PGXN's archive: install, sort, remove" by_pgxn
        try "Dockerfile: its commands, sort, statistics, progress" by_dockerfile
        ;;
    esac
    rm -rf --one-file-system "$ROOT"
    tally "$PASSED" "$FAILED"
    ((FAILED == 0))
}

# one CODENAME: what it prints comes at once, since others run beside it.
one() {
    local output=$PACKAGES/$1.output status=0

    await "$FMSORT_ROOT/script/test" --one packages --release "$1" \
        >"$output" 2>&1 || status=$?
    printf '\nDebian %s\n' "$1"
    cat "$output"
    return "$status"
}

# One commit makes one archive, whoever makes it, when and where.
is_dist_reproducible() {
    local zip
    zip=$FMSORT_ROOT/build/dist/fmsort-$(version).zip

    "$FMSORT_ROOT/script/dist" && cp "$zip" "$PACKAGES/first.zip" &&
        (umask 077 && TZ=Asia/Tokyo LC_ALL=C "$FMSORT_ROOT/script/dist") &&
        cmp "$zip" "$PACKAGES/first.zip"
}

run() {
    local releases=("$@") status=0

    mkdir -p "$PACKAGES"
    case ${1:-} in
    --one)
        one "$2"
        return
        ;;
    --release)
        release "$2"
        return
        ;;
    esac
    ((${#releases[@]})) || releases=(bookworm trixie)
    needs_root
    "$FMSORT_ROOT/script/setup" deb dist rpm
    try "PGXN's archive: two builds are the same" is_dist_reproducible
    printf '%s\n' "${releases[@]}" | await xargs -P 2 -n 1 \
        "$FMSORT_ROOT/script/test" --one packages --one || status=1
    tally "$PASSED" "$FAILED"
    ((FAILED == 0 && status == 0))
}
