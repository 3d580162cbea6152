#!/usr/bin/env bash
# Fetch MySQL's own server for Debian and Ubuntu machines whose `mysqld` is MariaDB's: from Debian's
# unstable release, with every library it needs, unpacked beside the system and never installed.
# apt runs on a state of its own, so the machine's lists, sources and packages stay as they are.
# Usage: fetch_mysql.sh <folder>; afterwards <folder>/bin/mysqld is the server. Quick when it is there.
set -euo pipefail

folder=$(mkdir -p "$1" && cd "$1" && pwd)
root=$folder/mysql
wrapper=$folder/bin/mysqld
if [[ -x $wrapper ]] && "$wrapper" --version 2>/dev/null; then
    exit 0
fi

fail() {
    echo "error: cannot fetch MySQL: $1" >&2
    echo "  put the mysqld of MySQL 8.0 or later on PATH by hand, or leave mysql out of STORES" >&2
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

echo "fetching mysql-server-core into $root"
apt-get -qq update || fail "apt-get update failed"
apt-get -qq -y --no-install-recommends --download-only install mysql-server-core >/dev/null ||
    fail "apt-get could not download it"
for package in "$work"/cache/archives/*.deb; do
    case $(basename "$package") in
        perl* | libperl* | libdb5* | libgdbm*) ;; # of the maintainer's scripts alone
        *) dpkg-deb -x "$package" "$work/root" ;;
    esac
done

rm -rf "$root"
mv "$work/root" "$root"
mkdir -p "$folder/bin"
cat >"$work/mysqld" <<'EOF'
#!/bin/sh
# MySQL with the libraries and the loader it came with. It becomes the server, whose PID stays ours.
root=$(dirname "$(dirname "$(readlink -f "$0")")")/mysql
for loader in "$root"/usr/lib/*-linux-gnu*/ld-linux-*.so.*; do
    exec "$loader" --library-path "$(dirname "$loader"):$root/usr/lib/mysql/private" \
        "$root/usr/sbin/mysqld" "$@" \
        --basedir="$root/usr" \
        --character-sets-dir="$root/usr/share/mysql/charsets" \
        --lc-messages-dir="$root/usr/share/mysql" \
        --plugin-dir="$root/usr/lib/mysql/plugin"
done
EOF
chmod 755 "$work/mysqld"
mv "$work/mysqld" "$wrapper"
"$wrapper" --version || fail "the server that was fetched does not run here"
