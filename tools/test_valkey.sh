#!/usr/bin/env bash
# Hold Valkey to the contract of the Redis shim, and to its tests of clients behind proxies: test_valkey.sh PYTHON
set -euo pipefail
tools/fetch_debian.sh .stores valkey-server
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
ln -s "$PWD/.stores/bin/valkey-server" "$folder/redis-server"
PATH="$folder:$PATH:/usr/sbin" ANTIPODE_REQUIRE_STORES=redis "$1" -m pytest -q \
    tests/contract/test_redis.py tests/contract/test_redis_stored.py tests/integration/redis/test_proxies.py
