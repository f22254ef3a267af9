# shellcheck shell=bash
# The source of the server that is installed: what of it the tests need, or
# all of it, from the archive that apt has the server's package from.  Needs
# common.sh.
#
# The machine's own apt does not change: its lists, cache and configuration
# are not touched, only read.

SERVER_SOURCE=

# The server's source package and its version, as "name version".
server_package() {
    local owner

    owner=$(dpkg-query -S "$(pg_config --bindir)/postgres" 2>/dev/null) ||
        die "the server of $(pg_config --bindir) is not from a package:" \
            "name a directory with its unpacked source in PG_SOURCE"
    dpkg-query -W -f '${source:Package} ${source:Version}' "${owner%%:*}"
}

# server_source DIRECTORY FILE [PATTERN...]: sets SERVER_SOURCE to PG_SOURCE, or
# to a directory below DIRECTORY; of the archive only what the patterns name, if
# there are any.  FILE is what that source has to have.
server_source() {
    local package version found

    if [[ -n ${PG_SOURCE:-} ]]; then
        SERVER_SOURCE=$(realpath "$PG_SOURCE")
        [[ -e $SERVER_SOURCE/$2 ]] ||
            die "PG_SOURCE is not all of PostgreSQL's source: $PG_SOURCE"
        return
    fi
    read -r package version <<<"$(server_package)"
    SERVER_SOURCE=$1/$package-$version
    [[ -e $SERVER_SOURCE/version ]] ||
        step "Getting the source of $package $version" \
            source_get "$package" "$version" "$SERVER_SOURCE" "${@:3}"
    found=$(<"$SERVER_SOURCE/version")
    [[ $found == "$version" ]] ||
        say "Note: the server is $version, but the nearest source is $found."
}

# source_get PACKAGE VERSION DIRECTORY [PATTERN...]: in a process of its own,
# with a directory that is gone afterwards.  Of the archive only what the
# patterns name, if there are any.
source_get() (
    set -euo pipefail
    temp=$(mktemp -d "$FMSORT_TMP/fmsort-source.XXXXXX")
    trap 'rm -rf "$temp"' EXIT
    trap 'exit 143' INT TERM HUP
    # apt gives up its rights for downloads: to a user who must get in here
    chmod 755 "$temp"

    source_apt_configure "$temp"
    # An archive may have no sources: what counts is what the others have.
    apt-get -q -c "$temp/apt.conf" update || true
    patterns=("${@:4}")
    source_versions "$temp" "$1" "$2" | while read -r version; do
        source_download "$temp" "$1" "$version" || continue
        mkdir -p "$temp/source"
        tar -xf "$temp"/download/*.orig.tar.* -C "$temp/source" \
            --no-same-owner --strip-components=1 --wildcards \
            "${patterns[@]}"
        echo "$version" >"$temp/source/version"
        mkdir -p "${3%/*}"
        rm -rf "$3"
        mv "$temp/source" "$3"
        break
    done
    [[ -e $3/version ]]
)

# source_apt_configure DIRECTORY: an apt.conf there, with everything that apt
# writes below that directory, and the machine's archives as archives of
# sources.
source_apt_configure() {
    local temp=$1 file number=0
    local LIST='' PARTS=''

    eval "$(apt-config shell LIST Dir::Etc::sourcelist/f \
        PARTS Dir::Etc::sourceparts/d)"
    mkdir -p "$temp"/{parts,lists/partial,cache/archives/partial,download}
    ((EUID != 0)) || chown -f _apt "$temp/download" || true
    for file in "$LIST" "$PARTS"/*.list "$PARTS"/*.sources; do
        [[ -f $file ]] || continue
        number=$((number + 1))
        case $file in
        *.sources)
            sed 's/^types:.*/Types: deb-src/I' "$file" \
                >"$temp/parts/$number.sources"
            ;;
        *)
            sed -n 's/^[[:blank:]]*deb[[:blank:]]/deb-src /p' "$file" \
                >"$temp/parts/$number.list"
            ;;
        esac
    done
    # What the machine does after an update of its own lists is not for ours.
    cat >"$temp/apt.conf" <<END
#clear APT::Update;
Dir::Etc::sourcelist "/dev/null";
Dir::Etc::sourceparts "$temp/parts";
Dir::State::lists "$temp/lists";
Dir::Cache "$temp/cache";
END
}

# The versions of PACKAGE that are listed, the one nearest to VERSION first.
# An archive may list a version that it does not have any more.
source_versions() {
    local temp=$1 package=$2 version=$3

    apt-cache -c "$temp/apt.conf" showsrc --only-source "$package" |
        sed -n 's/^Version: //p' | sort -u |
        awk -v wanted="$version" '
            function minor(version) {
                sub(/^[0-9]+:/, "", version)
                split(version, part, /[.-]/)
                return part[2]
            }
            {
                distance = minor($1) - minor(wanted)
                if (distance < 0)
                    distance = -distance
                print 2 * distance + ($1 != wanted), $1
            }' | sort -n | cut -d ' ' -f 2
}

source_download() {
    local temp=$1 package=$2 version=$3

    rm -f "$temp"/download/*
    (cd "$temp/download" && apt-get -q -c "$temp/apt.conf" source \
        --only-source --download-only "$package=$version")
}
