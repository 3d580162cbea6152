#!/usr/bin/env bash
# The tests of one tier (tests/_tiers.py says what these are): run_tests.sh PYTHON TIER [pytest's arguments]
# Environment: STORES (names, blanks between them), CI=true or REQUIRE=1 (a missing store is a failure).
set -euo pipefail
python=$1 tier=$2
shift 2

# Servers of Debian live in /usr/sbin, which is not on every user's PATH.
export PATH="$PATH:/usr/sbin:/sbin:/usr/local/sbin"
if [[ ${CI:-} == true || -n ${REQUIRE:-} ]]; then
    names=${STORES:-embedded}
    export ANTIPODE_REQUIRE_STORES=${names// /,}
    echo "required stores: $ANTIPODE_REQUIRE_STORES"
    export ANTIPODE_REQUIRE_AGENTS=cpp,java
fi

# Much of them is waiting for servers. Each of the two has servers of its own; "$@" may say otherwise.
"$python" -m pytest -q -ra --durations=5 -n 2 --tier="$tier" "$@"
