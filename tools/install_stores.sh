#!/usr/bin/env bash
# Install the real servers of the stores named, or say what to install. No service is started: each
# test starts servers of its own and stops them.
set -euo pipefail

cd "$(dirname "$0")/.."
declare -A server_of=([redis]=redis-server [rabbitmq]=rabbitmq-server [mongodb]=mongod)
# What the system has no package of; it goes into .stores, which git ignores and the tests look into.
declare -A fetch_by=([mongod]=tools/fetch_mongodb.sh)

# Servers of Debian live in /usr/sbin, which is not on every user's PATH.
export PATH="$PATH:/usr/sbin:/sbin:/usr/local/sbin:$PWD/.stores/bin"

missing=()
for store in "$@"; do
    if [[ $store == embedded ]]; then
        continue
    elif [[ -z ${server_of[$store]:-} ]]; then
        echo "error: no such store: $store; there are: embedded ${!server_of[*]}" >&2
        exit 1
    elif command -v "${server_of[$store]}" >/dev/null; then
        echo "$store: ${server_of[$store]} is here"
    elif [[ -n ${fetch_by[${server_of[$store]}]:-} ]]; then
        "${fetch_by[${server_of[$store]}]}" .stores
    else
        missing+=("${server_of[$store]}")
    fi
done

if [[ ${#missing[@]} -gt 0 ]] && ! tools/apt_install.sh "${missing[@]}"; then
    echo "  or run what needs no server:  make test STORES=embedded" >&2
    exit 1
fi
for name in "${missing[@]}"; do
    if ! command -v "$name" >/dev/null; then
        echo "error: $name was installed, but it is not on PATH" >&2
        exit 1
    fi
done
