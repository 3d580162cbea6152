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

# Budgets count calls, and what other tests leave in a process adds some: they have processes of their own.
budgets=() others=()
for argument in "$@"; do
    if [[ $argument == tests/budgets* ]]; then budgets+=("$argument"); else others+=("$argument"); fi
done
# The style that is a test is run by `make check`, which CI and contributors run first.
(($# > 0)) || budgets=(tests/budgets) others=(--ignore=tests/budgets --ignore=tests/tidy)
if ((${#budgets[@]} > 0)); then
    "$python" -m pytest -q -ra -n 2 --dist loadfile --tier="$tier" "${budgets[@]}" ||
        (($? == 5)) # None is of this tier.
    [[ $# -eq 0 || " ${others[*]}" == *" tests"* ]] || exit 0 # Nothing but budgets was asked for.
fi

# Much of them is waiting for servers: three processes keep two processors busy. A store's tests are in
# one of them as far as that goes (tests/_groups.py), so that its servers start once. "$@" may say otherwise.
"$python" -m pytest -q -ra --durations=5 -n 3 --dist loadgroup --no-loadscope-reorder \
    --tier="$tier" --costs="build/tests/$tier.json" "${others[@]}"
