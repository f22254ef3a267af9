# shellcheck shell=bash
# A device that is as slow as one likes: a file system in a file, on a loop
# device of its own, which a cgroup's blkio controller (version 1) throttles.
# Needs common.sh and root.
#
# Not the disk itself: that would throttle whoever else uses it.  And not the
# server's own group alone: what the kernel writes back from the page cache in
# the background it charges to the root group, so that a limit of the server's
# group holds for its direct I/O and not for all of its buffered writes.  A limit
# of the root group holds for both: 120 MB at 30 MB/s took 4.1 s past the page
# cache, and 4.5 s through it and an fsync.  So the root group and our own get
# the limit, for this one device, which is nobody else's; it goes with the
# device.

# The device made last; all of them.
THROTTLE_DIR=
THROTTLE_DIRS=()
THROTTLE_NUMBERS=()
THROTTLE_GROUPS=()

throttle_find() {
    local mount path

    mount=$(awk '$3 == "cgroup" && ("," $4 ",") ~ /,blkio,/ { print $2; exit }' \
        /proc/self/mounts)
    [[ -n $mount && -w $mount/blkio.throttle.read_bps_device ]] || return 1
    path=$(sed -n 's/^[0-9]*:[^:]*\bblkio\b[^:]*://p' /proc/self/cgroup)
    THROTTLE_GROUPS=("$mount")
    if [[ -n ${path%/} && -d $mount$path ]]; then
        THROTTLE_GROUPS+=("$mount$path")
    fi
}

# throttle_begin MEGABYTES: the file system is at $THROTTLE_DIR/slow
throttle_begin() {
    local device

    THROTTLE_DIR=$(mktemp -d "$FMSORT_TMP/fmsort.slow.XXXXXX")
    chmod 755 "$THROTTLE_DIR"
    ((${#THROTTLE_DIRS[@]})) || at_exit throttle_remove
    THROTTLE_DIRS+=("$THROTTLE_DIR")
    step "Making a device" throttle_make "$1"
    device=$(cat "$THROTTLE_DIR/device")
    THROTTLE_NUMBERS+=("$((0x$(stat -c %t "$device"))):$((0x$(stat -c %T "$device")))")
}

throttle_make() {
    local image=$THROTTLE_DIR/image

    truncate -s "$1M" "$image" && mkfs.ext4 -q "$image" || return
    # Direct, or the image's own pages would be a second page cache.
    losetup --find --show --direct-io=on "$image" >"$THROTTLE_DIR/device" ||
        return
    mkdir "$THROTTLE_DIR/slow" &&
        mount "$(cat "$THROTTLE_DIR/device")" "$THROTTLE_DIR/slow"
}

# throttle_limit BYTES REQUESTS: each device, a second, each way; 0: unlimited
throttle_limit() {
    local number group file

    for number in "${THROTTLE_NUMBERS[@]}"; do
        for group in "${THROTTLE_GROUPS[@]}"; do
            for file in read_bps:$1 write_bps:$1 read_iops:$2 write_iops:$2; do
                echo "$number ${file#*:}" \
                    >"$group/blkio.throttle.${file%:*}_device" || return
            done
        done
    done
}

throttle_remove() {
    local dir

    throttle_limit 0 0 || true
    for dir in "${THROTTLE_DIRS[@]}"; do
        umount "$dir/slow" 2>/dev/null || umount --lazy "$dir/slow" || true
        [[ ! -s $dir/device ]] || losetup --detach "$(cat "$dir/device")"
        rm -rf --one-file-system "$dir"
    done
}
