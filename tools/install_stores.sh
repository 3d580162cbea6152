#!/usr/bin/env bash
# Install the real servers that the tests use, through apt where that is allowed; else say what to install.
# Arguments: the stores. No service is started: each test starts servers of its own and stops them.
set -euo pipefail

declare -A server_of=([redis]=redis-server [rabbitmq]=rabbitmq-server)

have() {
    # Servers of Debian live in /usr/sbin, which is not on every user's PATH.
    PATH="$PATH:/usr/sbin:/sbin:/usr/local/sbin" command -v "$1" >/dev/null
}

missing=()
for store in "$@"; do
    if [[ $store == embedded ]]; then
        continue
    elif [[ -z ${server_of[$store]:-} ]]; then
        echo "error: no such store: $store; there are: embedded ${!server_of[*]}" >&2
        exit 1
    elif have "${server_of[$store]}"; then
        echo "$store: ${server_of[$store]} is here"
    else
        missing+=("${server_of[$store]}")
    fi
done
if [[ ${#missing[@]} -eq 0 ]]; then
    exit 0
fi

give_up() {
    echo "error: $1" >&2
    echo "install these servers and run this again: ${missing[*]}" >&2
    echo "  Debian or Ubuntu:  sudo apt-get install ${missing[*]}" >&2
    echo "or run what needs no server:  make test STORES=embedded" >&2
    exit 1
}

if [[ $EUID -eq 0 ]]; then
    as_root=(env)
elif sudo -n true 2>/dev/null; then
    as_root=(sudo -n env)
else
    give_up "no server ${missing[*]}, and neither root nor sudo without a password to install it"
fi
command -v apt-get >/dev/null || give_up "no server ${missing[*]}, and no apt-get to install it"

# Package scripts must not start services: a policy of exit code 101 says so, for this installation alone.
policy=/usr/sbin/policy-rc.d
made_policy=""
if [[ ! -e $policy ]]; then
    printf '#!/bin/sh\nexit 101\n' | "${as_root[@]}" tee "$policy" >/dev/null
    "${as_root[@]}" chmod 755 "$policy"
    made_policy=yes
fi
remove_policy() {
    if [[ -n $made_policy ]]; then
        "${as_root[@]}" rm -f "$policy"
    fi
}
trap remove_policy EXIT

apt=("${as_root[@]}" DEBIAN_FRONTEND=noninteractive apt-get -qq -o DPkg::Lock::Timeout=300)
echo "installing ${missing[*]}"
if ! "${apt[@]}" install --yes --no-install-recommends "${missing[@]}" >/dev/null 2>&1; then
    # The package lists are missing or old: once, and never beside another installation.
    "${apt[@]}" update || give_up "apt-get update failed"
    "${apt[@]}" install --yes --no-install-recommends "${missing[@]}" >/dev/null \
        || give_up "apt-get could not install ${missing[*]}"
fi
for name in "${missing[@]}"; do
    have "$name" || give_up "apt-get installed $name, but it is not on PATH"
done
