# shellcheck shell=bash
# What a drive does by itself: fio, with the same buffers as fmsort's own.
#
# Buffers count: a drive may serve small pages at a third of the rate of huge
# ones, of which ours are made, and a virtual one gives back what was written
# from huge pages faster than what was written from small ones.  So fio gets
# them, too, if the kernel lets us set some aside, for its file as well; they
# are given back in the end.  Neither registers its buffers with the ring.
#
# fio writes numbers of its own into each 512 bytes that it is going to write,
# which takes it longer than the drive takes for large blocks: a third of the
# rate in 256 kB.  We number pages.  So it is told not to (scramble_buffers).
#
# fio_buffers
#     Huge pages for what follows; says so if there are none.  Before the rest.
# fio_file FILE SIZE_MB
#     Writes the file anew: what has just been written, and what has just been
#     deleted, keeps a device busy.
# fio_rate FILE SIZE_MB PATTERN BLOCK DEPTH TIME [OPTION...]
#     MB/s: read, randread, write or randwrite in that file, so many at once.

HUGE_PAGES=/proc/sys/vm/nr_hugepages
HUGE_PAGES_BEFORE=
FIO_MEMORY=

give_huge_pages_back() { echo "$HUGE_PAGES_BEFORE" >"$HUGE_PAGES"; }

# 64 of 2 MB: by far more than the largest block takes at the largest depth.
fio_buffers() {
    local wanted

    [[ -z $FIO_MEMORY ]] || return 0
    FIO_MEMORY=malloc
    if [[ -w $HUGE_PAGES ]]; then
        HUGE_PAGES_BEFORE=$(cat "$HUGE_PAGES")
        wanted=$((HUGE_PAGES_BEFORE + 64))
        at_exit give_huge_pages_back
        if echo "$wanted" >"$HUGE_PAGES" &&
            (($(cat "$HUGE_PAGES") == wanted)); then
            FIO_MEMORY=mmaphuge
            return 0
        fi
    fi
    say "No huge pages for fio: it will be slow in large blocks."
}

fio_file() {
    rm -f "$1"
    fio --name=layout --filename="$1" --rw=write --size="$2M" --bs=256k \
        --iodepth=4 --direct=1 --ioengine=io_uring --iomem="$FIO_MEMORY" \
        --output=/dev/null
}

fio_rate() {
    fio --name=rate --filename="$1" --size="$2M" --rw="$3" --bs="$4" \
        --iodepth="$5" --time_based --runtime="$6" --ioengine=io_uring \
        --direct=1 --norandommap --iomem="$FIO_MEMORY" \
        --scramble_buffers=0 --output-format=json "${@:7}" |
        jq '.jobs[0] | [.read.bw_bytes, .write.bw_bytes] | max / 1000000'
}
