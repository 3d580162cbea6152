#!/usr/bin/env bash
# Build SeaweedFS, under the Apache License 2.0, from the Go module proxy. It needs Go, and takes some
# four minutes of two quiet cores, so what it builds is kept in a cache outside of the clone.
# Usage: fetch_seaweedfs.sh [<folder>], by default .stores; afterwards <folder>/bin/weed is the server. Quick when it is there.
# Environment: XDG_CACHE_HOME, as elsewhere; GOFLAGS=-p=1 where memory is short (2.2 GB a process).
set -euo pipefail

version=v0.0.0-20261109003541-7506e5f91cd6 # 4.53
module=github.com/seaweedfs/seaweedfs
folder=${1:-.stores}
folder=$(mkdir -p "$folder/bin" && cd "$folder" && pwd)
cache=${XDG_CACHE_HOME:-$HOME/.cache}/antipode/seaweedfs
server=$cache/$version/weed
if [[ $(readlink "$folder/bin/weed") == "$server" && -x $server ]]; then
    exit 0
fi

fail() {
    echo "error: cannot build SeaweedFS: $1" >&2
    echo "  leave seaweedfs out of STORES to run what does not need it" >&2
    exit 1
}

mkdir -p "$cache/$version"
exec 9>"$cache/.lock" # Two clones may want it at once.
flock 9
if [[ ! -x $server ]]; then
    command -v go >/dev/null || fail "there is no go on PATH"
    work=$(mktemp -d "$cache/build.XXXXXX")
    trap 'rm -rf "$work"' EXIT
    echo "building SeaweedFS $version into $cache (minutes)"
    # In a module of its own: `go install` refuses one that replaces others. Its 6 GB of modules
    # and objects are of no further use.
    export GOMODCACHE=$work/modules GOCACHE=$work/objects GOFLAGS="${GOFLAGS:-} -mod=mod -modcacherw -buildvcs=false"
    (
        mkdir "$work/module" && cd "$work/module"
        go mod init antipode/weed
        go get "$module/weed@$version"
        go build -trimpath -ldflags='-s -w' -o "$work/weed" "$module/weed"
    ) >"$cache/build.log" 2>&1 || fail "see $cache/build.log"
    "$work/weed" version >"$cache/version" 2>&1 || fail "it does not run here, see $cache/version"
    mv "$work/weed" "$server"
fi
ln -sf "$server" "$folder/bin/weed"
