# shellcheck shell=bash
# File systems that the tests need and only root can make: one without direct
# I/O, two that are soon full, one that is read-only, one on a device of
# 4096-byte sectors.  Needs common.sh and a cluster's directory (cluster.sh), in
# which they are mounted until we leave.
#
# Sets FMSORT_RAMFS, FMSORT_SMALLFS, FMSORT_SMALLTMPFS, FMSORT_SECTORS and
# FMSORT_ROFS (with FMSORT_ROFS_SOURCE, the same directory where it can be
# written to); a variable stays unset where that file system cannot be made, and
# the tests that need it say so.

FILESYSTEMS=()

filesystems_unmount() {
    local dir

    for dir in "${FILESYSTEMS[@]}"; do
        umount "$dir" 2>/dev/null || umount --lazy "$dir"
    done
}

# mount_at NAME OPTIONS... SOURCE: mounts it at a new directory of that name.
mount_at() {
    local dir=$CLUSTER_DIR/$1
    shift

    mkdir "$dir" && mount "$@" "$dir" || return
    FILESYSTEMS+=("$dir")
    give_to_server_user "$dir"
}

# Prints a loop device with 4096-byte sectors; it goes once nothing mounts it.
sectors_device() {
    local image=$CLUSTER_DIR/sectors.image

    truncate -s 192M "$image" &&
        losetup --find --show --sector-size 4096 "$image"
}

# mount_sectors DEVICE: mounted or not, the device is given back.
mount_sectors() {
    local status=0

    mkfs.ext4 -q "$1" && mount_at sectors "$1" || status=$?
    losetup --detach "$1"
    return "$status"
}

# ramfs takes no O_DIRECT, unlike tmpfs, where newer kernels do.
filesystems_mount() {
    local image=$CLUSTER_DIR/small.image device

    ((EUID == 0)) || return 0
    at_exit filesystems_unmount
    if mount_at ramfs -t ramfs none; then
        export FMSORT_RAMFS=$CLUSTER_DIR/ramfs
    fi
    if truncate -s 16M "$image" && mkfs.ext4 -q "$image" &&
        mount_at small -o loop "$image"; then
        export FMSORT_SMALLFS=$CLUSTER_DIR/small
    fi
    if mount_at smalltmpfs -t tmpfs -o size=16M none; then
        export FMSORT_SMALLTMPFS=$CLUSTER_DIR/smalltmpfs
    fi
    if device=$(sectors_device) && mount_sectors "$device"; then
        export FMSORT_SECTORS=$CLUSTER_DIR/sectors
    fi
    mkdir "$CLUSTER_DIR/writable"
    give_to_server_user "$CLUSTER_DIR/writable"
    if mount_at readonly --bind "$CLUSTER_DIR/writable" &&
        mount -o remount,bind,ro "$CLUSTER_DIR/readonly"; then
        export FMSORT_ROFS=$CLUSTER_DIR/readonly
        export FMSORT_ROFS_SOURCE=$CLUSTER_DIR/writable
    fi
}
