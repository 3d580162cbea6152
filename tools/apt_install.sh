#!/usr/bin/env bash
# Install Debian or Ubuntu packages where that is allowed; else say why not and fail. Starts no service.
set -euo pipefail

refuse() {
    echo "error: cannot install $*: $reason" >&2
    echo "  install by hand:  sudo apt-get install $*" >&2
    exit 1
}

if ! command -v apt-get >/dev/null; then
    reason="there is no apt-get" && refuse "$@"
elif [[ $EUID -eq 0 ]]; then
    as_root=(env)
elif sudo -n true 2>/dev/null; then
    as_root=(sudo -n env)
else
    reason="neither root nor sudo without a password" && refuse "$@"
fi

# Package scripts must not start services: a policy of exit code 101 says so, for this installation alone.
policy=/usr/sbin/policy-rc.d
if [[ ! -e $policy ]]; then
    trap '"${as_root[@]}" rm -f "$policy"' EXIT
    printf '#!/bin/sh\nexit 101\n' | "${as_root[@]}" tee "$policy" >/dev/null
    "${as_root[@]}" chmod 755 "$policy"
fi

apt=("${as_root[@]}" DEBIAN_FRONTEND=noninteractive apt-get -qq -o DPkg::Lock::Timeout=300)
install=("${apt[@]}" install --yes --no-install-recommends "$@")
echo "installing $*"
if ! "${install[@]}" >/dev/null 2>&1; then
    # The package lists are missing or old: update once, and never beside another installation.
    if ! "${apt[@]}" update || ! "${install[@]}" >/dev/null; then
        reason="apt-get failed" && refuse "$@"
    fi
fi
