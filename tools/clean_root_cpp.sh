#!/usr/bin/env bash
# Build and install the C++ core by the lines of its README, and a program with it, in a Debian that has a compiler and
# CMake and nothing else. Needs root, debootstrap and the network.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

command -v debootstrap >/dev/null || tools/apt_install.sh debootstrap
# The mirror that this machine itself uses, and its release.
mirror=$(grep -rhoPs --include='*.sources' --include='*.list' '^(URIs:|deb(\s+\[[^]]*\])?)\s+\K\S+' \
    /etc/apt/sources.list /etc/apt/sources.list.d | grep -m1 '/debian/\?$')
release=$(. /etc/os-release && echo "$VERSION_CODENAME")
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
debootstrap --variant=minbase --include=g++,cmake,make "$release" "$root" "$mirror" >"$root.log" ||
    { cat "$root.log"; exit 1; }
rm -f "$root.log"
mkdir "$root/cpp"
git ls-files cpp | tar -cf - -T - | tar -xf - -C "$root"

mapfile -t lines < <(sed -n '/^## Install/,/^## /s/^\$ //p' cpp/README.md)
for line in "${lines[@]}" \
    'cmake -S tests/installed -B build/installed -DCMAKE_PREFIX_PATH=/opt/antipode' \
    'cmake --build build/installed' 'ctest --test-dir build/installed --output-on-failure'; do
    echo "$line"
    env -i PATH="$PATH" chroot "$root" sh -c "cd /cpp && $line" >"$root/log" 2>&1 || { cat "$root/log"; exit 1; }
    grep -h '^-- antipode:' "$root/log" || true
done
