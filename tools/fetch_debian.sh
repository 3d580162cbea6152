#!/usr/bin/env bash
# Fetch a program that a Debian or Ubuntu machine's own release has no package of (of MySQL it has
# MariaDB's `mysqld`): from Debian's unstable release, with every library it needs, unpacked beside
# the system and never installed. apt runs on a state of its own, so the machine's lists, sources
# and packages stay as they are.
# Usage: fetch_debian.sh <folder> mysqld|mysqlrouter|pgbouncer|valkey-server|prometheus; afterwards it is in <folder>/bin,
# and with Prometheus its promtool.
# Or of a library of headers alone: fetch_debian.sh <folder> opentelemetry-cpp; afterwards they are in
# <folder>/opentelemetry-cpp/usr. Quick when it is there.
set -euo pipefail

[[ $# == 2 ]] || { echo "usage: $0 <folder> <program>; the head of this file lists them" >&2 && exit 2; }
folder=$(mkdir -p "$1" && cd "$1" && pwd)
program=$2
# Where its package has it, and what it does not find by itself, as the wrapper below writes it.
libraries="" options="" headers="" also=""
case $program in
    mysqld)
        package=mysql-server-core name=mysql path=usr/sbin/mysqld libraries=usr/lib/mysql/private
        options='--basedir="$root/usr" --character-sets-dir="$root/usr/share/mysql/charsets" \
        --lc-messages-dir="$root/usr/share/mysql" --plugin-dir="$root/usr/lib/mysql/plugin"'
        ;;
    mysqlrouter)
        package=mysql-router name=mysqlrouter path=usr/bin/mysqlrouter libraries=usr/lib/mysql-router
        options='--DEFAULT.plugin_folder="$root/usr/lib/mysqlrouter/plugin"'
        ;;
    pgbouncer) package=pgbouncer name=pgbouncer path=usr/sbin/pgbouncer ;; # under the ISC licence
    valkey-server) package=valkey-server name=valkey path=usr/bin/valkey-server ;;
    prometheus) package=prometheus name=prometheus path=usr/bin/prometheus also=usr/bin/promtool ;; # under the Apache License 2.0
    opentelemetry-cpp) package=opentelemetry-cpp-dev name=opentelemetry-cpp headers=usr/include/opentelemetry ;;
    *) echo "error: it can fetch mysqld, mysqlrouter, pgbouncer, valkey-server, prometheus and opentelemetry-cpp, not $program" >&2 && exit 1 ;;
esac
root=$folder/$name
wrapper=$folder/bin/$program
if [[ -n $headers && -e $root/$headers ]]; then
    exit 0
elif [[ -x $wrapper && (-z $also || -x $folder/bin/${also##*/}) ]] && "$wrapper" --version 2>/dev/null; then
    exit 0
fi

fail() {
    echo "error: cannot fetch $program: $1" >&2
    echo "  install it by hand, or leave its store out of STORES" >&2
    exit 1
}

for tool in apt-get dpkg dpkg-deb; do
    command -v "$tool" >/dev/null || fail "there is no $tool"
done
keyring=/usr/share/keyrings/debian-archive-keyring.gpg
[[ -e $keyring ]] || fail "there is no $keyring (package debian-archive-keyring)"
# The mirrors that this machine itself uses, in either style of its sources; a file may be missing.
mirrors=$(grep -rhoPs --include='*.sources' --include='*.list' \
    '^(URIs:|deb(\s+\[[^]]*\])?)\s+\K\S+' /etc/apt/sources.list /etc/apt/sources.list.d ||
    true)
mirror=$(grep -m1 '/debian/\?$' <<<"$mirrors") || fail "apt's sources name no Debian mirror"

work=$(mktemp -d "$folder/fetch.XXXXXX")
trap 'rm -rf "$work"' EXIT
mkdir -p "$work"/{etc,parts,root,state/lists/partial,cache/archives/partial}
: >"$work/status"
echo "deb [signed-by=$keyring] $mirror sid main" >"$work/etc/sources.list"
# The machine's own settings (a mirror may need them), but none of its hooks: those touch its caches.
for file in /etc/apt/apt.conf.d/*; do
    if [[ -f $file ]] && ! grep -q 'Invoke' "$file"; then
        cp "$file" "$work/parts/"
    fi
done
cat >"$work/apt.conf" <<EOF
Dir::State "$work/state";
Dir::State::status "$work/status";
Dir::Cache "$work/cache";
Dir::Etc::main "/dev/null";
Dir::Etc::parts "$work/parts";
Dir::Etc::preferences "/dev/null";
Dir::Etc::preferencesparts "/dev/null";
Dir::Etc::sourcelist "$work/etc/sources.list";
Dir::Etc::sourceparts "/dev/null";
APT::Architecture "$(dpkg --print-architecture)";
APT::Sandbox::User "$(id -un)";
Acquire::IndexTargets::deb::DEP-11::DefaultEnabled "false";
Acquire::Languages "none";
Debug::NoLocking "true";
EOF
export APT_CONFIG=$work/apt.conf

echo "fetching $package into $root"
apt-get -qq update || fail "apt-get update failed"
if [[ -n $headers ]]; then
    (cd "$work/cache/archives" && apt-get -qq download "$package" >/dev/null) || fail "apt-get could not download it"
else
    apt-get -qq -y --no-install-recommends --download-only install "$package" >/dev/null ||
        fail "apt-get could not download it"
fi
for package in "$work"/cache/archives/*.deb; do
    case $(basename "$package") in
        perl* | libperl* | libdb5* | libgdbm*) ;; # of the maintainer's scripts alone
        *) dpkg-deb -x "$package" "$work/root" ;;
    esac
done

rm -rf "$root"
mv "$work/root" "$root"
if [[ -n $headers ]]; then
    [[ -e $root/$headers ]] || fail "its package has no $headers"
    exit 0
fi
mkdir -p "$folder/bin"
for path in $path $also; do
    cat >"$work/wrapper" <<EOF
#!/bin/sh
# ${path##*/} with the libraries and the loader it came with, which it becomes: its PID stays ours.
root=\$(dirname "\$(dirname "\$(readlink -f "\$0")")")/$name
for loader in "\$root"/usr/lib/*-linux-gnu*/ld-linux-*.so.*; do
    exec "\$loader" --library-path "\$(dirname "\$loader"):\$root/$libraries" \\
        "\$root/$path" "\$@" $options
done
EOF
    chmod 755 "$work/wrapper"
    mv "$work/wrapper" "$folder/bin/${path##*/}"
done
"$wrapper" --version || fail "what was fetched does not run here"
