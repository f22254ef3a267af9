# shellcheck shell=bash
# Root directories of Debian's releases, in which scripts install, build and
# test.  Needs common.sh, root's rights and script/setup's profile "matrix".

. "${BASH_SOURCE[0]%/*}/debian.sh"

needs_root() {
    ((EUID == 0)) || die "this makes a root directory and enters it, which" \
        "needs root"
}

# root_make CODENAME DIRECTORY.  An archive that is a snapshot has a Release
# file that is past its date, which apt would not take.
root_make() {
    [[ ! -e $2/etc/fmsort-root ]] || return 0
    rm -rf --one-file-system "$2"
    mkdir -p "$2"
    mmdebstrap --variant=minbase --mode=root --skip=check/empty \
        --aptopt='Acquire::Check-Valid-Until "false"' \
        "$1" "$2" ${DEBIAN_MIRROR:+"$DEBIAN_MIRROR"} || return
    [[ $1 != sid ]] || root_add_experimental "$2"
    touch "$2/etc/fmsort-root"
}

# Of experimental, apt takes the server that sid does not have yet, with what is
# built from its source, and nothing else.
root_add_experimental() {
    local apt=$1/etc/apt

    sed -n 's/ sid / experimental /p' "$apt/sources.list" \
        >"$apt/sources.list.d/experimental.list"
    cat >"$apt/preferences.d/experimental" <<END
Package: src:postgresql-$(debian_server sid)
Pin: release a=experimental
Pin-Priority: 500
END
}

# root_add_server DIRECTORY VERSION: another release's server beside the root's own,
# with fmsort of the tree that is there.  Its headers are unpacked only: their
# package would bring the compiler of that release.
root_add_server() {
    local release sources=$1/etc/apt/sources.list
    release=$(debian_with "$2")

    [[ -n $release ]] || return
    sed -n "s/ sid / $release /p" "$sources" >"$sources.d/$release.list"
    # shellcheck disable=SC2016 # expanded by the shell inside
    root_run "$1" env PG_MAJOR="$2" bash -euc '
        cd /usr/src/fmsort
        script/setup upgrade
        cd "$(mktemp -d /var/tmp/fmsort-upgrade.XXXXXX)"
        if [[ ! -e /usr/include/postgresql/$PG_MAJOR/server ]]; then
            apt-get -q download "postgresql-server-dev-$PG_MAJOR"
            dpkg -x postgresql-server-dev-*.deb /
        fi
        cp -r /usr/src/fmsort fmsort
        make -s -C fmsort install \
            PG_CONFIG="/usr/lib/postgresql/$PG_MAJOR/bin/pg_config"'
}

# The tree as it is here, without what was made from it, at /usr/src/fmsort.
root_copy_tree() {
    rm -rf "$1/usr/src/fmsort" "$1"/var/tmp/fmsort*
    copy_tree "$1/usr/src/fmsort"
}

# root_run DIRECTORY COMMAND...: mounts and processes of what runs there are in
# namespaces of its own, which are gone with it, whatever it dies of.  A root
# that is not a mount point itself (we may be in a chroot) has no propagation
# to be set.
root_run() {
    local root=$1 propagation=()
    shift

    cp -L /etc/resolv.conf "$root/etc/resolv.conf"
    unshare --mount true 2>/dev/null || propagation=(--propagation unchanged)
    # shellcheck disable=SC2016 # expanded by the shell inside
    unshare --mount "${propagation[@]}" --pid --fork --kill-child \
        bash -euc '
            root=$1
            shift
            mount -t proc proc "$root/proc"
            mount --rbind /sys "$root/sys"
            mount --rbind /dev "$root/dev"
            exec env -u PG_CONFIG -u PG_MAJOR -u FMSORT_TALLY HOME=/root LC_ALL=C.UTF-8 \
                PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
                FMSORT_TMP=/var/tmp chroot "$root" "$@"' root "$root" "$@"
}

# root_test DIRECTORY COMMAND...: a command that runs script/test there; what that
# counts, counts here.
root_test() {
    local tally=$1/var/tmp/fmsort-tally status=0

    : >"$tally"
    root_run "$1" env FMSORT_TALLY=/var/tmp/fmsort-tally "${@:2}" || status=$?
    cat "$tally" >>"${FMSORT_TALLY:-/dev/null}"
    return "$status"
}
