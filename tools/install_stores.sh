#!/usr/bin/env bash
# Install the real servers of the stores named, or say what to install. No service is started: each
# test starts servers of its own and stops them.
set -euo pipefail

declare -A server_of=([redis]=redis-server [rabbitmq]=rabbitmq-server)

# Servers of Debian live in /usr/sbin, which is not on every user's PATH.
export PATH="$PATH:/usr/sbin:/sbin:/usr/local/sbin"

missing=()
for store in "$@"; do
    if [[ $store == embedded ]]; then
        continue
    elif [[ -z ${server_of[$store]:-} ]]; then
        echo "error: no such store: $store; there are: embedded ${!server_of[*]}" >&2
        exit 1
    elif command -v "${server_of[$store]}" >/dev/null; then
        echo "$store: ${server_of[$store]} is here"
    else
        missing+=("${server_of[$store]}")
    fi
done

if [[ ${#missing[@]} -gt 0 ]] && ! "$(dirname "$0")/apt_install.sh" "${missing[@]}"; then
    echo "  or run what needs no server:  make test STORES=embedded" >&2
    exit 1
fi
for name in "${missing[@]}"; do
    if ! command -v "$name" >/dev/null; then
        echo "error: $name was installed, but it is not on PATH" >&2
        exit 1
    fi
done
