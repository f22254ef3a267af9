# shellcheck shell=bash
# A throw-away cluster: made below $FMSORT_TMP, reached by a Unix socket that
# nobody else can open, stopped and removed on the way out.  Needs common.sh.
#
# After cluster_start, PGHOST, PGPORT, PGUSER and PGDATABASE point to it.

CLUSTER_DIR=
CLUSTER_USER=
# A program to start in the server's place, such as one that wraps it.
CLUSTER_POSTGRES=
# A command, with arguments, to start the server under.
CLUSTER_UNDER=()

# The server does not run as root: pick who runs it, and own its directory.
pick_server_user() {
    if ((EUID != 0)); then
        CLUSTER_USER=$(id -un)
        return
    fi
    CLUSTER_USER=postgres
    getent passwd postgres >/dev/null && return
    CLUSTER_USER=fmsort
    getent passwd fmsort >/dev/null ||
        useradd --system --shell /bin/sh --no-create-home fmsort
}

# The caller's directory may be closed to the server's user: start in ours.
as_server_user() {
    if ((EUID == 0)); then
        (cd "$CLUSTER_DIR" &&
            runuser -u "$CLUSTER_USER" -- env "HOME=$CLUSTER_DIR" "$@")
    else
        (cd "$CLUSTER_DIR" && "$@")
    fi
}

give_to_server_user() {
    ((EUID != 0)) || chown "${@:1:$#-1}" "$CLUSTER_USER" "${!#}"
}

cluster_make_dir() {
    [[ $(stat -f -c %T "$FMSORT_TMP") != tmpfs ]] ||
        say "Note: $FMSORT_TMP lies in memory. Name a directory on a disk" \
            "in FMSORT_TMP, or direct I/O cannot work."
    pick_server_user
    CLUSTER_DIR=$(mktemp -d "$FMSORT_TMP/fmsort.XXXXXX")
    at_exit cluster_remove
    chmod 700 "$CLUSTER_DIR"
    give_to_server_user "$CLUSTER_DIR"
}

# Nothing in it is to be kept, so nothing is synced; autovacuum is off so that
# no measurement shares the disk with it.
cluster_configure() {
    cat <<EOF
listen_addresses = ''
unix_socket_directories = '$CLUSTER_DIR'
unix_socket_permissions = 0700
fsync = off
synchronous_commit = off
full_page_writes = off
wal_level = minimal
max_wal_senders = 0
max_wal_size = 4GB
checkpoint_timeout = 1h
autovacuum = off
shared_buffers = 128MB
max_connections = 30
jit = off
EOF
    (($# == 0)) || printf '%s\n' "$@"
}

# server_create DATA LOG ['name = value'...]: runs initdb, configures and starts
# it, with its data and its log below the cluster's directory.
server_create() {
    local bin data=$CLUSTER_DIR/$1 log=$CLUSTER_DIR/$2
    bin=$(pg_config --bindir)

    as_server_user "$bin/initdb" --pgdata="$data" --auth=trust \
        --username="$CLUSTER_USER" --locale=C.UTF-8 --encoding=UTF8 --no-sync &&
        cluster_configure "${@:3}" >>"$data/postgresql.conf" &&
        as_server_user "$bin/pg_ctl" start --wait --silent \
            -p "${CLUSTER_POSTGRES:-$bin/postgres}" \
            --pgdata="$data" --log="$log"
}

server_stop() {
    local data=$CLUSTER_DIR/$1

    [[ -e $data/postmaster.pid ]] || return 0
    as_server_user "$(pg_config --bindir)/pg_ctl" stop --silent \
        --mode=immediate --pgdata="$data" >/dev/null
}

cluster_restart() {
    as_server_user "${CLUSTER_UNDER[@]}" "$(pg_config --bindir)/pg_ctl" \
        restart --wait --silent --pgdata="$CLUSTER_DIR/data" \
        --log="$CLUSTER_DIR/server.log"
}

# cluster_start ['name = value'...]
cluster_start() {
    cluster_make_dir
    step "Starting a throw-away cluster in $CLUSTER_DIR" \
        server_create data server.log "$@"

    export PGHOST=$CLUSTER_DIR PGPORT=5432 PGUSER=$CLUSTER_USER
    export PGDATABASE=postgres
    # The user's own habits must not change what psql prints.
    export PSQLRC=/dev/null PSQL_PAGER=cat
    unset PGOPTIONS PGSERVICE PGPASSWORD PGDATA
    PATH=$(pg_config --bindir):$PATH
}

cluster_remove() {
    local data=$CLUSTER_DIR/data

    if [[ ${KEEP:-0} == 1 && -e $data/postmaster.pid ]]; then
        cluster_explain
        return
    fi
    server_stop data
    rm -rf "$CLUSTER_DIR"
}

cluster_explain() {
    local as=

    ((EUID != 0)) || as="runuser -u $CLUSTER_USER -- "
    say
    say "The cluster is still up, as KEEP=1 asked. To connect:"
    say "  psql -h $CLUSTER_DIR -p 5432 -U $CLUSTER_USER $PGDATABASE"
    say "To stop and remove it:"
    say "  ${as}$(pg_config --bindir)/pg_ctl stop -D $CLUSTER_DIR/data" \
        "&& rm -rf $CLUSTER_DIR"
}
