#!/usr/bin/env bash
# Every test: all of them on one Python, then the wheel on every Python and over every OpenTelemetry.
# Environment: STORES (names, blanks between them), CI=true or REQUIRE=1 (a missing store is a failure).
set -euo pipefail
python=$1
shift

# Servers of Debian live in /usr/sbin, which is not on every user's PATH.
export PATH="$PATH:/usr/sbin:/sbin:/usr/local/sbin"
if [[ ${CI:-} == true || -n ${REQUIRE:-} ]]; then
    names=${STORES:-embedded}
    export ANTIPODE_REQUIRE_STORES=${names// /,}
    echo "required stores: $ANTIPODE_REQUIRE_STORES"
fi

echo "== every test on one Python"
# Much of them is waiting for servers. Each of the two has servers of its own; "$@" may say otherwise.
"$python" -m pytest -q -ra --durations=5 -n 2 "$@"

echo "== the wheel on every Python, and over every OpenTelemetry"
"$python" -m tools.wheel_matrix
