#!/usr/bin/env bash
# Fetch ActiveMQ Classic, under the Apache License 2.0, by Maven: its archive of binaries. It needs Java
# to run, and no more than that; nothing is installed.
# Usage: fetch_activemq.sh [<folder>], by default .stores; afterwards <folder>/activemq/bin/activemq.jar is the server, and
# <folder>/bin/activemq.jar leads there. Quick when it is there.
set -euo pipefail

version=5.18.3
hash=943381aa6d340707de6c42eadbf7b41b7fdf93df604156d972d50c4da783544f
folder=${1:-.stores}
folder=$(mkdir -p "$folder/bin" && cd "$folder" && pwd)
root=$folder/activemq
if [[ -f $root/bin/activemq.jar && -e $folder/bin/activemq.jar ]]; then
    exit 0
fi

fail() {
    echo "error: cannot fetch ActiveMQ: $1" >&2
    echo "  leave activemq out of STORES to run what does not need it" >&2
    exit 1
}

for program in java mvn; do
    command -v "$program" >/dev/null || fail "there is no $program on PATH"
done
work=$(mktemp -d "$folder/fetch.XXXXXX")
trap 'rm -rf "$work"' EXIT
echo "fetching ActiveMQ $version into $folder"
# In a folder of its own: no pom.xml of a project is to be read.
(cd "$work" && mvn -q -B org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy \
    "-Dartifact=org.apache.activemq:apache-activemq:$version:tar.gz:bin" "-DoutputDirectory=$work") ||
    fail "Maven could not download it"
archive=$work/apache-activemq-$version-bin.tar.gz
echo "$hash  $archive" | sha256sum --check --quiet || fail "the archive is not the one that is pinned"
tar -xzf "$archive" -C "$work"
rm -rf "$root"
mv "$work/apache-activemq-$version" "$root"
chmod 755 "$root/bin/activemq.jar"  # So that it is found as programs are.
ln -sf ../activemq/bin/activemq.jar "$folder/bin/activemq.jar"
