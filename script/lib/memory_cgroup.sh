# shellcheck shell=bash
# A memory cgroup for the throw-away server: counts its page cache, and holds
# it down on request.  Needs common.sh and a cluster (cluster.sh).
#
# The group is made below our own, so that whatever limits us limits it, too;
# where that cannot be (version 2 wants no processes beside child groups),
# below the nearest group above that lets us.  Nobody else's group is changed.  After
# memory_cgroup_enter, MEMORY_CGROUP is its directory, or empty if there is
# none to be had; MEMORY_CGROUP_VERSION is 1 or 2.

MEMORY_CGROUP=
MEMORY_CGROUP_VERSION=

memory_cgroup_find() {
    local mount path

    mount=$(awk '$3 == "cgroup" && ("," $4 ",") ~ /,memory,/ { print $2; exit }' \
        /proc/self/mounts)
    if [[ -n $mount ]]; then
        MEMORY_CGROUP_VERSION=1
        path=$(sed -n 's/^[0-9]*:[^:]*\bmemory\b[^:]*://p' /proc/self/cgroup)
    else
        MEMORY_CGROUP_VERSION=2
        mount=$(awk '$3 == "cgroup2" { print $2; exit }' /proc/self/mounts)
        path=$(sed -n 's/^0:://p' /proc/self/cgroup)
    fi
    [[ -n $mount ]] || return 0
    while ! memory_cgroup_make "$mount${path%/}"; do
        [[ -n ${path%/} ]] || return 0
        path=${path%/*}
    done
}

# Below DIRECTORY, if memory can be limited there.  Some container managers
# give their groups names with colons.
memory_cgroup_make() {
    local group=$1/${CLUSTER_DIR##*/}:memory

    mkdir "$group" 2>/dev/null || return 1
    MEMORY_CGROUP=$group
    if [[ -w $group/cgroup.procs ]] && memory_cgroup_limit max 2>/dev/null; then
        return
    fi
    MEMORY_CGROUP=
    rmdir "$group"
    return 1
}

# Starts the server again, inside.
memory_cgroup_enter() {
    memory_cgroup_find
    [[ -n $MEMORY_CGROUP ]] || return 0
    at_exit memory_cgroup_remove
    step "Starting the server again in a control group" memory_cgroup_restart
}

memory_cgroup_restart() {
    echo "$BASHPID" >"$MEMORY_CGROUP/cgroup.procs" && cluster_restart
}

# Gives an empty group to the server's user; FMSORT_MEMORY_GROUP names it.
memory_cgroup_give() {
    memory_cgroup_find
    [[ -n $MEMORY_CGROUP ]] || return 0
    at_exit memory_cgroup_remove
    give_to_server_user -R "$MEMORY_CGROUP"
    export FMSORT_MEMORY_GROUP=$MEMORY_CGROUP
}

# memory_cgroup_limit MEGABYTES or max.  What is over is dropped at once.
memory_cgroup_limit() {
    local value=$1

    [[ $value == max ]] || value=$((value * 1024 * 1024))
    if ((MEMORY_CGROUP_VERSION == 1)); then
        [[ $value != max ]] || value=-1
        echo "$value" >"$MEMORY_CGROUP/memory.limit_in_bytes"
    else
        echo "$value" >"$MEMORY_CGROUP/memory.max"
    fi
}

# The page cache in kB, without shared memory: the server's, or for want of a
# cgroup the machine's.
page_cache_kb() {
    if [[ -n $MEMORY_CGROUP ]]; then
        awk '$1 == "cache" || $1 == "file" { cache = $2 }
            $1 == "shmem" { shared = $2 }
            END { printf "%d\n", (cache - shared) / 1024 }' \
            "$MEMORY_CGROUP/memory.stat"
    else
        awk '$1 == "Cached:" { cache = $2 } $1 == "Shmem:" { shared = $2 }
            END { print cache - shared }' /proc/meminfo
    fi
}

# A server in the group has to be gone before the group can go.
memory_cgroup_remove() {
    local try

    if [[ -e $CLUSTER_DIR/data/postmaster.pid ]] &&
        grep -q . "$MEMORY_CGROUP/cgroup.procs"; then
        as_server_user "$(pg_config --bindir)/pg_ctl" stop --silent \
            --mode=immediate --pgdata="$CLUSTER_DIR/data" >/dev/null || true
    fi
    for try in 1 2 3 4 5 6 7 8 9 10; do
        rmdir "$MEMORY_CGROUP" 2>/dev/null && return
        sleep 0.$try
    done
    say "Could not remove the memory cgroup ${MEMORY_CGROUP##*/}."
}
