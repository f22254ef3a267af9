# shellcheck shell=bash
# Debian's releases, and which PostgreSQL each of them has.  A release that is
# added here is known to script/setup and to script/test matrix.

# codename, release, server; sid's is in experimental
DEBIAN_RELEASES='
bookworm 12 15
trixie 13 17
forky 14 18
sid - 19'

# The release of this machine; nothing if it is not Debian.
debian_codename() {
    # shellcheck disable=SC1091 # not ours
    (. /etc/os-release && [[ $ID == debian ]] && echo "$VERSION_CODENAME") ||
        true
}

# debian_server CODENAME: the major version there; nothing if unknown
debian_server() {
    awk -v name="$1" '$1 == name { print $3 }' <<<"$DEBIAN_RELEASES"
}

# debian_with SERVER: the codename of the release that has it
debian_with() {
    awk -v server="$1" '$3 == server { print $1 }' <<<"$DEBIAN_RELEASES"
}
